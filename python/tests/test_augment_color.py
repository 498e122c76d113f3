"""Colours, erasing and blur, against torchvision's formulas in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from augment import apply, close, noise, photo, uniform
from mixed import begin, failure
from stoker import ops

LUMA = np.array([0.2989, 0.587, 0.114])


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
