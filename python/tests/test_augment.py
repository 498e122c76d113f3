"""Ops that change pictures at random, against torchvision's formulas in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PIL import Image

from mixed import IN_ORDER, begin, failure, results
from stoker import ops, source
from support import digest, picture

LUMA = np.array([0.2989, 0.587, 0.114])


def noise(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def photo(seed=0, width=60, height=40):
    return np.asarray(picture(seed, width, height))


def apply(op, *arrays, threads=2):
    """What the op makes of each, in one batch."""
    (batch,) = results(begin(arrays).pipe(op).batch(len(arrays)), threads)
    return np.asarray(batch.image)


def close(got, want, tolerance=1):
    """`want` in real numbers: pixels are within the tolerance, of 255."""
    assert got.dtype == np.uint8 and got.shape == want.shape
    worst = np.abs(got - np.clip(want, 0, 255)).max()
    assert worst <= tolerance, worst


# --- the formulas ---


def blend(x, other, f):
    return np.clip(f * x + (1 - f) * other, 0, 255)


def luma(x):
    return x if x.shape[-1] == 1 else (x @ LUMA)[..., None]


def brightness(x, f):
    return blend(x, 0, f)


def contrast(x, f):
    return blend(x, luma(x).mean((-3, -2, -1), keepdims=True), f)


def saturation(x, f):
    return x if x.shape[-1] == 1 else blend(x, luma(x), f)


def hue(x, f):
    """HSV by Smith's hexcone, the angle turned by f of the circle, and back."""
    if x.shape[-1] == 1:
        return x
    high, low = x.max(-1), x.min(-1)
    c = high - low
    safe = np.where(c > 0, c, 1)
    r, g, b = np.moveaxis(x, -1, 0)
    h = np.where(high == r, (g - b) / safe, np.where(high == g, 2 + (b - r) / safe, 4 + (r - g) / safe))
    h = np.where(c > 0, (h / 6 + f) % 1 * 6, 0)
    i = np.floor(h).astype(int) % 6
    up, down = low + c * (h - np.floor(h)), high - c * (h - np.floor(h))
    table = [(high, up, low), (down, high, low), (low, high, up), (low, down, high), (up, low, high), (high, low, down)]
    return np.stack([np.choose(i, [row[k] for row in table]) for k in range(3)], -1)


STEPS = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}


# --- color_jitter and grayscale ---


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("factor", [0.0, 0.1, 0.5, 0.97, 1.0, 1.3, 2.0, 3.5, 9.0])
def test_one_adjustment_is_its_formula(step, factor, channels):
    if step == "hue":
        factor = factor / 9 - 0.5
    for x in (noise(1, 33, 47, channels), photo()[..., :channels], noise(2, 1, 1, channels), noise(3, 1, 9, channels)):
        got = apply(ops.color_jitter(**{step: (factor, factor)}), x)[0]
        close(got, STEPS[step](x.astype(float), factor))


def test_clips_get_the_same_in_all_frames_and_contrast_of_each():
    clip = np.stack([photo(i, 40, 30) for i in range(5)])
    got = apply(ops.color_jitter(contrast=(0.4, 0.4)), clip)[0]
    close(got, contrast(clip.astype(float), 0.4))
    same = np.stack([clip[0]] * 4)
    for op in (ops.color_jitter(0.5, 0.5, 0.5, 0.2), ops.grayscale(0.5)):
        for got in apply(op, *[same] * 8):
            assert (got == got[0]).all()


def test_the_four_follow_in_an_order_drawn_for_each_sample():
    fixed = {"brightness": 2.0, "contrast": 1.7, "saturation": 2.0, "hue": 0.2}
    x = noise(5, 24, 24, 3)
    orders = {}
    for order in itertools.permutations(fixed):
        y = x.astype(float)
        for step in order:
            y = np.rint(STEPS[step](y, fixed[step]))
        orders[order] = y
    pairs = itertools.combinations(orders.values(), 2)
    assert min(np.abs(a - b).mean() for a, b in pairs) > 2  # since they clip, too
    seen = dict.fromkeys(orders, 0)
    n = 2400
    for got in apply(ops.color_jitter(**{k: (f, f) for k, f in fixed.items()}), *[x] * n):
        apart = {order: np.abs(got - y).mean() for order, y in orders.items()}
        best = min(apart, key=apart.__getitem__)
        assert apart[best] < 1  # each step rounds: some pixels are off by what the next make of one
        seen[best] += 1
    # n / 24 each; the statistic of 23 degrees of freedom is above 49.7 once in a thousand
    assert sum((k - n / 24) ** 2 / (n / 24) for k in seen.values()) < 49.7


