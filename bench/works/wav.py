# SPDX-License-Identifier: BSD-2-Clause
"""Samples of a WAV file: as they lie in bytes, or from a path as float32 in an array that is used again."""

import importlib
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.works.flow import cpu_seconds
from bench.works.options import Options, Result, check

RATE, SECONDS, CHANNELS = 44_100, 10, 2


def samples() -> Any:
    t = np.arange(RATE * SECONDS) / RATE
    tones = np.stack([np.sin(440 * 2 * np.pi * t), np.sin(660 * 2 * np.pi * t)], axis=1)
    return (30_000 * tones).astype("<i2")


def encoded(array: Any) -> bytes:
    align = 2 * CHANNELS
    fmt = struct.pack("<HHIIHH", 1, CHANNELS, RATE, RATE * align, align, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", array.nbytes) + array.tobytes()
    return b"RIFF" + struct.pack("<I", len(body)) + body


def on_threads(o: Options, call: Callable[[], Any]) -> tuple[list[Any], float, float]:
    """The last result of each thread, and how long all took."""
    last: list[Any] = []

    def work() -> None:
        got = None
        for _ in range(o.items):
            got = call()
        last.append(got)

    threads = [threading.Thread(target=work) for _ in range(o.threads)]
    cpu, start = cpu_seconds(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    check(len(last) == o.threads, f"{len(last)} of {o.threads} threads came to the end")
    return last, seconds, cpu


def load(o: Options) -> Result:
    """`items` calls of load_wav on each of `threads`; the last of each is compared."""
    wanted = samples()
    data = encoded(wanted)
    if o.package == "memoryview":
        last, seconds, cpu = on_threads(o, lambda: memoryview(data))
        check(all(got == data for got in last), "other bytes")
        return {"items": o.items * o.threads, "seconds": seconds, "cpu_s": cpu}
    load_wav = importlib.import_module(f"{o.package}.io").load_wav
    first = np.asarray(load_wav(data))
    check(np.shares_memory(first, np.frombuffer(data, np.uint8)), "a copy")
    last, seconds, cpu = on_threads(o, lambda: load_wav(data))
    for got in [first, *last]:
        check(np.array_equal(np.asarray(got), wanted), "other samples")
    return {"items": o.items * o.threads, "seconds": seconds, "cpu_s": cpu}


def reader(package: str, path: str, out: Any) -> Callable[[], Any]:
    if package == "soundfile":
        import soundfile

        return lambda: soundfile.read(path, dtype="float32", out=out)[0]
    load_wav = importlib.import_module(f"{package}.io").load_wav
    scale = np.float32(1 / 32768)

    def read() -> Any:
        source = path if package == "stoker" else Path(path).read_bytes()
        return np.multiply(np.asarray(load_wav(source)), scale, out=out)

    return read


def to_float(o: Options) -> Result:
    """`items` times a file as float32 from -1 to 1, into one array."""
    wanted = samples()
    out = np.empty((RATE * SECONDS, CHANNELS), np.float32)
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        file.write(encoded(wanted))
        file.flush()
        read = reader(o.package, file.name, out)
        read()
        cpu, start = cpu_seconds(), time.perf_counter()
        for _ in range(o.items):
            read()
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    check(np.array_equal(out, wanted.astype(np.float32) / 32768), "other samples")
    return {"items": o.items, "seconds": seconds, "cpu_s": cpu}
