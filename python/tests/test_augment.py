"""What all ops have in common that change pictures at random."""

from __future__ import annotations

import numpy as np
import pytest

from augment import apply, photo, pictures
from mixed import IN_ORDER, begin, failure, results
from stoker import ops, source
from support import digest

ALL = {
    "color_jitter": ops.color_jitter(0.4, 0.4, 0.4, 0.1, p=0.8),
    "grayscale": ops.grayscale(0.5),
    "erase": ops.erase(0.9, value="random"),
    "pad": ops.pad((3, 1), 128),
    "blur": ops.blur(5, p=0.8),
    "rotate": ops.rotate(30, "bilinear", p=0.9),
}
RANDOM = [name for name in ALL if name != "pad"]
ALWAYS = {**ALL, "color_jitter": ops.color_jitter(0.4), "grayscale": ops.grayscale(1), "erase": ops.erase(1), "blur": ops.blur(5)}
ALWAYS["rotate"] = ops.rotate(30)



def native(files, *stages, batch=8, threads=2, **order):
    b = begin(source.List(files, **order)).pipe(ops.read()).pipe(ops.decode_image(32, 24))
    for op in stages:
        b = b.pipe(op)
    return b.batch(batch).add_sink(3).build(num_threads=threads)


@pytest.mark.parametrize("name", RANDOM)
def test_the_same_with_any_number_of_threads(pictures, name):
    files, _ = pictures
    order = {"shuffle": True, "seed": 3, "epochs": 2}
    first = digest(native(files, ALL[name], threads=1, **order))
    for threads in (1, 2, 8):
        assert digest(native(files, ALL[name], threads=threads, **order)) == first
    assert digest(native(files, ALL[name], threads=2, **{**order, "seed": 4})) != first


@pytest.mark.parametrize("name", RANDOM)
def test_what_a_sample_gets_depends_on_epoch_and_id_alone(pictures, name):
    files, _ = pictures

    def by_sample(n=24, batch=8, **order):
        return {
            (b.epoch, int(i)): x.tobytes()
            for b in native(files[:n], ALL[name], batch=batch, **order)
            for i, x in zip(np.asarray(b.id), np.asarray(b.image), strict=True)
        }

    plain = by_sample(epochs=2)
    assert by_sample(epochs=2, batch=5) == plain
    half = by_sample(n=12, epochs=2)
    assert half.items() <= plain.items()
    assert any(plain[0, i] != plain[1, i] for i in range(24))


@pytest.mark.parametrize("name", ALL)
def test_python_on_either_side(pictures, name):
    """A stage of Python before or behind it sees arrays, and what Python keeps stays as it was."""
    files, _ = pictures
    op = ALL[name]
    want = np.concatenate([np.asarray(b.image) for b in native(files, op)])
    kept = []

    def keep(sample):
        kept.append((sample.data, np.asarray(sample.data).copy()))
        return sample

    decoded = begin(source.List(files)).pipe(ops.read()).pipe(ops.decode_image(32, 24))
    between = decoded.pipe(keep, **IN_ORDER).pipe(op).pipe(lambda s: np.asarray(s.data), **IN_ORDER)
    got = np.stack([s.data for s in results(between)])
    assert np.array_equal(got, want)
    assert all(np.array_equal(np.asarray(a), b) for a, b in kept)

    mine = [photo(i, 32, 24) for i in range(8)]
    before = [x.copy() for x in mine]
    apply(op, *mine)
    assert all(map(np.array_equal, mine, before))
    strided = [np.asfortranarray(x) for x in mine]
    assert np.array_equal(apply(op, *strided), apply(op, *mine))


@pytest.mark.parametrize("name", ALL)
def test_wrong_places(pictures, name):
    files, _ = pictures
    with pytest.raises(ValueError, match=f"'{name}' takes arrays but gets bytes: put a decoder before it"):
        begin(source.List(files)).pipe(ops.read()).pipe(ALL[name]).add_sink().build(num_threads=1)
    with pytest.raises(ValueError, match="gets batches: put it before the batch stage"):
        decoded = begin(source.List(files)).pipe(ops.read()).pipe(ops.decode_image(8, 8))
        decoded.batch(2).pipe(ALL[name]).add_sink().build(num_threads=1)


WRONG_ARRAYS = {
    "float32": np.zeros((4, 5, 3), np.float32),
    "(4, 5) uint8": np.zeros((4, 5), np.uint8),
    "without pixels": np.zeros((0, 5, 3), np.uint8),
}


@pytest.mark.parametrize("words", WRONG_ARRAYS)
@pytest.mark.parametrize("name", ALL)
def test_wrong_arrays(name, words):
    error = failure(begin([WRONG_ARRAYS[words]]).pipe(ALWAYS[name]))
    assert words in str(error) and name in str(error)


def test_colours_of_four_channels_are_refused():
    for op in (ops.color_jitter(0.4), ops.grayscale(1)):
        error = failure(begin([np.zeros((4, 5, 4), np.uint8)]).pipe(op))
        assert "needs 1 or 3 channels (gray or RGB), found 4" in str(error)


