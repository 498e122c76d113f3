"""Samples that fail: raise, skip, substitute, and what the reader is told."""

from __future__ import annotations

import errno
import os
from fractions import Fraction

import numpy as np
import pytest

import stoker
from stoker import PipelineBuilder, PipelineFailure, ops, source
from support import build, ids, until


def read_all(pipeline):
    """(batches, failure or None)"""
    batches = []
    try:
        for batch in pipeline:
            batches.append(batch)
    except PipelineFailure as failure:
        return batches, failure
    return batches, None


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_raise_delivers_what_came_before(broken, threads):
    pipeline = build(source.Directory(broken), batch=2, threads=threads)
    batches, failure = read_all(pipeline)
    assert [ids(b) for b in batches] == [[0, 1]]
    assert str(failure) == "pipeline stages failed (1 sub-exception)"
    (error,) = failure.exceptions
    assert isinstance(error, stoker.DecodeError) and isinstance(error, RuntimeError)
    assert (error.stage, error.id, error.key) == ("decode_image", 3, str(broken / "c0/03.jpg"))
    assert "03.jpg" in str(error) and "sample 3" in str(error)
    assert error.__notes__ == ["Pipeline stage: decode_image"]


def test_every_later_read_fails_again(broken):
    pipeline = build(source.Directory(broken), batch=2)
    iterator = iter(pipeline)
    assert ids(next(iterator)) == [0, 1]
    for read in (
        lambda: next(iterator),
        lambda: next(iterator),
        lambda: next(iter(pipeline)),
        lambda: list(pipeline),
        pipeline.get_item,
        lambda: pipeline.get_item(timeout=0),
    ):
        with pytest.raises(PipelineFailure):
            read()
    pipeline.stop()  # somebody has read it
    pipeline.stop()
    with pytest.raises(PipelineFailure):
        pipeline.get_item()


def test_stop_raises_what_nobody_has_read(tmp_path):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"bad")
    pipeline = build(source.List([bad]))
    pipeline.start()
    wait_for_failure(pipeline)
    with pytest.raises(PipelineFailure):
        pipeline.stop()
    pipeline.stop()
    pipeline.stop()


def wait_for_failure(pipeline):
    """Until the failure waits for a reader."""
    until(lambda: pipeline.stats()["queues"][-1]["len"])


def test_leaving_auto_stop_raises_what_nobody_has_read(tmp_path):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"bad")
    pipeline = build(source.List([bad]))
    with pytest.raises(PipelineFailure) as caught, pipeline.auto_stop():
        wait_for_failure(pipeline)
        raise KeyError("of the body")
    assert isinstance(caught.value.__context__, KeyError)


def test_auto_stop_is_quiet_about_what_was_read(broken):
    pipeline = build(source.Directory(broken), batch=2)
    with pipeline.auto_stop(), pytest.raises(PipelineFailure):
        list(pipeline)


def test_nobody_reads(broken):
    pipeline = build(source.Directory(broken), batch=2)
    pipeline.start()
    del pipeline


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_skip_counts_and_leaves_the_batch_shorter(broken, threads):
    pipeline = build(source.Directory(broken), batch=4, threads=threads, decode={"on_error": "skip"})
    batches, failure = read_all(pipeline)
    assert failure is None
    assert [ids(b) for b in batches] == [[0, 1, 2], [4, 5, 6, 7], [8, 9, 11], [12, 13, 14, 15]]
    assert all(b.image.shape == (len(b), 32, 32, 3) and len(b.key) == len(b) for b in batches)
    (stage,) = [s for s in pipeline.stats()["stages"] if s["name"] == "decode_image"]
    assert (stage["items"], stage["failed"]) == (14, 2)
    errors = pipeline.failures()
    assert [(e.id, e.stage, e.epoch) for e in errors] == [(3, "decode_image", 0), (10, "decode_image", 0)]
    assert all(isinstance(e, stoker.DecodeError) and e.key.endswith(f"{e.id:02}.jpg") for e in errors)


