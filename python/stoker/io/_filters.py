"""Texts of filters for what is usually done to media; the ffmpeg command takes them, too."""

from __future__ import annotations

from fractions import Fraction
from math import isinf

from .._check import choice, integer
from ._codec import AudioCodec, VideoCodec
from ._packets import AudioPackets, ImagePackets, Packets, VideoPackets
from ._times import FAR, exact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from ._times import Window

__all__ = [
    "get_abuffer_desc",
    "get_audio_filter_desc",
    "get_buffer_desc",
    "get_filter_desc",
    "get_video_filter_desc",
]

DEFAULT: Final = "__PLACEHOLDER__"  # of filter_desc: what get_filter_desc says


def _seconds(time: Fraction) -> str:
    """A time as FFmpeg's filters read it: to the microsecond, without an exponent, as far as windows reach."""
    micro = round(min(max(time, Fraction(-FAR)), Fraction(FAR)) * 10**6)
    whole, part = divmod(abs(micro), 10**6)
    return f"{'-' if micro < 0 else ''}{whole}.{f'{part:06}'.rstrip('0') or '0'}"


def _trim(name: str, timestamp: object) -> list[str]:
    if timestamp is None:
        return []
    if not isinstance(timestamp, (tuple, list)) or len(timestamp) != 2:
        raise TypeError(f"timestamp must be a pair (start, end), not {timestamp!r}")
    parts = [
        f"{key}={_seconds(exact(key, value))}"
        for key, value in zip(("start", "end"), timestamp, strict=True)
        if not (isinstance(value, float) and isinf(value))
    ]
    return [f"{name}={':'.join(parts)}"] if parts else []


def get_audio_filter_desc(
    *,
    sample_rate: int | None = None,
    num_channels: int | None = None,
    sample_fmt: str | None = "fltp",
    timestamp: Window | None = None,
    num_frames: int | None = None,
    filter_desc: str | None = None,
) -> str | None:
    """Filters for audio; None: nothing is to be done.

    sample_rate: Hz to resample to.  num_channels: to mix to.
    sample_fmt: of the result: "fltp" is float32 (channels, time), "flt" float32 (time, channels), "s16p" int16...
    timestamp: the window (start, end) in seconds, infinite where nothing is to be cut.
    num_frames: samples of the result, which is cut, or padded with silence.
    filter_desc: filters in FFmpeg's syntax, between these and sample_fmt.
    """
    parts = []
    if num_channels is not None:
        parts.append(f"aformat=channel_layouts={integer('num_channels', num_channels, 1)}c")
    if sample_rate is not None:
        parts.append(f"aresample={integer('sample_rate', sample_rate, 1)}")
    parts += _trim("atrim", timestamp)
    if num_frames is not None:
        parts += ["apad", f"atrim=end_sample={integer('num_frames', num_frames, 1)}"]
    if filter_desc is not None:
        parts.append(filter_desc)
    if sample_fmt is not None:
        parts.append(f"aformat=sample_fmts={sample_fmt}")
    return ",".join(parts) or None


def _scale(width: int | None, height: int | None, algo: str, mode: str | None) -> list[str]:
    if width is None and height is None:
        return []
    w = 0 if width is None else integer("scale_width", width, -(2**31), 2**31)
    h = 0 if height is None else integer("scale_height", height, -(2**31), 2**31)
    scale = f"scale=w={w}:h={h}:flags={algo}"
    if mode is None or w <= 0 or h <= 0:  # nothing that could have another aspect ratio
        return [scale]
    if choice("scale_mode", mode, ("pad", "crop")) == "pad":
        return [
            f"{scale}:force_original_aspect_ratio=decrease",
            f"pad=w={w}:h={h}:x=-1:y=-1:color=black",
        ]
    return [f"{scale}:force_original_aspect_ratio=increase", f"crop=w={w}:h={h}"]


def _crop(width: int | None, height: int | None) -> list[str]:
    if width is None and height is None:
        return []
    w = "iw" if width is None else integer("crop_width", width, 1)
    h = "ih" if height is None else integer("crop_height", height, 1)
    return [f"crop=w={w}:h={h}"]


