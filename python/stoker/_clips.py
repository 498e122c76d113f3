"""Ops that cut a clip out of each file of sound or video, all of one length."""

from __future__ import annotations

from collections.abc import Sequence

from . import _check, _stoker
from ._op import Op, bits_to_take, isolated, isolation, parts_to_take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from .ops import Color, Crop, Filter

    Where = Literal["start", "middle", "random", "all"]

_MOST_SECONDS = 1e6
_MOST_HZ = 10_000_000
_MOST_CHANNELS = 64
_MOST_FRAMES = 1024
_PLACES = ("start", "middle", "random", "all")


class ClipOp(Op):
    """Takes bytes and gives arrays."""

    __slots__ = ()


class _Sound(ClipOp):
    __slots__ = ("seconds", "sample_rate", "channels", "where", "mask", "parts", "max_bytes", "isolate", "isolate_timeout")

    seconds: float | None
    sample_rate: int | None
    channels: int | None
    where: Where
    mask: str | None
    parts: tuple[str, ...] | None
    max_bytes: int | None
    isolate: bool
    isolate_timeout: float

    def __init__(
        self,
        seconds: float | None = None,
        *,
        sample_rate: int | None = None,
        channels: int | None = None,
        where: Where | None = None,
        mask: str | None = "mask",
        parts: str | Sequence[str] | None = None,
        max_bytes: int | None = None,
        isolate: bool = False,
        isolate_timeout: float = 60.0,
    ) -> None:
        if seconds is not None and _check.number("seconds", seconds, 0, _MOST_SECONDS) == 0:
            raise ValueError("seconds must be above 0, or None for whole files")
        if where is None:
            where = "all" if seconds is None else "start"
        if seconds is None and _check.choice("where", where, _PLACES) != "all":
            raise ValueError(f"where={where!r} needs seconds")
        if mask is not None and (not isinstance(mask, str) or not mask):
            raise TypeError("mask must be the name of a field, or None")
        limits = {"sample_rate": (sample_rate, _MOST_HZ), "channels": (channels, _MOST_CHANNELS), "max_bytes": (max_bytes, 2**62)}
        for name, (value, most) in limits.items():
            if value is not None:
                _check.integer(name, value, 1, most)
        isolate, isolate_timeout = isolation(isolate, isolate_timeout)
        self._set(
            seconds=None if seconds is None else float(seconds),
            sample_rate=sample_rate,
            channels=channels,
            where=_check.choice("where", where, _PLACES),
            mask=mask,
            parts=parts_to_take(parts),
            max_bytes=max_bytes,
            isolate=isolate,
            isolate_timeout=isolate_timeout,
        )
        self._handle(self.parts or ())

    def _options(self, parts: Sequence[str]) -> _stoker.AudioOptions:
        return {
            "seconds": self.seconds or 0.0,
            "sample_rate": int(self.sample_rate or 0),
            "channels": int(self.channels or 0),
            "where": self.where,
            "mask": (self.mask or "").encode(),
            "max_bytes": int(self.max_bytes or 0),
            "parts": bits_to_take(self.parts, parts),
            "lenient": False,
        }


class decode_wav(_Sound):
    """Bytes to arrays: WAV files to (channels, time) float32, without FFmpeg.

    `seconds`: how long clips are; None: as long as each file, so that files of one batch must have one length.
    `sample_rate`: files of another one fail, since nothing is resampled here (`decode_audio` does); None: any,
    and those of one batch must share it.
    `channels`: several become one by their mean, and one becomes several that are the same; None: as stored.
    `where`: where the clip lies: "start", "middle", "random", each place as probable as any other, or "all": the
    whole file, and one that is longer than `seconds` fails.  None: "all" without `seconds`, else "start".
    `mask`: the name of a field that goes beside the sound: (n, time) bool, True where there is any; None: none.
    Without `seconds` there is none.
    `parts`: which parts of a sample are decoded, as in `decode_image`.
    `max_bytes`: larger arrays fail, and what is decoded for one is no more (None: 1 GiB each).
    `isolate`, `isolate_timeout`: decodes in helper processes, as `decode_image` does.

    A file that is shorter than a clip comes at its begin, and zeros follow.  A clip has round(seconds *
    sample_rate) samples.  Integers become -1 to 1.  All parts of a sample are cut at the same place.
    """

    __slots__ = ()
    name = "decode_wav"

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return isolated(_stoker.op_decode_wav(**self._options(parts)), self.isolate, self.isolate_timeout)


