# SPDX-License-Identifier: BSD-2-Clause
"""Arrays from a worker process: python -P bench/placement.py arena=pool|ring|none arrays=N

Bytes a second over those of a plain copy between two arrays of the same size, measured before
and after in the same process.  The worker has one array and yields it again and again.
"""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

SIZE = 32 << 20
WARM_UP = 6  # until every page of the arena was touched


class Same:
    def __init__(self) -> None:
        self.array = np.ones(SIZE, np.uint8)

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self.array


def memcpy(count: int) -> float:
    source, target = np.ones(SIZE, np.uint8), np.ones(SIZE, np.uint8)  # both have their pages
    start = time.perf_counter()
    for _ in range(count):
        np.copyto(target, source)
    return (time.perf_counter() - start) / count


def arriving(kind: str, count: int) -> float:
    from stoker.pipeline import SharedMemoryRingBuffer, SharedMemorySegmentPool, iterate_in_subprocess

    arena: Any = {
        "pool": lambda: SharedMemorySegmentPool(SIZE, 4),
        "ring": lambda: SharedMemoryRingBuffer(4 * SIZE),
        "none": lambda: None,
    }[kind]()
    reader = iter(iterate_in_subprocess(Same, arena=arena, mp_context="spawn"))
    for _ in range(WARM_UP):
        array = next(reader)
    start = time.perf_counter()
    for _ in range(count):
        array = next(reader)
    seconds = (time.perf_counter() - start) / count
    assert array.shape == (SIZE,) and array[0] == array[-1] == 1
    return seconds


def main() -> None:
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    count = int(given["arrays"])
    before = memcpy(count)
    seconds = arriving(given["arena"], count)
    copy = (before + memcpy(count)) / 2
    print(json.dumps({"ratio": copy / seconds, "memcpy_s": copy, "array_s": seconds}), flush=True)


if __name__ == "__main__":
    main()
