"""The programs of examples/python, each run as a user would."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
NAMES = sorted(path.stem for path in (EXAMPLES / "expected").glob("*.txt"))


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_every_example_is_run():
    run_here = {*NAMES, "image_folder", "train"}  # train: tests of the demo
    assert {path.stem for path in EXAMPLES.glob("*.py")} == run_here


@pytest.mark.parametrize("name", NAMES)
def test_prints_what_is_expected(name):
    assert run(name) == (EXAMPLES / "expected" / f"{name}.txt").read_text()


def test_image_folder(tmp_path):
    for i in range(9):
        Image.new("RGB", (80 + i, 60), (i * 20, 100, 200)).save(tmp_path / f"{i}.jpg")
    lines = run("image_folder", str(tmp_path)).splitlines()
    assert [line.rpartition(" ")[0] for line in lines] == [
        "(4, 64, 64, 3) uint8",
        "(4, 64, 64, 3) uint8",
        "(1, 64, 64, 3) uint8",
    ]
    assert float(lines[0].split()[-1]) == pytest.approx((30 + 100 + 200) / 3, abs=2)
