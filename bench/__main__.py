# SPDX-License-Identifier: BSD-2-Clause
"""Measures the rows of docs/bench.md.  Started by scripts/bench and scripts/bench-peers."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench import machine, peers, report
from bench.context import QUICK, STOKER, Context, Effort, FreeThreaded
from bench.proc import Failed
from bench.rows import (
    arrays,
    augment,
    cuts,
    files,
    first,
    media,
    memory,
    neighbour,
    noop,
    python_flow,
    python_free,
    python_life,
    shards,
    subprocess,
    throughput,
)
from bench.table import Row, as_text

ROWS: dict[str, Callable[[Context], list[Row]]] = {
    "main": lambda context: [throughput.measure_corpus(context, 0)],
    "small": lambda context: [throughput.measure_corpus(context, 256)],
    "noop": noop.measure,
    "first": first.measure,
    "memory": memory.measure,
    "neighbour": neighbour.measure,
    "py-noop": python_flow.measure_noop,
    "py-async": python_flow.measure_async,
    "py-hooks": python_flow.measure_hooks,
    "py-collate": python_flow.measure_collate,
    "py-sleep": python_flow.measure_sleep,
    "py-beside": neighbour.measure_python,
    "py-cycle": python_life.measure_cycle,
    "py-idle": python_life.measure_idle,
    "py-dropped": python_life.measure_dropped,
    "py-free": python_free.measure,
    "subprocess": subprocess.measure,
    "npz": arrays.measure,
    "augment": augment.measure,
    "shards": shards.measure,
    "wav": files.measure_wav,
    "tar": files.measure_tar,
    "video": media.measure_video,
    "clips": media.measure_clips,
    "clips-2h": media.measure_long,
    "audio": media.measure_audio,
    "lane-video": cuts.measure_video,
    "lane-audio": cuts.measure_audio,
}

NO_IMAGES = frozenset(name for name in ROWS if name.startswith("py-")) | {
    "audio", "augment", "clips", "clips-2h", "lane-audio", "lane-video", "noop", "npz", "subprocess", "tar", "video", "wav",
}  # fmt: skip


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.split("\n")[0])
    p.add_argument("--quick", action="store_true", help="few files, few rounds: to try, not to quote")
    p.add_argument("--row", action="append", choices=list(ROWS), help="only this row; may be repeated")
    p.add_argument("--rounds", type=int, help="how often each contender runs in a row")
    p.add_argument("--peers", action="store_true", help="torch's DataLoader and DALI as well")
    p.add_argument("--write", action="store_true", help="put the tables into docs/bench.md: all of them, or those of --row")
    p.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)
    p.add_argument("--site", type=Path, required=True, help=argparse.SUPPRESS)
    p.add_argument("--free-threaded", help=argparse.SUPPRESS)
    p.add_argument("--free-threaded-site", type=Path, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.rounds is not None and args.rounds < 1:
        p.error("--rounds must be at least 1")
    if args.write and args.quick:
        p.error("--write puts measurements into the page: not with --quick")
    return args


def effort(args: argparse.Namespace) -> Effort:
    chosen = QUICK if args.quick else Effort()
    return replace(chosen, rounds=args.rounds, import_rounds=args.rounds) if args.rounds else chosen


def free_threaded(args: argparse.Namespace) -> FreeThreaded | None:
    if not args.free_threaded:
        return None
    version = machine.output_of([args.free_threaded, "-c", "import sys; print('%d.%dt' % sys.version_info[:2])"])
    return FreeThreaded(args.free_threaded, version, args.free_threaded_site)


def preflight(context: Context) -> None:
    """Everyone reads one batch; who cannot is left out, by name.  Fills caches, too."""
    root = context.corpus(0).root
    for contender in list(context.contenders):
        try:
            context.load(contender, root, limit=1)
        except Failed as error:
            context.contenders.remove(contender)
            context.missing[contender.title] = str(error)


def measure(context: Context, name: str) -> list[Row]:
    try:
        return ROWS[name](context)
    except Failed as error:
        return [Row(name, f"{name}: not measured", notes=[str(error)], failed=True)]


def main() -> int:
    args = parse()
    contenders, missing = peers.gather(args.peers)
    stages, absent = peers.pipelines()
    context = Context(
        effort(args), contenders, missing | absent, args.programs, args.site, stages, free_threaded(args)
    )
    names = args.row or list(ROWS)
    if not NO_IMAGES.issuperset(names):
        preflight(context)
    for title, reason in context.missing.items():
        print(f"bench: SKIPPED {title}: {reason}")
    described = machine.describe(contenders)
    print("\n".join(described) + "\n", flush=True)
    rows: list[Row] = []
    for name in names:
        done = measure(context, name)
        rows += done
        print("\n".join(map(as_text, done)), flush=True)
    saved = report.save(rows, described, context.missing)
    if args.write:
        report.write_page(rows, described, context.missing, whole=not args.row)
    print(report.summary(rows))
    print(f"all figures: {saved.relative_to(Path.cwd())}")
    ours = any(contender.loader == STOKER for contender in contenders)
    return 0 if ours and not any(row.failed for row in rows) else 1


sys.exit(main())
