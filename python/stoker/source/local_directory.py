"""Files of a folder, as a source in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from .. import _check

__all__ = ["LocalDirectory"]

T = TypeVar("T")


class LocalDirectory(Iterable[Path]):
    """What Path(root).glob(pattern) matches, without folders, in the order of the names.

    The folder is listed when the items or their number are first asked for, and once only.
    Pickles.  NotADirectoryError: root is none.  Any thread; iterators are independent.
    """

    def __init__(self, root: str | os.PathLike[str], pattern: str) -> None:
        self.root = folder(root)
        self.pattern = pattern
        self._paths: list[str] | None = None
        self._seed: int | None = None

    def shuffle(self, seed: int) -> None:
        """Decides the order of passes that begin later; it depends on the names and the seed only."""
        self._seed = _check.integer("seed", seed, 0)

    def _listing(self) -> list[str]:
        if self._paths is None:
            self._paths = sorted(matches(self.root, self.pattern))
        return self._paths

    def __len__(self) -> int:
        return len(self._listing())

    def __iter__(self) -> Iterator[Path]:
        return map(Path, shuffled(self._listing(), self._seed))

    def __repr__(self) -> str:
        return f"LocalDirectory({str(self.root)!r}, {self.pattern!r})"


def folder(path: str | os.PathLike[str]) -> Path:
    root = Path(path)
    if not root.is_dir():
        raise NotADirectoryError(f"{root}: not a folder")
    return root


def matches(root: Path, pattern: str) -> set[str]:
    """Paths that the pattern matches, without folders.

    With a slash at its end a pattern matches folders only, by what the listing says of them, so
    that no file is looked at by itself.
    """
    return {str(path) for path in root.glob(pattern)} - {str(path) for path in root.glob(pattern + "/")}


def shuffled(items: Sequence[T], seed: int | None) -> Sequence[T]:
    if seed is None:
        return items
    from random import Random

    order = list(items)
    Random(seed).shuffle(order)
    return order
