"""Which `.to(...)` are right: targets, sizes, and what a region may hold."""

from __future__ import annotations

import sys

from .defs import (
    MAIN_PROCESS,
    InterpreterPoolExecutorConfig,
    PathVariantsConfig,
    PipeConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .defs._stages import Stage

__all__ = ["check_placement", "check_regions"]


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


def _check_region(opening: PlacementConfig, stages: Sequence[Stage]) -> None:
    if not stages:
        raise ValueError(f"the region of {opening} has no stages")
    for stage in _flat(stages):
        if isinstance(stage, PipeConfig) and stage.output_order == "input":
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
