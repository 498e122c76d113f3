"""Tasks on an event loop whose errors are logged, and those that run beside a pipeline."""

from __future__ import annotations

import asyncio
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from . import config
from ._log import in_one_line, place_of
from ._loop import Escaped
from ._report import LOGGER

__all__ = ["BackgroundTask", "BackgroundTaskFactory", "background", "create_task", "log_error"]

T = TypeVar("T")

_MAX_KINDS = 256  # kinds of errors that are counted at a time, for one event loop
_END_S = 5.0  # how long a background task may take to end


def create_task(
    coro: Coroutine[Any, Any, T],
    name: str | None = None,
    log_cancelled: bool = False,
    suppress_repeated_logs: bool = False,
    suppression_threshold: int = 5,
    suppression_warning_interval: int = 100,
) -> asyncio.Task[T]:
    """asyncio.create_task(), of which the error is logged when it ends.

    `log_cancelled`: logs a cancellation, too.
    `suppress_repeated_logs`: of errors alike (name of the task, type, place in the code) on one event loop
    only the first `suppression_threshold` are logged, and one line for every `suppression_warning_interval`
    after them.
    """
    task = asyncio.create_task(coro, name=name)
    limits = (suppression_threshold, suppression_warning_interval) if suppress_repeated_logs else None
    task.add_done_callback(partial(_log_end, log_cancelled, limits))
    return task


def _log_end(log_cancelled: bool, limits: tuple[int, int] | None, task: asyncio.Task[Any]) -> None:
    name = task.get_name()
    if task.cancelled():
        if log_cancelled:
            LOGGER.warning("[%s] was cancelled", name)
        return
    error = task.exception()
    if error is None:
        return
    if isinstance(error, Escaped):
        error = error.error
    if limits is None:
        log_error(name, error)
        return
    threshold, every = limits
    count = _count(task.get_loop(), (name, type(error), *place_of(error)))
    if count <= threshold:
        log_error(name, error)
    beyond = count - threshold
    if beyond >= 0 and (beyond == 0 or beyond % max(every, 1) == 0):
        LOGGER.warning(
            "[%s] %s: %d errors alike so far; of the next there is a line for each %d",
            name,
            type(error).__name__,
            count,
            max(every, 1),
        )


def log_error(name: str, error: BaseException) -> None:
    """One line if compact logs are wanted (see config.set_compact_log), else with the traceback."""
    if not config.is_compact_log():
        LOGGER.error("[%s] %s: %s", name, type(error).__name__, error, exc_info=error)
        return
    LOGGER.error("[%s] %s", name, in_one_line(error))


_lock = threading.Lock()  # guards everything below: each pipeline has a thread with a loop
_counts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[object, ...], int]] = (
    weakref.WeakKeyDictionary()
)


def _count(loop: asyncio.AbstractEventLoop, kind: tuple[object, ...]) -> int:
    """How many errors of this kind there were on `loop`, this one included."""
    with _lock:
        kinds = _counts.setdefault(loop, {})
        count = kinds.pop(kind, 0) + 1
        kinds[kind] = count  # the last place: the least recent go first
        if len(kinds) > _MAX_KINDS:
            del kinds[next(iter(kinds))]
    return count


class BackgroundTask(ABC):
    """Something that runs beside a pipeline, on its event loop, from its start to its end."""

    __module__ = "stoker.pipeline"

    @abstractmethod
    async def run(self) -> None:
        """Cancelled at the pipeline's end.  An error is logged, and leaves the pipeline alone."""


class BackgroundTaskFactory(Protocol):
    """Makes a background task for each pipeline: a function or a class without parameters."""

    def __call__(self) -> BackgroundTask: ...


@asynccontextmanager
async def background(tasks: Iterable[BackgroundTask | BackgroundTaskFactory]) -> AsyncGenerator[None, None]:
    """Runs background tasks during the block, and cancels those that are left at its end."""
    running = [task for task in map(_start, tasks) if task is not None]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=_END_S)
            for task in late:
                LOGGER.warning("[%s] goes on %g s after it was cancelled", task.get_name(), _END_S)


def _start(task: BackgroundTask | BackgroundTaskFactory) -> asyncio.Task[None] | None:
    name = getattr(task, "__qualname__", type(task).__qualname__)
    try:
        if not isinstance(task, BackgroundTask):
            task = task()
        return create_task(_run(task), name=name)
    except Exception as error:
        log_error(name, error)
        return None


async def _run(task: BackgroundTask) -> None:
    try:
        await task.run()
    except (KeyboardInterrupt, SystemExit) as error:  # which would leave the event loop
        raise Escaped(error) from None
