# SPDX-License-Identifier: BSD-2-Clause
"""Stoker's native lane, read from Python."""

from collections.abc import Iterator
from typing import Any

from stoker import PipelineBuilder, ops, source

from bench.job import SIZE, Job


def batches(job: Job) -> Iterator[tuple[Any, Any]]:
    epochs = None if job.epochs < 0 else job.epochs
    yield from read(job, source.Directory(job.root, labels="dir", shuffle=job.shuffle, seed=0, epochs=epochs))


def read(job: Job, files: source.Source) -> Iterator[tuple[Any, Any]]:
    random = job.geometry == "random"
    pipeline = (
        PipelineBuilder()
        .add_source(files)
        .pipe(ops.read(), concurrency=16)
        .pipe(
            ops.decode_image(
                SIZE,
                SIZE,
                crop="random_resized" if random else None,
                flip=0.5 if random else 0.0,
                quality=job.quality,
            )
        )
        .batch(job.batch)
        .add_sink(3)
        .build(num_threads=job.threads)
    )
    with pipeline.auto_stop():
        for batch in pipeline:
            yield memoryview(batch.image), memoryview(batch.label)
