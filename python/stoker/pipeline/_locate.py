"""Where in the user's source something was written: "name at file:line"."""

from __future__ import annotations

from types import AsyncGeneratorType, CodeType, CoroutineType, GeneratorType

from ._kinds import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["locate"]

_DEPTH: Final = 100  # of decorators


def locate(op: object) -> str:
    """Names a function, a class, or the class of an object, with its place where that is known.

    Partials, methods and decorators that keep `__wrapped__` are resolved.  What is written in C, or
    was typed into an interpreter that kept no source, has a name only.
    """
    op = _unwrap(op)
    code = _code(op)
    if code is not None:
        return f"{_name(op)} at {code.co_filename}:{code.co_firstlineno}"
    cls = op if isinstance(op, type) else type(op)
    if not isinstance(op, type) and _is_builtin(op):
        return _name(op)
    place = _place_of_class(cls)
    return f"{_name(cls)} at {place}" if place else _name(cls)


def _unwrap(op: Any) -> Any:
    for _ in range(_DEPTH):
        op = resolve(op)
        inner = getattr(op, "__wrapped__", None)
        if inner is None or not callable(inner):
            break
        op = inner
    return op


def _code(op: Any) -> CodeType | None:
    if isinstance(op, type):
        return None
    if isinstance(op, GeneratorType):
        return op.gi_code
    if isinstance(op, AsyncGeneratorType):
        return op.ag_code
    if isinstance(op, CoroutineType):
        return op.cr_code
    code = getattr(op, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _name(op: Any) -> str:
    """The qualified name, from the innermost function on."""
    for attribute in ("__qualname__", "__name__"):
        name = getattr(op, attribute, None)
        if isinstance(name, str) and name:
            return name.rpartition("<locals>.")[2]
    return type(op).__name__


def _is_builtin(op: object) -> bool:
    """A function written in C, as opposed to an object of some class."""
    return callable(op) and type(op).__module__ == "builtins" and hasattr(op, "__name__")


def _place_of_class(cls: type) -> str | None:
    """file:line of a class; reads and parses its file before Python 3.13."""
    import inspect

    try:
        file = inspect.getsourcefile(cls)
        line = cls.__dict__.get("__firstlineno__") or inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return None
    return f"{file}:{line}"
