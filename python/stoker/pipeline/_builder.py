"""Builds pipelines, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import _check, ops
from ..errors import Error
from ..ops import Op
from ..source import Source
from ._build import build_pipeline, failure_limit, make_plan
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

    from ._pipeline import Pipeline

__all__ = ["PipelineBuilder"]


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
                None if max_failures is None else failure_limit(max_failures),
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
        """The same as `build_pipeline(get_config(), ...)`, which says what the arguments mean."""
        return build_pipeline(
            self.get_config(),
            num_threads=num_threads,
            max_failures=max_failures,
            report_stats_interval=report_stats_interval,
            queue_class=queue_class,
            task_hook_factory=task_hook_factory,
            stage_id=stage_id,
            use_thread_output_queue=use_thread_output_queue,
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
            plan = str(make_plan(self.get_config(), -1))
        except (Error, ValueError) as error:
            plan = f"cannot run: {error}"
        return "\n".join([repr(self), "  Plan:", *(f"    {line}" for line in plan.splitlines())])


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
