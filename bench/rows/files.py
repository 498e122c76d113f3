# SPDX-License-Identifier: BSD-2-Clause
"""WAV files and tar archives, beside SPDL and what Python has."""

import sys
from functools import partial

from bench.context import Contender, Context, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.rows.media import soundfile
from bench.rows.python_flow import figures, rates
from bench.stats import paired_ratio
from bench.table import Row, least, most, no_worse

HEADER = ["contender", "threads", "items", "items/s", "best", "CPU-us/item"]
TARFILE = Contender("tarfile", "Python's tarfile", sys.executable)
VIEW = Contender("memoryview", "Python's memoryview", sys.executable)
WAV_CALLS, WAV_FILES, ARCHIVES = 1_000_000, 300, 20
WAV_THREADS = (1, 2, 8)
PLACES = {"memory": "memory", "file": "a file", "path": "a path"}

Entry = tuple[Contender, str, dict[str, object]]  # who does which work


def compete(context: Context, row: Row, entries: dict[str, Entry]) -> dict[str, list[Outcome]]:
    """Rounds of all, as lines of the table."""
    tasks = {
        name: partial(context.stages, who.python, who.package, work, options)
        for name, (who, work, options) in entries.items()
    }
    rivals = {name for name, (who, _, _) in entries.items() if who.package != "stoker"}
    results = interleave(context.effort.rounds, able(tasks, rivals, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    for name, outcomes in results.items():
        threads = entries[name][2].get("threads", 1)
        row.lines.append([name, f"{threads}", f"{outcomes[0].result['items']:,}", *figures(outcomes)])
    return results


def over(row: Row, results: dict[str, list[Outcome]], limit: float, ours: str, theirs: str) -> None:
    """Round by round, by items a second."""
    if theirs not in results:
        row.notes.append(f"Nothing to compare with: {theirs}.")
        return
    ratio = paired_ratio(rates(results[ours]), rates(results[theirs]))
    row.targets.append(least(f"{ours}: items/s, over {theirs}", limit, ratio.median, ratio.text(2), " x"))


def scaled(context: Context, number: int) -> int:
    return max(1, round(number * context.effort.python_items / 1_000_000))


def measure_wav(context: Context) -> list[Row]:
    row = Row("wav", "WAV, 10 s of stereo", HEADER)
    calls, files = scaled(context, WAV_CALLS), scaled(context, WAV_FILES)
    entries: dict[str, Entry] = {
        f"{who.title}, bytes, {n}": (who, "wav.load", {"items": calls // n, "threads": n})
        for who in (*context.pipelines, VIEW)
        for n in WAV_THREADS
    }
    row.notes.append("`memoryview(bytes)` on the same threads shows what the interpreter's lock takes from every call.")
    readers = [*context.pipelines, *soundfile(row)]
    entries |= {f"{who.title}, path to float32": (who, "wav.to_float", {"items": files}) for who in readers}
    results = compete(context, row, entries)
    over(row, results, 2, "Stoker, bytes, 1", "SPDL, bytes, 1")
    for n in WAV_THREADS[1:]:  # time, not rate: more threads are not to take longer
        ratio = paired_ratio(rates(results["Stoker, bytes, 1"]), rates(results[f"Stoker, bytes, {n}"]))
        row.targets.append(no_worse(f"{n} threads: time of as many calls over 1 thread's", ratio))
    ours, theirs = "Stoker, path to float32", "soundfile, path to float32"
    if theirs in results:
        took = [[o.result["cpu_s"] / o.result["items"] for o in results[name]] for name in (ours, theirs)]
        ratio = paired_ratio(*took)
        row.targets.append(most("path to float32: CPU time over soundfile", 0.5, ratio.median, ratio.text(2), " x"))
    return [row]


def measure_tar(context: Context) -> list[Row]:
    row = Row("tar", "Tar archive of 10,000 members of 8 kB", HEADER)
    times = scaled(context, ARCHIVES)
    entries: dict[str, Entry] = {
        f"{who.title}, {title}": (who, "tar.run", {"kind": kind, "items": 1 if who is TARFILE else times})
        for kind, title in PLACES.items()
        for who in (*context.pipelines, TARFILE)
        if kind != "path" or who.package == "stoker"
    }
    results = compete(context, row, entries)
    over(row, results, 1.3, "Stoker, memory", "SPDL, memory")
    over(row, results, 2, "Stoker, a file", "SPDL, a file")
    return [row]
