"""Decoding: frames out of packets."""

from __future__ import annotations

import sys

from .. import _stoker
from .._check import flag, integer
from ._codec import AudioCodec, Codec, ImageCodec, VideoCodec
from ._config import DecodeConfig, flat
from ._filters import DEFAULT, get_audio_filter_desc, get_filter_desc, get_video_filter_desc
from ._frames import AudioFrames, Frames, VideoFrames, wrap
from ._packets import Packets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self, overload

    from ._frames import ImageFrames
    from ._packets import AudioPackets, ImagePackets, VideoPackets
else:

    def overload(function: object) -> object:
        return function


__all__ = ["AudioDecoder", "Decoder", "VideoDecoder", "decode_packets"]


def make_decoder(
    codec: Codec,
    filter_desc: str | None,
    config: DecodeConfig | None,
    strict: bool,
    max_frames: int,
    join: bool = False,
) -> _stoker.AvHandle:
    config = DecodeConfig() if config is None else config
    if not isinstance(config, DecodeConfig):
        raise TypeError(f"decode_config must be made by decode_config(), not {type(config).__name__}")
    if filter_desc is not None and not isinstance(filter_desc, str):
        raise TypeError(f"filter_desc must be a str or None, not {type(filter_desc).__name__}")
    return _stoker.av_decoder(
        codec=codec._handle,
        decoder=config.decoder,
        options=flat(config.decoder_options),
        filter=filter_desc,
        strict=flag("strict", strict),
        max_frames=max_frames,
        max_pixels=config.max_pixels,
        max_bytes=config.max_bytes,
        join=join,
    )


def report(failed: int) -> None:
    """Says that packets were left out."""
    if failed > 0:
        import logging

        logging.getLogger("stoker.io").warning(
            "%d packets could not be decoded and were left out (num_failed; strict=True raises)", failed
        )


@overload
def decode_packets(
    packets: AudioPackets,
    filter_desc: str | None = DEFAULT,
    decode_config: DecodeConfig | None = None,
    *,
    num_frames: int = -1,
    strict: bool = False,
) -> AudioFrames: ...
@overload
def decode_packets(
    packets: VideoPackets,
    filter_desc: str | None = DEFAULT,
    decode_config: DecodeConfig | None = None,
    *,
    num_frames: int = -1,
    strict: bool = False,
) -> VideoFrames: ...
@overload
def decode_packets(
    packets: ImagePackets,
    filter_desc: str | None = DEFAULT,
    decode_config: DecodeConfig | None = None,
    *,
    num_frames: int = -1,
    strict: bool = False,
) -> ImageFrames: ...
def decode_packets(
    packets: Packets,
    filter_desc: str | None = DEFAULT,
    decode_config: DecodeConfig | None = None,
    *,
    num_frames: int = -1,
    strict: bool = False,
) -> Any:
    """Decodes packets, which are consumed: pass `packets.clone()` to keep them.

    filter_desc: filters in FFmpeg's syntax, by default those of `get_filter_desc(packets)`; None: frames as they are
        decoded.
    num_frames: at most so many (video: frames, audio: FFmpeg's blocks of samples); -1: all.
    strict: a packet that cannot be decoded raises `CorruptError`.  Otherwise it is left out, counted in
        `frames.num_failed` and logged; if none could be decoded, that is an error in any case.
    Errors: `CorruptError`; `InvalidArgumentError`: wrong filters; `UnsupportedError`: no such decoder; `LimitError`:
        more frames than decode_config allows (4 GiB): pass a window, or read in parts with `Decoder`.
    """
    if not isinstance(packets, Packets):
        raise TypeError(f"expected packets, not {type(packets).__name__}")
    return decode_whole(packets, filter_desc, decode_config, max(integer("num_frames", num_frames, -1), 0), strict)


def decode_whole(
    packets: Packets,
    filter_desc: str | None,
    config: DecodeConfig | None,
    count: int,
    strict: bool,
    join: bool = False,
) -> Any:
    """What `decode_packets` does; count: 0 is all.  join: sound becomes one frame, whose array is no copy."""
    desc = get_filter_desc(packets) if filter_desc == DEFAULT else filter_desc
    codec = packets._codec
    if codec is None:
        raise ValueError(
            "packets of a stream that is read in parts have no codec: use Decoder with the demuxer's"
        )
    decoder = make_decoder(codec, desc, config, strict, count, join)
    frames = wrap(_stoker.av_decode(decoder, packets._take(), True))
    report(frames.num_failed)
    return frames


class _Parts:
    """The frames of a decoder, part by part, until nothing waits in it any more."""

    __slots__ = ("_decoder",)

    def __init__(self, decoder: _StreamingDecoder) -> None:
        self._decoder = decoder

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        frames = self._decoder._next()
        if frames is None:
            raise StopIteration
        return frames


