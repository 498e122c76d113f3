# SPDX-License-Identifier: BSD-2-Clause
"""Items a second through stages of Python, beside SPDL with the same script, and bare threads."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from bench.context import Contender, Context, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.stats import Estimate, estimate, paired_ratio
from bench.table import Row, Target, least

HEADER = ["contender", "items", "items/s", "best", "CPU-us/item"]
SPDL_SHARE = 0.003  # of the items: it takes so much longer for each, and needs no more for the same figure
ASYNC_SHARE, HOOKS_SHARE, COLLATE_SHARE, QUEUE_SHARE = 0.2, 0.05, 0.2, 0.2
SLEEPERS, SLEEP_RATE = 16, 1600  # of 10 ms each
BARE = "Threads that only sleep"


@dataclass(frozen=True)
class Entry:
    """One line of a table: who runs how many items of what."""

    name: str
    who: Contender
    items: int
    options: Mapping[str, object]
    package: str = ""  # "": the contender's


def run(context: Context, e: Entry) -> Outcome:
    return context.stages(e.who.python, e.package or e.who.package, "flow.run", {"items": e.items, **e.options})


def compete(context: Context, row: Row, entries: list[Entry]) -> dict[str, list[Outcome]]:
    """Rounds of all, as lines of the table."""
    tasks = {e.name: partial(run, context, e) for e in entries}
    rivals = {e.name for e in entries if e.who.package != "stoker"}
    results = interleave(context.effort.rounds, able(tasks, rivals, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    for e in entries:
        if e.name in results:
            row.lines.append([e.name, f"{e.items:,}", *figures(results[e.name])])
    return results


def rates(outcomes: list[Outcome]) -> list[float]:
    return [o.result["items"] / o.result["seconds"] for o in outcomes]


def whole(value: Estimate) -> str:
    return f"{value.median:,.0f} [{value.low:,.0f}, {value.high:,.0f}]"


def figures(outcomes: list[Outcome]) -> list[str]:
    costs = estimate([o.result["cpu_s"] / o.result["items"] for o in outcomes])
    values = rates(outcomes)
    return [whole(estimate(values)), f"{max(values):,.0f}", costs.text(2, 1e6)]


def rate_target(what: str, limit: float, outcomes: list[Outcome]) -> Target:
    rate = estimate(rates(outcomes))
    return least(what, limit, rate.median, whole(rate))


def add_times_spdl(row: Row, results: dict[str, list[Outcome]], limit: float, ours: str, spdl: str) -> None:
    """Round by round, by items a second."""
    if spdl not in results:
        row.notes.append(f"No SPDL to compare with: {spdl}.")
        return
    ratio = paired_ratio(rates(results[ours]), rates(results[spdl]))
    row.targets.append(least(f"{ours}, over SPDL", limit, ratio.median, ratio.text(1), " x"))


def of_all(context: Context, label: str, share: float, **options: object) -> list[Entry]:
    """Ours with that share of the items, SPDL with its own."""
    entries = []
    for who in context.pipelines:
        part = share if who.package == "stoker" else min(share, SPDL_SHARE)
        name = f"{who.title}{label}"
        entries.append(Entry(name, who, max(1, round(context.effort.python_items * part)), options))
    return entries


def measure_noop(context: Context) -> list[Row]:
    row = Row("py-noop", "Three Python stages that do nothing", HEADER)
    four = {"kind": "noop", "concurrency": 4, "threads": 4}
    entries = [
        *of_all(context, ", concurrency 1", 1, kind="noop"),
        *of_all(context, ", concurrency 4", 1, **four, order="completion"),
        *of_all(context, ", concurrency 4, input order", 1, **four, order="input"),
    ]
    whose, items = context.pipelines[0], context.effort.python_items
    entries += [
        Entry("Threads and queue.Queue", whose, round(items * QUEUE_SHARE), {"kind": "queue"}, "threads"),
        Entry("Threads and queue.SimpleQueue", whose, items, {"kind": "simple"}, "threads"),
    ]
    results = compete(context, row, entries)
    one = "Stoker, concurrency 1"
    row.targets.append(rate_target("items/s, concurrency 1", 1_000_000, results[one]))
    add_times_spdl(row, results, 200, one, "SPDL, concurrency 1")
    for order in ("", ", input order"):
        row.targets.append(
            rate_target(f"items/s, concurrency 4{order}", 500_000, results[f"Stoker, concurrency 4{order}"])
        )
    return [row]


def measure_async(context: Context) -> list[Row]:
    row = Row("py-async", "Three async stages that do nothing", HEADER)
    results = compete(context, row, of_all(context, "", ASYNC_SHARE, kind="async"))
    row.targets.append(rate_target("items/s", 100_000, results["Stoker"]))
    add_times_spdl(row, results, 10, "Stoker", "SPDL")
    return [row]


def measure_hooks(context: Context) -> list[Row]:
    row = Row("py-hooks", "Three Python stages with a hook and a queue class that do nothing", HEADER)
    results = compete(context, row, of_all(context, "", HOOKS_SHARE, kind="hooks"))
    add_times_spdl(row, results, 1.5, "Stoker", "SPDL")
    return [row]


def measure_collate(context: Context) -> list[Row]:
    row = Row("py-collate", "Arrays of 1 kB, aggregate(32) and numpy.stack", HEADER)
    results = compete(context, row, of_all(context, "", COLLATE_SHARE, kind="collate"))
    add_times_spdl(row, results, 5, "Stoker", "SPDL")
    return [row]


def measure_sleep(context: Context) -> list[Row]:
    row = Row("py-sleep", f"A stage that sleeps for 10 ms, concurrency {SLEEPERS}", HEADER)
    options = {"kind": "sleep", "concurrency": SLEEPERS, "threads": SLEEPERS}
    entries = [Entry(who.title, who, context.effort.sleeps, options) for who in context.pipelines]
    entries.append(Entry(BARE, context.pipelines[0], context.effort.sleeps, options, "threads"))
    results = compete(context, row, entries)
    part = estimate([rate / SLEEP_RATE for rate in rates(results["Stoker"])])
    row.targets.append(least(f"of {SLEEP_RATE} items/s", 0.98, part.median, part.text(3)))
    limit = paired_ratio(rates(results["Stoker"]), rates(results[BARE]))
    row.notes.append(f"Over threads that only sleep, which is what this machine lets through: {limit.text(3)}.")
    return [row]
