"""What a stop that gives up says: the stage, the op and the item that it waited for."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager

import pytest

from lanes import chain, config, same
from stoker.pipeline import TaskHook, build_pipeline
from stoker.pipeline.defs import (
    Aggregate,
    Aggregator,
    Disaggregate,
    Merge,
    PathVariants,
    Pipe,
    PipelineConfig,
    SinkConfig,
)

begun, go = threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def gate():
    begun.clear()
    go.clear()
    yield
    go.set()


def wait(item):
    if "b" in str(item):
        begun.set()
        assert go.wait(60)
    return item


def slow(item):
    return wait(item)


def steps(item):
    yield item
    yield wait(item)


def router(item):
    wait(item)
    return 0


async def blocks(item):
    return wait(item)


class Slow(Aggregator):
    def accumulate(self, item):
        return wait(item)

    def flush(self):
        return None


class Hook(TaskHook):
    @asynccontextmanager
    async def task_hook(self, input_item=None):
        yield


def text_of(pipeline) -> str:
    """What stop() says while an op is at item "b"."""
    pipeline.start()
    assert begun.wait(60)
    with pytest.raises(TimeoutError, match="Thread did not join after 0.3 seconds: ") as caught:
        pipeline.stop(timeout=0.3)
    go.set()
    pipeline.stop()
    return str(caught.value)


STAGES = {
    "op": (Pipe(slow, name="load"), "load", "slow at "),
    "several": (Pipe(slow, name="load", concurrency=3), "load", "slow at "),
    "generator": (Pipe(steps), "steps", "steps at "),
    "aggregator": (Aggregate(Slow()), "aggregate", "Slow"),
    "router": (PathVariants(router, [[Pipe(same)]], "choose"), "choose", "router at "),
    "retries": (Pipe(slow, retries=2), "slow", "slow at "),
}


@pytest.mark.parametrize("kind", STAGES)
def test_an_op_of_pythons_threads(kind):
    stage, name, op = STAGES[kind]
    text = text_of(chain(stage, src="ab", sink=8))
    assert f"stage '{name}' is still running item 1 (" in text and op in text, text


def test_the_second_of_fused_stages():
    text = text_of(chain(Pipe(same), Pipe(slow, name="load"), Pipe(same), src="ab"))
    assert "stage 'load' is still running item 1 (op slow at " in text, text


def test_an_op_behind_a_disaggregate():
    text = text_of(chain(Disaggregate(), Pipe(slow, name="load"), src=[["a", "b"]]))
    assert "stage 'load' is still running item " in text and "op slow at " in text, text


def test_several_items():
    class Both:
        def __init__(self):
            self.barrier = threading.Barrier(2)

        def __call__(self, item):
            self.barrier.wait(60)
            return wait("b")

    text = text_of(chain(Pipe(Both(), concurrency=2), src=range(2)))
    assert "beside 1 more: the run ends when they do" in text, text


@pytest.mark.parametrize("kind", STAGES)
def test_an_op_beside_hooks(kind):
    stage, name, op = STAGES[kind]
    text = text_of(chain(stage, src="ab", sink=8, task_hook_factory=lambda info: [Hook()]))
    assert f"stage {name}, op " in text and op in text and "'b'" in text, text


@pytest.mark.parametrize("stage", [Pipe(slow, timeout=60), Pipe(steps, timeout=60), Pipe(blocks)])
def test_an_op_beside_the_loop(stage):
    text = text_of(chain(stage, src="ab", sink=8))
    assert f"stage {stage.name}, op {stage.name} at " in text and "'b'" in text, text


def test_an_async_source():
    async def source():
        yield wait("b")

    text = text_of(chain(Pipe(same), src=source()))
    assert "stage source, op " in text and "source at " in text, text


def test_a_merge_op():
    async def merge(info, inputs, output):
        wait("b")

    cfg = PipelineConfig(Merge([config(src="a")], merge), [], SinkConfig(3))
    text = text_of(build_pipeline(cfg, num_threads=1))
    assert "stage merge, op " in text and "merge at " in text, text
