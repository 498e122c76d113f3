"""Builds pipelines, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real

from .. import _check, _stoker, ops
from ..errors import Error
from ..ops import Op
from ..source import Source
from ._pipeline import Pipeline
from .defs import (
    BatchConfig,
    DisaggregateConfig,
    PipeConfig,
    PipelineConfig,
    SinkConfig,
    SourceConfig,
    describe,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Executor
    from fractions import Fraction
    from typing import Any, Final, Literal, Self

__all__ = ["PipelineBuilder"]

_MAX_THREADS: Final = 1024


class _DependsOnTheOp:
    """The default of an argument whose value, when it is not passed, depends on the op."""

    def __repr__(self) -> str:
        return "<depends on the op>"


_DEPENDS: Final[Any] = _DependsOnTheOp()


class PipelineBuilder:
    """Collects a source, stages and a sink; every method returns the builder.

        pipeline = (
            PipelineBuilder()
            .add_source(source.Directory("train", labels="dir", shuffle=True))
            .pipe(ops.read(), concurrency=16)
            .pipe(ops.decode_image(224, 224, crop="random_resized", flip=0.5), on_error="skip")
            .batch(64)
            .add_sink(3)
            .build(num_threads=2)
        )

    One builder may build several pipelines, which have nothing in common but the source's listing.
    """

    __module__ = "stoker.pipeline"

    def __init__(self) -> None:
        self._src: SourceConfig | None = None
        self._pipes: list[PipeConfig | BatchConfig | DisaggregateConfig] = []
        self._sink: SinkConfig | None = None

    def add_source(self, source: Source, *, continuous: bool = False) -> Self:
        """Where samples come from.  continuous: without end, and each `for` is one epoch."""
        if self._src is not None:
            raise ValueError("the pipeline has a source already")
        if not isinstance(source, Source):
            raise TypeError(
                f"a source must be one of stoker.source ({', '.join(_names_of_sources())}), "
                f"not {type(source).__name__}: Python iterables are not sources of this version"
            )
        source._handle(_check.flag("continuous", continuous))
        self._src = SourceConfig(source, continuous)
        return self

    def pipe(
        self,
        op: Op,
        /,
        *,
        concurrency: int = _DEPENDS,
        executor: Executor | None = None,
        name: str | None = None,
        output_order: Literal["completion", "input"] = _DEPENDS,
        max_failures: int | Fraction | None = None,
        on_error: Literal["raise", "skip", "substitute"] = _DEPENDS,
    ) -> Self:
        """Adds a stage.

        An op of stoker.ops runs as many items at once as the pipeline has threads, in input order,
        and a failure ends the pipeline, unless told otherwise.
        `on_error`: "skip" leaves the sample out, "substitute" takes another of the same shard.
        `max_failures`: of a stage that skips (giving it makes the stage skip): a number, negative for
        any, or a rate (Fraction), which counts from the 100th item on.
        """
        _refuse_callable(op)
        if executor is not None:
            raise ValueError("`executor` cannot be specified when op is native: it runs on C threads")
        if name is not None and (not isinstance(name, str) or not name):
            raise TypeError("name must be a str that is not empty")
        if concurrency is not _DEPENDS:
            _check.integer("concurrency", concurrency, 1, 1024)
        if output_order is _DEPENDS:
            output_order = "input"
        _check.choice("output_order", output_order, ("completion", "input"))
        if on_error is _DEPENDS:
            on_error = "raise" if max_failures is None else "skip"
        _check.choice("on_error", on_error, ("raise", "skip", "substitute"))
        if max_failures is not None and on_error != "skip":
            raise ValueError(f"max_failures goes with on_error='skip', not with {on_error!r}")
        self._pipes.append(
            PipeConfig(
                name or op.name,
                op,
                None if concurrency is _DEPENDS else int(concurrency),
                output_order,
                on_error,
                None if max_failures is None else _max_failures(max_failures),
            )
        )
        return self

    def batch(self, n: int, *, drop_last: bool = False, keep_empty: bool = False) -> Self:
        """Groups n samples by planned position: a skipped sample leaves its batch shorter.

        `drop_last`: leaves out an epoch's last batch where it is planned smaller than n.
        `keep_empty`: delivers a batch all of whose samples were skipped.
        """
        n = _check.integer("n", n, 1, 1 << 20)
        drop_last, keep_empty = _check.flag("drop_last", drop_last), _check.flag("keep_empty", keep_empty)
        self._pipes.append(BatchConfig(n, drop_last, keep_empty))
        return self

    def aggregate(self, n: int, /, *, drop_last: bool = False) -> Self:
        """Collects items in Python lists, which native stages do not make: use batch()."""
        raise TypeError("aggregate() makes lists of Python, which native stages cannot: use batch(n)")

    def disaggregate(self) -> Self:
        """Turns each batch into its samples again, which share its memory."""
        self._pipes.append(DisaggregateConfig())
        return self

    def path_variants(
        self,
        router: Callable[[Any], int],
        paths: Sequence[Sequence[object]],
        name: str | None = None,
        batched: bool = False,
    ) -> Self:
        """Sends items through one of several paths, which needs a router in Python."""
        raise TypeError("path_variants() needs a router in Python: callables are not stages of this version")

    def to(self, target: object, /, *, buffer_size: int = 1) -> Self:
        """Moves Python stages to worker processes; native stages run on threads of this one."""
        raise TypeError("to() moves Python stages to other processes: there are native stages only")

    def add_sink(self, buffer_size: int = 3) -> Self:
        """The end; buffer_size results may wait for the reader."""
        if self._sink is not None:
            raise ValueError("the pipeline has a sink already")
        self._sink = SinkConfig(_check.integer("buffer_size", buffer_size, 1, 512))
        return self

    def get_config(self) -> PipelineConfig:
        """What was collected; RuntimeError without a source or a sink."""
        if self._src is None:
            raise RuntimeError("the pipeline has no source: call add_source()")
        if self._sink is None:
            raise RuntimeError("the pipeline has no sink: call add_sink()")
        return PipelineConfig(self._src, tuple(self._pipes), self._sink)

    def build(
        self,
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
        config = self.get_config()
        num_threads = _check.integer("num_threads", num_threads, 1, _MAX_THREADS)
        limit = _max_failures(max_failures)
        for argument, value in (("queue_class", queue_class), ("task_hook_factory", task_hook_factory)):
            if value is not None:
                raise TypeError(f"{argument} is for Python stages: see stats() for native ones")
        plan = _make_plan(config, limit)
        plan.check()
        return Pipeline(
            plan,
            config.src.source._handle(config.src.continuous),
            num_threads=num_threads,
            buffer_size=config.sink.buffer_size,
            continuous=config.src.continuous,
            report_stats_interval=_check.number("report_stats_interval", report_stats_interval),
            stage_id=_check.integer("stage_id", stage_id, 0),
        )

    def __repr__(self) -> str:
        text = describe(self._src, tuple(self._pipes), self._sink)
        return text.replace("PipelineConfig", "PipelineBuilder", 1)

    def __str__(self) -> str:
        """What was collected, and, once it is complete, the plan: what runs, and whether the same
        seed and data give the same batches."""
        if self._src is None or self._sink is None:
            return repr(self)
        try:
            plan = str(_make_plan(self.get_config(), -1))
        except (Error, ValueError) as error:
            plan = f"cannot run: {error}"
        return "\n".join([repr(self), "  Plan:", *(f"    {line}" for line in plan.splitlines())])


def _make_plan(config: PipelineConfig, limit: int | Fraction) -> _stoker.Plan:
    source = config.src.source
    parts = source._parts()
    plan = _stoker.plan()
    plan.source(source._handle(config.src.continuous))
    for stage in config.pipes:
        if isinstance(stage, BatchConfig):
            plan.batch(stage.n, drop_last=stage.drop_last, keep_empty=stage.keep_empty)
        elif isinstance(stage, DisaggregateConfig):
            plan.unbatch()
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


def _max_failures(value: int | Fraction) -> int | Fraction:
    """A count is an int; anything else is a rate."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"max_failures must be a number or a rate, not {type(value).__name__}")
    if isinstance(value, Integral):
        return max(int(value), -1)
    if not 0 < value <= 1:
        raise ValueError(f"max_failures: a rate must be in range (0, 1], not {value}")
    return value


def _names_of_sources() -> list[str]:
    from .. import source

    return [name for name in source.__all__ if name != "Source"]


def _refuse_callable(op: object) -> None:
    if isinstance(op, Op):
        return
    native = ", ".join(f"ops.{name}" for name in ops.__all__ if name != "Op")
    if isinstance(op, type) and issubclass(op, Op):
        raise TypeError(f"ops.{op.name} is a class: write ops.{op.name}(...)")
    raise TypeError(
        f"op must be one of stoker.ops ({native}), not {type(op).__name__}: "
        "Python callables are not stages of this version"
    )
