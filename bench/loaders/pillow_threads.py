# SPDX-License-Identifier: BSD-2-Clause
"""Bare Python threads with Pillow: a thread pool that fills the slots of a batch."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from PIL import Image

from bench.job import SIZE, Job, epoch_numbers, epoch_order, geometry, listing

AHEAD = 3  # batches in flight

Pending = tuple[Any, list[int], list["Future[None]"]]


def load(job: Job, path: str, index: int, epoch: int, slot: Any) -> None:
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    g = geometry(job, index, epoch, image.width, image.height)
    box = (g.x, g.y, g.x + g.width, g.y + g.height)
    image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)
    if g.flip:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    slot[:] = np.asarray(image)


def plan(job: Job, count: int) -> Iterator[tuple[int, list[int]]]:
    for epoch in epoch_numbers(job.epochs):
        order = epoch_order(count, epoch, job.shuffle)
        for at in range(0, count, job.batch):
            yield epoch, order[at : at + job.batch]


def finish(pending: Pending) -> tuple[Any, list[int]]:
    images, labels, futures = pending
    for future in futures:
        future.result()
    return images, labels


def batches(job: Job) -> Iterator[tuple[Any, list[int]]]:
    files = listing(job.root)
    window: deque[Pending] = deque()
    with ThreadPoolExecutor(job.threads) as pool:
        try:
            for epoch, ids in plan(job, len(files)):
                images = np.empty((len(ids), SIZE, SIZE, 3), np.uint8)
                futures = [
                    pool.submit(load, job, files[i][0], i, epoch, images[n])
                    for n, i in enumerate(ids)
                ]
                window.append((images, [files[i][1] for i in ids], futures))
                if len(window) > AHEAD:
                    yield finish(window.popleft())
            while window:
                yield finish(window.popleft())
        finally:
            pool.shutdown(cancel_futures=True)
