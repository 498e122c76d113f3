# SPDX-License-Identifier: BSD-2-Clause
"""What a pipeline costs besides its items: to begin and end, to exist, to be dropped."""

import gc
import os
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

from bench.works.flow import async_noop, noop
from bench.works.options import Options, Result, check

STEPS = 5
SETTLED_S = 0.25  # without a switch: everything waits
SETTLE_LIMIT_S = 10.0
FEW = 20  # items of a pipeline that is dropped half-way
TASKS = Path("/proc/self/task")


def build(o: Options, source: Any, stages: int, op: Any = noop) -> Any:
    builder = o.api().PipelineBuilder().add_source(source)
    for _ in range(stages):
        builder.pipe(op)
    return builder.add_sink(3).build(num_threads=o.threads)


def cycle(o: Options) -> Result:
    """Build, start, the first item, stop; `items` times."""
    times = []
    for number in range(o.items + 1):
        start = time.perf_counter()
        pipeline = build(o, range(1000), STEPS)
        with pipeline.auto_stop():
            first = next(iter(pipeline))
        times.append(time.perf_counter() - start)
        check(first == 0, f"pipeline {number} began with {first}")
        del pipeline
    return {"seconds": times[1:]}  # the first one imports


def others() -> list[Path]:
    """The threads besides this one, which alone works for the benchmark."""
    me = threading.get_native_id()
    return [task for task in TASKS.iterdir() if int(task.name) != me]


def told(file: Path) -> str:
    """What the kernel says of a thread; of one that has ended meanwhile, 0."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "0"


def switches() -> int:
    """How often the threads began to wait: each of it was a wake-up."""
    total = 0
    for task in others():
        for line in told(task / "status").splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                total += int(line.split()[1])
    return total


def busy_ns() -> int:
    """Time on a processor of the threads, to the nanosecond."""
    return sum(int(told(task / "schedstat").split()[0]) for task in others())


def settle() -> bool:
    """Waits until no thread wakes any more; False: they never cease to."""
    deadline = time.monotonic() + SETTLE_LIMIT_S
    before = -1
    while time.monotonic() < deadline:
        after = switches()
        if after == before:
            return True
        before = after
        time.sleep(SETTLED_S)  # check: allow sleep: whether nothing happens meanwhile
    return False


def idle(o: Options) -> Result:
    """A full sink that nobody reads for `seconds`; then what follows is still in order."""
    pipeline = build(o, count(), 3, async_noop if o.kind == "async" else noop)
    with pipeline.auto_stop():
        check(pipeline.get_item(timeout=10) == 0, "the first item")
        settled = settle()
        woken, busy, threads = switches(), busy_ns(), len(others())
        time.sleep(o.seconds)  # check: allow sleep: whether nothing happens meanwhile
        woken, busy = switches() - woken, busy_ns() - busy
        for number in range(1, 1000):
            check(pipeline.get_item(timeout=10) == number, f"item {number}")
    return {"settled": settled, "switches": woken, "cpu_s": busy / 1e9, "threads": threads}


def left_behind() -> dict[str, int]:
    settle()  # nobody has waited for the last threads
    rollup = Path("/proc/self/smaps_rollup").read_text()
    private = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
    return {
        "threads": len(list(TASKS.iterdir())),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "private_kib": private,
    }


def dropped(o: Options) -> Result:
    """`items` pipelines built, half consumed, dropped; what is there after a tenth, and at the end."""
    results = []
    for number in range(o.items):
        if number == o.items // 10:
            gc.collect()
            results.append(left_behind())
        pipeline = build(o, range(FEW), 3)
        iterator = iter(pipeline)
        for item in range(FEW // 2):
            check(next(iterator) == item, f"pipeline {number}: item {item}")
        del pipeline, iterator
    gc.collect()
    before, after = results[0], left_behind()
    return {"before": before, "after": after, "growth": {name: after[name] - before[name] for name in after}}
