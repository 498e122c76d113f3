"""Clips of a video by the numbers of their frames."""

from __future__ import annotations

import sys
from bisect import bisect_right
from operator import index

from .. import _stoker
from .._check import flag, integer
from ..errors import InvalidArgumentError, NotFoundError
from ._codec import VIDEO, Codec
from ._config import DecodeConfig, flat
from ._decode import report
from ._demux import Demuxer, InputNotFoundError
from ._filters import DEFAULT, get_video_filter_desc
from ._times import exact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from .._stoker import CPUBuffer
    from ._codec import VideoCodec
    from ._config import DemuxConfig
    from ._demux import SourceType
    from ._times import Time

__all__ = ["VideoPlan", "VideoReader"]

KEPT = 256 << 20


class VideoPlan:
    """The clips of `VideoReader.plan`, one at a time, in the order in which they were asked for: an iterator.

    A clip that cannot be decoded raises, and the next one comes after it.
    """

    __slots__ = ("_core", "_reader")

    def __init__(self, reader: VideoReader, clips: Iterable[Iterable[int]], max_bytes: int) -> None:
        frames: list[int] = []
        lengths: list[int] = []
        for clip in clips:
            before = len(frames)
            frames.extend(map(index, clip))
            lengths.append(len(frames) - before)
        if not all(lengths):
            raise ValueError("indices: there are none")
        total = len(reader)
        for i in frames:
            if not 0 <= i < total:
                raise IndexError(f"indices: there is no frame {i}, of {total}")
        self._reader = reader
        self._core = _stoker.av_plan(reader._handle, tuple(frames), tuple(lengths), max_bytes)

    def __iter__(self) -> Iterator[CPUBuffer]:
        return self

    def __next__(self) -> CPUBuffer:
        clip = self._reader._next(self._core)
        if clip is None:
            raise StopIteration
        return clip


