# SPDX-License-Identifier: BSD-2-Clause
"""A training loop beside a loader: python -P bench/neighbour.py loader=... loop=matmul|python ...

The main thread runs a loop on the first processor; the loader's threads have the second; one
batch is asked for every `ask_s`, 200 ms unless told otherwise.  The loop's speed is measured before the loader exists, with
it, and after it is gone, so that the three come from one process and one stretch of time.
Time inside `next` is not time of the loop; it is reported on its own.
"""

import importlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

from bench.job import Job  # noqa: E402

CHUNK_S = 1e-3  # at most, and a fifth of the time between two batches
PRODUCT_S = 20e-6
WARM_UP_BATCHES = 3

Work = Callable[[], None]


def matmul_work(chunk_s: float) -> Work:
    """A chunk of matrix products of about 20 us, each of which lets the interpreter go."""
    best: tuple[float, Any] = (1e9, None)
    for side in range(32, 193, 8):
        a = np.ones((side, side), np.float32)
        c = np.empty_like(a)
        start = time.perf_counter()
        for _ in range(200):
            np.matmul(a, a, out=c)
        took = (time.perf_counter() - start) / 200
        best = min(best, (abs(took - PRODUCT_S), side), key=lambda pair: pair[0])
    a = np.ones((best[1], best[1]), np.float32)
    c = np.empty_like(a)
    times = round(chunk_s / PRODUCT_S)

    def chunk() -> None:
        for _ in range(times):
            np.matmul(a, a, out=c)

    return chunk


def python_work(chunk_s: float) -> Work:
    """A chunk of pure Python, about so long."""
    times = round(15e6 * chunk_s)

    def chunk() -> None:
        x = 1
        for _ in range(times):
            x = (x * 1103515245 + 12345) & 0x7FFFFFFF

    return chunk


def measure(
    work: Work, seconds: float, batches: Iterator[Any] | None, ask_s: float
) -> tuple[float, list[float]]:
    """Seconds a chunk, and the time of each `next`."""
    waits: list[float] = []
    busy, chunks = 0.0, 0
    start = time.perf_counter()
    ask_at = start + ask_s / 2
    before = start
    while before - start < seconds:
        work()
        after = time.perf_counter()
        busy += after - before
        chunks += 1
        if batches is not None and after >= ask_at:
            next(batches)
            ask_at += ask_s
            before = time.perf_counter()
            waits.append(before - after)
        else:
            before = after
    return busy / chunks, waits


def main() -> None:
    job = Job.from_argv()
    loop_cpu, loader_cpu = sorted(os.sched_getaffinity(0))[:2]
    loader = None if job.loader == "none" else importlib.import_module(f"bench.loaders.{job.loader}")
    os.sched_setaffinity(0, {loop_cpu})
    chunk_s = min(CHUNK_S, job.ask_s / 5)
    work = matmul_work(chunk_s) if job.loop == "matmul" else python_work(chunk_s)
    measure(work, 0.2, None, job.ask_s)

    before, _ = measure(work, job.seconds / 2, None, job.ask_s)
    batches: Iterator[Any] | None = None
    if loader:
        os.sched_setaffinity(0, {loader_cpu})  # threads and processes made from here inherit it
        batches = loader.batches(job)
        for _ in range(WARM_UP_BATCHES):
            next(batches)
        os.sched_setaffinity(0, {loop_cpu})
    during, waits = measure(work, job.seconds, batches, job.ask_s)
    if batches is not None:
        batches.close()  # type: ignore[attr-defined]
    after, _ = measure(work, job.seconds / 2, None, job.ask_s)

    result = {
        "chunk_before_s": before,
        "chunk_during_s": during,
        "chunk_after_s": after,
        "slowdown": during / ((before + after) / 2) - 1,
        "waits_s": waits,
    }
    print(json.dumps(result), flush=True)
    os._exit(0)  # some loaders wait for endless sources at exit


main()
