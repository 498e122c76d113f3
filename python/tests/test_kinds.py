"""What kind of op something is."""

from __future__ import annotations

import asyncio
import enum
import types
from functools import partial, partialmethod, wraps
from unittest import mock

import pytest

from stoker import ops
from stoker.pipeline import _kinds


def function(x):
    return x


async def coroutine(x):
    return x


def generator(x):
    yield x


async def async_generator(x):
    yield x


@types.coroutine
def awaitable(x):
    yield from asyncio.sleep(0).__await__()


FUNCTIONS = {
    "function": function,
    "async": coroutine,
    "generator": generator,
    "async_generator": async_generator,
}


def object_that_calls(call):
    return type("Called", (), {"__call__": call})()


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_and_what_wraps_them(kind):
    call = FUNCTIONS[kind]

    class Methods:
        bound = call
        static = staticmethod(call)
        fixed = partialmethod(call)

        @classmethod
        def of_class(cls):
            return partial(partial(call), cls)

    for op in (
        call,
        partial(call, 1),
        partial(partial(call, 1)),
        Methods().bound,
        partial(Methods().bound),
        Methods.static,
        staticmethod(call),
        Methods().fixed,
        Methods.of_class(),
    ):
        assert _kinds.kind_of(op) == kind, op


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_objects_are_what_their_call_is(kind):
    call = FUNCTIONS[kind]
    inner = object_that_calls(call)
    for op in (
        inner,
        object_that_calls(staticmethod(call)),
        object_that_calls(partialmethod(call)),
        object_that_calls(inner),
        partial(inner),
        inner.__call__,
    ):
        assert _kinds.kind_of(op) == kind, op


def test_an_attribute_of_the_object_is_not_its_call():
    op = object_that_calls(function)
    op.__call__ = coroutine
    assert _kinds.kind_of(op) == "function"


def test_lambdas_builtins_and_classes_are_functions():
    class AsyncCall:
        async def __call__(self, x):
            return x

    for op in (lambda x: x, len, str.upper, "a".join, int, list, dict, AsyncCall, max, partial(int, base=2)):
        assert _kinds.kind_of(op) == "function", op


def test_what_a_decorator_made_of_a_coroutine_function_counts():
    @wraps(coroutine)
    def waits(x):
        return 1

    assert _kinds.kind_of(waits) == "function"
    assert _kinds.kind_of(awaitable) == "async"


def test_marked_functions_are_async():
    assert _kinds.kind_of_call(mock.AsyncMock()) == "async"
    assert _kinds.kind_of(mock.AsyncMock(spec=coroutine)) == "async"
    assert _kinds.kind_of(mock.Mock()) == "function"


def test_containers():
    class Dataset:
        def __getitem__(self, i):
            return i

    class Both(Dataset):
        async def __call__(self, x):
            return x

    class Color(enum.Enum):
        RED = 1

    for op in ({}, {1: 2}, [1], (1,), "abc", range(3), b"x", Dataset(), Both(), Color, mock.MagicMock()):
        assert _kinds.kind_of(op) == "container", op
    assert _kinds.kind_of_call(Both()) == "async"
    assert _kinds.kind_of(Dataset) == "function"


def test_a_class_may_say_that_it_is_no_container():
    class No(list):
        __getitem__ = None

        def __call__(self, x):
            return x

    assert _kinds.kind_of(No()) == "function"


def test_native():
    assert _kinds.kind_of(ops.read()) == "native"
    with pytest.raises(TypeError, match=r"ops\.decode_image is a class: write ops\.decode_image\("):
        _kinds.kind_of(ops.decode_image)


@pytest.mark.parametrize("op", [None, 3, 2.5, object(), {1, 2}])
def test_what_is_no_op(op):
    with pytest.raises(TypeError, match=f"op must be callable, a container.* not {type(op).__name__}"):
        _kinds.kind_of(op)


def test_a_circle_of_calls_ends():
    class Circle:
        pass

    Circle.__call__ = Circle()
    assert _kinds.kind_of(Circle()) == "function"


def test_names():
    class Resize:
        def __call__(self, x):
            return x

        def half(self, x):
            return x

    for op, name in (
        (function, "function"),
        (partial(partial(generator)), "generator"),
        (lambda x: x, "<lambda>"),
        (Resize(), "Resize"),
        (Resize, "Resize"),
        (Resize().half, "half"),
        (partial(Resize().half), "half"),
        (len, "len"),
        ({}, "dict"),
        (ops.decode_image(8, 8), "decode_image"),
    ):
        assert _kinds.name_of(op) == name
