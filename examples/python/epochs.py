#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several epochs of one pipeline, whose threads and queues live on: each `for` is one epoch."""

import random
from collections.abc import Iterator

from stoker.pipeline import PipelineBuilder


class Shuffled:
    """Numbers in another order each time they are iterated."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.epoch = 0

    def __iter__(self) -> Iterator[int]:
        order = list(range(self.size))
        random.Random(self.epoch).shuffle(order)
        self.epoch += 1
        return iter(order)


def square(x: int) -> int:
    return x * x


def main() -> None:
    pipeline = (
        PipelineBuilder()
        .add_source(Shuffled(10), continuous=True)
        .pipe(square)
        .aggregate(4)
        .add_sink(3)
        .build(num_threads=1)
    )
    with pipeline.auto_stop():
        for epoch in range(3):
            for batch in pipeline:
                print(epoch, batch)


if __name__ == "__main__":
    main()
