"""Queues of Python objects between stages, for pipelines that are given a queue class."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TypeVar

from ._info import QueuePerfStats, StageInfo
from ._perf import log_queue
from ._quantile import Durations
from ._report import LOGGER, reporting
from ._sentinels import _EOF, _EPOCH_END, is_eof, is_epoch_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["AsyncQueue", "QueuePerfStats", "StatsQueue", "_EOF", "_EPOCH_END", "is_eof", "is_epoch_end"]

T = TypeVar("T")


class AsyncQueue(asyncio.Queue[T]):
    """A queue at the output of a stage, used on the pipeline's event loop.

    Pipelines make it as `queue_class(info, buffer_size=n)`; beside items it holds the marks that is_eof()
    and is_epoch_end() tell.
    """

    __module__ = "stoker.pipeline"

    def __init__(self, info: StageInfo, *, buffer_size: int = 1) -> None:
        """`buffer_size`: items that it holds, before put() waits."""
        super().__init__(maxsize=buffer_size)
        self.info = info

    def stage_hook(self) -> AbstractAsyncContextManager[None]:
        """An async context manager around the life of the stage that fills the queue."""
        return nullcontext()


class StatsQueue(AsyncQueue[T]):
    """Measures how long put() and get() wait, and logs the sum when the stage ends.  The default queue.

    The marks at the end of an epoch, and of all, are not counted.
    """

    __module__ = "stoker.pipeline"

    def __init__(self, info: StageInfo, *, buffer_size: int = 1, interval: float = -1) -> None:
        """`interval`: seconds between calls of interval_stats_callback; 0 or less for none."""
        super().__init__(info, buffer_size=buffer_size)
        self.interval = interval
        self._put_times = Durations(interval > 0)
        self._get_times = Durations(interval > 0)
        self._num_items = 0
        self._began: float | None = None
        self._empty_since: float | None = None  # None: it is not empty
        self._empty = 0.0  # seconds, without those since _empty_since
        self._reported = (0.0, 0, 0.0)  # elapsed, num_items and seconds empty, at the last report

    def stage_hook(self) -> AbstractAsyncContextManager[None]:
        """Reports while the stage that fills the queue runs, and at its end."""
        return self._reporting()

    @asynccontextmanager
    async def _reporting(self) -> AsyncGenerator[None, None]:
        if self._began is None:
            self._begin()
        try:
            async with reporting(self.interval, self._take, self.interval_stats_callback):
                yield
        finally:
            self._log(self._total())

    def _begin(self) -> None:
        self._began = self._empty_since = time.perf_counter()

    async def put(self, item: T) -> None:
        """As asyncio.Queue's, and counts how long there was no room."""
        if not self.full():
            self.put_nowait(item)
            waited = 0.0
        else:
            start = time.perf_counter()
            await super().put(item)
            waited = time.perf_counter() - start
        if item is not _EOF and item is not _EPOCH_END:
            self._put_times.add(waited)

    async def get(self) -> T:
        """As asyncio.Queue's, and counts how long there was nothing."""
        if not self.empty():
            item = self.get_nowait()
            waited = 0.0
        else:
            start = time.perf_counter()
            item = await super().get()
            waited = time.perf_counter() - start
        if item is not _EOF and item is not _EPOCH_END:
            self._get_times.add(waited)
        return item

    def put_nowait(self, item: T) -> None:
        """As asyncio.Queue's, and sees the first item and the end of emptiness."""
        if self._began is None:
            self._begin()
        super().put_nowait(item)
        if self._empty_since is not None:
            self._empty += time.perf_counter() - self._empty_since
            self._empty_since = None

    def get_nowait(self) -> T:
        """As asyncio.Queue's, and counts the item."""
        item = super().get_nowait()
        if item is not _EOF and item is not _EPOCH_END:
            self._num_items += 1
        if self.empty():
            self._empty_since = time.perf_counter()
        return item

    def _elapsed(self) -> tuple[float, float]:
        """Seconds since the beginning, and how many of them it was empty."""
        if self._began is None:
            return 0.0, 0.0
        now = time.perf_counter()
        still = now - self._empty_since if self._empty_since is not None else 0.0
        return now - self._began, self._empty + still

    def _total(self) -> QueuePerfStats:
        elapsed, empty = self._elapsed()
        return _stats(elapsed, self._num_items, empty, self._put_times.total(), self._get_times.total())

    def _take(self) -> QueuePerfStats:
        elapsed, empty = self._elapsed()
        before = self._reported
        self._reported = elapsed, self._num_items, empty
        return _stats(
            elapsed - before[0],
            self._num_items - before[1],
            empty - before[2],
            self._put_times.take(),
            self._get_times.take(),
        )

    async def interval_stats_callback(self, stats: QueuePerfStats) -> None:
        """Gets the figures of each interval, and at the stage's end of what is left; logs them.

        For subclasses: an override may be a coroutine function or an ordinary one.  Its errors are logged.
        """
        self._log(stats)

    def _log(self, stats: QueuePerfStats) -> None:
        log_queue(LOGGER, self.info, stats)


def _stats(
    elapsed: float,
    num_items: int,
    empty: float,
    put: tuple[float, float, float],
    get: tuple[float, float, float],
) -> QueuePerfStats:
    return QueuePerfStats(
        elapsed=elapsed,
        num_items=num_items,
        ave_put_time=put[0],
        ave_get_time=get[0],
        p90_put_time=put[1],
        p99_put_time=put[2],
        p90_get_time=get[1],
        p99_get_time=get[2],
        occupancy_rate=min(max(1 - empty / elapsed, 0.0), 1.0) if elapsed > 0 else 0.0,
    )
