"""Sources: arguments, labels, columns, several files a sample."""

from __future__ import annotations

import os
import pickle
from array import array
from pathlib import Path

import numpy as np
import pytest

from stoker import PipelineBuilder, PipelineFailure, ops, source
from support import build


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"labels": "name"}, ValueError, "labels"),
        ({"labels": 3}, TypeError, "labels"),
        ({"pattern": ""}, ValueError, "pattern"),
        ({"pattern": []}, ValueError, "pattern"),
        ({"pattern": b"*"}, TypeError, "pattern must be a str or a list of them, not bytes"),
        ({"pattern": 1}, TypeError, "pattern must be .* not int"),
        ({"pattern": ["*.png", 1]}, TypeError, r"pattern\[1\] must be a str, not int"),
        ({"shuffle": 1}, TypeError, "shuffle"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 2**64}, ValueError, "seed"),
        ({"seed": 1.0}, TypeError, "seed"),
        ({"rank": 2, "world_size": 2}, ValueError, "rank"),
        ({"rank": -1}, ValueError, "rank"),
        ({"world_size": 0}, ValueError, "world_size"),
        ({"world_size": 2**31}, ValueError, "world_size must be from 1 to 2147483647"),
        ({"epochs": 0}, ValueError, "epochs"),
        ({"epochs": "all"}, TypeError, "epochs"),
        ({"recursive": None}, TypeError, "recursive"),
        ({"follow_links": None}, TypeError, "follow_links"),
    ],
)
def test_directory_names_the_bad_argument(options, error, text):
    with pytest.raises(error, match=text):
        source.Directory("train", **options)


def test_paths_of_directory(photos):
    for path in (str(photos), os.fsencode(photos), photos, f"{photos}/"):
        assert source.Directory(path).count() == 48
    with pytest.raises(TypeError, match="path"):
        source.Directory(3)
    with pytest.raises(ValueError, match="path"):
        source.Directory("")
    with pytest.raises(ValueError, match="path"):
        source.Directory("a\0b")


def test_patterns(photos):
    assert source.Directory(photos, pattern="0?.jpg").count() == 30
    assert source.Directory(photos, pattern=["00.jpg", "*3.jpg"]).count() == 9
    for options in ({"pattern": "*.png"}, {"recursive": False}):
        with pytest.raises(ValueError, match="no files"):
            source.Directory(photos, **options).count()


def test_classes_and_labels(photos):
    src = source.Directory(photos, labels="dir")
    assert src.classes() == ["c0", "c1", "c2"]
    labels = np.concatenate([np.asarray(b.label) for b in build(src)])
    assert labels.tolist() == [0] * 16 + [1] * 16 + [2] * 16
    with pytest.raises(ValueError, match="labels"):
        source.Directory(photos).classes()
    (batch, *_) = build(source.Directory(photos))
    assert "label" not in batch
    assert "Directory(" in repr(src) and str(photos) in repr(src)
    assert 0 < src.memory() < 64 * 48 + 8192


def test_labels_need_folders(tmp_path):
    with pytest.raises(ValueError, match="only files of the top folder were asked for"):
        list(build(source.Directory(tmp_path, labels="dir", recursive=False)))


def one(paths, labels=None, **columns):
    """The only batch of a list."""
    (batch,) = build(source.List(paths, labels, **columns), batch=len(paths))
    return batch


