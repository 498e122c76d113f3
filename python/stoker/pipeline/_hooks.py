"""What runs around the tasks of a stage: users' hooks, and the one that counts."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from ._info import StageInfo, TaskPerfStats
from ._perf import log_tasks
from ._quantile import Durations
from ._report import LOGGER, reporting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType
    from typing import Any

__all__ = ["TaskHook", "TaskPerfStats", "TaskStatsHook", "stage_context", "task_context"]


class TaskHook(ABC):
    """Runs code around a stage and around each of its tasks, on the pipeline's event loop.

    A pipeline asks `task_hook_factory(StageInfo)` for the hooks of each stage but the source and the sink.
    """

    __module__ = "stoker.pipeline"

    def stage_hook(self) -> AbstractAsyncContextManager[None]:
        """An async context manager around all tasks of the stage.  An exception fails the stage."""
        return nullcontext()

    @abstractmethod
    def task_hook(self, input_item: Any = None) -> AbstractAsyncContextManager[None]:
        """An async context manager around one call of the op; of a generator, around each step.

        An exception, also on leaving, drops the item and counts as a failure of it.  The op's own exception
        is raised in the block.  StopAsyncIteration there is a generator's end, and has to pass.
        """


class TaskStatsHook(TaskHook):
    """Counts and times tasks, and logs the sum when the stage ends.  The default hook.

    Attributes, of the whole stage: `num_tasks` (tasks that ended; neither cancelled ones nor the end of
    a generator), `num_success`, `ave_time` (mean seconds of those that succeeded).
    """

    __module__ = "stoker.pipeline"

    def __init__(self, info: StageInfo, interval: float = -1) -> None:
        """`interval`: seconds between calls of interval_stats_callback; 0 or less for none."""
        self.info = info
        self.interval = interval
        self.num_tasks = 0
        self.num_success = 0
        self.ave_time = 0.0
        self._times = Durations(interval > 0)
        self._reported_tasks = 0
        self._reported_success = 0

    def stage_hook(self) -> AbstractAsyncContextManager[None]:
        """Reports while the stage runs, and at its end."""
        return self._reporting()

    @asynccontextmanager
    async def _reporting(self) -> AsyncGenerator[None, None]:
        try:
            async with reporting(self.interval, self._take, self.interval_stats_callback):
                yield
        finally:
            self._log(self._total())

    def task_hook(self, input_item: Any = None) -> AbstractAsyncContextManager[None]:
        """Counts and times one task."""
        return _Timed(self)

    def _count(self, seconds: float) -> None:
        self.num_tasks += 1
        self.num_success += 1
        self.ave_time += (seconds - self.ave_time) / self.num_success
        self._times.add(seconds)

    def _total(self) -> TaskPerfStats:
        return TaskPerfStats(self.num_tasks, self.num_tasks - self.num_success, *self._times.total())

    def _take(self) -> TaskPerfStats:
        tasks, success = self.num_tasks - self._reported_tasks, self.num_success - self._reported_success
        self._reported_tasks, self._reported_success = self.num_tasks, self.num_success
        return TaskPerfStats(tasks, tasks - success, *self._times.take())

    async def interval_stats_callback(self, stats: TaskPerfStats) -> None:
        """Gets the figures of each interval, and at the stage's end of what is left; logs them.

        For subclasses: an override may be a coroutine function or an ordinary one.  Its errors are logged.
        """
        self._log(stats)

    def _log(self, stats: TaskPerfStats) -> None:
        log_tasks(LOGGER, self.info, stats)


class _Timed(AbstractAsyncContextManager[None]):
    """Times one task.  A class, as it takes a fifth of the time of a generator in a decorator."""

    __slots__ = ("_hook", "_start")

    def __init__(self, hook: TaskStatsHook) -> None:
        self._hook = hook
        self._start = 0.0

    async def __aenter__(self) -> None:
        self._start = time.perf_counter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._hook._count(time.perf_counter() - self._start)
        elif issubclass(kind, Exception) and not issubclass(kind, StopAsyncIteration):
            self._hook.num_tasks += 1


def stage_context(hook: TaskHook) -> AbstractAsyncContextManager[None]:
    """What hook.stage_hook() gives; ValueError: it is no async context manager."""
    return _checked(hook, "stage_hook", hook.stage_hook())


def task_context(hook: TaskHook, item: object) -> AbstractAsyncContextManager[None]:
    """What hook.task_hook(item) gives; ValueError: it is no async context manager."""
    return _checked(hook, "task_hook", hook.task_hook(item))


def _checked(hook: TaskHook, method: str, context: Any) -> AbstractAsyncContextManager[None]:
    if hasattr(context, "__aenter__") and hasattr(context, "__aexit__"):
        checked: AbstractAsyncContextManager[None] = context
        return checked
    close = getattr(context, "close", None)
    if close is not None:
        close()  # a coroutine would warn that nobody awaits it
    raise ValueError(
        f"`{method}()` of {type(hook).__name__} must give an async context manager, not "
        f"{type(context).__name__}: is @contextlib.asynccontextmanager missing?"
    )