def uniform(values, low, high):
    """Kolmogorov and Smirnov: more than 1.95 / sqrt(n) apart is once in a thousand."""
    u = np.sort((np.asarray(values) - low) / (high - low))
    n = len(u)
    assert -0.01 < u[0] and u[-1] < 1.01
    assert np.abs(u - (np.arange(n) + 0.5) / n).max() < 1.95 / np.sqrt(n) + 0.01  # of rounding


def test_factors_are_drawn_from_their_ranges():
    flat = np.full((1, 1, 3), 100, np.uint8)
    uniform(apply(ops.color_jitter(brightness=0.4), *[flat] * 3000)[:, 0, 0, 0], 60, 140)
    uniform(apply(ops.color_jitter(brightness=(0.2, 2.5)), *[flat] * 3000)[:, 0, 0, 0], 20, 250)
    assert apply(ops.color_jitter(brightness=3), *[flat] * 500).min() == 0  # from 0, not from -2
    two = np.array([[[50] * 3, [150] * 3]], np.uint8)
    spread = np.diff(apply(ops.color_jitter(contrast=0.8), *[two] * 3000)[:, 0, :, 0].astype(int), axis=1)
    uniform(spread[:, 0], 20, 180)
    red = np.array([[[200, 0, 0]]], np.uint8)
    g, b = apply(ops.color_jitter(hue=0.15), *[red] * 3000)[:, 0, 0, 1:].astype(float).T
    uniform((g - b) / 1200, -0.15, 0.15)


def test_grayscale():
    x = np.stack([noise(i, 9, 11, 3) for i in range(4)])
    got = apply(ops.grayscale(1), *x)
    close(got, np.repeat(luma(x.astype(float)), 3, -1))
    assert (got[..., :1] == got).all()
    assert np.array_equal(apply(ops.grayscale(1), x[..., :1][0])[0], x[..., :1][0])
    assert np.array_equal(apply(ops.grayscale(0), *x), x)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_p_is_the_share_that_changes(p):
    n = 2000
    flat = np.array([[[200, 0, 0]]], np.uint8)
    for op in (ops.grayscale(p), ops.color_jitter(brightness=(0, 0), p=p)):
        share = (apply(op, *[flat] * n) != flat).any((1, 2, 3)).mean()
        assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / n)


# --- erase ---


def boxes(op, n, height, width):
    """(y, x, height, width) of what it fills in pictures of another colour."""
    found = []
    for got in apply(op, *[np.full((height, width, 1), 200, np.uint8)] * n):
        y, x = np.nonzero(got[..., 0] != 200)
        if len(y):
            box = (y.min(), x.min(), np.ptp(y) + 1, np.ptp(x) + 1)
            assert len(y) == box[2] * box[3]
            found.append(box)
    return np.array(found, float).T


def test_erased_boxes_are_drawn_as_torchvision_does():
    y, x, h, w = boxes(ops.erase(1, scale=(0.1, 0.2), ratio=(0.5, 2.0)), 3000, 300, 400)
    assert len(y) == 3000
    uniform(h * w / 120000, 0.1, 0.2)
    uniform(np.log(h / w), np.log(0.5), np.log(2))
    uniform(y / (300 - h), 0, 1)
    uniform(x / (400 - w), 0, 1)
    assert abs(np.corrcoef(y, x)[0, 1]) < 0.07
    assert len(boxes(ops.erase(), 2000, 20, 20)[0]) == pytest.approx(1000, abs=90)  # p: a half
    assert boxes(ops.erase(1, scale=(1, 1)), 50, 20, 20).size == 0  # never less high and less wide
    assert boxes(ops.erase(1, scale=(0, 0)), 50, 20, 20).size == 0
    tall = boxes(ops.erase(1, scale=(0.2, 0.9), ratio=(4, 5)), 500, 20, 20)
    assert 0 < tall.shape[1] < 500 and (tall[2] < 20).all()  # those that fit in ten tries


def test_erased_colours():
    x = np.full((40, 40, 3), 200, np.uint8)
    for got in apply(ops.erase(1, value=(1, 2, 3)), *[x] * 20):
        colours = {tuple(p) for p in got.reshape(-1, 3).tolist()}
        assert colours == {(1, 2, 3), (200, 200, 200)}
    clip = np.full((4, 40, 40, 3), 200, np.uint8)
    for got in apply(ops.erase(1, value="random"), *[clip] * 20):
        assert (got == got[0]).all() and (got != 200).any()
    error = failure(begin([x[..., :1]]).pipe(ops.erase(1, value=(1, 2, 3))))
    assert "the fill has 3 values, but the array 1 channels" in str(error)


