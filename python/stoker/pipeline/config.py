"""Defaults of the pipelines that a process builds, set by a program or by its environment.

Each may be set at any time, from any thread; a pipeline takes what is set when it is built.

Environment (the first name counts): STOKER_PIPELINE_COMPACT_LOG or SPDL_PIPELINE_COMPACT_LOG,
STOKER_PIPELINE_DIAGNOSTIC_MODE or SPDL_PIPELINE_DIAGNOSTIC_MODE,
STOKER_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS or SPDL_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS (1000).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final, TypeVar

    from ._hooks import TaskHook
    from ._profile import ProfileHook, ProfileResult
    from ._tasks import BackgroundTask, BackgroundTaskFactory
    from .defs import PipelineConfig

    F = TypeVar("F", bound=Callable[..., object])

__all__ = [
    "diagnostic_mode_num_sources",
    "get_default_background_tasks",
    "get_default_build_callback",
    "get_default_hook_class",
    "get_default_profile_callback",
    "get_default_profile_hook",
    "get_default_queue_class",
    "is_diagnostic_mode_enabled",
    "set_compact_log",
    "set_default_background_tasks",
    "set_default_build_callback",
    "set_default_hook_class",
    "set_default_profile_callback",
    "set_default_profile_hook",
    "set_default_queue_class",
]

_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("", "0", "false", "no", "off")

_hook_class: Callable[..., TaskHook] | None = None
_queue_class: Callable[..., Any] | None = None
_profile_hook: ProfileHook | None = None
_profile_callback: Callable[[ProfileResult], object] | None = None
_build_callback: Callable[[PipelineConfig], object] | None = None
_background_tasks: tuple[BackgroundTask | BackgroundTaskFactory, ...] = ()
_compact_log: bool | None = None  # None: what the environment says


def _variable(name: str) -> tuple[str, str]:
    """The variable that counts, and its value, "" where none is set."""
    for prefix in ("STOKER", "SPDL"):
        full = f"{prefix}_PIPELINE_{name}"
        if full in os.environ:
            return full, os.environ[full].strip()
    return f"STOKER_PIPELINE_{name}", ""


def _flag(name: str) -> bool:
    variable, value = _variable(name)
    if value.lower() in _YES:
        return True
    if value.lower() in _NO:
        return False
    raise ValueError(f"{variable} must be one of {', '.join(filter(None, _YES + _NO))}, not {value!r}")


def is_diagnostic_mode_enabled() -> bool:
    """Whether pipelines profile themselves, and then end the program, in place of running."""
    return _flag("DIAGNOSTIC_MODE")


def diagnostic_mode_num_sources() -> int:
    """How many items of a source are fetched for that; 1000 unless the environment says otherwise."""
    variable, value = _variable("DIAGNOSTIC_MODE_NUM_ITEMS")
    if not value:
        return 1000
    if not value.isdecimal() or int(value) < 1:
        raise ValueError(f"{variable} must be a whole number, at least 1, not {value!r}")
    return int(value)


def get_default_hook_class() -> Callable[..., TaskHook]:
    """What hooks a stage without `task_hook_factory`; TaskStatsHook unless set."""
    if _hook_class is not None:
        return _hook_class
    from ._hooks import TaskStatsHook

    return TaskStatsHook


def set_default_hook_class(hook_class: Callable[..., TaskHook] | None = None) -> None:
    """`hook_class`, a class or a function, is called as hook_class(info, interval=seconds).

    None: TaskStatsHook again.
    """
    global _hook_class
    _hook_class = _function("hook_class", hook_class)


def get_default_queue_class() -> Callable[..., Any]:
    """The queues of a pipeline without `queue_class`; StatsQueue unless set."""
    if _queue_class is not None:
        return _queue_class
    from ._queues import StatsQueue

    return StatsQueue


def set_default_queue_class(queue_class: Callable[..., Any] | None = None) -> None:
    """`queue_class`, a class or a function, is called as queue_class(info, buffer_size=n, interval=seconds).

    None: StatsQueue again.
    """
    global _queue_class
    _queue_class = _function("queue_class", queue_class)


def get_default_profile_hook() -> ProfileHook | None:
    """What profile_pipeline() without `hook` calls around its runs."""
    return _profile_hook


def set_default_profile_hook(hook: ProfileHook | None = None) -> None:
    """`hook` is what profile_pipeline() calls around its runs; None: nothing again."""
    global _profile_hook
    _profile_hook = hook


def get_default_profile_callback() -> Callable[[ProfileResult], object] | None:
    """What profile_pipeline() without `callback` gives each result to."""
    return _profile_callback


def set_default_profile_callback(callback: Callable[[ProfileResult], object] | None = None) -> None:
    """`callback` is called as callback(result) by profile_pipeline(); None: nothing again."""
    global _profile_callback
    _profile_callback = _function("callback", callback)


def get_default_build_callback() -> Callable[[PipelineConfig], object] | None:
    """What is told of each pipeline that is built."""
    return _build_callback


def set_default_build_callback(callback: Callable[[PipelineConfig], object] | None = None) -> None:
    """`callback` gets the configuration before the pipeline is built; its errors are logged only."""
    global _build_callback
    _build_callback = _function("callback", callback)


def get_default_background_tasks() -> list[BackgroundTask | BackgroundTaskFactory]:
    """What runs beside a pipeline without `background_tasks`; nothing unless set."""
    return list(_background_tasks)


def set_default_background_tasks(
    tasks: Sequence[BackgroundTask | BackgroundTaskFactory] | None = None,
) -> None:
    """None: nothing."""
    global _background_tasks
    _background_tasks = tuple(tasks or ())


def set_compact_log(value: bool) -> None:
    """Whether an error is logged in one line, without its traceback."""
    global _compact_log
    _compact_log = bool(value)


def is_compact_log() -> bool:
    """Never fails, as it is asked while another error is reported."""
    global _compact_log
    if _compact_log is not None:
        return _compact_log
    try:
        return _flag("COMPACT_LOG")
    except ValueError as error:
        import logging

        logging.getLogger("stoker.pipeline").warning("%s", error)
        _compact_log = False
        return False


def _function(name: str, value: F | None) -> F | None:
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable, not {type(value).__name__}")
    return value
