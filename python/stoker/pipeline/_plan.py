"""From a configuration to a plan of the engine, and to the threads that it needs."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from .. import _stoker
from ..ops import Op
from ..source import Source
from ._info import StageInfo
from ._kinds import is_async, kind_of, kind_of_call
from ._lanes import Group
from ._locate import locate
from ._log import FailureLog
from ._order import merges_in_turn, rejoins_in_order
from ._placement import RegionConfig, gather
from ._routers import make_router
from ._wrappers import Folding, python_op, same
from .defs import (
    AggregateConfig,
    BatchConfig,
    Collate,
    DisaggregateConfig,
    MergeConfig,
    PathVariantsConfig,
    PipeConfig,
    SourceConfig,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction
    from typing import Any, Final

    from ._hooks import TaskHook
    from ._loop import Loop
    from ._loop_plan import LoopPlan
    from .defs import PipelineConfig
    from .defs._stages import Stage

__all__ = ["PlanMaker"]

_QUEUE_SIZE: Final = 2  # of a user's queue between two stages
_NAME_BYTES: Final = 47  # of a stage, in the engine's statistics


class PlanMaker:
    """Makes the plan of one pipeline.

    `infos` are those of the engine's stages, in its order: `groups` the threads of Python it needs.
    """

    def __init__(
        self,
        num_threads: int,
        limit: int | Fraction,
        pipeline_id: int,
        stage_id: int,
        queue_class: Callable[..., Any] | None = None,
        hook_factory: Callable[[StageInfo], Sequence[TaskHook]] | None = None,
        *,
        queues_sink: bool = True,
    ) -> None:
        """`queue_class`, `hook_factory`: None where the engine's own queues and counters do.
        `queues_sink`: whether the sink has a `queue_class`, too."""
        self._queue_class = queue_class
        self._queues_sink = queues_sink
        self._hook_factory = hook_factory
        self._loop_plan: LoopPlan | None = None
        self.loop_group = 0  # 0: no event loop is needed
        self._num_threads = num_threads
        self._limit = limit
        self._pipeline_id = pipeline_id
        self._next_id = stage_id
        self.groups: list[Group] = []
        self._batched = False  # what the next stage gets is a native batch
        self._in_turn = False  # within batched paths, whose results rejoin by the order of their inputs
        self._foreign = False  # it may be an object of Python
        self._pool = 0  # the group of sync stages; 0: there is none yet
        self.infos: list[StageInfo] = []

    @property
    def watched(self) -> tuple[bool, bool]:
        """Whether hooks of users watch the tasks, and queues of users themselves."""
        return self._hook_factory is not None, self._queue_class is not None

    def make(self, config: PipelineConfig[Any]) -> _stoker.Plan:
        plan = self._begin(config)
        self._stages(plan, config.pipes)
        plan.limit(*_limits(self._limit))
        size = config.sink.buffer_size
        if self._queue_class is not None and self._queues_sink:
            info = StageInfo(self._pipeline_id, str(self._next_id), "sink", None)
            self._queue(plan, info, size)
            size = 1  # the queue holds the others
        plan.sink(size)
        self._note("sink", None)
        return plan

    def make_loop(self, background_tasks: Sequence[Any]) -> Loop | None:
        """The event loop that the plan needs, or that the tasks do."""
        if self._loop_plan is None and not background_tasks:
            return None
        from ._loop import Loop

        plan = self._on_loop
        self._loop_number()
        return Loop(plan.stages, self._num_threads, background_tasks, plan.executors, plan.regions)

    @property
    def _on_loop(self) -> LoopPlan:
        if self._loop_plan is None:
            from ._loop_plan import LoopPlan

            self._loop_plan = LoopPlan()
        return self._loop_plan

    def _loop_number(self) -> int:
        if not self.loop_group:
            self.loop_group = self._group("loop", 1)
        return self.loop_group

    def _hooks(
        self, name: str, concurrency: int | None, *, native: bool = False
    ) -> list[TaskHook]:
        """Those of the stage that is noted next; a default class is for ops of Python only."""
        if self._hook_factory is None or (native and hasattr(self._hook_factory, "is_default")):
            return []
        info = StageInfo(self._pipeline_id, str(self._next_id), name, concurrency)
        hooks = self._hook_factory(info)
        if not isinstance(hooks, (list, tuple)):
            raise TypeError(f"task_hook_factory gave {hooks!r} for stage {info}, not a list of TaskHooks")
        return list(hooks)

    def _queue(self, plan: _stoker.Plan, info: StageInfo, size: int = _QUEUE_SIZE) -> None:
        """The user's queue behind the stage that was made last."""
        if self._queue_class is None:
            return
        self._port(plan, info.stage_name, 1, in_order=True)
        self._foreign = True
        self._again(info)
        self._on_loop.queue(len(self.infos) - 1, self._queue_class(info, buffer_size=size))

    def _port(
        self,
        plan: _stoker.Plan,
        name: str,
        concurrency: int,
        on_error: str = "raise",
        allowed: int | Fraction = -1,
        shared: bool = False,
        in_order: bool = False,
    ) -> None:
        """`in_order`: a slip is put, or let go of, after those that were taken before it."""
        count, rate = _limits(allowed)
        plan.port(
            name=_short(name),
            concurrency=concurrency,
            on_error=on_error,
            max_failures=count,
            max_failure_rate=rate,
            shared_limit=shared,
            group=self._loop_number(),
            in_order=in_order,
        )

    def _note(self, name: str, concurrency: int | None, *, log: bool = False) -> FailureLog | None:
        info = StageInfo(self._pipeline_id, str(self._next_id), name, concurrency)
        self._next_id += 1
        self.infos.append(info)
        return FailureLog(info) if log else None

    def _group(self, name: str, limit: int, source: _stoker.Source | None = None) -> int:
        self.groups.append(Group(name, limit, source))
        return len(self.groups)

    def _pool_group(self) -> int:
        if not self._pool:
            self._pool = self._group("worker", self._num_threads)
        return self._pool

    # --- where items come from ---

    def _begin(self, config: PipelineConfig[Any]) -> _stoker.Plan:
        plan = _stoker.plan()
        src = config.src
        if isinstance(src, MergeConfig):
            self._merge(plan, src)
        elif isinstance(src.source, Source):
            self._parts = src.source._parts()
            self._foreign = False
            plan.source(src.source._handle(src.continuous))
            self._note("source", None)
        else:
            self._iterable(plan, src)
        if not isinstance(src, MergeConfig):
            self._queue(plan, self.infos[-1])
        return plan

    def _iterable(self, plan: _stoker.Plan, src: SourceConfig[Any]) -> None:
        source: Any = src.source
        if hasattr(type(source), "_stoker_parts"):  # see RegionSource; a proxy or a mock has any name itself
            self._parts, self._batched = source._stoker_parts, source._stoker_batched
        else:
            self._parts, self._batched = ("image",), False
        self._foreign = True
        if not hasattr(src.source, "__iter__") and hasattr(src.source, "__aiter__"):
            plan.port_source(self._loop_number())
            self._note("source", None)
            iterable: Any = src.source
            self._on_loop.source(len(self.infos) - 1, iterable, src.continuous)
            return
        handle = _stoker.iterable_source(src.source, src.continuous, repr(src)[:199])
        number = sum(group.source is not None for group in self.groups)
        name = f"source-{number}" if number else "source"
        group = self._group(name, 1, handle)
        stop = getattr(type(src.source), "_stoker_stop", None)  # see LiveReader
        if stop is not None:
            self.groups[group - 1].stop_waiting = partial(stop, src.source)
        plan.foreign_source(handle, group)
        self._note("source", None)

    def _merge(self, plan: _stoker.Plan, src: MergeConfig[Any]) -> None:
        assert src.continuous is not None  # it checks that they agree
        inputs = []
        foreign = False
        for config in src.pipeline_configs:
            upstream = self._begin(config)
            self._stages(upstream, config.pipes)
            inputs.append(upstream)
            foreign |= self._foreign
        self._foreign = foreign
        if src.op is None:
            plan.merge(inputs, not merges_in_turn(src.pipeline_configs))
            self._join(plan, "merge", noted=False)
            return
        hooks = self._hooks("merge", None)
        plan.port_merge(inputs, self._loop_number())
        self._note("merge", None)
        self._merge_on_loop(src.op, len(inputs), hooks)
        self._foreign = True

    def _merge_on_loop(self, op: Callable[..., Any], num: int, hooks: list[TaskHook]) -> None:
        from ._queues import AsyncQueue

        info = self.infos[-1]
        make = self._queue_class or AsyncQueue
        queues: list[Any] = [make(info, buffer_size=_QUEUE_SIZE) for _ in range(num + 1)]
        self._on_loop.merge(len(self.infos) - 1, op, info, queues[:-1], queues[-1], hooks)

    # --- stages ---

    def _stages(self, plan: _stoker.Plan, stages: Sequence[Stage]) -> None:
        stages = gather(stages)
        for stage, behind in zip(stages, [*stages[1:], None], strict=False):
            batched, self._batched = self._batched, isinstance(stage, BatchConfig)
            unbatches = batched and isinstance(stage, DisaggregateConfig)
            takes = "batches" if unbatches else self._takes(stage)
            if takes and self._foreign:
                self._convert(plan, stage, takes)
            self._foreign = not takes and (
                self._foreign or not isinstance(stage, PathVariantsConfig)
            )
            if isinstance(stage, PipeConfig):
                self._batched = takes == "batches"
                self._pipe(plan, stage, behind)
            elif isinstance(stage, BatchConfig):
                plan.batch(stage.n, drop_last=stage.drop_last, keep_empty=stage.keep_empty)
                self._note(stage.name, None)
            elif unbatches:
                plan.unbatch()
                self._note(stage.name, None)
            elif isinstance(stage, AggregateConfig):
                self._aggregate(plan, stage)
            elif isinstance(stage, DisaggregateConfig):
                self._disaggregate(plan, stage)
            elif isinstance(stage, PathVariantsConfig):
                self._variants(plan, stage)
            elif isinstance(stage, RegionConfig):
                self._region(plan, stage, batched)
            else:
                raise TypeError(f"{stage!r} is no stage")
            if not isinstance(stage, PathVariantsConfig):
                self._queue(plan, self.infos[-1])

    def _takes(self, stage: Stage | None) -> str | None:
        """What a stage of the engine is given ("keys", "bytes", ...); None: any object of Python."""
        if isinstance(stage, BatchConfig):
            return "arrays"
        if isinstance(stage, PipeConfig) and isinstance(stage.op, Op):
            return stage.op._handle(self._parts).takes
        return None

    def _convert(self, plan: _stoker.Plan, stage: Stage, takes: str) -> None:
        """A hop before `stage`, where no stage of Python's does it as its last step."""
        log = self._note("convert", 1, log=True)
        self._next_id -= 1  # it is no stage of the user's
        skips = isinstance(stage, PipeConfig) and stage.on_error == "skip"
        allowed = stage.max_failures if isinstance(stage, PipeConfig) else None
        count, rate = _limits((self._limit if allowed is None else allowed) if skips else -1)
        plan.pipe(
            _stoker.op_python("convert", None, log, takes, takes, _short(stage.name)),
            name="convert",
            concurrency=1,
            order="input",
            on_error="skip" if skips else "raise",
            max_failures=count,
            max_failure_rate=rate,
            group=self._pool_group(),
        )

    def _pipe(self, plan: _stoker.Plan, stage: PipeConfig, behind: Stage | None) -> None:
        allowed = stage.max_failures
        skips = stage.on_error == "skip"
        native = isinstance(stage.op, Op)
        if not native and self._pipe_on_loop(plan, stage):
            return
        if native and self._hooks(stage.name, stage.concurrency, native=True):
            raise TypeError(
                f"task_hook_factory gave hooks for stage {stage.name}, which is native: hooks are "
                "Python, and run around ops of Python"
            )
        if native and allowed is None:
            allowed = self._limit
        log = self._note(stage.name, stage.concurrency, log=not native)
        count, rate = _limits(allowed if skips and allowed is not None else -1)
        takes = None if native or self._queue_class is not None else self._takes(behind)
        if takes:
            self._foreign = False
        taker = _short(behind.name) if takes and behind else ""
        group = 0 if native else self._pool_group()
        plan.pipe(
            stage.op._handle(self._parts)
            if native
            else python_op(stage, log, takes, taker, self.groups[group - 1].closing),
            name=_short(stage.name),
            concurrency=stage.concurrency or 0,
            order="input" if self._in_turn and stage.concurrency != 1 else stage.output_order,
            on_error=stage.on_error,
            max_failures=count,
            max_failure_rate=rate,
            shared_limit=not native and skips and allowed is None,
            group=group,
        )

    def _pipe_on_loop(self, plan: _stoker.Plan, stage: PipeConfig) -> bool:
        """Whether the event loop has to run it: it awaits, or something is around its calls."""
        kind = kind_of(stage.op)
        hooks = self._hooks(stage.name, stage.concurrency)
        plain = stage.executor is None and stage.timeout is None and not hooks
        if plain and not is_async(kind):
            return False
        skips, own = stage.on_error == "skip", stage.max_failures
        allowed = own if own is not None else -1
        shared = skips and own is None
        concurrency = stage.concurrency or 1
        in_order = self._in_turn or concurrency == 1 or stage.output_order == "input"
        self._port(plan, stage.name, concurrency, stage.on_error, allowed, shared, in_order)
        log = self._note(stage.name, stage.concurrency, log=True)
        self._on_loop.pipe(len(self.infos) - 1, stage, kind, log, hooks, self._in_turn)
        return True

    def _aggregate(self, plan: _stoker.Plan, stage: AggregateConfig) -> None:
        op = stage.op
        hooks = self._hooks(stage.name, 1)
        if hooks:
            self._port(plan, stage.name, 1, "skip", -1, True, self._in_turn)
            log = self._note(stage.name, 1, log=True)
            self._on_loop.aggregate(len(self.infos) - 1, stage, log, hooks, self._in_turn)
            return
        log = self._note(stage.name, 1, log=True)
        if type(op) is Collate and not op._items:
            handle = _stoker.op_collate(op.n, stage.drop_last)
        else:
            handle = _stoker.op_python("fold", Folding(op, stage.drop_last), log, repr(stage)[:199])
        self._own(plan, handle, stage.name)

    def _disaggregate(self, plan: _stoker.Plan, stage: DisaggregateConfig) -> None:
        hooks = self._hooks(stage.name, 1)
        log = self._note(stage.name, 1, log=True)
        if hooks:
            self._port(plan, stage.name, 1, "skip", -1, True, self._in_turn)
            self._on_loop.disaggregate(len(self.infos) - 1, log, hooks, self._in_turn)
            return
        handle = _stoker.op_python("expand", same, log, "")
        self._own(plan, handle, stage.name, on_error="skip")

    def _own(
        self, plan: _stoker.Plan, handle: _stoker.Op, name: str, *, on_error: str = "raise"
    ) -> None:
        """A stage that the user gave no options for."""
        plan.pipe(
            handle,
            name=_short(name),
            concurrency=1,
            order="completion",
            on_error=on_error,
            max_failures=-1,
            max_failure_rate=0.0,
            shared_limit=on_error == "skip",
            group=self._pool_group(),
        )

    def _region(self, plan: _stoker.Plan, stage: RegionConfig, batched: bool) -> None:
        self._port(plan, stage.name, stage.num_workers, "skip")
        self._note(stage.name, stage.num_workers)
        self._on_loop.region(len(self.infos) - 1, stage, self._parts, batched)
        self._batched = stage.gives_batches(self._takes, batched)
        for inner in () if self._batched else stage.stages:
            if isinstance(inner, PipeConfig) and isinstance(inner.op, Op) and inner.op._handle(self._parts).adds:
                raise ValueError(
                    f"stage {inner.name}: {inner.op!r} adds parts to samples, which leave a region in batches only: "
                    "put batch() behind it, into the region"
                )

    def _variants(self, plan: _stoker.Plan, stage: PathVariantsConfig) -> None:
        self._router(plan, stage)
        info = self.infos[-1]
        self._again(info)  # the engine's own part of it
        paths = []
        before, foreign = self._foreign, False
        outside, self._in_turn = self._in_turn, self._in_turn or stage.batched
        for k, path in enumerate(stage.paths):
            inner = _stoker.plan()
            self._foreign = before
            if stage.batched:
                self._own(inner, _stoker.op_python("map", attrgetter("items"), None, ""), stage.name)
                self._again(info)
            place = StageInfo(self._pipeline_id, info.stage_id, f"{stage.name}_path{k}", None)
            self._queue(inner, place)
            self._stages(inner, path)
            paths.append(inner)
            foreign |= self._foreign
        self._foreign = foreign
        ordered = self._in_turn or rejoins_in_order(stage, any(self.watched))
        self._in_turn = outside
        plan.route(paths, _short(f"{stage.name}_merge"), "input" if ordered else "completion")
        if stage.batched:
            self._own(plan, _stoker.op_concat(len(paths)), f"{stage.name}_merge")
            self._again(info)
        self._join(plan, f"{stage.name}_merge")

    def _join(self, plan: _stoker.Plan, name: str, *, noted: bool = True) -> None:
        """Where paths or inputs come together counts as a stage: it has hooks and a queue, but does nothing of its
        own.  Not `noted`: the engine's part of it is one of its stages."""
        info = StageInfo(self._pipeline_id, str(self._next_id), name, None)
        hooks = self._hooks(name, None)
        self._next_id += 1
        if not noted:
            self._again(info)
        if hooks:
            self._port(plan, name, 1, in_order=True)
            self._again(info)
            self._on_loop.pass_on(len(self.infos) - 1, hooks)
            self._foreign = True
        self._queue(plan, info)

    def _again(self, info: StageInfo) -> None:
        """One more stage of the engine for one that was noted."""
        self.infos.append(info)

    def _router(self, plan: _stoker.Plan, stage: PathVariantsConfig) -> None:
        hooks = self._hooks(stage.name, 1)
        log = self._note(stage.name, 1, log=True)
        awaits = is_async(kind_of_call(stage.router))
        text = locate(stage.router)[:199]
        router = make_router(stage.router, len(stage.paths), stage.batched, awaits)
        if awaits or hooks:
            self._port(plan, stage.name, 1, in_order=True)
            index, routes = len(self.infos) - 1, not stage.batched
            self._on_loop.router(index, router, awaits, routes, hooks, stage.name, log)
        elif not stage.batched:
            self._own(plan, _stoker.op_python("route", router, log, text), stage.name)
        if not stage.batched:
            return
        if awaits or hooks:
            router = same
            self._again(self.infos[-1])
        self._own(plan, _stoker.op_python("expand", router, log, text), stage.name)
        self._own(plan, _stoker.op_python("route", attrgetter("path"), log, text), stage.name)
        self._again(self.infos[-1])


def _limits(allowed: int | Fraction) -> tuple[int, float]:
    """As the engine takes them: a count, negative for any, and a rate, 0 for any."""
    if isinstance(allowed, int):
        return allowed, 0.0
    return -1, float(allowed)


def _short(name: str) -> str:
    """Cut to what the engine keeps, between characters."""
    return name.encode()[:_NAME_BYTES].decode(errors="ignore")
