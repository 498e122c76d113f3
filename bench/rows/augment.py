# SPDX-License-Identifier: BSD-2-Clause
"""Pictures of 224 x 224 changed: CPU time an image of each op, beside torchvision and Pillow."""

import sys
from functools import partial
from pathlib import Path

from bench import peers
from bench.context import Contender, Context, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.stats import estimate, paired_ratio
from bench.table import Row, most

KINDS = ("brightness", "contrast", "saturation", "hue", "all four", "grayscale", "blur", "rotate", "erase")
PILLOW = Contender("pillow", "Pillow", sys.executable)
TORCHVISION = Contender("torchvision", "torchvision", sys.executable)
WITHOUT_PILLOW = ("all four", "erase")
ITEMS = 20_000  # a twentieth of them for the others, which are slower


def run(context: Context, who: Contender, kind: str, site: Path | None) -> Outcome:
    items = max(800, round(ITEMS * context.effort.python_items / 1_000_000))
    items = items if who.package == "stoker" else items // 20
    return context.stages(who.python, who.package, "augment.run", {"kind": kind, "items": items}, site)


def cost(outcomes: list[Outcome]) -> list[float]:
    return [o.result["cpu_s"] / o.result["items"] for o in outcomes]


def measure(context: Context) -> list[Row]:
    row = Row("augment", "Pictures of 224 x 224 changed, one thread", ["op", "CPU-ms an image", "images/s"])
    ours = context.pipelines[0]
    rivals, site = [PILLOW], peers.beside_torch(peers.TORCHVISION)
    if isinstance(site, str):
        row.notes.append(f"Not measured: torchvision: {site}")
    else:
        rivals.append(TORCHVISION)
    entries = {
        f"{kind}: {who.title}": (kind, who)
        for kind in KINDS
        for who in (ours, *rivals)
        if who is not PILLOW or kind not in WITHOUT_PILLOW
    }
    where = {TORCHVISION: site if isinstance(site, Path) else None}
    tasks = {name: partial(run, context, who, kind, where.get(who)) for name, (kind, who) in entries.items()}
    others = {name for name, (_, who) in entries.items() if who is not ours}
    results = interleave(context.effort.rounds, able(tasks, others, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    for name, outcomes in results.items():
        rate = estimate([o.result["items"] / o.result["seconds"] for o in outcomes])
        row.lines.append([name, estimate(cost(outcomes)).text(3, 1e3), rate.text(0)])
    for kind in KINDS:
        mine = results[f"{kind}: {ours.title}"]
        found = [cost(results[name]) for who in rivals if (name := f"{kind}: {who.title}") in results]
        if found:
            ratio = paired_ratio(cost(mine), min(found, key=lambda costs: estimate(costs).median))
            row.targets.append(most(f"{kind}: CPU time over the best of the others", 1, ratio.median, ratio.text(3), " x"))
    row.notes.append("Stoker's figures are of whole pipelines from arrays of Python to batches, with the op 20 times in each.")
    return [row]
