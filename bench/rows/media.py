# SPDX-License-Identifier: BSD-2-Clause
"""Video and audio files decoded, beside torchcodec, SPDL, soundfile and the ffmpeg command."""

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import peers
from bench.context import OUTPUT, Contender, Context, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.stats import estimate, paired_ratio
from bench.table import Row, most

FFMPEG = Contender("ffmpeg", "ffmpeg command", sys.executable)
TORCHCODEC = Contender("torchcodec", "torchcodec", sys.executable)
SIZES = {"720p": "1280x720", "1080p": "1920x1080"}
RATE = 30
CLIP_SECONDS = 100  # of the file of which clips are taken; its key frames are 250 apart
MEMORY = 200 * 1024  # KiB


def made(name: str, *words: str) -> Path:
    """A file that the ffmpeg command makes once."""
    path = OUTPUT / "media" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial_path = path.with_name("partial-" + name)
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *words, str(partial_path)], check=True)
        partial_path.rename(path)
    return path


def film(size: str, seconds: int) -> Path:
    """Moving shapes with noise, H.264 with B-frames."""
    picture = f"testsrc2=size={SIZES[size]}:rate={RATE}:duration={seconds},noise=alls=6:allf=t"
    coding = ("-c:v", "libx264", "-g", "250", "-keyint_min", "250", "-sc_threshold", "0", "-pix_fmt", "yuv420p")
    return made(f"{size}-{seconds}.mp4", "-f", "lavfi", "-i", picture, *coding)


def music(suffix: str) -> Path:
    tones = "aevalsrc=0.4*sin(440*2*PI*t)+0.2*random(0)|0.4*sin(660*2*PI*t)+0.2*random(1):d=10:s=44100"
    return made(f"music.{suffix}", "-f", "lavfi", "-i", tones, "-c:a", {"mp3": "libmp3lame"}.get(suffix, suffix))


def rivals(context: Context, others: Sequence[Contender], row: Row) -> tuple[list[Contender], Path | None]:
    """Who takes part, ours first, and where torchcodec lies."""
    site = peers.beside_torch(peers.TORCHCODEC)
    if isinstance(site, str):
        row.notes.append(f"Not measured: torchcodec: {site}")
        return [*context.pipelines, *others], None
    return [*context.pipelines, *others, TORCHCODEC], site


def cost(outcomes: list[Outcome]) -> list[float]:
    return [o.result["cpu_s"] / o.result["items"] for o in outcomes]


def compare(context: Context, row: Row, work: str, what: dict[str, tuple[Path, dict[str, object]]],
            others: Sequence[Contender]) -> dict[str, list[Outcome]]:  # fmt: skip
    """Everyone does each of `what`: CPU time over that of the best of the others."""
    everyone, site = rivals(context, others, row)
    tasks = {}
    for title, (path, options) in what.items():
        for who in everyone:
            where = site if who is TORCHCODEC else None
            given = {**options, "path": path}
            tasks[f"{title}: {who.title}"] = partial(context.stages, who.python, who.package, work, given, where)
    ours = everyone[0].title
    results = interleave(
        context.effort.rounds, able(tasks, {t for t in tasks if not t.endswith(f": {ours}")}, row.notes), row.name
    )
    save_raw(row.name, outcomes_json(results))
    for name, outcomes in results.items():
        wall = estimate([o.result["seconds"] / o.result["items"] for o in outcomes])
        peak = max(int(o.result.get("peak_kib", 0)) for o in outcomes)
        row.lines.append([name, estimate(cost(outcomes)).text(2, 1e3), wall.text(2, 1e3), f"{peak / 1024:.0f}" if peak else ""])
    for title in what:
        found = [cost(o) for name, o in results.items() if name.startswith(f"{title}: ") and not name.endswith(f": {ours}")]
        if found:
            best = min(found, key=lambda costs: estimate(costs).median)
            ratio = paired_ratio(cost(results[f"{title}: {ours}"]), best)
            row.targets.append(most(f"{title}: CPU time over the best of the others", 1, ratio.median, ratio.text(3), " x"))
    return results


def measure_video(context: Context) -> list[Row]:
    row = Row("video", "H.264, whole file to RGB24, one decoder thread", ["file", "CPU-ms a frame", "ms a frame", "MiB at most"])
    seconds = 4 if context.effort.rounds < 9 else 10
    files = {size: film(size, seconds) for size in SIZES}
    frames = {"items": seconds * RATE}
    what: dict[str, tuple[Path, dict[str, object]]] = {size: (path, {**frames}) for size, path in files.items()}
    what["720p to 256 x 256"] = (files["720p"], {**frames, "kind": "small"})
    compare(context, row, "media.video", what, [FFMPEG])
    row.notes.append("Memory is of the whole process, with its imports; ffmpeg runs in a process of its own.")
    return [row]


def measure_clips(context: Context) -> list[Row]:
    row = Row("clips", "16 frames at 10 places of one 720p file, key frames 250 apart", ["who", "CPU-ms a frame", "ms a frame", ""])
    path = film("720p", CLIP_SECONDS)
    compare(context, row, "media.clips", {"clips": (path, {"items": CLIP_SECONDS * RATE})}, [])
    return [row]


def measure_audio(context: Context) -> list[Row]:
    row = Row("audio", "10 s of stereo decoded to float32", ["file", "CPU-ms a file", "ms a file", ""])
    found = peers.soundfile()
    others = [found] if isinstance(found, Contender) else []
    if isinstance(found, str):
        row.notes.append(f"Not measured: soundfile: {found}")
    items = max(5, round(100 * context.effort.python_items / 1_000_000))
    what: dict[str, tuple[Path, dict[str, object]]] = {kind: (music(kind), {"items": items}) for kind in ("flac", "mp3")}
    compare(context, row, "media.audio", what, others)
    return [row]
