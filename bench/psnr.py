# SPDX-License-Identifier: BSD-2-Clause
"""How close each contender's pixels are to Pillow's exact result, for the same geometry."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.context import CHECK_FILES, STOKER, Contender, Context, progress, verify
from bench.corpus import Corpus
from bench.proc import Failed

SANE_DB = 25.0  # below it, something is wrong with the picture, not with its rounding


@dataclass(frozen=True)
class Closeness:
    """PSNR in dB over all pixels; None where it cannot be compared."""

    whole: float  # the whole image resized
    boxes: float | None  # random boxes

    def text(self) -> str:
        return f"{show(self.whole)} / {show(self.boxes)}"


def show(db: float | None) -> str:
    return "-" if db is None else "exact" if db > 99 else f"{db:.1f}"


def psnr(a: Any, b: Any) -> float:
    error = sum(float(np.square(x.astype(np.int32) - y).sum()) for x, y in zip(a, b, strict=True))
    return float(10 * np.log10(255**2 / max(error / a.size, 1e-12)))


class Gallery:
    """Images of each contender, made once a geometry."""

    def __init__(self, context: Context, corpus: Corpus, reference: Contender, folder: Path) -> None:
        self.context, self.corpus, self.folder = context, corpus, folder
        self.references = {g: self.images(reference, g) for g in ("whole", "random")}

    def images(self, who: Contender, geometry: str, quality: str = "fast") -> Any:
        out = self.folder / f"{who.loader}-{geometry}-{quality}.npz"
        progress(f"pixels of {who.title}: {geometry}")
        done = self.context.load(
            who, self.corpus.root, geometry=geometry, shuffle=0, quality=quality, out=out
        )
        verify(done, self.corpus)
        data = np.load(out)
        images = data["images"]
        if (np.diff(data["labels"]) < 0).any():
            raise Failed(f"{who.title}: unshuffled labels are out of order")
        return images

    def closeness(self, who: Contender) -> Closeness:
        whole = psnr(self.images(who, "whole"), self.references["whole"])
        if whole < SANE_DB:
            raise Failed(f"{who.title}: {whole:.1f} dB from Pillow's result is not the same picture")
        if who.loader == STOKER:
            exact = self.images(who, "random", "exact")
            return Closeness(whole, psnr(self.images(who, "random"), exact))
        if who.own_boxes:
            return Closeness(whole, None)
        return Closeness(whole, psnr(self.images(who, "random"), self.references["random"]))


def measure(context: Context, short_side: int, who: list[Contender], reference: Contender) -> dict[str, Closeness]:
    corpus = context.corpus(short_side, CHECK_FILES)
    with tempfile.TemporaryDirectory() as folder:
        gallery = Gallery(context, corpus, reference, Path(folder))
        return {contender.title: gallery.closeness(contender) for contender in who}