class decode_audio(_Sound):
    """Bytes to arrays: whatever FFmpeg decodes to (channels, time) float32, resampled; the best stream of sound.

    `seconds`, `where`, `mask`, `parts`, `max_bytes`, `isolate`, `isolate_timeout`: as in `decode_wav`.
    `sample_rate`: what it is resampled to; None: as stored.
    `channels`: what it is mixed to, as FFmpeg does and normalised: sums stay within -1 to 1; None: as stored.  Where
    neither the file nor FFmpeg says which channel is which, as of most numbers above 8, one is their mean, and any
    other number fails.
    `strict`: a packet that cannot be decoded fails the sample; otherwise it is left out.

    Only what a clip needs is decoded.  UnsupportedError: there is no FFmpeg.
    """

    __slots__ = ("strict",)
    name = "decode_audio"

    strict: bool

    def __init__(
        self,
        seconds: float | None = None,
        *,
        sample_rate: int | None = None,
        channels: int | None = None,
        where: Where | None = None,
        mask: str | None = "mask",
        parts: str | Sequence[str] | None = None,
        max_bytes: int | None = None,
        strict: bool = True,
        isolate: bool = False,
        isolate_timeout: float = 60.0,
    ) -> None:
        self._set(strict=_check.flag("strict", strict))
        super().__init__(
            seconds,
            sample_rate=sample_rate,
            channels=channels,
            where=where,
            mask=mask,
            parts=parts,
            max_bytes=max_bytes,
            isolate=isolate,
            isolate_timeout=isolate_timeout,
        )

    def _options(self, parts: Sequence[str]) -> _stoker.AudioOptions:
        return {**super()._options(parts), "lenient": not self.strict}

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return isolated(_stoker.op_decode_audio(**self._options(parts)), self.isolate, self.isolate_timeout)


