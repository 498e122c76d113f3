"""What the tests run in regions.  It imports little: every worker imports it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path


def same(x: object) -> object:
    return x


def double(x: int) -> int:
    return 2 * x


def add(x: int, y: int = 1) -> int:
    return x + y


def mark(x: object) -> tuple[object, int]:
    return x, os.getpid()


def parents(x: object) -> tuple[object, int, int]:
    return x, os.getpid(), os.getppid()


def is_daemon(x: object) -> bool:
    import multiprocessing

    return multiprocessing.current_process().daemon


async def later(x: int) -> int:
    await asyncio.sleep(0)
    return x + 100


def twice(x: int) -> Iterator[int]:
    yield x
    yield x


async def thrice(x: int) -> AsyncIterator[int]:
    for _ in range(3):
        yield x


def odd(x: int) -> int:
    return x % 2


async def odd_later(x: int) -> int:
    return x % 2


def even_only(x: int) -> int | None:
    return None if x % 2 else x


def fail_at_3(x: int) -> int:
    if x == 3:
        raise ValueError("it is three")
    return x


def fail_odd(x: int) -> int:
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x


class Picky(Exception):
    """Does not pickle."""

    def __init__(self) -> None:
        super().__init__("picky", threading.Lock())


def fail_picky(x: int) -> int:
    raise Picky


def lock_at_3(x: int) -> object:
    return threading.Lock() if x == 3 else x


def killed_at_3(x: int) -> int:
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def exit_at_3(x: int) -> int:
    if x == 3:
        os._exit(5)
    return x


def gate(x: int, fifo: str) -> int:
    """Waits until somebody opens the fifo for writing."""
    Path(fifo).read_bytes()
    return x


def thread_name(x: object) -> str:
    return threading.current_thread().name


def meet(x: int, n: int, folder: str) -> int:
    """Returns when n calls are at it at once."""
    (Path(folder) / str(x)).touch()
    deadline = time.monotonic() + 60
    while len(os.listdir(folder)) < n:
        if time.monotonic() > deadline:
            raise TimeoutError
        os.sched_yield()
    return x


_REMEMBERED: list[object] = []


def remember(*what: object) -> None:
    _REMEMBERED.extend(what)


def remembered(x: object) -> list[object]:
    return list(_REMEMBERED)


def broken(*_: object) -> None:
    raise ValueError("it is broken")




def use_hooks() -> None:
    """An initializer: the workers' own default hook class."""
    from contextlib import asynccontextmanager

    from stoker.pipeline import TaskHook, config

    class Remembering(TaskHook):
        def __init__(self, info: object, interval: float = -1) -> None:
            pass

        @asynccontextmanager
        async def task_hook(self, input_item=None):  # type: ignore[no-untyped-def]
            remember(input_item)
            yield

    config.set_default_hook_class(Remembering)


def fail_hook(info: object) -> list[object]:
    raise AssertionError("hooks do not reach a region, and the region itself has none")


def arrays(x: int) -> object:
    import numpy as np

    return np.full((300, 400), x, np.float32)


def total(a) -> tuple[float, bool]:
    return float(a.sum()), a.flags.writeable
