"""What can be a stage, and how it is called."""

from __future__ import annotations

import contextvars
import functools
import gc
import logging
import operator
import sys
import threading
import weakref

import pytest

from lanes import Gate, Watched, chain, read, same
from stoker.pipeline import PipelineBuilder, PipelineFailure
from stoker.pipeline.defs import Pipe
from support import until

# Without the interpreter's lock CPython frees an object on the thread that made it, when that runs
# again: an item of a source that waits, once the pipeline has stopped.
HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()


def twice(x):
    return 2 * x


class Adder:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return x + self.n

    def add(self, x):
        return x + self.n

    @classmethod
    def negate(cls, x):
        return -x

    @staticmethod
    def square(x):
        return x * x


class Pairs:
    def __call__(self, x):
        yield x
        yield -x


class Dataset:
    """Only what it takes to be a container."""

    def __getitem__(self, i):
        return f"item {i}"


@functools.wraps(twice)
def wrapped(x):
    return twice(x)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (twice, [0, 2, 4]),
        (lambda x: x + 1, [1, 2, 3]),
        (Adder(5), [5, 6, 7]),
        (Adder(6).add, [6, 7, 8]),
        (Adder.negate, [0, -1, -2]),
        (Adder.square, [0, 1, 4]),
        (functools.partial(operator.add, 10), [10, 11, 12]),
        (functools.partial(functools.partial(pow, 2), mod=7), [1, 2, 4]),
        (wrapped, [0, 2, 4]),
        (functools.lru_cache(twice), [0, 2, 4]),
        (str, ["0", "1", "2"]),
        (abs, [0, 1, 2]),
        ("abc".center, ["abc", "abc", "abc"]),
        (operator.itemgetter(0), None),
        ({0: "a", 1: "b", 2: "c"}, ["a", "b", "c"]),
        (["x", "y", "z"], ["x", "y", "z"]),
        (("x", "y", "z"), ["x", "y", "z"]),
        (Dataset(), ["item 0", "item 1", "item 2"]),
        (Pairs(), [0, 0, 1, -1, 2, -2]),
        (Pairs().__call__, [0, 0, 1, -1, 2, -2]),
        (functools.partial(Pairs.__call__, None), [0, 0, 1, -1, 2, -2]),
    ],
)
def test_kinds(op, expected):
    items, error = read(chain(Pipe(op), src=range(3), max_failures=10))
    assert error is None
    assert items == (expected or [])


def test_a_container_that_can_be_called_is_a_container():
    class Both(Dataset):
        def __call__(self, x):
            return "called"

    assert list(chain(Pipe(Both()), src=[7])) == ["item 7"]


def test_a_missing_key_is_a_failure_of_the_item():
    items, error = read(chain(Pipe({1: "b"}, max_failures=5), src=range(3)))
    assert items == ["b"] and error is None
    pipeline = chain(Pipe({1: "b"}, max_failures=1), src=range(3))
    error = read(pipeline)[1]
    assert isinstance(error, PipelineFailure) and isinstance(error.exceptions[0].__cause__, KeyError)


def test_a_wrong_number_of_arguments_fails_item_by_item():
    items, error = read(chain(Pipe(lambda x, y: x), src=range(5)))
    assert (items, error) == ([], None)


@pytest.mark.parametrize("order", ["completion", "input"])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_none_skips(order, concurrency):
    stage = Pipe(lambda x: x if x % 3 else None, output_order=order, concurrency=concurrency)
    expected = [x for x in range(100) if x % 3]
    items = list(chain(stage, src=range(100)))
    assert (items if order == "input" else sorted(items)) == expected
    assert list(chain(Pipe(lambda x: None, output_order=order), src=range(10))) == []


def test_falsy_results_are_items():
    falsy = [0, "", [], False, 0.0, ()]
    assert list(chain(Pipe(same), src=falsy)) == falsy


