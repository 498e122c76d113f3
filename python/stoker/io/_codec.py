"""Codecs: what a decoder must know of a stream before its first packet."""

from __future__ import annotations

from .. import _stoker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["AudioCodec", "ImageCodec", "VideoCodec"]

AUDIO, VIDEO, IMAGE = 1, 2, 3  # stk_media


class Codec:
    """Of one stream; a value that cannot be pickled (packets can, with theirs)."""

    __slots__ = ("_handle", "_info")

    _handle: _stoker.AvHandle
    _info: dict[str, Any]

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} objects come from a demuxer or from packets")

    @classmethod
    def _of(cls, handle: _stoker.AvHandle) -> Codec:
        info = _stoker.av_codec_info(handle)
        made: Codec = object.__new__(_CLASSES[info["media"]])
        made._handle, made._info = handle, info
        return made

    @property
    def name(self) -> str:
        """FFmpeg's name of the codec: "h264"."""
        return str(self._info["name"])

    @property
    def bit_rate(self) -> int:
        """Bits a second; 0: not known."""
        return int(self._info["bit_rate"])

    @property
    def bits_per_sample(self) -> int:
        """0: not known."""
        return int(self._info["bits_per_sample"])

    @property
    def time_base(self) -> tuple[int, int]:
        """What times of its packets are multiples of, in seconds."""
        return tuple(self._info["time_base"])

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be pickled; packets can, with their codec")

    def __repr__(self) -> str:
        shown = {key: value for key, value in self._info.items() if value and key != "media"}
        return f"{type(self).__name__}<{', '.join(f'{key}={value}' for key, value in shown.items())}>"


class AudioCodec(Codec):
    """The codec of audio."""

    __slots__ = ()

    @property
    def sample_rate(self) -> int:
        return int(self._info["sample_rate"])

    @property
    def num_channels(self) -> int:
        return int(self._info["num_channels"])

    @property
    def sample_fmt(self) -> str:
        """FFmpeg's name of the sample format that is decoded to: "fltp"."""
        return str(self._info["sample_fmt"])

    @property
    def channel_layout(self) -> str:
        """As filters take it: "stereo"."""
        return str(self._info["channel_layout"])


class VideoCodec(Codec):
    """The codec of video."""

    __slots__ = ()

    @property
    def width(self) -> int:
        return int(self._info["width"])

    @property
    def height(self) -> int:
        return int(self._info["height"])

    @property
    def orientation(self) -> int:
        """What the container says makes frames upright, which decoding leaves as they are stored: 1 to 8, as EXIF has
        it.  1: nothing, 6: a turn by 90 degrees clockwise, 3: by 180, 8: by 270."""
        return int(self._info["orientation"])

    @property
    def pix_fmt(self) -> str:
        """FFmpeg's name of the pixel format that is decoded to: "yuv420p"."""
        return str(self._info["pix_fmt"])

    @property
    def frame_rate(self) -> tuple[int, int] | None:
        """Frames a second, as numerator and denominator; None: not known."""
        rate: tuple[int, int] | None = self._info["frame_rate"]
        return rate

    @property
    def sample_aspect_ratio(self) -> tuple[int, int]:
        """Width to height of a pixel; (1, 1) where it is not known."""
        ratio: tuple[int, int] | None = self._info["sample_aspect_ratio"]
        return ratio if ratio and ratio[0] else (1, 1)

    @property
    def color_range(self) -> str:
        return str(self._info["color_range"])

    @property
    def colorspace(self) -> str:
        return str(self._info["colorspace"])

    @property
    def color_primaries(self) -> str:
        return str(self._info["color_primaries"])

    @property
    def color_trc(self) -> str:
        return str(self._info["color_trc"])


class ImageCodec(VideoCodec):
    """The codec of an image."""

    __slots__ = ()


_CLASSES: dict[int, type[Codec]] = {AUDIO: AudioCodec, VIDEO: VideoCodec, IMAGE: ImageCodec}
