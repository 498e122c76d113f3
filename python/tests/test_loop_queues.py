"""Queues of the user's class: what they see, and where they stand."""

from __future__ import annotations

import asyncio
import threading
import weakref
from contextlib import asynccontextmanager

import pytest

from lanes import Gate, chain, config, read, same
from stoker.pipeline import AsyncQueue, PipelineFailure, StatsQueue, build_pipeline, is_eof, is_epoch_end
from stoker.pipeline.config import set_default_queue_class
from stoker.pipeline.defs import Aggregate, Merge, PathVariants, Pipe, PipelineConfig, SinkConfig
from support import until


def shown(x):
    return "EOF" if is_eof(x) else "EPOCH" if is_epoch_end(x) else x


def seeing(base=AsyncQueue):
    """A queue class that writes down what passes; `.made` has its queues by stage."""

    class Seeing(base):
        made: dict = {}
        infos: list = []

        def __init__(self, info, *, buffer_size):
            super().__init__(info, buffer_size=buffer_size)
            self.size = buffer_size
            self.puts, self.gets, self.life = [], [], []
            self.most = 0
            Seeing.infos.append(info)
            Seeing.made[info.stage_name] = self

        async def put(self, item):
            assert threading.current_thread().name == "stoker-loop"
            await super().put(item)
            self.puts.append(shown(item))
            self.most = max(self.most, self.qsize())

        async def get(self):
            item = await super().get()
            self.gets.append(shown(item))
            return item

        @asynccontextmanager
        async def stage_hook(self):
            self.life.append("begin")
            async with super().stage_hook():
                yield
            self.life.append("end")

    return Seeing


async def plus(x):
    await asyncio.sleep(0)
    return x + 1


@pytest.mark.parametrize("base", [AsyncQueue, StatsQueue])
@pytest.mark.parametrize("op", [plus, lambda x: x + 1])
def test_a_queue_sees_each_put_and_get(base, op):
    Queue = seeing(base)
    assert read(chain(Pipe(op, name="op"), src=range(20), queue_class=Queue)) == (list(range(1, 21)), None)
    before, behind, sink = Queue.made["source"], Queue.made["op"], Queue.made["sink"]
    assert before.puts == before.gets == [*range(20), "EOF"]
    assert behind.puts == behind.gets == [*range(1, 21), "EOF"]
    assert sink.puts == sink.gets == [*range(1, 21), "EOF"]
    assert all(queue.life == ["begin", "end"] for queue in Queue.made.values())


def test_sizes_and_stage_ids():
    Queue = seeing()
    pipeline = chain(Pipe(plus, name="a", concurrency=3), Aggregate(2), sink=5, queue_class=Queue, stage_id=4)
    assert len(read(pipeline)[0]) == 5
    assert [(q.info.stage_id, q.size) for q in Queue.made.values()] == [("4", 2), ("5", 2), ("6", 2), ("7", 5)]
    assert len({info.pipeline_id for info in Queue.infos}) == 1
    assert Queue.made["a"].info.concurrency == 3
    assert str(Queue.made["a"].info).endswith(":5:a[3]")


def test_the_sink_of_a_thread_has_no_queue_of_the_user():
    Queue = seeing()
    pipeline = chain(Pipe(plus, name="op"), src=range(9), queue_class=Queue, use_thread_output_queue=True)
    assert read(pipeline) == (list(range(1, 10)), None)
    assert list(Queue.made) == ["source", "op"]
    assert Queue.made["op"].puts == Queue.made["op"].gets == [*range(1, 10), "EOF"]


def test_queues_hold_no_more_than_their_size():
    Queue = seeing()
    gate = Gate()
    pipeline = chain(Pipe(lambda x: x, name="a"), Pipe(gate, name="gate"), src=range(1000), queue_class=Queue)
    with pipeline.auto_stop():
        gate.until_inside(1)
        until(lambda: Queue.made["source"].full() and Queue.made["a"].full())
        gate.open()
        assert read(pipeline)[0] == list(range(1000))
    assert all(queue.most <= queue.size for queue in Queue.made.values())


def test_epochs_pass_through_queues():
    Queue = seeing()
    pipeline = chain(Pipe(plus, name="op"), src=range(2), continuous=True, queue_class=Queue)
    with pipeline.auto_stop():
        for _ in range(3):
            assert list(pipeline) == [1, 2]
        with pytest.raises(EOFError):
            for _ in range(3):
                pipeline.get_item()
    for queue in Queue.made.values():
        assert queue.gets[:6] in ([0, 1, "EPOCH"] * 2, [1, 2, "EPOCH"] * 2)


def test_none_passes_through_queues():
    Queue = seeing()
    assert read(chain(src=[None, 1, None], queue_class=Queue)) == ([None, 1, None], None)
    assert Queue.made["source"].puts == [None, 1, None, "EOF"]


def test_a_failure_passes_behind_the_items():
    Queue = seeing()

    def op(x):
        if x == 5:
            raise ValueError(x)
        return x

    items, error = read(chain(Pipe(op, name="op", max_failures=0), src=range(100), queue_class=Queue))
    assert items == list(range(5))
    assert isinstance(error, PipelineFailure)
    assert Queue.made["op"].puts == [*range(5), "EOF"]


