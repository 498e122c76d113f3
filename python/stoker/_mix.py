"""Ops that mix the samples of a batch, with torchvision's names and meanings."""

from __future__ import annotations

from collections.abc import Sequence

from . import _check, _stoker
from ._op import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class BatchOp(Op):
    """Takes batches and gives batches."""

    __slots__ = ()


class _Mix(BatchOp):
    __slots__ = ("alpha", "num_classes", "p", "field", "label")

    alpha: float
    num_classes: int | None
    p: float
    field: str
    label: str

    def __init__(
        self,
        alpha: float = 1.0,
        num_classes: int | None = None,
        *,
        p: float = 1.0,
        field: str = "image",
        label: str = "label",
    ) -> None:
        for name, value in (("field", field), ("label", label)):
            if not isinstance(value, str) or not value:
                raise TypeError(f"{name} must be the name of a field")
        if num_classes is not None:
            num_classes = _check.integer("num_classes", num_classes, 1, 1 << 24)
        self._set(
            alpha=_check.number("alpha", alpha, 1e-3, 1e6),
            num_classes=num_classes,
            p=_check.number("p", p, 0, 1),
            field=field,
            label=label,
        )


class mixup(_Mix):
    """Batch to batch: each sample is mixed with the one before it, the first with the last, as torchvision's MixUp.

    `alpha`: lam, one number for the whole batch, is drawn from Beta(alpha, alpha), by the source's seed,
    epoch and rank and the number of the batch.
    `num_classes`: None keeps the labels and adds those of the partners; a number makes shares of them.
    `p`: how probable it is that a batch is mixed.
    `field`, `label`: names of the fields.

    The field, uint8 (rounded within 1) or float32, becomes lam x + (1 - lam) x of the partner.  uint8
    before `normalize` moves a quarter of the bytes of float32 behind it, and is the same but for
    rounding.  The batch gets `lam`, float32 (n,), which is 1 where it stays as it is, and:

    - without `num_classes`, `label_b`, the partners' labels, if there are labels: the loss is
      lam loss(out, label) + (1 - lam) loss(out, label_b);
    - with it, in the place of labels (n,) of integers, or float32 (n, num_classes), float32
      (n, num_classes): lam of the one and 1 - lam of the other.

    A batch that was mixed (lam is below 1) is not mixed again: `mixup(p=0.5)` and `cutmix()` behind it
    mix each batch by one of the two.  What is drawn depends on the seed, the epoch and the number of
    the batch.
    """

    __slots__ = ()
    name = "mixup"

    def __init__(
        self,
        alpha: float = 1.0,
        num_classes: int | None = None,
        *,
        p: float = 1.0,
        field: str = "image",
        label: str = "label",
    ) -> None:
        super().__init__(alpha, num_classes, p=p, field=field, label=label)
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_mixup(
            alpha=self.alpha,
            keep=1 - self.p,
            num_classes=self.num_classes or 0,
            layout="NHWC",
            field=self.field.encode(),
            label=self.label.encode(),
        )


class cutmix(_Mix):
    """Batch to batch: a box of each sample is that of the one before it, as torchvision's CutMix.

    `layout`: of the field: "NHWC" or "NCHW"; refused where it means more than 4 channels and the other
    one 1 to 4.  The other options, and what becomes of labels, are as in `mixup`.

    The field, of any type, is (n, height, width, channels), for clips (n, frames, height, width,
    channels), or either with the channels before the height.  The box has 1 - lam of the area, about a
    pixel drawn from all; what lies beyond the edges is cut off, and `lam` is what remains of each sample.
    It is the same for all samples and frames.
    """

    __slots__ = ("layout",)
    name = "cutmix"

    layout: Literal["NHWC", "NCHW"]

    def __init__(
        self,
        alpha: float = 1.0,
        num_classes: int | None = None,
        *,
        p: float = 1.0,
        layout: Literal["NHWC", "NCHW"] = "NHWC",
        field: str = "image",
        label: str = "label",
    ) -> None:
        super().__init__(alpha, num_classes, p=p, field=field, label=label)
        self._set(layout=_check.choice("layout", layout, ("NHWC", "NCHW")))
        self._handle(())

    def _handle(self, parts: Sequence[str]) -> _stoker.Op:
        return _stoker.op_cutmix(
            alpha=self.alpha,
            keep=1 - self.p,
            num_classes=self.num_classes or 0,
            layout=self.layout,
            field=self.field.encode(),
            label=self.label.encode(),
        )
