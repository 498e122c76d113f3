# SPDX-License-Identifier: BSD-2-Clause
"""Puts measured rows on the screen, into results.json and between the markers of docs/bench.md."""

import json
from pathlib import Path

from bench.context import OUTPUT, REPO
from bench.table import Row, as_markdown

BEGIN = "<!-- figures: begin (written by scripts/bench --write) -->"
END = "<!-- figures: end -->"
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
    lines = [f"{len(targets) - len(missed)} of {len(targets)} targets met", *(f"  missed: {m}" for m in missed)]
    return "\n".join(lines)


def figures(rows: list[Row], machine: list[str], missing: dict[str, str]) -> str:
    lines = ["Machine: " + "; ".join(machine) + ".\n"]
    lines += [f"Not measured: {', '.join(missing)}.\n"] if missing else []
    return "\n".join([*lines, *map(as_markdown, rows)])


def write_page(rows: list[Row], machine: list[str], missing: dict[str, str]) -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{figures(rows, machine, missing)}\n{END}{after}")
