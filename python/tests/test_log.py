"""What log records and notes say of an item."""

from __future__ import annotations

import logging
import traceback
import weakref
from contextlib import asynccontextmanager

import pytest

from lanes import chain, read
from stoker.pipeline._log import shorten
from stoker.pipeline import PipelineFailure, TaskHook
from stoker.pipeline.defs import Aggregate, Aggregator, PathVariants, Pipe
from support import until


def cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


def nested(depth: int) -> list:
    return [nested(depth - 1)] * 3 if depth else [1, "two"]


CIRCLE: list = [1]
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "item",
    [
        None,
        7,
        "short",
        'quotes " and \'',
        "x" * 98,
        "x" * 99,
        "x" * 1000,
        "'" * 1000,
        "\\" * 1000,
        b"\x00" * 1000,
        bytearray(b"ab" * 500),
        [],
        (),
        {},
        (1,),
        [1, 2],
        list(range(34)),
        list(range(35)),
        list(range(36)),
        tuple(range(1000)),
        ["x" * 200, 1],
        [b"a" * 95],
        {"a": list(range(100)), "b": 1},
        {i: str(i) for i in range(100)},
        {"key": b"x" * 200},
        nested(2),
        nested(6),
        CIRCLE,
        {1, 2},
        range(5),
        object,
    ],
)
def test_the_beginning_of_the_repr(item):
    assert shorten(item) == cut(repr(item))


class Counted:
    made = 0

    def __repr__(self):
        Counted.made += 1
        return "Counted()"


@pytest.mark.parametrize("item", [[Counted()] * 10000, {i: Counted() for i in range(10000)}, [[Counted()] * 10000]])
def test_no_more_of_it_is_made(item):
    Counted.made = 0
    shorten(item)
    assert Counted.made < 20


def test_a_repr_that_fails():
    class Broken:
        def __repr__(self):
            raise KeyError

    assert shorten(Broken()) == "<Broken, whose repr raised KeyError>"
    assert shorten([Broken()]) == "<list, whose repr raised KeyError>"


@pytest.mark.parametrize("waits", [False, True])
def test_one_object_that_is_raised_for_each_item(waits, caplog):
    """Neither its notes nor its traceback grow without limit."""
    error = ValueError("the same")

    def helper():
        raise error

    def op(x):
        helper()

    async def async_op(x):
        helper()

    stages = [Pipe(async_op if waits else op, name=name) for name in ("first", "second")]
    for stage in stages:
        with caplog.at_level(logging.CRITICAL):
            pipeline = chain(stage, src=range(1000), threads=1)
            assert read(pipeline) == ([], None)
        assert pipeline.stats()["failed"] == 1000
        pipeline.stop()
    notes = [note.partition(", item ") for note in error.__notes__]
    assert len(notes) == 20
    assert [int(item.partition(":")[0]) for _, _, item in notes] == [*range(10)] * 2
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-2:] == [
        "async_op" if waits else "op",
        "helper",
    ]
    assert len(traceback.extract_tb(error.__traceback__)) <= 4


def test_each_exception_has_a_note(caplog):
    errors = []

    def op(x):
        errors.append(ValueError(x))
        raise errors[-1]

    with caplog.at_level(logging.CRITICAL):
        assert read(chain(Pipe(op), src=range(30), threads=1)) == ([], None)
    assert [len(error.__notes__) for error in errors] == [1] * 30


class Item:
    """What a weak reference can refer to."""


def _fails(item):
    raise ValueError("no way")


async def _fails_async(item):
    raise ValueError("no way")


class _FailsAt(Aggregator):
    def __init__(self, call: str) -> None:
        self.call = call

    def accumulate(self, item):
        if self.call == "accumulate" and item == 4:
            _fails(item)

    def flush(self):
        if self.call == "flush":
            _fails(None)


class _NoHook(TaskHook):
    @asynccontextmanager
    async def task_hook(self, input_item=None):
        yield


def _routed_by(router, **options) -> PathVariants:
    return PathVariants(router, [[Pipe(lambda x: x)], [Pipe(lambda x: x)]], None, **options)


@pytest.mark.parametrize("hooks", [[], [_NoHook()]])
@pytest.mark.parametrize(
    ("stage", "item"),
    [
        (_routed_by(_fails), "0: 3"),
        (_routed_by(_fails_async), "0: 3"),
        (_routed_by(lambda x: 7), "0: 3"),
        (Aggregate(_FailsAt("accumulate")), "1: 4"),
        (Aggregate(_FailsAt("flush")), "2: None"),
    ],
)
def test_what_ends_a_pipeline_names_its_item(stage, item, hooks, caplog):
    pipeline = chain(stage, src=[3, 4, 5], task_hook_factory=lambda name: hooks)
    items, error = read(pipeline)
    assert items == [] and type(error) is PipelineFailure
    note = error.exceptions[0].__notes__[0]
    assert note.endswith(f"], item {item}")
    assert [record.getMessage() for record in caplog.records] == [note]


def test_items_that_failed_go_at_the_stop():
    """The tracebacks that are kept say where, and keep nothing alive."""
    items = []

    def check(item):
        raise ValueError("bad")

    def op(item):
        items.append(weakref.ref(item))
        try:
            check(item)
        except ValueError as error:
            raise TypeError("worse") from error

    pipeline = chain(Pipe(op, name="op"), src=(Item() for _ in range(20)))
    assert read(pipeline) == ([], None)
    pipeline.stop()
    assert len(items) == 20
    until(lambda: not any(item() for item in items))
    cause = pipeline.failures()[0].__cause__
    text = "".join(traceback.format_exception(cause))
    assert "check(item)" in text and 'raise TypeError("worse")' in text and "item 0: <" in text


def test_locals_of_a_failure_stay_for_debuggers():
    def op(item):
        raise ValueError("bad")

    pipeline = chain(Pipe(op, max_failures=0), src=[7])
    _, error = read(pipeline)
    pipeline.stop()
    trace = error.exceptions[0].__cause__.__traceback__
    assert trace.tb_frame.f_locals == {"item": 7}
