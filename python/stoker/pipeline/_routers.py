"""Routers of path variants, with what they say checked."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Part", "make_router"]


class Part:
    """The items of one batch that go down one path."""

    __slots__ = ("path", "items")

    def __init__(self, path: int, items: list[Any]) -> None:
        self.path = path
        self.items = items


def make_router(
    router: Callable[[Any], Any], num_paths: int, batched: bool, awaits: bool
) -> Callable[[Any], Any]:
    """A router whose answer is checked: the index of a path; of a batched one the parts of the batch."""
    if batched:
        return (_AsyncBatchedRouter if awaits else _BatchedRouter)(router, num_paths)
    return (_AsyncRouter if awaits else _Router)(router, num_paths)


class _Router:
    def __init__(self, router: Callable[[Any], Any], num_paths: int) -> None:
        self._router = self.__wrapped__ = router  # which locate() looks for
        self._num_paths = num_paths

    def __call__(self, item: Any) -> Any:
        return self._check(self._router(item))

    def _check(self, path: Any) -> int:
        if not hasattr(path, "__index__"):
            raise TypeError(f"Router returned {type(path).__name__}, not the index of a path")
        index = int(path.__index__())
        if not 0 <= index < self._num_paths:
            raise IndexError(f"Router returned index {index}, but there are {self._num_paths} paths")
        return index


class _AsyncRouter(_Router):
    async def __call__(self, item: Any) -> int:
        return self._check(await self._router(item))


class _BatchedRouter(_Router):
    def __call__(self, items: Any) -> Any:
        return self._split(items, self._router(items)) if len(items) else []

    def _split(self, items: Any, paths: Any) -> list[Part]:
        indices = list(paths)
        if len(indices) != len(items):
            raise ValueError(
                f"Batched router returned {len(indices)} indices for a batch of {len(items)} items"
            )
        parts = [Part(path, []) for path in range(self._num_paths)]
        for item, path in zip(items, indices, strict=True):
            parts[self._check(path)].items.append(item)
        return parts


class _AsyncBatchedRouter(_BatchedRouter):
    async def __call__(self, items: Any) -> list[Part]:
        return self._split(items, await self._router(items)) if len(items) else []
