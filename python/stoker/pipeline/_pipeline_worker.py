"""A pipeline in a worker: what the worker gets, and iterates."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .defs import PipelineConfig

__all__ = ["PipelineMaker", "build_arguments", "is_continuous", "random_state", "set_random_state"]

_BUILD = (
    "num_threads",
    "max_failures",
    "report_stats_interval",
    "queue_class",
    "task_hook_factory",
    "background_tasks",
    "use_thread_output_queue",
)


def build_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Of the arguments of a function that runs a pipeline elsewhere, those of build_pipeline()."""
    return {name: given[name] for name in _BUILD}


def is_continuous(config: Any) -> bool:
    """Whether each pass is an epoch of one pipeline."""
    merged = getattr(config.src, "pipeline_configs", None)
    return bool(config.src.continuous) if merged is None else any(map(is_continuous, merged))


class PipelineMaker:
    """Called in the worker: gives an iterable that builds a pipeline for each pass."""

    def __init__(self, config: PipelineConfig, build: dict[str, Any]) -> None:
        self._config = config
        self._build = build

    def __call__(self) -> Pipelines:
        from ._hoist import restore

        return Pipelines(restore(self._config), self._build)


class Pipelines:
    """A pipeline for each pass; one for all where the source is continuous."""

    def __init__(self, config: PipelineConfig, build: dict[str, Any]) -> None:
        self._config = config
        self._build = build
        self._kept = self._make() if is_continuous(config) else None

    def _make(self) -> Any:
        from ._build import build_pipeline

        return build_pipeline(self._config, **self._build)

    def __iter__(self) -> Iterator[Any]:
        if self._kept is not None:
            return iter(self._kept)
        return self._pass()

    def _pass(self) -> Iterator[Any]:
        pipeline = self._make()
        with pipeline.auto_stop():
            yield from pipeline


def random_state(*, only_random: bool = False) -> dict[str, Any]:
    """The global generators of this process, of the libraries that are imported."""
    state: dict[str, Any] = {}
    random, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy.random", "torch"))
    if random is not None:
        state["random"] = random.getstate()
    if numpy is not None and not only_random:
        state["numpy"] = numpy.get_state()
    if torch is not None and not only_random:
        state["torch"] = torch.get_rng_state().numpy().tobytes()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    if "random" in state:
        import random

        random.setstate(state["random"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(state["numpy"])
    if "torch" in state:
        import torch

        torch.set_rng_state(torch.frombuffer(bytearray(state["torch"]), dtype=torch.uint8))
