"""Shards that cannot be opened: what they lost counts, for limits, ranks, epochs and substitutes."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np
import pytest

from shards import write, write_zip
from stoker import PipelineBuilder, ops, source
from stoker.errors import TooManyFailuresError
from stoker.pipeline import PipelineFailure

N = 60  # samples of each of four shards
LOST = range(N, 2 * N)
ALL = range(4 * N)
LEFT = [i for i in ALL if i not in LOST]

each_way = pytest.mark.parametrize("per_shard", [None, N])


@pytest.fixture
def paths(tmp_path):
    """Sample i holds its number; the second shard is missing."""
    found = []
    for k in range(4):
        path = tmp_path / f"{k}.tar"
        members = [(f"{i}.{ending}", b"%d" % i) for i in ALL[k * N : k * N + N] for ending in ("jpg", "cls")]
        found.append(write(path, members) if k != 1 else path)
    return found


def read(src, threads=2, **options):
    """The numbers in what is read, what ended it, and the pipeline."""
    options = options or {"on_error": "skip"}
    pipeline = PipelineBuilder().add_source(src).pipe(ops.read(), **options).add_sink(3).build(num_threads=threads)
    found = []
    try:
        for sample in pipeline:
            found.append(int(bytes(sample.data)))
    except PipelineFailure as error:
        return found, error, pipeline
    return found, None, pipeline


@each_way
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_it_counts_all_its_samples(paths, per_shard, threads):
    src = source.Tar(paths, labels="cls", samples_per_shard=per_shard)
    found, _, pipeline = read(src, threads)
    assert found == LEFT
    assert pipeline.stats()["failed"] == N
    (failure,) = pipeline.failures()
    assert failure.key == str(paths[1]) and "(counts as 60 samples)" in str(failure)
    assert src.count() == len(ALL)


@each_way
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_batches_have_the_samples_of_the_others(tmp_path, per_shard, threads):
    paths = [tmp_path / f"{k}.tar" for k in range(4)]
    for k in (0, 2, 3):
        members = []
        for i in ALL[k * N : k * N + N]:
            array = io.BytesIO()
            np.save(array, np.full(3, i))
            members += [(f"{i}.npy", array.getvalue()), (f"{i}.cls", b"%d" % i)]
        write(paths[k], members)
    src = source.Tar(paths, files={"x": "npy"}, labels="cls", samples_per_shard=per_shard)
    builder = PipelineBuilder().add_source(src).pipe(ops.read(), on_error="skip").pipe(ops.load_npy())
    pipeline = builder.batch(7).add_sink(3).build(num_threads=threads)
    found = list(pipeline)
    for field in ("id", "label", "x"):
        values = np.concatenate([np.asarray(batch[field]).reshape(len(batch), -1)[:, 0] for batch in found])
        assert values.tolist() == LEFT


@each_way
@pytest.mark.parametrize("where", ["stage", "pipeline"])
@pytest.mark.parametrize(
    ("limit", "fails"), [(Fraction(1, 100), True), (Fraction(1, 2), False), (59, True), (60, False)]
)
def test_limits(paths, per_shard, where, limit, fails):
    """At most every second is lost at any time."""
    ends = []
    for threads in (1, 2, 8):
        src = source.Tar(paths, samples_per_shard=per_shard)
        builder = PipelineBuilder().add_source(src)
        builder = builder.pipe(ops.read(), on_error="skip", max_failures=limit if where == "stage" else None)
        of_all = limit if where == "pipeline" else -1
        pipeline = builder.add_sink(3).build(num_threads=threads, max_failures=of_all)
        found = []
        try:
            for sample in pipeline:
                found.append(int(bytes(sample.data)))
            ends.append(None)
        except PipelineFailure as error:
            (cause,) = error.exceptions
            assert isinstance(cause, TooManyFailuresError)
            ends.append(str(cause))
        assert found == (list(range(N)) if fails else LEFT)
    assert len(set(ends)) == 1 and (ends[0] is not None) == fails
    if fails:
        assert ends[0].count("counts as 60 samples") == 1  # the list has it once


def test_a_shuffle_spreads_them(paths):
    """So a rate is that of the whole from the beginning."""
    src = source.Tar(paths, shuffle=True, seed=2)
    found, error, _ = read(src, on_error="skip", max_failures=Fraction(2, 5))
    assert error is None and sorted(found) == LEFT
    found, error, _ = read(src, on_error="skip", max_failures=Fraction(1, 5))
    assert error is not None and len(found) < 2 * N


@each_way
@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_count_their_share(paths, per_shard, world_size):
    """All other samples are where they are with the shard: so ranks agree that see it and that do not."""
    found, failed = [], 0
    for rank in range(world_size):
        options = {"shuffle": True, "seed": 1, "rank": rank, "world_size": world_size}
        here, _, pipeline = read(source.Tar(paths, samples_per_shard=per_shard, **options))
        share = pipeline.stats()["failed"]
        assert 0 < share < N
        found.append(here)
        failed += share
    assert failed == N and sorted(sum(found, [])) == LEFT
    write(paths[1], [(f"{i}.jpg", b"%d" % i) for i in LOST])
    for rank in range(world_size):
        options = {"shuffle": True, "seed": 1, "rank": rank, "world_size": world_size}
        whole, _, _ = read(source.Tar(paths, **options))
        assert found[rank] == [i for i in whole if i not in LOST]


@each_way
def test_substitutes_take_their_places(paths, per_shard):
    options = {"shuffle": True, "seed": 3, "rank": 1, "world_size": 2, "samples_per_shard": per_shard}
    runs = [read(source.Tar(paths, **options), threads, on_error="substitute") for threads in (1, 2, 8)]
    for found, error, pipeline in runs:
        assert error is None and found == runs[0][0]
        assert len(found) == len(ALL) // 2 and not set(found) & set(LOST)
        stats = pipeline.stats()
        assert stats["failed"] >= sum(stage["substituted"] for stage in stats["stages"]) > 0


@each_way
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_epoch_counts_it(paths, per_shard, shuffle):
    src = source.Tar(paths, shuffle=shuffle, seed=5, epochs=3, samples_per_shard=per_shard)
    found, _, pipeline = read(src)
    epochs = [found[k * len(LEFT) :][: len(LEFT)] for k in range(3)]
    assert [sorted(epoch) for epoch in epochs] == [LEFT] * 3 and len(found) == 3 * len(LEFT)
    assert (epochs[0] == epochs[1]) != shuffle
    assert pipeline.stats()["failed"] == 3 * N
    assert [failure.epoch for failure in pipeline.failures()] == [0, 1, 2]
    found, error, _ = read(src, on_error="skip", max_failures=2 * N - 1)
    assert error is not None and len(LEFT) <= len(found) <= 2 * len(LEFT)


def test_the_mean_is_of_whole_shards_and_rounded(tmp_path):
    paths = [tmp_path / name for name in ("none.tar", "3.tar", "6.tar", "cut.tar", "0.tar", "other.tar")]
    for path, n in zip(paths[1:4], (3, 6, 9), strict=True):
        write(path, [(f"{i}.jpg", b"%d" % i) for i in range(n)])
    paths[3].write_bytes(paths[3].read_bytes()[: 5 * 1024])  # two blocks a member
    write(paths[4], [("README", b"no sample")])
    found, _, pipeline = read(source.Tar(paths))
    assert found == [*range(3), *range(6), *range(5)]
    counts = [str(failure).partition("(counts as ")[2] for failure in pipeline.failures()]
    assert counts == ["3 samples)", "1 sample)", "3 samples)"]
    _, _, pipeline = read(source.Tar(paths[3:4] * 2, samples_per_shard=9))
    assert pipeline.stats()["failed"] == 2 * 4
    _, _, pipeline = read(source.Tar(paths[3:4], samples_per_shard=2))
    assert pipeline.stats()["failed"] == 1  # something is lost at any rate


def test_of_no_shard_at_all_each_counts_one(tmp_path):
    src = source.Tar([tmp_path / "a.tar", tmp_path / "b.tar"])
    found, _, pipeline = read(src)
    assert found == [] and src.count() == 2 and pipeline.stats()["failed"] == 2


def test_archives_that_are_none(tmp_path):
    whole = write_zip(tmp_path / "a.zip", [(f"{i}.jpg", b"%d" % i) for i in range(5)])
    (tmp_path / "b.zip").write_bytes(whole.read_bytes()[:-10])
    found, _, pipeline = read(source.Zip([tmp_path / "b.zip", whole]))
    assert found == list(range(5)) and pipeline.stats()["failed"] == 5


@pytest.mark.parametrize(("given", "error"), [(0, ValueError), (-1, ValueError), (2**40, ValueError), (1.5, TypeError)])
def test_options_that_are_wrong(given, error):
    with pytest.raises(error):
        source.Tar("a.tar", samples_per_shard=given)
