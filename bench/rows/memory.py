# SPDX-License-Identifier: BSD-2-Clause
"""Peak memory of the whole process tree, after one epoch and after many."""

from functools import partial

from bench.context import STOKER, Contender, Context, Task, interleave, outcomes_json, save_raw, verify
from bench.corpus import Corpus
from bench.proc import Outcome
from bench.stats import estimate
from bench.table import Row, Target, most

ROUNDS = 3
SLACK = 0.05  # "the same"


def run(context: Context, corpus: Corpus, who: Contender, epochs: int) -> Outcome:
    done = context.load(who, corpus.root, epochs=epochs, numpy=1, pss=True)
    return verify(done, corpus, epochs)


def measure(context: Context) -> list[Row]:
    corpus, many = context.corpus(0), context.effort.epochs
    row = Row("memory", "Peak PSS of the process tree, 2 threads, batch 64, NumPy imported",
              ["contender", "MiB, 1 epoch", f"MiB, {many} epochs"])  # fmt: skip
    tasks: dict[str, Task] = {}
    for who in context.contenders:
        tasks[f"{who.title} 1"] = partial(run, context, corpus, who, 1)
        if who.loader == STOKER:
            tasks[f"{who.title} {many}"] = partial(run, context, corpus, who, many)
    results = interleave(ROUNDS, tasks, row.name)
    save_raw(row.name, outcomes_json(results))
    for who in context.contenders:
        once = estimate([o.peak_pss_kib / 1024 for o in results[f"{who.title} 1"]])
        row.lines.append([who.title, once.text(0), "-"])
        if who.loader != STOKER:
            continue
        often = estimate([o.peak_pss_kib / 1024 for o in results[f"{who.title} {many}"]])
        row.lines[-1][2] = often.text(0)
        worst = max(once.high, often.high)
        row.targets.append(most("peak PSS", 120, worst, f"{worst:.1f} MiB", " MiB"))
        growth = often.median / once.median - 1
        row.targets.append(
            Target(f"{many} epochs over 1", f"the same (within {SLACK * 100:.0f} %)",
                   f"{growth * 100:+.1f} %", growth <= SLACK)  # fmt: skip
        )
    return [row]
