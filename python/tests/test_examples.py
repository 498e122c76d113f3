"""The programs of examples/python, each run as a user would."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import av

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
NAMES = sorted(path.stem for path in (EXAMPLES / "expected").glob("*.txt"))


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_every_example_is_run():
    run_here = {*NAMES, "image_folder", "train", "video_clips"}  # train: tests of the demo
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


@av.needs_ffmpeg
def test_video_clips(tmp_path):
    for seconds in (1, 2, 3):
        path = tmp_path / f"{seconds}.mp4"
        av.make(path, "-c:v", "mpeg4", "-c:a", "aac", seconds=seconds, audio=True)
    lines = [line.rsplit(" ", 1) for line in run("video_clips", str(tmp_path)).splitlines()]
    assert [line[0].replace(line[0].split()[5], "MEAN") for line in lines] == [
        "(2, 8, 64, 64, 3) MEAN (2, 1, 16000)",
        "(1, 8, 64, 64, 3) MEAN (1, 1, 16000)",
    ]
    loud = 2 / math.pi / 8  # the command's sine has an eighth of the full range; of the first second half is left
    assert [float(line[1]) for line in lines] == pytest.approx([0.75 * loud, loud], abs=1e-3)
