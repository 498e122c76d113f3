"""Demuxing: packets out of files, memory, and whatever else has bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from typing import Any

from .. import _stoker
from .._check import integer
from ..errors import DecodeError, NotFoundError
from ._address import shown
from ._codec import AUDIO, IMAGE, VIDEO, AudioCodec, Codec, ImageCodec, VideoCodec
from ._config import DemuxConfig, flat
from ._packets import AudioPackets, ImagePackets, Packets, VideoPackets, wrap
from ._times import exact, four
from ._times import window as window_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Any, Self, TypeAlias

    from ._times import Window

    SourceType: TypeAlias = Any  # str, os.PathLike, bytes-like, uint8 array or tensor, object with read()

__all__ = [
    "BSF",
    "Demuxer",
    "InputNotFoundError",
    "apply_bsf",
    "demux_audio",
    "demux_image",
    "demux_video",
]

_ONE_DIMENSION = "Expected a one-dimensional, C-contiguous byte buffer."


class InputNotFoundError(NotFoundError, DecodeError):
    """There is no such input: a FileNotFoundError, and the RuntimeError that media raise otherwise."""


def byte_view(src: Any) -> memoryview | None:
    """Bytes-like objects, arrays and tensors as a view of bytes; None: something else."""
    if not isinstance(src, (bytes, bytearray, memoryview)):
        if hasattr(src, "data_ptr") and hasattr(src, "numpy"):  # a tensor of PyTorch
            src = src.numpy()
        elif hasattr(src, "__array_interface__") and not hasattr(src, "__buffer__"):
            import numpy

            src = numpy.asarray(src)
    try:
        view = memoryview(src)
    except TypeError:
        return None
    except ValueError as error:  # elements that it does not know
        raise ValueError(_ONE_DIMENSION) from error
    if view.ndim != 1 or not view.c_contiguous or view.itemsize != 1:
        raise ValueError(_ONE_DIMENSION)
    return view


def _open(src: SourceType, config: DemuxConfig | None, name: str | None) -> _stoker.AvHandle:
    config = DemuxConfig() if config is None else config
    if not isinstance(config, DemuxConfig):
        raise TypeError(f"demux_config must be made by demux_config(), not {type(config).__name__}")
    path = data = file = None
    if isinstance(src, (str, os.PathLike)):
        path = os.fsencode(src)
        if b"\0" in path:
            raise ValueError(f"{shown(src)!r}: a path has no null character")
    elif (data := byte_view(src)) is None:
        if not hasattr(src, "read"):
            raise TypeError(
                "src must be a path, bytes, a one-dimensional array of bytes, or have read(), "
                f"not {type(src).__name__}"
            )
        file = src
        name = name or f"<{type(src).__name__}>"
    try:
        return _stoker.av_open(
            path=path,
            data=data,
            file=file,
            name=name,
            format=config.format,
            options=flat(config.format_options),
            buffer_size=config.buffer_size,
            protocols=None if config.protocols is None else ",".join(config.protocols),
            timeout=config.timeout,
            max_bytes=config.max_bytes,
        )
    except NotFoundError as error:
        raise InputNotFoundError(str(error), key=shown(src), errno=error.errno) from None


class Demuxer:
    """Takes packets out of `src`; a context manager.

    src: a path (str, os.PathLike), bytes, bytearray, memoryview, a one-dimensional array or CPU tensor of bytes, or
        an object with read(), and seek(), tell() and seekable() if it can.  With
        `demux_config(protocols=[...])` also an address.
    name: for messages.

    Nothing but the input is opened: a playlist that names other files or addresses is an `UnsupportedError`.
    One thread at a time may use it: a second one gets a `BusyError`.  `cancel()` may come from any.  Ctrl-C, and
    whatever handlers of signals raise, ends what the main thread waits for, also while it is opened.
    """

    def __init__(
        self, src: SourceType, *, demux_config: DemuxConfig | None = None, name: str | None = None
    ) -> None:
        self._core: _stoker.AvHandle | None = None
        self._core = _open(src, demux_config, name)

    @property
    def _handle(self) -> _stoker.AvHandle:
        core = self._core
        if core is None:
            raise ValueError("the demuxer was closed")
        return core

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets the input go; a call that is running ends first."""
        self._core = None

    def cancel(self) -> None:
        """What runs on it in another thread, and every later call, raises `CancelledError`."""
        _stoker.av_cancel(self._handle)

    def _read(self, media: int, span: object, bsf: str | None) -> Any:
        exact_span: tuple[Fraction, Fraction] | None = window_of(span)
        numbers = None if exact_span is None else four(exact_span)
        try:
            return wrap(_stoker.av_read(self._handle, media, numbers, bsf))
        except NotFoundError as error:
            raise InputNotFoundError(str(error)) from None

    def demux_audio(self, window: Window | None = None, *, bsf: str | None = None) -> AudioPackets:
        """Packets of the best audio stream.

        window: (start, end) in seconds, of which the end is not part: float, Decimal, str, Fraction or int, compared
            exactly.  By default all.
        bsf: bitstream filters in FFmpeg's syntax.
        Errors: `InputNotFoundError`: there is no such stream; `CorruptError`: the data; `UnsupportedError`;
            `LimitError`; `TimeoutError`; `CancelledError`.
        """
        packets: AudioPackets = self._read(AUDIO, window, bsf)
        return packets

    def demux_video(self, window: Window | None = None, *, bsf: str | None = None) -> VideoPackets:
        """Packets of the best video stream; parameters and errors are those of `demux_audio`."""
        packets: VideoPackets = self._read(VIDEO, window, bsf)
        return packets

    def demux_image(self, *, bsf: str | None = None) -> ImagePackets:
        """The first packet of the best video stream."""
        packets: ImagePackets = self._read(IMAGE, None, bsf)
        return packets

    def streaming_demux(
        self,
        indices: Sequence[int] | Set[int] | int | None = None,
        *,
        duration: float = -1,
        num_packets: int = -1,
    ) -> Iterator[Any]:
        """Packets in parts, on from where the demuxer is.

        indices: one stream (by default the best of video, or else of audio), whose packets are yielded; or several,
            and dicts from index to packets are.
        duration: seconds of a part.  num_packets: of all streams together in a part.  One of the two at least.

        The packets have no codec: give the demuxer's to a `Decoder`.
        One thread at a time: a second one gets a `BusyError`, which costs no packets.
        """
        several = isinstance(indices, (Sequence, Set)) and not isinstance(indices, (str, bytes))
        streams: tuple[int, ...]
        if several:
            assert isinstance(indices, (Sequence, Set))
            streams = tuple(sorted({integer("indices", i, 0) for i in indices}))
        elif indices is None:
            streams = (self._default_stream(),)
        else:
            streams = (integer("indices", indices, 0),)
        count = integer("num_packets", num_packets, -1)
        span = exact("duration", duration)
        if not streams:
            raise ValueError("indices: at least one stream is needed")
        if span <= 0 and count <= 0:
            raise ValueError("streaming_demux needs duration or num_packets above 0")
        part = span.limit_denominator(10**9)
        num, den = (part.numerator, part.denominator) if span > 0 else (0, 0)
        return _Parts(self, streams, several, (num, den, max(count, 0)))

    def _default_stream(self) -> int:
        _count, audio, video = _stoker.av_streams(self._handle)
        if max(audio, video) < 0:
            raise InputNotFoundError("there is neither audio nor video")
        return video if video >= 0 else audio

    def has_audio(self) -> bool:
        """Whether there is an audio stream."""
        return _stoker.av_streams(self._handle)[1] >= 0

    @property
    def audio_stream_index(self) -> int:
        """The stream that `demux_audio` reads; -1: there is none."""
        return _stoker.av_streams(self._handle)[1]

    @property
    def video_stream_index(self) -> int:
        """The stream that `demux_video` reads; -1: there is none."""
        return _stoker.av_streams(self._handle)[2]

    def _codec(self, kind: str, index: int, media: int) -> Any:
        if index < 0:
            raise InputNotFoundError(f"there is no {kind} stream")
        return Codec._of(_stoker.av_codec(self._handle, index, media))

    @property
    def audio_codec(self) -> AudioCodec:
        """Of the stream that `demux_audio` reads."""
        codec: AudioCodec = self._codec("audio", self.audio_stream_index, AUDIO)
        return codec

    @property
    def video_codec(self) -> VideoCodec:
        """Of the stream that `demux_video` reads."""
        codec: VideoCodec = self._codec("video", self.video_stream_index, VIDEO)
        return codec

    @property
    def image_codec(self) -> ImageCodec:
        """Of the stream that `demux_image` reads."""
        codec: ImageCodec = self._codec("video", self.video_stream_index, IMAGE)
        return codec


