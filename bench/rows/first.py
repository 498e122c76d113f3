# SPDX-License-Identifier: BSD-2-Clause
"""How long until the first batch."""

from functools import partial
from pathlib import Path

from bench.context import STOKER, Contender, Context, interleave, outcomes_json, save_raw
from bench.corpus import ManyNames
from bench.proc import Failed, Outcome, run
from bench.stats import Estimate, estimate, paired_ratio
from bench.table import Row, Target, most

SLACK = 0.10  # "equal"


def first(context: Context, who: Contender, root: Path, batch: int = 64, **options: int) -> Outcome:
    done = context.load(who, root, pss=False, limit=1, batch=batch, **options)
    if done.result["images"] != batch:
        raise Failed(f"{who.title}: first batch of {done.result['images']}, not {batch}")
    return done


def after_import(outcomes: list[Outcome]) -> Estimate:
    return estimate([o.result["first_s"] for o in outcomes])


def measure_contenders(context: Context) -> Row:
    corpus = context.corpus(0)
    row = Row("first", f"First batch of {corpus.count} files, 2 threads, batch 64",
              ["contender", "ms after import", "ms after process start"])  # fmt: skip
    tasks = {c.title: partial(first, context, c, corpus.root) for c in context.contenders}
    results = interleave(context.effort.rounds, tasks, row.name)
    save_raw(row.name, outcomes_json(results))
    for who in context.contenders:
        done = results[who.title]
        loaded, started = after_import(done), estimate([o.result["first_from_start_s"] for o in done])
        row.lines.append([who.title, loaded.text(0, 1e3), started.text(0, 1e3)])
        if who.loader == STOKER:
            row.targets.append(most("after import", 50, loaded.median * 1e3, loaded.text(1, 1e3), " ms"))
            row.targets.append(most("after process start", 200, started.median * 1e3, started.text(1, 1e3), " ms"))
    return row


def measure_import(context: Context, row: Row, ours: Contender) -> None:
    """The package, and all that the main job uses of it, over an interpreter that does nothing."""
    command = [ours.python, "-P", "-c"]
    whole = "from stoker import PipelineBuilder, ops, source"
    codes = ("pass", "import stoker", whole)
    tasks = {code: partial(run, [*command, code], context.env()) for code in codes}
    results = interleave(context.effort.import_rounds, tasks, "import")
    save_raw("import", outcomes_json(results))
    for code in codes[1:]:
        pairs = zip(results["pass"], results[code], strict=True)
        extra = estimate([loaded.wall_s - bare.wall_s for bare, loaded in pairs])
        row.targets.append(most(f"`{code}` over bare Python", 40, extra.median * 1e3, extra.text(1, 1e3), " ms"))


def spread(results: dict[str, list[Outcome]]) -> float:
    """The slowest median over the fastest, less 1."""
    medians = [after_import(outcomes).median for outcomes in results.values()]
    return max(medians) / min(medians) - 1


def equal(what: str, value: float, text: str) -> Target:
    return Target(what, f"within {SLACK * 100:.0f} %", text, value <= SLACK)


def measure_threads(context: Context, ours: Contender) -> Row:
    root = context.corpus(0).root
    row = Row("first-threads", "First batch with more threads", ["", "1 thread", "8 threads", "64 threads"])
    for batch in (1, 64):
        tasks = {str(t): partial(first, context, ours, root, batch, threads=t) for t in (1, 8, 64)}
        results = interleave(context.effort.rounds, tasks, f"{row.name}, batch {batch}")
        save_raw(f"{row.name}-{batch}", outcomes_json(results))
        row.lines.append([f"batch {batch}, ms after import", *(after_import(o).text(1, 1e3) for o in results.values())])
        if batch == 1:
            value = spread(results)
            row.targets.append(equal("1, 8 and 64 threads, batch 1", value, f"{value * 100:.1f} % apart"))
        else:
            del results["1"]
            value = spread(results)
            row.targets.append(equal("8 and 64 threads, batch 64", value, f"{value * 100:.1f} % apart"))
    row.notes.append("A batch of 64 is decoded by as many threads as there are processors, so only the batch of "
                     "one tells what starting costs with one thread.")  # fmt: skip
    return row


def measure_names(context: Context, ours: Contender) -> Row:
    corpus, many = context.corpus(0), context.effort.names
    row = Row("first-names", f"First batch of {many:,} names, unshuffled, 2 threads, batch 64",
              ["names", "ms after import"])  # fmt: skip
    with ManyNames(corpus, many) as large, FewNames(corpus.count, large) as few:
        tasks = {
            f"{corpus.count:,}": partial(first, context, ours, few, shuffle=0),
            f"{many:,}": partial(first, context, ours, large, shuffle=0),
        }
        results = interleave(context.effort.rounds, tasks, row.name)
    save_raw(row.name, outcomes_json(results))
    names = list(results)
    row.lines += [[name, after_import(results[name]).text(1, 1e3)] for name in names]
    ratio = paired_ratio(*([o.result["first_s"] for o in results[name]] for name in reversed(names)))
    row.targets.append(equal(f"{names[1]} names over {names[0]}", abs(ratio.median - 1), ratio.text(3) + " x"))
    return row


class FewNames:
    """The first names of a large tree once more: the same files on the same file system."""

    def __init__(self, count: int, large: Path) -> None:
        self.count, self.large = count, large
        self.root = large.parent / "few"

    def __enter__(self) -> Path:
        left = self.count
        for folder in sorted(self.large.iterdir()):
            (self.root / folder.name).mkdir(parents=True)
            for name in sorted(folder.iterdir())[:left]:
                (self.root / folder.name / name.name).hardlink_to(name)
                left -= 1
            if left == 0:
                break
        return self.root

    def __exit__(self, *_: object) -> None:
        """ManyNames removes the tree that this lies in."""


def measure(context: Context) -> list[Row]:
    rows = [measure_contenders(context)]
    ours = next((c for c in context.contenders if c.loader == STOKER), None)
    if ours:
        measure_import(context, rows[0], ours)
        rows += [measure_threads(context, ours), measure_names(context, ours)]
    return rows
