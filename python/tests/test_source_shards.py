"""stoker.source.Tar and Zip: members of archives as samples."""

from __future__ import annotations

import pickle
import tarfile
import zipfile
from fractions import Fraction

import numpy as np
import pytest

from stoker import PipelineBuilder, ops, source
from stoker.errors import CorruptError, NotFoundError
from stoker.pipeline import PipelineFailure
from shards import batches, write, write_zip
from support import ok


@pytest.fixture(params=["tar", "zip"])
def kind(request):
    return request.param


@pytest.fixture
def Shards(kind):
    return {"tar": source.Tar, "zip": source.Zip}[kind]


@pytest.fixture
def shards(tmp_path, photos, kind):
    """Three shards of the photographs, with numbers and captions."""
    make = {"tar": write, "zip": write_zip}[kind]
    files = sorted(photos.rglob("*.jpg"))
    assert len(files) >= 6
    paths = []
    for k in range(3):
        members = []
        for i, file in list(enumerate(files))[k::3]:
            members += [
                (f"x/{i:04}.jpg", file.read_bytes()),
                (f"x/{i:04}.cls", f"{i}\n".encode()),
                (f"x/{i:04}.txt", f"picture {i}".encode()),
                (f"x/{i:04}.n", f" {i} ".encode()),
            ]
        paths.append(make(tmp_path / f"s-{k:03}.{kind}", members))
    return paths, files


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_the_pixels_are_those_of_the_files(tmp_path, photos, format):
    files = sorted(photos.rglob("*.jpg"))
    names = [f"{'long' * 30}/{i:04}.jpg" for i in range(len(files))]
    if format == tarfile.USTAR_FORMAT:
        names = [f"{i:04}.jpg" for i in range(len(files))]
    path = write(tmp_path / "a.tar", zip(names, [file.read_bytes() for file in files], strict=True), format)
    (got,), _ = batches(source.Tar(path))
    (want,), _ = batches(source.List(files))
    assert np.array_equal(np.asarray(got.image), np.asarray(want.image))
    assert got.key == [f"{path}/{name}" for name in names]
    assert np.asarray(got.id).tolist() == list(range(len(files)))


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("shuffle", [False, True])
def test_labels_and_columns_belong_to_their_sample(Shards, shards, threads, shuffle):
    paths, files = shards
    src = Shards(paths, labels="cls", columns={"caption": "txt", "number": ("n", int)}, shuffle=shuffle, seed=4)
    found, _ = batches(src, 4, threads=threads)
    labels = [int(x) for batch in found for x in np.asarray(batch.label)]
    assert [c for batch in found for c in batch["caption"]] == [f"picture {x}" for x in labels]
    assert [int(x) for batch in found for x in np.asarray(batch["number"])] == labels
    assert sorted(labels) == list(range(len(files)))
    in_order = [i for k in range(3) for i in range(k, len(files), 3)]
    assert (labels == in_order) != shuffle
    again, _ = batches(src, 4, threads=2)
    assert [int(x) for batch in again for x in np.asarray(batch.label)] == labels


def test_several_files_a_sample(tmp_path, photos):
    data = sorted(photos.rglob("*.jpg"))[0].read_bytes()
    path = write(tmp_path / "a.tar", [("1.jpg", data), ("1.mask.jpg", data), ("1.json", b"{}")])
    src = source.Tar(path, files={"image": "jpg", "mask": "mask.jpg"})
    builder = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(ops.decode_image(16, 16)).batch(1)
    (batch,) = builder.add_sink(1).build(num_threads=1)
    assert np.asarray(batch.image).shape[:3] == np.asarray(batch["mask"]).shape[:3] == (1, 16, 16)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
def test_members_that_nobody_asked_for_are_left_alone(tmp_path, photos, Shards, kind, order):
    data = sorted(photos.rglob("*.jpg"))[0].read_bytes()
    members = [("1.jpg", data), ("1.seg.png", b"?"), ("1.mask.png", b"?"), ("1.cls", b"7"), ("1.old.cls", b"?")]
    make = {"tar": write, "zip": write_zip}[kind]
    path = make(tmp_path / f"a.{kind}", [members[i] for i in order])
    (batch,), _ = batches(Shards(path, labels="cls"))
    assert batch.key == [f"{path}/1.jpg"] and np.asarray(batch.label).tolist() == [7]


def test_ranks_share_samples(Shards, shards):
    paths, files = shards
    seen = []
    for rank in range(2):
        found, _ = batches(Shards(paths, shuffle=True, seed=1, rank=rank, world_size=2))
        seen += [int(x) for x in np.asarray(found[0].id)]
    assert sorted(seen) == list(range(len(files)))


