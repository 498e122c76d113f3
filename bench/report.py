# SPDX-License-Identifier: BSD-2-Clause
"""Puts measured rows on the screen, into results.json and between the markers of docs/bench.md."""

import json
import re
from pathlib import Path

from bench.context import OUTPUT, REPO
from bench.table import Row, as_markdown

BEGIN = "<!-- figures: begin (written by scripts/bench --write) -->"
END = "<!-- figures: end -->"
SECTION = r"<!-- row: (\S+) -->\n(.*?)(?=<!-- row: |\Z)"
PAGE = REPO / "docs" / "bench.md"


def save(rows: list[Row], machine: list[str], missing: dict[str, str]) -> Path:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / "results.json"
    value = {"machine": machine, "missing": missing, "rows": {row.name: row.json() for row in rows}}
    path.write_text(json.dumps(value, indent=1) + "\n")
    return path


def summary(rows: list[Row]) -> str:
    targets = [target for row in rows for target in row.targets]
    missed = [f"{row.title}: {t.what}: {t.measured}" for row in rows for t in row.targets if not t.met]
    noise = sum(t.met and t.noise for t in targets)
    met = f"{len(targets) - len(missed)} of {len(targets)} targets met"
    lines = [met + (f", {noise} of them within noise" if noise else ""), *(f"  missed: {m}" for m in missed)]
    return "\n".join(lines)


def write_page(rows: list[Row], machine: list[str], missing: dict[str, str], whole: bool) -> None:
    """`whole`: these are all rows; else they replace those of their names, and the others stay."""
    before, rest = PAGE.read_text().split(BEGIN)
    old, after = rest.split(END)
    sections = {} if whole else dict(re.findall(SECTION, old, re.DOTALL))
    sections |= {row.name: as_markdown(row) for row in rows}
    lines = ["Machine: " + "; ".join(machine) + ".\n"]
    lines += [f"Not measured: {', '.join(missing)}.\n"] if missing else []
    lines += [f"<!-- row: {name} -->\n{text.strip()}\n" for name, text in sections.items()]
    PAGE.write_text(before + BEGIN + "\n\n" + "\n".join(lines) + "\n" + END + after)
