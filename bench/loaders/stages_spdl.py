# SPDX-License-Identifier: BSD-2-Clause
"""Small items through Python stages of SPDL, for the noisy neighbour."""

from collections.abc import Iterator

from bench.job import Job
from bench.works.flow import endless


def batches(job: Job) -> Iterator[int]:
    del job
    return endless("spdl")
