# SPDX-License-Identifier: BSD-2-Clause
"""What a row needs to know: where things are, how long to measure, who takes part."""

import json
import os
import random
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.corpus import Corpus, photographs, warm
from bench.proc import Failed, Outcome, run

REPO = Path(__file__).resolve().parent.parent
OUTPUT = REPO / "build" / "bench"
STOKER = "stoker_lane"
PYTHON_STAGES = "stages_stoker"


@dataclass(frozen=True)
class Contender:
    loader: str
    title: str
    python: str  # the interpreter that has it
    peer: bool = False  # only in `make bench-peers`
    own_boxes: bool = False  # draws its random boxes itself, so they cannot be set

    @property
    def package(self) -> str:
        """Of one whose stages are Python."""
        return self.loader.removeprefix("stages_")


@dataclass(frozen=True)
class FreeThreaded:
    """An interpreter without the lock."""

    python: str
    version: str
    site: Path  # where its build of the stoker package lies


@dataclass
class Effort:
    """How much is measured."""

    files: int = 2000
    rounds: int = 9
    import_rounds: int = 21
    names: int = 1_300_000
    epochs: int = 20
    noop_items: int = 8_000_000
    idle_s: int = 10
    loop_s: float = 3.0
    python_items: int = 1_000_000
    sleeps: int = 4800
    spins: int = 10_000
    cycles: int = 200
    dropped: int = 10_000


QUICK = Effort(files=400, rounds=3, import_rounds=5, names=26_000, epochs=4,
               noop_items=1_000_000, idle_s=2, loop_s=1.2, python_items=100_000, sleeps=800,
               spins=1000, cycles=30, dropped=1000)  # fmt: skip
CHECK_FILES = 360  # whose pixels are compared


@dataclass
class Context:
    effort: Effort
    contenders: list[Contender]
    missing: dict[str, str]  # title of a contender that cannot run: why, and what helps
    programs: Path  # entropy, noop
    site: Path  # where the stoker package lies
    pipelines: list[Contender] = field(default_factory=list)  # of Python stages, ours first
    free: FreeThreaded | None = None
    corpora: dict[tuple[int, int], Corpus] = field(default_factory=dict)

    def corpus(self, short_side: int, files: int | None = None) -> Corpus:
        key = (short_side, files or self.effort.files)
        if key not in self.corpora:
            self.corpora[key] = photographs(REPO, key[1], short_side)
            warm(self.corpora[key])
        return self.corpora[key]

    def env(self, site: Path | None = None) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": f"{REPO}:{site or self.site}"}

    def load(self, contender: Contender, root: Path, *, pss: bool = False, **options: object) -> Outcome:
        """One run of bench/contender.py."""
        return self.script(
            "contender.py", contender.python, pss=pss, site=None, loader=contender.loader, root=root, **options
        )

    def script(
        self, name: str, python: str, *, pss: bool = False, site: Path | None = None, **options: object
    ) -> Outcome:
        words = [f"{key}={value}" for key, value in options.items()]
        command = [python, "-P", str(REPO / "bench" / name), *words]
        return run(command, self.env(site), pss=pss, start_word=True)

    def stages(
        self, python: str, package: str, work: str, options: Mapping[str, object], site: Path | None = None
    ) -> Outcome:
        """One run of bench/stages.py."""
        return self.script("stages.py", python, pss=False, site=site, package=package, work=work, **options)

    def program(self, name: str, *words: object) -> Outcome:
        return run([str(self.programs / name), *map(str, words)])


def verify(outcome: Outcome, corpus: Corpus, epochs: int = 1) -> Outcome:
    """Every image came, each with its label."""
    got = outcome.result
    wanted = (corpus.count * epochs, corpus.label_sum * epochs)
    if (got.get("images"), got.get("label_sum")) != wanted:
        raise Failed(f"delivered {got.get('images')} images of {wanted[0]}, labels {got.get('label_sum')} of {wanted[1]}")
    return outcome


Task = Callable[[], Outcome]


def again(name: str, task: Task, notes: list[str]) -> Outcome:
    """A rival that fails now and then does not end the row: one more try, and `notes` tell."""
    try:
        return task()
    except Failed as error:
        notes.append(f"Run again: {name}: {error}")
        return task()


def able(tasks: Mapping[str, Task], rivals: Container[str], notes: list[str]) -> dict[str, Task]:
    """Without the rivals that fail when they are tried once: `notes` name them."""
    found: dict[str, Task] = {}
    for name, task in tasks.items():
        try:
            if name in rivals:
                progress(f"trying {name}")
                task()
                found[name] = partial(again, name, task, notes)
            else:
                found[name] = task
        except Failed as error:
            notes.append(f"Not measured: {name}: {error}")
    return found


def interleave(rounds: int, tasks: Mapping[str, Task], what: str) -> dict[str, list[Outcome]]:
    """Runs every task once a round, in an order drawn for each round."""
    results: dict[str, list[Outcome]] = {name: [] for name in tasks}
    draw = random.Random(0)
    for number in range(rounds):
        for name in draw.sample(list(tasks), len(tasks)):
            progress(f"{what}: round {number + 1}/{rounds}: {name}")
            results[name].append(tasks[name]())
    progress("")
    return results


def progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def save_raw(name: str, value: object) -> None:
    folder = OUTPUT / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(value, indent=1))


def outcomes_json(results: Mapping[str, Sequence[Outcome]]) -> dict[str, list[dict[str, object]]]:
    return {
        name: [
            {"cpu_s": o.cpu_s, "wall_s": o.wall_s, "peak_pss_kib": o.peak_pss_kib, **o.result}
            for o in outcomes
        ]
        for name, outcomes in results.items()
    }
