"""Resampling against Pillow: never more than 1 of 255 apart, in any value.

The program under test is resample_tool; the environment variable STK_RESAMPLE_TOOL says where it
is.  STK_RESAMPLE_CASES sets the number of random cases of each test.
"""

import math
import os
import pathlib
import subprocess

import numpy as np
import PIL
import pytest
from PIL import Image

CASES = int(os.environ.get("STK_RESAMPLE_CASES", "150"))
FILTERS = [
    Image.Resampling.BILINEAR,
    Image.Resampling.BICUBIC,
    Image.Resampling.LANCZOS,
    Image.Resampling.BOX,
    Image.Resampling.NEAREST,
]
NAMES = ["bilinear", "bicubic", "lanczos", "box", "nearest"]
MODES = {1: "L", 3: "RGB", 4: "CMYK"}


@pytest.fixture(scope="session")
def tool():
    path = os.environ.get("STK_RESAMPLE_TOOL")
    if not path or not pathlib.Path(path).is_file():
        pytest.fail("STK_RESAMPLE_TOOL does not name the resample_tool program")
    return path


def resample(tool, tmp_path, pixels, dst, box, **options):
    height, width, channels = pixels.shape
    source, result = tmp_path / "in", tmp_path / "out"
    source.write_bytes(pixels.tobytes())
    args = {
        "src_width": width,
        "src_height": height,
        "channels": channels,
        "dst_width": dst[0],
        "dst_height": dst[1],
        **dict(zip(("x0", "y0", "x1", "y1"), box)),
        **options,
    }
    command = [tool, source, result] + [f"{k}={v}" for k, v in args.items()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.fromfile(result, np.uint8).reshape(dst[1], dst[0], channels)


def image(pixels):
    height, width, channels = pixels.shape
    return Image.frombytes(MODES[channels], (width, height), pixels.tobytes())


def array(img):
    a = np.asarray(img)
    return a[:, :, None] if a.ndim == 2 else a


def random_pixels(rng, width, height, channels):
    kind = rng.integers(4)
    if kind == 0:  # noise
        return rng.integers(0, 256, (height, width, channels), np.uint8)
    if kind == 1:  # extremes, which overshoot
        return rng.integers(0, 2, (height, width, channels), np.uint8) * np.uint8(255)
    y, x = np.mgrid[0:height, 0:width]
    if kind == 2:  # waves
        phase = x[:, :, None] * rng.uniform(0, 2, channels) + y[:, :, None] * rng.uniform(0, 2)
        return (127.5 + 127.5 * np.sin(phase)).astype(np.uint8)
    colour = rng.integers(0, 256, channels).astype(np.uint8)
    return np.broadcast_to(colour, (height, width, channels)).copy()


def random_side(rng):
    return int(rng.choice([rng.integers(1, 8), rng.integers(1, 60), rng.integers(60, 400)]))


def random_box(rng, width, height, fractional):
    sides = []
    for n in (width, height):
        a, b = sorted(rng.uniform(0, n, 2)) if rng.random() < 0.7 else (0, n)
        step = 64 if fractional else 1  # Pillow keeps boxes as 32-bit floats
        a, b = math.floor(a * step) / step, math.ceil(b * step) / step
        if a >= b:
            a, b = (a, a + 1) if a + 1 <= n else (n - 1, n)
        sides.append((float(a), float(b)))
    return sides[0][0], sides[1][0], sides[0][1], sides[1][1]


def resized(img, size, filter, box=None):
    """img.resize by the rules of Pillow 13, also where the Pillow at hand is older.

    It takes the vertical pass first where that removes more than twice as many rows as the
    horizontal one removes columns; older ones never do.  Only filters that overshoot show it.
    """
    box = box or (0, 0, *img.size)
    rows, columns = img.height - size[1], img.width - size[0]
    if int(PIL.__version__.split(".")[0]) < 13 and rows > 0 and rows > 2 * columns:
        img = img.resize((img.width, size[1]), filter, box=(0, box[1], img.width, box[3]))
        box = box[0], 0, box[2], size[1]
    return img.resize(size, filter, box=box)


def check(got, want, what):
    assert got.shape == want.shape
    worst = np.abs(got.astype(int) - want.astype(int)).max()
    assert worst <= 1, f"{what}: {worst} apart"


@pytest.mark.parametrize("kernels", ["scalar", None], ids=["scalar", "simd"])
@pytest.mark.parametrize("filter", range(5), ids=NAMES)
def test_box(tool, tmp_path, filter, kernels):
    """Any box of any image to any size, cut out first or reaching outside."""
    rng = np.random.default_rng(filter)
    options = {"kernels": kernels} if kernels else {}
    for case in range(CASES):
        channels = int(rng.choice([1, 3, 3, 4]))
        pixels = random_pixels(rng, random_side(rng), random_side(rng), channels)
        height, width, _ = pixels.shape
        dst = random_side(rng), random_side(rng)
        box = random_box(rng, width, height, fractional=case % 2)
        outside = int(rng.integers(2))
        img, rest = image(pixels), box
        if not outside:
            x, y = math.floor(box[0]), math.floor(box[1])
            img = img.crop((x, y, math.ceil(box[2]), math.ceil(box[3])))
            rest = box[0] - x, box[1] - y, box[2] - x, box[3] - y
        want = array(resized(img, dst, FILTERS[filter], rest))
        got = resample(tool, tmp_path, pixels, dst, box, filter=filter, outside=outside, **options)
        check(got, want, f"case {case}: {pixels.shape} {box} to {dst}, outside={outside}")


@pytest.mark.parametrize("filter", range(5), ids=NAMES)
def test_window(tool, tmp_path, filter):
    """A part of the result, turned around or not, is the result's part."""
    rng = np.random.default_rng(100 + filter)
    for case in range(CASES):
        pixels = random_pixels(rng, random_side(rng), random_side(rng), int(rng.choice([1, 3, 4])))
        height, width, _ = pixels.shape
        full = random_side(rng), random_side(rng)
        dst = tuple(int(rng.integers(1, n + 1)) for n in full)
        at = tuple(int(rng.integers(0, n - d + 1)) for n, d in zip(full, dst))
        mirror, upside_down = (int(v) for v in rng.integers(0, 2, 2))
        whole = resized(image(pixels), full, FILTERS[filter])
        want = array(whole.crop((*at, at[0] + dst[0], at[1] + dst[1])))
        want = want[:: -1 if upside_down else 1, :: -1 if mirror else 1]
        got = resample(
            tool, tmp_path, pixels, dst, (0, 0, width, height), filter=filter, mirror=mirror,
            upside_down=upside_down, full_width=full[0], full_height=full[1], dst_x=at[0], dst_y=at[1],
        )  # fmt: skip
        check(got, want, f"case {case}: {pixels.shape} to {full}, {dst} at {at}")


@pytest.mark.parametrize("filter", range(5), ids=NAMES)
def test_turned_before(tool, tmp_path, filter):
    """A source that a mirror and a transposition make the picture, which is resized and cut then."""
    rng = np.random.default_rng(400 + filter)
    for case in range(CASES):
        channels = int(rng.choice([1, 3, 4]))
        pixels = random_pixels(rng, *(int(rng.integers(1, 60)) for _ in range(2)), channels)
        height, width, _ = pixels.shape
        full = tuple(int(rng.integers(1, 60)) for _ in range(2))
        dst = tuple(int(rng.integers(1, n + 1)) for n in full)
        at = tuple(int(rng.integers(0, n - d + 1)) for n, d in zip(full, dst))
        right, bottom, transposed, flip = (int(v) for v in rng.integers(0, 2, 4))
        turned = pixels[:: -1 if bottom else 1, :: -1 if right else 1]
        picture, size = turned, full
        begin = [full[i] - dst[i] - at[i] if far else at[i] for i, far in enumerate((right, bottom))]
        if transposed:
            picture, size, begin = turned.swapaxes(0, 1), full[::-1], begin[::-1]
        want = array(resized(image(np.ascontiguousarray(picture)), size, FILTERS[filter]))
        cut = dst[::-1] if transposed else dst
        want = want[begin[1] :, begin[0] :][: cut[1], : cut[0]]
        want = want[:, :: -1 if flip else 1]  # afterwards, of the picture
        got = resample(
            tool, tmp_path, pixels, dst, (0, 0, width, height), filter=filter, from_right=right, from_bottom=bottom,
            mirror=right ^ (flip & ~transposed), upside_down=bottom ^ (flip & transposed), transposed=transposed,
            full_width=full[0], full_height=full[1], dst_x=at[0], dst_y=at[1],
        )  # fmt: skip
        got = got.swapaxes(0, 1) if transposed else got
        check(got, want, f"case {case}: {pixels.shape} to {full}, {dst} at {at}, {right} {bottom} {transposed} {flip}")


@pytest.mark.parametrize("size", [(1, 65535), (65535, 1), (3, 20000), (20000, 2)], ids=str)
@pytest.mark.parametrize("filter", range(5), ids=NAMES)
def test_extreme(tool, tmp_path, filter, size):
    rng = np.random.default_rng(200 + filter)
    pixels = rng.integers(0, 256, (size[1], size[0], 3), np.uint8)
    for dst in [(1, 1), (7, 3), (224, 224), (2, 999)]:
        want = array(resized(image(pixels), dst, FILTERS[filter]))
        got = resample(tool, tmp_path, pixels, dst, (0, 0, *size), filter=filter)
        check(got, want, f"{size} to {dst}")


def test_flat_stays_flat(tool, tmp_path):
    """Every value, through every filter: weights add up to exactly 1."""
    pixels = np.arange(256, dtype=np.uint8).repeat(3).reshape(256, 1, 3).repeat(97, axis=1)
    for filter in range(4):
        got = resample(tool, tmp_path, pixels, (31, 256), (0, 0, 97, 256), filter=filter)
        assert (got == pixels[:, :31]).all()


def test_ycc(tool, tmp_path):
    """Conversion to RGB after resampling, within 1 of libjpeg's formula (JFIF)."""
    rng = np.random.default_rng(300)
    pixels = rng.integers(0, 256, (64, 77, 3), np.uint8)
    y, cb, cr = (pixels[:, :, i].astype(float) - (0, 128, 128)[i] for i in range(3))
    rgb = np.stack([y + 1.402 * cr, y - 0.344136286 * cb - 0.714136286 * cr, y + 1.772 * cb], axis=2)
    want = np.clip(np.floor(rgb + 0.5), 0, 255)
    for kernels in ({}, {"kernels": "scalar"}):
        got = resample(tool, tmp_path, pixels, (77, 64), (0, 0, 77, 64), ycc_to_rgb=1, **kernels)
        check(got, want, "ycc")
