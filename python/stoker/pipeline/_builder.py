"""Builds pipelines, stage by stage."""

from __future__ import annotations

from .. import _check, ops
from ..errors import Error
from ..source import Source
from ._build import build_pipeline
from ._plan import PlanMaker
from ._placement import check_placement, check_regions
from .defs import (
    Aggregate,
    BatchConfig,
    Disaggregate,
    DisaggregateConfig,
    PathVariants,
    Pipe,
    PipeConfig,
    PipelineConfig,
    PlacementConfig,
    SinkConfig,
    SourceConfig,
)
from .defs._make import DEPENDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Sequence,
    )
    from concurrent.futures import Executor
    from fractions import Fraction
    from typing import Any, Generic, Protocol, Self, TypedDict, Unpack, overload

    from typing_extensions import TypeVar

    from .._augment import ArrayOp
    from .._clips import ClipOp
    from .._mix import BatchOp
    from .._stoker import Batch, Sample
    from ..ops import Op
    from ._pipeline import Pipeline
    from .defs import (
        Aggregator,
        ExecutorConfig,
        InterpreterPoolExecutorConfig,
        ProcessPoolExecutorConfig,
        _MainProcess,
    )
    from .defs._stages import OnError, OutputOrder, Stage
else:
    from .._generic import Generic, TypeVar

__all__ = ["PipelineBuilder"]

T = TypeVar("T", covariant=True, default="Any")
U = TypeVar("U")

if TYPE_CHECKING:
    K = TypeVar("K", contravariant=True)
    V = TypeVar("V", covariant=True)

    class SupportsGetItem(Protocol[K, V]):
        def __getitem__(self, key: K, /) -> V: ...

    class PipeOptions(TypedDict, total=False):
        concurrency: int
        executor: Executor | ExecutorConfig | None
        name: str | None
        output_order: OutputOrder
        max_failures: int | Fraction | None
        on_error: OnError
        retries: int
        timeout: float | None


