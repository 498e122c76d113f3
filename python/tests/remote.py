"""What the tests run in workers.  It imports little: every worker imports it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path


class Count:
    """0 to n - 1, each as make(i)."""

    def __init__(self, n: int, make=None) -> None:
        self.n = n
        self.make = make

    def __call__(self) -> Count:
        return self

    def __iter__(self) -> Iterator[object]:
        for i in range(self.n):
            yield i if self.make is None else self.make(i)


def blob(i: int, size: int = 10_000) -> bytes:
    return bytes([i % 256]) * size


def generator() -> Iterator[int]:
    yield from range(3)


def fail(*_: object) -> None:
    raise ValueError("it is broken")


def unpicklable(i: int) -> object:
    return (i, threading.Lock()) if i == 2 else i


def die(i: int) -> object:
    if i == 2:
        os._exit(3)
    return i


def killed(i: int) -> object:
    if i == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return i


def fail_at_2(i: int) -> object:
    if i == 2:
        fail()
    return i


def note(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(f"{text}\n")


class Noting(Count):
    """Says in a file which items it began, and when it was closed."""

    def __init__(self, n: int, path: str) -> None:
        super().__init__(n)
        self.path = path

    def __iter__(self) -> Iterator[object]:
        try:
            for i in range(self.n):
                note(self.path, f"{i}")
                yield i
        finally:
            note(self.path, "closed")


class Gated(Count):
    """Item 2 waits until somebody opens the fifo for writing."""

    def __init__(self, n: int, fifo: str) -> None:
        super().__init__(n)
        self.fifo = fifo

    def __iter__(self) -> Iterator[object]:
        for i in range(self.n):
            if i == 2:
                Path(self.fifo).read_bytes()
            yield i


class Orphaning(Count):
    """Leaves a child behind that keeps everything open which was inherited."""

    def __iter__(self) -> Iterator[object]:
        pid = os.fork()
        if pid == 0:
            signal.pause()  # until the test, which has the number, kills it
        yield pid
        os.kill(os.getpid(), signal.SIGKILL)


class Info:
    """The worker itself."""

    def __call__(self) -> Info:
        return self

    def __iter__(self) -> Iterator[object]:
        yield os.getpid()
        yield sorted(name for name in ("numpy", "torch") if name in sys.modules)


def remember(text: str) -> None:
    os.environ["REMEMBERED"] = os.environ.get("REMEMBERED", "") + text


class Remembered:
    def __iter__(self) -> Iterator[str]:
        yield os.environ["REMEMBERED"]


def arrays(i: int) -> object:
    import numpy as np

    return {
        "id": i,
        "whole": np.full((64, 64), i, np.int32),
        "part": np.arange(20_000, dtype=np.int64).reshape(100, 200)[:, ::2] + i,
        "view": np.arange(20_000, dtype=np.float32).reshape(100, 200)[:, ::2],
        "small": np.full(3, i),
        "nested": [(np.full(2048, i, ">u4"), bytes([i]) * 5000), bytearray([i]) * 6000],
        "memory": memoryview(bytes([i]) * 7000),
    }


def tensors(i: int) -> object:
    import torch

    return [
        torch.full((64, 64), i, dtype=torch.bfloat16),
        torch.full((2048,), i, dtype=torch.complex64),
        torch.ones(5000, dtype=torch.bool),
        torch.arange(4096.0).reshape(64, 64).t() + i,
        torch.ones(3000, requires_grad=True),
        torch.ones(2),
    ]


def shared_bytes(i: int) -> object:
    data = bytearray(b"x" * 5000)
    return [data, data, bytes(data)]


# --- pipelines ---


class Plain:
    """A pipeline as simple as it gets: one item after the other, through the stages' executors."""

    def __init__(self, config, **build) -> None:
        self.config = config
        self.stopped = False

    def auto_stop(self) -> object:
        from contextlib import closing

        return closing(self)

    def close(self) -> None:
        self.stopped = True

    def __iter__(self):
        for item in self.config.src.source:
            for stage in self.config.pipes:
                executor = stage.executor
                item = stage.op(item) if executor is None else executor.submit(stage.op, item).result()
            yield item


def build_plain() -> None:
    """An initializer: what is measured is the way to the worker and back, not the engine."""
    import stoker.pipeline._build as build

    build.build_pipeline = Plain


class Stateful:
    """Counts its passes."""

    def __init__(self) -> None:
        self.passes = 0

    def __iter__(self) -> Iterator[object]:
        self.passes += 1
        yield from range(100 * self.passes, 100 * self.passes + 4)


def who(item: object) -> object:
    return item, os.getpid(), os.getppid()


def thread_name(item: object) -> str:
    return threading.current_thread().name


def draw(item: object) -> object:
    import random

    import numpy as np

    return random.random(), np.random.random()


def exit_at_2(item: object) -> object:
    if item == 102:
        os._exit(4)
    return item


def lock_at_2(item: object) -> object:
    return threading.Lock() if item == 102 else item


def error_text(op, item: object) -> object:
    """For stages on executors whose error is to be looked at."""
    return op(item)
