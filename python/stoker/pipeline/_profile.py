"""Measures each stage of a pipeline alone, at several concurrencies."""

from __future__ import annotations

import copy
import os
import sys
import time
from abc import ABC
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple

from .. import _check
from .._value import Value
from . import config as defaults
from ._build import build_pipeline
from ._pipeline import Pipeline
from ._report import LOGGER
from .defs import (
    MAIN_PROCESS,
    AggregateConfig,
    MergeConfig,
    PathVariantsConfig,
    PipeConfig,
    PipelineConfig,
    PlacementConfig,
    SinkConfig,
    SourceConfig,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .defs._stages import Stage

__all__ = ["DiagnosticPipeline", "ProfileHook", "ProfileResult", "ProfileStats", "is_profiling", "profile_pipeline"]

_CONCURRENCIES = (32, 16, 8, 4, 1)
_BUFFER = 2  # items between a stage and the reader, as between two stages
_THREADS = 32  # of runs that are not measured


class ProfileStats(NamedTuple):
    """How a stage did at one concurrency."""

    concurrency: int
    qps: float  # items that it gave a second
    occupancy_rate: float  # the share of the time in which its output queue was not empty


class ProfileResult(Value):
    """How one stage did: `stats` has an entry for each concurrency, the highest first."""

    __slots__ = ("name", "stats")
    __module__ = "stoker.pipeline"

    name: str
    stats: list[ProfileStats]

    def __init__(self, name: str, stats: Iterable[tuple[int, float, float]]) -> None:
        self._set(name=name, stats=[ProfileStats(*entry) for entry in stats])

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.stats)))

    def __str__(self) -> str:
        lines = [f"{self.name}:"]
        for entry in self.stats:
            lines.append(
                f"  concurrency {entry.concurrency:>2}: {entry.qps:12,.1f} items/s, "
                f"output not empty {100 * entry.occupancy_rate:5.1f} % of the time"
            )
        return "\n".join(lines)


class ProfileHook(ABC):
    """Runs code around the measurements, on the thread that called profile_pipeline()."""

    __module__ = "stoker.pipeline"

    def stage_profile_hook(self, stage: str, concurrency: int) -> AbstractContextManager[object]:
        """A context manager around each run of the stage of that name."""
        return nullcontext()

    def pipeline_profile_hook(self) -> AbstractContextManager[object]:
        """A context manager around the whole."""
        return nullcontext()


class _Plain(ProfileHook):
    pass


def profile_pipeline(
    cfg: PipelineConfig[Any],
    num_inputs: int = 1000,
    *,
    callback: Callable[[ProfileResult], object] | None = None,
    hook: ProfileHook | None = None,
) -> list[ProfileResult]:
    """Runs each stage alone: a result for each, those of a merge's upstream pipelines first.

    Fetches `num_inputs` items of each source and keeps what a stage makes of them in memory, for the next
    stage.  A stage runs with 32, 16, 8, 4 and 1 threads and calls at once, one that aggregates or disaggregates
    with 1.  Path variants and regions of other processes only pass their items on.  Nothing runs, and the list
    is empty, where LOCAL_RANK is not 0.

    `callback`: gets each result at once; its errors are logged.  None: config.set_default_profile_callback.
    `hook`: None: config.set_default_profile_hook.
    Raises PipelineFailure where a source or a stage fails.
    """
    num_inputs = _check.integer("num_inputs", num_inputs, 1)
    if os.environ.get("LOCAL_RANK", "").strip() not in ("", "0"):
        LOGGER.info("LOCAL_RANK is not 0: nothing is profiled")
        return []
    profiler = _Profiler(
        num_inputs,
        callback or defaults.get_default_profile_callback(),
        hook or defaults.get_default_profile_hook() or _Plain(),
    )
    with _profiling(), profiler.hook.pipeline_profile_hook():
        profiler.pipeline(cfg)
    return profiler.results


