# SPDX-License-Identifier: BSD-2-Clause
"""DALI's CPU pipeline: its own reader, fused decoding and cropping, antialiased resizing."""

from collections.abc import Iterator
from typing import Any

import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def

from bench.job import SIZE, Job, epoch_numbers


@pipeline_def  # type: ignore[untyped-decorator]
def graph(job: Job) -> Any:
    data, labels = fn.readers.file(
        file_root=job.root,
        random_shuffle=job.shuffle,
        shuffle_after_epoch=False,
        pad_last_batch=True,
        name="reader",
    )
    if job.geometry == "random":
        images = fn.decoders.image_random_crop(
            data,
            device="cpu",
            output_type=types.RGB,
            random_area=[0.08, 1.0],
            random_aspect_ratio=[3 / 4, 4 / 3],
            num_attempts=10,
        )
    else:
        images = fn.decoders.image(data, device="cpu", output_type=types.RGB)
    images = fn.resize(
        images,
        resize_x=SIZE,
        resize_y=SIZE,
        interp_type=types.INTERP_LINEAR,
        antialias=True,
    )
    if job.geometry == "random":
        images = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))
    return images, labels


def batches(job: Job) -> Iterator[tuple[Any, Any]]:
    pipe = graph(
        job,
        batch_size=job.batch,
        num_threads=job.threads,
        device_id=None,
        seed=0,
        prefetch_queue_depth=2,
    )
    pipe.build()
    count = int(pipe.reader_meta("reader")["epoch_size"])
    for _ in epoch_numbers(job.epochs):
        for at in range(0, count, job.batch):
            images, labels = pipe.run()
            n = min(job.batch, count - at)
            yield images.as_array()[:n], labels.as_array()[:n, 0].tolist()
