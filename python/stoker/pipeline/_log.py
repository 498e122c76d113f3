"""Failures of items, as log records."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from ._info import StageInfo

__all__ = ["FailureLog", "in_one_line", "place_of", "shorten"]

_LOGGED: Final = 10  # failures of a stage that are logged one by one; all are counted
_REPR: Final = 100  # characters of an item


class FailureLog:
    """Hears of each failure of one stage, from any thread."""

    def __init__(self, info: StageInfo) -> None:
        self.info = info
        self._lock = threading.Lock()  # guards `count`
        self.count = 0

    def __call__(self, error: BaseException, item: object, item_id: int) -> None:
        with self._lock:
            self.count += 1
            count = self.count
        text = f"stage {self.info}, item {item_id}: {shorten(item)}"
        error.add_note(text)
        if count > _LOGGED:
            return
        import logging

        from .config import is_compact_log

        logger = logging.getLogger("stoker.pipeline")
        last = "; later failures of this stage are counted only" if count == _LOGGED else ""
        if is_compact_log():
            logger.error("%s: %s%s", " ".join(text.split()), in_one_line(error), last)
        else:
            logger.error("%s%s", text, last, exc_info=(type(error), error, error.__traceback__))


def place_of(error: BaseException) -> tuple[str, int, str]:
    """Where it was raised: file, line, function."""
    trace = error.__traceback__
    if trace is None:
        return "", 0, ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return code.co_filename, trace.tb_lineno, code.co_name


def in_one_line(error: BaseException) -> str:
    """For compact logs."""
    file, line, function = place_of(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({file}:{line}:{function})"


def shorten(item: object) -> str:
    try:
        text = repr(item)
    except Exception as error:
        text = f"<{type(item).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= _REPR else f"{text[: _REPR - 3]}..."
