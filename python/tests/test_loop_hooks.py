"""Hooks around stages and items."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import asynccontextmanager, contextmanager

import pytest

from lanes import chain, config, read
from stoker.pipeline import PipelineFailure, TaskHook, TaskStatsHook, build_pipeline
from stoker.pipeline.config import set_default_hook_class
from stoker.pipeline.defs import Aggregate, Disaggregate, Merge, PathVariants, Pipe, PipelineConfig, SinkConfig


class Record(TaskHook):
    """Writes down what it sees, in the order of the events."""

    def __init__(self, info=None) -> None:
        self.info = info
        self.events: list = []

    @asynccontextmanager
    async def stage_hook(self):
        self.events.append("begin")
        try:
            yield
        finally:
            await asyncio.sleep(0)
            self.events.append("end")

    @asynccontextmanager
    async def task_hook(self, input_item=None):
        assert threading.current_thread().name == "stoker-loop"
        self.events.append(("in", input_item))
        try:
            yield
        except BaseException as error:
            self.events.append((type(error).__name__, input_item))
            raise
        else:
            self.events.append(("out", input_item))


class Records:
    """A factory; `by` has the one hook of each stage, by its name."""

    def __init__(self, make=Record) -> None:
        self.make = make
        self.by: dict[str, TaskHook] = {}
        self.infos: list = []

    def __call__(self, info):
        self.infos.append(info)
        self.by[info.stage_name] = self.make(info)
        return [self.by[info.stage_name]]


async def plus(x):
    await asyncio.sleep(0)
    return x + 1


def sync_plus(x):
    return x + 1


@pytest.mark.parametrize("op", [plus, sync_plus])
@pytest.mark.parametrize("order", ["completion", "input"])
def test_hooks_are_around_each_item(op, order):
    hooks = Records()
    items, _ = read(chain(Pipe(op, name="op", output_order=order), src=range(4), task_hook_factory=hooks))
    assert items == [1, 2, 3, 4]
    steps = [event for x in range(4) for event in (("in", x), ("out", x))]
    assert hooks.by["op"].events == ["begin", *steps, "end"]


@pytest.mark.parametrize("op", [plus, sync_plus])
def test_as_many_are_inside_the_hooks_as_the_concurrency_allows(op):
    inside = most = 0

    class Hook(TaskHook):
        @asynccontextmanager
        async def task_hook(self, input_item=None):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            yield
            inside -= 1

    stage = Pipe(op, concurrency=3)
    items, _ = read(chain(stage, src=range(50), task_hook_factory=lambda info: [Hook()]))
    assert sorted(items) == list(range(1, 51))
    assert 1 <= most <= 3
    assert inside == 0


def test_the_factory_is_asked_for_every_stage_but_the_ends():
    hooks = Records()
    stages = [
        Pipe(plus, name="a", concurrency=2),
        Aggregate(2),
        Disaggregate(),
        PathVariants(lambda x: 0, [[Pipe(sync_plus, name="b")]]),
    ]
    items, _ = read(chain(*stages, src=range(4), task_hook_factory=hooks, stage_id=7))
    assert sorted(items) == [2, 3, 4, 5]
    assert [info.stage_name for info in hooks.infos if info.stage_name != "path_variants_merge"] == [
        "a", stages[1].name, stages[2].name, "path_variants", "b"
    ]
    assert [info.stage_id for info in hooks.infos][:5] == ["8", "9", "10", "11", "12"]
    assert hooks.infos[0].concurrency == 2


def test_several_hooks_nest_in_their_order():
    events = []

    class Hook(TaskHook):
        def __init__(self, name):
            self.name = name

        @asynccontextmanager
        async def task_hook(self, input_item=None):
            events.append(f"+{self.name}")
            yield
            events.append(f"-{self.name}")

    read(chain(Pipe(plus), src=[0], task_hook_factory=lambda info: [Hook("a"), Hook("b")]))
    assert events == ["+a", "+b", "-b", "-a"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_has_hooks_around_each_step(is_async):
    async def stream(x):
        for i in range(x):
            yield i

    def sync_stream(x):
        yield from range(x)

    hooks = Records()
    stage = Pipe(stream if is_async else sync_stream, name="g")
    assert read(chain(stage, src=[2, 0, 1], task_hook_factory=hooks)) == ([0, 1, 0], None)
    seen = Counter(hooks.by["g"].events)
    assert seen["in", 2] == 3 and seen["out", 2] == 2 and seen["StopAsyncIteration", 2] == 1
    assert seen["in", 0] == 1 and seen["StopAsyncIteration", 0] == 1
    assert seen["in", 1] == 2 and seen["out", 1] == 1


def test_a_hook_that_swallows_the_end_of_a_generator_does_not_loop():
    class Swallow(TaskHook):
        @asynccontextmanager
        async def task_hook(self, input_item=None):
            try:
                yield
            except StopAsyncIteration:
                pass

    async def stream(x):
        yield x
        yield x

    items, _ = read(chain(Pipe(stream), src=range(3), task_hook_factory=lambda info: [Swallow()]))
    assert items == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("op", [plus, sync_plus])
def test_a_hook_that_swallows_an_error_does_not_save_the_item(op):
    class Swallow(TaskHook):
        @asynccontextmanager
        async def task_hook(self, input_item=None):
            try:
                yield
            except TypeError:
                pass

    pipeline = chain(Pipe(op), src=[1, "x", 3], task_hook_factory=lambda info: [Swallow()])
    assert read(pipeline) == ([2, 4], None)
    assert len(pipeline.failures()) == 1
    pipeline = chain(Pipe(op, max_failures=0), src=[1, "x", 3], task_hook_factory=lambda info: [Swallow()])
    assert isinstance(read(pipeline)[1], PipelineFailure)


@pytest.mark.parametrize("when", ["enter", "exit"])
@pytest.mark.parametrize("kind", ["async", "sync", "disaggregate", "aggregate"])
def test_an_error_in_a_task_hook_drops_the_item(when, kind):
    class Bad(TaskHook):
        def __init__(self):
            self.n = 0

        @asynccontextmanager
        async def task_hook(self, input_item=None):
            self.n += 1
            n = self.n
            if n == 2 and when == "enter":
                raise ValueError("hook")
            yield
            if n == 2 and when == "exit":
                raise ValueError("hook")

    stage, src, expected = {
        "async": (Pipe(plus), range(4), [1, 3, 4]),
        "sync": (Pipe(sync_plus), range(4), [1, 3, 4]),
        "disaggregate": (Disaggregate(), [[0, 1, 2]], [0]),
        "aggregate": (Aggregate(1), range(4), [[0], [2], [3]]),
    }[kind]
    if kind == "aggregate" and when == "enter":
        expected = [[0], [2], [3]]
    pipeline = chain(stage, src=src, task_hook_factory=lambda info: [Bad()])
    assert read(pipeline) == (expected, None)
    assert len(pipeline.failures()) == 1


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_aggregate_calls_the_hook_for_each_item_and_the_flush(drop_last):
    hooks = Records()
    items, _ = read(chain(Aggregate(2, drop_last=drop_last), src=range(5), task_hook_factory=hooks))
    assert items == [[0, 1], [2, 3]] + ([] if drop_last else [[4]])
    (hook,) = hooks.by.values()
    assert Counter(event[0] for event in hook.events[1:-1]) == {"in": 6 - drop_last, "out": 6 - drop_last}


def test_a_disaggregate_has_hooks():
    hooks = Records()
    assert read(chain(Disaggregate(), src=[[1, 2], [], [3]], task_hook_factory=hooks)) == ([1, 2, 3], None)
    (hook,) = hooks.by.values()
    assert Counter(event[0] for event in hook.events[1:-1])["out"] == 3


def test_routers_have_hooks():
    hooks = Records()

    async def later(x):
        return x % 2

    for router in (lambda x: x % 2, later):
        variants = PathVariants(router, [[Pipe(sync_plus, name="even")], [Pipe(plus, name="odd")]])
        items, _ = read(chain(variants, src=range(6), task_hook_factory=hooks))
        assert sorted(items) == [1, 2, 3, 4, 5, 6]
        assert hooks.by["path_variants"].events.count("begin") == 1
        assert Counter(e[0] for e in hooks.by["path_variants"].events[1:-1]) == {"in": 6, "out": 6}
        assert ("in", 2) in hooks.by["even"].events and ("in", 3) in hooks.by["odd"].events


def test_a_merge_has_a_stage_hook():
    hooks = Records()
    merged = PipelineConfig(Merge([config(src=[1, 2]), config(src=[3])]), [], SinkConfig(3))
    items, _ = read(build_pipeline(merged, num_threads=1, task_hook_factory=hooks))
    assert sorted(items) == [1, 2, 3]
    assert hooks.by["merge"].events[0] == "begin" and hooks.by["merge"].events[-1] == "end"


@pytest.mark.parametrize("when", ["enter", "exit"])
@pytest.mark.parametrize("op", [plus, sync_plus])
def test_an_error_in_a_stage_hook_fails_the_stage(when, op):
    class Bad(TaskHook):
        @asynccontextmanager
        async def stage_hook(self):
            if when == "enter":
                raise ValueError("hook")
            yield
            raise ValueError("hook")

        @asynccontextmanager
        async def task_hook(self, input_item=None):
            yield

    items, error = read(chain(Pipe(op), src=range(3), task_hook_factory=lambda info: [Bad()]))
    assert items == ([] if when == "enter" else [1, 2, 3])
    assert [str(e) for e in error.exceptions] == ["hook"]


def test_a_failure_survives_a_slow_exit_of_a_stage_hook():
    class Slow(Record):
        @asynccontextmanager
        async def stage_hook(self):
            try:
                yield
            finally:
                await asyncio.Event().wait()

    pipeline = chain(Pipe(plus, max_failures=0), src=["x"], task_hook_factory=Records(Slow))
    with pytest.raises(PipelineFailure):
        list(pipeline)
    pipeline.stop()
    pipeline = chain(Pipe(plus, max_failures=0), src=["x"], task_hook_factory=Records(Slow))
    pipeline.start()
    with pytest.raises(PipelineFailure):
        pipeline.get_item()


def test_a_stage_hook_that_is_no_context_manager_is_refused_at_build():
    class Coroutine(Record):
        async def stage_hook(self):
            pass

    class Sync(Record):
        @contextmanager
        def stage_hook(self):
            yield

    class Generator(Record):
        async def stage_hook(self):
            yield

    for hook in (Coroutine, Sync, Generator):
        for stage in (Pipe(plus), Pipe(sync_plus), Aggregate(2)):
            with pytest.raises(ValueError, match=r"`stage_hook\(\)`.*asynccontextmanager"):
                chain(stage, task_hook_factory=Records(hook))


def test_a_task_hook_that_is_no_context_manager_drops_every_item():
    class Coroutine(Record):
        async def task_hook(self, input_item=None):
            pass

    pipeline = chain(Pipe(plus), src=range(3), task_hook_factory=Records(Coroutine))
    assert read(pipeline) == ([], None)
    assert len(pipeline.failures()) == 3
    assert "`task_hook()`" in str(pipeline.failures()[0].__cause__)


def test_the_default_hook_class_gets_an_interval():
    made = []

    class Hook(TaskStatsHook):
        def __init__(self, info, interval=-1):
            super().__init__(info, interval)
            made.append((self, interval))

    set_default_hook_class(Hook)
    try:
        pipeline = chain(Pipe(plus), Pipe(sync_plus), src=[1, "x", 3], report_stats_interval=50)
        assert read(pipeline)[0] == [3, 5]
    finally:
        set_default_hook_class()
    (first, interval), (second, _) = made
    assert interval == 50
    pipeline.stop()
    assert (first.num_tasks, first.num_success) == (3, 2)
    assert (second.num_tasks, second.num_success) == (2, 2)
    assert first.ave_time > 0


def test_where_paths_come_together_is_a_stage():
    hooks = Records()
    variants = PathVariants(lambda x: x % 2, [[Pipe(sync_plus)], [Pipe(sync_plus)]])
    pipeline = chain(variants, src=range(6), task_hook_factory=hooks)
    with pipeline.auto_stop():
        assert sorted(pipeline) == list(range(1, 7))
    merge = hooks.by["path_variants_merge"]
    assert [str(info).partition(":")[2] for info in hooks.infos] == [
        "1:path_variants[1]", "2:sync_plus[1]", "3:sync_plus[1]", "4:path_variants_merge"
    ]  # fmt: skip
    assert merge.events == ["begin", "end"]  # it has no tasks
