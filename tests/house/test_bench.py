"""What bench says of its targets."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench import report, table  # noqa: E402
from bench.stats import Estimate  # noqa: E402

WORDS = [
    (0.9, 0.8, 0.95, "met"),
    (0.99, 0.9, 1.2, "met"),
    (1.0, 0.9, 1.1, "met"),
    (1.107, 0.828, 1.332, "met (within noise)"),
    (1.2, 1.0, 1.4, "met (within noise)"),
    (1.2, 1.001, 1.4, "missed"),
]


@pytest.mark.parametrize(("median", "low", "high", "word"), WORDS)
def test_no_worse_says_when_only_the_interval_reaches_it(median, low, high, word):
    target = table.no_worse("time", Estimate(median, low, high, 9))
    assert target.word == word and target.met == (word != "missed")
    row = table.Row("row", "Row", targets=[target])
    assert row.json()["targets"][0]["word"] == word
    assert table.as_markdown(row).endswith(f"| {word} |\n")
    assert f"  {word.upper()} " in table.as_text(row)


def test_most_and_least_know_no_noise():
    assert table.most("time", 1, 1.01, "1.01").word == "missed"
    assert table.least("rate", 2, 2, "2").word == "met"


def test_the_summary_counts_what_noise_has_met():
    row = table.Row("row", "Row", targets=[table.no_worse("t", Estimate(m, lo, hi, 9)) for m, lo, hi, _ in WORDS])
    assert report.summary([row]).splitlines()[0] == "5 of 6 targets met, 2 of them within noise"
    row.targets = row.targets[:1]
    assert report.summary([row]) == "1 of 1 targets met"


def test_the_page_says_so_too():
    """Of every row of this rule in docs/bench.md the word is that of its numbers."""
    cells = r"\| <= 1 x, within the interval \| ([\d.]+) \[([\d.]+), ([\d.]+)\] \| ([^|]+) \|"
    rows = re.findall(cells, (ROOT / "docs" / "bench.md").read_text())
    assert rows
    for *numbers, word in rows:
        if "1.000" in numbers[:2]:  # rounded: it may be on either side
            continue
        assert table.no_worse("", Estimate(*map(float, numbers), 9)).word == word, (numbers, word)
