#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sound files of several lengths, cut into windows of one second by a generator."""

import array
import io
import math
import wave
from collections.abc import Iterator

from stoker.pipeline import PipelineBuilder

RATE = 8000


def tone(seconds: float, pitch: float) -> bytes:
    samples = array.array(
        "h", (int(20000 * math.sin(2 * math.pi * pitch * i / RATE)) for i in range(int(seconds * RATE)))
    )
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.tobytes())
    return file.getvalue()


def windows(data: bytes) -> Iterator[array.array]:
    """Whole seconds; the rest of the file is left out."""
    with wave.open(io.BytesIO(data)) as file:
        while len(frames := file.readframes(RATE)) == 2 * RATE:
            yield array.array("h", frames)


def loudness(window: array.array) -> float:
    return math.sqrt(sum(x * x for x in window) / len(window))


def main() -> None:
    files = [tone(0.5 + i % 4, 220 + 20 * i) for i in range(12)]
    pipeline = (
        PipelineBuilder()
        .add_source(files)
        .pipe(windows)
        .pipe(loudness)
        .aggregate(4)
        .add_sink(3)
        .build(num_threads=2)
    )
    with pipeline.auto_stop():
        for batch in pipeline:
            print(" ".join(f"{value:.3f}" for value in batch))


if __name__ == "__main__":
    main()