def _length(num_frames: int | None, pad_mode: str | None) -> list[str]:
    if num_frames is None:
        return []
    mode = "stop_mode=clone"
    if pad_mode is not None:
        mode = f"stop_mode=add:color={choice('pad_mode', pad_mode, ('black', 'white'))}"
    return [f"tpad=stop=-1:{mode}", f"trim=end_frame={integer('num_frames', num_frames, 1)}"]


def get_video_filter_desc(
    *,
    frame_rate: tuple[int, int] | None = None,
    timestamp: Window | None = None,
    scale_width: int | None = None,
    scale_height: int | None = None,
    scale_algo: str = "bicubic",
    scale_mode: str | None = "pad",
    crop_width: int | None = None,
    crop_height: int | None = None,
    pix_fmt: str | None = "rgb24",
    num_frames: int | None = None,
    pad_mode: str | None = None,
    filter_desc: str | None = None,
) -> str | None:
    """Filters for video and images; None: nothing is to be done.

    frame_rate: frames a second, as (numerator, denominator).
    timestamp: the window (start, end) in seconds, infinite where nothing is to be cut.
    scale_width, scale_height: pixels; 0 keeps what it is, -n keeps the aspect ratio, at a multiple of n.
    scale_algo: FFmpeg's scaler: "bilinear", "bicubic", "lanczos", "area"...
    scale_mode: where both are given and the aspect ratio is another: "pad" adds black bars, "crop" cuts what is too
        much, None distorts.
    crop_width, crop_height: pixels of the middle that are kept, after scaling.
    pix_fmt: FFmpeg's pixel format of the result.
    num_frames: of the result, which is cut, or padded with its last frame, or by pad_mode with "black" or "white".
    filter_desc: filters in FFmpeg's syntax, between these and pix_fmt.
    """
    parts = []
    if frame_rate is not None:
        num, den = (integer("frame_rate", n, 1) for n in frame_rate)
        parts.append(f"fps={num}/{den}")
    parts += _trim("trim", timestamp)
    parts += _scale(scale_width, scale_height, scale_algo, scale_mode)
    parts += _crop(crop_width, crop_height)
    parts += _length(num_frames, pad_mode)
    if filter_desc is not None:
        parts.append(filter_desc)
    if pix_fmt is not None:
        parts.append(f"format=pix_fmts={pix_fmt}")
    return ",".join(parts) or None


def get_filter_desc(packets: Packets, **filter_args: Any) -> str | None:
    """Filters for such packets, with their window; `filter_args`: those of `get_audio_filter_desc`, or of
    `get_video_filter_desc`.

    Video is cut to its window when it is decoded, exactly; audio by the filter.
    """
    if isinstance(packets, AudioPackets):
        return get_audio_filter_desc(**{"timestamp": packets._window, **filter_args})
    if isinstance(packets, (VideoPackets, ImagePackets)):
        return get_video_filter_desc(**filter_args)
    raise TypeError(f"expected packets, not {type(packets).__name__}")


def _name(kind: str, label: str | None) -> str:
    return kind if label is None else f"{kind}@{label}"


def get_buffer_desc(codec: VideoCodec, label: str | None = None, pix_fmt: str | None = None) -> str:
    """The `buffer` filter through which frames of that codec come into a graph, as `buffer@label`."""
    if not isinstance(codec, VideoCodec):
        raise TypeError(f"codec must be a VideoCodec or an ImageCodec, not {type(codec).__name__}")
    num, den = codec.time_base
    wide, high = codec.sample_aspect_ratio
    rate = ":frame_rate={}/{}".format(*codec.frame_rate) if codec.frame_rate else ""
    return (
        f"{_name('buffer', label)}=video_size={codec.width}x{codec.height}:pix_fmt={pix_fmt or codec.pix_fmt}"
        f":time_base={num}/{den}:pixel_aspect={wide}/{high}{rate}"
    )


def get_abuffer_desc(codec: AudioCodec, *, label: str | None = None, sample_fmt: str | None = None) -> str:
    """The `abuffer` filter through which frames of that codec come into a graph, as `abuffer@label`."""
    if not isinstance(codec, AudioCodec):
        raise TypeError(f"codec must be an AudioCodec, not {type(codec).__name__}")
    num, den = codec.time_base
    return (
        f"{_name('abuffer', label)}=time_base={num}/{den}:sample_rate={codec.sample_rate}"
        f":sample_fmt={sample_fmt or codec.sample_fmt}:channel_layout={codec.channel_layout}"
    )
