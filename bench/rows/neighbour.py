# SPDX-License-Identifier: BSD-2-Clause
"""A training loop on one processor, the loader on the other."""

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.context import PYTHON_STAGES, STOKER, Contender, Context, interleave, outcomes_json, save_raw
from bench.proc import Failed, Outcome
from bench.stats import Estimate, estimate
from bench.table import Row, most

LOOPS = {"matmul": "20 us matrix products", "python": "pure Python"}


@dataclass(frozen=True)
class Scene:
    """What the loop runs beside, and what is asked of it."""

    name: str
    title: str
    field: list[Contender]
    root: Path | str  # of the images, where they are loaded
    ask_s: float
    slower: float  # per cent, at most
    wait_ms: float  # the longest next() of a run
    judged: tuple[str, ...]  # loops of which `wait_ms` is asked


def run(context: Context, scene: Scene, who: Contender, loop: str) -> Outcome:
    done = context.script(
        "neighbour.py", who.python, loader=who.loader, root=scene.root, loop=loop, epochs=-1, threads=1,
        seconds=context.effort.loop_s, ask_s=scene.ask_s,
    )  # fmt: skip
    if who.loader != "none" and not done.result["waits_s"]:
        raise Failed(f"{who.title}: no batch was asked for")
    return done


def longest_wait(outcomes: list[Outcome]) -> Estimate:
    return estimate([max(o.result["waits_s"]) for o in outcomes])


def measure_loop(context: Context, scene: Scene, loop: str) -> Row:
    row = Row(f"{scene.name}-{loop}", f"{scene.title}: a loop of {LOOPS[loop]}",
              ["contender", "loop slowed by %", "ms in next(), median", "longest of a run"])  # fmt: skip
    nobody = Contender("none", "no loader (what the machine itself varies)", sys.executable)
    field = [nobody, *scene.field]
    tasks = {c.title: partial(run, context, scene, c, loop) for c in field}
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
        if who.loader not in (STOKER, PYTHON_STAGES):
            continue
        row.targets.append(most("loop slowed by", scene.slower, slow.median, slow.text(2), " %"))
        if loop in scene.judged:
            row.targets.append(
                most("longest next() of a run", scene.wait_ms, longest.median * 1e3, longest.text(2, 1e3), " ms")
            )
    return row


def measure_loops(context: Context, scene: Scene) -> list[Row]:
    if len(os.sched_getaffinity(0)) < 2:
        return [Row(scene.name, scene.title, notes=["Skipped: it needs two processors."])]
    return [measure_loop(context, scene, loop) for loop in LOOPS]


def measure(context: Context) -> list[Row]:
    root = context.corpus(0).root
    apart = Contender("stoker_apart", "Stoker in another process (what two processors share)", sys.executable)
    field = [apart, *context.contenders]
    scene = Scene("neighbour", "Noisy neighbour", field, root, 0.2, 2, 1, ("python",))
    return measure_loops(context, scene)


def measure_python(context: Context) -> list[Row]:
    """Small items through stages of Python, 1,000 a second; next() may take one switch interval."""
    scene = Scene("py-beside", "Beside 1,000 items/s through Python stages", context.pipelines, "", 1e-3, 5, 6, tuple(LOOPS))
    return measure_loops(context, scene)
