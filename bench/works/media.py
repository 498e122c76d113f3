# SPDX-License-Identifier: BSD-2-Clause
"""Video and audio files decoded by one package or another, one decoder thread each."""

import hashlib
import importlib
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.works.options import Options, Result, check

Array = np.ndarray[Any, np.dtype[Any]]
PACKETS = 8  # of video, in one step of those who decode in steps
SMALL = 256  # pixels, of the scaled kind
CLIP = 16  # frames
FFMPEG = ("ffmpeg", "-v", "error", "-nostdin", "-filter_threads", "1")


def imported(package: str) -> None:
    """What is imported once is not measured."""
    names = {"torchcodec": ("torchcodec.decoders", "torchcodec.transforms"), "soundfile": ("soundfile",), "ffmpeg": ()}
    for name in names.get(package, (f"{package}.io", f"{package}.io.utils")):
        importlib.import_module(name)
    if package in {"spdl", "stoker"}:
        importlib.import_module(f"{package}.io.utils").get_ffmpeg_versions()


def cpu_seconds() -> float:
    """Of this process and of the commands that it ran."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def once(path: str, command: Sequence[str]) -> bytes:
    """What a command prints, kept beside the file that it reads: contenders of all rounds are compared with the same."""
    kept = Path(f"{path}.{hashlib.sha256(repr(command).encode()).hexdigest()[:16]}.raw")
    if not kept.exists():
        done = subprocess.run(command, capture_output=True, check=True)
        partial = kept.with_suffix(".partial")
        partial.write_bytes(done.stdout)
        partial.rename(kept)
    return kept.read_bytes()


def raw_frames(path: str, small: bool, indices: Sequence[int], height: int = 0, side: int = SMALL) -> Array:
    """Some frames as the ffmpeg command gives them; by default of 720p or 1080p.  `small`: `side` pixels wide and high."""
    chosen = "+".join(f"eq(n,{i})" for i in indices)
    scale = f",scale={side}:{side}" if small else ""
    command = [*FFMPEG, "-i", path, "-vf", f"select='{chosen}'{scale}", "-vsync", "0"]
    pixels = np.frombuffer(once(path, [*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]), np.uint8)
    if not height:
        height = side if small else {1280 * 720: 720, 1920 * 1080: 1080}[pixels.size // 3 // len(indices)]
    return pixels.reshape(len(indices), height, -1, 3)


def near(got: Array, wanted: Array, most: float) -> None:
    """Scalers and their chroma differ, another frame differs by more."""
    check(got.shape == wanted.shape, f"{got.shape}, not {wanted.shape}")
    for one, other in zip(got, wanted, strict=True):
        apart = float(np.abs(one.astype(np.int16) - other).mean())
        check(apart <= most, f"{apart:.1f} of 255 from the frame that ffmpeg gives")


def by_pipeline_package(package: str, path: str, small: bool) -> Iterator[Array]:
    """Stoker and SPDL have the same names."""
    io = importlib.import_module(f"{package}.io")
    size = {"scale_width": SMALL, "scale_height": SMALL, "scale_mode": None} if small else {}
    demuxer = io.Demuxer(path)
    decoder = io.Decoder(demuxer.video_codec, filter_desc=io.get_video_filter_desc(pix_fmt="rgb24", **size))
    for packets in demuxer.streaming_demux(demuxer.video_stream_index, num_packets=PACKETS):
        for frames in decoder.streaming_decode_packets(packets):
            yield io.to_numpy(io.convert_frames(frames))
    rest = decoder.flush()
    for frames in [rest] if hasattr(rest, "num_frames") else rest or ():
        yield io.to_numpy(io.convert_frames(frames))


def by_torchcodec(path: str, small: bool) -> Iterator[Array]:
    decoders = importlib.import_module("torchcodec.decoders")
    more = {}
    if small:
        more["transforms"] = [importlib.import_module("torchcodec.transforms").Resize((SMALL, SMALL))]
    decoder = decoders.VideoDecoder(path, dimension_order="NHWC", num_ffmpeg_threads=1, seek_mode="approximate", **more)
    for start in range(0, len(decoder), PACKETS):
        yield decoder.get_frames_in_range(start, min(start + PACKETS, len(decoder))).data.numpy()


def by_ffmpeg(path: str, small: bool) -> None:
    scale = ["-vf", f"scale={SMALL}:{SMALL}"] if small else []
    subprocess.run([*FFMPEG, "-threads", "1", "-i", path, *scale, "-pix_fmt", "rgb24", "-f", "null", "-"], check=True)


def video(o: Options) -> Result:
    """All `items` frames of a file as RGB24; `kind` small: of 256 x 256.  Three of them are compared."""
    small = o.kind == "small"
    compared = [0, o.items // 2, o.items - 1]
    wanted = raw_frames(o.path, small, compared)
    imported(o.package)
    kept: list[Array] = []
    count = 0
    cpu, start = cpu_seconds(), time.perf_counter()
    if o.package == "ffmpeg":
        by_ffmpeg(o.path, small)
    else:
        torch = o.package == "torchcodec"
        for frames in by_torchcodec(o.path, small) if torch else by_pipeline_package(o.package, o.path, small):
            kept += [frames[i - count].copy() for i in compared if 0 <= i - count < len(frames)]
            count += len(frames)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    if o.package != "ffmpeg":
        check(count == o.items, f"{count} of {o.items} frames")
        near(np.stack(kept), wanted, 6.0 if small else 3.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"items": o.items, "seconds": seconds, "cpu_s": cpu, "peak_kib": peak}


def by_reader(kind: str, path: str) -> Callable[[list[list[int]]], list[Array]]:
    """One clip after the other out of one reader."""
    io = importlib.import_module("stoker.io")

    def get(wanted: list[list[int]]) -> list[Array]:
        with io.VideoReader(path) as reader:
            clips = reader.plan(wanted) if kind == "planned" else map(reader.get_frames_at, wanted)
            return [io.to_numpy(clip) for clip in clips]

    return get


def clips_of(package: str, path: str) -> Callable[[list[list[int]]], list[Array]]:
    if package == "torchcodec":
        decoders = importlib.import_module("torchcodec.decoders")

        def get(wanted: list[list[int]]) -> list[Array]:
            decoder = decoders.VideoDecoder(path, dimension_order="NHWC", num_ffmpeg_threads=1, seek_mode="approximate")
            data = decoder.get_frames_at([i for clip in wanted for i in clip]).data.numpy()
            return [data[k : k + CLIP] for k in range(0, len(data), CLIP)]

        return get
    io = importlib.import_module(f"{package}.io")

    def sample(wanted: list[list[int]]) -> list[Array]:
        indices = sorted({i for clip in wanted for i in clip})
        frames = dict(zip(indices, io.sample_decode_video(io.demux_video(path), indices), strict=True))
        return [io.to_numpy(io.convert_frames([frames[i] for i in clip])) for clip in wanted]

    return sample


def clips(o: Options) -> Result:
    """16 frames at 10 places of a file of `items` frames; two clips are compared."""
    draw = np.random.default_rng(7)
    starts = [int(s) for s in draw.integers(0, o.items - CLIP, 10)]
    wanted = [list(range(s, s + CLIP)) for s in starts]
    expected = [raw_frames(o.path, False, wanted[k]) for k in (0, -1)]
    get = by_reader(o.kind, o.path) if o.kind else clips_of(o.package, o.path)
    imported(o.package)
    cpu, start = cpu_seconds(), time.perf_counter()
    got = get(wanted)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    near(np.concatenate([got[0], got[-1]]), np.concatenate(expected), 3.0)
    return {"items": len(wanted) * CLIP, "seconds": seconds, "cpu_s": cpu}


def long(o: Options) -> Result:
    """Of a film of `items` frames, which is the film `kind` of `seconds` again and again, a clip every 30 s.

    The first and the last frame of three clips are compared, when the memory was measured.
    """
    io = importlib.import_module(f"{o.package}.io")
    rate, period = o.items // 7200, o.items // 7200 * int(o.seconds)
    wanted = [list(range(s, s + CLIP)) for s in range(0, o.items - CLIP, 30 * rate + 7)]
    kept: dict[int, Array] = {}
    start = time.perf_counter()
    with io.VideoReader(o.path) as reader:
        check(len(reader) == o.items, f"{len(reader)} of {o.items} frames")
        for k, clip in enumerate(reader.plan(wanted)):
            if k in {0, len(wanted) // 2, len(wanted) - 1}:
                kept[k] = io.to_numpy(clip)[[0, -1]]
        decoded = reader.stats()["num_decoded"]
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k, frames in kept.items():
        for index, frame in zip((wanted[k][0], wanted[k][-1]), frames, strict=True):
            near(frame[None], raw_frames(o.kind, False, [index % period], len(frame)), 3.0)
    return {"items": len(wanted) * CLIP, "seconds": seconds, "peak_kib": peak, "decoded": decoded}


def audio_reader(package: str, path: str) -> Callable[[], Array]:
    """A file as float32 of (channels, time)."""
    if package == "soundfile":
        import soundfile

        return lambda: soundfile.read(path, dtype="float32")[0].T
    if package == "torchcodec":
        decoders = importlib.import_module("torchcodec.decoders")
        return lambda: decoders.AudioDecoder(path).get_all_samples().data.numpy()
    io = importlib.import_module(f"{package}.io")
    return lambda: io.to_numpy(io.load_audio(path))


def samples_of(path: str) -> Array:
    """(2, time) of float32, as the ffmpeg command gives them."""
    command = [*FFMPEG, "-i", path, "-f", "f32le", "-c:a", "pcm_f32le", "-"]
    return np.frombuffer(once(path, command), np.float32).reshape(-1, 2).T


def audio(o: Options) -> Result:
    """`items` times a file as float32; the last is compared with what the ffmpeg command gives."""
    wanted = samples_of(o.path)
    read = audio_reader(o.package, o.path)
    got = read()
    cpu, start = cpu_seconds(), time.perf_counter()
    for _ in range(o.items):
        got = read()
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    shorter = min(got.shape[1], wanted.shape[1])  # some keep the padding of an encoder
    check(wanted.shape[1] - shorter <= 4096 and got.shape[1] - shorter <= 4096, f"{got.shape}, not {wanted.shape}")
    check(float(np.abs(np.asarray(got)[:, :shorter] - wanted[:, :shorter]).mean()) < 1e-3, "other samples")
    return {"items": o.items, "seconds": seconds, "cpu_s": cpu}
