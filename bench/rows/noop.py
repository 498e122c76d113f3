# SPDX-License-Identifier: BSD-2-Clause
"""Three native stages that do nothing, and an idle run."""

from functools import partial

from bench.context import Context, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.stats import estimate
from bench.table import Row, Target, least

HEADER = ["threads", "million items/s", "best", "CPU-ns/item"]
IDLE_CPU_S = 0.001  # one tick of accounting noise; an idle run must stay below


def run(context: Context, threads: int, idle_s: int) -> Outcome:
    return context.program("noop", context.effort.noop_items, threads, idle_s)


def measure(context: Context) -> list[Row]:
    row = Row("noop", "Three stages that do nothing", HEADER)
    tasks = {str(threads): partial(run, context, threads, 0) for threads in (1, 2)}
    results = interleave(context.effort.rounds, tasks, row.name)
    idle = run(context, 2, context.effort.idle_s)
    save_raw(row.name, outcomes_json({**results, "idle": [idle]}))
    for name, outcomes in results.items():
        rates = [o.result["items"] / o.result["seconds"] for o in outcomes]
        costs = [o.result["cpu_s"] / o.result["items"] for o in outcomes]
        row.lines.append(
            [name, estimate(rates).text(2, 1e-6), f"{max(rates) / 1e6:.2f}", estimate(costs).text(0, 1e9)]
        )
        if name == "2":
            rate = estimate(rates)
            row.targets.append(least("items/s, 2 threads", 2_000_000, rate.median, rate.text(2, 1e-6) + " million"))
    seconds, cpu = idle.result["idle_seconds"], idle.result["idle_cpu_s"]
    row.targets.append(
        Target(f"CPU time of an idle run in {seconds} s", "none (< 1 ms)", f"{cpu * 1e3:.3f} ms", cpu < IDLE_CPU_S)
    )
    return [row]
