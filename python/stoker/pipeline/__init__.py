"""Pipelines: a source, stages and a sink, built once and read item by item.

Names are looked up when they are first used, as those of stoker are.
"""

from .._lazy import lookup as _lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import config as config
    from . import defs as defs
    from ._arena_pool import SharedMemorySegmentPool
    from ._arena_ring import SharedMemoryRingBuffer
    from ._build import build_pipeline
    from ._builder import PipelineBuilder
    from ._cache import cache_iterator
    from ._failure import PipelineFailure
    from ._hooks import TaskHook, TaskStatsHook
    from ._info import QueuePerfStats, StageInfo, TaskPerfStats
    from ._monitor import ProcessGroupResourceUsage, ProcessGroupStatsMonitor
    from ._pipeline import Pipeline, PipelineIterator
    from ._priority import (
        PriorityExecutorEntrypoint,
        PriorityInterpreterPoolExecutor,
        PriorityProcessPoolExecutor,
        PriorityThreadPoolExecutor,
    )
    from ._profile import ProfileHook, ProfileResult, profile_pipeline
    from ._queues import AsyncQueue, StatsQueue
    from ._sentinels import is_eof, is_epoch_end
    from ._subinterpreter import iterate_in_subinterpreter, run_pipeline_in_subinterpreter
    from ._subprocess import iterate_in_subprocess, run_pipeline_in_subprocess
    from ._tasks import BackgroundTask, BackgroundTaskFactory, create_task

_MODULES = ("config", "defs")
_NAMES = {
    "_arena_pool": ("SharedMemorySegmentPool",),
    "_arena_ring": ("SharedMemoryRingBuffer",),
    "_build": ("build_pipeline",),
    "_builder": ("PipelineBuilder",),
    "_cache": ("cache_iterator",),
    "_failure": ("PipelineFailure",),
    "_hooks": ("TaskHook", "TaskStatsHook"),
    "_info": ("QueuePerfStats", "StageInfo", "TaskPerfStats"),
    "_monitor": ("ProcessGroupResourceUsage", "ProcessGroupStatsMonitor"),
    "_pipeline": ("Pipeline", "PipelineIterator"),
    "_priority": (
        "PriorityExecutorEntrypoint",
        "PriorityInterpreterPoolExecutor",
        "PriorityProcessPoolExecutor",
        "PriorityThreadPoolExecutor",
    ),
    "_profile": ("ProfileHook", "ProfileResult", "profile_pipeline"),
    "_queues": ("AsyncQueue", "StatsQueue"),
    "_sentinels": ("is_eof", "is_epoch_end"),
    "_subinterpreter": ("iterate_in_subinterpreter", "run_pipeline_in_subinterpreter"),
    "_subprocess": ("iterate_in_subprocess", "run_pipeline_in_subprocess"),
    "_tasks": ("BackgroundTask", "BackgroundTaskFactory", "create_task"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "AsyncQueue",
    "BackgroundTask",
    "BackgroundTaskFactory",
    "Pipeline",
    "PipelineBuilder",
    "PipelineFailure",
    "PipelineIterator",
    "PriorityExecutorEntrypoint",
    "PriorityInterpreterPoolExecutor",
    "PriorityProcessPoolExecutor",
    "PriorityThreadPoolExecutor",
    "ProcessGroupResourceUsage",
    "ProcessGroupStatsMonitor",
    "ProfileHook",
    "ProfileResult",
    "QueuePerfStats",
    "SharedMemoryRingBuffer",
    "SharedMemorySegmentPool",
    "StageInfo",
    "StatsQueue",
    "TaskHook",
    "TaskPerfStats",
    "TaskStatsHook",
    "build_pipeline",
    "cache_iterator",
    "create_task",
    "is_eof",
    "is_epoch_end",
    "iterate_in_subinterpreter",
    "iterate_in_subprocess",
    "profile_pipeline",
    "run_pipeline_in_subinterpreter",
    "run_pipeline_in_subprocess",
]

__getattr__, __dir__ = _lookup(globals(), _HOMES, _MODULES)
