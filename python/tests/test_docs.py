"""The code of docs/migrating.md, block by block."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_there_are_blocks():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_runs(number, tmp_path):
    program = tmp_path / f"block_{number}.py"
    program.write_text(BLOCKS[number])
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
