"""Plain values: which stage it is, and how its tasks and its queue did."""

from __future__ import annotations

from .._value import Value

__all__ = ["QueuePerfStats", "StageInfo", "TaskPerfStats"]


class StageInfo(Value):
    """Names one stage of one pipeline."""

    __slots__ = ("pipeline_id", "stage_id", "stage_name", "concurrency")
    __module__ = "stoker.pipeline"

    pipeline_id: int
    stage_id: str
    stage_name: str
    concurrency: int | None

    def __init__(
        self, pipeline_id: int, stage_id: str, stage_name: str, concurrency: int | None = None
    ) -> None:
        """`pipeline_id`: pipelines of a process are numbered.  `concurrency`: None where it means nothing."""
        self._set(
            pipeline_id=pipeline_id, stage_id=stage_id, stage_name=stage_name, concurrency=concurrency
        )

    def __str__(self) -> str:
        text = f"{self.pipeline_id}:{self.stage_id}:{self.stage_name}"
        return text if self.concurrency is None else f"{text}[{self.concurrency}]"


class TaskPerfStats(Value):
    """What the tasks of a stage did; times in seconds, of the tasks that succeeded."""

    __slots__ = ("num_tasks", "num_failures", "ave_time", "p90_time", "p99_time")
    __module__ = "stoker.pipeline"

    num_tasks: int
    num_failures: int
    ave_time: float
    p90_time: float
    p99_time: float

    def __init__(
        self, num_tasks: int, num_failures: int, ave_time: float, p90_time: float, p99_time: float
    ) -> None:
        self._set(
            num_tasks=num_tasks,
            num_failures=num_failures,
            ave_time=ave_time,
            p90_time=p90_time,
            p99_time=p99_time,
        )


class QueuePerfStats(Value):
    """What went through a queue; times in seconds, that a put or a get waited.

    `num_items`: items taken out.  `occupancy_rate`: the share of `elapsed` in which it was not empty.
    `qps`: items a second.
    """

    __slots__ = (
        "elapsed",
        "num_items",
        "ave_put_time",
        "ave_get_time",
        "p90_put_time",
        "p99_put_time",
        "p90_get_time",
        "p99_get_time",
        "occupancy_rate",
        "qps",
    )
    __module__ = "stoker.pipeline"

    elapsed: float
    num_items: int
    ave_put_time: float
    ave_get_time: float
    p90_put_time: float
    p99_put_time: float
    p90_get_time: float
    p99_get_time: float
    occupancy_rate: float
    qps: float

    def __init__(
        self,
        elapsed: float,
        num_items: int,
        ave_put_time: float,
        ave_get_time: float,
        p90_put_time: float,
        p99_put_time: float,
        p90_get_time: float,
        p99_get_time: float,
        occupancy_rate: float,
        qps: float | None = None,
    ) -> None:
        """`qps`: None computes it from `num_items` and `elapsed`."""
        if qps is None:
            qps = num_items / elapsed if elapsed > 0 else 0.0
        self._set(
            elapsed=elapsed,
            num_items=num_items,
            ave_put_time=ave_put_time,
            ave_get_time=ave_get_time,
            p90_put_time=p90_put_time,
            p99_put_time=p99_put_time,
            p90_get_time=p90_get_time,
            p99_get_time=p99_get_time,
            occupancy_rate=occupancy_rate,
            qps=qps,
        )
