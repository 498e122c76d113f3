# SPDX-License-Identifier: BSD-2-Clause
"""A measured row: a table, targets met or missed, notes; as text and as Markdown."""

from dataclasses import dataclass, field

from bench.stats import Estimate


@dataclass(frozen=True)
class Target:
    what: str
    wanted: str
    measured: str
    met: bool
    noise: bool = False  # met only as the interval reaches it: the median does not

    @property
    def word(self) -> str:
        if self.met and self.noise:
            return "met (within noise)"
        return "met" if self.met else "missed"


@dataclass
class Row:
    name: str
    title: str
    header: list[str] = field(default_factory=list)
    lines: list[list[str]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: bool = False  # a contender of ours did not run or delivered wrong data

    def json(self) -> dict[str, object]:
        return {
            "title": self.title,
            "header": self.header,
            "lines": self.lines,
            "targets": [{**vars(target), "word": target.word} for target in self.targets],
            "notes": self.notes,
            "failed": self.failed,
        }


def most(what: str, limit: float, value: float, measured: str, unit: str = "") -> Target:
    return Target(what, f"<= {limit:g}{unit}", measured, value <= limit)


def no_worse(what: str, ratio: Estimate) -> Target:
    """Not measurably worse than the other: the interval reaches down to it."""
    return Target(what, "<= 1 x, within the interval", ratio.text(3), ratio.low <= 1, ratio.median > 1)


def least(what: str, limit: float, value: float, measured: str, unit: str = "") -> Target:
    number = f"{limit:,.0f}" if limit >= 1000 else f"{limit:g}"
    return Target(what, f">= {number}{unit}", measured, value >= limit)


def columns(cells: list[list[str]]) -> list[str]:
    """Aligned: the first column left, the others right."""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return [
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in cells
    ]


def as_text(row: Row) -> str:
    out = [row.title, "-" * len(row.title)]
    if row.lines:
        out += columns([row.header, *row.lines])
    out += [f"  {t.word.upper():<6} {t.what}: {t.measured} (target {t.wanted})" for t in row.targets]
    out += [f"  note: {note}" for note in row.notes]
    return "\n".join(out) + "\n"


def markdown_table(cells: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(line) + " |" for line in cells]
    lines.insert(1, "| --- |" + " ---: |" * (len(cells[0]) - 1))
    return lines


def as_markdown(row: Row) -> str:
    out = [f"### {row.title}", ""]
    if row.lines:
        out += [*markdown_table([row.header, *row.lines]), ""]
    if row.targets:
        cells = [[t.what, t.wanted, t.measured, t.word] for t in row.targets]
        out += [*markdown_table([["target", "wanted", "measured", ""], *cells]), ""]
    out += [f"- {note}" for note in row.notes]
    return "\n".join(out).rstrip() + "\n"
