"""What users' code on the event loop raises beside Exception ends the pipeline with it, not the data."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from lanes import chain, config, read, same
from stoker.pipeline import AsyncQueue, BackgroundTask, PipelineFailure, TaskHook, build_pipeline, is_eof
from stoker.pipeline.defs import Aggregate, Aggregator, Merge, Pipe, PipelineConfig, SinkConfig


class Panic(BaseException):
    """As extensions in other languages raise."""


KINDS = [Panic, GeneratorExit, KeyboardInterrupt, SystemExit, asyncio.CancelledError]
kinds = pytest.mark.parametrize("kind", KINDS)


def ends_with(pipeline, kind) -> list:
    """The items before its failure, of which an exception of this kind is the cause."""
    items, error = read(pipeline)
    assert type(error) is PipelineFailure, items
    assert any(type(inner.__cause__) is kind for inner in error.exceptions), error.exceptions
    pipeline.stop()
    return items


@kinds
@pytest.mark.parametrize("generates", [False, True])
def test_an_async_source(kind, generates):
    async def generator():
        yield 1
        yield 2
        raise kind("no more")

    class Source:
        def __init__(self):
            self.left = 2

        def __aiter__(self):
            return self

        async def __anext__(self):
            await asyncio.sleep(0)
            if not self.left:
                raise kind("no more")
            self.left -= 1
            return 2 - self.left

    assert ends_with(chain(Pipe(same), src=generator() if generates else Source()), kind) == [1, 2]


@kinds
def test_an_async_generator(kind):
    async def op(x):
        if x == 2:
            raise kind("no more")
        yield x

    pipeline = chain(Pipe(op), src=range(5))
    if kind is asyncio.CancelledError:  # may be of something that the op waits for: costs the item
        assert read(pipeline) == ([0, 1, 3, 4], None)
    else:
        assert ends_with(pipeline, kind) == [0, 1]


@kinds
def test_a_merge_op(kind):
    async def op(info, inputs, output):
        await output.put(await inputs[0].get())
        raise kind("no more")

    merge = Merge([config(src=[1]), config(src=[1])], op)
    assert ends_with(build_pipeline(PipelineConfig(merge, [], SinkConfig(3)), num_threads=2), kind) == [1]


class Hook(TaskHook):
    def __init__(self, where: str, kind: type[BaseException]) -> None:
        self.where = where
        self.kind = kind

    def at(self, where: str) -> None:
        if where == self.where:
            raise self.kind(where)

    @asynccontextmanager
    async def stage_hook(self):
        self.at("entry")
        yield
        self.at("exit")

    @asynccontextmanager
    async def task_hook(self, input_item=None):
        if input_item == 2:
            self.at("begin")
        yield
        if input_item == 2:
            self.at("end")


@kinds
@pytest.mark.parametrize("where", ["entry", "exit"])
def test_a_stage_hook(where, kind):
    pipeline = chain(Pipe(same), src=range(3), task_hook_factory=lambda info: [Hook(where, kind)])
    assert ends_with(pipeline, kind) == ([] if where == "entry" else [0, 1, 2])


@pytest.mark.parametrize("kind", [Panic, GeneratorExit])
@pytest.mark.parametrize("where", ["begin", "end"])
@pytest.mark.parametrize("stage", [Pipe(same), Aggregate(1)])
def test_a_task_hook(stage, where, kind):
    pipeline = chain(stage, src=range(5), task_hook_factory=lambda info: [Hook(where, kind)])
    assert len(ends_with(pipeline, kind)) == 2


@kinds
def test_an_aggregator_with_hooks(kind):
    class Bad(Aggregator):
        def accumulate(self, item):
            if item == 2:
                raise kind("no more")
            return item

        def flush(self):
            return None

    pipeline = chain(Aggregate(Bad()), src=range(5), task_hook_factory=lambda info: [Hook("", kind)])
    assert ends_with(pipeline, kind) == [0, 1]


@kinds
@pytest.mark.parametrize("where", ["put", "get", "end"])
def test_a_queue(where, kind):
    class Bad(AsyncQueue):
        async def put(self, item):
            if where == "put" and item == 2 or where == "end" and is_eof(item):
                raise kind("no more")
            await super().put(item)

        async def get(self):
            item = await super().get()
            if where == "get" and item == 2:
                raise kind("no more")
            return item

    items = ends_with(chain(Pipe(same), src=range(5), queue_class=Bad), kind)
    assert items == [0, 1, 2, 3, 4][: len(items)]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("stages", [1, 3])
def test_a_task_that_an_op_made(stages, kind):
    """Such exceptions leave asyncio's loop, which goes on until everybody has heard of it."""
    tasks = []

    async def ends(x):
        raise kind(x)

    async def op(x):
        if x == 3:
            tasks.append(asyncio.create_task(ends(x)))
            await asyncio.sleep(0)
        return x

    pipeline = chain(*[Pipe(op)] * stages, src=range(10**6))
    items = ends_with(pipeline, kind)
    assert items == list(range(len(items)))
    assert all(isinstance(task.exception(), kind) for task in tasks)


@pytest.mark.parametrize("kind", [Panic, KeyboardInterrupt, SystemExit])
def test_a_background_task(kind, caplog):
    """Its error is logged, and leaves the pipeline alone."""

    class Task(BackgroundTask):
        async def run(self):
            raise kind("beside")

    async def op(x):
        await asyncio.sleep(0)
        return x

    pipeline = chain(Pipe(op), src=range(100), background_tasks=[Task()])
    assert read(pipeline) == (list(range(100)), None)
    pipeline.stop()
    assert f"{kind.__name__}: beside" in caplog.text