@pytest.mark.parametrize("shuffle", [False, True])
def test_epochs(Shards, shards, shuffle):
    paths, files = shards
    src = Shards(paths, labels="cls", columns={"caption": "txt"}, shuffle=shuffle, seed=4, epochs=3)
    found, _ = batches(src, 4)
    epochs = [[], [], []]
    for batch in found:
        labels = np.asarray(batch.label).tolist()
        assert batch["caption"] == [f"picture {x}" for x in labels]
        epochs[batch.epoch] += labels
    assert [sorted(epoch) for epoch in epochs] == [list(range(len(files)))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == (3 if shuffle else 1)


@pytest.fixture
def damaged(tmp_path, photos, kind):
    """Two shards, in which every fifth sample is no picture, or has no label; and which can be used."""
    make = {"tar": write, "zip": write_zip}[kind]
    data = sorted(photos.rglob("*.jpg"))[0].read_bytes()
    paths, good = [], [i for i in range(120) if i % 5]
    for k in range(2):
        members = []
        for i in range(60 * k, 60 * k + 60):
            members.append((f"{i}.jpg", b"bad" if i % 10 == 5 else data))
            members += [(f"{i}.cls", b"%d" % i)] * (i % 10 != 0)
        paths.append(make(tmp_path / f"{k}.{kind}", members))
    return paths, good


@pytest.mark.parametrize("rank", [0, 1])
def test_substitutes_have_labels_of_their_own(Shards, damaged, rank):
    paths, good = damaged
    src = Shards(paths, labels="cls", shuffle=True, seed=3, rank=rank, world_size=2, epochs=2)
    runs = []
    for threads in (1, 2, 8):
        found = []
        builder = PipelineBuilder().add_source(src).pipe(ops.read(), on_error="substitute")
        builder = builder.pipe(ops.decode_image(16, 16), on_error="substitute").batch(10)
        pipeline = builder.add_sink(3).build(num_threads=threads)
        for batch in pipeline:
            ids, labels = np.asarray(batch.id).tolist(), np.asarray(batch.label).tolist()
            assert len(batch) == 10 and ids == labels and set(labels) <= set(good)
            found += labels
        stats = pipeline.stats()
        assert len(found) == 120 and stats["failed"] >= 2 * 10
        runs.append(found)
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize(("limit", "fails"), [(Fraction(1, 12), True), (Fraction(1, 8), False)])
def test_limits_on_rates(Shards, damaged, limit, fails):
    """In the end one of ten cannot be read, and of 108 that can one of nine is no picture."""
    paths, good = damaged
    ends = set()
    for threads in (1, 2, 8):
        builder = PipelineBuilder().add_source(Shards(paths, labels="cls"))
        builder = builder.pipe(ops.read(), max_failures=limit).pipe(ops.decode_image(16, 16), max_failures=limit)
        pipeline = builder.batch(6).add_sink(3).build(num_threads=threads)
        labels = []
        try:
            for batch in pipeline:
                labels += np.asarray(batch.label).tolist()
            assert labels == good
        except PipelineFailure as error:
            ends.add((str(error.exceptions[0]), *labels))
    assert len(ends) == fails


@pytest.mark.parametrize("op", [lambda s: s, lambda s: s.data], ids=["sample", "data"])
def test_python_may_stand_before_read(Shards, shards, op):
    paths, files = shards
    src = Shards(paths, labels="cls")
    builder = PipelineBuilder().add_source(src).pipe(op).pipe(ops.read()).pipe(ops.decode_image(16, 16))
    (batch,) = builder.batch(1000).add_sink(1).build(num_threads=2)
    assert sorted(np.asarray(batch.label).tolist()) == list(range(len(files)))


def test_what_a_stage_of_python_names_is_another_file(Shards, shards, photos):
    paths, files = shards
    src = Shards(paths[0])
    builder = PipelineBuilder().add_source(src).pipe(lambda s: str(files[0])).pipe(ops.read())
    pipeline = builder.add_sink(1).build(num_threads=1)
    assert {bytes(sample.data) for sample in pipeline} == {files[0].read_bytes()}


@pytest.mark.parametrize("kind", ["tar"])
def test_what_is_missing_fails_when_it_is_read(tmp_path, shards):
    paths, files = shards
    data = files[0].read_bytes()
    some = write(tmp_path / "some.tar", [("1.jpg", data), ("2.jpg", data), ("2.cls", b"2"), ("3.cls", b"3")])
    src = source.Tar([some, tmp_path / "none.tar", paths[0]], labels="cls")
    found, pipeline = batches(src, on_error="skip")
    assert np.asarray(found[0].label).tolist() == [2, *range(0, len(files), 3)]
    lacks, other, none = pipeline.failures()
    assert isinstance(lacks, CorruptError) and "no member for label (.cls)" in str(lacks)
    assert "no member for image" in str(other)
    assert isinstance(none, NotFoundError) and none.key == str(tmp_path / "none.tar")
    with pytest.raises(PipelineFailure):
        batches(src)


@pytest.mark.parametrize("kind", ["tar"])
@pytest.mark.parametrize("given", [None, 9])
@pytest.mark.parametrize("cut", [0, 100, 512, 1000, 3000, 9999, 20000])
def test_a_shard_that_is_cut_counts_what_it_lost(shards, cut, given):
    """Where nothing is found, as many as others have; where something is, what is known to lack."""
    paths, files = shards
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[:cut])
    src = source.Tar(paths, samples_per_shard=given)
    others = len(files[::3]) + len(files[2::3])
    found, pipeline = batches(src, on_error="skip")
    in_cut = len(np.asarray(found[0].id)) - others
    lost = given - in_cut if given else 1 if in_cut else (others + 1) // 2
    assert in_cut >= 0 and src.count() == others + in_cut + lost
    (failure,) = pipeline.failures()
    assert str(paths[1]) in str(failure) and f"(counts as {lost} sample" in str(failure)
    assert pipeline.stats()["failed"] == lost