class VideoReader:
    """The frames of one video by their numbers, as arrays; a context manager.

    src: what `Demuxer` takes, if it can seek: a path, bytes, an array of bytes, or an object with read() and seek().
    filter_desc: filters for each frame, which look at nothing but it and give one for one; by default those of
        `get_video_filter_desc()`, RGB.  None: frames as they are decoded.
    strict: a packet on the way that cannot be decoded raises `CorruptError`; otherwise it is logged, and is an error
        only if a frame that was asked for cannot be decoded.
    decode_config, demux_config, name: as of `decode_packets` and `Demuxer`.

    All packets are read once, to know what frame each one is; their data is not kept.  Frames are what
    `decode_packets` gives, and are counted in the order in which they are shown.  A clip is decoded from the key frame
    before it, or from where the decoder is, if that is nearer.  Where times do not tell which packet a frame is (raw
    streams, AVI with B-frames), everything up to it is decoded.

    One thread at a time may use a reader and its plans: a second one gets a `BusyError`.  `cancel()` and `stats()` may
    come from any.
    Errors: those of `Demuxer` and `decode_packets`; `UnsupportedError`: an input that cannot seek.
    """

    def __init__(
        self,
        src: SourceType,
        *,
        demux_config: DemuxConfig | None = None,
        decode_config: DecodeConfig | None = None,
        filter_desc: str | None = DEFAULT,
        strict: bool = False,
        name: str | None = None,
    ) -> None:
        self._core: _stoker.AvHandle | None = None
        config = DecodeConfig() if decode_config is None else decode_config
        if not isinstance(config, DecodeConfig):
            raise TypeError(f"decode_config must be made by decode_config(), not {type(config).__name__}")
        desc = get_video_filter_desc() if filter_desc == DEFAULT else filter_desc
        if desc is not None and not isinstance(desc, str):
            raise TypeError(f"filter_desc must be a str or None, not {type(desc).__name__}")
        self._demuxer = Demuxer(src, demux_config=demux_config, name=name)
        self._reported = 0
        self._known: tuple[int, int, list[int | None], list[bool]] | None = None
        try:
            self._core = _stoker.av_reader(
                demuxer=self._demuxer._handle,
                decoder=config.decoder,
                options=flat(config.decoder_options),
                filter=desc,
                strict=flag("strict", strict),
                max_pixels=config.max_pixels,
            )
        except NotFoundError as error:
            raise InputNotFoundError(str(error)) from None

    @property
    def _handle(self) -> _stoker.AvHandle:
        core = self._core
        if core is None:
            raise ValueError("the reader was closed")
        return core

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets the input go, once no plan of it is left; a call that is running ends first."""
        self._core = None
        self._demuxer.close()

    def cancel(self) -> None:
        """What runs on it in another thread, and every later call that reads, raises `CancelledError`."""
        self._demuxer.cancel()

    # --- what there is

    def _index(self) -> tuple[int, int, list[int | None], list[bool]]:
        if self._known is None:
            self._known = _stoker.av_reader_times(self._handle)
        return self._known

    def __len__(self) -> int:
        """Frames, by what the packets say."""
        return len(self._index()[2])

    @property
    def codec(self) -> VideoCodec:
        """Of the video."""
        demuxer = self._demuxer
        codec: VideoCodec = Codec._of(_stoker.av_codec(demuxer._handle, demuxer.video_stream_index, VIDEO))  # type: ignore[assignment]
        return codec

    def get_timestamps(self) -> list[float]:
        """When each frame is shown, in seconds; NaN: not known."""
        num, den, times, _keys = self._index()
        return [float("nan") if t is None else t * num / den for t in times]

    def get_key_frames(self) -> list[int]:
        """The frames at which decoding can begin."""
        return [i for i, key in enumerate(self._index()[3]) if key]

    def stats(self) -> dict[str, int]:
        """What it did until now.

        num_decoded: frames that came out of the decoder.  num_converted: of those the ones that were wanted.
        num_seeks: in the file.  num_failed: packets that could not be decoded.
        kept_bytes: of the clips of plans that wait for their turn.
        """
        return _stoker.av_reader_stats(self._handle)

    # --- frames

    def _next(self, plan: _stoker.AvHandle) -> CPUBuffer | None:
        handle = self._handle
        try:
            return _stoker.av_plan_next(plan)
        finally:
            failed = _stoker.av_reader_stats(handle)["num_failed"]
            report(failed - self._reported)
            self._reported = failed

    def plan(self, clips: Iterable[Iterable[int]], *, max_bytes: int = KEPT) -> VideoPlan:
        """Says what will be wanted: the numbers of each clip's frames.  Gives an iterator over the clips, in that order.

        What a later clip wants is kept when the decoder comes past it, so each group of pictures is decoded once, as
        long as there is room; give the clips in the order of the file, and little has to be kept.
        max_bytes: of clips that wait for their turn, by default 256 MiB.  Beyond it, frames are decoded again.
        Each clip is as `get_frames_at` gives it; so are the errors.
        """
        return VideoPlan(self, clips, integer("max_bytes", max_bytes, 1, sys.maxsize))

    def get_frames_at(self, indices: Iterable[int]) -> CPUBuffer:
        """The frames of these numbers, in this order, as one array (frames, height, width, components) of uint8.

        indices: in any order; one may come more than once.  Other filters make arrays of other shapes and types, as
            `convert_frames` has them.
        Errors: `ValueError`: no indices; `IndexError`: there is no such frame; `CorruptError`: a frame cannot be
            decoded; `InvalidArgumentError`: frames that differ in size, or filters that do not give one for one.
        """
        return next(VideoPlan(self, [indices], KEPT))

    def get_frames_played_at(self, seconds: Iterable[Time]) -> CPUBuffer:
        """The frames that are shown at these times: for each the last one up to it.

        seconds: float, Decimal, str, Fraction or int, compared exactly.
        Errors: `IndexError`: before the first frame; `InvalidArgumentError`: frames without times; those of
            `get_frames_at`.
        """
        num, den, times, _keys = self._index()
        known = [t for t in times if t is not None]
        if len(known) < len(times):
            raise InvalidArgumentError("the video does not say when its frames are shown")
        numbers = [bisect_right(known, exact("seconds", t) * den / num) - 1 for t in seconds]
        if any(i < 0 for i in numbers):
            raise IndexError("seconds: a time before the first frame")
        return self.get_frames_at(numbers)
