"""Makes pipelines of configurations."""

from __future__ import annotations

from .. import _check, _stoker
from ..ops import Op
from ..source import Source
from ._pipeline import Pipeline
from ._placement import check_regions
from .defs import BatchConfig, DisaggregateConfig, PipeConfig, SourceConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction
    from typing import Any, Final

    from .defs import PipelineConfig

__all__ = ["build_pipeline"]

_MAX_THREADS: Final = 1024


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
    plan = make_plan(config, limit)
    plan.check()
    assert isinstance(config.src, SourceConfig)
    return Pipeline(
        plan,
        num_threads=num_threads,
        buffer_size=config.sink.buffer_size,
        continuous=config.src.continuous,
        report_stats_interval=_check.number("report_stats_interval", report_stats_interval),
        stage_id=_check.integer("stage_id", stage_id, 0),
    )


def make_plan(config: PipelineConfig, limit: int | Fraction) -> _stoker.Plan:
    source = _native_source(config)
    parts = source._parts()
    assert isinstance(config.src, SourceConfig)
    plan = _stoker.plan()
    plan.source(source._handle(config.src.continuous))
    for stage in config.pipes:
        if isinstance(stage, BatchConfig):
            plan.batch(stage.n, drop_last=stage.drop_last, keep_empty=stage.keep_empty)
        elif isinstance(stage, DisaggregateConfig):
            plan.unbatch()
        elif not isinstance(stage, PipeConfig) or not isinstance(stage.op, Op):
            raise TypeError(f"{stage}: Python callables are not stages of this version")
        else:
            allowed = limit if stage.max_failures is None else stage.max_failures
            skips = stage.on_error == "skip"
            rate = skips and not isinstance(allowed, int)
            plan.pipe(
                stage.op._handle(parts),
                name=stage.name,
                concurrency=stage.concurrency or 0,
                order=stage.output_order,
                on_error=stage.on_error,
                max_failures=int(allowed) if skips and not rate else -1,
                max_failure_rate=float(allowed) if rate else 0.0,
            )
    plan.sink(config.sink.buffer_size)
    return plan


def _native_source(config: PipelineConfig) -> Source:
    source = config.src.source if isinstance(config.src, SourceConfig) else config.src
    if not isinstance(source, Source):
        raise TypeError(f"{config.src}: Python iterables are not sources of this version")
    return source
