"""Media that the ffmpeg command makes, and what it decodes them to."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.io import utils

COMMAND = shutil.which("ffmpeg")  # makes media
REFERENCE = os.environ.get("STK_FFMPEG") or COMMAND  # of the version that is under test

# Videos of 50 frames by make(folder / name, *options).
VIDEOS = {
    "h264.mp4": ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"],
    "h264_open.mkv": ["-c:v", "libx264", "-bf", "3", "-g", "12", "-x264-params", "open-gop=1", "-pix_fmt", "yuv420p"],
    "h264_long.mp4": ["-c:v", "libx264", "-bf", "4", "-g", "250", "-refs", "4", "-x264-params", "b-pyramid=normal", "-pix_fmt", "yuv420p"],
    "h264_fields.mkv": ["-c:v", "libx264", "-bf", "2", "-g", "250", "-flags", "+ildct+ilme", "-x264-params", "tff=1", "-pix_fmt", "yuv420p"],
    "h264_refresh.ts": ["-c:v", "libx264", "-x264-params", "intra-refresh=1:keyint=8:bframes=0", "-pix_fmt", "yuv420p"],
    "h264_refresh.mkv": ["-c:v", "libx264", "-x264-params", "intra-refresh=1:keyint=10:bframes=2", "-pix_fmt", "yuv420p"],
    "mpeg4.mp4": ["-c:v", "mpeg4", "-g", "100", "-bf", "2"],
    "h264.ts": ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"],
    "h264_10.mp4": ["-c:v", "libx264", "-g", "10", "-pix_fmt", "yuv420p10le"],
    "hevc_open.mp4": ["-c:v", "libx265", "-x265-params", "log-level=0:keyint=10:open-gop=1:bframes=3", "-tag:v", "hvc1"],
    "mpeg4.avi": ["-c:v", "mpeg4", "-g", "10", "-bf", "2"],
    "mpeg2_open.mpg": ["-c:v", "mpeg2video", "-g", "10", "-bf", "2"],
    "vp8.webm": ["-c:v", "libvpx", "-g", "10"],
    "vp9.webm": ["-c:v", "libvpx-vp9", "-g", "10"],
    "mjpeg.avi": ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"],
    "av1.mkv": ["-c:v", "libaom-av1", "-cpu-used", "8", "-g", "10"],
    "ffv1.mkv": ["-c:v", "ffv1", "-pix_fmt", "yuv444p"],
    "raw.nut": ["-c:v", "rawvideo", "-pix_fmt", "rgb24"],
}  # fmt: skip


def _missing() -> str:
    try:
        utils.get_ffmpeg_versions()
    except stoker.UnsupportedError:
        return "there are no FFmpeg libraries, or no module for them was built"
    return "" if COMMAND else "there is no ffmpeg command"


MISSING = _missing()
needs_ffmpeg = pytest.mark.skipif(bool(MISSING), reason=MISSING or "none")


def ffmpeg(*args: object, command=COMMAND) -> bytes:
    """Runs the command; what it writes to standard output."""
    line = [command or "ffmpeg", "-nostdin", "-v", "error", "-y", "-bitexact", *map(str, args)]
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # no sanitizer in it
    return subprocess.run(line, check=True, capture_output=True, timeout=100, env=env).stdout


def reference(*args: object) -> bytes:
    """The same with the command of the version that is under test."""
    return ffmpeg(*args, command=REFERENCE)


@functools.cache
def listed(kind: str) -> set[str]:
    """Names that the command lists, with `kind` one of "encoders", "decoders", "muxers" ..."""
    lines = reference("-hide_banner", f"-{kind}").decode().split("------\n", 1)[-1].splitlines()
    return {words[1] for line in lines if len(words := line.split()) > 1}


def lacking(error: BaseException | None) -> str:
    """What the FFmpeg that is under test was built without, if that made a test fail; else ""."""
    while error:
        match = re.search(r"this FFmpeg has no (encoder|decoder) (?:of the name|for) '?(\w+)", str(error))
        if match and isinstance(error, stoker.UnsupportedError) and match[2] not in listed(f"{match[1]}s"):
            return f"this FFmpeg has no {match[1]} '{match[2]}'"
        for part in getattr(error, "exceptions", ()):  # of a failed pipeline
            if reason := lacking(part):
                return reason
        error = error.__cause__ or error.__context__
    return ""


def needs(kind: str, name: str) -> pytest.MarkDecorator:
    """Of tests with a codec that an FFmpeg may be without: needs("decoders", "libdav1d")."""
    missing = not _missing() and name not in listed(kind)
    return pytest.mark.skipif(missing, reason=f"this FFmpeg has no '{name}' among its {kind}")


def decodable(names: Iterable[str]) -> list[Any]:
    """Parameters of tests, of names of VIDEOS and others."""
    av1 = needs("decoders", "libdav1d")
    return [pytest.param(name, marks=av1 if name.startswith("av1") else []) for name in names]


def make(path: Path, *args: object, size="64x48", rate=25, seconds=2, audio=False) -> Path:
    """A video at `path`, encoded by the options `args`."""
    source = ["-f", "lavfi", "-i", f"testsrc2=s={size}:r={rate}:d={seconds}"]
    if audio:
        source += ["-f", "lavfi", "-i", f"sine=440:r=44100:d={seconds}"]
    ffmpeg(*source, *args, path)
    return path


def tone(path: Path, *args: object, rate=44100, channels=2, seconds=2) -> Path:
    """Audio with sounds that differ from channel to channel and change all the time."""
    sounds = "|".join(f"0.3*sin({300 + 170 * c}*t*t+{c})" for c in range(channels))
    ffmpeg("-f", "lavfi", "-i", f"aevalsrc={sounds}:s={rate}:d={seconds}", *args, path)
    return path


def pixels(path: Path, *args: object, pix_fmt="rgb24", dtype=np.uint8, shape=(48, 64, 3)) -> np.ndarray:
    """All frames, as the command decodes them."""
    raw = reference("-i", path, "-map", "0:v:0", *args, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", pix_fmt, "-")
    return np.frombuffer(raw, dtype).reshape(-1, *shape)


def samples(path: Path, *args: object, channels=2, kind="f32le", dtype=np.float32) -> np.ndarray:
    """(time, channels), as the command decodes them."""
    raw = reference("-i", path, "-map", "0:a:0", *args, "-f", kind, "-c:a", f"pcm_{kind}", "-")
    return np.frombuffer(raw, dtype).reshape(-1, channels)
