# SPDX-License-Identifier: BSD-2-Clause
"""Batches of clips by the native lane, beside torchcodec, SPDL and soundfile."""

import shutil
from pathlib import Path

from bench.context import OUTPUT, Context
from bench.rows.media import compare, made, music, soundfile
from bench.table import Row

FILES = 20
SECONDS = 4  # of a video; its key frames are 2 s apart


def small_videos() -> Path:
    """Files that differ in their noise."""
    for i in range(FILES):
        picture = f"testsrc2=size=320x240:rate=25:duration={SECONDS},noise=alls=6:allf=t:all_seed={i}"
        coding = ("-c:v", "libx264", "-g", "50", "-pix_fmt", "yuv420p")
        made(f"small/{i:02}.mp4", "-f", "lavfi", "-i", picture, *coding)
    return OUTPUT / "media" / "small"


def sounds(kind: str) -> Path:
    folder = OUTPUT / "media" / f"music-{kind}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"music.{kind}").exists():
        shutil.copyfile(music(kind), folder / f"music.{kind}")
    return folder


def measure_video(context: Context) -> list[Row]:
    row = Row("lane-video", "Batches of 16 clips, 16 frames of 112 x 112 each", ["who", "CPU-ms a clip", "ms a clip", ""])
    items = FILES * 4 if context.effort.rounds < 9 else FILES * 16
    compare(context, row, "cuts.video", {"video": (small_videos(), {"items": items, "seconds": SECONDS})}, [])
    return [row]


def measure_audio(context: Context) -> list[Row]:
    row = Row("lane-audio", "Batches of 16 clips, 3 s of stereo each", ["file", "CPU-ms a clip", "ms a clip", ""])
    items = 64 if context.effort.rounds < 9 else 320
    compare(context, row, "cuts.audio", {kind: (sounds(kind), {"items": items, "seconds": 10}) for kind in ("flac",)}, soundfile(row))
    return [row]
