# SPDX-License-Identifier: BSD-2-Clause
"""A stage of pure Python that needs the processor: two threads over one, without and with a GIL."""

from functools import partial
from pathlib import Path

from bench import peers
from bench.context import Contender, Context, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.rows.python_flow import rates, whole
from bench.stats import estimate, paired_ratio
from bench.table import Row, least

TITLE = "A CPU-bound stage of pure Python"
WANTED = "3.14t"


def run(context: Context, who: Contender, site: Path, threads: int) -> Outcome:
    options = {"kind": "spin", "items": context.effort.spins, "concurrency": threads, "threads": threads}
    return context.stages(who.python, who.package, "flow.run", options, site)


def field_of(context: Context, row: Row) -> list[tuple[Contender, Path]]:
    """Who runs, and where its package lies."""
    found = [(Contender("stages_stoker", "Stoker, 3.11", context.pipelines[0].python), context.site)]
    free = context.free
    if free is None:
        row.notes.append("Skipped: free-threaded 3.14, which scripts/python-freethreaded builds.")
        return found
    if free.version != WANTED:
        row.notes.append(f"Skipped: free-threaded 3.14; this is {free.version}.")
    found.insert(0, (Contender("stages_stoker", f"Stoker, {free.version}", free.python), free.site))
    found.append((Contender("threads", f"Bare threads, {free.version}", free.python), free.site))
    core = peers.spdl_core()
    if isinstance(core, Path):
        found.append((Contender("stages_spdl", f"SPDL, {free.version}", free.python), core))
    else:
        row.notes.append(f"Not measured: SPDL, {free.version}: {core}")
    return found


def measure(context: Context) -> list[Row]:
    row = Row("py-free", TITLE, ["contender", "items/s, 1 thread", "2 threads", "2 over 1"])
    field = field_of(context, row)
    tasks = {
        f"{who.title}, {n} threads": partial(run, context, who, site, n) for who, site in field for n in (1, 2)
    }
    rivals = {name for name in tasks if not name.startswith("Stoker")}
    results = interleave(context.effort.rounds, able(tasks, rivals, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    for who, _ in field:
        if any(f"{who.title}, {n} threads" not in results for n in (1, 2)):
            continue
        one, two = (rates(results[f"{who.title}, {n} threads"]) for n in (1, 2))
        ratio = paired_ratio(two, one)
        row.lines.append([who.title, whole(estimate(one)), whole(estimate(two)), ratio.text(2)])
        if context.free and who.python == context.free.python and who.package == "stoker":
            what = f"2 threads over 1, {context.free.version}"
            row.targets.append(least(what, 1.9, ratio.median, ratio.text(2), " x"))
    return [row]
