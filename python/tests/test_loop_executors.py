"""Executors of stages, time limits and retries."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import region_ops
from lanes import Gate, chain, read
from stoker.pipeline import PriorityProcessPoolExecutor, PriorityThreadPoolExecutor
from stoker.pipeline.defs import ExecutorConfig, Pipe, ProcessPoolExecutorConfig
from support import ok, until

LOCAL = threading.local()
CALLERS = contextvars.ContextVar("CALLERS", default="unset")
THREADS = contextvars.ContextVar("THREADS", default="unset")


def prepare(value):
    LOCAL.value = value


def prepared(x):
    return LOCAL.value, x


def square(x):
    return x * x


def broken(x):
    if x == 1:
        raise KeyError("no such thing")
    return x


def steps(x):
    for i in range(x):
        yield i, os.getpid()


def process(x):
    return os.getpid()


def context(x):
    seen = CALLERS.get(), THREADS.get()
    CALLERS.set("item")
    return seen


def context_of_steps(x):
    yield context(x)
    yield context(x)


@pytest.mark.parametrize("op", [context, context_of_steps])
@pytest.mark.parametrize("make", [ThreadPoolExecutor, PriorityThreadPoolExecutor])
def test_threads_of_an_executor_see_the_context_of_the_start(make, op):
    """And what their initializer has set."""
    token = CALLERS.set("caller")
    pool = make(2, initializer=THREADS.set, initargs=("thread",))
    try:
        executor = pool.get_executor() if make is PriorityThreadPoolExecutor else pool
        assert set(read(chain(Pipe(op, executor=executor, concurrency=2)))[0]) == {("caller", "thread")}
    finally:
        CALLERS.reset(token)
        pool.shutdown()


def test_an_executor_of_threads_has_its_initializer_and_its_locals():
    with ThreadPoolExecutor(2, "mine", initializer=prepare, initargs=("hello",)) as pool:
        items, error = read(chain(Pipe(prepared, executor=pool, concurrency=2, output_order="input")))
        assert (items, error) == ([("hello", x) for x in range(10)], None)
        names, _ = read(chain(Pipe(lambda x: threading.current_thread().name, executor=pool)))
        assert all(name.startswith("mine") for name in names)
        assert pool.submit(square, 3).result() == 9


def test_concurrency_on_an_executor():
    gate = Gate()
    with ThreadPoolExecutor(8) as pool:
        pipeline = chain(Pipe(gate, executor=pool, concurrency=3), src=range(12))
        with pipeline.auto_stop():
            gate.until_inside(3)
            gate.open()
            assert sorted(read(pipeline)[0]) == list(range(12))
        assert gate.most == 3


def test_one_executor_for_several_stages_and_pipelines():
    with ThreadPoolExecutor(1) as pool:
        stages = [Pipe(square, executor=pool), Pipe(str, executor=pool), Pipe(len, executor=pool)]
        for _ in range(3):
            assert read(chain(*stages, src=range(5)))[0] == [1, 1, 1, 1, 2]


def test_generators_run_and_close_on_their_executor():
    threads, closed = set(), []

    def generator(x):
        try:
            while True:
                threads.add(threading.current_thread().name)
                yield x
        finally:
            closed.append(threading.current_thread().name)

    with ThreadPoolExecutor(1, "mine") as pool:
        pipeline = chain(Pipe(generator, executor=pool))
        with pipeline.auto_stop():
            assert [pipeline.get_item() for _ in range(3)] == [0, 0, 0]
    assert closed == ["mine_0"] and threads == {"mine_0"}


def test_a_generator_on_an_executor_gives_what_it_gives():
    with ThreadPoolExecutor(2) as pool:
        items, _ = read(chain(Pipe(steps, executor=pool), src=[3, 0, 1]))
        assert [i for i, _ in items] == [0, 1, 2, 0]


@pytest.fixture(scope="module")
def processes():
    import multiprocessing

    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def test_ops_in_processes(processes):
    assert read(chain(Pipe(square, executor=processes, output_order="input"), src=range(5)))[0] == [0, 1, 4, 9, 16]
    assert read(chain(Pipe(process, executor=processes), src=[1]))[0] != [os.getpid()]
    items, _ = read(chain(Pipe(steps, executor=processes), src=[2, 1]))
    assert [i for i, _ in items] == [0, 1, 0]
    assert os.getpid() not in {pid for _, pid in items}


def test_what_an_op_in_a_process_raises_comes_as_text(processes):
    pipeline = chain(Pipe(broken, executor=processes), src=range(3))
    assert read(pipeline) == ([0, 2], None)
    (failure,) = pipeline.failures()
    cause = failure.__cause__
    assert type(cause) is RuntimeError
    assert str(cause).startswith("Function failed in subprocess: KeyError: 'no such thing' (")
    assert str(cause).endswith(":broken)")
    assert __file__ in str(cause)


@pytest.mark.parametrize("kind", ["pooled", "timed", "steps"])
def test_failures_of_sync_ops_on_the_loop_are_no_garbage(kind):
    import gc
    import weakref

    class Broken(Exception):
        pass

    refs = []

    def op(x):
        error = Broken(x)
        refs.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    def steps(x):
        yield x
        op(x)

    with ThreadPoolExecutor(1) as pool:
        stage = Pipe(steps if kind == "steps" else op, **{"timeout": 50} if kind == "timed" else {"executor": pool})
        pipeline = chain(stage, src=range(30))
        gc.collect()
        gc.disable()
        try:
            assert read(pipeline)[1] is None
            assert len(refs) == 30
            assert sum(ref() is not None for ref in refs) <= 12  # those that the pipeline lists
        finally:
            gc.enable()


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__(a)


def raises_unpicklable(x):
    if x == 1:
        raise Unpicklable("odd", 2)
    return x


def test_entry_points_of_a_pool_of_processes_are_processes():
    pool = PriorityProcessPoolExecutor(1)
    try:
        executor = pool.get_executor()
        pipeline = chain(Pipe(broken, executor=executor), src=range(3))
        assert read(pipeline) == ([0, 2], None)
        (failure,) = pipeline.failures()
        assert "Function failed in subprocess: KeyError: 'no such thing'" in str(failure.__cause__)
        pipeline = chain(Pipe(raises_unpicklable, executor=executor), src=range(3))
        assert read(pipeline) == ([0, 2], None)
        assert "Unpicklable: odd" in str(pipeline.failures()[0].__cause__)
        items, error = read(chain(Pipe(steps, executor=executor), src=range(4)))
        assert error is None and [i for i, _ in items] == [0, 0, 1, 0, 1, 2]
        assert {pid for _, pid in items}.isdisjoint({os.getpid()})
    finally:
        pool.shutdown()


@pytest.mark.python(since=(3, 14))
def test_ops_in_interpreters():
    from concurrent.futures import InterpreterPoolExecutor

    path = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})"  # where region_ops is
    with InterpreterPoolExecutor(1, initializer=exec, initargs=(path,)) as pool:
        for stage in (Pipe(square, executor=pool), Pipe(square, executor=pool, timeout=50)):
            assert read(chain(stage, src=range(4))) == ([0, 1, 4, 9], None)
        assert read(chain(Pipe(region_ops.twice, executor=pool), src=range(3))) == ([0, 0, 1, 1, 2, 2], None)


def test_executor_configs_are_made_and_ended_with_the_pipeline():
    config = ExecutorConfig(max_workers=2, initializer=prepare, initargs=("config",))
    before = threading.active_count()
    for _ in range(3):
        pipeline = chain(Pipe(prepared, executor=config, concurrency=2, output_order="input"), src=range(4))
        with pipeline.auto_stop():
            assert read(pipeline)[0] == [("config", x) for x in range(4)]
    until(lambda: threading.active_count() <= before)


def test_process_pool_configs_are_made_and_ended_with_the_pipeline():
    config = ProcessPoolExecutorConfig(max_workers=1, mp_context="spawn")
    pipeline = chain(Pipe(process, executor=config), src=range(3))
    with pipeline.auto_stop():
        (pid,) = set(read(pipeline)[0])
        assert pid != os.getpid()
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_priority_executors_survive_the_pipeline():
    pool = PriorityThreadPoolExecutor(2)
    try:
        for _ in range(2):
            stages = [Pipe(square, executor=pool.get_executor()), Pipe(str, executor=pool.get_executor())]
            assert sorted(read(chain(*stages, src=range(4)))[0]) == ["0", "1", "4", "9"]
    finally:
        pool.shutdown()


@pytest.mark.parametrize("pooled", [False, True])
def test_a_sync_op_that_takes_too_long_is_reported_and_abandoned(pooled):
    release = threading.Event()

    def op(x):
        if x == 1:
            release.wait()
        return x

    pool = ThreadPoolExecutor(2) if pooled else None
    pipeline = chain(Pipe(op, timeout=0.2, executor=pool, name="slow"), src=range(4), threads=1)
    try:
        with pipeline.auto_stop():
            assert read(pipeline) == ([0, 2, 3], None)
            (failure,) = pipeline.failures()
            assert isinstance(failure.__cause__, TimeoutError)
            assert "slow" in str(failure.__cause__) and "0.2 s" in str(failure.__cause__)
    finally:
        release.set()
        if pool is not None:
            pool.shutdown()


def test_an_async_op_that_takes_too_long_is_cancelled():
    cancelled = []

    async def op(x):
        if x == 1:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(x)
                raise
        return x

    pipeline = chain(Pipe(op, timeout=0.1, name="slow"), src=range(4))
    assert read(pipeline) == ([0, 2, 3], None)
    assert cancelled == [1]
    assert "slow" in str(pipeline.failures()[0].__cause__)


def test_a_timeout_of_the_ops_own_is_not_the_stages():
    async def op(x):
        raise TimeoutError("mine")

    pipeline = chain(Pipe(op, timeout=50), src=[0])
    assert read(pipeline) == ([], None)
    assert str(pipeline.failures()[0].__cause__) == "mine"


def test_an_op_that_was_abandoned_does_not_keep_the_interpreter():
    out = ok(
        """
        import logging, threading
        logging.disable(logging.CRITICAL)
        from stoker.pipeline import PipelineBuilder
        def op(x):
            if x == 1:
                threading.Event().wait()
            return x
        pipeline = PipelineBuilder().add_source(range(3)).pipe(op, timeout=0.1).add_sink(3).build(num_threads=1)
        with pipeline.auto_stop():
            print(list(pipeline), flush=True)
        """
    )
    assert out == "[0, 2]\n"


@pytest.mark.parametrize("kind", ["sync", "async", "pooled", "timed"])
def test_retries(kind):
    seen: dict[int, int] = {}

    def op(x):
        seen[x] = seen.get(x, 0) + 1
        if seen[x] <= x:
            raise ValueError(x, seen[x])
        return x

    async def async_op(x):
        await asyncio.sleep(0)
        return op(x)

    with ThreadPoolExecutor(1) as pool:
        options = {"pooled": {"executor": pool}, "timed": {"timeout": 50}}.get(kind, {})
        stage = Pipe(async_op if kind == "async" else op, retries=2, **options)
        pipeline = chain(stage, src=range(5))
        assert read(pipeline) == ([0, 1, 2], None)
    assert seen == {0: 1, 1: 2, 2: 3, 3: 3, 4: 3}
    assert [failure.__cause__.args for failure in pipeline.failures()] == [(3, 3), (4, 3)]


def test_hooks_see_a_retried_item_once():
    from test_loop_hooks import Records

    seen = []

    async def op(x):
        seen.append(x)
        if len(seen) < 3:
            raise ValueError
        return x

    hooks = Records()
    assert read(chain(Pipe(op, retries=2, name="op"), src=[7], task_hook_factory=hooks)) == ([7], None)
    assert hooks.by["op"].events == ["begin", ("in", 7), ("out", 7), "end"]


def test_stop_waits_for_a_sync_op_beside_hooks():
    from test_loop_hooks import Records

    gate = Gate()
    pipeline = chain(Pipe(gate, name="op"), src=range(5), task_hook_factory=Records())
    pipeline.start()
    gate.until_inside(1)
    with pytest.raises(TimeoutError, match="Thread did not join after"):
        pipeline.stop(timeout=0.2)
    gate.open()
    pipeline.stop()
    assert not any("stoker" in thread.name for thread in threading.enumerate())
