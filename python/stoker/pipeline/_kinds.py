"""What kind of op something is, which decides where a stage runs it."""

from __future__ import annotations

import sys
from functools import partial
from types import FunctionType, MethodType, WrapperDescriptorType

from .. import ops
from ..ops import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Literal

    Kind = Literal["native", "container", "function", "async", "generator", "async_generator"]

__all__ = ["is_async", "is_container", "kind_of", "kind_of_call", "name_of", "resolve"]

# co_flags of the code of a function, as the module inspect has them.
_GENERATOR: Final = 0x20
_COROUTINE: Final = 0x80 | 0x100  # `async def`, and generators that types.coroutine made awaitable
_ASYNC_GENERATOR: Final = 0x200

# Marks of inspect.markcoroutinefunction and of unittest.mock: module, sentinel, attribute.
_MARKS: Final = (
    ("inspect", "_is_coroutine_mark", "_is_coroutine_marker"),
    ("asyncio.coroutines", "_is_coroutine", "_is_coroutine"),
)
_DEPTH: Final = 100  # of partials of methods of partials


def kind_of(op: object) -> Kind:
    """TypeError: neither an op of stoker.ops nor something to call or to look items up in.

    What has both `__getitem__` and `__call__` is a container.  A class is called, also one whose
    instances are containers, unless items can be looked up in itself, as in an enum.
    """
    if isinstance(op, Op):
        return "native"
    if isinstance(op, type) and issubclass(op, Op):
        raise TypeError(f"ops.{op.name} is a class: write ops.{op.name}(...)")
    if is_container(op):
        return "container"
    if not callable(op):
        native = ", ".join(f"ops.{name}" for name in ops.__all__ if name != "Op")
        raise TypeError(
            f"op must be callable, a container, or one of stoker.ops ({native}), "
            f"not {type(op).__name__}"
        )
    return kind_of_call(op)


def kind_of_call(op: Any) -> Kind:
    """The same for something that is called, whether it is a container or not."""
    for _ in range(_DEPTH):
        if _is_marked(op):
            return "async"
        function = _step(op)
        if function is None:
            break
        op = function
    flags = getattr(getattr(op, "__code__", None), "co_flags", 0)
    if not isinstance(flags, int):
        return "function"
    if flags & _COROUTINE:
        return "async"
    if flags & _ASYNC_GENERATOR:
        return "async_generator"
    return "generator" if flags & _GENERATOR else "function"


def is_async(kind: Kind) -> bool:
    """Whether it runs on the event loop."""
    return kind in ("async", "async_generator")


def is_container(op: object) -> bool:
    """Whether `op[item]` can be evaluated, which is asked of the type, as Python does."""
    return getattr(type(op), "__getitem__", None) is not None


def resolve(op: Any) -> Any:
    """What a partial, a bound method or a static method calls in the end."""
    for _ in range(_DEPTH):
        function = _wrapped(op)
        if function is None:
            break
        op = function
    return op


def name_of(op: Any) -> str:
    """What a stage is called whose user did not name it: after the function, or the class of an object."""
    if isinstance(op, Op):
        return op.name
    op = resolve(op)
    name = getattr(op, "__name__", None)
    return name if isinstance(name, str) and name else type(op).__name__


def _wrapped(op: Any) -> Any:
    if isinstance(op, partial):
        return op.func
    if isinstance(op, (MethodType, staticmethod, classmethod)):
        return op.__func__
    return None


def _step(op: Any) -> Any:
    """What runs when `op` is called, if that is something else."""
    function = _wrapped(op)
    if function is not None:
        return function
    if isinstance(op, (FunctionType, type)) or hasattr(op, "__code__"):
        return None
    for cls in type(op).__mro__:
        call = cls.__dict__.get("__call__")
        if isinstance(call, WrapperDescriptorType):
            return None  # written in C: what it runs cannot be seen
        if call is not None:
            return call.__get__(op, type(op)) if hasattr(call, "__get__") else call
    return None


def _is_marked(op: object) -> bool:
    """Functions that are no `async def`, but were declared to return an awaitable."""
    for module, sentinel, attribute in _MARKS:
        mark = getattr(sys.modules.get(module), sentinel, None)
        if mark is not None and getattr(op, attribute, None) is mark:
            return True
    return False
