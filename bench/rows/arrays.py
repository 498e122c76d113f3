# SPDX-License-Identifier: BSD-2-Clause
"""Arrays out of NumPy's files and archives in memory, beside SPDL and NumPy."""

import sys
from functools import partial

from bench.context import Contender, Context, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.stats import estimate, paired_ratio
from bench.table import Row, least

HEADER = ["contender", "threads", "GB/s", "best", "us a file", "CPU-us a file"]
NUMPY = Contender("numpy", "NumPy", sys.executable)
# Of each kind: what it is called, and for how many files a thread there is time in half a second.
KINDS = {"npy": ("npy", 100_000), "stored": ("npz, stored", 500), "deflated": ("npz, deflated", 60)}
THREADS = (1, 2)
SLOW = 0.02  # of the files, for who copies an npy


def files_of(context: Context, who: Contender, kind: str) -> int:
    share = context.effort.python_items / 1_000_000
    if kind == "npy" and who is NUMPY:
        share *= SLOW
    return max(3, round(KINDS[kind][1] * share))


def run(context: Context, who: Contender, kind: str, threads: int) -> Outcome:
    options = {"kind": kind, "threads": threads, "items": files_of(context, who, kind)}
    return context.stages(who.python, who.package, "arrays.load", options)


def rates(outcomes: list[Outcome]) -> list[float]:
    return [o.result["bytes"] / o.result["seconds"] for o in outcomes]


def line(title: str, threads: int, outcomes: list[Outcome]) -> list[str]:
    took = estimate([o.result["seconds"] / o.result["items"] for o in outcomes])
    cost = estimate([o.result["cpu_s"] / o.result["items"] for o in outcomes])
    speed = rates(outcomes)
    return [title, f"{threads}", estimate(speed).text(2, 1e-9), f"{max(speed) / 1e9:.2f}", took.text(1, 1e6), cost.text(1, 1e6)]


def measure(context: Context) -> list[Row]:
    row = Row("npz", "NumPy's files and archives in memory, 4 MB", HEADER)
    everyone = [*context.pipelines, NUMPY]
    entries = {
        f"{KINDS[kind][0]}: {who.title}, {threads}": (kind, who, threads)
        for kind in KINDS
        for threads in THREADS
        for who in everyone
    }
    tasks = {name: partial(run, context, who, kind, threads) for name, (kind, who, threads) in entries.items()}
    rivals = {name for name, (_, who, _) in entries.items() if who.package != "stoker"}
    results = interleave(context.effort.rounds, able(tasks, rivals, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    for name, outcomes in results.items():
        kind, who, threads = entries[name]
        row.lines.append(line(f"{KINDS[kind][0]}: {who.title}", threads, outcomes))
    for kind, (title, _) in KINDS.items():
        for threads in THREADS:
            ours, spdl = (results.get(f"{title}: {who}, {threads}") for who in ("Stoker", "SPDL"))
            if ours and spdl:
                ratio = paired_ratio(rates(ours), rates(spdl))
                what = f"{title}, {threads} thread{'s' if threads > 1 else ''}: bytes/s, over SPDL"
                row.targets.append(least(what, 1, ratio.median, ratio.text(2), " x"))
            else:
                row.notes.append(f"No SPDL to compare with: {title}, {threads}.")
    return [row]
