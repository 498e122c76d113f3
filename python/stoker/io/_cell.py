"""Objects that a call may consume."""

from __future__ import annotations

from .. import _stoker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Consumable:
    """Holds a handle until somebody takes it; from then on every use is a TypeError.

    Taking is one step for all threads: a list's pop().
    """

    __slots__ = ("_cell", "__weakref__")

    _cell: list[_stoker.AvHandle]

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} objects are not made but read or decoded")

    @classmethod
    def _hold(cls, handle: _stoker.AvHandle) -> Self:
        made = object.__new__(cls)
        made._cell = [handle]
        return made

    @property
    def _handle(self) -> _stoker.AvHandle:
        try:
            return self._cell[0]
        except IndexError:
            raise self._gone() from None

    def _take(self) -> _stoker.AvHandle:
        try:
            return self._cell.pop()
        except IndexError:
            raise self._gone() from None

    def _give_back(self, handle: _stoker.AvHandle) -> None:
        """What was taken was not used after all."""
        self._cell.append(handle)

    def _gone(self) -> TypeError:
        name = type(self).__name__
        return TypeError(
            f"these {name} were consumed by an earlier call: pass it {name}.clone() to keep them"
        )

    def clone(self) -> Self:
        """The same again, to keep when this one is consumed; no data is copied."""
        return type(self)._hold(self._handle)
