"""What a pipeline says of itself."""

from __future__ import annotations

import gc
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lanes import Gate
from stoker import PipelineBuilder, source
from stoker.pipeline import AsyncQueue, QueuePerfStats, TaskHook, TaskPerfStats, TaskStatsHook
from support import build, builder, pass_time, until

STAGE = {
    "name", "kind", "concurrency", "running", "items", "failed", "substituted", "bytes", "busy_s",
    "wait_in_s", "wait_out_s",
}  # fmt: skip
QUEUE = {"name", "capacity", "len", "puts", "occupancy", "full", "empty"}


def test_stats(paths):
    pipeline = build(source.List(paths), batch=8, read={"name": "load"})
    before = pipeline.stats()
    assert before["stages"] == [] and before["verdict"] == "not started"
    batches = list(pipeline)
    stats = pipeline.stats()
    assert stats.keys() == before.keys()
    assert all(stage.keys() == STAGE for stage in stats["stages"])
    assert all(queue.keys() == QUEUE for queue in stats["queues"]) and stats["queues"]
    by_name = {stage["name"]: stage for stage in stats["stages"]}
    assert by_name["load"]["items"] == by_name["decode_image"]["items"] == 48
    assert by_name["load"]["bytes"] == sum(p.stat().st_size for p in paths)
    assert by_name["decode_image"]["bytes"] == 48 * 32 * 32 * 3
    assert by_name["decode_image"]["busy_s"] > 0 and by_name["load"]["kind"] == "map"
    assert stats["results"] == len(batches) == 6 and stats["num_threads"] == 2
    assert 0 < stats["first_result_s"] <= stats["elapsed_s"]
    assert isinstance(stats["verdict"], str) and stats["verdict"]
    assert stats["bottleneck"] is None or stats["bottleneck"] in by_name


def test_at_any_moment(paths):
    pipeline = build(source.List(paths, epochs=None))
    with pipeline.auto_stop():
        last = -1
        for batch, _ in zip(pipeline, range(20)):
            stats = pipeline.stats()
            assert stats["results"] > last
            last = stats["results"]
            assert batch
    assert pipeline.stats()["verdict"]


def test_a_slow_consumer_is_named(paths):
    pipeline = build(source.List(paths, epochs=None), sink=1)
    with pipeline.auto_stop():
        for _, _ in zip(pipeline, range(8)):
            pass_time(0.05)
        stats = pipeline.stats()
    assert "consumer" in stats["verdict"], stats


def test_a_heavy_stage_is_named(paths):
    pipeline = build(source.List(paths, epochs=20), size=500, flip=0.0, threads=1)
    for _ in pipeline:
        pass
    assert "decode_image" in pipeline.stats()["verdict"]
    assert pipeline.stats()["bottleneck"] == "decode_image"


