"""Whether stages keep the order of their input, as far as their users ask for it."""

from __future__ import annotations

from ..ops import Op
from ._kinds import is_async, kind_of, kind_of_call
from .defs import DisaggregateConfig, MergeConfig, PathVariantsConfig, PipeConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .defs import PipelineConfig
    from .defs._stages import Stage

__all__ = ["merges_in_turn", "rejoins_in_order"]


def rejoins_in_order(stage: PathVariantsConfig, watched: bool) -> bool:
    """Whether the results of its paths can rejoin in the order of what went into them.

    `watched`: hooks or queues of users are around the stages.  Where these, or the event loop, have a
    part in it, only stages that give one result for each input can say which one it belongs to.
    """
    inner = list(_stages_of(stage.paths))
    expands = any(map(_expands, inner))
    if expands and (watched or any(map(_needs_loop, inner))):
        return False
    return all(map(_is_ordered, inner))


def _is_ordered(stage: Stage) -> bool:
    if isinstance(stage, PathVariantsConfig):
        return not stage.batched
    if isinstance(stage, PipeConfig):
        return stage.output_order == "input"
    return isinstance(stage, DisaggregateConfig)


def _expands(stage: Stage) -> bool:
    if isinstance(stage, PipeConfig):
        return not isinstance(stage.op, Op) and kind_of(stage.op) == "generator"
    return isinstance(stage, DisaggregateConfig)


def _needs_loop(stage: Stage) -> bool:
    if isinstance(stage, PathVariantsConfig):
        return is_async(kind_of_call(stage.router))
    if not isinstance(stage, PipeConfig) or isinstance(stage.op, Op):
        return False
    return is_async(kind_of(stage.op)) or stage.executor is not None or stage.timeout is not None


def merges_in_turn(upstreams: Iterable[PipelineConfig[Any]]) -> bool:
    """Whether there are pipes before a merge, and all of them keep the order of their input."""
    orders = [pipe.output_order for config in upstreams for pipe in _pipes(config)]
    return bool(orders) and all(order == "input" for order in orders)


def _pipes(config: PipelineConfig[Any]) -> Iterator[PipeConfig]:
    if isinstance(config.src, MergeConfig):
        for upstream in config.src.pipeline_configs:
            yield from _pipes(upstream)
    for stage in _stages_of([config.pipes]):
        if isinstance(stage, PipeConfig):
            yield stage


def _stages_of(paths: Iterable[Iterable[Stage]]) -> Iterator[Stage]:
    """All, those of paths within paths too."""
    for path in paths:
        for stage in path:
            yield stage
            if isinstance(stage, PathVariantsConfig):
                yield from _stages_of(stage.paths)