class _Parts:
    """What `Demuxer.streaming_demux` gives."""

    __slots__ = ("_demuxer", "_limits", "_over", "_several", "_streams")

    def __init__(
        self, demuxer: Demuxer, streams: tuple[int, ...], several: bool, limits: tuple[int, int, int]
    ) -> None:
        self._demuxer = demuxer
        self._streams = streams
        self._several = several
        self._limits = limits
        self._over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[int, Packets] | Packets:
        if self._over:
            raise StopIteration
        made = _stoker.av_next(self._demuxer._handle, self._streams, *self._limits)
        if made is None:
            self._over = True
            raise StopIteration
        found = {i: wrap(handle) for i, handle in zip(self._streams, made, strict=True) if handle is not None}
        return found if self._several else found[self._streams[0]]


def demux_audio(
    src: SourceType,
    *,
    timestamp: Window | None = None,
    demux_config: DemuxConfig | None = None,
    bsf: str | None = None,
    name: str | None = None,
) -> AudioPackets:
    """Packets of the best audio stream of `src`; see `Demuxer` and `Demuxer.demux_audio`."""
    with Demuxer(src, demux_config=demux_config, name=name) as demuxer:
        return demuxer.demux_audio(timestamp, bsf=bsf)


def demux_video(
    src: SourceType,
    *,
    timestamp: Window | None = None,
    demux_config: DemuxConfig | None = None,
    bsf: str | None = None,
    name: str | None = None,
) -> VideoPackets:
    """Packets of the best video stream of `src`; see `Demuxer` and `Demuxer.demux_video`."""
    with Demuxer(src, demux_config=demux_config, name=name) as demuxer:
        return demuxer.demux_video(timestamp, bsf=bsf)