def test_reports(paths, caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    pipeline = builder(source.List(paths)).build(num_threads=1, report_stats_interval=1e-9, stage_id=5)
    list(pipeline)
    assert "decode_image" in caplog.text and "6:" in caplog.text
    caplog.clear()
    list(builder(source.List(paths)).build(num_threads=1))
    assert len(caplog.records) == len({record.getMessage() for record in caplog.records})  # the totals


def test_the_plan_is_printed(photos):
    pipeline = build(source.Directory(photos, shuffle=True))
    for word in ("read", "decode_image", "batch", "sink"):
        assert word in str(pipeline)


def test_failures_are_none_at_first(paths):
    pipeline = build(source.List(paths))
    assert pipeline.failures() == []
    list(pipeline)
    assert pipeline.failures() == []


@pytest.mark.parametrize("threads", [1, 3])
def test_num_threads(paths, threads):
    pipeline = build(source.List(paths), threads=threads)
    list(pipeline)
    assert pipeline.stats()["num_threads"] == threads


# --- in the terms of hooks and queues, which nobody asked for ---


def odd(x):
    if x % 2:
        raise LookupError(x)
    pass_time(0.01)
    return x


async def same(x):
    return x


def lines(caplog, text):
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


def test_figures_of_tasks_and_queues():
    builder = PipelineBuilder().add_source(range(20)).pipe(odd, concurrency=2).pipe(same)
    pipeline = builder.aggregate(5).add_sink(2).build(num_threads=3, stage_id=4)
    assert pipeline.task_stats() == pipeline.queue_stats() == []
    assert len(list(pipeline)) == 2
    tasks = pipeline.task_stats()
    assert [str(info).partition(":")[2] for info, _ in tasks] == ["5:odd[2]", "6:same[1]", "7:aggregate[1]"]
    assert [(t.num_tasks, t.num_failures) for _, t in tasks] == [(20, 10), (10, 0), (10, 0)]
    slow, quick, _ = (t for _, t in tasks)
    assert isinstance(slow, TaskPerfStats)
    assert 0.01 <= slow.ave_time and 0.009 < slow.p90_time <= slow.p99_time
    assert 0 < quick.ave_time < slow.ave_time and 0 < quick.p90_time <= quick.p99_time
    queues = pipeline.queue_stats()
    assert {info.stage_name for info, _ in queues} == {"source", "odd", "same", "aggregate", "sink"}
    by_name = {info.stage_name: q for info, q in queues}
    assert {name: q.num_items for name, q in by_name.items()} == {
        "source": 20, "odd": 10, "same": 10, "aggregate": 2, "sink": 2,
    }  # fmt: skip
    behind = by_name["odd"]
    assert isinstance(behind, QueuePerfStats) and behind.qps == pytest.approx(10 / behind.elapsed)
    assert 0 < behind.ave_get_time and 0.001 < behind.p90_get_time <= behind.p99_get_time
    assert all(0 <= q.occupancy_rate <= 1 for _, q in queues) and queues[-1][0].stage_name == "sink"


def test_times_are_of_tasks_that_succeed():
    def op(x):
        if x:
            pass_time(0.1)
            raise LookupError(x)

    pipeline = PipelineBuilder().add_source([0, 1, 2]).pipe(op).add_sink(2).build(num_threads=1)
    assert list(pipeline) == []
    ((_, stats),) = pipeline.task_stats()
    assert (stats.num_tasks, stats.num_failures) == (3, 2)
    assert 0 < stats.ave_time < 0.05 and stats.p99_time < 0.05


def test_puts_wait_for_a_slow_reader():
    pipeline = PipelineBuilder().add_source(range(40)).pipe(same).add_sink(1).build(num_threads=1)
    for _ in pipeline:
        pass_time(0.005)
    sink = dict(pipeline.queue_stats()[-1:]).popitem()[1]
    assert sink.num_items == 40 and sink.occupancy_rate > 0.5
    assert sink.ave_put_time > sink.ave_get_time


def test_totals_are_logged_once(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    pipeline = PipelineBuilder().add_source(range(9)).pipe(same, name="pass").add_sink(2).build(num_threads=1)
    with pipeline.auto_stop():
        list(pipeline)
    assert len(lines(caplog, ":pass[1]] 9 tasks, 0 failed; average")) == 1
    assert len(lines(caplog, ":sink] queue: 9 items in ")) == 1
    assert all("99 % within" in line for line in lines(caplog, " tasks, "))


def test_totals_of_a_pipeline_that_is_stopped(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    pipeline = PipelineBuilder().add_source(range(9)).pipe(same, name="pass").add_sink(2).build(num_threads=1)
    with pipeline.auto_stop():
        pipeline.get_item()
    pipeline.stop()
    assert len(lines(caplog, ":pass[1]] ")) == 2 and len(lines(caplog, ":sink] queue: ")) == 1


def test_totals_are_for_those_who_want_them(caplog):
    caplog.set_level(logging.WARNING, "stoker.pipeline")
    list(PipelineBuilder().add_source(range(9)).pipe(same).add_sink(2).build(num_threads=1))
    assert not caplog.records


def test_reports_are_of_their_interval(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    builder = PipelineBuilder().add_source(range(5)).pipe(same, name="pass").add_sink(1)
    for _ in builder.build(num_threads=1, report_stats_interval=1e-9):
        pass_time(0.01)
    tasks = [line.partition(":pass[1]] ")[2] for line in lines(caplog, " tasks, ")]
    *intervals, total = (int(line.split()[0]) for line in tasks)
    assert sum(intervals) == total == 5 and len(intervals) > 1


def reporters():
    return [thread for thread in threading.enumerate() if thread.name == "stoker-report"]


@pytest.mark.parametrize("stops", [True, False])
def test_reports_while_nobody_reads(caplog, stops):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    builder = PipelineBuilder().add_source(range(9)).pipe(same, name="pass").add_sink(1)
    pipeline = builder.build(num_threads=1, report_stats_interval=0.01)
    pipeline.start()
    until(lambda: len(lines(caplog, ":pass[1]] ")) > 6)
    assert [thread.daemon for thread in reporters()] == [False]
    if stops:
        pipeline.stop()
        assert not reporters()
        written = len(caplog.records)
        pass_time(0.05)
        assert len(caplog.records) == written
    else:
        del pipeline
        gc.collect()
        until(lambda: not reporters())


def test_reports_while_a_read_waits(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    gate = Gate()
    builder = PipelineBuilder().add_source([1]).pipe(gate, name="gate").add_sink(1)
    pipeline = builder.build(num_threads=1, report_stats_interval=0.01)
    with ThreadPoolExecutor(1) as pool, pipeline.auto_stop():
        read = pool.submit(pipeline.get_item)
        gate.until_inside(1)
        before = len(lines(caplog, ":sink] queue: "))
        until(lambda: len(lines(caplog, ":sink] queue: ")) > before + 3)
        assert not read.done()
        gate.open()
        assert read.result() == 1
        assert list(pipeline) == []
        until(lambda: not reporters())


def test_no_thread_reports_unless_asked():
    pipeline = PipelineBuilder().add_source(range(9)).add_sink(1).build(num_threads=1)
    with pipeline.auto_stop():
        assert not reporters()


class Plain(TaskHook):
    def task_hook(self, input_item=None):
        return TaskStatsHook.task_hook(self, input_item)

    def _count(self, seconds):
        pass


class Queue(AsyncQueue):
    pass


def test_hooks_and_queues_of_users_speak_for_themselves(caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    builder = PipelineBuilder().add_source(range(5)).pipe(same, name="pass").add_sink(1)
    list(builder.build(num_threads=1, task_hook_factory=lambda info: [Plain()]))
    assert not lines(caplog, " tasks, ") and lines(caplog, " queue: ")
    caplog.clear()
    list(builder.build(num_threads=1, queue_class=Queue))
    assert lines(caplog, ":pass[1]] 5 tasks, ") and not lines(caplog, " queue: ")
