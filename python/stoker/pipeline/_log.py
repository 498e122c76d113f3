"""Failures of items, as log records."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Final

    from ._info import StageInfo

__all__ = ["FailureLog", "forget_locals", "in_one_line", "place_of", "shorten"]

_LOGGED: Final = 10  # failures of a stage that are logged one by one; all are counted
_REPR: Final = 100  # characters of an item
_DEPTH: Final = 3  # of containers in containers
_WAITS: Final = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR of inspect
_HERE: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep


class FailureLog:
    """Hears of each failure of one stage, from any thread."""

    def __init__(self, info: StageInfo) -> None:
        # What a failure needs, for good: a thread in the middle of an import would, in a child of fork,
        # hold that module's lock for ever.
        import logging
        from .config import is_compact_log

        self._logger = logging.getLogger("stoker.pipeline")
        self._is_compact = is_compact_log
        self.info = info
        self._lock = threading.Lock()  # guards `count`
        self.count = 0

    def __call__(self, error: BaseException, item: object, item_id: int) -> None:
        with self._lock:
            self.count += 1
            count = self.count
        begin = f"stage {self.info}, item "
        text = f"{begin}{item_id}: {shorten(item)}"
        again = any(str(note).startswith(begin) for note in getattr(error, "__notes__", ()))
        trace = error.__traceback__ = _of_users(error.__traceback__)
        if again and trace is not None:
            _forget_earlier(trace)
        try:
            if count <= _LOGGED:
                self._log(error, text, trace, count == _LOGGED)
        finally:
            if count <= _LOGGED or not again:
                error.add_note(text)

    def _log(self, error: BaseException, text: str, trace: TracebackType | None, is_last: bool) -> None:
        logger = self._logger
        last = "; later failures of this stage are counted only" if is_last else ""
        if self._is_compact():
            logger.error("%s: %s%s", " ".join(text.split()), in_one_line(error), last)
        else:
            logger.error("%s%s", text, last, exc_info=(type(error), error, trace))


def _of_users(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames that led from here to the user's op; None: it did not come to it."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace


def _forget_earlier(trace: TracebackType) -> None:
    """Of an object that is raised again and again: Python puts the frames of each time before those of
    the time before, and has no limit."""
    code, at = trace.tb_frame.f_code, trace
    while at.tb_next is not None:
        if at.tb_next.tb_frame.f_code is code:
            at.tb_next = None
            return
        at = at.tb_next


def forget_locals(error: BaseException) -> None:
    """Lets go of what the functions in its traceback, and in those of what led to it, held: items,
    above all.  What is printed of it stays."""
    seen: dict[int, BaseException] = {}
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen[id(one)] = one
        left += [one.__cause__, one.__context__]
        trace = one.__traceback__
        while trace is not None:
            if _can_clear(trace.tb_frame):
                with suppress(RuntimeError):  # it runs
                    trace.tb_frame.clear()
            trace = trace.tb_next


def _can_clear(frame: FrameType) -> bool:
    """Before Python 3.13 this would close a generator, or a coroutine, that waits."""
    return sys.version_info >= (3, 13) or not frame.f_code.co_flags & _WAITS


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
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return f"{text} ({file}:{line}:{function})" if file else text


def shorten(item: object) -> str:
    """The beginning of repr(item), without the rest being made where the item is large."""
    try:
        text = _beginning(item, 0)
    except Exception as error:
        text = f"<{type(item).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= _REPR else f"{text[: _REPR - 3]}..."


def _beginning(item: object, depth: int) -> str:
    """repr(item), or at least as much of it as is shown."""
    kind = type(item)
    if depth > _DEPTH:
        return repr(item)
    if kind in (str, bytes, bytearray):
        assert isinstance(item, (str, bytes, bytearray))
        return repr(item[: _REPR + 1])
    if kind is list or kind is tuple:
        assert isinstance(item, (list, tuple))
        text = "[" if kind is list else "("
        for value in item:
            text += f"{_beginning(value, depth + 1)}, "
            if len(text) > _REPR + 2:
                return text
    if kind is dict:
        assert isinstance(item, dict)
        text = "{"
        for key, value in item.items():
            text += f"{_beginning(key, depth + 1)}: {_beginning(value, depth + 1)}, "
            if len(text) > _REPR + 2:
                return text
    return repr(item)
