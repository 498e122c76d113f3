"""Pipelines as plain values: what PipelineBuilder collects and build_pipeline() takes."""

from ._ends import MergeConfig, PipelineConfig, SinkConfig, SourceConfig
from ._make import Aggregate, Disaggregate, Merge, PathVariants, Pipe
from ._places import (
    MAIN_PROCESS,
    ExecutorConfig,
    InterpreterPoolExecutorConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
    _MainProcess,
)
from ._stages import (
    AggregateConfig,
    Aggregator,
    BatchConfig,
    Collate,
    DisaggregateConfig,
    PathVariantsConfig,
    PipeConfig,
    _PipeArgs,
    _PipeType,
)

__all__ = [
    "MAIN_PROCESS",
    "Aggregate",
    "AggregateConfig",
    "Aggregator",
    "BatchConfig",
    "Collate",
    "Disaggregate",
    "DisaggregateConfig",
    "ExecutorConfig",
    "InterpreterPoolExecutorConfig",
    "Merge",
    "MergeConfig",
    "PathVariants",
    "PathVariantsConfig",
    "Pipe",
    "PipeConfig",
    "PipelineConfig",
    "PlacementConfig",
    "ProcessPoolExecutorConfig",
    "SinkConfig",
    "SourceConfig",
    "_MainProcess",
    "_PipeArgs",
    "_PipeType",
]
