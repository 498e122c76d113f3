"""The code of README.md and of the pages in docs that have some, block by block."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import av
from support import make_folder

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = ("isolation.md", "live.md", "migrating.md", "media.md", "samples.md", "video.md")


def blocks_of(page: Path) -> dict[str, str]:
    found = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return {f"{page.name}-{number}": block for number, block in enumerate(found)}


BLOCKS = {name: block for page in PAGES for name, block in blocks_of(DOCS / page).items()}
README = blocks_of(ROOT / "README.md")
FFMPEG = re.compile(r'\["ffmpeg"|import .*(LiveReader|Muxer|save_image)')

# What the reader of README.md has: images and videos in folders, a training step, and torch, of which
# the name of one function is needed that NumPy has, too.
READER = """
import numpy as torch
from stoker import PipelineBuilder, ops, source

steps = []

def step(image, label):
    steps.append(f"{image.dtype} {image.shape} {label.dtype} {label.shape}")

"""


@pytest.mark.parametrize("page", PAGES)
def test_there_are_blocks(page):
    assert sum(name.startswith(page) for name in BLOCKS) >= 2


@pytest.mark.parametrize("name", BLOCKS)
def test_block_runs(name, tmp_path):
    if FFMPEG.search(BLOCKS[name]) and av.MISSING:
        pytest.skip(av.MISSING)
    run(BLOCKS[name], tmp_path)


def run(block: str, folder: Path) -> str:
    program = folder / "program.py"
    program.write_text(block)
    done = subprocess.run(
        [sys.executable, "-W", "error", program],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )
    if os.environ.get("STK_FFMPEG") and (lacking := re.search(r"//\S+: Protocol not found$", done.stderr, re.MULTILINE)):
        pytest.skip(f"this FFmpeg was built without a protocol: {lacking[0]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_images(tmp_path):
    make_folder(tmp_path / "train", classes=4, each=16)
    said = run(READER + README["README.md-0"] + "print(*steps, sep='\\n')", tmp_path)
    assert said.splitlines() == ["uint8 (64, 224, 224, 3) int64 (64,)"]


@av.needs_ffmpeg
def test_readme_media(tmp_path):
    film = av.make(tmp_path / "film.mp4", "-c:v", "mpeg4", "-g", "12", "-c:a", "aac", seconds=3, audio=True)
    for number in range(8):
        folder = tmp_path / "videos" / f"class {number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(film, folder / f"{number}.mp4")
    check = """
assert clip.dtype == "uint8" and clip.shape == (16, 224, 224, 3)
assert sound.dtype == "float32" and sound.shape == (1, 32000)
print(*steps, sep="\\n")
"""
    said = run(READER + README["README.md-1"] + check, tmp_path)
    assert said.splitlines() == ["uint8 (8, 16, 112, 112, 3) int64 (8,)"]


def test_every_block_of_readme_is_run():
    assert len(README) == 2
