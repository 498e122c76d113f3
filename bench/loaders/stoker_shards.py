# SPDX-License-Identifier: BSD-2-Clause
"""Stoker's native lane, out of tar shards."""

from collections.abc import Iterator
from typing import Any

from stoker import source

from bench.job import Job
from bench.loaders.stoker_lane import read


def batches(job: Job) -> Iterator[tuple[Any, Any]]:
    yield from read(job, source.Tar(f"{job.root}/*.tar", labels="cls", shuffle=job.shuffle, epochs=job.epochs))
