"""The event loop's life: background tasks, and what many pipelines leave behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

import pytest

from lanes import chain, read
from stoker.pipeline import BackgroundTask, StatsQueue
from stoker.pipeline.config import set_default_background_tasks
from stoker.pipeline.defs import Pipe
from support import resident, until


class Task(BackgroundTask):
    def __init__(self) -> None:
        self.events: list[str] = []
        self.threads: set[str] = set()

    async def run(self) -> None:
        self.events.append("begin")
        self.threads.add(threading.current_thread().name)
        try:
            await asyncio.Event().wait()
        finally:
            self.events.append("end")


async def same(x):
    await asyncio.sleep(0)
    return x


@pytest.mark.parametrize("op", [same, lambda x: x])
def test_a_background_task_lives_as_long_as_the_pipeline(op):
    task = Task()
    pipeline = chain(Pipe(op), background_tasks=[task])
    assert task.events == []
    with pipeline.auto_stop():
        until(lambda: task.events)
        assert [pipeline.get_item() for _ in range(10)] == list(range(10))
        assert task.events == ["begin"]  # the run ends where its end is read
    assert task.events == ["begin", "end"]
    assert task.threads == {"stoker-loop"}


def test_factories_make_a_task_for_each_pipeline():
    made = []

    def factory():
        made.append(Task())
        return made[-1]

    for _ in range(2):
        pipeline = chain(Pipe(same), background_tasks=[factory])
        with pipeline.auto_stop():
            until(lambda: made and made[-1].events)
            read(pipeline)
    assert [task.events for task in made] == [["begin", "end"]] * 2


@pytest.mark.parametrize("error", [ValueError("task"), asyncio.CancelledError()])
def test_an_error_in_a_background_task_leaves_the_pipeline_alone(error, caplog):
    class Bad(Task):
        async def run(self):
            raise error

    good = Task()
    pipeline = chain(Pipe(same), background_tasks=[Bad(), good])
    with pipeline.auto_stop():
        until(lambda: good.events)
        assert read(pipeline) == (list(range(10)), None)
    assert good.events == ["begin", "end"]
    assert ("task" in caplog.text) == isinstance(error, ValueError)


def test_default_background_tasks_run_beside_pipelines_without_their_own():
    default, own = Task(), Task()
    set_default_background_tasks([default])
    try:
        pipelines = [chain(Pipe(same)), chain(Pipe(same), background_tasks=[own])]
    finally:
        set_default_background_tasks(None)
    for pipeline, task in zip(pipelines, (default, own), strict=True):
        with pipeline.auto_stop():
            until(lambda: task.events)
    assert default.events == own.events == ["begin", "end"]


def test_a_pipeline_with_a_background_task_that_is_dropped_ends_it():
    task = Task()
    pipeline = chain(Pipe(same), background_tasks=[task])
    pipeline.get_item()
    until(lambda: task.events)
    del pipeline
    gc.collect()
    until(lambda: task.events == ["begin", "end"])


class Queue(StatsQueue):
    pass


async def source():
    for i in range(100):
        yield i


async def generator(x):
    yield x
    yield x


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def use(i: int) -> None:
    """A pipeline that is read to its end, to its middle, or not at all; stopped, or dropped."""
    options = {"queue_class": Queue} if i % 5 == 0 else {}
    stages = [Pipe(same, concurrency=2), Pipe(generator), Pipe(len_of, timeout=50 if i % 7 == 0 else None)]
    pipeline = chain(*stages, src=source() if i % 3 == 0 else range(20), **options)
    if i % 4 == 0:
        read(pipeline)
    elif i % 4 == 1:
        pipeline.get_item()
        pipeline.stop()
    elif i % 4 == 2:
        pipeline.get_item()


def len_of(x):
    return len(str(x))


def use_many(n: int) -> None:
    """Few at once: those that are dropped end on their own."""
    for i in range(n):
        use(i)
        if i % 20 == 0 or i == n - 1:
            gc.collect()
            until(lambda: not any(t.name.startswith("stoker") for t in threading.enumerate()))


def test_many_pipelines_leave_no_thread_and_no_descriptor():
    use_many(30)
    before = descriptors()
    use_many(150)
    assert descriptors() <= before


@pytest.mark.figures
def test_many_pipelines_leave_no_memory():
    use_many(200)
    before = resident()
    use_many(300)
    assert resident() < before + 8 * 2**20  # 27 KiB a pipeline would be seen


def test_pipelines_that_were_never_started_leave_nothing():
    before = threading.active_count(), descriptors()
    for _ in range(100):
        chain(Pipe(same), Pipe(generator), queue_class=Queue, background_tasks=[Task()])
    gc.collect()
    assert (threading.active_count(), descriptors()) == before
