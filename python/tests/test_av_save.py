"""Images from arrays."""

from __future__ import annotations

import os

import numpy as np
import pytest

import stoker
from stoker.io import Muxer, encode_image, load_image, load_video, save_image, video_encode_config

from av import ffmpeg, needs_ffmpeg, pixels
from support import torch_module

pytestmark = needs_ffmpeg

RANDOM = np.random.default_rng(3)
RGB = RANDOM.integers(0, 256, (48, 64, 3), np.uint8)
GRAY = RANDOM.integers(0, 256, (48, 64), np.uint8)
GRAY16 = RANDOM.integers(0, 65536, (48, 64), np.uint16)


@pytest.mark.parametrize(("ending", "pix_fmt"), [("png", "rgb24"), ("bmp", "bgr24"), ("tiff", "rgb24"), ("ppm", "rgb24")])
def test_color(tmp_path, ending, pix_fmt):
    path = tmp_path / f"a.{ending}"
    save_image(path, RGB, pix_fmt)
    np.testing.assert_array_equal(pixels(path, pix_fmt=pix_fmt)[0], RGB)
    np.testing.assert_array_equal(np.asarray(load_image(path, filter_desc=f"format=pix_fmts={pix_fmt}")), RGB)


@pytest.mark.parametrize("ending", ["png", "tiff", "pgm"])
@pytest.mark.parametrize("data", [GRAY, GRAY[..., None]])
def test_gray(tmp_path, ending, data):
    path = tmp_path / f"a.{ending}"
    save_image(str(path), data, "gray")
    np.testing.assert_array_equal(pixels(path, pix_fmt="gray", shape=(48, 64))[0], GRAY)


@pytest.mark.parametrize(("ending", "pix_fmt", "order"), [("png", "gray16be", ">u2"), ("tiff", "gray16le", "<u2"), ("tiff", "gray16", "<u2")])
def test_gray16(tmp_path, ending, pix_fmt, order):
    path = tmp_path / f"a.{ending}"
    save_image(path, GRAY16, pix_fmt)
    raw = pixels(path, pix_fmt=order.replace("<u2", "gray16le").replace(">u2", "gray16be"), dtype=np.uint16, shape=(48, 64))
    np.testing.assert_array_equal(raw[0], GRAY16)


def test_jpeg(tmp_path):
    y, x = np.mgrid[0:48, 0:64]
    planes = np.stack([x * 4, y * 3, 255 - x]).astype(np.uint8)
    path = tmp_path / "a.jpg"
    save_image(path, planes, "yuvj444p", qscale=1)
    raw = pixels(path, pix_fmt="yuvj444p", shape=(3, 48, 64))[0]
    assert np.abs(raw.astype(int) - planes).mean() < 2
    sizes = []
    for quality in (1, 31):
        save_image(path, planes, "yuvj444p", qscale=quality)
        sizes.append(os.path.getsize(path))
    assert sizes[0] > sizes[1]


def test_compression_level(tmp_path):
    sizes = []
    for level in (0, 9):
        save_image(tmp_path / "a.png", np.zeros_like(RGB), compression_level=level)
        sizes.append(os.path.getsize(tmp_path / "a.png"))
    assert sizes[0] > sizes[1]


def test_views_and_tensors(tmp_path):
    for view in (RGB[::-1], RGB[:, ::2], RGB.transpose(1, 0, 2), RGB[:1, :1]):
        save_image(tmp_path / "a.png", view)
        np.testing.assert_array_equal(pixels(tmp_path / "a.png", shape=view.shape)[0], view)
    torch = torch_module()
    save_image(tmp_path / "a.png", torch.from_numpy(RGB))
    np.testing.assert_array_equal(pixels(tmp_path / "a.png")[0], RGB)