@pytest.mark.parametrize(
    ("labels", "dtype", "want"),
    [
        ([3, 1, 2], "int64", [3, 1, 2]),
        ((3, 1, 2), "int64", [3, 1, 2]),
        (range(3), "int64", [0, 1, 2]),
        ([0.5, 1, 2], "float64", [0.5, 1.0, 2.0]),
        ([True, False, True], "bool", [True, False, True]),
        ([[1, 2], [3, 4], [5, 6]], "int64", [[1, 2], [3, 4], [5, 6]]),
        ([[[1.0], [2.0]]] * 3, "float64", [[[1.0], [2.0]]] * 3),
        (np.array([3, 1, 2], np.int32), "int32", [3, 1, 2]),
        (np.arange(6, dtype=np.float32).reshape(3, 2), "float32", [[0, 1], [2, 3], [4, 5]]),
        (np.arange(6)[::2], "int64", [0, 2, 4]),
        (np.arange(6).reshape(2, 3).T, "int64", [[0, 3], [1, 4], [2, 5]]),
        ([np.float32(1), np.float32(2), np.float32(3)], "float64", [1.0, 2.0, 3.0]),
        ([np.array([1, 2])] * 3, "int64", [[1, 2]] * 3),
        (array("h", [1, 2, 3]), "int16", [1, 2, 3]),
        (bytearray(b"abc"), "uint8", [97, 98, 99]),
        (np.array([1, 2, 3], np.float16), "float16", [1, 2, 3]),
        (np.arange(6, dtype=np.float16)[::2], "float16", [0, 2, 4]),
        (np.arange(6, dtype=np.float16).reshape(2, 3).T, "float16", [[0, 3], [1, 4], [2, 5]]),
    ],
)
def test_labels(paths, labels, dtype, want):
    batch = one(paths[:3], labels)
    assert batch.label.dtype == dtype
    assert np.asarray(batch.label).tolist() == want


def test_strings(paths):
    batch = one(paths[:3], ["a", "b", "é"], caption=np.array(["x", "yy", "zzz"]), raw=[b"1", b"2", b"\xff"])
    assert batch.label == ["a", "b", "é"]
    assert batch["caption"] == ["x", "yy", "zzz"]
    assert [os.fsencode(s) for s in batch["raw"]] == [b"1", b"2", b"\xff"]


def test_as_many_columns_as_a_batch_has_room_for(paths):
    columns = {f"x{i}": [i, -i] for i in range(61)}
    batch = one(paths[:2], **columns)
    assert all(np.asarray(batch[name]).tolist() == values for name, values in columns.items())


def test_a_field_too_many_is_named(paths):
    labels = [[1.0, 0.0], [0.0, 1.0]]
    src = source.List(paths[:2], labels, **{f"x{i}": [i, -i] for i in range(60)})
    b = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(ops.decode_image(8, 8)).batch(2)
    with pytest.raises(PipelineFailure) as caught:
        list(b.pipe(ops.mixup()).add_sink().build(num_threads=1))
    assert 'field "label_b": a batch has 64 fields at most' in str(caught.value.exceptions[0])


def test_columns_follow_their_sample(paths):
    n = len(paths)
    box = np.random.default_rng(0).uniform(size=(n, 4)).astype(np.float32)
    src = source.List(paths, range(n), box=box, name=[p.name for p in paths], shuffle=True)
    for batch in build(src):
        index = np.asarray(batch.id)
        assert np.array_equal(np.asarray(batch.label), index)
        assert np.array_equal(np.asarray(batch["box"]), box[index])
        assert batch["name"] == [Path(key).name for key in batch.key]
    assert repr(src).startswith("List(48 samples of image, box, name, label")
    assert len(src) == 48


