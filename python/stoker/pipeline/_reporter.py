"""What tasks and queues of a run did, in the log."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue

from ._perf import log_queue, log_tasks, logger_for_info, perf

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Sequence
    from typing import Final

    from .. import _stoker
    from ._info import StageInfo
    from ._lanes import Lanes
    from ._perf import Perf

__all__ = ["Reporter"]

_LEAST_S: Final = 0.001  # between two reports: each takes a tenth of that


class Reporter:
    """Reports once at the end and, with an `interval` (seconds; 0 or less: none), while the run lasts.

    It refers to the run, not to the pipeline.  Any thread may call any method.
    """

    def __init__(
        self, run: _stoker.Run, infos: Sequence[StageInfo], watched: tuple[bool, bool], interval: float
    ) -> None:
        """`watched`: whether hooks and queues of users say for themselves what they have seen."""
        self._run = run
        self._infos = infos
        self._watched = watched
        self._interval = interval
        self._ended: SimpleQueue[None] = SimpleQueue()  # the collector may put into it, on any thread
        self._lock = threading.RLock()  # guards what follows, not the log.  Where Ctrl-C leaves it taken, its thread gets in again.
        self._before: object = None  # the snapshot at the last report
        self._over = False

    def start(self, lanes: Lanes) -> None:
        """On a thread of its own: figures are wanted just where nobody reads, or a read waits."""
        if self._interval > 0:
            lanes.beside(self._repeat, "report", self.cancel)

    def cancel(self) -> None:
        """Ends the thread, and does not wait."""
        self._ended.put(None)

    def end(self) -> None:
        """The totals, once."""
        self.cancel()
        with self._lock:
            over, self._over = self._over, True
        logger = logger_for_info()
        if over or logger is None:
            return
        if self._interval > 0:
            self._report(logger)
        self._log(logger, perf(self._run, self._infos))

    def _repeat(self) -> None:
        pause = max(self._interval, _LEAST_S)
        due = time.monotonic() + pause
        while not self._ends_before(due) and not self._run.ended():
            due = max(due, time.monotonic()) + pause
            logger = logger_for_info()
            if logger is not None and not self._over:
                self._report(logger)

    def _ends_before(self, due: float) -> bool:
        try:
            self._ended.get(timeout=min(max(0.0, due - time.monotonic()), threading.TIMEOUT_MAX))
        except Empty:
            return False
        return True

    def _report(self, logger: logging.Logger) -> None:
        """What happened since the last report."""
        with self._lock:
            figures = perf(self._run, self._infos, self._before)
            self._before = figures.snapshot
        self._log(logger, figures)
        logger.info("[%d] %s", self._infos[0].pipeline_id, self._run.stats()["verdict"])

    def _log(self, logger: logging.Logger, figures: Perf) -> None:
        hooked, queued = self._watched
        for info, tasks in () if hooked else figures.tasks:
            log_tasks(logger, info, tasks)
        for info, queue in () if queued else figures.queues:
            log_queue(logger, info, queue)