class PipelineBuilder(Generic[T]):
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

    One builder may build several pipelines, which have nothing in common but the source's listing,
    and the ops and aggregators that the builder was given.  Pickles if these do.
    """

    __module__ = "stoker.pipeline"

    def __init__(self: PipelineBuilder[Any]) -> None:
        self._src: SourceConfig[Any] | None = None
        self._pipes: list[Stage] = []
        self._sink: SinkConfig[Any] | None = None

    if TYPE_CHECKING:

        @overload
        def add_source(self, source: Source, *, continuous: bool = False) -> PipelineBuilder[Sample]: ...
        @overload
        def add_source(
            self, source: AsyncIterable[U] | Iterable[U], *, continuous: bool = False
        ) -> PipelineBuilder[U]: ...

    def add_source(self, source: Any, *, continuous: bool = False) -> PipelineBuilder[Any]:
        """Where items come from: one of stoker.source, or anything to iterate over.

        `continuous`: over and over without end, and each `for` over the pipeline is one epoch.  An
        iterator, as a generator is, has one pass: the epochs behind it are empty.
        """
        if self._src is not None:
            raise ValueError("the pipeline has a source already")
        _check.flag("continuous", continuous)
        if isinstance(source, Source):
            source._handle(continuous)  # finds what does not go with continuous
        elif isinstance(source, type) or not any(hasattr(source, name) for name in _ITERABLE):
            raise TypeError(
                f"a source must be iterable, or one of stoker.source "
                f"({', '.join(_names_of_sources())}), not {type(source).__name__}"
                f"{': call it first' if callable(source) else ''}"
            )
        self._src = SourceConfig(source, continuous)
        return self

    if TYPE_CHECKING:

        @overload
        def pipe(self, op: ops.normalize | BatchOp, /, **how: Unpack[PipeOptions]) -> PipelineBuilder[Batch]: ...
        @overload
        def pipe(
            self, op: ops.read | ops.decode_image | ops.load_npy | ClipOp | ArrayOp, /, **how: Unpack[PipeOptions]
        ) -> PipelineBuilder[Sample]: ...
        @overload
        def pipe(self, op: Op, /, **how: Unpack[PipeOptions]) -> PipelineBuilder[Any]: ...
        @overload
        def pipe(
            self, op: Callable[[T], AsyncIterator[U | None]], /, **how: Unpack[PipeOptions]
        ) -> PipelineBuilder[U]: ...
        @overload
        def pipe(
            self, op: Callable[[T], Coroutine[Any, Any, U | None]], /, **how: Unpack[PipeOptions]
        ) -> PipelineBuilder[U]: ...
        @overload
        def pipe(
            self, op: Callable[[T], Iterator[U | None]], /, **how: Unpack[PipeOptions]
        ) -> PipelineBuilder[U]: ...
        @overload
        def pipe(
            self, op: Callable[[T], U | None], /, **how: Unpack[PipeOptions]
        ) -> PipelineBuilder[U]: ...
        @overload
        def pipe(
            self, op: SupportsGetItem[T, U | None], /, **how: Unpack[PipeOptions]
        ) -> PipelineBuilder[U]: ...

    def pipe(
        self,
        op: Any,
        /,
        *,
        concurrency: int = DEPENDS,
        executor: Executor | ExecutorConfig | None = None,
        name: str | None = None,
        output_order: OutputOrder = DEPENDS,
        max_failures: int | Fraction | None = None,
        on_error: OnError = DEPENDS,
        retries: int = 0,
        timeout: float | None = None,
    ) -> PipelineBuilder[Any]:
        """Adds a stage: an op of stoker.ops, or anything of Python's that makes results of items.

        A function or an object to call, which may be async, a generator or an async generator, or a
        container, which gives `op[item]`.  What gives None leaves the item out.

        An op of stoker.ops runs as many items at once as the pipeline has threads, in input order,
        and a failure ends the pipeline, unless told otherwise.  One of Python's runs one item at a
        time, in order of completion, and what fails is left out, counted and logged.

        `concurrency`: how many items at once, at least 1.
        `executor`: runs the op, unless it is async or of stoker.ops; else threads of the pipeline do.
        `name`: of the stage; without it, that of the function.
        `output_order`: "completion", or "input", which async generators cannot.
        `on_error`: "raise" ends the pipeline, "skip" leaves the item out, "substitute" takes another
        sample of the same shard.
        `max_failures`: of a stage that skips (giving it makes the stage skip): a number, negative for
        any, or a rate (Fraction), which counts from the 100th item on.
        `retries`: how often an item that failed is tried again; a generator, as long as it has given
        nothing.
        `timeout`: seconds for one item; more is a failure.  Of a generator all its steps count, and its
        results so far stay.  What waits for a thread, or for room, does not count.  An async op is
        cancelled, another one is left alone until it ends.
        """
        self._pipes.append(
            Pipe(
                op,
                concurrency=concurrency,
                executor=executor,
                name=name,
                output_order=output_order,
                max_failures=max_failures,
                on_error=on_error,
                retries=retries,
                timeout=timeout,
            )
        )
        return self

    def batch(
        self, n: int, *, drop_last: bool = False, keep_empty: bool = False
    ) -> PipelineBuilder[Batch]:
        """Groups n samples by planned position: a skipped sample leaves its batch shorter.

        `drop_last`: leaves out an epoch's last batch where it is planned smaller than n.
        `keep_empty`: delivers a batch all of whose samples were skipped, or that has none, as the last
        one of a rank may where samples do not divide by ranks: then all ranks get len(pipeline) batches.
        An empty batch has the fields whose shape is known beforehand: `image` only if
        `ops.decode_image` was given a size.
        """
        self._pipes.append(BatchConfig(n, drop_last, keep_empty))
        return self._retyped()

    def _retyped(self) -> PipelineBuilder[Any]:
        """The builder, for a type checker that would hold on to the type of its items."""
        return self

    if TYPE_CHECKING:

        @overload
        def aggregate(self, n: int, /, *, drop_last: bool = False) -> PipelineBuilder[list[T]]: ...
        @overload
        def aggregate(
            self, n: Aggregator[T, U], /, *, drop_last: bool = False
        ) -> PipelineBuilder[U]: ...

    def aggregate(self, n: Any, /, *, drop_last: bool = False) -> PipelineBuilder[Any]:
        """Groups items as they arrive: lists of n, or what an Aggregator makes of them.

        `drop_last`: leaves out what is incomplete at the end, and at the end of each epoch.
        """
        self._pipes.append(Aggregate(n, drop_last=drop_last))
        return self

    if TYPE_CHECKING:

        @overload
        def disaggregate(self: PipelineBuilder[Batch]) -> PipelineBuilder[Sample]: ...
        @overload
        def disaggregate(self: PipelineBuilder[Iterable[U]]) -> PipelineBuilder[U]: ...

    def disaggregate(self) -> PipelineBuilder[Any]:
        """Gives the items of each list one by one, or the samples of each batch, which share its
        memory."""
        self._pipes.append(Disaggregate())
        return self

    def path_variants(
        self,
        router: Callable[[Any], Any],
        paths: Sequence[Sequence[Stage]],
        name: str | None = None,
        batched: bool = False,
    ) -> PipelineBuilder[Any]:
        """Sends each item through one of several chains of stages, made with stoker.pipeline.defs.

        `router(item)`: the number of the path, or a bool, for two; may be async.
        `batched`: items are lists; the router gives a number for each element, and what the paths
        made of their shares is one list again, for which all stages on them keep the order of their
        input.  What an aggregate on a path holds back comes with a later list, or alone at the end of
        the epoch.
        """
        self._pipes.append(PathVariants(router, paths, name, batched))
        return self

    def to(
        self,
        target: ProcessPoolExecutorConfig | InterpreterPoolExecutorConfig | _MainProcess,
        /,
        *,
        buffer_size: int = 1,
    ) -> Self:
        """The stages up to the next `to()` run in workers of `target`: processes or interpreters.

        `buffer_size`: how many items cross at once, at most.
        """
        check_placement(target, buffer_size)
        self._pipes.append(PlacementConfig(target, buffer_size=buffer_size))
        return self

    def add_sink(self, buffer_size: int = 3) -> Self:
        """The end; buffer_size results may wait for the reader, at least 1."""
        if self._sink is not None:
            raise ValueError("the pipeline has a sink already")
        self._sink = SinkConfig(buffer_size)
        return self

    def get_config(self) -> PipelineConfig[T]:
        """What was collected.

        RuntimeError: no source or no sink.  ValueError: stages that `to()` cannot place.
        """
        if self._src is None:
            raise RuntimeError("the pipeline has no source: call add_source()")
        if self._sink is None:
            raise RuntimeError("the pipeline has no sink: call add_sink()")
        check_regions(self._pipes, closed=True)
        return PipelineConfig(self._src, self._pipes, self._sink)

    def build(
        self,
        *,
        num_threads: int,
        max_failures: int | Fraction = -1,
        report_stats_interval: float = -1,
        queue_class: Callable[..., Any] | None = None,
        task_hook_factory: Callable[..., Any] | None = None,
        stage_id: int = 0,
        use_thread_output_queue: bool = False,
    ) -> Pipeline[T]:
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
        from .defs._text import describe

        return describe("PipelineBuilder", self._src, self._pipes, self._sink)

    def __str__(self) -> str:
        """What was collected, and, once a pipeline of native stages is complete, the plan: what
        runs, and whether the same seed and data give the same batches."""
        if self._src is None or self._sink is None or not self._is_native():
            return repr(self)
        try:
            plan = str(PlanMaker(1, -1, 0, 0).make(self.get_config()))
        except (Error, ValueError) as error:
            plan = f"cannot run: {error}"
        return "\n".join([repr(self), "  Plan:", *(f"    {line}" for line in plan.splitlines())])

    def _is_native(self) -> bool:
        return (
            self._src is not None
            and isinstance(self._src.source, Source)
            and all(
                isinstance(stage, (BatchConfig, DisaggregateConfig))
                or (isinstance(stage, PipeConfig) and isinstance(stage.op, ops.Op))
                for stage in self._pipes
            )
        )


_ITERABLE = ("__iter__", "__aiter__", "__getitem__")


def _names_of_sources() -> list[str]:
    return [cls.__name__ for cls in Source.__subclasses__() if cls.__module__.startswith("stoker.")]
