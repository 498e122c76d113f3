"""Which stages the event loop serves, and how it calls their ops."""

from __future__ import annotations

from functools import partial
from operator import getitem

from ._calls import Place, sync_call, with_hooks, with_retries, with_timeout
from ._edges import CustomMerge, QueueEdge
from ._hooks import stage_context
from ._locate import locate
from ._slots import AsyncMap
from ._steps import stepping, steps_with_hooks, steps_with_retries, steps_with_timeout
from ._streams import AsyncAggregate, AsyncExpand, AsyncSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
    from concurrent.futures import Executor
    from typing import Any

    from ._calls import Call
    from ._hooks import TaskHook
    from ._info import StageInfo
    from ._kinds import Kind
    from ._log import FailureLog
    from ._loop import Loop, LoopStage
    from ._placement import RegionConfig
    from ._regions import RegionStage
    from ._steps import Generate
    from .defs import AggregateConfig, PipeConfig

__all__ = ["LoopPlan"]


class LoopPlan:
    """Collects the stages of a pipeline's event loop."""

    def __init__(self) -> None:
        self.stages: list[LoopStage] = []
        self.executors: list[Executor] = []  # made for ExecutorConfigs: they end with the loop
        self.regions: list[RegionStage] = []

    def _add(self, stage: LoopStage, hooks: Sequence[TaskHook], name: str = "", op: Any = None) -> None:
        stage.contexts = [stage_context(hook) for hook in hooks]
        if name:
            stage.text = lambda: f"stage {name}, op {locate(op)}"
        self.stages.append(stage)

    def source(self, index: int, source: AsyncIterable[Any], continuous: bool) -> None:
        self._add(AsyncSource(index, source, continuous), (), "source", source)

    def pipe(
        self,
        index: int,
        stage: PipeConfig,
        kind: Kind,
        log: FailureLog | None,
        hooks: Sequence[TaskHook],
        in_turn: bool,
    ) -> None:
        """`in_turn`: within batched paths, which have to know whose results they get."""
        executor = self._executor(stage.executor)
        concurrency = stage.concurrency or 1
        if kind in ("generator", "async_generator"):
            generate = partial(_generate, stage, kind, executor, hooks)
            self._add(AsyncExpand(index, generate, concurrency, log, in_turn), hooks, stage.name, stage.op)
            return
        ordered = in_turn or stage.output_order == "input"
        make = partial(_call, stage, kind, executor, hooks)
        self._add(AsyncMap(index, make, concurrency, ordered, log), hooks, stage.name, stage.op)

    def router(
        self,
        index: int,
        router: Callable[[Any], Any],
        is_async: bool,
        routes: bool,
        hooks: Sequence[TaskHook],
        name: str,
        log: FailureLog | None,
    ) -> None:
        """`routes`: gives the index of a path; else what goes down the paths."""

        def make(loop: Loop) -> Call:
            return with_hooks(router if is_async else sync_call(router, Place(loop, None, name)), hooks)

        self._add(AsyncMap(index, make, 1, True, log, is_router=routes), hooks, name, router)

    def pass_on(self, index: int, hooks: Sequence[TaskHook]) -> None:
        """A stage that has a life, and no tasks."""
        self._add(AsyncMap(index, lambda loop: _same, 1, True, None), hooks)

    def aggregate(
        self,
        index: int,
        stage: AggregateConfig,
        log: FailureLog | None,
        hooks: Sequence[TaskHook],
        in_turn: bool,
    ) -> None:
        wrap = partial(with_hooks, hooks=hooks)
        fold = AsyncAggregate(index, stage.op, stage.drop_last, wrap, log, in_turn)
        self._add(fold, hooks, stage.name, stage.op)

    def disaggregate(
        self, index: int, log: FailureLog | None, hooks: Sequence[TaskHook], in_turn: bool
    ) -> None:
        def generate(loop: Loop) -> Generate:
            return steps_with_hooks(_each, hooks)

        self._add(AsyncExpand(index, generate, 1, log, in_turn), hooks)

    def region(self, index: int, config: RegionConfig, parts: Sequence[str], batched: bool) -> None:
        from ._regions import RegionStage

        self.regions.append(RegionStage(index, config, parts, batched))
        self._add(self.regions[-1], ())

    def queue(self, index: int, queue: asyncio.Queue[Any]) -> None:
        stage = QueueEdge(index, queue)
        hook = getattr(queue, "stage_hook", None)
        stage.contexts = [hook()] if hook is not None else []
        self.stages.append(stage)

    def merge(
        self,
        index: int,
        op: Callable[..., Any],
        info: StageInfo,
        inputs: Sequence[asyncio.Queue[Any]],
        output: asyncio.Queue[Any],
        hooks: Sequence[TaskHook],
    ) -> None:
        self._add(CustomMerge(index, op, info, inputs, output), hooks, info.stage_name, op)

    def _executor(self, executor: Any) -> Executor | None:
        from .defs import (
            ExecutorConfig,
            InterpreterPoolExecutorConfig,
            ProcessPoolExecutorConfig,
        )

        if executor is None or not isinstance(executor, ExecutorConfig):
            return executor
        import concurrent.futures as futures

        made: Executor
        settings: dict[str, Any] = {
            "max_workers": executor.max_workers,
            "initializer": executor.initializer,
            "initargs": executor.initargs,
        }
        if isinstance(executor, ProcessPoolExecutorConfig):
            context = executor.mp_context
            if isinstance(context, str):
                import multiprocessing

                context = multiprocessing.get_context(context)
            made = futures.ProcessPoolExecutor(mp_context=context, **settings)
        elif isinstance(executor, InterpreterPoolExecutorConfig):
            pool = getattr(futures, "InterpreterPoolExecutor", None)
            if pool is None:
                raise RuntimeError("a pool of interpreters requires Python 3.14")
            made = pool(**settings)
        else:
            made = futures.ThreadPoolExecutor(**settings)
        self.executors.append(made)
        return made


def _call(
    stage: PipeConfig, kind: Kind, executor: Executor | None, hooks: Sequence[TaskHook], loop: Loop
) -> Call:
    op: Callable[[Any], Any] = partial(getitem, stage.op) if kind == "container" else stage.op
    if kind != "async":
        call = sync_call(op, Place(loop, executor, stage.name), stage.timeout, stage.name)
    else:
        call = op if stage.timeout is None else with_timeout(op, stage.timeout, stage.name)
    if stage.retries:
        call = with_retries(call, stage.retries)
    return with_hooks(call, hooks)


def _generate(
    stage: PipeConfig, kind: Kind, executor: Executor | None, hooks: Sequence[TaskHook], loop: Loop
) -> Generate:
    if kind == "generator":
        generate = stepping(stage.op, Place(loop, executor, stage.name), stage.timeout, stage.name)
    else:
        generate = stage.op
        if stage.timeout is not None:
            generate = steps_with_timeout(generate, stage.timeout, stage.name)
    if stage.retries:
        generate = steps_with_retries(generate, stage.retries)
    return steps_with_hooks(generate, hooks) if hooks else generate


async def _same(item: Any) -> Any:
    return item


async def _each(items: Any) -> AsyncGenerator[Any, None]:
    for item in items:
        yield item