class decode_video(ClipOp):
    """Bytes to arrays: clips of whatever FFmpeg decodes, (frames, height, width, channels) uint8.

    `frames`: of a clip, at most 1024; None: all of each file, so that files of one batch must have as many.
    `stride`: from one frame of the clip to the next.
    `size`: a pair (height, width), or a number for both; None keeps the size, which all files of a batch must share.
    `crop`: "random_resized" (torchvision's), "center", or None: the whole picture is resized.
    `where`: where the clip lies: "start", "middle", "random", each place as probable as any other, or "all": the
    `frames` are spread evenly over the whole file, at the middles of as many pieces.  None: "all" without `frames`,
    else "start".
    `short`: a file that is too short for a clip fails ("error"), or its last frame is repeated ("repeat").
    `filter`: libswscale's: "bilinear", "bicubic", "lanczos", "box" (its area) or "nearest" (its neighbor).
    `color`: "rgb", or "gray", one channel.
    `flip`: how probable a left-right flip is.
    `scale`, `ratio`: area and width / height of a random crop.
    `resize`: the short side before a center crop (None: max(size) * 256 / 224).
    `orientation`: whether frames are turned and mirrored as the container says (its display matrix), so that they are
    upright, which is how sizes and crops are meant.
    `parts`: which parts of a sample are decoded, as in `decode_image`.
    `max_pixels`: of a frame; larger ones fail (None: 178,956,970).
    `max_bytes`: larger arrays fail, and what is decoded for one is no more (None: 1 GiB each).
    `isolate`, `isolate_timeout`: decodes in helper processes, as `decode_image` does.

    Frames are those that decoding the whole file gives.  Only what leads from the key frame before the clip to its end
    is decoded; of frames that lie far apart, the groups of pictures that they are in.  All frames, and all parts of a sample, get one crop and flip, and the same numbers of frames.  A
    packet that cannot be decoded, of those that the clip needs, fails the sample.  UnsupportedError: there is no FFmpeg.
    """

    __slots__ = (
        "frames", "stride", "size", "crop", "where", "short", "filter", "color", "flip", "scale", "ratio", "resize",
        "orientation", "parts", "max_pixels", "max_bytes", "isolate", "isolate_timeout",
    )  # fmt: skip
    name = "decode_video"

    frames: int | None
    stride: int
    size: tuple[int, int] | None
    crop: Crop | None
    where: Where
    short: Literal["error", "repeat"]
    filter: Filter
    color: Color
    flip: float
    scale: tuple[float, float]
    ratio: tuple[float, float]
    resize: int | None
    orientation: bool
    parts: tuple[str, ...] | None
    max_pixels: int | None
    max_bytes: int | None
    isolate: bool
    isolate_timeout: float

    def __init__(
        self,
        frames: int | None = 16,
        *,
        stride: int = 1,
        size: int | tuple[int, int] | None = None,
        crop: Crop | None = None,
        where: Where | None = None,
        short: Literal["error", "repeat"] = "error",
        filter: Filter = "bilinear",
        color: Color = "rgb",
        flip: float = 0.0,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        resize: int | None = None,
        orientation: bool = True,
        parts: str | Sequence[str] | None = None,
        max_pixels: int | None = None,
        max_bytes: int | None = None,
        isolate: bool = False,
        isolate_timeout: float = 60.0,
    ) -> None:
        if frames is not None:
            _check.integer("frames", frames, 1, _MOST_FRAMES)
        if where is None:
            where = "all" if frames is None else "start"
        if frames is None and _check.choice("where", where, _PLACES) != "all":
            raise ValueError(f"where={where!r} needs frames")
        if _check.integer("stride", stride, 1, 2**31 - 1) > 1 and where == "all" and frames is not None:
            raise ValueError("frames that are spread over the whole file have no stride")
        if crop is not None:
            _check.choice("crop", crop, ("random_resized", "center"))
            if size is None:
                raise ValueError(f"crop={crop!r} needs a size")
        if _check.pair("scale", scale)[1] > 1:
            raise ValueError(f"scale must be shares of the area, up to 1, not {scale}")
        for name, value, most in (("resize", resize, 65500), ("max_pixels", max_pixels, 2**62), ("max_bytes", max_bytes, 2**62)):
            if value is not None:
                _check.integer(name, value, 1, most)
        isolate, isolate_timeout = isolation(isolate, isolate_timeout)
        self._set(
            frames=frames,
            stride=stride,
            size=_size(size),
            crop=crop,
            where=_check.choice("where", where, _PLACES),
            short=_check.choice("short", short, ("error", "repeat")),
            filter=_check.choice("filter", filter, ("bilinear", "bicubic", "lanczos", "box", "nearest")),
            color=_check.choice("color", color, ("rgb", "gray")),
            flip=_check.number("flip", flip, 0, 1),
            scale=_check.pair("scale", scale),
            ratio=_check.pair("ratio", ratio),
            resize=resize,
            orientation=_check.flag("orientation", orientation),
            parts=parts_to_take(parts),
            max_pixels=max_pixels,
            max_bytes=max_bytes,
            isolate=isolate,
            isolate_timeout=isolate_timeout,
        )
        self._handle(self.parts or ())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        height, width = self.size or (0, 0)
        op = _stoker.op_decode_video(
            int(self.frames or 0),
            int(self.stride),
            self.where,
            self.short == "repeat",
            int(self.max_bytes or 0),
            width=width,
            height=height,
            crop=self.crop or "none",
            filter=self.filter,
            quality="fast",
            color=self.color,
            flip=self.flip,
            scale=self.scale,
            ratio=self.ratio,
            resize=int(self.resize or 0),
            ignore_orientation=not self.orientation,
            nearest_parts=0,
            gray_parts=0,
            parts=bits_to_take(self.parts, parts),
            max_pixels=int(self.max_pixels or 0),
            max_side=0,
        )
        return isolated(op, self.isolate, self.isolate_timeout)


def _size(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2:
            raise ValueError(f"size must be a number or a pair (height, width), not {value!r}")
        return _check.integer("size[0]", value[0], 1, 65500), _check.integer("size[1]", value[1], 1, 65500)
    side = _check.integer("size", value, 1, 65500)
    return side, side