# --- pad ---


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [0, 3, (4, 1), (1, 2, 3, 40)])
@pytest.mark.parametrize("shape", [(7, 9, 3), (1, 1, 3), (1, 6, 1), (3, 5, 4, 3), (9, 1, 2)])
def test_pad_is_numpys(mode, padding, shape):
    x = noise(1, *shape)
    left, top, right, bottom = {int: lambda p: (p,) * 4, tuple: lambda p: p if len(p) == 4 else p * 2}[
        type(padding)
    ](padding)
    widths = [(0, 0)] * (x.ndim - 3) + [(top, bottom), (left, right), (0, 0)]
    want = np.pad(x, widths, mode, **({"constant_values": 77} if mode == "constant" else {}))
    got = apply(ops.pad(padding, 77, mode), x, x)
    assert np.array_equal(got, np.stack([want, want]))


def test_pad_gives_each_part_its_fill(pictures):
    images, masks = pictures

    def run(op, **names):
        src = source.List(image=images, mask=masks, files=["image", "mask", *names], **names)
        decoded = begin(src).pipe(ops.read()).pipe(ops.decode_image(8, 6, filter="nearest", gray=["mask", *names]))
        b = decoded.pipe(op)
        return results(b.batch(24))[0]

    batch = run(ops.pad(2, (1, 2, 3), mask_fill=255))
    image, mask = np.asarray(batch.image), np.asarray(batch.mask)
    assert image.shape == (24, 10, 12, 3) and mask.shape == (24, 10, 12, 1)
    assert (image[:, 0] == (1, 2, 3)).all() and (mask[:, :, -1] == 255).all()
    assert set(np.unique(mask[:, 2:-2, 2:-2])) <= {0, 100, 200}
    batch = run(ops.pad(2, 9, masks=["depth"], mask_fill=255), depth=masks)
    assert (np.asarray(batch.mask)[:, 0] == 9).all() and (np.asarray(batch.depth)[:, 0] == 255).all()
    with pytest.raises(ValueError, match="masks: the source has no part 'depth'"):
        run(ops.pad(2, masks=["depth"]))


# --- blur ---


def gaussian(x, size, sigma):
    """By its definition, one axis after the other."""
    for axis, k in ((-2, size[0]), (-3, size[1])):
        t = np.arange(k) - k // 2
        weights = np.exp(-(t**2) / (2 * sigma**2))
        widths = [(0, 0)] * x.ndim
        widths[axis] = (k // 2, k // 2)
        wide = np.pad(x, widths, "reflect")
        n = x.shape[axis]
        x = sum(w * wide.take(range(i, i + n), axis) for i, w in enumerate(weights / weights.sum()))
    return x


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 9), (23, 23), (1, 7), (101, 51)])
@pytest.mark.parametrize("sigma", [0.001, 0.1, 0.8, 2.0, 30.0])
def test_blur_is_its_formula(size, sigma):
    for x in (noise(1, 30, 41, 3), noise(2, 1, 1, 3), noise(3, 1, 9, 1), noise(4, 9, 1, 4), noise(5, 3, 8, 7, 3)):
        close(apply(ops.blur(size, sigma), x)[0], gaussian(x.astype(float), size, sigma))


def test_sigma_is_drawn_from_its_range():
    point = np.zeros((1, 1001, 1), np.uint8)
    point[0, 500] = 255
    row = apply(ops.blur((3, 1), (0.5, 2)), *[point] * 3000)[:, 0, :, 0].astype(float)
    side = row[:, 499] / row[:, 500]  # exp(-1 / (2 sigma^2))
    uniform(1 / np.sqrt(-2 * np.log(side)), 0.5, 2)


# --- any op ---

ALL = {
    "color_jitter": ops.color_jitter(0.4, 0.4, 0.4, 0.1, p=0.8),
    "grayscale": ops.grayscale(0.5),
    "erase": ops.erase(0.9, value="random"),
    "pad": ops.pad((3, 1), 128),
    "blur": ops.blur(5, p=0.8),
}
RANDOM = [name for name in ALL if name != "pad"]
ALWAYS = {**ALL, "color_jitter": ops.color_jitter(0.4), "grayscale": ops.grayscale(1), "erase": ops.erase(1), "blur": ops.blur(5)}



@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Files whose pixels are known, and masks of three classes."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for i in range(24):
        Image.fromarray(photo(i, 48, 36)).save(root / f"i{i:02}.png")
        Image.fromarray(rng.integers(0, 3, (36, 48), np.uint8) * 100).save(root / f"m{i:02}.png")
    return sorted(root.glob("i*.png")), sorted(root.glob("m*.png"))


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
