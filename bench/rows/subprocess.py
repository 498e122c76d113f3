# SPDX-License-Identifier: BSD-2-Clause
"""Arrays of 32 MiB from a worker process, by each way there is."""

from functools import partial

from bench.context import Context, able, interleave, outcomes_json, save_raw
from bench.stats import estimate
from bench.table import Row, Target

WAYS = {"pool": "SharedMemorySegmentPool", "ring": "SharedMemoryRingBuffer", "none": "the pipe alone"}
ARRAYS = 40
WANTED = 0.7  # one copy, and what the other side does with the memory bus meanwhile


def measure(context: Context) -> list[Row]:
    row = Row("subprocess", "32 MiB arrays from a worker process", ["way", "x memcpy", "GiB/s"])
    entries = {
        f"{who.title}: {title}": (who, way)
        for who in context.pipelines
        for way, title in WAYS.items()
        if way == "pool" or who.package == "stoker"
    }
    tasks = {
        name: partial(context.script, "placement.py", who.python, package=who.package, arena=way, arrays=ARRAYS)
        for name, (who, way) in entries.items()
    }
    rivals = {name for name, (who, _) in entries.items() if who.package != "stoker"}
    results = interleave(context.effort.rounds, able(tasks, rivals, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    for name, outcomes in results.items():
        who, way = entries[name]
        ratio = estimate([o.result["ratio"] for o in outcomes])
        rate = estimate([1 / 32 / o.result["array_s"] for o in outcomes])
        row.lines.append([name, ratio.text(2), rate.text(2)])
        if way == "pool" and who.package == "stoker":
            row.targets.append(
                Target("bytes/s over memcpy's, pool", f">= {WANTED:g} x", ratio.text(2), ratio.median >= WANTED)
            )
    return [row]