class _StreamingDecoder:
    """One thread at a time may use it: a second one gets a `BusyError`."""

    def __init__(
        self, codec: Codec, filter_desc: str | None, config: DecodeConfig | None, strict: bool
    ) -> None:
        self._core = make_decoder(codec, filter_desc, config, strict, 0)
        self._reported = 0
        self._size = 0

    @property
    def num_failed(self) -> int:
        """Packets that could not be decoded and were left out, since the decoder was made."""
        return _stoker.av_decoder_failed(self._core)

    def _put(self, packets: Packets) -> Iterator[Any]:
        if not isinstance(packets, Packets):
            raise TypeError(f"expected packets, not {type(packets).__name__}")
        handle = packets._take()
        try:
            _stoker.av_decoder_put(self._core, handle)
        except BaseException:
            packets._give_back(handle)
            raise
        return _Parts(self)

    def _next(self) -> Frames | None:
        try:
            frames: Frames = wrap(
                _stoker.av_decoder_next(self._core, self._size, sys.maxsize if self._size else 0)
            )
        finally:
            failed = self.num_failed
            report(failed - self._reported)
            self._reported = failed
        return frames if frames._get("num_frames") else None

    def flush(self) -> Iterator[Any]:
        """Yields what is left; afterwards the decoder begins anew."""
        _stoker.av_decoder_put(self._core, None)
        return _Parts(self)


class AudioDecoder(_StreamingDecoder):
    """Decodes audio that comes in parts."""

    def streaming_decode_packets(self, packets: AudioPackets) -> Iterator[AudioFrames]:
        """Yields the frames of these packets, which are consumed, and of those before; it may be nothing.

        Packets are decoded as their frames are asked for, which come in parts of about 16 MiB.  Packets of an
        iterator that nobody read to its end are not lost, but wait for the next one; at most 64 may wait.
        With `strict` an error comes after the frames before it; the decoder begins anew then.
        Errors: those of `decode_packets`; `BusyError`; `LimitError`: too many wait.
        """
        return self._put(packets)

    if TYPE_CHECKING:

        def flush(self) -> Iterator[AudioFrames]: ...


class VideoDecoder(_StreamingDecoder):
    """Decodes video that comes in parts."""

    def set_buffer_size(self, buffer_size: int) -> None:
        """From now on so many frames are yielded at once, fewer at the end of packets; 0, as at the beginning: as
        many as have about 16 MiB."""
        self._size = integer("buffer_size", buffer_size, 0, sys.maxsize)

    def streaming_decode_packets(self, packets: VideoPackets) -> Iterator[VideoFrames]:
        """Yields the frames of these packets, which are consumed, and of those before; it may be nothing.

        Packets are decoded as their frames are asked for, which come in parts: see `set_buffer_size`.  Packets of an
        iterator that nobody read to its end are not lost, but wait for the next one; at most 64 may wait.
        With `strict` an error comes after the frames before it; the decoder begins anew then.
        Errors: those of `decode_packets`; `BusyError`; `LimitError`: too many wait.
        """
        return self._put(packets)

    if TYPE_CHECKING:

        def flush(self) -> Iterator[VideoFrames]: ...


@overload
def Decoder(
    codec: AudioCodec,
    *,
    filter_desc: str | None = DEFAULT,
    decode_config: DecodeConfig | None = None,
    strict: bool = False,
) -> AudioDecoder: ...
@overload
def Decoder(
    codec: VideoCodec,
    *,
    filter_desc: str | None = DEFAULT,
    decode_config: DecodeConfig | None = None,
    strict: bool = False,
) -> VideoDecoder: ...
def Decoder(
    codec: AudioCodec | VideoCodec,
    *,
    filter_desc: str | None = DEFAULT,
    decode_config: DecodeConfig | None = None,
    strict: bool = False,
) -> AudioDecoder | VideoDecoder:
    """A decoder for packets that come in parts, as those of `Demuxer.streaming_demux`.

    filter_desc: by default what `get_audio_filter_desc()` or `get_video_filter_desc()` says.
    The other parameters are those of `decode_packets`.
    """
    if isinstance(codec, AudioCodec):
        desc = get_audio_filter_desc() if filter_desc == DEFAULT else filter_desc
        return AudioDecoder(codec, desc, decode_config, strict)
    if isinstance(codec, VideoCodec) and not isinstance(codec, ImageCodec):
        desc = get_video_filter_desc() if filter_desc == DEFAULT else filter_desc
        return VideoDecoder(codec, desc, decode_config, strict)
    raise TypeError(f"codec must be an AudioCodec or a VideoCodec, not {type(codec).__name__}")
