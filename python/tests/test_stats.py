"""What a pipeline says of itself."""

from __future__ import annotations

import logging

import pytest

from stoker import source
from support import build, builder, pass_time

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
    assert caplog.text == ""


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
