"""Padding and turning, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from augment import apply, close, noise, photo, pictures, uniform
from mixed import begin, failure, results
from stoker import ops, source

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


# --- rotate ---


def turned(x, degrees, filter, fill, center=None):
    """The centre of each new pixel turned back; what lies beyond the picture is the fill."""
    h, w = x.shape[:2]
    cx, cy = center or (w / 2, h / 2)
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    dy, dx = np.mgrid[:h, :w] + 0.5 - np.array([cy, cx])[:, None, None]
    sx, sy = c * dx - s * dy + cx, s * dx + c * dy + cy

    def at(y, x_):
        inside = (y >= 0) & (y < h) & (x_ >= 0) & (x_ < w)
        return np.where(inside[..., None], x[np.clip(y, 0, h - 1), np.clip(x_, 0, w - 1)], fill)

    if filter == "nearest":
        return at(np.floor(sy).astype(int), np.floor(sx).astype(int))
    left, top = np.floor(sx - 0.5).astype(int), np.floor(sy - 0.5).astype(int)
    right, down = (sx - 0.5 - left)[..., None], (sy - 0.5 - top)[..., None]
    above = at(top, left) * (1 - right) + at(top, left + 1) * right
    below = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
    return above * (1 - down) + below * down


@pytest.mark.parametrize("filter", ["nearest", "bilinear"])
@pytest.mark.parametrize("degrees", [-170.5, -12, 0, 3.3, 45.1, 200])
@pytest.mark.parametrize("center", [None, (3.3, 40.0)])
def test_rotate_is_its_formula(filter, degrees, center):
    for x in (noise(1, 30, 41, 3), noise(2, 1, 1, 3), noise(3, 1, 9, 1), noise(4, 9, 1, 2), photo(5)):
        fill = tuple(range(50, 50 + x.shape[-1]))
        got = apply(ops.rotate((degrees, degrees), filter, center=center, fill=fill), x)[0]
        want = turned(x.astype(float), degrees, filter, fill, center)
        if filter == "bilinear":
            close(got, want)
        else:  # but for centres that rounding puts on either side of an edge
            assert (got != want).any(-1).mean() < 0.01


@pytest.mark.parametrize("filter", ["nearest", "bilinear"])
@pytest.mark.parametrize("quarter", range(-4, 5))
def test_quarter_turns_move_pixels(filter, quarter):
    x = noise(1, 7, 4, 3)
    op = ops.rotate((90 * quarter, 90 * quarter), filter, expand=True)
    assert np.array_equal(apply(op, x)[0], np.rot90(x, quarter))
    clip = noise(2, 3, 5, 8, 3)
    assert np.array_equal(apply(op, clip)[0], np.rot90(clip, quarter, (1, 2)))
    square = noise(3, 9, 9, 3)
    flat = ops.rotate((90 * quarter, 90 * quarter), filter)
    assert np.array_equal(apply(flat, square)[0], np.rot90(square, quarter))


@pytest.mark.parametrize(("width", "height"), [(60, 40), (41, 30), (33, 33), (8, 9), (1, 1)])
def test_expanded_turns_are_pillows(width, height):
    """Its sizes at every angle, and its pixels, but for centres that rounding puts on either side of an edge."""
    x = noise(1, height, width, 3)
    image = Image.fromarray(x)
    wrong = pixels = 0
    for degrees in [*range(360), -1, -45, -90, 450, 0.5, 12.34, 89.99]:
        got = apply(ops.rotate((degrees, degrees), expand=True, fill=(1, 2, 3)), x, threads=1)[0]
        want = np.asarray(image.rotate(degrees, expand=True, fillcolor=(1, 2, 3)))
        assert got.shape == want.shape, degrees
        if degrees % 90 == 0:
            assert np.array_equal(got, want)
        wrong += int((got != want).any(-1).sum())
        pixels += width * height
    assert wrong < 0.01 * pixels


def test_expanded_turns_hold_the_whole_picture():
    x = np.full((40, 60, 1), 200, np.uint8)
    for degrees in (7, 45, 100, -33):
        got = apply(ops.rotate((degrees, degrees), "bilinear", expand=True), x)[0]
        assert float(got.sum()) == pytest.approx(40 * 60 * 200, rel=0.01)
    error = failure(begin([x, x]).pipe(ops.rotate(30, expand=True)).batch(2))
    assert "arrays must have one type and shape" in str(error)


def test_angles_are_drawn_from_their_range():
    x = np.zeros((201, 201, 1), np.uint8)
    x[99:102, 190:193] = 255  # to the right of the middle
    got = apply(ops.rotate((-30, 60), "bilinear"), *[x] * 2000)[..., 0].astype(float)
    grid = np.arange(201) - 100.0
    y, across = (got.sum(2) * grid).sum(1), (got.sum(1) * grid).sum(1)
    uniform(np.degrees(np.arctan2(-y, across)), -30, 60)
    angle = np.degrees(np.arctan2(-y, across))
    assert angle.max() > 58 and angle.min() < -28
    both = apply(ops.rotate(20), *[x] * 200)
    assert (both != x).any((1, 2, 3)).mean() > 0.9


def test_masks_turn_with_their_pictures(pictures):
    images, masks = pictures
    decode = ops.decode_image(64, 64, filter="nearest", gray=["image", "mask"])

    def run(op, image=images):
        src = source.List(image=image, mask=masks)
        (batch,) = results(begin(src).pipe(ops.read()).pipe(decode).pipe(op).batch(24))
        return np.asarray(batch.image), np.asarray(batch.mask)

    turn = ops.rotate(40, "bilinear", fill=9, mask_fill=255)
    image, mask = run(turn)
    assert set(np.unique(mask)) <= {0, 100, 200, 255}
    beyond = mask[..., 0] == 255
    assert 0.05 < beyond.mean() < 0.4 and (image[beyond] == 9).mean() > 0.8
    near, same = run(ops.rotate(40, fill=255, mask_fill=255), image=masks)
    assert np.array_equal(near, same) and np.array_equal(mask, same)
