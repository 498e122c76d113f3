"""Encoding and muxing: packets out of frames, and files out of packets."""

from __future__ import annotations

import os

from .. import _stoker
from .._check import integer, number
from ..errors import Error
from ._address import shown
from ._codec import AUDIO, VIDEO, AudioCodec, Codec, VideoCodec
from ._config import flat, options, text
from ._encode_config import AudioEncodeConfig, VideoEncodeConfig
from ._frames import AudioFrames, Frames
from ._packets import AudioPackets, Packets, VideoPackets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self, overload

    from ._frames import ImageFrames, VideoFrames
else:

    def overload(function: object) -> object:
        return function


__all__ = ["AudioEncoder", "Muxer", "VideoEncoder"]


class _Encoder:
    """One thread at a time may use it: a second one gets a `BusyError`."""

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} objects come from Muxer.add_encode_stream")

    _core: _stoker.AvHandle
    _frame_size: int
    _made_of: Codec

    @classmethod
    def _of(cls, core: _stoker.AvHandle) -> Self:
        made = object.__new__(cls)
        made._core = core
        made._frame_size, codec = _stoker.av_encoder_info(core)
        made._made_of = Codec._of(codec)
        return made

    def _encode(self, frames: Frames) -> _stoker.AvHandle | None:
        if not isinstance(frames, Frames) or isinstance(frames, AudioFrames) != isinstance(self, AudioEncoder):
            kind = "AudioFrames" if isinstance(self, AudioEncoder) else "VideoFrames or ImageFrames"
            raise TypeError(f"expected {kind}, not {type(frames).__name__}")
        return _stoker.av_encode(self._core, frames._take(), False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self._made_of!r}>"


class AudioEncoder(_Encoder):
    """Encodes audio; `Muxer.add_encode_stream` makes it."""

    @property
    def codec(self) -> AudioCodec:
        """What decoders of its packets must know."""
        assert isinstance(self._made_of, AudioCodec)
        return self._made_of

    @property
    def frame_size(self) -> int:
        """Samples of a packet; 0: any number.  `encode` takes frames of any length and cuts them."""
        return self._frame_size

    def encode(self, frames: AudioFrames) -> AudioPackets | None:
        """The packets of these frames, which are consumed, and of those before; None: there are none yet.

        Samples follow each other from the time of the first on, whatever gaps later times have.
        Errors: `InvalidArgumentError`: frames of another format, rate or number of channels.
        """
        made = self._encode(frames)
        return None if made is None else AudioPackets._hold(made)

    def flush(self) -> AudioPackets | None:
        """The packets that are left, or None; the encoder takes no more frames."""
        made = _stoker.av_encode(self._core, None, True)
        return None if made is None else AudioPackets._hold(made)


class VideoEncoder(_Encoder):
    """Encodes video; `Muxer.add_encode_stream` makes it."""

    @property
    def codec(self) -> VideoCodec:
        """What decoders of its packets must know."""
        assert isinstance(self._made_of, VideoCodec)
        return self._made_of

    def encode(self, frames: VideoFrames | ImageFrames) -> VideoPackets | None:
        """The packets of these frames, which are consumed, and of those before; None: there are none yet.

        A frame without a time follows the one before.
        Errors: `InvalidArgumentError`: frames of another format or size, or not later than those before.
        """
        made = self._encode(frames)
        return None if made is None else VideoPackets._hold(made)

    def flush(self) -> VideoPackets | None:
        """The packets that are left, or None; the encoder takes no more frames."""
        made = _stoker.av_encode(self._core, None, True)
        return None if made is None else VideoPackets._hold(made)


_VIDEO = {
    "width": 0,
    "height": 0,
    "frame_rate": (0, 1),
    "gop_size": -1,
    "max_b_frames": -1,
    "colorspace": None,
    "color_primaries": None,
    "color_trc": None,
}
_AUDIO = {"sample_rate": 0, "num_channels": 0}


def _fields(config: AudioEncodeConfig | VideoEncodeConfig) -> dict[str, Any]:
    """The configuration as the extension takes it."""
    fields: dict[str, Any] = {**_VIDEO, **_AUDIO, **dict(config._items())}
    audio = isinstance(config, AudioEncodeConfig)
    fields["format"] = fields.pop("sample_fmt" if audio else "pix_fmt")
    fields["media"] = AUDIO if audio else VIDEO
    return fields


