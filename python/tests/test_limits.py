"""Time limits and retries, of generators too."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from lanes import chain, read
from stoker.pipeline._calls import result_of
from stoker.pipeline.defs import ExecutorConfig, Pipe
from support import until

LIMIT_S = 0.2


def spend(seconds):
    threading.Event().wait(seconds)


def in_steps(x):
    yield (x, 0)
    if x == 1:
        spend(4 * LIMIT_S)
    yield (x, 1)


@pytest.mark.parametrize("pooled", [False, True])
def test_what_waits_for_a_thread_is_not_late(pooled):
    def op(x):
        spend(LIMIT_S)
        return x

    executor = ExecutorConfig(1) if pooled else None
    stage = Pipe(op, concurrency=8, timeout=5 * LIMIT_S, executor=executor)
    assert read(chain(stage, src=range(8), threads=1)) == (list(range(8)), None)


class Running:
    """A call whose clock says what the test wants."""

    def __init__(self, *times) -> None:
        self.times = list(times)
        self.abandoned = False
        self.future = asyncio.get_running_loop().create_future()

    def elapsed(self) -> float:
        if not self.times:
            self.future.set_result("done")
            return 0.0
        return self.times.pop(0)

    def abandon(self) -> None:
        self.abandoned = True


def test_only_the_time_that_it_runs_counts():
    async def check():
        quick = Running(0.0, 0.0, 0.0009)
        assert await result_of(quick, 0.001, "late") == "done"
        late = Running(0.0, 0.0009, 0.001, 0.0)
        with pytest.raises(TimeoutError, match="late"):
            await result_of(late, 0.001, "late")
        assert late.abandoned and late.times == [0.0] and late.future.cancelled()

    asyncio.run(check())


@pytest.mark.parametrize("pooled", [False, True])
def test_a_sync_generator_that_takes_too_long_is_left_alone(pooled):
    release, closed = threading.Event(), []

    def each(x):
        try:
            yield (x, 0)
            if x == 1:
                release.wait()
            yield (x, 1)
        finally:
            closed.append((x, threading.current_thread().name))

    pool = ThreadPoolExecutor(2, thread_name_prefix="pool") if pooled else None
    pipeline = chain(Pipe(each, timeout=LIMIT_S, executor=pool, name="slow"), src=range(3), threads=1)
    with pipeline.auto_stop():
        assert read(pipeline) == ([(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)], None)
        (failure,) = pipeline.failures()
        assert str(failure.__cause__) == f"stage slow: the item took longer than {LIMIT_S:g} s"
        assert [x for x, _ in closed] == [0, 2]
        release.set()
        until(lambda: len(closed) == 3)
    assert all(name.startswith("pool" if pooled else "stoker-loop-worker") for _, name in closed)
    if pool is not None:
        pool.shutdown()


def test_all_steps_of_a_generator_count():
    def each(x):
        for i in range(12 if x else 1):
            spend(LIMIT_S)
            yield i

    pipeline = chain(Pipe(each, timeout=5 * LIMIT_S), src=range(2))
    items, error = read(pipeline)
    assert error is None and len(pipeline.failures()) == 1
    assert items == [0, *range(len(items) - 1)] and len(items) < 7


def test_what_a_generator_waits_for_between_steps_does_not_count():
    def each(x):
        yield from range(20)

    async def each_async(x):
        for i in range(20):
            yield i

    for op in (each, each_async):
        pipeline = chain(Pipe(op, timeout=2 * LIMIT_S), src=[0], sink=1)
        results = iter(pipeline)
        next(results)
        spend(3 * LIMIT_S)
        assert list(results) == list(range(1, 20))


def test_a_generator_in_processes_that_takes_too_long():
    with ProcessPoolExecutor(1) as pool:
        pool.submit(spend, 0).result()  # its start, and its imports, are no part of the item's time
        pipeline = chain(Pipe(in_steps, timeout=LIMIT_S / 2, executor=pool), src=range(2))
        items, error = read(pipeline)
        assert error is None and items == [(0, 0), (0, 1)]
        assert "longer than" in str(pipeline.failures()[0].__cause__)


@pytest.mark.parametrize("hooked", [False, True])
def test_an_async_generator_that_takes_too_long_is_cancelled(hooked):
    from test_loop_hooks import Records

    ends = []

    async def each(x):
        try:
            yield (x, 0)
            if x == 1:
                await asyncio.Event().wait()
            yield (x, 1)
        except asyncio.CancelledError:
            ends.append(("cancelled", x))
            raise
        finally:
            ends.append(("closed", x))

    options = {"task_hook_factory": Records()} if hooked else {}
    pipeline = chain(Pipe(each, timeout=LIMIT_S, name="slow"), src=range(3), **options)
    assert read(pipeline) == ([(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)], None)
    assert ends == [("closed", 0), ("cancelled", 1), ("closed", 1), ("closed", 2)]
    assert str(pipeline.failures()[0].__cause__).startswith("stage slow: the item took longer")


def test_a_timeout_of_a_generators_own_is_not_the_stages():
    closed = []

    def each(x):
        yield x
        try:
            raise TimeoutError("mine")
        finally:
            closed.append(x)

    async def each_async(x):
        yield x
        raise TimeoutError("mine")

    for op in (each, each_async):
        pipeline = chain(Pipe(op, timeout=50), src=[7])
        assert read(pipeline) == ([7], None)
        assert str(pipeline.failures()[0].__cause__) == "mine"
    assert closed == [7]


@pytest.mark.parametrize("kind", ["sync", "async", "pooled", "timed", "async timed"])
def test_a_generator_is_begun_again_as_long_as_it_has_given_nothing(kind):
    begun: dict[int, int] = {}

    def each(x):
        begun[x] = begun.get(x, 0) + 1
        yield None
        if begun[x] <= x:
            raise ValueError(x, begun[x])
        yield x
        if x == 1:
            raise ValueError("after a result")
        yield -x

    async def async_each(x):
        for value in each(x):
            await asyncio.sleep(0)
            yield value

    with ThreadPoolExecutor(1) as pool:
        options = {"pooled": {"executor": pool}}.get(kind, {"timeout": 50} if "timed" in kind else {})
        op = async_each if kind.startswith("async") else each
        pipeline = chain(Pipe(op, retries=2, **options), src=range(4))
        assert read(pipeline) == ([0, 0, 1, 2, -2], None)
    assert begun == {0: 1, 1: 2, 2: 3, 3: 3}
    assert [failure.__cause__.args for failure in pipeline.failures()] == [("after a result",), (3, 3)]


def test_each_try_of_a_generator_has_its_own_time():
    tries = []

    async def each(x):
        tries.append(x)
        if len(tries) < 3:
            await asyncio.Event().wait()
        yield x

    assert read(chain(Pipe(each, retries=2, timeout=LIMIT_S / 2), src=[5])) == ([5], None)
    assert tries == [5, 5, 5]


def test_a_generator_with_retries_is_closed_when_the_pipeline_stops():
    closed = []

    def each(x):
        try:
            while True:
                yield x
        finally:
            closed.append(x)

    pipeline = chain(Pipe(each, retries=1), src=[3])
    with pipeline.auto_stop():
        assert pipeline.get_item() == 3
    until(lambda: closed == [3])
