# SPDX-License-Identifier: BSD-2-Clause
"""Video and audio files decoded, beside torchcodec, SPDL, soundfile and the ffmpeg command."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bench import peers
from bench.context import OUTPUT, Contender, Context, able, interleave, outcomes_json, save_raw
from bench.proc import Outcome
from bench.stats import estimate, paired_ratio
from bench.table import Row, most, no_worse

FFMPEG = Contender("ffmpeg", "ffmpeg command", sys.executable)
TORCHCODEC = Contender("torchcodec", "torchcodec", sys.executable)
SIZES = {"720p": "1280x720", "1080p": "1920x1080"}
RATE = 30
CLIP_SECONDS = 100  # of the file of which clips are taken; its key frames are 250 apart
MEMORY = 200 * 1024  # KiB
LONG_SIZE, LONG_RATE, LONG_SECONDS = "640x360", 25, 60  # of the film that is repeated for two hours


def made(name: str, *words: str) -> Path:
    """A file that the ffmpeg command makes once."""
    path = OUTPUT / "media" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial_path = path.with_name("partial-" + path.name)
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


def soundfile(row: Row) -> list[Contender]:
    """Alone in a list; none, and a note, where it cannot be had."""
    found = peers.soundfile()
    if isinstance(found, Contender):
        return [found]
    row.notes.append(f"Not measured: soundfile: {found}")
    return []


def cost(outcomes: list[Outcome]) -> list[float]:
    return [o.result["cpu_s"] / o.result["items"] for o in outcomes]


def compare(context: Context, row: Row, work: str, what: dict[str, tuple[Path, dict[str, object]]],
            others: Sequence[Contender], ways: Mapping[str, bool] = MappingProxyType({})) -> dict[str, list[Outcome]]:  # fmt: skip
    """Everyone does each of `what`, and we do it in other `ways`, too: CPU time over that of the best of the others.

    ways: whether the target is theirs, too.
    """
    everyone, site = rivals(context, others, row)
    tasks = {}
    for title, (path, options) in what.items():
        for who in everyone:
            where = site if who is TORCHCODEC else None
            given = {**options, "path": path}
            tasks[f"{title}: {who.title}"] = partial(context.stages, who.python, who.package, work, given, where)
        for way in ways:
            tasks[f"{title}: {everyone[0].title}, {way}"] = partial(
                context.stages, everyone[0].python, everyone[0].package, work, {**options, "path": path, "kind": way}
            )
    ours = everyone[0].title
    rest = {t for t in tasks if f": {ours}" not in t}
    results = interleave(context.effort.rounds, able(tasks, rest, row.notes), row.name)
    save_raw(row.name, outcomes_json(results))
    for name, outcomes in results.items():
        wall = estimate([o.result["seconds"] / o.result["items"] for o in outcomes])
        peak = max(int(o.result.get("peak_kib", 0)) for o in outcomes)
        row.lines.append([name, estimate(cost(outcomes)).text(2, 1e3), wall.text(2, 1e3), f"{peak / 1024:.0f}" if peak else ""])
    for title in what:
        found = [cost(o) for name, o in results.items() if name in rest and name.startswith(f"{title}: ")]
        if not found:
            continue
        best = min(found, key=lambda costs: estimate(costs).median)
        for way in ("", *(f", {way}" for way, aims in ways.items() if aims)):
            ratio = paired_ratio(cost(results[f"{title}: {ours}{way}"]), best)
            row.targets.append(no_worse(f"{title}{way}: CPU time over the best of the others", ratio))
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
    what: dict[str, tuple[Path, dict[str, object]]] = {"clips": (path, {"items": CLIP_SECONDS * RATE})}
    compare(context, row, "media.clips", what, [], {"planned": True, "unplanned": False})
    row.notes.append("Planned: `VideoReader.plan`, unplanned: `get_frames_at`; both give one clip after the other, in random order.")
    return [row]


def long_film() -> tuple[Path, Path]:
    """Two hours: a minute again and again, key frames 2 s apart; and the minute."""
    picture = f"testsrc2=size={LONG_SIZE}:rate={LONG_RATE}:duration={LONG_SECONDS}"
    coding = ("-c:v", "libx264", "-g", str(2 * LONG_RATE), "-crf", "45", "-pix_fmt", "yuv420p")
    minute = made(f"minute-{LONG_SIZE}.mp4", "-f", "lavfi", "-i", picture, *coding)
    times = 2 * 3600 // LONG_SECONDS
    return made(f"hours-{LONG_SIZE}.mp4", "-stream_loop", str(times - 1), "-i", str(minute), "-c", "copy"), minute


def measure_long(context: Context) -> list[Row]:
    row = Row("clips-2h", "A video of two hours by clips of 16 frames, 30 s apart", ["who", "MiB at most", "s", "frames decoded"])
    ours = context.pipelines[0]
    path, minute = long_film()
    options = {"path": path, "kind": minute, "items": 2 * 3600 * LONG_RATE, "seconds": LONG_SECONDS}
    work = partial(context.stages, ours.python, ours.package, "media.long", options)
    results = interleave(min(3, context.effort.rounds), {ours.title: work}, row.name)
    save_raw(row.name, outcomes_json(results))
    done = results[ours.title]
    peak = max(int(o.result["peak_kib"]) for o in done) / 1024
    seconds = estimate([o.result["seconds"] for o in done])
    row.lines.append([ours.title, f"{peak:.0f}", seconds.text(1), f"{done[0].result['decoded']:,}"])
    row.targets.append(most("memory of the whole process", MEMORY / 1024, peak, f"{peak:.0f} MiB", " MiB"))
    return [row]


def measure_audio(context: Context) -> list[Row]:
    row = Row("audio", "10 s of stereo decoded to float32", ["file", "CPU-ms a file", "ms a file", ""])
    items = max(5, round(100 * context.effort.python_items / 1_000_000))
    what: dict[str, tuple[Path, dict[str, object]]] = {kind: (music(kind), {"items": items}) for kind in ("flac", "mp3")}
    compare(context, row, "media.audio", what, soundfile(row))
    return [row]
