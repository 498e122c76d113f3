"""The code of the pages in docs that have some, block by block."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import av

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("isolation.md", "live.md", "migrating.md", "media.md", "samples.md", "video.md")
BLOCKS = {
    f"{page}-{number}": block
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    )
}
FFMPEG = re.compile(r'\["ffmpeg"|import .*(LiveReader|Muxer|save_image)')


@pytest.mark.parametrize("page", PAGES)
def test_there_are_blocks(page):
    assert sum(name.startswith(page) for name in BLOCKS) >= 2


@pytest.mark.parametrize("name", BLOCKS)
def test_block_runs(name, tmp_path):
    if FFMPEG.search(BLOCKS[name]) and av.MISSING:
        pytest.skip(av.MISSING)
    program = tmp_path / "program.py"
    program.write_text(BLOCKS[name])
    done = subprocess.run(
        [sys.executable, "-W", "error", program],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
