# SPDX-License-Identifier: BSD-2-Clause
"""The main job out of tar shards, beside the same pictures in a folder."""

from functools import partial

from bench.context import STOKER, Contender, Context, Task, interleave, outcomes_json, save_raw, verify
from bench.corpus import shards
from bench.rows.throughput import work_per_image
from bench.stats import estimate, paired_ratio
from bench.table import Row, most

THREADS = 2
SHARDS = 4


def measure(context: Context) -> list[Row]:
    corpus = context.corpus(0)
    lane = next(c for c in context.contenders if c.loader == STOKER)
    sources = {
        "a folder": (lane, corpus.root),
        f"{SHARDS} tar shards": (Contender("stoker_shards", lane.title, lane.python), shards(corpus, SHARDS)),
    }
    row = Row("shards", f"Main job out of tar shards: {corpus.name}, {THREADS} threads",
              ["source", "CPU-ms/image", "images/s best", "median", "first batch ms"])  # fmt: skip
    tasks: dict[str, Task] = {
        name: partial(lambda who, root: verify(context.load(who, root, threads=THREADS), corpus), who, root)
        for name, (who, root) in sources.items()
    }
    results = interleave(context.effort.rounds, tasks, row.name)
    save_raw(row.name, outcomes_json(results))
    for name, outcomes in results.items():
        rates = [corpus.count / o.result["loop_s"] for o in outcomes]
        first = estimate([o.result["first_s"] for o in outcomes]).median * 1e3
        row.lines.append([name, estimate(work_per_image(corpus, outcomes)).text(3, 1e3),
                          f"{max(rates):,.0f}", f"{estimate(rates).median:,.0f}", f"{first:.0f}"])  # fmt: skip
    folder, tar = (work_per_image(corpus, outcomes) for outcomes in results.values())
    ratio = paired_ratio(tar, folder)
    row.targets.append(most("CPU time over the folder", 1.05, ratio.median, ratio.text(3), " x"))
    return [row]
