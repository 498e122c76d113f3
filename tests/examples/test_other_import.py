"""The programs of examples/python, with only the import exchanged, on the package whose API they use:
equal output.  STK_OTHER_PACKAGE: its name; it must be importable."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
OTHER = os.environ["STK_OTHER_PACKAGE"]
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "train")


def make_images(folder):
    for i in range(9):
        Image.new("RGB", (80 + i, 60), (i * 20, 100, 200)).save(folder / f"{i}.jpg")


def make_videos(folder):
    """Their sound is lossless: what AAC gives where a window starts depends on how much before it is decoded."""
    for i in (1, 2, 3):
        inputs = ["-f", "lavfi", "-i", f"testsrc2=s=80x60:r=25:d={i}", "-f", "lavfi", "-i", f"sine={i}00:r=44100:d={i}"]
        codecs = ["-c:v", "mpeg4", "-c:a", "alac"]
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", *inputs, *codecs, folder / f"{i}.mp4"], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_equal_output(name, tmp_path):
    text = (EXAMPLES / f"{name}.py").read_text()
    assert "from stoker." in text
    program = tmp_path / f"{name}.py"  # a worker process imports it by this name
    program.write_text(text.replace("from stoker.", f"from {OTHER}."))
    make = {"image_folder": make_images, "video_clips": make_videos}.get(name)
    if make:
        make(tmp_path)
    arguments = [str(tmp_path)] if make else []
    outputs = [
        subprocess.run(
            [sys.executable, path, *arguments], capture_output=True, text=True, timeout=120, check=True
        ).stdout
        for path in (EXAMPLES / f"{name}.py", program)
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].strip()