def test_arrays_are_copied(paths):
    labels = np.arange(3)
    src = source.List(paths[:3], labels)
    labels[:] = 9
    (batch,) = build(src, batch=3)
    assert np.asarray(batch.label).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("args", "columns", "error", "text"),
    [
        ((), {}, ValueError, "paths"),
        (("a.jpg",), {}, TypeError, "list of paths"),
        ((["a.jpg", 3],), {}, TypeError, r"image\[1\]"),
        ((["a\0b"],), {}, ValueError, "NUL"),
        ((["a"], [1, 2]), {}, ValueError, "label has 2 values for 1"),
        ((["a"], ["x", "y"]), {}, ValueError, "label has 2 values for 1"),
        ((["a", "b"], [[1, 2], [3]]), {}, ValueError, "same shape"),
        ((["a", "b"], [1, "x"]), {}, TypeError, "labels must be all numbers or all strings"),
        ((["a"], [2**70]), {}, ValueError, "labels.*64 bits"),
        ((["a"], "x"), {}, TypeError, "labels"),
        ((["a"], [None]), {}, TypeError, "labels"),
        ((["a"],), {f"x{i}": [i] for i in range(62)}, ValueError, "62 columns.* room for 61"),
        ((["a"], [0]), {f"x{i}": [i] for i in range(61)}, ValueError, "62 columns"),
        (({"a", "b"},), {}, TypeError, "image must be a sequence in the order of the samples, not a set"),
        (({"a": 0},), {}, TypeError, "image .* not a dict"),
        ((["a", "b"], {"a": 1, "b": 0}), {}, TypeError, "labels must be a sequence .* not a dict"),
        ((["a", "b"], frozenset((1, 2))), {}, TypeError, "labels .* not a frozenset"),
        ((["a"],), {"mask": {"a"}}, TypeError, "mask .* not a set"),
        ((["a"],), {"weight": {0: 1.0}}, TypeError, "weight .* not a dict"),
        ((["a"], np.array([1j])), {}, TypeError, "labels"),
        ((["a"], [[]]), {}, ValueError, "labels"),
        ((["a"],), {"id": [1]}, ValueError, "id"),
        ((["a"],), {"key": [1]}, ValueError, "key"),
        ((["a"],), {"image": ["a"]}, ValueError, "image"),
        ((["a"], [1]), {"label": [1]}, ValueError, "label"),
        ((), {"image": ["a"], "mask": ["a", "b"]}, ValueError, "mask has 2 paths"),
        ((["a"],), {"seed": -1}, ValueError, "seed"),
        ((["a"],), {"files": "mask"}, TypeError, "files"),
    ],
)
def test_list_names_the_bad_argument(args, columns, error, text):
    with pytest.raises(error, match=text):
        source.List(*args, **columns)


def test_several_files_a_sample(paths):
    src = source.List(left=paths[:6], image=paths[:6], files=["left"], side=[1, 2, 3, 4, 5, 6])
    (batch,) = build(src, batch=6)
    assert np.array_equal(np.asarray(batch.left), np.asarray(batch.image))
    assert np.asarray(batch["side"]).tolist() == [1, 2, 3, 4, 5, 6]


def test_paths_of_any_kind(paths):
    (batch,) = build(source.List([str(paths[0]), os.fsencode(paths[1]), paths[2]]), batch=3)
    assert batch.key == [str(p) for p in paths[:3]]
    (batch,) = build(source.List(str(p) for p in paths[:2]))
    assert len(batch) == 2
    (batch,) = build(source.List(np.array([str(p) for p in paths[:2]])))
    assert len(batch) == 2


def test_views_of_a_dict_are_ordered(paths):
    labels = dict(zip(paths[:3], (2, 0, 1), strict=True))
    batch = one(labels.keys(), labels.values(), path=map(str, labels))
    assert batch.key == batch["path"] == [str(p) for p in paths[:3]]
    assert np.asarray(batch.label).tolist() == [2, 0, 1]


def test_sources_pickle(photos, paths):
    columns = {
        "caption": [str(i) for i in range(6)],
        "box": np.arange(24, dtype=np.int16).reshape(6, 2, 2),
        "weight": np.linspace(0, 1, 6, dtype=np.float16),
        "good": [True, False] * 3,
        "view": np.arange(12, dtype=np.float32)[::2],
    }
    for src in (
        source.Directory(photos, labels="dir", shuffle=True, seed=3, rank=1, world_size=2),
        source.List(paths[:6], range(6), shuffle=True, **columns),
    ):
        again = pickle.loads(pickle.dumps(src))
        assert repr(again) == repr(src)
        for batch, copy in zip(build(src), build(again), strict=True):
            assert batch.key == copy.key and bytes(batch.image) == bytes(copy.image)
            for name in columns if isinstance(src, source.List) else ():
                assert np.array_equal(np.asarray(batch[name]), np.asarray(copy[name]))


def test_one_source_in_two_pipelines_at_once(photos):
    src = source.Directory(photos, shuffle=True)
    pairs = list(zip(build(src), build(src), strict=True))
    assert all(bytes(a.image) == bytes(b.image) for a, b in pairs) and len(pairs) == 6
