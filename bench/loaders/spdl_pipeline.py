# SPDX-License-Identifier: BSD-2-Clause
"""SPDL's own pipeline: spdl.pipeline moves the samples, spdl.io decodes and resizes them.

One image a task; FFmpeg's crop, scale and hflip filters do the geometry, and convert_frames
makes the batch.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import spdl.io
from spdl.pipeline import PipelineBuilder

from bench.job import SIZE, Job, epoch_numbers, epoch_order, geometry, listing

Sample = tuple[str, int, int, int]  # path, label, index, epoch


def source(job: Job, files: list[tuple[str, int]]) -> Iterator[list[Sample]]:
    for epoch in epoch_numbers(job.epochs):
        order = epoch_order(len(files), epoch, job.shuffle)
        for at in range(0, len(order), job.batch):
            yield [(*files[i], i, epoch) for i in order[at : at + job.batch]]


def decode(job: Job, sample: Sample) -> tuple[Any, int]:
    path, label, index, epoch = sample
    packets = spdl.io.demux_image(path)
    g = geometry(job, index, epoch, packets.width, packets.height)
    steps = [
        f"crop={g.width}:{g.height}:{g.x}:{g.y}:exact=1",
        f"scale={SIZE}:{SIZE}:flags=bilinear",
        *(["hflip"] if g.flip else []),
        "format=rgb24",
    ]
    return spdl.io.decode_packets(packets, filter_desc=",".join(steps)), label


def collate(samples: list[tuple[Any, int]]) -> tuple[Any, list[int]]:
    buffer = spdl.io.convert_frames([frames for frames, _ in samples])
    return buffer, [label for _, label in samples]


def batches(job: Job) -> Iterator[tuple[Any, list[int]]]:
    files = listing(job.root)
    pipeline = (
        PipelineBuilder()
        .add_source(source(job, files))
        .disaggregate()
        .pipe(
            lambda sample: decode(job, sample),
            concurrency=job.threads,
            output_order="completion" if job.shuffle else "input",
        )
        .aggregate(job.batch)
        .pipe(collate)
        .add_sink(3)
        .build(num_threads=job.threads, max_failures=0)
    )
    with pipeline.auto_stop():
        for buffer, labels in pipeline:
            yield np.asarray(buffer), labels
