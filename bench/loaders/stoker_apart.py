# SPDX-License-Identifier: BSD-2-Clause
"""Stoker's native lane in a process of its own that answers each request with one byte.

What the loop loses beside it is lost to the machine (what two processors share), since nothing of
a loader is in the loop's process: the control of the row `neighbour`.
"""

import os
import socket
from collections.abc import Iterator

from bench.job import Job


def serve(job: Job, ends: socket.socket) -> None:
    from bench.loaders import stoker_lane

    found = stoker_lane.batches(job)
    while ends.recv(1):
        next(found)
        ends.sendall(b"1")
    found.close()  # type: ignore[attr-defined]


def batches(job: Job) -> Iterator[int]:
    """The number of each batch, when the other process has it."""
    here, there = socket.socketpair()
    child = os.fork()  # no thread has been made yet
    if child == 0:
        here.close()
        try:
            serve(job, there)
        finally:
            os._exit(0)
    there.close()
    number = 0
    try:
        while True:
            here.sendall(b"1")
            if not here.recv(1):
                raise RuntimeError("the loader's process ended")
            yield number
            number += 1
    finally:
        here.close()
        os.waitpid(child, 0)
