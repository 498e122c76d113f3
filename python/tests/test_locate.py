"""Where something was written."""

from __future__ import annotations

import inspect
from functools import lru_cache, partial, wraps

import pytest

from stoker.pipeline._locate import locate


def decorated(call):
    @wraps(call)
    def wrapper(*args):
        return call(*args)

    return wrapper


def function(x):
    return x


async def coroutine(x):
    return x


def generator():
    yield 1


async def async_generator():
    yield 1


@decorated
def behind(x):
    return x


@lru_cache
def cached(x):
    return x


class Resize:
    def __init__(self, size):
        self.size = size

    def __call__(self, x):
        return x

    def half(self, x):
        return x

    @classmethod
    def default(cls, x):
        return x

    @staticmethod
    def plain(x):
        return x


class Empty:
    pass


short = lambda x: x  # noqa: E731


def place(thing):
    return f"{__file__}:{inspect.getsourcelines(thing)[1]}"


@pytest.mark.parametrize(
    ("op", "name", "thing"),
    [
        (function, "function", function),
        (coroutine, "coroutine", coroutine),
        (short, "<lambda>", short),
        (partial(function, 1), "function", function),
        (partial(partial(function), 1), "function", function),
        (behind, "behind", behind),
        (partial(behind), "behind", behind),
        (cached, "cached", cached),
        (Resize(3), "Resize", Resize),
        (partial(Resize(3)), "Resize", Resize),
        (Resize, "Resize", Resize),
        (Empty(), "Empty", Empty),
        (Resize(3).half, "Resize.half", Resize.half),
        (Resize.default, "Resize.default", Resize.default),
        (Resize.plain, "Resize.plain", Resize.plain),
        (generator, "generator", generator),
        (generator(), "generator", generator),
        (async_generator(), "async_generator", async_generator),
    ],
)
def test_name_and_place(op, name, thing):
    assert locate(op) == f"{name} at {place(thing)}"


def test_a_function_in_a_function_has_its_own_name():
    def inner(x):
        return x

    class Local:
        def method(self, x):
            return x

    assert locate(inner) == f"inner at {place(inner)}"
    assert locate(Local().method) == f"Local.method at {place(Local.method)}"


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (len, "len"),
        (str.upper, "str.upper"),
        ("a".join, "str.join"),
        (int, "int"),
        ([1, 2], "list"),
        ({}, "dict"),
        (range(9), "range"),
        (iter([]), "list_iterator"),
        (partial(int, base=2), "int"),
    ],
)
def test_what_has_no_source_has_a_name(op, name):
    assert locate(op) == name


def test_code_without_a_file():
    names = {}
    exec("class Made:\n def run(self): pass\ndef made(): pass", names)  # noqa: S102
    assert locate(names["made"]) == "made at <string>:3"
    assert locate(names["Made"]) == "Made"


def test_a_coroutine_object():
    waiting = coroutine(1)
    try:
        assert locate(waiting) == f"coroutine at {place(coroutine)}"
    finally:
        waiting.close()


def test_a_circle_of_decorators_ends():
    class Round:
        def __call__(self, x):
            return x

    op = Round()
    op.__wrapped__ = op
    assert locate(op).startswith("Round at ")
