"""Ops that change pictures at random, with torchvision's names and meanings."""

from __future__ import annotations

from collections.abc import Sequence

from . import _check, _stoker
from ._op import MASK, Op, bits_of_parts, names_of_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]

_FACTOR_MAX = 16  # STK_FACTOR_MAX


class ArrayOp(Op):
    """Takes arrays and gives arrays."""

    __slots__ = ()


class color_jitter(ArrayOp):
    """Array to array: brightness, contrast, saturation and hue change at random, as torchvision's ColorJitter.

    `brightness`, `contrast`, `saturation`: a factor is drawn from max(0, 1 - x) to 1 + x, or from a
    pair (least, most), within 0 to 16; 0 changes nothing.
    `hue`: drawn from -x to x, or from a pair, within -0.5 to 0.5 of the whole circle.
    `p`: how probable a change is.

    Takes uint8, (height, width, channels) or, for clips, (frames, height, width, channels), with 1
    or 3 channels; all frames get the same.  The four follow each other in an order drawn for each
    sample; each rounds and clips, and is within 1 of its formula, where luma is 0.2989 R + 0.587 G +
    0.114 B: brightness f x; contrast f x + (1 - f) (mean of the frame's luma); saturation
    f x + (1 - f) luma; hue turns the angle of HSV.  One channel has no saturation and no hue.  Of a
    sample with several parts the first changes.
    """

    __slots__ = ("brightness", "contrast", "saturation", "hue", "p")
    name = "color_jitter"

    brightness: tuple[float, float]
    contrast: tuple[float, float]
    saturation: tuple[float, float]
    hue: tuple[float, float]
    p: float

    def __init__(
        self,
        brightness: float | tuple[float, float] = 0.0,
        contrast: float | tuple[float, float] = 0.0,
        saturation: float | tuple[float, float] = 0.0,
        hue: float | tuple[float, float] = 0.0,
        *,
        p: float = 1.0,
    ) -> None:
        self._set(
            brightness=_factors("brightness", brightness),
            contrast=_factors("contrast", contrast),
            saturation=_factors("saturation", saturation),
            hue=_around("hue", hue, 0.0, -0.5, 0.5),
            p=_check.number("p", p, 0, 1),
        )
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_color_jitter(
            brightness=_less_one(self.brightness),
            contrast=_less_one(self.contrast),
            saturation=_less_one(self.saturation),
            hue=self.hue,
            keep=1 - self.p,
        )


def _factors(name: str, value: object) -> tuple[float, float]:
    return _around(name, value, 1.0, 0.0, _FACTOR_MAX)


def _less_one(factors: tuple[float, float]) -> tuple[float, float]:
    return factors[0] - 1, factors[1] - 1


