"""Random graphs of async and sync stages against a plain-Python model."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
import threading
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import chain, read
from stoker.pipeline import AsyncQueue, PipelineFailure, TaskHook
from stoker.pipeline.defs import Aggregate, Disaggregate, Pipe
from support import WATCHDOG_S, until

# Without the interpreter's lock CPython frees an object on the thread that made it, when that runs
# again: the loop's, once the pipeline has stopped.
HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()


class Hook(TaskHook):
    @asynccontextmanager
    async def task_hook(self, input_item=None):
        await asyncio.sleep(0)
        yield


class Queue(AsyncQueue):
    pass


def key(x):
    """A number for any item: lists are what an aggregate made."""
    return sum(map(key, x)) if isinstance(x, list) else x


def apply(mode, x):
    """What every kind of op does to one item: a list of results."""
    kind, n = mode
    if kind == "skip":
        return [] if key(x) % n == 0 else [x]
    if kind == "repeat":
        return [x] * (key(x) % n)
    if kind == "fail":
        if key(x) % n == 0:
            raise ValueError(x)
        return [x]
    return [x]


def make_op(mode, style, waits):
    def one(x):
        results = apply(mode, x)
        return results[0] if results else None

    async def async_one(x):
        for _ in range(key(x) % 3 if waits else 0):
            await asyncio.sleep(0)
        return one(x)

    def many(x):
        yield from apply(mode, x)

    async def async_many(x):
        for result in apply(mode, x):
            if waits:
                await asyncio.sleep(0)
            yield result

    if mode[0] == "repeat":
        return async_many if style == "async" else many
    return async_one if style == "async" else one


class Step:
    def __init__(self, mode, style, waits, concurrency, order):
        self.mode, self.style = mode, style
        repeats = mode[0] == "repeat"
        self.ordered = concurrency == 1 or (order == "input" and not repeats)
        order = "completion" if repeats else order
        self.stage = Pipe(make_op(mode, style, waits), concurrency=concurrency, output_order=order)

    def model(self, items):
        for x in items:
            try:
                yield from apply(self.mode, x)
            except ValueError:
                pass

    def __repr__(self):
        return f"{self.style} {self.mode} x {self.stage.concurrency} {self.stage.output_order}"


class Grouping:
    ordered = True

    def __init__(self, n, drop_last):
        self.n, self.drop_last = n, drop_last
        self.stage = Aggregate(n, drop_last=drop_last)

    def model(self, items):
        items = list(items)
        for i in range(0, len(items), self.n):
            if len(items) - i >= self.n or not self.drop_last:
                yield items[i : i + self.n]

    def __repr__(self):
        return f"aggregate({self.n}, {self.drop_last})"


class Flat:
    ordered = True

    def __init__(self):
        self.stage = Disaggregate()

    def model(self, items):
        for x in items:
            yield from x if isinstance(x, list) else ()

    def __repr__(self):
        return "disaggregate"


MODES = st.tuples(st.sampled_from(["pass", "skip", "repeat", "fail"]), st.integers(2, 5))
STEPS = st.builds(
    Step,
    MODES,
    st.sampled_from(["async", "sync"]),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from(["completion", "input"]),
)
GROUPS = st.builds(Grouping, st.integers(1, 4), st.booleans())
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "task_hook_factory": st.just(lambda info: [Hook()]),
        "queue_class": st.just(Queue),
        "sink": st.integers(1, 5),
        "threads": st.integers(1, 3),
    },
)


def expected(steps, items):
    for step in steps:
        items = step.model(items)
    return list(items)


def flat(items):
    return sorted(x for item in items for x in (flat(item) if isinstance(item, list) else [item]))


@settings(max_examples=150)
@given(st.lists(STEPS | GROUPS, max_size=4), st.integers(0, 40), OPTIONS)
def test_a_random_chain_does_what_the_model_says(steps, n, options):
    pipeline = chain(*(step.stage for step in steps), src=range(n), **options)
    with pipeline.auto_stop():
        items, error = read(pipeline)
    assert error is None
    if all(step.ordered for step in steps):
        assert items == expected(steps, range(n))
    elif not any(isinstance(step, Grouping) for step in steps):
        assert sorted(items) == sorted(expected(steps, range(n)))


@settings(max_examples=60)
@given(st.lists(STEPS | GROUPS, max_size=3), st.integers(0, 12), st.integers(1, 4), OPTIONS)
def test_epochs_of_a_random_chain(steps, n, epochs, options):
    pipeline = chain(*(step.stage for step in steps), src=range(n), continuous=True, **options)
    with pipeline.auto_stop():
        for _ in range(epochs):
            items, error = read(pipeline)
            assert error is None
            if all(step.ordered for step in steps):
                assert items == expected(steps, range(n))


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=3), st.integers(2, 30), st.integers(0, 3), st.booleans(), OPTIONS)
def test_the_limit_of_a_random_chain(steps, divisor, limit, is_async, options):
    """In order, what comes before the failure that is too many is exactly what the model says."""
    first = Step(("fail", divisor), "async" if is_async else "sync", True, 3, "input")
    first.stage = Pipe(first.stage.op, concurrency=3, output_order="input", max_failures=limit)
    steps = [step for step in steps if step.mode[0] != "fail" and step.ordered]
    pipeline = chain(first.stage, *(step.stage for step in steps), src=range(60), **options)
    with pipeline.auto_stop():
        items, error = read(pipeline)
    fails = [x for x in range(60) if x % divisor == 0]
    end = fails[limit] if len(fails) > limit else 60
    assert items == expected(steps, [x for x in range(end) if x % divisor])
    assert isinstance(error, PipelineFailure) == (len(fails) > limit)


def threads():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("stoker")}


@pytest.mark.parametrize("seed", range(4))
def test_stops_at_any_moment_leave_nothing(seed):
    rng = random.Random(seed)
    fds = len(os.listdir("/proc/self/fd"))
    for _ in range(40):
        steps = [
            Step((rng.choice(["pass", "repeat", "fail"]), 3), rng.choice(["async", "sync"]), True, rng.randrange(1, 4), "completion")
            for _ in range(rng.randrange(1, 4))
        ]
        options = {}
        if rng.random() < 0.3:
            options["queue_class"] = Queue
        if rng.random() < 0.3:
            options["task_hook_factory"] = lambda info: [Hook()]
        pipeline = chain(*(step.stage for step in steps), src=range(10**6), sink=rng.randrange(1, 4), **options)
        how = rng.randrange(4)
        if how < 3:
            pipeline.start()
            for _ in range(rng.randrange(6)):
                pipeline.get_item(timeout=WATCHDOG_S)
        if how < 2:
            pipeline.stop()
        del pipeline
    gc.collect()
    until(lambda: not threads())
    assert len(os.listdir("/proc/self/fd")) <= fds


def test_pipelines_that_are_dropped_are_collected():
    import weakref

    async def op(x):
        await asyncio.sleep(0)
        return x

    class Source:
        def __iter__(self):
            return iter(range(10**6))

    source = Source()
    gone = weakref.ref(source)
    pipeline = chain(Pipe(op, concurrency=2), src=source)
    assert pipeline.get_item() in (0, 1)
    del pipeline, source
    gc.collect()
    until(lambda: not threads())
    gc.collect()
    assert gone() is None


def test_items_are_let_go_of():
    import weakref

    class Item:
        pass

    async def op(x):
        item = Item()
        seen.append(weakref.ref(item))
        await asyncio.sleep(0)
        return item

    seen: list = []
    pipeline = chain(Pipe(op), src=range(5))
    with pipeline.auto_stop():
        for _ in range(5):
            item = pipeline.get_item()
            mine = next(ref for ref in seen if ref() is item)
            del item
            assert mine() is None or not HAS_LOCK
    gc.collect()
    until(lambda: all(ref() is None for ref in seen))
