"""Everything at once, from many threads: under a free-threaded interpreter, and under its thread
sanitizer, this is where a race of the extension would show."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import threading
from functools import partial

import numpy as np
import pytest

import stoker
from stoker import PipelineFailure, source
from support import at_once, build, builder, ids

SEED = int(os.environ.get("STK_SEED", "1"))


def pixels(batch):
    return hashlib.sha256(memoryview(batch.image)).hexdigest()


@pytest.fixture(scope="module")
def wanted(photos):
    """What a shuffled epoch of the pictures gives, batch by batch."""
    return [(ids(b), b.key, pixels(b)) for b in build(shuffled(photos), batch=4)]


def shuffled(photos, **options):
    return source.Directory(photos, labels="dir", shuffle=True, seed=SEED, **options)


def test_readers_watchers_and_a_stop(photos, wanted):
    """Readers hold whole batches, whatever is asked meanwhile, and wherever the pipeline is stopped."""
    rng = random.Random(SEED)
    for _ in range(6):
        pipeline = build(shuffled(photos), batch=4, threads=3)
        stop_at = rng.randrange(14)
        read: list[list[int]] = [[], []]
        over = threading.Event()

        def reader(mine, iterator, pipeline=pipeline, over=over, stop_at=stop_at):
            try:
                for batch in iterator:
                    assert (ids(batch), batch.key, pixels(batch)) == wanted[batch.index]
                    mine.append(batch.index)
                    if batch.index == stop_at:
                        pipeline.stop(timeout=60)
            finally:
                over.set()

        def watcher(pipeline=pipeline, over=over):
            done = 0
            while not over.is_set():
                stats = pipeline.stats()
                assert stats["results"] >= done and pipeline.failures() == []
                done = stats["results"]
                assert "Pipeline" in repr(pipeline) and "decode_image" in str(pipeline)

        at_once(*(partial(reader, mine, iter(pipeline)) for mine in read), watcher)
        assert all(mine == sorted(mine) for mine in read)
        together = sorted(read[0] + read[1])
        assert together == list(range(len(together))) and len(together) > min(stop_at, 11)


def test_one_batch_for_all(photos):
    """A batch and its fields are read, exported and dropped by all threads, and outlive the pipeline."""
    for _ in range(5):
        batch = build(shuffled(photos)).get_item()
        want = bytes(batch.image)
        held = [batch] * 4
        del batch

        def export(held=held, want=want):
            batch = held.pop()
            users = []
            for _ in range(20):
                image = batch.image
                users.append(np.from_dlpack(image))
                users.append(np.asarray(batch["image"]))
                users.append(np.frombuffer(memoryview(image), np.uint8))
                image.__dlpack__()
                image.__dlpack__(max_version=(1, 0), copy=True)
                assert image.__array_interface__["shape"] == image.shape == (8, 32, 32, 3)
                assert len(batch.key) == len(batch) == 8 and "label" in batch and "no" not in batch
                assert "Batch" in repr(batch) and "Field" in repr(image)
            del batch, image
            assert all(user.tobytes() == want for user in users[:3] + users[-3:])

        at_once(*[export] * 4)


def test_one_field_changes_for_all(photos):
    """Writes of each thread to its own slot are all there, through whichever protocol."""
    batch = build(shuffled(photos)).get_item()
    exports = [np.asarray, np.from_dlpack, memoryview, lambda field: np.asarray(memoryview(field))]

    def write(i):
        for value in range(50):
            view = np.asarray(exports[i](batch.image))
            view[2 * i : 2 * i + 2] = value + i

    at_once(*(partial(write, i) for i in range(4)))
    image = np.asarray(batch.image)
    assert all((image[2 * i : 2 * i + 2] == 49 + i).all() for i in range(4))


def test_one_iterator_for_all(photos):
    """No item is given twice, none is lost, and each thread sees the end."""
    pipeline = build(shuffled(photos, epochs=4), batch=4, threads=2)
    iterator = iter(pipeline)
    read: list[list[tuple[int, int]]] = [[] for _ in range(4)]
    at_once(*(lambda mine=mine: mine.extend((b.epoch, b.index) for b in iterator) for mine in read))
    assert sorted(x for mine in read for x in mine) == [(e, i) for e in range(4) for i in range(12)]


def test_samples_one_by_one(photos, paths):
    for _ in range(3):
        pipeline = build(source.Directory(photos), batch=None, threads=3)
        read: list[list[int]] = [[] for _ in range(3)]

        def reader(mine, iterator):
            kept = []
            for sample in iterator:
                mine.append(sample.id)
                assert sample.key == str(paths[sample.id]) and "Sample" in repr(sample)
                assert sample.data.shape == (32, 32, 3) == sample.parts[0].shape
                kept.append(np.from_dlpack(sample.data))
            assert len(kept) == len(mine)

        at_once(*(partial(reader, mine, iter(pipeline)) for mine in read))
        assert sorted(x for mine in read for x in mine) == list(range(48))


def test_one_source_and_one_builder_for_many_pipelines(photos, wanted):
    """Pipelines are built and read at once, share one listing, and do not see each other."""
    for _ in range(3):
        src = shuffled(photos)
        shared = builder(src, batch=4)

        def whole(shared=shared, src=src):
            pipeline = shared.build(num_threads=2)
            assert [(ids(b), b.key, pixels(b)) for b in pipeline] == wanted
            assert src.count() == 48 and src.classes() == ["c0", "c1", "c2"] and src.memory() > 0

        def part(shared=shared):
            pipeline = shared.build(num_threads=1)
            assert pixels(pipeline.get_item()) == wanted[0][2]
            del pipeline
            gc.collect()

        at_once(whole, part, whole, part)


def test_starting_and_stopping_one_pipeline_from_all(photos):
    """The first reads start one run; any number of stops end it."""
    for _ in range(10):
        pipeline = build(shuffled(photos, epochs=None), batch=4)
        seen: list[tuple[int, int]] = []

        def first(pipeline=pipeline, seen=seen):
            batch = pipeline.get_item()
            seen.append((batch.epoch, batch.index))

        at_once(*[first] * 4)
        assert sorted(seen) == [(0, i) for i in range(4)]

        def last(pipeline=pipeline):
            pipeline.stop(timeout=60)
            for _ in pipeline:
                pass
            assert "stopped" in repr(pipeline) and pipeline.stats()["num_threads"] == 2

        at_once(*[last] * 4)


def test_a_failure_is_everybodys(broken):
    """Each reader gets the one failure of the run, and may look at it while others do."""
    for policy in ({"on_error": "raise"}, {"max_failures": 1}):
        for _ in range(5):
            pipeline = build(source.Directory(broken), batch=2, threads=3, decode=policy)
            errors: list[stoker.Error] = []

            def reader(pipeline=pipeline, errors=errors):
                with pytest.raises(PipelineFailure) as caught:
                    for _ in pipeline:
                        pipeline.failures()
                errors.extend(caught.value.exceptions)
                pipeline.failures()
                pipeline.stop(timeout=60)

            at_once(*[reader] * 4)
            assert len(errors) == 4 and len({id(error) for error in errors}) == 1
            assert errors[0].id == (10 if "max_failures" in policy else 3)


def test_dropped_by_all_and_by_the_collector(photos):
    """Whoever lets go last, thread or collector, gives the run back."""
    for _ in range(5):
        pipeline = build(shuffled(photos, epochs=None), batch=4)
        pipeline.start()
        holders: list[dict[str, object]] = [{"pipeline": pipeline} for _ in range(3)]
        for holder in holders:
            holder["me"] = holder
        del pipeline, holder

        def let_go(holders=holders):
            holder = holders.pop()
            batch = holder["pipeline"].get_item()
            assert len(batch) == 4
            del holder
            gc.collect()
            assert len(bytes(batch.image)) == 4 * 32 * 32 * 3

        at_once(let_go, let_go, let_go)
