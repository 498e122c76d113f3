"""Stages of Python run, are read, watched and ended from many threads at once."""

from __future__ import annotations

import gc
import logging
import os
import random
import threading
from functools import partial

from stoker import ops, source
from stoker.pipeline import PipelineBuilder
from support import at_once

SEED = int(os.environ.get("STK_SEED", "1"))
THREADS = 4


def halves(x):
    yield x
    yield -x


def add_one(x):
    return x + 1


def odd_fails(x):
    if x % 2:
        raise ValueError("odd")
    return x


def numbers(n):
    return PipelineBuilder().add_source(range(n))


def many(n):
    """Each number of range(n) comes out as itself and as its opposite, plus one."""
    return (
        numbers(n)
        .pipe(add_one, concurrency=THREADS)
        .pipe(halves, concurrency=2)
        .aggregate(7)
        .disaggregate()
        .pipe(add_one, concurrency=THREADS, output_order="input")
        .add_sink(4)
        .build(num_threads=THREADS)
    )


def test_readers_and_watchers():
    """Nothing is lost or given twice, and what is watched only grows."""
    for _ in range(3):
        pipeline = many(500)
        read: list[list[int]] = [[] for _ in range(3)]
        over = threading.Event()

        def reader(mine, iterator, over=over):
            try:
                mine.extend(iterator)
            finally:
                over.set()

        def watcher(pipeline=pipeline, over=over):
            done = 0
            while not over.is_set():
                stats = pipeline.stats()
                assert stats["results"] >= done and pipeline.failures() == []
                done = stats["results"]

        at_once(*(partial(reader, mine, iter(pipeline)) for mine in read), watcher)
        assert sorted(x for mine in read for x in mine) == sorted([*range(2, 502), *range(-499, 1)])


def test_one_iterator_for_all():
    """No item is given twice, none is lost, and each thread sees the end."""
    for _ in range(5):
        iterator = iter(numbers(400).pipe(add_one, concurrency=2).add_sink(8).build(num_threads=2))
        read: list[list[int]] = [[] for _ in range(THREADS)]
        at_once(*(partial(mine.extend, iterator) for mine in read))
        assert sorted(x for mine in read for x in mine) == list(range(1, 401))


def test_failures_of_all_threads(caplog):
    """The first ten of a stage are logged, the tenth says so; all are counted."""
    caplog.set_level(logging.ERROR)
    pipeline = numbers(400).pipe(odd_fails, concurrency=THREADS).add_sink(4).build(num_threads=THREADS)
    assert sorted(pipeline) == list(range(0, 400, 2))
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 10 and ["counted only" in text for text in texts].count(True) == 1
    assert sum(stage["failed"] for stage in pipeline.stats()["stages"]) == 200


def test_stopped_anywhere():
    """Whoever stops, and whenever, the run ends, and later reads say so."""
    rng = random.Random(SEED)
    for _ in range(20):
        pipeline = many(10_000)
        stop_at = rng.randrange(40)

        def reader(pipeline=pipeline, stop_at=stop_at):
            for i, _ in enumerate(pipeline):
                if i == stop_at:
                    pipeline.stop(timeout=60)

        at_once(reader, reader, reader)
        pipeline.stop(timeout=60)


def test_dropped_by_all():
    """Whoever lets go last ends the run: a reader, or the collector."""
    for _ in range(5):
        holders = []
        for i in range(3):
            holder = {"pipeline": many(10_000)}
            holder["pipeline"].get_item()
            if i:
                holder["me"] = holder
            holders.append(holder)
        del holder

        def let_go(holders=holders):
            pipeline = holders.pop()["pipeline"]
            pipeline.get_item()
            del pipeline
            gc.collect()

        at_once(let_go, let_go, let_go)
    gc.collect()


def test_samples_seen_by_stages(photos, paths):
    """Stages of Python get what the engine makes, on all their threads, and may keep it."""
    kept: list[bytes] = []

    def look(sample):
        assert sample.key == str(paths[sample.id]) and "Sample" in repr(sample)
        kept.append(memoryview(sample.data).tobytes())
        return sample

    built = (
        PipelineBuilder()
        .add_source(source.Directory(photos))
        .pipe(ops.read())
        .pipe(look, concurrency=THREADS)
        .add_sink(4)
        .build(num_threads=THREADS)
    )
    seen = [sample.id for sample in built]
    assert sorted(seen) == list(range(48))
    assert sorted(kept) == sorted(path.read_bytes() for path in paths)
