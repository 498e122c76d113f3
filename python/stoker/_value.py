"""Values: objects that are their attributes, and never change.

What dataclasses would be for, at a tenth of their import time.
"""

from __future__ import annotations


class Value:
    """Subclasses name their attributes in __slots__, in the order of their parameters, without those
    that they inherit."""

    __slots__: tuple[str, ...] = ()

    _names: tuple[str, ...] = ()  # of all attributes, the inherited ones first

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._names += cls.__dict__.get("__slots__", ())

    def _set(self, **attributes: object) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def _items(self) -> tuple[tuple[str, object], ...]:
        return tuple((name, getattr(self, name)) for name in self._names)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Value)
        return self._items() == other._items()

    def __hash__(self) -> int:
        return hash((type(self), self._items()))

    def __getstate__(self) -> dict[str, object]:
        return dict(self._items())

    def __setstate__(self, state: dict[str, object]) -> None:
        self._set(**state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._items())})"
