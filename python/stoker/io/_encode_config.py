"""Options of encoding, as values."""

from __future__ import annotations

from fractions import Fraction
from numbers import Integral, Real

from .._check import integer, number
from .._value import Value
from ._config import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Rate: TypeAlias = "tuple[int, int] | int | float | Fraction"

__all__ = ["AudioEncodeConfig", "VideoEncodeConfig", "audio_encode_config", "video_encode_config"]

_INT = 2**31 - 1


def rate(name: str, value: object) -> tuple[int, int]:
    """Frames a second as numerator and denominator; a float is the nearest fraction with a denominator up to 1001."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        ratio = Fraction(integer(f"{name}[0]", value[0], 1, _INT), integer(f"{name}[1]", value[1], 1, _INT))
    elif isinstance(value, Fraction) or (isinstance(value, Integral) and not isinstance(value, bool)):
        ratio = Fraction(value)
    elif isinstance(value, Real):
        ratio = Fraction(number(name, value)).limit_denominator(1001)
    else:
        raise TypeError(f"{name} must be a number or a pair of integers, not {type(value).__name__}")
    if not 0 < ratio.numerator <= _INT or ratio.denominator > _INT:
        raise ValueError(f"{name} must be above 0, and a ratio of integers of 32 bits, not {value}")
    return ratio.numerator, ratio.denominator


def _word(name: str, value: object) -> str:
    word = text(name, value)
    if word is None:
        raise TypeError(f"{name} must be a str, not None")
    return word


class AudioEncodeConfig(Value):
    """What `audio_encode_config` makes."""

    __slots__ = ("num_channels", "sample_rate", "sample_fmt", "bit_rate", "compression_level", "qscale")

    num_channels: int
    sample_rate: int
    sample_fmt: str
    bit_rate: int
    compression_level: int
    qscale: int

    def __init__(
        self,
        *,
        num_channels: int,
        sample_rate: int,
        sample_fmt: str = "fltp",
        bit_rate: int = -1,
        compression_level: int = -1,
        qscale: int = -1,
    ) -> None:
        self._set(
            num_channels=integer("num_channels", num_channels, 1, 1024),
            sample_rate=integer("sample_rate", sample_rate, 1, _INT),
            sample_fmt=_word("sample_fmt", sample_fmt),
            bit_rate=integer("bit_rate", bit_rate, -1, _INT),
            compression_level=integer("compression_level", compression_level, -1, _INT),
            qscale=integer("qscale", qscale, -1, 1 << 20),
        )


class VideoEncodeConfig(Value):
    """What `video_encode_config` makes."""

    __slots__ = (
        "height",
        "width",
        "frame_rate",
        "pix_fmt",
        "bit_rate",
        "compression_level",
        "qscale",
        "gop_size",
        "max_b_frames",
        "colorspace",
        "color_primaries",
        "color_trc",
    )

    height: int
    width: int
    frame_rate: tuple[int, int]
    pix_fmt: str
    bit_rate: int
    compression_level: int
    qscale: int
    gop_size: int
    max_b_frames: int
    colorspace: str | None
    color_primaries: str | None
    color_trc: str | None

    def __init__(
        self,
        *,
        height: int,
        width: int,
        frame_rate: Rate | None = None,
        pix_fmt: str = "rgb24",
        bit_rate: int = -1,
        compression_level: int = -1,
        qscale: int = -1,
        gop_size: int = -1,
        max_b_frames: int = -1,
        colorspace: str | None = None,
        color_primaries: str | None = None,
        color_trc: str | None = None,
    ) -> None:
        self._set(
            height=integer("height", height, 1, _INT),
            width=integer("width", width, 1, _INT),
            frame_rate=rate("frame_rate", 25 if frame_rate is None else frame_rate),
            pix_fmt=_word("pix_fmt", pix_fmt),
            bit_rate=integer("bit_rate", bit_rate, -1, _INT),
            compression_level=integer("compression_level", compression_level, -1, _INT),
            qscale=integer("qscale", qscale, -1, 1 << 20),
            gop_size=integer("gop_size", gop_size, -1, _INT),
            max_b_frames=integer("max_b_frames", max_b_frames, -1, _INT),
            colorspace=text("colorspace", colorspace),
            color_primaries=text("color_primaries", color_primaries),
            color_trc=text("color_trc", color_trc),
        )


def audio_encode_config(
    *,
    num_channels: int,
    sample_rate: int,
    sample_fmt: str = "fltp",
    bit_rate: int = -1,
    compression_level: int = -1,
    qscale: int = -1,
) -> AudioEncodeConfig:
    """What frames of audio an encoder gets, and how it encodes them.

    num_channels, sample_rate (Hz), sample_fmt: those of the frames.
    bit_rate (bits a second), compression_level, qscale (a fixed quality): -1: the encoder's own.
    """
    return AudioEncodeConfig(
        num_channels=num_channels,
        sample_rate=sample_rate,
        sample_fmt=sample_fmt,
        bit_rate=bit_rate,
        compression_level=compression_level,
        qscale=qscale,
    )


def video_encode_config(
    *,
    height: int,
    width: int,
    frame_rate: Rate | None = None,
    pix_fmt: str = "rgb24",
    bit_rate: int = -1,
    compression_level: int = -1,
    qscale: int = -1,
    gop_size: int = -1,
    max_b_frames: int = -1,
    colorspace: str | None = None,
    color_primaries: str | None = None,
    color_trc: str | None = None,
) -> VideoEncodeConfig:
    """What frames of video an encoder gets, and how it encodes them.

    height, width (pixels), pix_fmt: those of the frames; a pix_fmt that the encoder does not take is an
        `UnsupportedError` that lists those which it takes.
    frame_rate: frames a second: a number, or a numerator and a denominator; None: 25.
    bit_rate (bits a second), compression_level, qscale (a fixed quality), gop_size (frames from one key frame to the
        next), max_b_frames: -1: the encoder's own.
    colorspace, color_primaries, color_trc: FFmpeg's names, "bt709"; None: the file does not say.
    """
    return VideoEncodeConfig(
        height=height,
        width=width,
        frame_rate=frame_rate,
        pix_fmt=pix_fmt,
        bit_rate=bit_rate,
        compression_level=compression_level,
        qscale=qscale,
        gop_size=gop_size,
        max_b_frames=max_b_frames,
        colorspace=colorspace,
        color_primaries=color_primaries,
        color_trc=color_trc,
    )