def test_pixels_are_those_of_their_sample(broken):
    """A failed sample leaves no hole, and no other's pixels, in its batch."""
    skipped = build(source.Directory(broken), batch=16, decode={"on_error": "skip"})
    (batch,) = skipped
    good = [key for key in batch.key]
    (want,) = build(source.List(good), batch=16, crop=None, flip=0.0)
    (got,) = build(source.Directory(broken), batch=16, crop=None, flip=0.0, decode={"on_error": "skip"})
    assert np.array_equal(np.asarray(want.image), np.asarray(got.image))


@pytest.mark.parametrize("keep_empty", [False, True])
def test_empty_batches(tmp_path, photos, keep_empty):
    good = sorted(photos.glob("c0/*.jpg"))[:4]
    bad = []
    for i in range(2):
        bad.append(tmp_path / f"{i}.jpg")
        bad[-1].write_bytes(b"bad")
    files = good[:2] + bad + good[2:]
    pipeline = build(source.List(files), batch=2, decode={"on_error": "skip"}, keep_empty=keep_empty)
    batches = list(pipeline)
    if not keep_empty:
        assert [ids(b) for b in batches] == [[0, 1], [4, 5]]
        return
    assert [ids(b) for b in batches] == [[0, 1], [], [4, 5]]
    empty = batches[1]
    assert len(empty) == 0 and empty and empty.image.shape == (0, 32, 32, 3) and empty.key == []
    assert np.asarray(empty.image).size == 0 and np.from_dlpack(empty.id).shape == (0,)
    assert [b.index for b in batches] == [0, 1, 2]


def test_empty_batches_lack_fields_of_unknown_shape(tmp_path):
    """What `batch` documents: only a decoder that was given a size says the shape beforehand."""
    (tmp_path / "x.jpg").write_bytes(b"bad")
    src = source.List([tmp_path / "x.jpg"])
    (batch,) = build(src, size=None, crop=None, flip=0.0, decode={"on_error": "skip"}, keep_empty=True)
    assert len(batch) == 0 and not hasattr(batch, "image") and batch.id.shape == (0,)


def test_drop_last_looks_at_planned_samples(broken):
    pipeline = build(source.Directory(broken), batch=8, decode={"on_error": "skip"}, drop_last=True)
    assert [len(b) for b in pipeline] == [7, 7]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("limit", "fails"), [(0, True), (1, True), (2, False), (-1, False)])
def test_max_failures(broken, threads, limit, fails):
    pipeline = build(source.Directory(broken), batch=4, threads=threads, decode={"max_failures": limit})
    batches, failure = read_all(pipeline)
    assert (failure is not None) == fails
    if not fails:
        assert sum(len(b) for b in batches) == 14
        return
    (error,) = failure.exceptions
    assert isinstance(error, stoker.TooManyFailuresError)
    assert "which exceeds" in str(error)
    assert error.stage == "decode_image"
    assert [e.id for e in error.failures] == [3, 10][: limit + 1]
    assert isinstance(error.__cause__, stoker.DecodeError) and error.__cause__.id == [3, 10][limit]
    assert error.__notes__ == ["Pipeline stage: decode_image"]


def test_max_failures_of_build_goes_to_stages_that_skip(broken):
    src = source.Directory(broken)
    _, failure = read_all(build(src, decode={"on_error": "skip"}, max_failures=1))
    assert isinstance(failure.exceptions[0], stoker.TooManyFailuresError)
    _, failure = read_all(build(src, decode={"on_error": "skip", "max_failures": 5}, max_failures=1))
    assert failure is None


def test_the_first_ten_are_listed(tmp_path):
    files = []
    for i in range(14):
        files.append(tmp_path / f"{i}.jpg")
        files[-1].write_bytes(b"bad")
    _, failure = read_all(build(source.List(files), decode={"max_failures": 12}))
    (error,) = failure.exceptions
    assert [e.id for e in error.failures] == list(range(10))
    assert all(f"sample {i}" in str(error) for i in range(10))
    # What ended it is told, also past the ten.
    assert error.id == 12 and error.key == str(files[12])
    cause = error.__cause__
    assert isinstance(cause, stoker.DecodeError) and "too many" not in str(cause)
    assert (cause.stage, cause.id, cause.key, cause.epoch) == ("decode_image", 12, str(files[12]), 0)


