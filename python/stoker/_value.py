"""Values: objects that are their attributes, and never change.

What dataclasses would be for, at a tenth of their import time.  To dataclasses.fields(), asdict(),
replace() and is_dataclass() they are frozen dataclasses.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import Field
    from typing import Any, ClassVar, Self


class _OfDataclass:
    """An attribute that dataclasses have: that of a dataclass with the same fields, which is made when
    somebody asks, so that nobody else loads what makes it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, value: object, cls: type[Value]) -> Any:
        twin = cls.__dict__.get("_twin")
        if twin is None:
            twin = cls._twin = _dataclass(cls)
        return getattr(twin, self._name)


def _dataclass(cls: type[Value]) -> type:
    from dataclasses import MISSING, field, make_dataclass
    from inspect import signature

    types: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        types.update(getattr(base, "__annotations__", {}))
    parameters = signature(cls).parameters
    fields: list[tuple[str, Any, Any]] = []
    for name in cls._names:
        given = parameters.get(name)
        if given is None:
            made = field(init=False)
        else:
            default = MISSING if given.default is given.empty else given.default
            made = field(default=default, kw_only=given.kind is given.KEYWORD_ONLY)
        fields.append((name, types[name], made))
    return make_dataclass(cls.__name__, fields, init=False, repr=False, eq=False, frozen=True)


class Value:
    """Subclasses name their attributes in __slots__, in the order of their parameters, without those
    that they inherit."""

    __slots__: tuple[str, ...] = ()

    _names: tuple[str, ...] = ()  # of all attributes, the inherited ones first

    if TYPE_CHECKING:
        _twin: ClassVar[type]
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _OfDataclass()
        __dataclass_params__ = _OfDataclass()
        __match_args__ = _OfDataclass()

        @property
        def __dict__(self):  # for vars()
            return dict(self._items())

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

    def __replace__(self, **changes: Any) -> Self:
        return type(self)(**{**dict(self._items()), **changes})

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
