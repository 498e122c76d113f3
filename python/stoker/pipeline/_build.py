"""Makes pipelines of configurations."""

from __future__ import annotations

from itertools import count

from .. import _check
from ._pipeline import Pipeline
from ._placement import check_regions
from ._plan import PlanMaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction
    from typing import Any, Final

    from .defs import PipelineConfig

__all__ = ["build_pipeline"]

_MAX_THREADS: Final = 1024

_numbers = count()  # of the pipelines of this process


def build_pipeline(
    config: PipelineConfig,
    /,
    *,
    num_threads: int,
    max_failures: int | Fraction = -1,
    report_stats_interval: float = -1,
    queue_class: type | None = None,
    task_hook_factory: Callable[..., Any] | None = None,
    stage_id: int = 0,
    use_thread_output_queue: bool = False,
) -> Pipeline:
    """Checks the whole, and gives a pipeline that starts when it is first read.

    `max_failures`: for each stage that skips and has no limit of its own.
    `report_stats_interval`: seconds between log records (logger stoker.pipeline), written by reads.
    `stage_id`: the number of the first stage in them.
    `queue_class`, `task_hook_factory`: native stages have neither.
    `use_thread_output_queue`: makes no difference; reading never goes through an event loop.
    """
    num_threads = _check.integer("num_threads", num_threads, 1, _MAX_THREADS)
    limit = _check.failure_limit(max_failures)
    for argument, value in (("queue_class", queue_class), ("task_hook_factory", task_hook_factory)):
        if value is not None:
            raise TypeError(f"{argument} is for Python stages: see stats() for native ones")
    check_regions(config.pipes, closed=False)
    maker = PlanMaker(
        num_threads, limit, next(_numbers), _check.integer("stage_id", stage_id, 0)
    )
    plan = maker.make(config)
    plan.check()
    return Pipeline(
        plan,
        maker,
        num_threads=num_threads,
        buffer_size=config.sink.buffer_size,
        continuous=config.src.continuous,
        report_stats_interval=_check.number("report_stats_interval", report_stats_interval),
    )