def test_what_fails_alike_is_listed_once(tmp_path):
    missing = [tmp_path / name for name in ("a.jpg", "b.jpg")]
    src = source.List([missing[i % 5 == 4] for i in range(20)], epochs=2)
    builder = PipelineBuilder().add_source(src).pipe(ops.read(), on_error="skip")
    pipeline = builder.add_sink(3).build(num_threads=2)
    assert list(pipeline) == [] and pipeline.stats()["failed"] == 40
    assert [(e.epoch, e.id, e.key) for e in pipeline.failures()] == [
        (epoch, i, str(path)) for epoch in range(2) for i, path in ((0, missing[0]), (4, missing[1]))
    ]
    builder = PipelineBuilder().add_source(src).pipe(ops.read(), max_failures=7)
    with pytest.raises(PipelineFailure) as caught:
        list(builder.add_sink(3).build(num_threads=2))
    (error,) = caught.value.exceptions
    assert str(error).count("No such file") == 2 and "failed 8 times" in str(error)
    assert (error.id, error.__cause__.id) == (7, 7)


def test_a_rate_counts_from_the_hundredth(tmp_path, paths):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"bad")
    files = [bad] * 6 + [*paths, *paths]  # 102
    few = build(source.List(files), decode={"max_failures": Fraction(1, 10)})
    assert sum(len(b) for b in few) == 96
    _, failure = read_all(build(source.List(files), decode={"max_failures": Fraction(1, 20)}))
    assert isinstance(failure.exceptions[0], stoker.TooManyFailuresError)
    _, failure = read_all(build(source.List(files[:99]), decode={"max_failures": 0.01}))
    assert failure is None


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_substitute(broken, threads):
    src = source.Directory(broken, shuffle=True, seed=1)
    pipeline = build(src, batch=4, threads=threads, decode={"on_error": "substitute"})
    batches, failure = read_all(pipeline)
    assert failure is None and [len(b) for b in batches] == [4, 4, 4, 4]
    marks = np.concatenate([np.asarray(b.substituted) for b in batches])
    assert marks.sum() == 2
    all_ids = [i for b in batches for i in ids(b)]
    assert not {3, 10} & set(all_ids)
    assert sorted(i for i, m in zip(all_ids, marks, strict=True) if not m) == sorted(set(range(16)) - {3, 10})
    for batch in batches:
        assert all(key.endswith(f"{i:02}.jpg") for key, i in zip(batch.key, ids(batch), strict=True))
    again = list(build(src, batch=4, threads=3, decode={"on_error": "substitute"}))
    assert [(ids(b), bytes(b.image)) for b in again] == [(ids(b), bytes(b.image)) for b in batches]
    (stage,) = [s for s in pipeline.stats()["stages"] if s["name"] == "decode_image"]
    assert stage["substituted"] == 2 and stage["failed"] >= 2


def test_substitutes_come_from_the_same_shard(broken):
    for rank in range(2):
        src = source.Directory(broken, rank=rank, world_size=2)
        pipeline = build(src, batch=4, decode={"on_error": "substitute"})
        batches = list(pipeline)
        assert {i % 2 for b in batches for i in ids(b)} == {rank}
        assert [len(b) for b in batches] == [4, 4]


def test_ranks_make_equal_steps_with_substitutes(photos):
    steps = []
    for rank in range(5):  # 48 samples: the last of 10 positions is empty on two of the ranks
        src = source.Directory(photos, shuffle=True, rank=rank, world_size=5)
        batches = list(build(src, batch=9, decode={"on_error": "substitute"}))
        assert [len(b) for b in batches] == [9, 1]
        assert np.asarray(batches[1].substituted).tolist() == [rank >= 3]
        steps.append(set(ids(batches[0])) | set(ids(batches[1])))
    assert sum(map(len, steps)) == 48 and set.union(*steps) == set(range(48))


def test_nothing_to_substitute(tmp_path):
    files = []
    for i in range(3):
        files.append(tmp_path / f"{i}.jpg")
        files[-1].write_bytes(b"bad")
    batches, failure = read_all(build(source.List(files), decode={"on_error": "substitute"}))
    assert batches == [] and isinstance(failure.exceptions[0], stoker.Error)


def test_continuous_failure(broken):
    pipeline = build(source.Directory(broken), continuous=True, decode={"max_failures": 3})
    seen = []
    with pytest.raises(PipelineFailure), pipeline.auto_stop():
        for _ in range(5):
            seen.append(sum(len(b) for b in pipeline))
    assert seen == [14]  # two failures an epoch: the fourth ends it


