"""Hooks around stages and tasks, on a loop of their own."""

from __future__ import annotations

import asyncio
import logging
import pickle
from contextlib import asynccontextmanager

import pytest

from stoker.pipeline import StageInfo, TaskHook, TaskPerfStats, TaskStatsHook
from stoker.pipeline import _hooks
from stoker.pipeline._hooks import stage_context, task_context

INFO = StageInfo(0, "2", "double", 3)


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_hooks, "time", clock)
    return clock


async def call(hook, op=None, *args):
    async with hook.task_hook(*args):
        return op() if op else None


def fail():
    raise ValueError("bad item")


def test_task_hook_is_abstract():
    with pytest.raises(TypeError, match="task_hook"):
        TaskHook()


def test_stage_hook_has_a_default():
    class Mine(TaskHook):
        @asynccontextmanager
        async def task_hook(self, input_item=None):
            self.item = input_item
            yield

    async def main():
        hook = Mine()
        async with hook.stage_hook():
            await call(hook, None, "x")
            first = hook.item
            await call(hook)
            return first, hook.item

    assert asyncio.run(main()) == ("x", None)


def test_counts_and_times(clock):
    hook = TaskStatsHook(INFO)
    assert (hook.num_tasks, hook.num_success, hook.ave_time) == (0, 0, 0)

    async def main():
        for seconds in (1, 2, 3):
            async with hook.task_hook("item"):
                clock.now += seconds
        with pytest.raises(ValueError, match="bad item"):
            async with hook.task_hook():
                clock.now += 100  # of a failure, which says nothing of the op's speed
                fail()

    asyncio.run(main())
    assert (hook.num_tasks, hook.num_success) == (4, 3) and hook.ave_time == pytest.approx(2)
    stats = hook._total()
    assert stats.num_tasks == 4 and stats.num_failures == 1 and stats.ave_time == pytest.approx(2)
    assert stats.p90_time == pytest.approx(2.8) and stats.p99_time == pytest.approx(2.98)


def test_tasks_that_overlap(clock):
    hook = TaskStatsHook(INFO)

    async def main():
        first, second = hook.task_hook(1), hook.task_hook(2)
        await first.__aenter__()
        clock.now += 1
        await second.__aenter__()
        clock.now += 1
        await first.__aexit__(None, None, None)
        await second.__aexit__(None, None, None)

    asyncio.run(main())
    assert hook.num_tasks == 2 and hook.ave_time == pytest.approx(1.5)


def test_the_end_of_a_generator_passes_uncounted():
    """And so does a cancellation: neither is a task that succeeded or failed."""
    hook = TaskStatsHook(INFO)

    async def numbers():
        yield 1
        yield 2

    async def main():
        generator, seen = numbers(), []
        with pytest.raises(StopAsyncIteration):
            while True:
                async with hook.task_hook():
                    seen.append(await anext(generator))
        with pytest.raises(asyncio.CancelledError):
            async with hook.task_hook():
                raise asyncio.CancelledError
        return seen

    assert asyncio.run(main()) == [1, 2]
    assert (hook.num_tasks, hook.num_success) == (2, 2)