def test_none_from_a_generator_skips():
    def op(x):
        yield None
        yield x
        yield None

    assert list(chain(Pipe(op), src=range(5))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("order", ["completion", "input"])
def test_generators(order):
    def op(x):
        yield from [x] * x

    items = list(chain(Pipe(op, output_order=order), src=range(30)))
    assert items == [x for x in range(30) for _ in range(x)]


def test_what_a_generator_function_returns_is_no_item():
    def op(x):
        yield x
        return "nothing"

    assert list(chain(Pipe(op), src=range(3))) == [0, 1, 2]


def test_an_endless_generator_is_driven_by_the_reader():
    made, closed = [], []

    def op(x):
        try:
            while True:
                made.append(x)
                yield x
        finally:
            closed.append(threading.current_thread())

    pipeline = chain(Pipe(op), src=[1])
    with pipeline.auto_stop():
        for _ in range(20):
            assert pipeline.get_item() == 1
        assert len(made) < 20 + 100
    until(lambda: closed)


def test_a_generator_that_fails_half_way():
    """What it gave arrives; it counts as one failure."""

    def op(x):
        yield x
        yield x + 100
        if x == 2:
            raise ValueError(x)
        yield x + 200

    items, error = read(chain(Pipe(op, max_failures=1), src=range(4)))
    assert error is None
    assert items == [0, 100, 200, 1, 101, 201, 2, 102, 3, 103, 203]
    items, error = read(chain(Pipe(op, max_failures=0), src=range(4)))
    assert items == [0, 100, 200, 1, 101, 201, 2, 102]
    assert type(error.exceptions[0].__cause__) is ValueError


def test_a_generator_that_waits_for_the_reader():
    """What was given does not wait for what comes after it."""
    go = threading.Semaphore(0)

    def op(x):
        for i in range(5):
            yield i
            assert go.acquire(timeout=60)

    pipeline = chain(Pipe(op), src=[None])
    with pipeline.auto_stop():
        for i in range(5):
            assert pipeline.get_item() == i
            go.release()
        with pytest.raises(EOFError):
            pipeline.get_item()


def test_ops_that_wait_for_one_another():
    """Two items of one stage meet: a burst may not keep them on one thread."""
    barrier = threading.Barrier(2)

    def op(x):
        barrier.wait(60)
        return x

    assert sorted(chain(Pipe(op, concurrency=2), src=range(100))) == list(range(100))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_stages_share_num_threads(threads):
    """At most num_threads ops run at once, whatever the stages' concurrency says."""
    gate, ran = Gate(), set()

    def op(x):
        ran.add(threading.current_thread())
        return gate(x)

    pipeline = chain(Pipe(op, concurrency=8), Pipe(op, concurrency=8), src=range(40), threads=threads)
    with pipeline.auto_stop():
        gate.until_inside(threads)
        gate.open()
        assert len(list(pipeline)) == 40
    assert gate.most == threads and len(ran) <= threads


def test_threads_are_made_on_demand():
    ran = set()

    def op(x):
        ran.add(threading.current_thread())
        return x

    pipeline = chain(Pipe(op), src=range(20), threads=64)
    assert list(pipeline) == list(range(20))
    assert len(ran) < 8
    before = threading.active_count()
    pipeline = chain(src=range(5), threads=64)
    pipeline.start()
    until(lambda: True)
    assert threading.active_count() <= before + 1
    pipeline.stop()


def test_names_of_threads():
    """A worker has the name of its stage while it runs it, in logs and for who looks from outside."""
    names = set()
    gate = Gate()

    def src():
        names.add(threading.current_thread().name)
        yield 1

    def op(x):
        names.add(threading.current_thread().name)
        return gate(x)

    def then(x):
        names.add(threading.current_thread().name)
        return x

    pipeline = PipelineBuilder().add_source(src()).pipe(op, name="decode").pipe(then).add_sink(1).build(num_threads=2)
    with pipeline.auto_stop():
        until(lambda: gate.entered)
        assert any(t.name.endswith(": decode") for t in threading.enumerate())
        gate.let(1)
        assert list(pipeline) == [1]
        until(lambda: not any(": " in t.name for t in threading.enumerate()))
    workers = {name.partition(": ")[2] for name in names if name.startswith("stoker-worker-")}
    assert workers == {"decode", "then"} and "stoker-source" in names


def test_ordinary_threads_of_python():
    seen = []

    def op(x):
        thread = threading.current_thread()
        seen.append((thread in threading.enumerate(), type(thread), thread.daemon, thread.ident))
        return x

    list(chain(Pipe(op), src=[1]))
    assert seen == [(True, threading.Thread, False, seen[0][3])]


def test_context_variables():
    """Those of whoever starts the pipeline; what a stage sets stays there."""
    var = contextvars.ContextVar("var", default="none")
    seen = []

    def src():
        seen.append(var.get())
        var.set("of the source")
        yield 1

    def op(x):
        seen.append(var.get())
        var.set("of the op")
        return x

    var.set("at build")
    pipeline = chain(Pipe(op), src=src())
    var.set("at start")
    assert list(pipeline) == [1]
    assert seen == ["at start", "at start"] and var.get() == "at start"


class Thing:
    pass


def test_references_are_given_back_at_once():
    """The consumer's del frees an item: no stage, queue, thread or iterator keeps it."""
    gc.disable()
    try:
        for stages in ([], [Pipe(same)], [Pipe(same), Pipe(same, concurrency=3, output_order="input")]):
            pipeline = chain(*stages, src=(Thing() for _ in range(50)))
            with pipeline.auto_stop():
                for _ in range(50):
                    item = pipeline.get_item()
                    ref = weakref.ref(item)
                    del item
                    until(lambda r=ref: r() is None or not HAS_LOCK)
            until(lambda r=ref: r() is None)
    finally:
        gc.enable()


def test_inputs_are_given_back_when_the_op_has_returned():
    refs, held = [], []

    def op(x):
        refs.append(weakref.ref(x))
        return len(refs)

    gc.disable()
    try:
        pipeline = chain(Pipe(op), src=(Thing() for _ in range(10)))
        with pipeline.auto_stop():
            for i in range(1, 11):
                held.append(pipeline.get_item())
                until(lambda n=i: refs[n - 1]() is None or not HAS_LOCK)
        until(lambda: all(ref() is None for ref in refs))
    finally:
        gc.enable()
    assert held == list(range(1, 11))


def test_an_item_that_failed_is_given_back(caplog):
    caplog.set_level(logging.CRITICAL, "stoker.pipeline")  # or records would keep it
    refs = []

    def op(x):
        refs.append(weakref.ref(x))
        raise ValueError

    pipeline = chain(Pipe(op), src=(Thing() for _ in range(30)))
    assert list(pipeline) == []
    gc.collect()  # tracebacks refer to frames
    pipeline.stop()
    del pipeline
    gc.collect()
    assert [r() for r in refs] == [None] * 30


def test_ops_are_given_back():
    op, src = Adder(3), Watched(range(5))
    refs = weakref.ref(op), weakref.ref(src)
    pipeline = chain(Pipe(op), src=src)
    assert list(pipeline) == [3, 4, 5, 6, 7]
    pipeline.stop()
    gc.disable()
    try:
        del op, src, pipeline
        until(lambda: [r() for r in refs] == [None, None])
    finally:
        gc.enable()


def test_the_same_op_twice():
    assert list(chain(Pipe(twice), Pipe(twice), src=range(4))) == [0, 4, 8, 12]
    builder = PipelineBuilder().add_source(range(4)).pipe(twice).add_sink()
    one, two = builder.build(num_threads=1), builder.build(num_threads=2)
    assert (list(one), list(two)) == ([0, 2, 4, 6], [0, 2, 4, 6])


def test_a_pipeline_inside_an_op():
    def op(x):
        return sum(chain(Pipe(twice), src=range(x), threads=1))

    assert list(chain(Pipe(op), src=range(6))) == [0, 0, 2, 6, 12, 20]