def test_stages_count_for_themselves(broken, tmp_path):
    (broken / "c0" / "05.jpg").unlink()
    (broken / "c0" / "05.jpg").mkdir()
    files = sorted(broken.glob("c0/*"))
    pipeline = build(source.List(files), read={"on_error": "skip"}, decode={"on_error": "skip"})
    assert sum(len(b) for b in pipeline) == 13
    failed = {s["name"]: s["failed"] for s in pipeline.stats()["stages"]}
    assert failed["read"] == 1 and failed["decode_image"] == 2


@pytest.mark.parametrize("limit", [None, 0])
def test_a_batch_that_fails_is_named_as_one(photos, limit):
    builder = PipelineBuilder().add_source(source.Directory(photos)).pipe(ops.read())
    builder.pipe(ops.decode_image(16, 16)).batch(4)
    builder.pipe(ops.normalize([0.5] * 4), max_failures=limit).add_sink(1)
    _, failure = read_all(builder.build(num_threads=2))
    (error,) = failure.exceptions
    assert "stage 'normalize', batch 0:" in str(error) and "4 channels" in str(error)
    assert (error.stage, error.id, error.key) == ("normalize", None, None)


def test_a_batch_that_is_skipped_has_no_sample(photos):
    builder = PipelineBuilder().add_source(source.Directory(photos)).pipe(ops.read())
    builder.pipe(ops.decode_image(16, 16)).batch(24)
    pipeline = builder.pipe(ops.normalize([0.5] * 4), on_error="skip").add_sink(1).build(num_threads=2)
    assert list(pipeline) == []
    assert [(e.stage, e.id, e.epoch) for e in pipeline.failures()] == [("normalize", None, 0)] * 2


def test_of_several_files_the_one_that_failed_is_named(paths, tmp_path):
    missing = tmp_path / "mask.png"
    src = source.List(image=paths[:1], mask=[missing])
    _, failure = read_all(build(src, batch=1))
    (error,) = failure.exceptions
    assert (error.id, error.key, error.filename) == (0, str(missing), str(missing))
    missing.write_bytes(b"this is no picture")
    _, failure = read_all(build(src, batch=1))
    assert failure.exceptions[0].key == str(missing)


def test_system_errors_have_what_an_oserror_has(tmp_path):
    files = [tmp_path / "a.jpg", tmp_path / "b.jpg"]
    pipeline = build(source.List(files), read={"max_failures": 0})
    _, failure = read_all(pipeline)
    (error,) = failure.exceptions
    for error in (error.__cause__, *error.failures, *pipeline.failures()):
        assert isinstance(error, FileNotFoundError) and error.filename in map(str, files)
        assert (error.errno, error.strerror) == (errno.ENOENT, os.strerror(errno.ENOENT))
        assert str(error) == f"open {error.filename}: {error.strerror}"
    _, failure = read_all(build(source.List(files)))
    assert failure.exceptions[0].filename == str(files[0])
    with pytest.raises(FileNotFoundError) as caught:
        source.Directory(tmp_path / "none").count()
    assert caught.value.errno == errno.ENOENT


def test_the_list_of_failures_has_their_paths(tmp_path):
    folder = tmp_path / ("long" * 50) / ("name" * 50)
    folder.mkdir(parents=True)
    for i in range(12):
        (folder / f"{i:02}.jpg").write_bytes(b"this is no picture")
    pipeline = build(source.Directory(tmp_path), decode={"max_failures": 10})
    _, failure = read_all(pipeline)
    (error,) = failure.exceptions
    assert "failed 11 times, which exceeds the threshold (10)" in str(error)
    for i in range(10):
        assert f"sample {i}: ..." in str(error) and f"/{i:02}.jpg: not a JPEG" in str(error)
    assert str(error).endswith("image") and [e.id for e in error.failures] == list(range(10))


def test_except_star(broken):
    caught = []
    try:
        list(build(source.Directory(broken)))
    except* stoker.CorruptError:
        caught.append("corrupt")
    except* stoker.DecodeError:
        caught.append("decode")
    assert len(caught) == 1
