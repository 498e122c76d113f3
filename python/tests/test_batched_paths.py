"""Batched path_variants: what each batch became on its paths comes back as one list, in their order."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from lanes import chain
from stoker.pipeline import AsyncQueue, TaskHook
from stoker.pipeline.defs import Aggregate, Disaggregate, PathVariants, Pipe


class Hook(TaskHook):
    @asynccontextmanager
    async def task_hook(self, input_item=None):
        yield


def hooked(info):
    return [Hook()]


AROUND = [{}, {"task_hook_factory": hooked}, {"queue_class": AsyncQueue}]


def parity(items):
    return [x % 2 for x in items]


def same(items):
    return items


def paths(even, odd):
    return PathVariants(parity, [even, odd], batched=True)


def each(items):
    for item in items:
        yield [item]


async def each_async(items):
    for item in items:
        await asyncio.sleep(0)
        yield [item]


async def large(items):
    for item in items:
        if item > 4:
            yield [item]


def joined(parts):
    return sum(parts, [])


BATCHES = [list(range(i, i + 4)) for i in range(0, 200, 4)]
WANT = [[i, i + 2, i + 1, i + 3] for i in range(0, 200, 4)]


def late_first():
    """An op whose first call ends after the next one has begun."""
    other, lock, calls = threading.Event(), threading.Lock(), iter(range(1000))

    def op(items):
        with lock:
            call = next(calls)
        if call:
            other.set()
        else:
            assert other.wait(20)
        return items

    return op


def late_first_async():
    other, calls = asyncio.Event(), iter(range(1000))

    async def op(items):
        if next(calls):
            other.set()
        else:
            await other.wait()
        return items

    return op


def late_first_steps():
    late = late_first_async()

    async def op(items):
        for item in await late(items):
            yield [item]

    return op


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("make", [late_first, late_first_async, late_first_steps])
def test_concurrency_leaves_batches_whole(make, around):
    stage = paths([Pipe(make(), concurrency=4)], [Pipe(make(), concurrency=4)])
    assert list(chain(stage, src=BATCHES, threads=9, **around)) == WANT


def test_paths_within_batched_paths_keep_the_order():
    inner = PathVariants(
        lambda items: sum(items) // 4 % 2, [[Pipe(late_first(), concurrency=4)], [Pipe(same), Aggregate(1), Pipe(joined)]]
    )
    assert list(chain(paths([inner], [inner]), src=BATCHES, threads=9)) == WANT


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("op", [each, each_async])
def test_many_results_on_the_last_path_are_one_list(op, around):
    stage = paths([Pipe(same)], [Pipe(op)])
    assert list(chain(stage, src=[[0, 1, 3], [2], [5, 7, 9]], **around)) == [[0, 1, 3], [2], [5, 7, 9]]


@pytest.mark.parametrize("around", AROUND)
def test_paths_within_say_where_their_batches_end(around):
    """Also those whose last path gives several results of a batch, or none."""
    inner = PathVariants(lambda items: [x // 2 % 2 for x in items], [[Pipe(same)], [Pipe(each)]], batched=True)
    dropping = PathVariants(lambda items: [x // 2 % 2 for x in items], [[Pipe(same)], [Pipe(lambda _: None)]], batched=True)
    assert list(chain(paths([inner, Pipe(list)], [inner]), src=BATCHES, **around)) == WANT
    want = [[i, i + 1] for i in range(0, 200, 4)]
    assert list(chain(paths([dropping], [dropping, Pipe(list)]), src=BATCHES, **around)) == want


def test_nothing_is_no_list():
    assert list(chain(paths([Pipe(same)], [Pipe(lambda items: None)]), src=[[1], [2], [3]])) == [[2]]


@pytest.mark.parametrize("around", AROUND)
def test_steps_with_an_executor_or_a_limit_of_time(around):
    with ThreadPoolExecutor(2) as executor:
        stage = paths([Pipe(each, executor=executor, concurrency=3)], [Pipe(each, timeout=100)])
        assert list(chain(stage, src=BATCHES, **around)) == WANT


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("path", [0, 1])
def test_steps_that_give_nothing(path, around):
    stages = [[Pipe(large)], [Pipe(same)]]
    got = list(chain(paths(*stages[:: -1 if path else 1]), src=[[0, 1], [2, 3], [6, 7], [5, 8]], **around))
    assert got == ([[0], [2], [6, 7], [8, 5]] if path else [[1], [3], [6, 7], [8, 5]])


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("op", [each, each_async])
def test_steps_that_fail_leave_what_they_gave(op, around):
    async def fails_async(items):
        async for part in op(items):
            yield part
            if 2 in items:
                raise ValueError("two")

    def fails(items):
        for part in op(items):
            yield part
            if 2 in items:
                raise ValueError("two")

    stage = paths([Pipe(fails if op is each else fails_async)], [Pipe(same)])
    assert list(chain(stage, src=[[0, 1], [2, 4, 3], [6, 7]], **around)) == [[0, 1], [2, 3], [6, 7]]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("path", [0, 1])
@pytest.mark.parametrize("continuous", [False, True])
def test_aggregates_give_the_rest_at_the_end_of_the_epoch(continuous, path, around):
    stages = [[Aggregate(3), Pipe(joined)], [Pipe(same)]]
    src = [[i, i + 1] for i in range(0, 10, 2)]
    pipeline = chain(paths(*stages[:: -1 if path else 1]), src=src, continuous=continuous, **around)
    want = [[[1], [3], [0, 2, 4, 5], [7], [9], [6, 8]], [[0], [2], [4, 1, 3, 5], [6], [8], [7, 9]]][path]
    with pipeline.auto_stop():
        for _ in range(3 if continuous else 1):
            assert list(pipeline.get_iterator(timeout=60)) == want


@pytest.mark.parametrize("around", AROUND)
def test_what_a_path_makes_of_the_rest_is_of_its_epoch(around):
    stage = paths([Pipe(same)], [Disaggregate(), Aggregate(2), Pipe(each_async), Aggregate(4), Pipe(joined)])
    pipeline = chain(stage, src=[[5]], continuous=True, **around)
    with pipeline.auto_stop():
        for _ in range(4):
            assert list(pipeline.get_iterator(timeout=60)) == [[5]]
