"""Failures and stops while async ops are in flight."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from fractions import Fraction

import pytest

from lanes import Gate, chain, read
from stoker.pipeline import PipelineFailure
from stoker.pipeline.defs import Pipe
from support import ok, pass_time, until
from test_loop_ops import Turns


@pytest.mark.parametrize("order", ["completion", "input"])
def test_stop_cancels_ops_in_flight(order):
    turns = Turns()
    pipeline = chain(Pipe(turns, concurrency=3, output_order=order), src=range(100))
    pipeline.start()
    until(lambda: turns.inside == 3)
    pipeline.stop()
    assert sorted(turns.cancelled) == [0, 1, 2]
    assert turns.inside == 0
    pipeline.stop()


def test_an_op_that_cleans_up_is_given_the_time():
    begun, ended = [], []

    async def op(x):
        begun.append(x)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            ended.append(x)

    pipeline = chain(Pipe(op, concurrency=2))
    pipeline.start()
    until(lambda: len(begun) == 2)
    pipeline.stop()
    assert sorted(ended) == [0, 1]


@pytest.mark.parametrize("limit", [0, 2])
def test_the_limit_cancels_ops_in_flight(limit):
    turns = Turns()
    count = 0

    async def op(x):
        nonlocal count
        if x < 3:
            return await turns(x)
        count += 1
        raise ValueError(x)

    pipeline = chain(Pipe(op, concurrency=8, max_failures=limit), src=range(100))
    items, error = read(pipeline)
    assert items == []
    assert isinstance(error, PipelineFailure)
    (over,) = error.exceptions
    assert "which exceeds the threshold (" in str(over)
    assert isinstance(over.__cause__, ValueError)
    pipeline.stop()
    assert sorted(turns.cancelled) == [0, 1, 2]
    assert count >= limit + 1


def test_earlier_items_arrive_before_a_failure_in_input_order():
    async def op(x):
        for _ in range(20 - x if x < 10 else 0):
            await asyncio.sleep(0)
        if x == 10:
            raise ValueError(x)
        return x

    items, error = read(chain(Pipe(op, concurrency=8, output_order="input", max_failures=0), src=range(20)))
    assert items == list(range(10))
    assert isinstance(error, PipelineFailure)


def test_failures_below_the_limit_are_dropped_and_counted():
    async def op(x):
        await asyncio.sleep(0)
        if x % 3 == 0:
            raise ValueError(x)
        return x

    pipeline = chain(Pipe(op, concurrency=2, max_failures=4))
    assert sorted(read(pipeline)[0]) == [1, 2, 4, 5, 7, 8]
    assert pipeline.stats()["stages"][1]["failed"] == 4


def test_the_limit_of_the_build_is_shared_with_sync_stages():
    async def odd(x):
        if x % 2:
            raise ValueError(x)
        return x

    def four(x):
        if x % 4:
            raise ValueError(x)
        return x

    stages = Pipe(odd, output_order="input"), Pipe(four, output_order="input")
    assert read(chain(*stages, src=range(8), max_failures=6)) == ([0, 4], None)
    _, error = read(chain(*stages, src=range(8), max_failures=5))
    assert isinstance(error, PipelineFailure)
    assert read(chain(Pipe(odd, max_failures=4), Pipe(four), src=range(8), max_failures=2)) == ([0, 4], None)


def test_a_failure_rate_of_async_ops():
    async def half(x):
        if x % 2:
            raise ValueError(x)
        return x

    items, error = read(chain(Pipe(half, max_failures=Fraction(1, 2)), src=range(500)))
    assert (items, error) == (list(range(0, 500, 2)), None)
    items, error = read(chain(Pipe(half, max_failures=Fraction(2, 5)), src=range(500)))
    assert "out of" in str(error.exceptions[0])
    assert len(items) <= 60


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("generates", [False, True])
def test_an_interrupt_in_an_op_fails_the_pipeline(kind, waits, generates):
    async def op(x):
        if waits:
            await asyncio.sleep(0)
        if x == 3:
            raise kind(x)
        return x

    async def generator(x):
        yield await op(x)

    items, error = read(chain(Pipe(generator if generates else op), src=range(100)))
    assert items == [0, 1, 2]
    assert isinstance(error.exceptions[0].__cause__, kind)


def test_an_async_generator_that_raises_cancelled_error_fails_that_item():
    async def op(x):
        yield x
        if x == 2:
            raise asyncio.CancelledError
        yield x

    pipeline = chain(Pipe(op), src=range(4))
    assert read(pipeline)[0] == [0, 0, 1, 1, 2, 3, 3]
    assert len(pipeline.failures()) == 1


@pytest.mark.parametrize("waits", [False, True])
def test_a_stop_that_gives_up_names_stage_op_and_item(waits):
    release = threading.Event()
    inside = threading.Event()

    async def stubborn(x):
        inside.set()
        if not waits:
            release.wait()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        return x

    pipeline = chain(Pipe(stubborn, name="download"), src=["item-7"])
    pipeline.start()
    inside.wait()
    try:
        with pytest.raises(TimeoutError, match="Thread did not join after 0.2 seconds") as caught:
            pipeline.stop(timeout=0.2)
        for part in ("download", "stubborn at ", "item 0: 'item-7'"):
            assert part in str(caught.value)
    finally:
        release.set()
    pipeline.stop()


def test_stop_returns_what_was_ready_and_no_more_is_asked_for():
    gate = Gate()

    async def op(x):
        return x

    pipeline = chain(Pipe(op), Pipe(gate), src=range(10**6), sink=1)
    pipeline.start()
    gate.let(0)
    until(lambda: len(gate.entered) > 1)
    gate.open()
    pipeline.stop()
    began = time.perf_counter()
    rest, error = read(pipeline)
    assert error is None
    assert rest[:1] == [0]
    assert time.perf_counter() - began < 60


def test_exit_with_a_running_loop():
    for wait in ("asyncio.sleep(3600)", "asyncio.Event().wait()"):
        out = ok(
            f"""
            import asyncio
            from stoker.pipeline import PipelineBuilder
            async def op(x):
                if x: await {wait}
                return x
            pipeline = PipelineBuilder().add_source(range(9)).pipe(op, concurrency=2).add_sink(1).build(num_threads=1)
            print(pipeline.get_item(), flush=True)
            """
        )
        assert out == "0\n"


def test_exit_with_an_async_source_that_never_ends():
    out = ok(
        """
        import asyncio
        from stoker.pipeline import PipelineBuilder
        async def source():
            try:
                while True:
                    yield 1
                    await asyncio.sleep(0)
            finally:
                print("closed", flush=True)
        pipeline = PipelineBuilder().add_source(source()).add_sink(1).build(num_threads=1)
        pipeline.get_item()
        """
    )
    assert out == "closed\n"


def test_a_forked_child_refuses_and_ends():
    out = ok(
        """
        import asyncio, os
        from stoker.pipeline import PipelineBuilder
        async def op(x):
            await asyncio.sleep(0)
            return x
        pipeline = PipelineBuilder().add_source(range(10**6)).pipe(op).add_sink(1).build(num_threads=1)
        with pipeline.auto_stop():
            pipeline.get_item()
            pid = os.fork()
            if pid == 0:
                try:
                    pipeline.get_item()
                except RuntimeError as error:
                    print(type(error).__name__, flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
            print(pipeline.get_item(), flush=True)
        """
    )
    assert out == "ForkError\n1\n"


@pytest.mark.parametrize("order", ["completion", "input"])
def test_stop_while_results_wait_for_room_and_an_op_waits(order, monkeypatch):
    """Some ops of a burst ended at once, and the next one waits, for more than the stop."""
    from stoker.pipeline import _slots

    stall = threading.Event()
    putting = []
    leave = _slots._Slots._leave
    monkeypatch.setattr(_slots._Slots, "_leave", lambda *args: putting.append(leave(*args)) or putting[-1])

    async def op(x):
        if stall.is_set() and x % 40 == 39:
            await asyncio.Event().wait()
        return x

    pipeline = chain(Pipe(op, concurrency=3, output_order=order), src=range(10**7), sink=2)
    pipeline.start()
    for _ in range(20000):
        pipeline.get_item()
    pass_time(0.3)  # all windows are full
    stall.set()
    with contextlib.suppress(TimeoutError):
        while not any(putting):
            pipeline.get_item(timeout=0.2)
            pass_time(0.0005)
    pass_time(0.1)
    pipeline.stop(timeout=30)
