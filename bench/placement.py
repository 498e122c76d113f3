# SPDX-License-Identifier: BSD-2-Clause
"""Arrays from a worker process: python -P bench/placement.py package=P arena=pool|ring|none arrays=N

Bytes a second over those of a plain copy between two arrays of the same size, measured before
and after in the same process.  The worker has one array and yields it again and again, each time
with the next number at both ends.
"""

import importlib
import json
import sys
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

SIZE = 32 << 20
SEGMENT = SIZE + (1 << 20)  # what SPDL puts beside an array is not documented
WARM_UP = 6  # until every page of the arena was touched


class Same:
    def __init__(self) -> None:
        self.array = np.ones(SIZE, np.uint8)

    def __iter__(self) -> Iterator[Any]:
        for number in count():
            self.array[0] = self.array[-1] = number % 256
            yield self.array


def memcpy(arrays: int) -> float:
    source, target = np.ones(SIZE, np.uint8), np.ones(SIZE, np.uint8)  # both have their pages
    start = time.perf_counter()
    for _ in range(arrays):
        np.copyto(target, source)
    return (time.perf_counter() - start) / arrays


def arriving(package: str, kind: str, arrays: int) -> float:
    api = importlib.import_module(f"{package}.pipeline")
    arena: Any = {
        "pool": lambda: api.SharedMemorySegmentPool(SEGMENT, 4),
        "ring": lambda: api.SharedMemoryRingBuffer(4 * SIZE),
        "none": lambda: None,
    }[kind]()
    start = time.perf_counter()
    iterable = api.iterate_in_subprocess(Same, arena=arena, mp_context="spawn")
    for number, array in enumerate(islice(iterable, WARM_UP + arrays)):
        if array.shape != (SIZE,) or not array[0] == array[-1] == number % 256:
            raise SystemExit(f"array {number} is another")
        del array  # SPDL's pool does not end well while a view lives
        if number + 1 == WARM_UP:
            start = time.perf_counter()
    return (time.perf_counter() - start) / arrays


def main() -> None:
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    arrays = int(given["arrays"])
    before = memcpy(arrays)
    seconds = arriving(given["package"], given["arena"], arrays)
    copy = (before + memcpy(arrays)) / 2
    print(json.dumps({"ratio": copy / seconds, "memcpy_s": copy, "array_s": seconds}), flush=True)


if __name__ == "__main__":
    main()
