"""Stands in for typing.Generic and TypeVar at run time, where importing typing would take longer
than the rest of the package.

    if TYPE_CHECKING:
        from typing import Generic, TypeVar
    else:
        from ._generic import Generic, TypeVar
"""

from __future__ import annotations

from types import GenericAlias


class TypeVar:
    def __init__(self, name: str, **options: object) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return self.__name__


class Generic:
    """`class Items(Generic[T])` makes Items, and Items[int] for annotations."""

    __slots__ = ()

    def __class_getitem__(cls, parameters: object) -> object:
        return cls if cls is Generic else GenericAlias(cls, parameters)