def test_logs_when_the_stage_ends(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    hook = TaskStatsHook(INFO)

    async def main():
        async with hook.stage_hook():
            await call(hook)
            with pytest.raises(ValueError):
                await call(hook, fail)
            assert not caplog.records

    asyncio.run(main())
    (record,) = caplog.records
    assert "0:2:double[3]" in record.getMessage() and "2 tasks, 1 failed" in record.getMessage()


class Kept(TaskStatsHook):
    def __init__(self, info, interval=-1):
        super().__init__(info, interval)
        self.seen: list[TaskPerfStats] = []
        self.called = asyncio.Event()

    async def interval_stats_callback(self, stats: TaskPerfStats) -> None:
        await super().interval_stats_callback(stats)
        self.seen.append(stats)
        self.called.set()


def test_intervals_add_up():
    hook = Kept(INFO, interval=1e-3)

    async def main():
        async with hook.stage_hook():
            for i in range(9):
                if i % 3:
                    await call(hook)
                else:
                    with pytest.raises(ValueError):
                        await call(hook, fail)
                    hook.called.clear()
                    await hook.called.wait()

    asyncio.run(main())
    assert len(hook.seen) >= 4
    assert sum(stats.num_tasks for stats in hook.seen) == hook.num_tasks == 9
    assert sum(stats.num_failures for stats in hook.seen) == 3


def test_intervals_pass_without_tasks():
    """A stage that is stuck is reported, too."""
    hook = Kept(INFO, interval=1e-3)

    async def main():
        async with hook.stage_hook():
            for _ in range(3):
                hook.called.clear()
                await hook.called.wait()

    asyncio.run(main())
    assert {(stats.num_tasks, stats.ave_time, stats.p99_time) for stats in hook.seen} == {(0, 0, 0)}


def test_no_interval_no_callback():
    hook = Kept(INFO)

    async def main():
        async with hook.stage_hook():
            await call(hook)

    asyncio.run(main())
    assert hook.seen == []


def test_a_callback_that_fails_is_logged(caplog):
    class Broken(Kept):
        def interval_stats_callback(self, stats):  # not a coroutine function: allowed
            self.called.set()
            raise LookupError("no such table")

    hook = Broken(INFO, interval=1e-3)

    async def main():
        async with hook.stage_hook():
            await hook.called.wait()
            await call(hook)

    asyncio.run(main())
    assert hook.num_success == 1 and "no such table" in caplog.text


def test_a_slow_callback_ends_with_the_stage():
    class Stuck(Kept):
        async def interval_stats_callback(self, stats):
            if not self.called.is_set():
                self.called.set()
                await asyncio.Event().wait()

    hook = Stuck(INFO, interval=1e-3)

    async def main():
        async with hook.stage_hook():
            await hook.called.wait()

    asyncio.run(main())


def test_subclasses_wrap_it(clock):
    class Mine(TaskStatsHook):
        @asynccontextmanager
        async def task_hook(self, input_item=None):
            async with super().task_hook(input_item):
                yield
            self.last = input_item, self.num_success

    hook = Mine(INFO)
    asyncio.run(call(hook, None, "a"))
    assert hook.last == ("a", 1)

    async def ended():
        with pytest.raises(StopAsyncIteration):
            async with hook.task_hook():
                raise StopAsyncIteration

    asyncio.run(ended())
    assert hook.num_tasks == 1


class Forgot(TaskHook):
    async def stage_hook(self):
        yield

    async def task_hook(self, input_item=None):
        return None


def test_what_is_no_context_manager_is_refused():
    with pytest.raises(ValueError, match=r"`stage_hook\(\)` of Forgot .*asynccontextmanager"):
        stage_context(Forgot())
    with pytest.raises(ValueError, match=r"`task_hook\(\)` of Forgot .*asynccontextmanager"):
        task_context(Forgot(), "item")


def test_what_is_one_is_taken():
    class Own:
        async def __aenter__(self):
            pass

        async def __aexit__(self, *exc):
            pass

    class Mine(TaskHook):
        def task_hook(self, input_item=None):
            self.item = input_item
            return own

    own, hook = Own(), Mine()
    assert task_context(hook, "item") is own and hook.item == "item"

    async def main():
        async with stage_context(hook), stage_context(TaskStatsHook(INFO)):
            async with task_context(TaskStatsHook(INFO), 1):
                return "through"

    assert asyncio.run(main()) == "through"


def test_perf_stats_are_plain_values():
    stats = TaskPerfStats(num_tasks=3, num_failures=1, ave_time=0.5, p90_time=0.9, p99_time=0.99)
    assert stats == TaskPerfStats(3, 1, 0.5, 0.9, 0.99) != TaskPerfStats(3, 1, 0.5, 0.9, 1.0)
    assert pickle.loads(pickle.dumps(stats)) == stats
    assert (stats.num_tasks, stats.num_failures, stats.ave_time) == (3, 1, 0.5)