def test_an_older_file_is_replaced(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(bytes(1_000_000))
    save_image(path, RGB)
    np.testing.assert_array_equal(np.asarray(load_image(path)), RGB)
    assert path.stat().st_size < 20_000


def test_a_name_with_a_pattern_is_a_name(tmp_path):
    save_image(tmp_path / "a%03d.png", RGB)
    assert os.listdir(tmp_path) == ["a%03d.png"]


@pytest.mark.parametrize(
    ("data", "pix_fmt", "text"),
    [
        (RGB, "gray", "not"),
        (GRAY, "rgb24", r"of uint8, not"),
        (RGB.astype(np.float32), "rgb24", "of float32"),
        (GRAY16, "gray", "of uint16"),
        (RGB[None], "rgb24", "2 or 3 dimensions"),
        (RGB[:0], "rgb24", "not"),
        (RGB, "rgb99", "no pixel format"),
    ],
)
def test_shapes_and_types(tmp_path, data, pix_fmt, text):
    with pytest.raises(stoker.InvalidArgumentError, match=text) as error:
        save_image(tmp_path / "a.png", data, pix_fmt)
    assert isinstance(error.value, ValueError)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("ending", "data", "pix_fmt", "text"),
    [
        ("png", RGB, "bgr24", "'png' does not take the pixel format 'bgr24': it takes rgb24, rgba, "),
        ("png", GRAY16, "gray16", "it takes .*gray16be"),
        ("jpg", RGB, "rgb24", "'mjpeg' does not take the pixel format 'rgb24': it takes yuvj420p, "),
        ("png", np.zeros((3, 48, 64), np.uint8), "yuv444p", "it takes rgb24"),
        ("jpg", np.zeros((3, 48, 64), np.uint8), "yuv444p", "'yuv444p': it takes yuvj420p, yuvj422p, yuvj444p$"),
    ],
)
def test_what_the_encoder_takes(tmp_path, ending, data, pix_fmt, text):
    with pytest.raises(RuntimeError, match=text) as error:
        save_image(tmp_path / f"a.{ending}", data, pix_fmt)
    assert isinstance(error.value, stoker.UnsupportedError)
    assert os.listdir(tmp_path) == []


def test_files_that_cannot_be_made(tmp_path):
    with pytest.raises(ValueError, match="no format goes by that ending"):
        save_image(tmp_path / "a.nonsense", RGB)
    with pytest.raises(OSError):
        save_image(tmp_path / "missing" / "a.png", RGB)


def test_encode_image(tmp_path):
    encode_image(tmp_path / "a.png", RGB)
    np.testing.assert_array_equal(np.asarray(load_image(tmp_path / "a.png")), RGB)
    config = video_encode_config(height=48, width=64, frame_rate=1, compression_level=0)
    encode_image(tmp_path / "b.png", RGB, "rgb24", encode_config=config)
    np.testing.assert_array_equal(np.asarray(load_image(tmp_path / "b.png")), RGB)
    assert (tmp_path / "b.png").stat().st_size > 48 * 64 * 3
    with pytest.raises(TypeError, match="encode_config"):
        encode_image(tmp_path / "a.png", RGB, encode_config={"height": 48})
    with pytest.raises(ValueError, match="made for frames in rgb24, 64x48, not in rgb24, 32x48"):
        encode_image(tmp_path / "c.png", RGB[:, ::2], encode_config=config)
    assert not (tmp_path / "c.png").exists()


def test_jpeg_takes_what_it_lists(tmp_path):
    path = tmp_path / "a.jpg"
    for pix_fmt, shape in (("yuvj420p", (1, 72, 64)), ("yuvj422p", (1, 96, 64)), ("yuvj444p", (3, 48, 64))):
        save_image(path, np.full(shape, 128, np.uint8), pix_fmt)
        assert np.asarray(load_image(path)).shape == (48, 64, 3)
    muxer = Muxer(path)  # who asks for it gets what is not standard
    config = video_encode_config(height=48, width=64, frame_rate=1, pix_fmt="yuv444p")
    assert muxer.add_encode_stream(config, encoder_config={"strict": "unofficial"})


def test_animated_webp(tmp_path):
    """FFmpeg would say that there is no image."""
    still, moving = tmp_path / "a.webp", tmp_path / "b.webp"
    ffmpeg("-f", "lavfi", "-i", "testsrc=s=64x48:d=0.2", "-frames:v", "1", still)
    ffmpeg("-f", "lavfi", "-i", "testsrc=s=64x48:d=0.2", "-loop", "0", moving)
    assert np.asarray(load_image(still)).shape == (48, 64, 3)
    for load in (load_image, load_video):
        with pytest.raises(stoker.UnsupportedError, match="animated WebP is not read"):
            load(moving)
    with pytest.raises(stoker.CorruptError):
        load_image(still.read_bytes()[:200])
