"""Frames that are arrays: for filters and encoders."""

from __future__ import annotations

from .. import _stoker
from .._check import integer
from ._codec import AUDIO, VIDEO
from ._encode_config import rate
from ._frames import AudioFrames, VideoFrames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._encode_config import Rate

__all__ = ["create_reference_audio_frame", "create_reference_video_frame"]

_FAR = 2**62


def _name(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value


def create_reference_audio_frame(
    array: Any, sample_fmt: str, sample_rate: int, pts: int = 0
) -> AudioFrames:
    """Frames of audio over an array, which they keep alive; nothing is copied.

    array: of the buffer protocol, DLPack or `__array_interface__`: (channels, time) for a planar format, (time,
        channels) otherwise.  Rows are contiguous.
    sample_fmt: "u8", "s16", "s32", "s64", "flt", "dbl", and planar "u8p"...: uint8, int16, int32, int64, float32,
        float64.
    sample_rate: Hz.  pts: the number of the first sample.

    As long as the frames are used, the array must not change.
    Errors: `InvalidArgumentError` (a ValueError): the array is not of the format.
    """
    frequency = integer("sample_rate", sample_rate, 1, 2**31 - 1)
    start = integer("pts", pts, -_FAR, _FAR)
    return AudioFrames._hold(
        _stoker.av_frames_over(array, AUDIO, _name("sample_fmt", sample_fmt), frequency, 1, start)
    )


def create_reference_video_frame(array: Any, pix_fmt: str, frame_rate: Rate, pts: int = 0) -> VideoFrames:
    """Frames of video over an array, which they keep alive; nothing is copied.

    array: of the buffer protocol, DLPack or `__array_interface__`, with the shape that `convert_frames` gives for the
        format: "rgb24", "bgr24" (frames, height, width, 3); "yuv444p" (frames, 3, height, width); "yuv420p", "nv12"
        (frames, 1, rows, width).  "gray8" and "gray16" may be (frames, height, width).  uint8, or uint16 for more than
        8 bits.  Rows are contiguous.
    pix_fmt: FFmpeg's name.
    frame_rate: frames a second: a number, or a numerator and a denominator.  pts: the number of the first frame.

    As long as the frames are used, the array must not change.
    Errors: `InvalidArgumentError` (a ValueError): the array is not of the format.
    """
    num, den = rate("frame_rate", frame_rate)
    start = integer("pts", pts, -_FAR, _FAR)
    return VideoFrames._hold(
        _stoker.av_frames_over(array, VIDEO, _name("pix_fmt", pix_fmt), num, den, start)
    )
