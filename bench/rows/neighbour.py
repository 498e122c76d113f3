# SPDX-License-Identifier: BSD-2-Clause
"""A training loop on one processor, the loader on the other, one batch asked per 200 ms."""

import os
from functools import partial

from bench.context import STOKER, Contender, Context, interleave, outcomes_json, save_raw
from bench.proc import Failed, Outcome
from bench.stats import Estimate, estimate
from bench.table import Row, most

LOOPS = {"matmul": "20 us matrix products", "python": "pure Python"}


def run(context: Context, who: Contender, loop: str) -> Outcome:
    root = context.corpus(0).root
    done = context.script(
        "neighbour.py", who.python, loader=who.loader, root=root, loop=loop, epochs=-1, threads=1,
        seconds=context.effort.loop_s,
    )  # fmt: skip
    if who.loader != "none" and not done.result["waits_s"]:
        raise Failed(f"{who.title}: no batch was asked for")
    return done


def longest_wait(outcomes: list[Outcome]) -> Estimate:
    return estimate([max(o.result["waits_s"]) for o in outcomes])


def measure_loop(context: Context, loop: str) -> Row:
    row = Row(f"neighbour-{loop}", f"Noisy neighbour: a loop of {LOOPS[loop]}",
              ["contender", "loop slowed by %", "ms in next(), median", "longest of a run"])  # fmt: skip
    python = context.contenders[0].python
    field = [Contender("none", "no loader (what the machine itself varies)", python), *context.contenders]
    tasks = {c.title: partial(run, context, c, loop) for c in field}
    results = interleave(context.effort.rounds, tasks, row.name)
    save_raw(row.name, outcomes_json(results))
    for who in field:
        done = results[who.title]
        slow = estimate([o.result["slowdown"] * 100 for o in done])
        row.lines.append([who.title, slow.text(1), "-", "-"])
        if who.loader == "none":
            continue
        longest = longest_wait(done)
        typical = estimate([estimate(o.result["waits_s"]).median for o in done])
        row.lines[-1][2:] = [typical.text(2, 1e3), longest.text(2, 1e3)]
        if who.loader == STOKER:
            row.targets.append(most("loop slowed by", 2, slow.median, slow.text(2), " %"))
        if who.loader == STOKER and loop == "python":
            row.targets.append(most("longest next() of a run", 1, longest.median * 1e3, longest.text(2, 1e3), " ms"))
    return row


def measure(context: Context) -> list[Row]:
    if len(os.sched_getaffinity(0)) < 2:
        return [Row("neighbour", "Noisy neighbour", notes=["Skipped: it needs two processors."])]
    return [measure_loop(context, loop) for loop in LOOPS]
