#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Images of a folder, decoded by a function of Python: shape and mean of each batch.

    python image_folder.py FOLDER

Needs Pillow and NumPy.  train.py does the same with ops of the library, without Python in between.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from stoker.pipeline import PipelineBuilder


def decode(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((64, 64)))


def collate(images: list[np.ndarray]) -> np.ndarray:
    return np.stack(images)


def main(folder: str) -> None:
    paths = sorted(Path(folder).rglob("*.jpg"))
    pipeline = (
        PipelineBuilder()
        .add_source(paths)
        .pipe(decode, concurrency=4, output_order="input")
        .aggregate(4)
        .pipe(collate)
        .add_sink(3)
        .build(num_threads=4)
    )
    with pipeline.auto_stop():
        for batch in pipeline:
            print(batch.shape, batch.dtype, f"{batch.mean():.6f}")


if __name__ == "__main__":
    main(sys.argv[1])