@pytest.mark.parametrize("where", ["put", "get", "stage_hook"])
@pytest.mark.parametrize("error", [ValueError("queue"), asyncio.CancelledError("queue"), SystemExit("queue")])
def test_an_error_in_a_queue_fails_the_pipeline(where, error):
    class Bad(AsyncQueue):
        n = 0

        async def put(self, item):
            if where == "put" and self.info.stage_name == "op" and item == 3:
                raise error
            await super().put(item)

        async def get(self):
            item = await super().get()
            if where == "get" and self.info.stage_name == "op" and item == 3:
                raise error
            return item

        @asynccontextmanager
        async def stage_hook(self):
            if where == "stage_hook" and self.info.stage_name == "op":
                raise error
            yield

    items, failure = read(chain(Pipe(plus, name="op"), src=range(10), queue_class=Bad))
    assert isinstance(failure, PipelineFailure)
    assert items == [1, 2][: len(items)]
    (first,) = failure.exceptions
    assert (first if isinstance(error, Exception) else first.__cause__) is error


def test_a_queue_may_reorder_and_repeat():
    class Stack(AsyncQueue):
        async def put(self, item):
            await super().put(item)
            if not is_eof(item):
                await super().put(-item)

    items, _ = read(chain(src=[1, 2, 3], queue_class=Stack))
    assert [abs(item) for item in items] == [1] * 4 + [2] * 4 + [3] * 4


def test_a_queue_may_want_more_than_is_skipped_at_once():
    """What was skipped waits for values that the queue gives only once it has many."""
    num, every = 350, 100  # more is skipped before that than a port holds

    class Buffering(AsyncQueue):
        def __init__(self, info, *, buffer_size=1):
            super().__init__(info, buffer_size=2 * num)
            self.filled = asyncio.Event()

        async def put(self, item):
            await super().put(item)
            if is_eof(item) or self.qsize() >= num:
                self.filled.set()

        async def get(self):
            await self.filled.wait()
            return await super().get()

    few = Pipe(lambda x: x if x % every == 0 else None)
    items, error = read(chain(few, Pipe(same), src=range(2 * num * every), queue_class=Buffering))
    assert (items, error) == (list(range(0, 2 * num * every, every)), None)


def test_a_queue_may_drop():
    """What it drops is gone at once, and leaves nothing behind."""

    class Thing:
        alive: weakref.WeakSet = weakref.WeakSet()

        def __init__(self, number):
            self.number = number
            Thing.alive.add(self)

    class EveryHundredth(AsyncQueue):
        most = 0

        async def put(self, item):
            if is_eof(item) or item.number % 100 == 0:
                await super().put(item)
            else:
                EveryHundredth.most = max(EveryHundredth.most, len(Thing.alive))

    pipeline = chain(src=(Thing(i) for i in range(20000)), queue_class=EveryHundredth)
    numbers = []
    for thing in pipeline:
        numbers.append(thing.number)
        del thing
    assert numbers == list(range(0, 20000, 100))
    assert EveryHundredth.most < 3000, "those in queues, and on their way"


def loops() -> int:
    return sum(thread.name == "stoker-loop" for thread in threading.enumerate())


def test_a_stop_ends_queues_that_are_full():
    until(lambda: not loops())  # of tests that dropped theirs
    Queue = seeing()
    pipeline = chain(Pipe(plus), src=range(10**6), queue_class=Queue)
    with pipeline.auto_stop():
        assert pipeline.get_item() == 1
    assert not loops()


def test_queues_of_variants_and_merges():
    Queue = seeing()
    merged = PipelineConfig(
        Merge([config(src=range(3)), config(src=range(3, 6))]),
        [PathVariants(lambda x: x % 2, [[Pipe(plus, name="a")], [Pipe(plus, name="b")]])],
        SinkConfig(3),
    )
    items, _ = read(build_pipeline(merged, num_threads=2, queue_class=Queue))
    assert sorted(items) == [1, 2, 3, 4, 5, 6]
    assert sorted(Queue.made["a"].puts[:-1]) == [1, 3, 5]
    assert sorted(Queue.made["b"].puts[:-1]) == [2, 4, 6]
    assert sorted(Queue.made["path_variants_path0"].puts[:-1]) == [0, 2, 4]
    assert sorted(Queue.made["path_variants_path1"].puts[:-1]) == [1, 3, 5]
    assert sorted(Queue.made["path_variants_merge"].puts[:-1]) == [1, 2, 3, 4, 5, 6]


def test_the_default_queue_class_gets_an_interval():
    made = []

    class Queue(StatsQueue):
        def __init__(self, info, *, buffer_size=1, interval=-1):
            super().__init__(info, buffer_size=buffer_size, interval=interval)
            made.append((info.stage_name, interval))

    set_default_queue_class(Queue)
    try:
        assert read(chain(Pipe(plus, name="op"), src=range(3), report_stats_interval=50))[0] == [1, 2, 3]
    finally:
        set_default_queue_class()
    assert made == [("source", 50), ("op", 50), ("sink", 50)]
    made.clear()
    assert read(chain(Pipe(plus), src=range(3)))[0] == [1, 2, 3]
    assert made == []


@pytest.mark.parametrize("choice", [AsyncQueue, StatsQueue])
def test_the_own_queue_classes_need_no_loop(choice):
    until(lambda: not loops())
    before = threading.active_count()
    seen = []

    def op(x):
        seen.append(loops())
        return x

    assert read(chain(Pipe(op), queue_class=choice))[0] == list(range(10))
    assert not any(seen)
    until(lambda: threading.active_count() <= before)