def _around(name: str, value: object, middle: float, least: float, most: float) -> tuple[float, float]:
    """A range: so much around the middle, or its two ends."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _range(name, value, least, most)
    around = _check.number(name, value, 0, most - middle)
    return max(least, middle - around), middle + around


class grayscale(ArrayOp):
    """Array to array: takes the colour away from some, as torchvision's RandomGrayscale.

    `p`: how probable that is.

    Takes what `color_jitter` takes; the number of channels stays, and each of them becomes 0.2989 R +
    0.587 G + 0.114 B, rounded.  Of a sample with several parts the first changes.
    """

    __slots__ = ("p",)
    name = "grayscale"

    p: float

    def __init__(self, p: float = 0.1) -> None:
        self._set(p=_check.number("p", p, 0, 1))
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_grayscale(keep=1 - self.p)


class erase(ArrayOp):
    """Array to array: a random rectangle is filled, as torchvision's RandomErasing.

    `p`: how probable that is.
    `scale`: the rectangle's share of the area, within 0 to 1.
    `ratio`: its height / width.
    `value`: what it is filled with: a number from 0 to 255, one for each channel, or "random": noise,
    each value as probable as any.

    Takes uint8, (height, width, channels) or, for clips, (frames, height, width, channels); all frames
    get the same.  Area and ratio are drawn up to ten times, until the rectangle is less high and less
    wide than the picture; if it never is, nothing is erased.  Of a sample with several parts the first
    changes.

    It works on pixels: before `normalize`, the mean of the data set times 255 is what torchvision's 0
    behind it is.
    """

    __slots__ = ("p", "scale", "ratio", "value")
    name = "erase"

    p: float
    scale: tuple[float, float]
    ratio: tuple[float, float]
    value: tuple[int, ...] | Literal["random"]

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: int | Sequence[int] | Literal["random"] = 0,
    ) -> None:
        self._set(
            p=_check.number("p", p, 0, 1),
            scale=_range("scale", scale, 0, 1),
            ratio=_range("ratio", ratio, 1e-6, 1e6),
            value="random" if value == "random" else _fill("value", value),
        )
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        # Zeros are the library's defaults.
        return _stoker.op_erase(
            keep=1 - self.p,
            scale=self.scale if self.scale[1] else (1e-300, 1e-300),
            ratio=self.ratio,
            value=(0,) if isinstance(self.value, str) else self.value,
            random=isinstance(self.value, str),
        )


def _range(name: str, value: object, least: float, most: float) -> tuple[float, float]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{name} must be a pair of numbers")
    first = _check.number(f"{name}[0]", value[0], least, most)
    second = _check.number(f"{name}[1]", value[1], least, most)
    if first > second:
        raise ValueError(f"{name} must be two numbers, the smaller first, not {value}")
    return first, second


def _fill(name: str, value: object) -> tuple[int, ...]:
    """A colour: one value for all channels, or one for each."""
    if isinstance(value, str):
        raise ValueError(f"{name} must be a number, or 1 to 4 of them, not {value!r}")
    if not isinstance(value, Sequence):
        return (_check.integer(name, value, 0, 255),)
    if not 1 <= len(value) <= 4:
        raise ValueError(f"{name} must be a number, or 1 to 4 of them, not {len(value)}")
    return tuple(_check.integer(f"{name}[{i}]", v, 0, 255) for i, v in enumerate(value))


class pad(ArrayOp):
    """Array to array: pixels are added on each side of every part, as torchvision's Pad.

    `padding`: pixels: a number for all sides, (left and right, top and bottom), or (left, top, right,
    bottom); from 0 to 65535.
    `fill`: of "constant": a number from 0 to 255, or one for each channel.
    `padding_mode`: "constant"; "edge", the last pixel; "reflect", mirrors that do not repeat it;
    "symmetric", mirrors that do.  Mirrors repeat where there is more padding than picture.
    `masks`: names of parts that get `mask_fill` instead of `fill`.  Without it, a part called "mask".

    Takes uint8, (height, width, channels) or, for clips, (frames, height, width, channels).
    """

    __slots__ = ("padding", "fill", "padding_mode", "masks", "mask_fill")
    name = "pad"

    padding: tuple[int, int, int, int]
    fill: tuple[int, ...]
    padding_mode: PaddingMode
    masks: tuple[str, ...] | None
    mask_fill: int

    def __init__(
        self,
        padding: int | tuple[int, int] | tuple[int, int, int, int],
        fill: int | Sequence[int] = 0,
        padding_mode: PaddingMode = "constant",
        *,
        masks: Sequence[str] | None = None,
        mask_fill: int = 0,
    ) -> None:
        self._set(
            padding=_sides("padding", padding),
            fill=_fill("fill", fill),
            padding_mode=_check.choice("padding_mode", padding_mode, ("constant", "edge", "reflect", "symmetric")),
            masks=None if masks is None else names_of_parts("masks", masks),
            mask_fill=_check.integer("mask_fill", mask_fill, 0, 255),
        )
        self._made(0)

    def _made(self, masks: int) -> _stoker.Op:
        return _stoker.op_pad(
            padding=self.padding,
            mode=self.padding_mode,
            fill=self.fill,
            mask_parts=masks,
            mask_fill=(self.mask_fill,),
        )

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return self._made(_masks(self.masks, parts))


def _masks(masks: tuple[str, ...] | None, parts: Sequence[str]) -> int:
    if masks is None:
        masks = (MASK,) if MASK in parts else ()
    return bits_of_parts("masks", masks, parts)


def _sides(name: str, value: object) -> tuple[int, ...]:
    """Left, top, right, bottom."""
    most = 65535  # STK_PAD_MAX
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (_check.integer(name, value, 0, most),) * 4
    if len(value) not in (2, 4):
        raise ValueError(f"{name} must be a number, 2 or 4 of them, not {len(value)}")
    sides = tuple(_check.integer(f"{name}[{i}]", v, 0, most) for i, v in enumerate(value))
    return sides if len(sides) == 4 else sides * 2


class blur(ArrayOp):
    """Array to array: a Gaussian, as torchvision's GaussianBlur.

    `kernel_size`: odd, from 1 to 255: a number, or (along rows, along columns).
    `sigma`: pixels: a number, or a pair that it is drawn from, at least 0.001.
    `p`: how probable it is.

    Takes uint8, (height, width, channels) or, for clips, (frames, height, width, channels); all frames
    get the same.  Weights are exp(-x^2 / (2 sigma^2)) over the kernel, of sum 1; beyond the edges are
    mirrors ("reflect", see `pad`), so the kernel may be larger than the picture.  Within 1 of 255 of
    the sum.  Of a sample with several parts the first changes.
    """

    __slots__ = ("kernel_size", "sigma", "p")
    name = "blur"

    kernel_size: tuple[int, int]
    sigma: tuple[float, float]
    p: float

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        sigma: float | tuple[float, float] = (0.1, 2.0),
        *,
        p: float = 1.0,
    ) -> None:
        sizes = kernel_size if isinstance(kernel_size, Sequence) else (kernel_size, kernel_size)
        if len(sizes) != 2:
            raise ValueError(f"kernel_size must be a number or a pair, not {len(sizes)} of them")
        for size in sizes:
            if _check.integer("kernel_size", size, 1, 255) % 2 == 0:
                raise ValueError(f"kernel_size must be odd, not {size}")
        if not isinstance(sigma, Sequence):
            width = _check.number("sigma", sigma, 1e-3, 1e6)
            sigma = (width, width)
        self._set(
            kernel_size=tuple(map(int, sizes)),
            sigma=_range("sigma", sigma, 1e-3, 1e6),
            p=_check.number("p", p, 0, 1),
        )
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_blur(kernel_size=self.kernel_size, sigma=self.sigma, keep=1 - self.p)


class rotate(ArrayOp):
    """Array to array: every part turns by a random angle, as torchvision's RandomRotation.

    `degrees`: counter-clockwise: drawn from -x to x, or from a pair.
    `filter`: "nearest" or "bilinear".
    `expand`: whether the result is as large as it takes to hold the whole picture, of Pillow's and
    torchvision's size: then pictures that turn by different angles cannot be batched.
    `center`: (x, y) of what stays where it is, in pixels from the upper left corner; None: the middle.
    `fill`: of what lies beyond the picture: a number from 0 to 255, or one for each channel.
    `p`: how probable a turn is.
    `masks`: names of parts that are turned with nearest, and get `mask_fill` instead of `fill`.
    Without it, a part called "mask".

    Takes uint8, (height, width, channels) or, for clips, (frames, height, width, channels); all frames
    turn by the same angle.  The centre of each new pixel is turned back: nearest takes the pixel that
    it falls into, bilinear mixes the four around it, of which those beyond the picture are the fill;
    it is within 1 of 255.  Turns by 90, 180 and 270 degrees that expand only move pixels.
    """

    __slots__ = ("degrees", "filter", "expand", "center", "fill", "p", "masks", "mask_fill")
    name = "rotate"

    degrees: tuple[float, float]
    filter: Literal["nearest", "bilinear"]
    expand: bool
    center: tuple[float, float] | None
    fill: tuple[int, ...]
    p: float
    masks: tuple[str, ...] | None
    mask_fill: int

    def __init__(
        self,
        degrees: float | tuple[float, float],
        filter: Literal["nearest", "bilinear"] = "nearest",
        expand: bool = False,
        center: tuple[float, float] | None = None,
        fill: int | Sequence[int] = 0,
        *,
        p: float = 1.0,
        masks: Sequence[str] | None = None,
        mask_fill: int = 0,
    ) -> None:
        if center is not None:
            if isinstance(center, str) or not isinstance(center, Sequence) or len(center) != 2:
                raise TypeError("center must be a pair of numbers")
            center = (
                _check.number("center[0]", center[0], -1e6, 1e6),
                _check.number("center[1]", center[1], -1e6, 1e6),
            )
            if expand:
                raise ValueError("expand turns about the middle: leave center out")
        self._set(
            degrees=_around("degrees", degrees, 0.0, -1e6, 1e6),
            filter=_check.choice("filter", filter, ("nearest", "bilinear")),
            expand=_check.flag("expand", expand),
            center=center,
            fill=_fill("fill", fill),
            p=_check.number("p", p, 0, 1),
            masks=None if masks is None else names_of_parts("masks", masks),
            mask_fill=_check.integer("mask_fill", mask_fill, 0, 255),
        )
        self._made(0)

    def _made(self, masks: int) -> _stoker.Op:
        return _stoker.op_rotate(
            degrees=self.degrees,
            filter=self.filter,
            expand=self.expand,
            off_center=self.center is not None,
            center=self.center or (0.0, 0.0),
            fill=self.fill,
            mask_parts=masks,
            mask_fill=(self.mask_fill,),
            keep=1 - self.p,
        )

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return self._made(_masks(self.masks, parts))
