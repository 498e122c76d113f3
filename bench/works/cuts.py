# SPDX-License-Identifier: BSD-2-Clause
"""Clips out of the middle of files, in batches: the native lane, and a loop over others' functions; one thread each."""

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.works.media import Array, cpu_seconds, imported, near, raw_frames, samples_of
from bench.works.options import Options, Result, check

BATCH = 16  # clips
FRAMES, SIDE = 16, 112  # of a clip
SOUND = 3.0  # seconds of a clip


def by_lane(op: Any, files: Sequence[str], name: str) -> Iterator[Array]:
    stoker = importlib.import_module("stoker")
    ops, source = importlib.import_module("stoker.ops"), importlib.import_module("stoker.source")
    builder = stoker.PipelineBuilder().add_source(source.List(files=[name], **{name: files}))
    pipeline = builder.pipe(ops.read()).pipe(op).batch(BATCH).add_sink(2).build(num_threads=1)
    with pipeline.auto_stop():
        for batch in pipeline:
            yield np.asarray(batch[name])


def by_loop(cut: Callable[[str], Any], collate: Callable[[list[Any]], Array], files: Sequence[str]) -> Iterator[Array]:
    for at in range(0, len(files), BATCH):
        yield collate([cut(file) for file in files[at : at + BATCH]])


def batches_of_video(o: Options, files: Sequence[str], start: int, rate: int) -> Iterator[Array]:
    if o.package == "stoker":
        ops = importlib.import_module("stoker.ops")
        return by_lane(ops.decode_video(FRAMES, size=SIDE, where="middle"), files, "video")
    if o.package == "torchcodec":
        decoders, torch = importlib.import_module("torchcodec.decoders"), importlib.import_module("torch")
        smaller = importlib.import_module("torchcodec.transforms").Resize((SIDE, SIDE))

        def cut(file: str) -> Any:
            how = {"dimension_order": "NHWC", "num_ffmpeg_threads": 1, "seek_mode": "approximate"}
            return decoders.VideoDecoder(file, transforms=[smaller], **how).get_frames_in_range(start, start + FRAMES).data

        return by_loop(cut, lambda clips: torch.stack(clips).numpy(), files)
    io = importlib.import_module(f"{o.package}.io")
    window = ((start - 0.5) / rate, (start + FRAMES - 0.5) / rate)
    scale = {"scale_width": SIDE, "scale_height": SIDE, "scale_mode": None, "scale_algo": "bilinear"}
    text = io.get_video_filter_desc(timestamp=window, pix_fmt="rgb24", **scale)
    return by_loop(
        lambda file: io.decode_packets(io.demux_video(file, timestamp=window), filter_desc=text),
        lambda clips: io.to_numpy(io.convert_frames(clips)),
        files,
    )


def batches_of_sound(o: Options, files: Sequence[str], start: float) -> Iterator[Array]:
    if o.package == "stoker":
        return by_lane(importlib.import_module("stoker.ops").decode_audio(SOUND, where="middle"), files, "audio")
    if o.package == "soundfile":
        soundfile = importlib.import_module("soundfile")

        def read(file: str) -> Array:
            with soundfile.SoundFile(file) as opened:
                opened.seek(round(start * opened.samplerate))
                samples: Array = opened.read(round(SOUND * opened.samplerate), dtype="float32").T
                return samples

        return by_loop(read, np.stack, files)
    if o.package == "torchcodec":
        decoders, torch = importlib.import_module("torchcodec.decoders"), importlib.import_module("torch")

        def cut(file: str) -> Any:
            return decoders.AudioDecoder(file).get_samples_played_in_range(start, start + SOUND).data

        return by_loop(cut, lambda clips: torch.stack(clips).numpy(), files)
    io = importlib.import_module(f"{o.package}.io")
    return by_loop(
        lambda file: io.load_audio(file, timestamp=(start, start + SOUND)),
        lambda clips: np.stack([io.to_numpy(clip) for clip in clips]),
        files,
    )


def measured(o: Options, batches: Callable[[], Iterator[Array]], shape: tuple[int, ...]) -> tuple[Result, Array, Array]:
    """And the first and the last clip."""
    imported(o.package)
    count = 0
    first = last = np.empty(0)
    cpu, start = cpu_seconds(), time.perf_counter()
    for batch in batches():
        check(batch.shape[1:] == shape, f"a batch of {batch.shape}")
        first = first if count else batch[0].copy()
        last = batch[-1]
        count += len(batch)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    check(count == o.items, f"{count} of {o.items} clips")
    return {"items": o.items, "seconds": seconds, "cpu_s": cpu}, first, last


def listed(o: Options) -> list[str]:
    """`items` files of the folder, again and again; beside them may lie what they are compared with."""
    there = sorted(str(path) for path in Path(o.path).iterdir() if path.suffix in {".mp4", ".flac", ".mp3"})
    return [there[i % len(there)] for i in range(o.items)]


def video(o: Options) -> Result:
    """Clips of 16 frames, 112 x 112, of files of `seconds`, at 25 frames a second."""
    files, rate = listed(o), 25
    start = (round(o.seconds) * rate - FRAMES) // 2
    result, *got = measured(o, lambda: batches_of_video(o, files, start, rate), (FRAMES, SIDE, SIDE, 3))
    wanted = [raw_frames(file, True, range(start, start + FRAMES), side=SIDE) for file in (files[0], files[-1])]
    near(np.concatenate(got), np.concatenate(wanted), 6.0)
    return result


def audio(o: Options) -> Result:
    """Clips of 3 s of files of `seconds` of stereo, at 44.1 kHz; nothing is resampled."""
    files, rate = listed(o), 44100
    start, n = (o.seconds - SOUND) / 2, round(SOUND * rate)
    result, *got = measured(o, lambda: batches_of_sound(o, files, start), (2, n))
    for file, clip in zip((files[0], files[-1]), got, strict=True):
        wanted = samples_of(file)[:, round(start * rate) :][:, :n]
        check(float(np.abs(clip - wanted).mean()) < 1e-3, "other samples")
    return result
