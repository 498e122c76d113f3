"""Decoding PNG and WebP against Pillow: the same pixels.

The program under test is decode_tool; the environment variable STK_DECODE_TOOL says where it is.
"""

import os
import pathlib
import subprocess

import numpy as np
import pytest
from PIL import Image, PngImagePlugin


@pytest.fixture(scope="session")
def tool():
    path = os.environ.get("STK_DECODE_TOOL")
    if not path or not pathlib.Path(path).is_file():
        pytest.fail("STK_DECODE_TOOL does not name the decode_tool program")
    return path


def decode(tool, path, *args):
    """The pixels (h, w, c), and the orientation."""
    out = path.with_suffix(".raw")
    done = subprocess.run([tool, path, out, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    width, height, channels, orientation = map(int, done.stdout.split())
    return np.fromfile(out, np.uint8).reshape(height, width, channels), orientation


def pixels(rng, width, height, channels):
    """Slopes and noise."""
    y, x = np.mgrid[0:height, 0:width]
    slope = x[:, :, None] * rng.uniform(0, 4, channels) + y[:, :, None] * rng.uniform(0, 4, channels)
    return (slope + rng.integers(0, 9, (height, width, channels))).astype(np.uint8)


def image(rng, mode, width, height):
    color = pixels(rng, width, height, 4)
    if mode == "I;16":
        return Image.fromarray((color[:, :, 0].astype(np.uint16) << 8) | color[:, :, 1])
    if mode == "P":
        return Image.fromarray(color[:, :, :3]).quantize(int(rng.integers(2, 256)))
    return Image.fromarray(color).convert(mode)


def expected(img, mode):
    if img.mode == "I;16":  # Pillow's own conversion clips; ours keeps the upper byte
        upper = (np.asarray(img) >> 8).astype(np.uint8)
        return upper[:, :, None] if mode == "L" else upper[:, :, None].repeat(3, axis=2)
    a = np.asarray(img.convert("RGB").convert(mode))
    return a[:, :, None] if a.ndim == 2 else a


def check(tool, path, tolerance=0):
    with Image.open(path) as img:
        img.load()
        got, orientation = decode(tool, path)
        assert orientation == img.getexif().get(0x0112, 1)
        want = expected(img, "RGB")
        if got.shape[2] == 1:  # gray files stay gray
            assert (want[:, :, :1] == want).all()
            want = want[:, :, :1]
        assert got.shape == want.shape
        assert np.abs(got.astype(int) - want).max() <= tolerance
        gray, _ = decode(tool, path, "gray")
        assert np.abs(gray.astype(int) - expected(img, "L")).max() <= tolerance

        height, width = got.shape[:2]
        x, y = width // 3, height // 4
        part, _ = decode(tool, path, x, y, width - x, (height - y + 1) // 2)
        assert (part == got[y : y + part.shape[0], x:]).all()


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (64, 33), (301, 200)], ids=str)
@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "P", "I;16"])
def test_png(tool, tmp_path, mode, size):
    img = image(np.random.default_rng(1), mode, *size)
    exif = Image.Exif()
    exif[0x0112] = 1 + size[0] % 8
    path = tmp_path / "a.png"
    img.save(path, exif=exif)
    check(tool, path)
    for bits in (1, 2, 4) if mode == "P" else ():
        img.quantize(1 << bits).save(path, bits=bits)
        check(tool, path)


@pytest.mark.parametrize("mode", ["L", "RGB", "P"])
def test_png_transparent_color(tool, tmp_path, mode):
    img = image(np.random.default_rng(2), mode, 40, 30)
    path = tmp_path / "a.png"
    img.save(path, transparency=(1, 2, 3) if mode == "RGB" else 1)
    check(tool, path)


def test_png_with_texts_and_profile(tool, tmp_path):
    info = PngImagePlugin.PngInfo()
    for i in range(20):
        info.add_text(f"key {i}", "some text " * 500, zip=i % 2 == 0)
    path = tmp_path / "a.png"
    image(np.random.default_rng(3), "RGB", 50, 50).save(path, pnginfo=info, icc_profile=b"not a profile" * 99)
    check(tool, path)


def test_apng_first_image(tool, tmp_path):
    rng = np.random.default_rng(4)
    first, second = (image(rng, "RGB", 30, 20) for _ in range(2))
    path = tmp_path / "a.png"
    first.save(path, save_all=True, append_images=[second])
    check(tool, path)


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (64, 33), (301, 200)], ids=str)
@pytest.mark.parametrize("lossless", [False, True], ids=["lossy", "lossless"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_webp(tool, tmp_path, mode, lossless, size):
    img = image(np.random.default_rng(5), mode, *size)
    exif = Image.Exif()
    exif[0x0112] = 1 + size[0] % 8
    path = tmp_path / "a.webp"
    img.save(path, lossless=lossless, quality=80, exif=exif, exact=True)
    check(tool, path, tolerance=0 if lossless else 2)


def test_animated_webp_is_refused(tool, tmp_path):
    rng = np.random.default_rng(6)
    path = tmp_path / "a.webp"
    image(rng, "RGB", 30, 20).save(path, save_all=True, append_images=[image(rng, "RGB", 30, 20)])
    done = subprocess.run([tool, path, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 1 and "animations are not supported" in done.stderr
