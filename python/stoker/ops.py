"""The ops that come with Stoker: descriptions of what a stage does, for PipelineBuilder.pipe.

They run in C, on threads that never touch Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import _check, _stoker
from ._augment import blur, color_jitter, erase, grayscale, pad, rotate
from ._clips import decode_audio, decode_video, decode_wav
from ._mix import cutmix, mixup
from ._op import MASK, Op, bits_of_parts, bits_to_take, isolated, isolation, names_of_parts, parts_to_take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Crop = Literal["random_resized", "center"]
    Filter = Literal["bilinear", "bicubic", "lanczos", "box", "nearest"]
    Quality = Literal["fast", "exact"]
    Color = Literal["rgb", "gray"]
    Layout = Literal["NHWC", "NCHW"]
    DType = Literal["uint8", "float32", "float16", "bfloat16"]

__all__ = ["Op", "blur", "color_jitter", "cutmix", "decode_audio", "decode_image", "decode_video", "decode_wav", "erase", "grayscale", "load_npy", "mixup", "normalize", "pad", "read", "rotate"]


class read(Op):
    """Key to bytes: reads the whole of each file, on threads of its own.

    `max_bytes`: a larger file fails (None: 256 MiB).
    """

    __slots__ = ("max_bytes",)
    name = "read"

    max_bytes: int | None

    def __init__(self, max_bytes: int | None = None) -> None:
        if max_bytes is not None:
            _check.integer("max_bytes", max_bytes, 1)
        self._set(max_bytes=max_bytes)
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_read(self.max_bytes or 0)


class decode_image(Op):
    """Bytes to array: JPEG, PNG or WebP to (height, width, channels) uint8.

    AVIF, BMP, GIF (its first image) and TIFF, too, if there is FFmpeg: it is loaded when the first of
    them comes, and what has none fails with `UnsupportedError`.  The content says what it is.

    `width`, `height`: of the result; both None keeps the size, which all images of a batch must share.
    `crop`: "random_resized" (torchvision's), "center", or None: the whole image is resized.
    `filter`: "bilinear", "bicubic", "lanczos" or "box", antialiased as Pillow's, or "nearest".
    `quality`: "exact" equals Pillow within 1 of 255; "fast" has 38 dB or more against that.
    `color`: "rgb", or "gray", one channel.
    `flip`: how probable a left-right flip is.
    `scale`, `ratio`: area and width / height of a random crop.
    `resize`: the short side before a center crop (None: max(width, height) * 256 / 224).
    `orientation`: whether EXIF orientation is applied.
    `nearest`, `gray`: names of parts that are resampled with nearest whatever `filter` says, or
    decoded to one channel.  Without `nearest`, a part called "mask" is.
    `parts`: a name, or names, of the parts of a sample that are decoded; the others stay bytes, for another op (None:
    all are decoded).  All that are share one crop and flip, and must have one size.
    `max_pixels`, `max_side`: larger images fail (None: 178,956,970 and 65,500).
    `isolate`: decodes in helper processes, one for each thread: a decoder that crashes, or takes longer than
    `isolate_timeout` seconds, fails its sample with a CorruptError, and nothing else (docs/isolation.md).  Costs 40 us
    of processor time a sample, and 0.3 ms for each MB of its file and its array.
    """

    __slots__ = (
        "width", "height", "crop", "filter", "quality", "color", "flip", "scale", "ratio", "resize",
        "orientation", "nearest", "gray", "parts", "max_pixels", "max_side", "isolate", "isolate_timeout",
    )  # fmt: skip
    name = "decode_image"

    width: int | None
    height: int | None
    crop: Crop | None
    filter: Filter
    quality: Quality
    color: Color
    flip: float
    scale: tuple[float, float]
    ratio: tuple[float, float]
    resize: int | None
    orientation: bool
    nearest: tuple[str, ...] | None
    gray: tuple[str, ...]
    parts: tuple[str, ...] | None
    max_pixels: int | None
    max_side: int | None
    isolate: bool
    isolate_timeout: float

    def __init__(
        self,
        width: int | None = None,
        height: int | None = None,
        *,
        crop: Crop | None = None,
        filter: Filter = "bilinear",
        quality: Quality = "fast",
        color: Color = "rgb",
        flip: float = 0.0,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        resize: int | None = None,
        orientation: bool = True,
        nearest: Sequence[str] | None = None,
        gray: Sequence[str] = (),
        parts: str | Sequence[str] | None = None,
        max_pixels: int | None = None,
        max_side: int | None = None,
        isolate: bool = False,
        isolate_timeout: float = 60.0,
    ) -> None:
        if (width is None) != (height is None):
            raise ValueError("width and height must be given together, or neither")
        sides = {"width": width, "height": height, "resize": resize, "max_side": max_side}
        for name, value in sides.items():
            if value is not None:
                _check.integer(name, value, 1, 65500)
        if max_pixels is not None:
            _check.integer("max_pixels", max_pixels, 1, 2**62)
        if crop is not None:
            _check.choice("crop", crop, ("random_resized", "center"))
            if width is None:
                raise ValueError(f"crop={crop!r} needs width and height")
        if _check.pair("scale", scale)[1] > 1:
            raise ValueError(f"scale must be shares of the area, up to 1, not {scale}")
        isolate, isolate_timeout = isolation(isolate, isolate_timeout)
        self._set(
            width=width,
            height=height,
            crop=crop,
            filter=_check.choice("filter", filter, ("bilinear", "bicubic", "lanczos", "box", "nearest")),
            quality=_check.choice("quality", quality, ("fast", "exact")),
            color=_check.choice("color", color, ("rgb", "gray")),
            flip=_check.number("flip", flip, 0, 1),
            scale=_check.pair("scale", scale),
            ratio=_check.pair("ratio", ratio),
            resize=resize,
            orientation=_check.flag("orientation", orientation),
            nearest=None if nearest is None else names_of_parts("nearest", nearest),
            gray=names_of_parts("gray", gray),
            parts=parts_to_take(parts),
            max_pixels=max_pixels,
            max_side=max_side,
            isolate=isolate,
            isolate_timeout=isolate_timeout,
        )
        self._op(0, 0, 0)

    def _options(self, nearest: int, gray: int, taken: int = 0) -> _stoker.ImageOptions:
        return {
            "width": int(self.width or 0),
            "height": int(self.height or 0),
            "crop": self.crop or "none",
            "filter": self.filter,
            "quality": self.quality,
            "color": self.color,
            "flip": self.flip,
            "scale": self.scale,
            "ratio": self.ratio,
            "resize": int(self.resize or 0),
            "ignore_orientation": not self.orientation,
            "nearest_parts": nearest,
            "gray_parts": gray,
            "parts": taken,
            "max_pixels": int(self.max_pixels or 0),
            "max_side": int(self.max_side or 0),
        }

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        nearest = self.nearest
        if nearest is None:
            nearest = (MASK,) if MASK in parts else ()
        bits = bits_of_parts("nearest", nearest, parts), bits_of_parts("gray", self.gray, parts)
        return self._op(*bits, bits_to_take(self.parts, parts))

    def _op(self, nearest: int, gray: int, taken: int) -> _stoker.Op:
        op = _stoker.op_decode_image(**self._options(nearest, gray, taken))
        return isolated(op, self.isolate, self.isolate_timeout)


class load_npy(Op):
    """Bytes of a NumPy file to its array, a view of them.

    `parts`: as in `decode_image`.

    Any shape of at most 8 dimensions, in C or Fortran order; bool, integers, float16, float32 and float64 in
    this machine's order of bytes.  Other types fail, by name.  All arrays of a batch have one shape and type:
    it has (n, *shape).
    """

    __slots__ = ("parts",)
    name = "load_npy"

    parts: tuple[str, ...] | None

    def __init__(self, *, parts: str | Sequence[str] | None = None) -> None:
        self._set(parts=parts_to_take(parts))

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_load_npy(bits_to_take(self.parts, parts))


class normalize(Op):
    """Batch to batch: out = (x / scale - mean) / std, in one pass over a field of pictures or of clips.

    `mean`, `std`: a number, or one for each channel.
    `scale`: 255 brings uint8 to the range 0 to 1 first, as torchvision; 1 takes raw units.
    `dtype`: of the result: "float32", "float16", "bfloat16" or "uint8".
    `layout`: of the result: "NHWC" or "NCHW"; of clips that of each frame: (n, frames, channels, height, width).
    `field`: the name of the field; the others stay as they are.
    """

    __slots__ = ("mean", "std", "scale", "dtype", "layout", "field")
    name = "normalize"

    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float
    dtype: DType
    layout: Layout
    field: str

    def __init__(
        self,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        *,
        scale: float = 255.0,
        dtype: DType = "float32",
        layout: Layout = "NHWC",
        field: str = "image",
    ) -> None:
        means, stds = _channels("mean", mean), _channels("std", std)
        if len(means) != len(stds) and min(len(means), len(stds)) > 1:
            raise ValueError(f"mean has {len(means)} numbers, but std has {len(stds)}")
        if 0 in stds:
            raise ValueError("std must not be 0")
        if _check.number("scale", scale) <= 0:
            raise ValueError(f"scale must be above 0, not {scale:g}")
        if not isinstance(field, str) or not field:
            raise TypeError("field must be the name of a field")
        n = max(len(means), len(stds))
        self._set(
            mean=means * (n // len(means)),
            std=stds * (n // len(stds)),
            scale=float(scale),
            dtype=_check.choice("dtype", dtype, ("uint8", "float32", "float16", "bfloat16")),
            layout=_check.choice("layout", layout, ("NHWC", "NCHW")),
            field=field,
        )
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_normalize(
            mean=self.mean,
            std=self.std,
            scale=self.scale,
            dtype=self.dtype,
            layout=self.layout,
            field=self.field.encode(),
        )


def _channels(name: str, value: object) -> tuple[float, ...]:
    to_list = getattr(value, "tolist", None)  # of NumPy or torch
    if to_list is not None:
        value = to_list()
    if not isinstance(value, Sequence):
        return (_check.number(name, value),)
    if isinstance(value, str) or not 1 <= len(value) <= 4:
        raise ValueError(f"{name} must be a number, or 1 to 4 of them")
    return tuple(_check.number(f"{name}[{i}]", x) for i, x in enumerate(value))
