"""Async sources: when they are asked, and when they are closed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lanes import chain, read
from stoker.pipeline import PipelineFailure
from stoker.pipeline.defs import Aggregate, Pipe
from support import until


class Source:
    """An async iterable that knows who asked and closed it; each pass has an iterator of its own."""

    def __init__(self, n: int, *, slow_close: bool = True) -> None:
        self.n = n
        self.slow_close = slow_close
        self.opened = 0
        self.closed: list[int] = []
        self.asked = 0
        self.threads: set[str] = set()

    def __aiter__(self):
        self.opened += 1
        return Pass(self, self.opened)


class Pass:
    def __init__(self, source: Source, number: int) -> None:
        self.source, self.number, self.i = source, number, 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        self.source.asked += 1
        self.source.threads.add(threading.current_thread().name)
        await asyncio.sleep(0)
        if self.i == self.source.n:
            raise StopAsyncIteration
        self.i += 1
        return self.i - 1

    async def aclose(self):
        if self.source.slow_close:
            for _ in range(5):
                await asyncio.sleep(0)
        self.source.closed.append(self.number)


def test_an_async_source_is_read_on_the_loop_and_closed_at_its_end():
    source = Source(100)
    assert read(chain(src=source)) == (list(range(100)), None)
    assert source.closed == [1]
    assert source.threads == {"stoker-loop"}


def test_an_async_source_is_asked_only_for_what_has_room():
    source = Source(1000)
    pipeline = chain(src=source, sink=1)
    with pipeline.auto_stop():
        pipeline.get_item()
        until(lambda: source.asked > 2)
        assert source.asked < 200
    assert source.closed == [1]


@pytest.mark.parametrize("slow", [False, True])
def test_an_async_source_is_closed_on_early_end(slow):
    for _ in range(20):
        source = Source(10**9, slow_close=slow)
        pipeline = chain(Pipe(lambda x: x), src=source)
        with pipeline.auto_stop():
            assert pipeline.get_item() == 0
        assert source.closed == [1]


@pytest.mark.parametrize("slow", [False, True])
def test_an_async_source_is_closed_when_a_stage_behind_it_fails(slow):
    def fail(x):
        raise ValueError(x)

    async def fail_later(x):
        await asyncio.sleep(0)
        raise ValueError(x)

    for op in (fail, fail_later):
        source = Source(10**9, slow_close=slow)
        pipeline = chain(Pipe(op, max_failures=3), src=source)
        assert isinstance(read(pipeline)[1], PipelineFailure)
        with pytest.raises(PipelineFailure):
            pipeline.get_item()
        pipeline.stop()
        assert source.closed == [1]


def test_an_async_generator_as_source_runs_its_finally():
    ended = []

    async def source():
        try:
            for i in range(10**9):
                yield i
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ended.append(threading.current_thread().name)

    for _ in range(10):
        pipeline = chain(src=source())
        with pipeline.auto_stop():
            pipeline.get_item()
        assert ended.pop() == "stoker-loop"


def test_a_blocked_async_source_is_cancelled():
    cancelled = threading.Event()

    async def source():
        yield 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    pipeline = chain(src=source())
    with pipeline.auto_stop():
        assert pipeline.get_item() == 1
    assert cancelled.is_set()


def test_epochs_of_an_async_source():
    source = Source(5)
    pipeline = chain(Pipe(lambda x: x), Aggregate(2), src=source, continuous=True)
    with pipeline.auto_stop():
        for epoch in range(4):
            assert list(pipeline) == [[0, 1], [2, 3], [4]]
            assert len(source.closed) >= epoch
        with pytest.raises(EOFError):
            for _ in range(4):
                pipeline.get_item()
    assert source.closed == list(range(1, source.opened + 1))


def test_a_continuous_source_that_is_its_own_iterator_is_closed_at_the_end_only():
    class Own:
        def __init__(self):
            self.i = 0
            self.closed = 0

        def __aiter__(self):
            return self

        async def __anext__(self):
            assert not self.closed
            self.i += 1
            if self.i % 4 == 0:
                raise StopAsyncIteration
            return self.i

        async def aclose(self):
            self.closed += 1

    source = Own()
    pipeline = chain(src=source, continuous=True)
    with pipeline.auto_stop():
        assert [list(pipeline) for _ in range(3)] == [[1, 2, 3], [5, 6, 7], [9, 10, 11]]
        assert source.closed == 0
    assert source.closed == 1


def test_an_empty_async_source():
    assert read(chain(Pipe(lambda x: x), src=Source(0))) == ([], None)
    pipeline = chain(src=Source(0), continuous=True)
    with pipeline.auto_stop():
        assert [list(pipeline) for _ in range(3)] == [[], [], []]


def test_none_from_an_async_source_is_an_item():
    async def source():
        yield None
        yield 1

    assert read(chain(src=source())) == ([None, 1], None)


@pytest.mark.parametrize("error", [ValueError("broken"), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("at", ["aiter", "anext", "aclose"])
def test_an_exception_in_an_async_source_comes_behind_its_items(error, at):
    class Bad(Source):
        def __aiter__(self):
            if at == "aiter":
                raise error
            return BadPass(self, 1)

    class BadPass(Pass):
        async def __anext__(self):
            if at == "anext" and self.i == 3:
                raise error
            return await super().__anext__()

        async def aclose(self):
            if at == "aclose":
                raise error

    items, failure = read(chain(Pipe(lambda x: x, max_failures=100), src=Bad(3)))
    assert items == ([] if at == "aiter" else [0, 1, 2])
    assert isinstance(failure, PipelineFailure)
    (first,) = failure.exceptions
    assert (first if isinstance(error, Exception) else first.__cause__) is error
    assert "Pipeline stage: " in first.__notes__[-1]


def test_an_object_that_is_both_kinds_of_iterable_is_read_as_a_sync_one():
    class Both(Source):
        def __iter__(self):
            return iter("ab")

    assert read(chain(src=Both(3)))[0] == ["a", "b"]
