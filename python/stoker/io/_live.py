"""Live input: cameras, network streams and pipes, whose frames are taken as they come."""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import _stoker
from .._check import choice, flag, integer, number
from ..errors import NotFoundError
from ._address import shown
from ._codec import AUDIO, VIDEO
from ._config import DecodeConfig, DemuxConfig, flat
from ._demux import InputNotFoundError
from ._filters import DEFAULT, get_audio_filter_desc, get_video_filter_desc
from ._frames import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal, Protocol, Self

    class HasFileno(Protocol):
        def fileno(self) -> int: ...


__all__ = ["LiveReader", "LiveStats"]


class LiveStats(NamedTuple):
    """What a `LiveReader` did so far."""

    received: int
    """Frames that were decoded: those of the next three together."""
    delivered: int
    """Frames that were handed out."""
    dropped: int
    """Frames that had to make room for newer ones, or were left when it was closed."""
    waiting: int
    """Frames in the queue."""
    failed: int
    """Packets that could not be decoded."""
    silence: float
    """Seconds since the last frame came; if there was none, since the reader was made."""
    latency_p50: float
    """Milliseconds from the arrival of a packet until its frame was handed out, of the last 1024 frames; NaN: none
    was handed out."""
    latency_p90: float
    latency_p99: float
    latency_max: float


def _source(src: object) -> object:
    """A path or an address as bytes, or what is or has a descriptor."""
    if isinstance(src, (str, os.PathLike)):
        path = os.fsencode(src)
        if not path or b"\0" in path:
            raise ValueError(f"{shown(src)!r}: a path or an address is not empty, and has no null character")
        return path
    if isinstance(src, int) and not isinstance(src, bool):
        return integer("src", src, 0, 2**31 - 1)
    if hasattr(src, "fileno"):
        return src
    raise TypeError(
        "src must be an address, a path, a file descriptor, or have fileno(), "
        f"not {type(src).__name__}"
    )


def _name(src: object) -> str:
    return f"descriptor {src}" if isinstance(src, int) else shown(src)


class LiveReader:
    """Frames of a stream that goes on by itself, as they come; an iterator and a context manager.

        with LiveReader("rtsp://camera/stream") as live:
            for frame in live:
                show(to_numpy(convert_frames(frame)))

    src: an address ("rtsp://", "udp://", "tcp://", "rtp://", "srt://", "http://"...), the path of a pipe, a device or a
        file, a file descriptor, or an object with fileno(): a pipe of `subprocess`, a socket.  The descriptor stays its
        owner's; what an object has already read into a buffer of its own is not seen.
    media: "video" gives `ImageFrames`, one for each picture, "audio" `AudioFrames`, one for each block of samples.
    filter_desc: as in `Decoder`: `get_video_filter_desc(scale_width=..., scale_height=...)` says the size.
    low_latency: a queue that is full drops its oldest frame, which is counted, so that whoever is slow gets the newest
        ones; at most half a second of the stream is looked at before the first frame, and decoders of H.264, HEVC and
        AV1 give frames as soon as they can be shown.  False: nothing is dropped, and a slow reader slows the sender down.
    queue: frames that wait at most.
    timeout: seconds without a frame, from the beginning on, after which `TimeoutError` is raised; None: no limit.
    protocols: FFmpeg's protocols that may be used.  By default the address is opened by its own, and nothing that the
        stream names; see `demux_config`.
    format, format_options: one of FFmpeg's demuxers, and options of it or of the protocol.
    decode_config: see `decode_config()`.
    name: for messages.

    A thread reads and decodes from the beginning on, so what cannot be opened raises when the first frame is asked for,
    except for a path that is not there.  Frames come before the error or the end behind them.  Several threads may
    take frames; each goes to one of them.
    Errors: `InputNotFoundError`: no such path or stream; `IOError`: the connection; `TimeoutError`; `CorruptError`: nothing could be
    decoded; `UnsupportedError`; `InvalidArgumentError`: options and filters.
    """

    __slots__ = ("__weakref__", "_core", "_name")

    def __init__(
        self,
        src: str | os.PathLike[str] | int | HasFileno,
        *,
        media: Literal["video", "audio"] = "video",
        filter_desc: str | None = DEFAULT,
        low_latency: bool = True,
        queue: int = 8,
        timeout: float | None = 10.0,
        protocols: Sequence[str] | None = None,
        format: str | None = None,
        format_options: Mapping[str, str] | None = None,
        decode_config: DecodeConfig | None = None,
        name: str | None = None,
    ) -> None:
        audio = choice("media", media, ("video", "audio")) == "audio"
        demux = DemuxConfig(format, format_options, protocols=protocols, timeout=None)
        decode = DecodeConfig() if decode_config is None else decode_config
        if not isinstance(decode, DecodeConfig):
            raise TypeError(f"decode_config must be made by decode_config(), not {type(decode).__name__}")
        if filter_desc is not None and not isinstance(filter_desc, str):
            raise TypeError(f"filter_desc must be a str or None, not {type(filter_desc).__name__}")
        if filter_desc == DEFAULT:
            filter_desc = get_audio_filter_desc() if audio else get_video_filter_desc()
        self._name = name or _name(src)
        try:
            self._core = _stoker.av_live(
                src=_source(src),
                name=self._name,
                media=AUDIO if audio else VIDEO,
                format=demux.format,
                options=flat(demux.format_options),
                timeout=None if timeout is None else number("timeout", timeout, 1e-3),
                filter=filter_desc,
                decoder_options=flat(decode.decoder_options),
                max_pixels=decode.max_pixels,
                protocols=None if demux.protocols is None else ",".join(demux.protocols),
                decoder=decode.decoder,
                queue=integer("queue", queue, 1, 1 << 16),
                keep_all=not flag("low_latency", low_latency),
            )
        except NotFoundError as error:
            raise InputNotFoundError(str(error), key=self._name, errno=error.errno) from None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """The next frame; waits for it."""
        try:
            handle = _stoker.av_live_next(self._core)
        except NotFoundError as error:
            raise InputNotFoundError(str(error), key=self._name, errno=error.errno) from None
        if handle is None:
            raise StopIteration
        return wrap(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, from any thread: whoever waits for a frame, and asks for more, is at the end.  Frames that wait are
        dropped, and the input is let go of."""
        _stoker.av_live_close(self._core)

    def _stoker_stop(self) -> None:
        """A pipeline that it is the source of is stopped (see `Group`); must not wait."""
        _stoker.av_live_cancel(self._core)

    def stats(self) -> LiveStats:
        """What happened so far, also after it was closed."""
        return LiveStats(*_stoker.av_live_stats(self._core))

    def __repr__(self) -> str:
        return f"LiveReader({self._name!r})"