@pytest.mark.parametrize("kind", ["tar"])
def test_a_shard_that_shrinks_between_listing_and_reading(shards):
    paths, files = shards
    src = source.Tar(paths)
    assert src.count() == len(files)
    paths[2].write_bytes(paths[2].read_bytes()[:2000])
    found, pipeline = batches(src, on_error="skip")
    assert pipeline.stats()["failed"] == len(files[2::3])
    assert "shrank" in str(pipeline.failures()[0])


@pytest.mark.parametrize("kind", ["tar"])
@pytest.mark.parametrize(("method", "name"), [("gz", "gzip"), ("xz", "xz"), ("bz2", "bzip2")])
def test_compressed_shards_are_refused_by_name(tmp_path, shards, method, name):
    path = tmp_path / f"a.tar.{method}"
    with tarfile.open(path, f"w:{method}") as tar:
        tar.add(shards[0][0], arcname="x.jpg")
    with pytest.raises(PipelineFailure) as caught:
        batches(source.Tar(path))
    assert f"compressed with {name}" in str(caught.value.exceptions[0])


def test_paths(tmp_path, Shards, shards, kind):
    paths, files = shards
    for given in (
        str(tmp_path / f"s-{{000..002}}.{kind}"),
        str(tmp_path / f"s-00{{0,1,2}}.{kind}"),
        str(tmp_path / f"s-*.{kind}"),
        [str(tmp_path / f"s-000.{kind}"), tmp_path / f"s-001.{kind}", bytes(tmp_path / f"s-002.{kind}")],
    ):
        assert Shards(given).count() == len(files)
    with pytest.raises(FileNotFoundError, match="no shard"):
        source.Tar(str(tmp_path / "q-*.tar"))
    with pytest.raises(ValueError, match="must go up"):
        source.Tar("{3..1}.tar")
    with pytest.raises(ValueError, match="shards must not be empty"):
        source.Tar([])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"files": 3}, TypeError, "int"),
        ({"files": {"image": ""}}, ValueError, "ending"),
        ({"files": {}}, ValueError, "1 to"),
        ({"columns": {"x": ("txt", float)}}, ValueError, "x must be an ending"),
        ({"columns": {"id": "txt"}}, ValueError, "id is the name of a field"),
        ({"columns": {"label": "txt"}, "labels": "cls"}, ValueError, "give one of them"),
        ({"columns": {"image": "txt"}}, ValueError, "two fields"),
        ({"rank": 2}, ValueError, "rank"),
    ],
)
def test_options_that_are_wrong(options, error, text):
    with pytest.raises(error, match=text):
        source.Tar("a.tar", **options)


def test_it_pickles_and_prints(Shards, shards):
    paths, files = shards
    src = pickle.loads(pickle.dumps(Shards(paths, labels="cls", seed=3)))
    assert src.count() == len(files) and src.memory() > 0
    assert repr(src) == f"{Shards.__name__}(3 shards of image, label, shuffle=False, seed=3, epochs=1)"
    first = next(iter(src))
    assert (first.data, first.label, first.id) == (f"{paths[0]}/x/0000.jpg", 0, 0)


@pytest.mark.parametrize("kind", ["tar"])
def test_a_child_of_fork_makes_its_own(shards):
    out = ok(
        """
import os, signal, sys
from stoker import source
src = source.Tar(sys.argv[1:])
n = src.count()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if src.count() == n and source.Tar(sys.argv[1:]).count() == n else 1)
assert os.waitpid(child, 0)[1] == 0
print(n)
""",
        *map(str, shards[0]),
    )
    assert int(out) == len(shards[1])


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_entries_have_the_pixels_of_the_files(tmp_path, photos, compression):
    files = sorted(photos.rglob("*.jpg"))
    members = [(f"d/{i:04}.jpg", file.read_bytes()) for i, file in enumerate(files)]
    path = write_zip(tmp_path / "a.zip", members, compression)
    (got,), _ = batches(source.Zip(path))
    (want,), _ = batches(source.List(files))
    assert np.array_equal(np.asarray(got.image), np.asarray(want.image))
    assert got.key == [f"{path}/{name}" for name, _ in members]


