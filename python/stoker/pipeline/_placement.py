"""Which `.to(...)` are right: targets, sizes, and what a region may hold."""

from __future__ import annotations

import os
import sys

from .. import _check
from .._value import Value
from ..ops import Op
from .defs import (
    MAIN_PROCESS,
    BatchConfig,
    ExecutorConfig,
    InterpreterPoolExecutorConfig,
    MergeConfig,
    PathVariantsConfig,
    PipeConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Final

    from ._region_link import HoistedRegion
    from .defs import PipelineConfig
    from .defs._stages import Stage

__all__ = ["RegionConfig", "check_placement", "check_regions", "check_regions_of", "gather", "gives_batches"]

_NAME: Final = 47  # characters that the engine keeps of a stage's name


def check_placement(target: object, buffer_size: object) -> None:
    """TypeError: no target.  ValueError: no size.  RuntimeError: this Python cannot run it."""
    if target is not MAIN_PROCESS and not isinstance(
        target, (ProcessPoolExecutorConfig, InterpreterPoolExecutorConfig)
    ):
        live = hasattr(target, "submit")
        what = "a live Executor" if live else f"{target!r:.80}"
        raise TypeError(
            "target must be a ProcessPoolExecutorConfig, an InterpreterPoolExecutorConfig or "
            f"MAIN_PROCESS, not {what}"
        )
    if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 1:
        raise ValueError(f"`buffer_size` must be a positive integer, not {buffer_size!r}")
    if isinstance(target, InterpreterPoolExecutorConfig) and sys.version_info < (3, 14):
        raise RuntimeError("a region of InterpreterPoolExecutorConfig requires Python 3.14 or later")


def check_regions(stages: Sequence[Stage], *, closed: bool) -> None:
    """The marks among the stages; ValueError says which region is wrong.

    `closed`: the last region must be ended by MAIN_PROCESS rather than by the sink.
    """
    opening: PlacementConfig | None = None
    held: list[Stage] = []
    for stage in stages:
        if not isinstance(stage, PlacementConfig):
            held.append(stage)
            continue
        check_placement(stage.target, stage.buffer_size)
        if opening is not None:
            _check_region(opening, held)
        opening = None if stage.target is MAIN_PROCESS else stage
        held = []
    if opening is not None:
        if closed:
            raise ValueError(f"the region of {opening} must be closed with .to(MAIN_PROCESS)")
        _check_region(opening, held)


def check_regions_of(config: PipelineConfig[Any]) -> None:
    """Those of a pipeline and of the ones that are merged into it; the last may end with the sink."""
    check_regions(config.pipes, closed=False)
    if isinstance(config.src, MergeConfig):
        for upstream in config.src.pipeline_configs:
            check_regions_of(upstream)


def _check_region(opening: PlacementConfig, stages: Sequence[Stage]) -> None:
    if not stages:
        raise ValueError(f"the region of {opening} has no stages")
    for stage in _flat(stages):
        # Native ops keep the order by default, which is true of each worker.
        if (
            isinstance(stage, PipeConfig)
            and stage.output_order == "input"
            and not isinstance(stage.op, Op)
        ):
            raise ValueError(
                f"stage {stage.name!r}: output_order='input' is not possible in the region of "
                f"{opening}, whose workers give results as they complete"
            )


def _flat(stages: Iterable[Stage]) -> Iterable[Stage]:
    """The stages, with those in the paths of variants."""
    for stage in stages:
        yield stage
        if isinstance(stage, PathVariantsConfig):
            for path in stage.paths:
                yield from _flat(path)


# --- regions as stages ---


class RegionConfig(Value):
    """The stages between two marks."""

    __slots__ = ("name", "target", "num_workers", "stages", "in_size", "out_size", "region", "batches")

    name: str
    target: ExecutorConfig
    num_workers: int
    stages: tuple[Stage, ...]
    in_size: int
    out_size: int
    region: HoistedRegion | None  # its workers, where they run already
    batches: bool  # then, what they give

    def __init__(self, opening: PlacementConfig, stages: Sequence[Stage], out_size: int) -> None:
        sizes = ""
        if (opening.buffer_size, out_size) != (1, 1):
            sizes = f"[buffer_size in={opening.buffer_size} out={out_size}]"
        target = opening.target
        assert isinstance(target, ExecutorConfig)
        name = "+".join(stage.name for stage in stages)
        self._set(
            name=name[: max(0, _NAME - len(sizes))] + sizes,
            target=target,
            num_workers=_num_workers(target),
            stages=tuple(map(_stripped, stages)),
            in_size=opening.buffer_size,
            out_size=out_size,
            region=None,
            batches=False,
        )

    def hoisted(self, region: HoistedRegion, batches: bool) -> RegionConfig:
        """The same with workers that run."""
        other = object.__new__(RegionConfig)
        runs = {"target": None, "stages": (), "region": region, "batches": batches}
        other._set(**{**dict(self._items()), **runs})
        return other

    def gives_batches(self, takes: Callable[[Stage], str | None], batched: bool) -> bool:
        """Whether its results are batches of the engine.  `takes`: see PlanMaker.  `batched`: its items are."""
        return self.batches if self.region is not None else gives_batches(self.stages, takes, batched)


def _num_workers(target: ExecutorConfig) -> int:
    """The default is a worker for each processor."""
    if target.max_workers is None:
        return len(os.sched_getaffinity(0))
    return _check.integer("max_workers", target.max_workers, 1)


def gives_batches(stages: Iterable[Stage], takes: Callable[[Stage], str | None], batched: bool) -> bool:
    for stage in stages:
        native = isinstance(stage, PipeConfig) and takes(stage) == "batches"
        batched = isinstance(stage, BatchConfig) or native
    return batched


def gather(stages: Sequence[Any]) -> list[Any]:
    """The stages, with one in the place of each region's."""
    found: list[Any] = []
    opening: PlacementConfig | None = None
    held: list[Any] = []
    for stage in stages:
        if not isinstance(stage, PlacementConfig):
            (found if opening is None else held).append(stage)
            continue
        if opening is not None:
            found.append(RegionConfig(opening, held, stage.buffer_size))
        opening, held = (None if stage.target is MAIN_PROCESS else stage), []
    if opening is not None:
        found.append(RegionConfig(opening, held, 1))
    return found


def _stripped(stage: Any) -> Any:
    """Without executors, which belong to the main process."""
    if isinstance(stage, PipeConfig) and stage.executor is not None:
        options: dict[str, Any] = dict(stage._items())
        args: dict[str, Any] = dict(stage._args._items())
        return PipeConfig(**{**options, "_args": type(stage._args)(**{**args, "executor": None})})
    if isinstance(stage, PathVariantsConfig):
        paths = [[_stripped(inner) for inner in path] for path in stage.paths]
        return PathVariantsConfig(stage.name, stage.router, paths, stage.batched)
    return stage
