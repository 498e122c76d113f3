"""The ops that come with Stoker: descriptions of what a stage does, for PipelineBuilder.pipe.

They run in C, on threads that never touch Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from . import _check, _stoker

__all__ = ["Op", "decode_image", "normalize", "read"]

Crop = Literal["random_resized", "center"]
Filter = Literal["bilinear", "bicubic", "lanczos", "box", "nearest"]
Quality = Literal["fast", "exact"]
Color = Literal["rgb", "gray"]
Layout = Literal["NHWC", "NCHW"]
DType = Literal["uint8", "float32", "float16", "bfloat16"]

_MASK = "mask"  # the part that is resampled with nearest unless told otherwise


class Op:
    """What a stage does.  Immutable: may be used in many pipelines at once."""

    name: ClassVar[str]

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        """The op of the C library, for samples with these parts."""
        raise NotImplementedError


@dataclass(frozen=True)
class read(Op):
    """Key to bytes: reads the whole of each file, on threads of its own.

    `max_bytes`: a larger file fails (None: 256 MiB).
    """

    max_bytes: int | None = None

    name: ClassVar[str] = "read"

    def __post_init__(self) -> None:
        if self.max_bytes is not None:
            _check.integer("max_bytes", self.max_bytes, 1)
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_read(self.max_bytes or 0)


@dataclass(frozen=True)
class decode_image(Op):
    """Bytes to array: JPEG, PNG or WebP to (height, width, channels) uint8.

    `width`, `height`: of the result; both None keeps the size, which all images of a batch must share.
    `crop`: "random_resized" (torchvision's), "center", or None: the whole image is resized.
    `filter`: antialiased as Pillow's, except "nearest".
    `quality`: "exact" equals Pillow within 1 of 255; "fast" has 38 dB or more against that.
    `flip`: how probable a left-right flip is.
    `scale`, `ratio`: area and width / height of a random crop.
    `resize`: the short side before a center crop (None: max(width, height) * 256 / 224).
    `orientation`: whether EXIF orientation is applied.
    `nearest`, `gray`: names of parts that are resampled with nearest whatever `filter` says, or
    decoded to one channel.  Without `nearest`, a part called "mask" is.
    `max_pixels`, `max_side`: larger images fail (None: 178,956,970 and 65,500).
    """

    width: int | None = None
    height: int | None = None
    _: KW_ONLY
    crop: Crop | None = None
    filter: Filter = "bilinear"
    quality: Quality = "fast"
    color: Color = "rgb"
    flip: float = 0.0
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    resize: int | None = None
    orientation: bool = True
    nearest: Sequence[str] | None = None
    gray: Sequence[str] = ()
    max_pixels: int | None = None
    max_side: int | None = None

    name: ClassVar[str] = "decode_image"

    def __post_init__(self) -> None:
        if (self.width is None) != (self.height is None):
            raise ValueError("width and height must be given together, or neither")
        for name in ("width", "height", "resize", "max_side"):
            if getattr(self, name) is not None:
                _check.integer(name, getattr(self, name), 1, 65500)
        if self.max_pixels is not None:
            _check.integer("max_pixels", self.max_pixels, 1, 2**62)
        if self.crop is not None:
            _check.choice("crop", self.crop, ("random_resized", "center"))
            if self.width is None:
                raise ValueError(f"crop={self.crop!r} needs width and height")
        _check.choice("filter", self.filter, ("bilinear", "bicubic", "lanczos", "box", "nearest"))
        _check.choice("quality", self.quality, ("fast", "exact"))
        _check.choice("color", self.color, ("rgb", "gray"))
        _check.number("flip", self.flip, 0, 1)
        if _check.pair("scale", self.scale)[1] > 1:
            raise ValueError(f"scale must be shares of the area, up to 1, not {self.scale}")
        _check.pair("ratio", self.ratio)
        _check.flag("orientation", self.orientation)
        for name in ("nearest", "gray"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a list of names of parts")
            object.__setattr__(self, name, _names(getattr(self, name)))
        _stoker.op_decode_image(**self._options(0, 0))

    def _options(self, nearest: int, gray: int) -> _stoker.ImageOptions:
        return {
            "width": int(self.width or 0),
            "height": int(self.height or 0),
            "crop": self.crop or "none",
            "filter": self.filter,
            "quality": self.quality,
            "color": self.color,
            "flip": float(self.flip),
            "scale": _check.pair("scale", self.scale),
            "ratio": _check.pair("ratio", self.ratio),
            "resize": int(self.resize or 0),
            "ignore_orientation": not self.orientation,
            "nearest_parts": nearest,
            "gray_parts": gray,
            "max_pixels": int(self.max_pixels or 0),
            "max_side": int(self.max_side or 0),
        }

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        nearest = self.nearest
        if nearest is None:
            nearest = [part for part in parts if part == _MASK]
        return _stoker.op_decode_image(
            **self._options(_bits("nearest", nearest, parts), _bits("gray", self.gray, parts))
        )


def _names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _bits(argument: str, names: Sequence[str], parts: Sequence[str]) -> int:
    for name in names:
        if name not in parts:
            raise ValueError(f"{argument}: the source has no part {name!r}; it has {list(parts)}")
    return sum(1 << i for i, part in enumerate(parts) if part in names)


@dataclass(frozen=True)
class normalize(Op):
    """Batch to batch: out = (x / scale - mean) / std, in one pass over a field.

    `mean`, `std`: a number, or one for each channel.
    `scale`: 255 brings uint8 to the range 0 to 1 first, as torchvision; 1 takes raw units.
    `dtype`, `layout`: of the result.
    """

    mean: float | Sequence[float] = 0.0
    std: float | Sequence[float] = 1.0
    _: KW_ONLY
    scale: float = 255.0
    dtype: DType = "float32"
    layout: Layout = "NHWC"
    field: str = "image"

    name: ClassVar[str] = "normalize"

    def __post_init__(self) -> None:
        mean, std = _channels("mean", self.mean), _channels("std", self.std)
        if len(mean) != len(std) and min(len(mean), len(std)) > 1:
            raise ValueError(f"mean has {len(mean)} numbers, but std has {len(std)}")
        if 0 in std:
            raise ValueError("std must not be 0")
        if _check.number("scale", self.scale) <= 0:
            raise ValueError(f"scale must be above 0, not {self.scale:g}")
        _check.choice("dtype", self.dtype, ("uint8", "float32", "float16", "bfloat16"))
        _check.choice("layout", self.layout, ("NHWC", "NCHW"))
        if not isinstance(self.field, str) or not self.field:
            raise TypeError("field must be the name of a field")
        object.__setattr__(self, "mean", mean if len(mean) > 1 else mean[0])
        object.__setattr__(self, "std", std if len(std) > 1 else std[0])
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        mean, std = _channels("mean", self.mean), _channels("std", self.std)
        n = max(len(mean), len(std))
        return _stoker.op_normalize(
            mean=mean * (n // len(mean)),
            std=std * (n // len(std)),
            scale=float(self.scale),
            dtype=self.dtype,
            layout=self.layout,
            field=self.field.encode(),
        )


def _channels(name: str, value: object) -> tuple[float, ...]:
    if hasattr(value, "tolist"):  # of NumPy or torch
        value = value.tolist()
    if not isinstance(value, Sequence):
        return (_check.number(name, value),)
    if isinstance(value, str) or not 1 <= len(value) <= 4:
        raise ValueError(f"{name} must be a number, or 1 to 4 of them")
    return tuple(_check.number(f"{name}[{i}]", x) for i, x in enumerate(value))
