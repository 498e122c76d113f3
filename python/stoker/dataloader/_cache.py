"""A loader whose results are repeated."""

from __future__ import annotations

from .. import _check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Generic, TypeVar
else:
    from .._generic import Generic, TypeVar

__all__ = ["CacheDataLoader"]

T = TypeVar("T")


class CacheDataLoader(Generic[T]):
    """Passes over the loader `dl`, of which the first `num_caches` results are kept and then repeated.

    What a training loop gains with it is what a faster loader could give it.

    `return_caches_after`: so many results come from the loader before the kept ones do, and then it is stopped.
    `stop_after`: so many results in one pass (None: no end).
    The length, and every attribute that is not one of these, is the loader's.

    The same objects are given again: they must not be changed by who gets them.
    ValueError: a number that is not greater than zero.
    """

    __module__ = "stoker.dataloader"

    def __init__(
        self,
        dl: Iterable[T],
        num_caches: int,
        return_caches_after: int,
        stop_after: int | None = None,
    ) -> None:
        self.dl = dl
        self.num_caches = _check.positive("num_caches", num_caches)
        self.return_caches_after = _check.positive("return_caches_after", return_caches_after)
        self.stop_after = None if stop_after is None else _check.positive("stop_after", stop_after)

    def __iter__(self) -> Iterator[T]:
        from ..pipeline import cache_iterator

        return cache_iterator(
            self.dl,
            self.num_caches,
            return_caches_after=self.return_caches_after,
            stop_after=self.stop_after,
        )

    def __len__(self) -> int:
        return len(self.dl)  # type: ignore[arg-type]  # of a loader without one: its error

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name == "dl":  # not made yet: it is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.dl, name)

    def __repr__(self) -> str:
        return f"CacheDataLoader({self.dl!r}, {self.num_caches}, {self.return_caches_after}, {self.stop_after})"