class Muxer:
    """Writes packets to a file.

        muxer = Muxer("clip.mp4")
        encoder = muxer.add_encode_stream(video_encode_config(...))
        with muxer.open():
            if (packets := encoder.encode(frames)) is not None:
                muxer.write(0, packets)
            if (packets := encoder.flush()) is not None:
                muxer.write(0, packets)

    dst: a path (str, os.PathLike); with `protocols` also an address.
    format: one of FFmpeg's muxers; by default the ending of `dst` says which.
    protocols: FFmpeg's protocols that may be used, ["tcp", "rtmp"]; by default files only.
    timeout: of an address: seconds for opening, for each packet and for closing, after which `TimeoutError` is raised;
        None: no limit.

    One thread at a time may use it: a second one gets a `BusyError`.  `cancel()` may come from any, and so may
    `close()` of an address.  Ctrl-C, and whatever handlers of signals raise, ends what the main thread waits for at an
    address or a pipe.  Nothing can be written behind what was cut short.
    Errors: `InvalidArgumentError`: no format goes by that ending; `UnsupportedError`: this FFmpeg has no such format,
        or it is "fifo", which writes on a thread of its own.
    """

    _opened = False

    def __init__(
        self,
        dst: str | os.PathLike[str],
        /,
        *,
        format: str | None = None,
        protocols: Sequence[str] | None = None,
        timeout: float | None = 60.0,
    ) -> None:
        path = os.fsencode(dst)
        self._dst = shown(os.fsdecode(path))
        if b"\0" in path:
            raise ValueError(f"{self._dst!r}: a path has no null character")
        if isinstance(protocols, str):
            raise TypeError('protocols must be a list of names, like ["file", "tcp"]')
        self._core = _stoker.av_muxer(
            path,
            text("format", format),
            ",".join(protocols) if protocols else None,
            None if timeout is None else number("timeout", timeout, 0.0),
        )

    @property
    def format(self) -> str:
        """FFmpeg's name of the file's format."""
        return _stoker.av_muxer_format(self._core)

    @overload
    def add_encode_stream(
        self,
        config: AudioEncodeConfig,
        *,
        encoder: str | None = None,
        encoder_config: Mapping[str, str] | None = None,
    ) -> AudioEncoder: ...
    @overload
    def add_encode_stream(
        self,
        config: VideoEncodeConfig,
        *,
        encoder: str | None = None,
        encoder_config: Mapping[str, str] | None = None,
    ) -> VideoEncoder: ...
    def add_encode_stream(
        self,
        config: AudioEncodeConfig | VideoEncodeConfig,
        *,
        encoder: str | None = None,
        encoder_config: Mapping[str, str] | None = None,
    ) -> AudioEncoder | VideoEncoder:
        """A stream, the next one from 0 on, and an encoder for it.

        config: what `audio_encode_config` or `video_encode_config` makes.
        encoder: one of FFmpeg's; by default the usual one of the file's format.
        encoder_config: options of that encoder; it has one thread unless {"threads": "4"} says otherwise.
        Errors: `UnsupportedError` (a RuntimeError): there is no such encoder, or it does not take the pixel or sample
            format, and the text lists what it takes, or the file cannot hold what it makes; `InvalidArgumentError`.
        """
        if not isinstance(config, (AudioEncodeConfig, VideoEncodeConfig)):
            raise TypeError(
                "config must be made by audio_encode_config() or video_encode_config(), "
                f"not {type(config).__name__}"
            )
        core = _stoker.av_muxer_encoder(
            muxer=self._core,
            encoder=text("encoder", encoder),
            options=flat(options("encoder_config", encoder_config)),
            **_fields(config),
        )
        return AudioEncoder._of(core) if isinstance(config, AudioEncodeConfig) else VideoEncoder._of(core)

    def add_remux_stream(self, codec: AudioCodec | VideoCodec) -> None:
        """A stream, the next one from 0 on, for packets of that codec, which are written as they are.

        Errors: `UnsupportedError`: the file's format cannot hold them.
        """
        if not isinstance(codec, Codec):
            raise TypeError(f"codec must be a codec, not {type(codec).__name__}")
        _stoker.av_muxer_codec(self._core, codec._handle)

    def open(self, muxer_config: Mapping[str, str] | None = None) -> Self:
        """Makes the file, of which an older one is lost, and writes what comes before the packets.  Gives the muxer, a
        context manager that closes it.

        muxer_config: options of the muxer: {"movflags": "+faststart"}.
        """
        _stoker.av_muxer_open(self._core, flat(options("muxer_config", muxer_config)))
        self._opened = True
        return self

    def write(self, stream_index: int, packets: Packets) -> None:
        """Writes packets, which may be used again, also those outside of their window.

        They are put into the order of time with those of other streams, for which they may wait in memory.
        """
        if not isinstance(packets, Packets):
            raise TypeError(f"expected packets, not {type(packets).__name__}")
        _stoker.av_muxer_write(self._core, integer("stream_index", stream_index, 0), packets._handle)

    def flush(self) -> None:
        """Writes what waits."""
        _stoker.av_muxer_flush(self._core)

    def close(self) -> None:
        """Writes what comes behind the packets, and closes the file, also if that fails; again: does nothing.

        Of an address, from any thread: a call that waits in another one ends with `CancelledError`.  So does one that
        a signal's handler interrupted, in which this raises a `BusyError`: close again when it is over.  After
        `cancel()`, what would have to wait is left out.
        """
        self._opened = False
        _stoker.av_muxer_close(self._core)

    def cancel(self) -> None:
        """What waits for an address in another thread, and every later call but `close`, raises `CancelledError`."""
        _stoker.av_muxer_cancel(self._core)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: BaseException | None, traceback: object) -> None:
        try:
            self.close()
        except Error as error:
            if value is None:
                raise
            value.add_note(f"and then the muxer could not be closed: {error}")

    def __del__(self) -> None:
        if self._opened:
            import warnings

            warnings.warn(f"{self._dst}: the muxer was not closed: the file is incomplete", ResourceWarning, source=self)

    def __repr__(self) -> str:
        return f"Muxer({self._dst!r})"