def test_the_first_part_alone_changes_colour(pictures):
    images, masks = pictures
    src = source.List(image=images, mask=masks)

    def run(*stages):
        b = begin(src).pipe(ops.read()).pipe(ops.decode_image(32, 24, gray=["mask"]))
        for op in stages:
            b = b.pipe(op)
        (batch,) = results(b.batch(24))
        return np.asarray(batch.image), np.asarray(batch.mask)

    image, mask = run(ops.color_jitter(0.5, 0.5, 0.5, 0.1), ops.grayscale(0.5), ops.erase(1), ops.blur(5))
    plain, same = run()
    assert np.array_equal(mask, same) and not np.array_equal(image, plain)


def test_two_of_a_kind_draw_apart():
    x = np.full((1, 1, 3), 100, np.uint8)
    half = ops.color_jitter(brightness=(0.5, 0.5), p=0.5)
    (batch,) = results(begin([x] * 1000).pipe(half).pipe(half).batch(1000))
    values, counts = np.unique(np.asarray(batch.image)[:, 0, 0, 0], return_counts=True)
    assert values.tolist() == [25, 50, 100] and 180 < counts[0] < 320 and 420 < counts[1] < 580


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ops.color_jitter(-0.1), ValueError, "brightness must be from 0 to 15"),
        (lambda: ops.color_jitter((0.5, 0.4)), ValueError, "brightness .* smaller first"),
        (lambda: ops.color_jitter((0.5, 17)), ValueError, r"brightness\[1\] must be from 0 to 16"),
        (lambda: ops.color_jitter(contrast="a"), TypeError, "contrast"),
        (lambda: ops.color_jitter(contrast=(1, 2, 3)), TypeError, "contrast must be a pair"),
        (lambda: ops.color_jitter(saturation=float("nan")), ValueError, "saturation"),
        (lambda: ops.color_jitter(hue=0.6), ValueError, "hue must be from 0 to 0.5"),
        (lambda: ops.color_jitter(hue=(-0.6, 0)), ValueError, r"hue\[0\] must be from -0.5 to 0.5"),
        (lambda: ops.color_jitter(p=1.1), ValueError, "p must be from 0 to 1"),
        (lambda: ops.grayscale(True), TypeError, "p must be a number"),
        (lambda: ops.grayscale(-1), ValueError, "p must be from 0 to 1"),
        (lambda: ops.pad(-1), ValueError, "padding must be from 0 to 65535"),
        (lambda: ops.pad((1, 2, 3)), ValueError, "padding must be a number, 2 or 4 of them, not 3"),
        (lambda: ops.pad(1.5), TypeError, "padding must be an integer"),
        (lambda: ops.pad(1, padding_mode="wrap"), ValueError, "padding_mode must be one of"),
        (lambda: ops.pad(1, fill=300), ValueError, "fill must be from 0 to 255"),
        (lambda: ops.pad(1, masks="mask"), TypeError, "masks must be a list"),
        (lambda: ops.pad(1, mask_fill=-1), ValueError, "mask_fill"),
        (lambda: ops.blur(4), ValueError, "kernel_size must be odd, not 4"),
        (lambda: ops.blur((3, 257)), ValueError, "kernel_size must be from 1 to 255"),
        (lambda: ops.blur((3, 3, 3)), ValueError, "kernel_size must be a number or a pair, not 3"),
        (lambda: ops.blur(3.0), TypeError, "kernel_size must be an integer"),
        (lambda: ops.blur(3, 0), ValueError, "sigma must be from 0.001"),
        (lambda: ops.blur(3, (2, 1)), ValueError, "sigma .* smaller first"),
        (lambda: ops.blur(3, p=-1), ValueError, "p must be"),
        (lambda: ops.rotate(-5), ValueError, "degrees must be from 0"),
        (lambda: ops.rotate((5, -5)), ValueError, "degrees .* smaller first"),
        (lambda: ops.rotate(5, "cubic"), ValueError, "filter must be one of 'nearest', 'bilinear'"),
        (lambda: ops.rotate(5, expand=1), TypeError, "expand must be True or False"),
        (lambda: ops.rotate(5, expand=True, center=(1, 1)), ValueError, "leave center out"),
        (lambda: ops.rotate(5, center=3), TypeError, "center must be a pair"),
        (lambda: ops.rotate(5, fill=(1, 2, 3, 4, 5)), ValueError, "fill must be a number, or 1 to 4"),
        (lambda: ops.erase(2), ValueError, "p must be from 0 to 1"),
        (lambda: ops.erase(scale=0.5), TypeError, "scale must be a pair"),
        (lambda: ops.erase(scale=(0.5, 1.5)), ValueError, r"scale\[1\] must be from 0 to 1"),
        (lambda: ops.erase(ratio=(2, 1)), ValueError, "ratio .* smaller first"),
        (lambda: ops.erase(value=256), ValueError, "value must be from 0 to 255"),
        (lambda: ops.erase(value=0.5), TypeError, "value must be an integer"),
        (lambda: ops.erase(value="noise"), ValueError, "value must be a number"),
        (lambda: ops.erase(value=(1, 2, 3, 4, 5)), ValueError, "value must be a number, or 1 to 4 of them, not 5"),
    ],
)
def test_wrong_options(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_ops_are_values():
    assert ops.color_jitter(0.4) == ops.color_jitter((0.6, 1.4)) != ops.color_jitter(0.5)
    assert ops.color_jitter(hue=0.1).hue == (-0.1, 0.1)
    assert repr(ops.grayscale(0.25)) == "grayscale(p=0.25)"
    assert "p=0.5" in repr(ops.color_jitter(p=0.5)) and "p=" not in repr(ops.color_jitter())