class _Profiler:
    def __init__(
        self, num_inputs: int, callback: Callable[[ProfileResult], object] | None, hook: ProfileHook
    ) -> None:
        self.num_inputs = num_inputs
        self.callback = callback
        self.hook = hook
        self.results: list[ProfileResult] = []

    def pipeline(self, cfg: PipelineConfig[Any]) -> list[Any]:
        """Profiles the stages of a pipeline; what they made of the inputs."""
        items = self._inputs(cfg.src)
        for stages in _steps(cfg.pipes):
            if len(stages) == 1 and not isinstance(stages[0], (PathVariantsConfig, PlacementConfig)):
                items = self._stage(stages[0], items)
            else:
                items, _ = _run(SourceConfig(items), stages, _THREADS)
        return items

    def _inputs(self, src: SourceConfig[Any] | MergeConfig[Any]) -> list[Any]:
        if isinstance(src, MergeConfig):
            made = [self.pipeline(upstream) for upstream in src.pipeline_configs]
            sources = [PipelineConfig(SourceConfig(items), (), SinkConfig(_BUFFER)) for items in made]
            return _run(MergeConfig(sources, src.op), (), _THREADS)[0]
        return _run(SourceConfig(src.source), (), 1, self.num_inputs)[0]

    def _stage(self, stage: Stage, items: list[Any]) -> list[Any]:
        """Measures a stage; what it made of the items when it was run first."""
        made: list[Any] | None = None
        entries: list[ProfileStats] = []
        for concurrency in _CONCURRENCIES if isinstance(stage, PipeConfig) else (1,):
            with self.hook.stage_profile_hook(stage.name, concurrency):
                results, entry = _run(SourceConfig(items), (_alone(stage, concurrency),), concurrency)
            entries.append(entry)
            made = results if made is None else made
        assert made is not None
        self._tell(ProfileResult(stage.name, entries))
        return made

    def _tell(self, result: ProfileResult) -> None:
        self.results.append(result)
        if self.callback is None:
            LOGGER.info("%s", result)
            return
        try:
            self.callback(result)
        except Exception:
            LOGGER.exception("the callback of profile_pipeline failed")


def _steps(stages: Sequence[Stage]) -> Iterator[tuple[Stage, ...]]:
    """Stages one by one; those from the mark that opens a region to the one that closes it together."""
    region: list[Stage] = []
    for stage in stages:
        closes = isinstance(stage, PlacementConfig) and stage.target is MAIN_PROCESS
        if region or (isinstance(stage, PlacementConfig) and not closes):
            region.append(stage)
            if closes:
                yield tuple(region)
                region = []
        elif not closes:
            yield (stage,)
    if region:
        yield tuple(region)


def _alone(stage: Stage, concurrency: int) -> Stage:
    """A copy of the stage, that runs at `concurrency` and leaves the state of the original as it is."""
    if isinstance(stage, PipeConfig):
        args, stage = copy.copy(stage._args), copy.copy(stage)
        args._set(concurrency=concurrency)
        stage._set(_args=args)
    elif isinstance(stage, AggregateConfig):
        try:
            stage = AggregateConfig(stage.name, copy.deepcopy(stage.op), stage.drop_last)
        except Exception as error:
            LOGGER.warning("%s cannot be copied, and keeps what profiling leaves in it: %s", stage, error)
    return stage


def _run(
    src: SourceConfig[Any] | MergeConfig[Any],
    stages: tuple[Stage, ...],
    concurrency: int,
    limit: int | None = None,
) -> tuple[list[Any], ProfileStats]:
    """The items, at most `limit`, that come out of a pipeline, and how its last queue did."""
    pipeline = build_pipeline(PipelineConfig(src, stages, SinkConfig(_BUFFER)), num_threads=concurrency)
    items: list[Any] = []
    start = time.perf_counter()
    with pipeline.auto_stop():
        for item in pipeline:
            items.append(item)
            if len(items) == limit:
                break
        elapsed = time.perf_counter() - start
        queues = pipeline.stats()["queues"]
    qps = len(items) / elapsed if elapsed > 0 else 0.0
    return items, ProfileStats(concurrency, qps, 1 - queues[-1]["empty"])


_within: ContextVar[bool] = ContextVar("within a profile", default=False)  # stages run in the reader's context


@contextmanager
def _profiling() -> Generator[None, None, None]:
    token = _within.set(True)
    try:
        yield
    finally:
        _within.reset(token)


def is_profiling() -> bool:
    """Whether a pipeline that is built here is of a profile, or of a stage that is profiled."""
    return _within.get()


class DiagnosticPipeline(Pipeline):
    """Profiles its stages when it is started or read, prints the results, and ends the program."""

    def __init__(self, cfg: PipelineConfig[Any]) -> None:
        self._cfg = cfg  # and nothing of what a pipeline that runs needs
        self._run = None

    def _diagnose(self) -> NoReturn:
        callback = defaults.get_default_profile_callback()
        profile_pipeline(self._cfg, defaults.diagnostic_mode_num_sources(), callback=callback or _show)
        raise SystemExit(0)

    def start(self, *, timeout: float | None = None, **kwargs: Any) -> None:
        self._diagnose()

    def stop(self, *, timeout: float | None = None) -> None:
        pass

    def auto_stop(self, *, timeout: float | None = None) -> NoReturn:
        self._diagnose()

    def __enter__(self) -> NoReturn:
        self._diagnose()

    def get_item(self, *, timeout: float | None = None) -> NoReturn:
        self._diagnose()

    def get_iterator(self, *, timeout: float | None = None) -> NoReturn:
        self._diagnose()

    def __str__(self) -> str:
        return str(self._cfg)

    def __repr__(self) -> str:
        return "<Pipeline, in diagnostic mode>"


def _show(result: ProfileResult) -> None:
    print(result, file=sys.stderr, flush=True)
