"""stoker.ops.load_npy: arrays in the native lane."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import PipelineBuilder, ops, source
from stoker.errors import CorruptError, UnsupportedError
from stoker.pipeline import PipelineFailure


def load(src, n=100, on_error="raise", *more):
    builder = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(ops.load_npy(), on_error=on_error)
    for op in more:
        builder.pipe(op)
    pipeline = builder.batch(n).add_sink(1).build(num_threads=2)
    return list(pipeline), pipeline


def save(folder, arrays):
    paths = [folder / f"{i:03}.npy" for i in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return paths


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 4, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_batched(tmp_path, dtype, shape, order):
    rng = np.random.default_rng(1)
    arrays = [np.asarray(rng.integers(0, 100, shape).astype(dtype), order=order) for _ in range(5)]
    (batch,), _ = load(source.List(save(tmp_path, arrays), labels=list(range(5))))
    got = np.asarray(batch.image)
    assert got.dtype == np.dtype(dtype) and got.shape == (5, *shape)
    assert np.array_equal(got, np.stack(arrays))
    assert np.asarray(batch.label).tolist() == list(range(5))


def test_several_arrays_a_sample(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    x = save(tmp_path / "x", [np.full((2, 2), i, "f4") for i in range(3)])
    y = save(tmp_path / "y", [np.full(4, -i, "i8") for i in range(3)])
    (batch,), _ = load(source.List(features=x, target=y, files=("features", "target")))
    assert np.asarray(batch["features"])[2].tolist() == [[2, 2], [2, 2]]
    assert np.asarray(batch["target"])[2].tolist() == [-2] * 4


def test_python_gets_a_view(tmp_path):
    paths = save(tmp_path, [np.arange(6.0).reshape(2, 3)])
    builder = PipelineBuilder().add_source(source.List(paths)).pipe(ops.read()).pipe(ops.load_npy())
    (total,) = builder.pipe(lambda s: float(np.asarray(s.data).sum())).add_sink(1).build(num_threads=1)
    assert total.data == 15


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(2, ">f4"), ">f4"),
        (np.zeros(2, "c8"), "<c8"),
        (np.array(["a", "bc"]), "<U2"),
        (np.zeros(2, "M8[s]"), "<M8[s]"),
        (np.zeros((1,) * 9), "9 dimensions, at most 8"),
    ],
)
def test_what_is_not_batched_fails_by_name(tmp_path, array, words):
    paths = save(tmp_path, [np.zeros(2), array])
    found, pipeline = load(source.List(paths), 100, "skip")
    assert np.asarray(found[0].id).tolist() == [0]
    (failure,) = pipeline.failures()
    assert isinstance(failure, UnsupportedError) and words in str(failure) and failure.key == str(paths[1])


def test_truncation_at_every_byte(tmp_path):
    (whole,) = save(tmp_path, [np.arange(6, dtype="i4")])
    data = whole.read_bytes()
    paths = [tmp_path / f"cut{i:03}" for i in range(len(data))]
    for i, path in enumerate(paths):
        path.write_bytes(data[:i])
    found, pipeline = load(source.List([*paths, whole]), 1000, "skip")
    assert np.asarray(found[0].id).tolist() == [len(data)]
    assert pipeline.stats()["failed"] == len(data)
    assert all(isinstance(failure, CorruptError) for failure in pipeline.failures())


def test_other_shapes_do_not_meet(tmp_path):
    with pytest.raises(PipelineFailure, match="."):
        load(source.List(save(tmp_path, [np.zeros(2), np.zeros(3)])))
