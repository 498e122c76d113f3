"""What all ops of stoker.ops have in common."""

from __future__ import annotations

from collections.abc import Sequence

from . import _check, _stoker
from ._value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Final

_MOST_SECONDS: Final = 1e6
MASK: Final = "mask"  # the part that is resampled with nearest unless told otherwise


class Op(Value):
    """What a stage does.  Immutable: may be used in many pipelines at once."""

    __slots__ = ()

    name: ClassVar[str]

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        """The op of the C library, for samples with these parts."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """What was given; options that have their defaults are left out."""
        defaults = getattr(type(self).__init__, "__kwdefaults__", None) or {}
        given = [(k, v) for k, v in self._items() if k not in defaults or v != defaults[k]]
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in given)})"


def isolation(isolate: object, timeout: object) -> tuple[bool, float]:
    """The options of that name, checked."""
    seconds = _check.number("isolate_timeout", timeout, 0, _MOST_SECONDS)
    if seconds == 0:
        raise ValueError("isolate_timeout must be above 0")
    return _check.flag("isolate", isolate), seconds


def isolated(op: _stoker.Op, isolate: bool, timeout: float) -> _stoker.Op:
    """The op itself, or what runs it in processes of its own."""
    return _stoker.op_isolate(op, timeout=timeout) if isolate else op


def names_of_parts(argument: str, names: Sequence[str]) -> tuple[str, ...]:
    """TypeError: one name instead of a list of them."""
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a list of names of parts")
    return tuple(names)


def bits_of_parts(argument: str, names: Sequence[str], parts: Sequence[str]) -> int:
    """Bit i: part i is one of `names`.  ValueError: there is no such part."""
    for name in names:
        if name not in parts:
            raise ValueError(f"{argument}: the source has no part {name!r}; it has {list(parts)}")
    return sum(1 << i for i, part in enumerate(parts) if part in names)


def parts_to_take(parts: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The option `parts` of an op that decodes, checked: names of parts, or None for all of them."""
    if parts is None:
        return None
    names = (parts,) if isinstance(parts, str) else tuple(parts)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"parts must be the name of a part, a list of names, or None for all parts, not {parts!r}")
    return names


def bits_to_take(taken: tuple[str, ...] | None, parts: Sequence[str]) -> int:
    """The same for the C library, where 0 stands for all."""
    return 0 if taken is None else bits_of_parts("parts", taken, parts)
