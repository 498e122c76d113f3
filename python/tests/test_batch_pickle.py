"""Batches that travel: pickled, and out of worker processes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import region_ops
import stoker
from stoker import PipelineBuilder, _stoker, ops, source
from stoker.pipeline import run_pipeline_in_subprocess
from stoker.pipeline.defs import MAIN_PROCESS, ProcessPoolExecutorConfig
from support import build, builder, digest, ids

WORKERS = ProcessPoolExecutorConfig(2, mp_context="forkserver")


def batches(photos, **options):
    src = source.Directory(photos, labels="dir", shuffle=True, seed=3)
    return list(build(src, batch=20, **options))


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_everything_arrives(photos, protocol):
    before = batches(photos)
    after = [pickle.loads(pickle.dumps(batch, protocol)) for batch in before]
    assert digest(after) == digest(before)
    for a, b in zip(before, after):
        assert a.fields() == b.fields() and repr(a) == repr(b)
        assert np.array_equal(np.asarray(a.substituted), np.asarray(b.substituted))
    assert digest(map(copy.copy, before)) == digest(before)


def test_memory_travels_outside(photos):
    (batch, *_) = batches(photos)
    buffers = []
    data = pickle.dumps(batch, 5, buffer_callback=buffers.append)
    assert len(data) < 4000 < sum(len(buffer.raw()) for buffer in buffers)
    again = pickle.loads(data, buffers=[bytearray(buffer.raw()) for buffer in buffers])
    assert digest([again]) == digest([batch])
    np.asarray(again.image)[:] = 0


def test_columns_of_strings(paths):
    words = [f"w\u00f6rd {i}" for i in range(len(paths))]
    src = source.List(paths, labels=[i % 3 for i in range(len(paths))], word=words)
    before = list(build(src, batch=7))
    after = pickle.loads(pickle.dumps(before))
    assert [batch["word"] for batch in after] == [batch["word"] for batch in before]
    assert digest(after) == digest(before)


def test_names_that_are_not_utf8(photos):
    odd = "/a/\udcff.jpg"
    assert _stoker.batch_of(0, 0, [odd, None], {}).key == [odd, None]


@pytest.mark.parametrize(
    "fields", [{"x": [1, 2]}, {"x": ["a"]}, {"x": 5}, {"x": _stoker.field_of(b"abc", "uint8", (3,), True)}]
)
def test_what_makes_no_batch(fields):
    with pytest.raises((TypeError, ValueError, stoker.Error)):
        _stoker.batch_of(0, 0, ["a", "b"], fields)


def test_samples_of_a_batch_stay_themselves(photos):
    """disaggregate of what another process has batched, and a batch of that."""
    b = PipelineBuilder().add_source(source.Directory(photos, labels="dir")).to(WORKERS, buffer_size=4)
    b.pipe(ops.read()).pipe(region_ops.same).pipe(ops.decode_image(24, 24)).batch(5)
    pipeline = b.to(MAIN_PROCESS, buffer_size=2).disaggregate().batch(48).add_sink().build(num_threads=2)
    with pipeline.auto_stop():
        (batch,) = pipeline
    assert sorted(ids(batch)) == list(range(48))
    expected = dict(zip(*zip(*[(i, (key, label)) for one in build(
        source.Directory(photos, labels="dir"), batch=6, size=24, crop=None, flip=0) for i, key, label in zip(
            ids(one), one.key, np.asarray(one.label).tolist())])))
    assert {i: (key, label) for i, key, label in zip(
        ids(batch), batch.key, np.asarray(batch.label).tolist())} == expected


def test_batches_of_a_pipeline_in_a_subprocess(photos):
    b = builder(source.Directory(photos, labels="dir"), batch=10)
    src = run_pipeline_in_subprocess(b.get_config(), num_threads=2, mp_context="forkserver")
    assert digest(src) == digest(b.build(num_threads=2))


@pytest.mark.parametrize("begin", ["batch", "disaggregate"])
def test_a_region_may_begin_with_batches(photos, begin):
    b = PipelineBuilder().add_source(source.Directory(photos)).pipe(ops.read()).pipe(ops.decode_image(16, 16))
    if begin == "batch":
        b.to(WORKERS).batch(4).pipe(ops.normalize()).to(MAIN_PROCESS)
    else:
        b.batch(4).to(WORKERS).disaggregate().batch(2).to(MAIN_PROCESS)
    pipeline = b.add_sink().build(num_threads=2)
    with pipeline.auto_stop():
        seen = list(pipeline)
    assert sorted(i for batch in seen for i in ids(batch)) == list(range(48))
