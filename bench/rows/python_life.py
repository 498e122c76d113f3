# SPDX-License-Identifier: BSD-2-Clause
"""What pipelines of Python stages cost besides their items, beside SPDL with the same script."""

from functools import partial
from statistics import median
from typing import Any

from bench.context import Contender, Context, Task, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.stats import estimate
from bench.table import Row, Target, most

ROUNDS = 3  # of rows whose figures hardly vary
SPDL_CYCLES, SPDL_DROPPED = 0.1, 0.02  # of ours: each takes it much longer
IDLE_CPU_S = 0.001  # as in the row noop
GROWTH_KIB = 512  # of memory: nine in ten of the pipelines may not leave more, which is 58 bytes each


def run(context: Context, who: Contender, work: str, **options: object) -> Outcome:
    return context.stages(who.python, who.package, work, options)


def rounds_of(context: Context, row: Row, rounds: int, tasks: dict[Contender, Task]) -> dict[str, list[Outcome]]:
    named = {who.title: task for who, task in tasks.items()}
    rivals = {who.title for who in tasks if who.package != "stoker"}
    results = interleave(min(rounds, context.effort.rounds), able(named, rivals, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    return results


def measure_cycle(context: Context) -> list[Row]:
    row = Row("py-cycle", "Build, start, first item and stop of five Python stages",
              ["contender", "ms, median of a run", "slowest tenth"])  # fmt: skip
    tasks: dict[Contender, Task] = {}
    for who in context.pipelines:
        share = 1 if who.package == "stoker" else SPDL_CYCLES
        tasks[who] = partial(run, context, who, "life.cycle", items=max(3, round(context.effort.cycles * share)))
    results = rounds_of(context, row, context.effort.rounds, tasks)
    for title, done in results.items():
        typical = estimate([median(o.result["seconds"]) for o in done])
        slow = estimate([sorted(o.result["seconds"])[int(len(o.result["seconds"]) * 0.9)] for o in done])
        row.lines.append([title, typical.text(2, 1e3), slow.text(2, 1e3)])
        if title == "Stoker":
            row.targets.append(most("median of a run", 3, typical.median * 1e3, typical.text(2, 1e3), " ms"))
    return [row]


def measure_idle(context: Context) -> list[Row]:
    row = Row("py-idle", f"Full sink, nobody reads for {context.effort.idle_s} s",
              ["contender", "threads", "CPU-ms", "wake-ups"])  # fmt: skip
    for kind in ("sync", "async"):
        part = Row(f"{row.name}-{kind}", "")
        tasks: dict[Contender, Task] = {
            who: partial(run, context, who, "life.idle", kind=kind, seconds=context.effort.idle_s)
            for who in context.pipelines
        }
        results = rounds_of(context, part, ROUNDS, tasks)
        row.notes += part.notes
        for title, done in results.items():
            cpu = max(o.result["cpu_s"] for o in done)
            woken = max(o.result["switches"] for o in done)
            row.lines.append([f"{title}, {kind} stages", f"{done[0].result['threads']}", f"{cpu * 1e3:.3f}", f"{woken}"])
            if title == "Stoker":
                row.targets.append(Target(f"CPU time, {kind} stages", "none", f"{cpu * 1e3:.3f} ms", cpu < IDLE_CPU_S))
                row.targets.append(Target(f"wake-ups, {kind} stages", "none", f"{woken}", woken == 0))
    return [row]


def measure_dropped(context: Context) -> list[Row]:
    count = context.effort.dropped
    row = Row("py-dropped", f"{count:,} pipelines built, half consumed, dropped",
              ["contender", "pipelines", "threads left", "descriptors left", "KiB left"])  # fmt: skip
    counts = {who: count if who.package == "stoker" else max(10, round(count * SPDL_DROPPED)) for who in context.pipelines}
    tasks: dict[Contender, Task] = {
        who: partial(run, context, who, "life.dropped", items=items) for who, items in counts.items()
    }
    results = rounds_of(context, row, 1, tasks)
    for who, items in counts.items():
        for done in results.get(who.title, []):
            left: dict[str, Any] = done.result["growth"]
            row.lines.append([who.title, f"{items:,}", *(f"{left[k]:+}" for k in ("threads", "descriptors", "private_kib"))])
            if who.package == "stoker":
                row.targets += [
                    Target(f"{name} left", "none", f"{left[name]}", left[name] <= 0) for name in ("threads", "descriptors")
                ]
                kib = left["private_kib"]
                row.targets.append(most("memory left", GROWTH_KIB, kib, f"{kib} KiB", " KiB"))
    row.notes.append("Growth from a tenth of the pipelines on, in private memory.")
    return [row]