def demux_image(
    src: SourceType,
    *,
    demux_config: DemuxConfig | None = None,
    bsf: str | None = None,
    name: str | None = None,
) -> ImagePackets:
    """The packet of the image `src`; see `Demuxer` and `Demuxer.demux_image`."""
    with Demuxer(src, demux_config=demux_config, name=name) as demuxer:
        return demuxer.demux_image(bsf=bsf)


class BSF:
    """Bitstream filters over packets that come in parts.  One thread at a time may use it."""

    def __init__(self, codec: Codec, bsf: str) -> None:
        if not isinstance(codec, Codec):
            raise TypeError(f"codec must be a codec, not {type(codec).__name__}")
        self._core = _stoker.av_bsf(codec._handle, bsf)

    def filter(self, packets: Packets, flush: bool = False) -> Any:
        """What comes out for these packets; `flush`: they are the last."""
        return wrap(_stoker.av_bsf_filter(self._core, packets._handle, flush))

    def flush(self) -> Any:
        """What is left; afterwards it begins anew."""
        return wrap(_stoker.av_bsf_filter(self._core, None, True))


def apply_bsf(packets: Packets, bsf: str) -> Any:
    """The packets through bitstream filters, with the codec that these make."""
    codec = packets._codec
    if codec is None:
        raise ValueError("packets of a stream that is read in parts have no codec: use BSF")
    return BSF(codec, bsf).filter(packets, flush=True)
