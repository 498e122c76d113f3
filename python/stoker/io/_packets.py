"""Packets: encoded audio, video, or one image."""

from __future__ import annotations

from fractions import Fraction

from .. import _stoker
from ._cell import Consumable
from ._codec import AUDIO, IMAGE, VIDEO, AudioCodec, Codec, ImageCodec, VideoCodec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from typing_extensions import Buffer

__all__ = ["AudioPackets", "ImagePackets", "VideoPackets"]


class Packets(Consumable):
    """Packets of one stream.  They do not change, so any number of threads may use them at once."""

    __slots__ = ()

    @property
    def _media(self) -> int:
        return _stoker.av_packets_info(self._handle)[0]

    @property
    def _window(self) -> tuple[Fraction, Fraction] | None:
        four = _stoker.av_packets_info(self._handle)[1]
        return (Fraction(four[0], four[1]), Fraction(four[2], four[3])) if four else None

    @property
    def _codec(self) -> Codec | None:
        handle = _stoker.av_packets_codec(self._handle)
        return None if handle is None else Codec._of(handle)

    @property
    def timestamp(self) -> tuple[float, float] | None:
        """The window [start, end) that they were read for, in seconds; None: all."""
        span = self._window
        return None if span is None else (float(span[0]), float(span[1]))

    def _times(self, raw: bool) -> list[float]:
        num, den, times = _stoker.av_packets_times(self._handle, raw)
        return [float("nan") if t is None else t * num / den for t in times]

    def __len__(self) -> int:
        """Packets that begin inside the window."""
        return _stoker.av_packets_info(self._handle)[3]

    def serialize(self) -> bytes:
        """As bytes, for `deserialize` and `deserialize_view`, also in another process."""
        return _stoker.av_packets_write(self._handle)

    @classmethod
    def deserialize(cls, data: Buffer) -> Self:
        """Packets from what `serialize` gave; the data is copied.  `CorruptError`: it is something else."""
        return cls.deserialize_view(bytes(data))

    @classmethod
    def deserialize_view(cls, data: Buffer) -> Self:
        """The same without a copy: the packets keep `data` alive, which must not change."""
        packets = wrap(_stoker.av_packets_read(data))
        if not isinstance(packets, cls):
            raise TypeError(f"these bytes are {type(packets).__name__}, not {cls.__name__}")
        return packets

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).deserialize_view, (self.serialize(),)

    def __repr__(self) -> str:
        _media, _window, _total, length, _bytes, source = _stoker.av_packets_info(self._handle)
        parts = [f'src="{source}"', f"num_packets={length}"]
        times = self._times(False)
        if times:
            parts.append(f"pts=[{times[0]:.3f}, {times[-1]:.3f}]")
        if self.timestamp is not None:
            parts.append(f"timestamp={self.timestamp}")
        if self._codec is not None:
            parts.append(f"codec={self._codec.name}")
        return f"{type(self).__name__}<{', '.join(parts)}>"


class AudioPackets(Packets):
    """Packets of audio."""

    __slots__ = ()

    @property
    def codec(self) -> AudioCodec | None:
        """None: of a stream that is read in parts."""
        codec = self._codec
        assert codec is None or isinstance(codec, AudioCodec)
        return codec

    @property
    def sample_rate(self) -> int:
        return self._known(self.codec).sample_rate

    @property
    def num_channels(self) -> int:
        return self._known(self.codec).num_channels

    @staticmethod
    def _known(codec: AudioCodec | None) -> AudioCodec:
        if codec is None:
            raise ValueError("packets of a stream that is read in parts have no codec; the demuxer has it")
        return codec


class VideoPackets(Packets):
    """Packets of video."""

    __slots__ = ()

    @property
    def codec(self) -> VideoCodec | None:
        """None: of a stream that is read in parts."""
        codec = self._codec
        assert codec is None or isinstance(codec, VideoCodec)
        return codec

    @property
    def width(self) -> int:
        return self._known().width

    @property
    def height(self) -> int:
        return self._known().height

    @property
    def pix_fmt(self) -> str:
        return self._known().pix_fmt

    @property
    def frame_rate(self) -> tuple[int, int] | None:
        return self._known().frame_rate

    def get_timestamps(self, raw: bool = False) -> list[float]:
        """When the packets in the window are shown, in seconds, in that order.

        raw: of all packets, also those outside of the window, in the order of the file.
        """
        return self._times(raw)

    def _known(self) -> VideoCodec:
        codec = self.codec
        if codec is None:
            raise ValueError("packets of a stream that is read in parts have no codec; the demuxer has it")
        return codec


class ImagePackets(Packets):
    """The packet of an image."""

    __slots__ = ()

    @property
    def codec(self) -> ImageCodec:
        codec = self._codec
        assert isinstance(codec, ImageCodec)
        return codec

    @property
    def width(self) -> int:
        return self.codec.width

    @property
    def height(self) -> int:
        return self.codec.height

    @property
    def pix_fmt(self) -> str:
        return self.codec.pix_fmt


_CLASSES: dict[int, type[Packets]] = {AUDIO: AudioPackets, VIDEO: VideoPackets, IMAGE: ImagePackets}


def wrap(handle: _stoker.AvHandle) -> Any:
    """The Packets object of what the extension made."""
    return _CLASSES[_stoker.av_packets_info(handle)[0]]._hold(handle)
