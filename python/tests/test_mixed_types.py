"""What the engine takes of what Python has made, and what it says of the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mixed import IN_ORDER, begin, failure, images, read_and_decode, results
from stoker import Sample, errors, ops, source
from support import ids


@pytest.fixture(scope="module")
def labelled(photos):
    return source.Directory(photos, labels="dir")


# --- what the engine takes ---


def test_paths_for_read(paths):
    plain = [str(p) for p in paths]
    want = images(source.List(paths))
    for src in (plain, paths):
        got = results(read_and_decode(src).batch(48))
        assert np.array_equal(np.asarray(got[0].image), want)
        assert got[0].key == plain and ids(got[0]) == list(range(48))
    sampled = [Sample(p, key="not read", id=7 * i) for i, p in enumerate(paths)]
    (got,) = results(read_and_decode(sampled).batch(48))
    assert np.array_equal(np.asarray(got.image), want)
    assert got.key == plain and ids(got) == [7 * i for i in range(48)]


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
def test_bytes_for_a_decoder(labelled, wrap):
    b = begin(labelled).pipe(lambda s: wrap(Path(s.data).read_bytes()), **IN_ORDER)
    (batch,) = results(b.pipe(ops.decode_image(8, 6)).batch(48))
    assert np.array_equal(np.asarray(batch.image), images(labelled))
    assert np.asarray(batch.label).tolist() == [i // 16 for i in range(48)]
    assert [Path(key).parent.name for key in batch.key] == [f"c{i // 16}" for i in range(48)]


def test_what_came_out_goes_in_again(labelled):
    b = begin(labelled).pipe(lambda s: s, **IN_ORDER).pipe(ops.read()).pipe(lambda s: s.data, **IN_ORDER)
    b.pipe(ops.decode_image(8, 6)).pipe(lambda s: s, **IN_ORDER).batch(48).pipe(lambda b: b, **IN_ORDER)
    (batch,) = results(b.pipe(ops.normalize(scale=1)))
    assert np.array_equal(np.asarray(batch.image), images(labelled).astype(np.float32))


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class Capsule:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()


def packed(array):
    """As pictures of Pillow give themselves: bytes instead of an address."""
    class Picture:
        __array_interface__ = {
            "version": 3, "shape": array.shape, "typestr": array.dtype.str, "data": array.tobytes()
        }

    return Picture()


@pytest.mark.parametrize("wrap", [np.asarray, memoryview, Interface, Capsule, packed])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "int64", "float16", "bool"])
def test_arrays_for_a_batch(wrap, dtype):
    arrays = [(np.arange(6).reshape(2, 3) + i).astype(dtype) for i in range(5)]
    got = results(begin(range(5)).pipe(lambda i: wrap(arrays[i]), on_error="raise", **IN_ORDER).batch(3))
    assert [len(batch) for batch in got] == [3, 2]
    assert got[0].image.dtype == dtype
    assert np.array_equal(np.concatenate([np.asarray(b.image) for b in got]), np.stack(arrays))


def test_pictures_of_pillow(paths):
    image = pytest.importorskip("PIL.Image")

    def load(path):
        with image.open(path) as opened:
            return opened.convert("RGB").resize((9, 7))

    (batch,) = results(begin(paths).pipe(load, **IN_ORDER).batch(48))
    assert np.array_equal(np.asarray(batch.image)[5], np.asarray(load(paths[5])))


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, ::-1],
        lambda a: a.transpose(2, 0, 1),
        lambda a: a[1:4, ::2],
        lambda a: np.broadcast_to(a[0, 0, 0], (3, 4)),
        lambda a: a[0, 0, 0],
        lambda a: a[:0],
        np.asfortranarray,
    ],
)
def test_views_of_any_strides(view):
    arrays = [np.random.default_rng(i).integers(0, 255, (5, 6, 3), np.int32) for i in range(4)]
    (batch,) = results(begin(arrays).pipe(view, on_error="raise", **IN_ORDER).batch(4))
    assert np.array_equal(np.asarray(batch.image), np.stack([view(a) for a in arrays]))


LABELS = [
    ([3, -1, 2], "int64"),
    ([0.5, 1.0, 2.0], "float64"),
    ([True, False, True], "bool"),
    ([np.float32(1), np.float32(2), np.float32(3)], "float32"),
    ([np.arange(3, dtype=np.int32)[::-1], np.arange(3, dtype=np.int32), np.zeros(3, np.int32)], "int32"),
]


@pytest.mark.parametrize(("labels", "dtype"), LABELS)
def test_data_and_label(labels, dtype):
    b = begin(range(3)).pipe(lambda i: (np.zeros(2), labels[i]), on_error="raise", **IN_ORDER).batch(3)
    (batch,) = results(b)
    assert batch.label.dtype == dtype
    assert np.array_equal(np.asarray(batch.label), np.stack(labels))


def test_labels_may_be_text_or_change_their_type(labelled, paths):
    def name(s):
        s.label = f"ÿ class {s.label}"
        return s

    b = read_and_decode(labelled).pipe(name, on_error="raise", **IN_ORDER).batch(48)
    (batch,) = results(b)
    assert batch.label == [f"ÿ class {i // 16}" for i in range(48)]
    again = read_and_decode(labelled).pipe(name, **IN_ORDER).batch(48).disaggregate()
    assert [s.label for s in results(again)] == batch.label
    words = source.List(paths, label=[f"w{i}" for i in range(48)])
    indexed = begin(words).pipe(lambda s: (s.data, int(s.label[1:])), **IN_ORDER).pipe(ops.read())
    (batch,) = results(indexed.pipe(ops.decode_image(8, 8)).batch(48))
    assert np.asarray(batch.label).tolist() == list(range(48))


def test_other_columns_and_keys_stay(paths):
    src = source.List(paths, weight=np.arange(48) / 2, caption=[f"c{i}" for i in range(48)])

    def rename(s):
        s.key = f"k{s.id}"
        return s

    (batch,) = results(read_and_decode(src).pipe(rename, **IN_ORDER).batch(48))
    assert batch.key == [f"k{i}" for i in range(48)]
    assert batch["caption"] == [f"c{i}" for i in range(48)]
    assert np.array_equal(np.asarray(batch["weight"]), np.arange(48) / 2)


def test_several_parts(paths):
    def flip(s):
        assert len(s.parts) == 2
        s.parts = [np.asarray(part)[:, ::-1] for part in s.parts]
        return s

    def both(src, *stages):
        b = begin(src).pipe(ops.read()).pipe(ops.decode_image(8, 6))
        for stage in stages:
            b.pipe(stage, on_error="raise", **IN_ORDER)
        (batch,) = results(b.batch(48))
        return np.asarray(batch.image), np.asarray(batch.mask)

    src = source.List(image=paths, mask=paths)
    image, mask = both(src)
    flipped = both(src, flip)
    assert np.array_equal(flipped[0], image[:, :, ::-1]) and np.array_equal(flipped[1], mask[:, :, ::-1])
    kept = both(src, lambda s: np.asarray(s.data) // 2)
    assert np.array_equal(kept[0], image // 2) and np.array_equal(kept[1], mask)

    def drop(s):
        s.parts = s.parts[:1] if s.id == 3 else s.parts
        return s

    error = failure(read_and_decode(src).pipe(drop, **IN_ORDER).batch(8))
    assert "sample 3 has 1 parts, but sample 0 has 2" in str(error)

    def more(s):
        s.parts = [*s.parts, s.data]
        return s

    error = failure(read_and_decode(src).pipe(more, on_error="raise", **IN_ORDER).batch(8))
    assert isinstance(error, ValueError) and "stage 'batch': a sample of 3 parts" in str(error)


def test_keys_alone_can_be_batched(labelled):
    (batch,) = results(begin(labelled).pipe(lambda s: s if s.label else None, **IN_ORDER).batch(48))
    assert ids(batch) == list(range(16, 48)) and "image" not in batch
    assert np.asarray(batch.label).tolist() == [i // 16 for i in range(16, 48)]


# --- what does not fit ---


TYPES = [
    (ops.read(), 3, "stage 'read' takes a str or os.PathLike"),
    (ops.read(), b"a", "these are bytes already"),
    (ops.read(), Sample(2.5), "not float"),
    (ops.decode_image(8, 8), "a.jpg", "stage 'decode_image' takes a bytes-like object"),
    (ops.decode_image(8, 8), {}, "not dict"),
    (ops.normalize(), [1], "stage 'normalize' takes a Batch, not list"),
]


@pytest.mark.parametrize(("op", "item", "text"), TYPES)
@pytest.mark.parametrize("behind", ["source", "function", "generator"])
def test_type_errors_name_the_stage(op, item, text, behind):
    def same(x):
        return x

    def each(x):
        yield x

    b = begin([item])
    if behind != "source":
        b.pipe(same if behind == "function" else each, on_error="raise")
    error = failure(b.pipe(op))
    assert isinstance(error, TypeError) and text in str(error)


@pytest.mark.parametrize("item", [3, "text", None.__class__, {"a": 1}, [1, 2], np.array(["a"]), np.array([1j])])
def test_a_batch_takes_arrays(item):
    error = failure(begin([0]).pipe(lambda x: item, on_error="raise").batch(2))
    assert isinstance(error, TypeError) and "stage 'batch'" in str(error)


def test_labels_that_fit_nothing():
    error = failure(begin([0]).pipe(lambda x: (np.zeros(2), {}), on_error="raise").batch(2))
    assert isinstance(error, TypeError) and "stage 'batch': a label is a number, a str" in str(error)
    mixed = begin(range(4)).pipe(lambda x: (np.zeros(2), x if x < 2 else str(x)), **IN_ORDER)
    assert "the label of sample 2 is a string, but the batch holds int64" in str(failure(mixed.batch(4)))
    some = begin(range(4)).pipe(lambda x: (np.zeros(2), x) if x < 2 else np.zeros(2), **IN_ORDER)
    assert "sample 2 has no label" in str(failure(some.batch(4)))


def test_a_bad_type_is_that_samples_failure(labelled):
    p = (
        begin(labelled)
        .pipe(lambda s: s.id if s.id == 4 else s.data, name="open", **IN_ORDER)
        .pipe(ops.read())
        .pipe(ops.decode_image(8, 8))
        .batch(8)
        .add_sink(3)
        .build(num_threads=2)
    )
    with p.auto_stop():
        assert [len(b) for b in p] == [7, 8, 8, 8, 8, 8]
    (error,) = p.failures()
    assert (error.stage, error.id) == ("open", 4) and "stage 'read' takes" in str(error)


def test_an_error_inside_an_array_is_told():
    class Broken:
        def __dlpack__(self):
            raise BufferError("on another device")

    error = failure(begin([0]).pipe(lambda x: Broken(), on_error="raise").batch(2))
    assert isinstance(error, BufferError) and str(error) == "stage 'batch': on another device"
    assert isinstance(error.__cause__, BufferError)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"typestr": ">i8"}, "not supported"),
        ({"shape": (1 << 62, 1 << 62)}, "bad shape"),
        ({"shape": [2]}, "must be tuples"),
        ({"shape": (-1,)}, "bad shape"),
        ({"shape": (9,)}, "too short"),
        ({"shape": (1,) * 9}, "9 dimensions"),
        ({"data": None}, "without data"),
        ({"strides": (8,)}, "strides need an address"),
    ],
)
def test_interfaces_that_lie(change, text):
    class Liar:
        __array_interface__ = {"typestr": "<i8", "shape": (2,), "data": bytes(16), **change}

    error = failure(begin([0]).pipe(lambda x: Liar(), on_error="raise").batch(2))
    assert text in str(error)


def test_a_failure_behind_python_cannot_be_substituted(labelled):
    b = begin(labelled).pipe(lambda s: s.data, name="mine").pipe(ops.read(), on_error="substitute")
    with pytest.raises(errors.InvalidArgumentError, match="behind stage 'mine'"):
        results(b)
