"""What a source in Python has: for isinstance(), which looks at the methods, and for annotations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar, runtime_checkable

T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class SizedIterable(Protocol[T_co]):
    """Knows how many items one pass has."""

    def __iter__(self) -> Iterator[T_co]: ...

    def __len__(self) -> int: ...


@runtime_checkable
class IterableWithShuffle(Protocol[T_co]):
    """shuffle() decides the order of the passes that begin after it."""

    def __iter__(self) -> Iterator[T_co]: ...

    def shuffle(self, seed: int) -> None: ...


@runtime_checkable
class SizedIterableWithShuffle(Protocol[T_co]):
    """Both."""

    def __iter__(self) -> Iterator[T_co]: ...

    def __len__(self) -> int: ...

    def shuffle(self, seed: int) -> None: ...