def test_entries_of_a_sample_may_be_anywhere(tmp_path, photos):
    """Samples have the order of their first ones, and those of another folder are others."""
    files = sorted(photos.rglob("*.jpg"))[:6]
    order = [3, 0, 5, 1, 4, 2]
    members = [(f"a/{i}.txt", b"text %d" % i) for i in order]
    members += [(f"b/{i}.cls", b"1%d" % i) for i in range(2)]
    members += [(f"a/{i}.jpg", files[i].read_bytes()) for i in range(6)]
    members += [(f"b/{i}.jpg", files[i].read_bytes()) for i in range(2)]
    members += [(f"a/{i}.cls", b"%d" % i) for i in reversed(range(6))]
    members += [(f"b/{i}.txt", b"text 1%d" % i) for i in range(2)]
    src = source.Zip(write_zip(tmp_path / "a.zip", members), labels="cls", columns={"caption": "txt"})
    (found,), _ = batches(src)
    assert np.asarray(found.label).tolist() == [*order, 10, 11]
    assert found["caption"] == [f"text {i}" for i in (*order, 10, 11)]
    (want,), _ = batches(source.List([files[i] for i in (*order, 0, 1)]))
    assert np.array_equal(np.asarray(found.image), np.asarray(want.image))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_entries_fail_alone(tmp_path, photos, compression):
    files = sorted(photos.rglob("*.jpg"))[:4]
    members = [(f"{i}.jpg", file.read_bytes()) for i, file in enumerate(files)]
    path = write_zip(tmp_path / "a.zip", members, compression)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("2.jpg")
    damaged = bytearray(path.read_bytes())
    damaged[info.header_offset + 30 + len("2.jpg") + info.compress_size // 2] ^= 0x55
    path.write_bytes(damaged)
    found, pipeline = batches(source.Zip(path), on_error="skip")
    assert np.asarray(found[0].id).tolist() == [0, 1, 3]
    (failure,) = pipeline.failures()
    assert isinstance(failure, CorruptError) and failure.key == f"{path}/2.jpg"


@pytest.mark.parametrize("kind", ["column", "label"])
def test_damaged_columns_fail_alone(tmp_path, photos, kind):
    data = sorted(photos.rglob("*.jpg"))[0].read_bytes()
    members = []
    for i in range(6):
        members += [(f"{i}.jpg", data), (f"{i}.cls", b"1%d" % i), (f"{i}.txt", b"text %d" % i)]
    path = write_zip(tmp_path / "a.zip", members, zipfile.ZIP_STORED)
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index({"column": b"text 3", "label": b"13"}[kind]) + 1] ^= 1
    path.write_bytes(damaged)
    src = source.Zip(path, labels="cls", columns={"caption": "txt"})
    assert src.count() == 6
    found, pipeline = batches(src, on_error="skip")
    assert np.asarray(found[0].label).tolist() == [10, 11, 12, 14, 15]
    assert found[0]["caption"] == [f"text {i}" for i in (0, 1, 2, 4, 5)]
    (failure,) = pipeline.failures()
    assert isinstance(failure, CorruptError) and "wrong CRC-32" in str(failure)
    assert failure.key == f"{path}/3.jpg"


def test_entries_of_other_kinds_fail_alone(tmp_path, photos):
    data = sorted(photos.rglob("*.jpg"))[0].read_bytes()
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("0.jpg", data)
        archive.writestr("1.jpg", data, zipfile.ZIP_BZIP2)
        archive.writestr("2.jpg", data)
    found, pipeline = batches(source.Zip([path, tmp_path / "none.zip"]), on_error="skip")
    assert np.asarray(found[0].id).tolist() == [0, 2]
    other, none = pipeline.failures()
    assert "bzip2" in str(other) and isinstance(none, NotFoundError)


def test_a_bomb_is_no_sample(tmp_path, photos):
    """What an entry stands for counts for the limit on bytes."""
    data = sorted(photos.rglob("*.jpg"))[0].read_bytes()
    path = write_zip(tmp_path / "a.zip", [("0.jpg", data), ("1.jpg", bytes(10**6))])
    builder = PipelineBuilder().add_source(source.Zip(path)).pipe(ops.read(max_bytes=100_000), on_error="skip")
    pipeline = builder.add_sink(1).build(num_threads=1)
    assert [sample.id for sample in pipeline] == [0]
    assert "1000000 bytes, the limit is 100000" in str(pipeline.failures()[0])
