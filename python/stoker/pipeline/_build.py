"""Makes pipelines of configurations."""

from __future__ import annotations

import weakref
from itertools import count

from .. import _check
from ._announce import announce
from ._pipeline import Pipeline
from ._placement import check_regions_of
from ._plan import PlanMaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction
    from typing import Any, Final, TypeVar

    from ._tasks import BackgroundTask, BackgroundTaskFactory
    from .defs import PipelineConfig

    T = TypeVar("T")

__all__ = ["build_pipeline", "make_pipeline"]

_MAX_THREADS: Final = 1024

_numbers = count()  # of the pipelines of this process


def build_pipeline(
    config: PipelineConfig[T],
    /,
    *,
    num_threads: int,
    max_failures: int | Fraction = -1,
    report_stats_interval: float = -1,
    queue_class: Callable[..., Any] | None = None,
    task_hook_factory: Callable[..., Any] | None = None,
    stage_id: int = 0,
    background_tasks: Sequence[BackgroundTask | BackgroundTaskFactory] | None = None,
    use_thread_output_queue: bool = False,
) -> Pipeline[T]:
    """Checks the whole, and gives a pipeline that starts when it is first read.

    `max_failures`: for each stage that skips and has no limit of its own.
    `report_stats_interval`: seconds between log records (logger stoker.pipeline, level INFO), from a
    thread of its own.
    `stage_id`: the number of the first stage in them.
    `queue_class(info, buffer_size=n)`: a queue behind each stage, on the event loop; None, AsyncQueue and
    StatsQueue stand for the engine's own, whose figures queue_stats() gives.
    `task_hook_factory(info)`: the hooks of each stage but the source and the sink.
    `background_tasks`: run on the event loop as long as the pipeline.
    `use_thread_output_queue`: no `queue_class` at the sink.  Reading never goes through an event loop anyway.
    """
    _check.integer("num_threads", num_threads, 1, _MAX_THREADS)
    _check.failure_limit(max_failures)
    check_regions_of(config)
    instead = announce(config)
    if instead is not None:
        return instead
    return make_pipeline(
        config,
        num_threads=num_threads,
        max_failures=max_failures,
        report_stats_interval=report_stats_interval,
        queue_class=queue_class,
        task_hook_factory=task_hook_factory,
        stage_id=stage_id,
        background_tasks=background_tasks,
        use_thread_output_queue=use_thread_output_queue,
    )


def make_pipeline(
    config: PipelineConfig[T],
    *,
    num_threads: int,
    max_failures: int | Fraction = -1,
    report_stats_interval: float = -1,
    queue_class: Callable[..., Any] | None = None,
    task_hook_factory: Callable[..., Any] | None = None,
    stage_id: int = 0,
    background_tasks: Sequence[BackgroundTask | BackgroundTaskFactory] | None = None,
    use_thread_output_queue: bool = False,
) -> Pipeline[T]:
    """build_pipeline for a pipeline that nobody is told of, as that of a region's worker."""
    num_threads = _check.integer("num_threads", num_threads, 1, _MAX_THREADS)
    limit = _check.failure_limit(max_failures)
    interval = _check.number("report_stats_interval", report_stats_interval)
    maker = PlanMaker(
        num_threads,
        limit,
        next(_numbers),
        _check.integer("stage_id", stage_id, 0),
        _queue_class(queue_class, interval),
        _hook_factory(task_hook_factory, interval),
        queues_sink=not use_thread_output_queue,
    )
    plan = maker.make(config)
    tasks = _settings("_background_tasks", ()) if background_tasks is None else background_tasks
    loop = maker.make_loop(tasks)
    if loop is not None:
        maker.groups[maker.loop_group - 1].loop = loop
    plan.check()
    if loop is not None:
        loop.start_regions({"max_failures": max_failures, "report_stats_interval": interval})
    pipeline: Pipeline[T] = Pipeline(
        plan,
        maker,
        num_threads=num_threads,
        buffer_size=config.sink.buffer_size,
        continuous=config.src.continuous,
        report_stats_interval=interval,
    )
    if loop is not None and loop.has_regions:
        weakref.finalize(pipeline, loop.release)
    return pipeline


def _settings(name: str, default: Any) -> Any:
    """A default that the user may have set; the module is not loaded for those who did not."""
    import sys

    module = sys.modules.get(f"{__package__}.config")
    return getattr(module, name, default) if module is not None else default


def _queue_class(given: Any, interval: float) -> Callable[..., Any] | None:
    from functools import partial

    chosen = given or _settings("_queue_class", None)
    if chosen is None:
        return None
    from ._queues import AsyncQueue, StatsQueue

    if chosen is AsyncQueue or chosen is StatsQueue:
        return None
    if not callable(chosen) or (isinstance(chosen, type) and not hasattr(chosen, "put_nowait")):
        raise TypeError(f"queue_class must make asyncio queues, as AsyncQueue does, not {chosen!r}")
    return chosen if given is not None else partial(chosen, interval=interval)


def _hook_factory(given: Any, interval: float) -> Callable[[Any], Any] | None:
    chosen = _settings("_hook_class", None)
    if given is not None and not callable(given):
        raise TypeError(f"task_hook_factory must be a function of a StageInfo, not {given!r}")
    if given is not None or chosen is None:
        return given  # type: ignore[no-any-return]

    def make(info: Any) -> list[Any]:
        return [chosen(info, interval=interval)]

    make.is_default = True  # type: ignore[attr-defined]
    return make
