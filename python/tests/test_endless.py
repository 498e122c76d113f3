"""Epochs without results: an endless source ends with a failure that says why."""

from __future__ import annotations

import pytest

import stoker
from stoker import PipelineBuilder, PipelineFailure, source
from support import build, failing, ids


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_all_samples_fail(tmp_path, threads):
    missing = tmp_path / "no.jpg"
    pipeline = build(source.List([missing] * 100, epochs=None), read={"on_error": "skip"}, threads=threads)
    with pytest.raises(PipelineFailure) as caught:
        list(pipeline)
    (error,) = caught.value.exceptions
    assert isinstance(error, stoker.TooManyFailuresError)
    assert "2 epochs in a row of an endless source gave no result" in str(error)
    assert f"sample 0: open {missing}: No such file" in str(error)
    assert (error.stage, error.id, error.key) == ("read", None, None)
    assert isinstance(error.failures[0], FileNotFoundError) and error.failures[0].id == 0
    assert pipeline.stats()["stages"][1]["failed"] >= 200
    pipeline.stop()


def test_the_rank_has_no_sample(paths):
    with failing("it has no samples for this rank"):
        list(build(source.List(paths[:3], rank=5, world_size=8, epochs=None)))


def test_drop_last_leaves_all_out(paths):
    with failing("drop_last left out every batch"):
        list(build(source.List(paths[:3], epochs=None), drop_last=True))


def test_an_epoch_with_results_is_no_end(paths, tmp_path):
    """Every epoch has a file that fails, and one that does not."""
    pipeline = build(
        source.List([tmp_path / "no.jpg", paths[0]], epochs=None), batch=1, read={"on_error": "skip"}
    )
    assert [ids(batch) for batch, _ in zip(pipeline, range(20))] == [[1]] * 20
    pipeline.stop()


def test_python_may_leave_all_out(paths):
    """Stages in Python may leave out epoch after epoch."""
    seen = iter(range(100))
    builder = PipelineBuilder().add_source(source.List(paths[:1], epochs=None))
    pipeline = builder.pipe(lambda s: None if next(seen) < 20 else s).add_sink(1).build(num_threads=1)
    assert pipeline.get_item().epoch == 20
    pipeline.stop()


def test_python_behind_no_samples(paths):
    builder = PipelineBuilder().add_source(source.List(paths[:1], rank=1, world_size=2, epochs=None))
    with failing("it has no samples for this rank"):
        list(builder.pipe(lambda sample: sample.id).add_sink(1).build(num_threads=1))
