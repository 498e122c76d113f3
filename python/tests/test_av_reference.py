"""Frames over arrays."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest

import stoker
from stoker.io import AudioFrames, VideoFrames, convert_frames, create_reference_audio_frame, create_reference_video_frame

from av import needs_ffmpeg
from support import torch_module

pytestmark = needs_ffmpeg

RANDOM = np.random.default_rng(7)


def pixels(*shape, dtype=np.uint8):
    return RANDOM.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def back(frames):
    return np.asarray(convert_frames(frames.clone()))


@pytest.mark.parametrize(
    ("pix_fmt", "shape", "name"),
    [
        ("rgb24", (5, 48, 64, 3), "rgb24"),
        ("bgr24", (5, 48, 64, 3), "bgr24"),
        ("rgba", (5, 48, 64, 4), "rgba"),
        ("gray8", (5, 48, 64), "gray"),
        ("gray", (5, 48, 64, 1), "gray"),
        ("yuv444p", (5, 3, 48, 64), "yuv444p"),
        ("yuv420p", (5, 1, 72, 64), "yuv420p"),
        ("yuv420p", (2, 1, 11, 16), "yuv420p"),
        ("nv12", (5, 1, 72, 64), "nv12"),
        ("yuv422p", (5, 1, 96, 64), "yuv422p"),
        ("rgb24", (1, 1, 1, 3), "rgb24"),
    ],
)
def test_video(pix_fmt, shape, name):
    array = pixels(*shape)
    frames = create_reference_video_frame(array, pix_fmt, (30000, 1001), 10)
    assert isinstance(frames, VideoFrames)
    assert frames.pix_fmt == name
    assert len(frames) == shape[0]
    assert frames.frame_rate == (30000, 1001)
    assert frames.time_base == (1001, 30000)
    assert frames.get_pts() == list(range(10, 10 + shape[0]))
    np.testing.assert_array_equal(back(frames).reshape(shape), array)


@pytest.mark.parametrize("pix_fmt", ["gray16", "gray16le", "gray16be"])
def test_gray16(pix_fmt):
    array = pixels(5, 48, 64, dtype=np.uint16)
    frames = create_reference_video_frame(array, pix_fmt, 25, 0)
    assert frames.pix_fmt == ("gray16be" if pix_fmt == "gray16be" else "gray16le")
    np.testing.assert_array_equal(back(frames)[:, 0], array)


@pytest.mark.parametrize(
    ("sample_fmt", "dtype"),
    [("u8", np.uint8), ("s16", np.int16), ("s32", np.int32), ("s64", np.int64), ("flt", np.float32), ("dbl", np.float64)],
)
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 6, 12])
def test_audio(sample_fmt, dtype, planar, channels):
    shape = (channels, 1000) if planar else (1000, channels)
    array = (RANDOM.random(shape) * 100).astype(dtype)
    frames = create_reference_audio_frame(array, sample_fmt + "p" * planar, 8000, 160)
    assert isinstance(frames, AudioFrames)
    assert (len(frames), frames.num_channels, frames.sample_rate) == (1000, channels, 8000)
    assert frames.sample_fmt == sample_fmt + "p" * planar
    assert frames.time_base == (1, 8000)
    np.testing.assert_array_equal(back(frames), array)


def test_nothing_is_copied():
    video, audio = pixels(3, 4, 4, 3), np.zeros((2, 10), np.float32)
    frames = create_reference_video_frame(video, "rgb24", 25, 0)
    sound = create_reference_audio_frame(audio, "fltp", 8000, 0)
    video[:] = 7
    audio[:] = 0.5
    assert (back(frames) == 7).all()
    assert (back(frames[1]) == 7).all()
    assert (back(sound) == 0.5).all()


@pytest.mark.parametrize("n", [1, 2])
def test_arrays_of_frames_are_copies(n):
    array = np.zeros((n, 4, 4, 3), np.uint8)
    made = np.asarray(convert_frames(create_reference_video_frame(array, "rgb24", 25, 0)))
    made[:] = 9
    assert not array.any()


def test_frames_keep_the_array():
    class Array(np.ndarray):
        pass

    array = np.full((3, 4, 4, 3), 9, np.uint8).view(Array)
    gone = weakref.ref(array)
    frames = create_reference_video_frame(array, "rgb24", 25, 0)
    one = frames[2]
    del array, frames
    gc.collect()
    assert gone() is not None
    assert (back(one) == 9).all()
    del one
    gc.collect()
    assert gone() is None


def test_views():
    whole = pixels(6, 48, 64, 3)
    for view in (whole[::2], whole[::-1], whole[:, ::2], whole[:, :, 10:50], whole[:, 5:6], np.broadcast_to(whole[:1], whole.shape)):
        np.testing.assert_array_equal(back(create_reference_video_frame(view, "rgb24", 25, 0)), view)
    planes = pixels(2, 3, 48, 64)
    for view in (planes[:, ::-1], planes[:, :, 1:-1], planes[..., 2:-2]):
        np.testing.assert_array_equal(back(create_reference_video_frame(view, "yuv444p", 25, 0)), view)
    sound = RANDOM.random((4, 100)).astype(np.float32)
    for view in (sound[::2], sound[::-1], sound[:, 20:40]):
        np.testing.assert_array_equal(back(create_reference_audio_frame(view, "fltp", 8000, 0)), view)


def test_rows_must_be_contiguous():
    whole = pixels(6, 48, 64, 3)
    for view in (whole[:, :, ::2], whole[..., ::-1], whole[:, ::-1], whole.transpose(0, 2, 1, 3)):
        with pytest.raises(ValueError, match="contiguous"):
            create_reference_video_frame(view, "rgb24", 25, 0)
    with pytest.raises(ValueError, match="contiguous"):
        create_reference_video_frame(pixels(2, 1, 72, 70)[..., :64], "yuv420p", 25, 0)
    sound = np.zeros((4, 100), np.float32)
    for view, sample_fmt in ((sound[:, ::2], "fltp"), (sound.T, "flt"), (np.zeros((100, 4), "f4")[:, :2], "flt")):
        with pytest.raises(ValueError, match="contiguous"):
            create_reference_audio_frame(view, sample_fmt, 8000, 0)


@pytest.mark.parametrize(
    ("array", "pix_fmt", "text"),
    [
        (pixels(48, 64, 3), "rgb24", r"\(frames, height, width, components\) of uint8, not \(48, 64, 3\)"),
        (pixels(5, 48, 64, 4), "rgb24", "not \\(5, 48, 64, 4\\) of uint8"),
        (np.zeros((5, 48, 64, 3), np.float32), "rgb24", "of float32"),
        (pixels(5, 48, 64), "gray16", "of uint16, not"),
        (pixels(5, 48, 64, 3), "yuv444p", "planes"),
        (pixels(5, 1, 70, 64), "yuv420p", "rows"),
        (pixels(0, 48, 64, 3), "rgb24", "no frames"),
        (pixels(5, 0, 64, 3), "rgb24", "of uint8"),
        (pixels(5, 48, 64, 3), "rgb25", "no pixel format 'rgb25'"),
        (pixels(5, 48, 64, 1), "monow", "no elements"),
    ],
)
def test_arrays_of_another_kind(array, pix_fmt, text):
    with pytest.raises(stoker.InvalidArgumentError, match=text):
        create_reference_video_frame(array, pix_fmt, 25, 0)


@pytest.mark.parametrize(
    ("array", "sample_fmt", "text"),
    [
        (np.zeros(100, np.float32), "flt", r"\(time, channels\) of float32, not \(100\)"),
        (np.zeros((2, 100), np.float64), "fltp", r"\(channels, time\) of float32, not .* of float64"),
        (np.zeros((2, 0), np.float32), "fltp", "there must be some"),
        (np.zeros((2000, 2), np.float32), "fltp", "at most 1024 channels"),
        (np.zeros((2, 100), np.float32), "float", "no sample format 'float'"),
    ],
)
def test_samples_of_another_kind(array, sample_fmt, text):
    with pytest.raises(stoker.InvalidArgumentError, match=text):
        create_reference_audio_frame(array, sample_fmt, 8000, 0)


@pytest.mark.parametrize("rate", [0, -1, (25, 0), (0, 1), 0.0, Fraction(-1, 2), 2**31, float("nan")])
def test_rates_that_are_none(rate):
    with pytest.raises(ValueError, match="frame_rate"):
        create_reference_video_frame(pixels(1, 4, 4, 3), "rgb24", rate, 0)


@pytest.mark.parametrize(("rate", "pair"), [(25, (25, 1)), (29.97, (2997, 100)), (Fraction(1, 3), (1, 3)), ((50, 2), (25, 1))])
def test_rates(rate, pair):
    assert create_reference_video_frame(pixels(1, 4, 4, 3), "rgb24", rate, 0).frame_rate == pair


def test_other_types():
    with pytest.raises(TypeError):
        create_reference_video_frame(None, "rgb24", 25, 0)
    with pytest.raises(TypeError, match="pix_fmt"):
        create_reference_video_frame(pixels(1, 4, 4, 3), None, 25, 0)
    with pytest.raises(TypeError, match="frame_rate"):
        create_reference_video_frame(pixels(1, 4, 4, 3), "rgb24", "25", 0)
    with pytest.raises(TypeError, match="sample_rate"):
        create_reference_audio_frame(np.zeros((2, 9), np.float32), "fltp", 8000.0, 0)


def test_tensors_of_pytorch():
    torch = torch_module()
    tensor = torch.arange(2 * 4 * 4 * 3, dtype=torch.uint8).reshape(2, 4, 4, 3)
    np.testing.assert_array_equal(back(create_reference_video_frame(tensor, "rgb24", 25, 0)), tensor.numpy())
