"""The default statistics: what TaskStatsHook and StatsQueue count, from the engine's own counters."""

from __future__ import annotations

import sys

from ._info import QueuePerfStats, StageInfo, TaskPerfStats

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Sequence
    from typing import NamedTuple

    from .. import _stoker
else:
    from collections import namedtuple

__all__ = ["Perf", "duration", "log_queue", "log_tasks", "logger_for_info", "perf"]

if TYPE_CHECKING:

    class Perf(NamedTuple):
        tasks: list[tuple[StageInfo, TaskPerfStats]]
        queues: list[tuple[StageInfo, QueuePerfStats]]
        snapshot: object  # what the next ones may begin at

else:
    Perf = namedtuple("Perf", ("tasks", "queues", "snapshot"))


def perf(run: _stoker.Run, infos: Sequence[StageInfo], before: object = None) -> Perf:
    """What tasks and queues did since the snapshot `before`; None: since the run began."""
    (tasks, queues), snapshot = run.figures(before)
    return Perf(
        [
            (infos[index], TaskPerfStats(*figures))
            for index, *figures in tasks
            if infos[index] is not infos[index - 1]  # else another part of the same stage
        ],
        [
            (infos[index], QueuePerfStats(*figures))
            for index, *figures in queues
        ],
        snapshot,
    )


def logger_for_info() -> logging.Logger | None:
    """The logger stoker.pipeline, if somebody wants its records of level INFO."""
    module = sys.modules.get("logging")
    if module is None:  # so nobody has asked for them
        return None
    logger: logging.Logger = module.getLogger("stoker.pipeline")
    return logger if logger.isEnabledFor(module.INFO) else None


def duration(seconds: float) -> str:
    """For people: three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def log_tasks(logger: logging.Logger, info: StageInfo, stats: TaskPerfStats) -> None:
    logger.info(
        "[%s] %d tasks, %d failed; average %s, 90 %% within %s, 99 %% within %s",
        info,
        stats.num_tasks,
        stats.num_failures,
        duration(stats.ave_time),
        duration(stats.p90_time),
        duration(stats.p99_time),
    )


def log_queue(logger: logging.Logger, info: StageInfo, stats: QueuePerfStats) -> None:
    logger.info(
        "[%s] queue: %d items in %s, %.4g a second; put waits %s, get waits %s on average; "
        "not empty %.1f %% of the time",
        info,
        stats.num_items,
        duration(stats.elapsed),
        stats.qps,
        duration(stats.ave_put_time),
        duration(stats.ave_get_time),
        100 * stats.occupancy_rate,
    )
