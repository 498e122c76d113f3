"""What travels between stages beside items: the end, and the end of an epoch.

Both are compared by identity; a copy, or what was pickled, is the same object again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["_EOF", "_EPOCH_END", "is_eof", "is_epoch_end"]


class _Sentinel:
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> str:  # a name of this module: copies are the object itself
        return self._name

    def __repr__(self) -> str:
        return f"<{self._name.strip('_')}>"


_EOF: Final = _Sentinel("_EOF")
_EPOCH_END: Final = _Sentinel("_EPOCH_END")


def is_eof(item: object) -> bool:
    """Whether `item` says that nothing follows.  Only merge ops of users get to see it."""
    return item is _EOF


def is_epoch_end(item: object) -> bool:
    """Whether `item` says that an epoch of a continuous source ends here."""
    return item is _EPOCH_END
