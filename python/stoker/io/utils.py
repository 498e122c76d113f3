"""What there is of FFmpeg, what was built in, and traces."""

from __future__ import annotations

from .. import _stoker
from ._trace import trace_counter, trace_event, trace_gc, tracing

__all__ = [
    "built_with_cuda",
    "built_with_nvcodec",
    "built_with_nvjpeg",
    "get_ffmpeg_filters",
    "get_ffmpeg_log_level",
    "get_ffmpeg_versions",
    "set_ffmpeg_log_level",
    "trace_counter",
    "trace_event",
    "trace_gc",
    "tracing",
]


def get_ffmpeg_versions() -> dict[str, tuple[int, int, int]]:
    """{"libavformat": (major, minor, micro), ...} of the libraries that are loaded.

    `UnsupportedError`: there are none; it says how to get them.
    """
    return _stoker.av_versions()


def get_ffmpeg_filters() -> list[str]:
    """Names of the filters that this FFmpeg has."""
    return [name for name, *_ in _stoker.av_filters()]


def get_ffmpeg_log_level() -> int:
    """FFmpeg's own log level, of the whole process: 32 is info, 16 errors, 8 fatal errors."""
    return _stoker.av_log_level()


def set_ffmpeg_log_level(level: int) -> None:
    """Sets FFmpeg's log level, of the whole process.

    Until it was set here, what FFmpeg logs in calls of Stoker goes nowhere but into the text of their errors.
    """
    _stoker.av_log_level(level)


def built_with_cuda() -> bool:
    """Whether CUDA was built in."""
    return False


def built_with_nvcodec() -> bool:
    """Whether NVDEC was built in."""
    return False


def built_with_nvjpeg() -> bool:
    """Whether nvJPEG was built in."""
    return False
