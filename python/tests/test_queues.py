"""Queues of Python objects, on a loop of their own."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from contextlib import asynccontextmanager

import pytest

from stoker.pipeline import AsyncQueue, QueuePerfStats, StageInfo, StatsQueue, is_eof, is_epoch_end
from stoker.pipeline import _queues
from stoker.pipeline._queues import _EOF, _EPOCH_END

INFO = StageInfo(3, "1", "stage", 4)


class Clock:
    now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_queues, "time", clock)
    return clock


class Kept(StatsQueue):
    """Keeps what its callback gets."""

    def __init__(self, info, **options):
        super().__init__(info, **options)
        self.seen: list[QueuePerfStats] = []
        self.called = asyncio.Event()

    async def interval_stats_callback(self, stats: QueuePerfStats) -> None:
        await super().interval_stats_callback(stats)
        self.seen.append(stats)
        self.called.set()


def test_stage_info():
    assert str(INFO) == "3:1:stage[4]"
    assert str(StageInfo(0, "2", "sink", None)) == "0:2:sink"
    assert INFO == StageInfo(pipeline_id=3, stage_id="1", stage_name="stage", concurrency=4)
    assert hash(INFO) == hash(copy.copy(INFO)) and pickle.loads(pickle.dumps(INFO)) == INFO
    assert repr(INFO) == "StageInfo(pipeline_id=3, stage_id='1', stage_name='stage', concurrency=4)"
    with pytest.raises(AttributeError):
        INFO.stage_id = "2"


@pytest.mark.parametrize("mark", [_EOF, _EPOCH_END])
def test_marks_are_the_same_object_everywhere(mark):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(mark, protocol)) is mark
    assert copy.copy(mark) is mark and copy.deepcopy([mark])[0] is mark
    assert [is_eof(mark), is_epoch_end(mark)] == [mark is _EOF, mark is _EPOCH_END]


def test_only_marks_are_marks():
    class Equal:
        def __eq__(self, other):
            return True

    for item in (None, 0, "", Equal(), _EOF.__class__, repr(_EOF)):
        assert not is_eof(item) and not is_epoch_end(item)


@pytest.mark.parametrize("cls", [AsyncQueue, StatsQueue])
def test_is_a_queue(cls):
    async def main():
        queue = cls(INFO, buffer_size=2)
        assert isinstance(queue, asyncio.Queue) and queue.maxsize == 2 and queue.info is INFO
        async with queue.stage_hook():
            await queue.put(1)
            queue.put_nowait(2)
            with pytest.raises(asyncio.QueueFull):
                queue.put_nowait(3)
            putting = asyncio.create_task(queue.put(3))
            assert [await queue.get(), queue.get_nowait(), await queue.get()] == [1, 2, 3]
            await putting
            with pytest.raises(asyncio.QueueEmpty):
                queue.get_nowait()
            getting = asyncio.create_task(queue.get())
            await asyncio.sleep(0)
            await queue.put(4)
            assert await getting == 4 and queue.empty()

    asyncio.run(main())


def test_one_place_unless_told_otherwise():
    assert AsyncQueue(INFO).maxsize == StatsQueue(INFO).maxsize == 1
    with pytest.raises(TypeError):
        AsyncQueue(INFO, 2)


def test_waits_are_measured(clock):
    async def main():
        queue = StatsQueue(INFO, buffer_size=1)
        async with queue.stage_hook():
            getting = asyncio.create_task(queue.get())
            await asyncio.sleep(0)
            clock.now += 2  # empty, and somebody waits for it
            await queue.put("a")
            await getting
            await queue.put("b")
            putting = asyncio.create_task(queue.put("c"))
            await asyncio.sleep(0)
            clock.now += 6  # full, and somebody waits for that
            assert await queue.get() == "b"
            await putting
            assert await queue.get() == "c"
            clock.now += 2  # empty, and that still lasts
            return queue._total()

    stats = asyncio.run(main())
    assert stats.elapsed == 10 and stats.num_items == 3 and stats.qps == pytest.approx(0.3)
    assert stats.ave_get_time == pytest.approx(2 / 3) and stats.ave_put_time == pytest.approx(6 / 3)
    assert stats.p99_put_time == pytest.approx(5.88) and stats.p90_get_time == pytest.approx(1.6)
    assert stats.occupancy_rate == pytest.approx(0.6)


def test_marks_are_not_items(clock):
    async def main():
        queue = StatsQueue(INFO, buffer_size=4)
        for item in (1, _EPOCH_END, 2, _EOF):
            await queue.put(item)
        clock.now += 1
        assert [await queue.get() for _ in range(4)] == [1, _EPOCH_END, 2, _EOF]
        return queue._total()

    stats = asyncio.run(main())
    assert stats.num_items == 2 and stats.qps == 2


def test_logs_at_the_end(caplog, clock):
    caplog.set_level(logging.INFO, "stoker.pipeline")

    async def main():
        queue = StatsQueue(INFO, buffer_size=5)
        async with queue.stage_hook():
            for i in range(5):
                await queue.put(i)
                await queue.get()
            assert not caplog.records
            clock.now += 2

    asyncio.run(main())
    (record,) = caplog.records
    assert "3:1:stage[4]" in record.getMessage() and "5 items" in record.getMessage()


def test_intervals_add_up(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")

    async def main():
        queue = Kept(INFO, buffer_size=8, interval=1e-3)
        async with queue.stage_hook():
            for i in range(7):
                await queue.put(i)
                await queue.get()
                if i % 3 == 0:
                    queue.called.clear()
                    await queue.called.wait()
        return queue.seen, queue._total()

    seen, total = asyncio.run(main())
    assert len(seen) >= 4 and sum(stats.num_items for stats in seen) == total.num_items == 7
    assert sum(stats.elapsed for stats in seen) == pytest.approx(total.elapsed, rel=0.2)
    assert all(0 <= stats.occupancy_rate <= 1 for stats in seen)
    assert len(caplog.records) == len(seen) + 1


def test_no_interval_no_callback():
    async def main():
        queue = Kept(INFO, buffer_size=1)
        async with queue.stage_hook():
            await queue.put(0)
        return queue.seen

    assert asyncio.run(main()) == []


def test_a_callback_that_fails_is_logged(caplog):
    class Broken(Kept):
        def interval_stats_callback(self, stats):  # not a coroutine function: allowed
            self.called.set()
            raise LookupError("no such table")

    async def main():
        queue = Broken(INFO, interval=1e-3)
        async with queue.stage_hook():
            await queue.called.wait()
            await queue.put(1)
            return await queue.get()

    assert asyncio.run(main()) == 1
    assert "no such table" in caplog.text


def test_the_body_s_error_passes(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")

    async def main():
        async with StatsQueue(INFO, interval=100).stage_hook():
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(main())
    assert "queue: 0 items" in caplog.text


def test_a_cancelled_stage_reports():
    async def main():
        queue = Kept(INFO, interval=1000)

        async def stage():
            async with queue.stage_hook():
                await queue.put(1)
                await queue.put(2)  # waits

        task = asyncio.create_task(stage())
        await asyncio.sleep(0)
        task.cancel()
        assert queue.get_nowait() == 1
        await asyncio.wait([task])
        assert task.cancelled()
        return queue.seen

    (stats,) = asyncio.run(main())
    assert stats.num_items == 1


def test_users_may_replace_all_of_it():
    class Mine(AsyncQueue):
        def __init__(self, info, *, buffer_size=1):
            super().__init__(info, buffer_size=buffer_size)
            self.log = []

        async def put(self, item):
            self.log.append(("put", item))
            await super().put(item)

        async def get(self):
            item = await super().get()
            self.log.append(("get", item))
            return item

        @asynccontextmanager
        async def stage_hook(self):
            async with super().stage_hook():
                self.log.append("enter")
                yield
                self.log.append("leave")

    async def main():
        queue = Mine(INFO, buffer_size=1)
        async with queue.stage_hook():
            await queue.put(1)
            await queue.get()
        return queue.log

    assert asyncio.run(main()) == ["enter", ("put", 1), ("get", 1), "leave"]


def test_perf_stats_are_plain_values():
    stats = QueuePerfStats(2.0, 10, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    assert stats.qps == 5 and stats.elapsed == 2 and stats.num_items == 10
    assert (stats.ave_put_time, stats.p90_put_time, stats.p99_put_time) == (0.1, 0.3, 0.4)
    assert (stats.ave_get_time, stats.p90_get_time, stats.p99_get_time) == (0.2, 0.5, 0.6)
    assert stats.occupancy_rate == 0.7 and pickle.loads(pickle.dumps(stats)) == stats
    assert QueuePerfStats(0, 0, 0, 0, 0, 0, 0, 0, 0).qps == 0
