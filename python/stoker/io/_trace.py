"""What threads do when, as files that ui.perfetto.dev shows."""

from __future__ import annotations

import os
import threading
from contextlib import ContextDecorator, contextmanager

from .. import _stoker
from .._check import integer, number
from ..errors import BusyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

__all__ = ["trace_counter", "trace_event", "trace_gc", "tracing"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_BUSY = "a trace is being written already"


@contextmanager
def tracing(
    output: int | str | os.PathLike[str],
    buffer_size: int = 4096,
    process_name: str | None = None,
    enable: bool = True,
) -> Iterator[None]:
    """Writes a trace while the body of `with` runs, in Perfetto's format: open it in https://ui.perfetto.dev.

    It has slices of `trace_event`, values of `trace_counter`, collections (`trace_gc`), what stages of pipelines run
    on their threads, native ones too, and calls into FFmpeg.
    output: a path, or the descriptor of an open file.
    buffer_size: KiB that may wait to be written.  What finds no room there is dropped, and counted in a warning of the
        logger `stoker.io`; nobody waits for the file.
    process_name: by default that of the program.
    enable: False does nothing.
    Errors: `BusyError`: a trace is being written already, there is one at a time; OSError: the file.
    """
    size = integer("buffer_size", buffer_size, 1, 1 << 24) << 10
    if not enable:
        yield
        return
    if _stoker.trace_on():
        raise BusyError(_BUSY)
    own = not isinstance(output, int)
    fd = output if isinstance(output, int) else os.open(output, _NEW, 0o666)
    try:
        _stoker.trace_start(fd, size, process_name)
        try:
            yield
        finally:
            _report(_stoker.trace_stop())
    finally:
        if own:
            os.close(fd)


def _report(dropped: int) -> None:
    if dropped:
        import logging

        logging.getLogger("stoker.io").warning(
            "%d events of the trace were dropped: its file took them too slowly for the buffer (buffer_size=)",
            dropped,
        )


class _Named(threading.local):
    """Names each thread that traces something, once."""

    def __init__(self) -> None:
        _stoker.trace_thread(threading.current_thread().name)

    def begin(self, name: str) -> int:
        return _stoker.trace_begin(name)


_named: _Named | None = None


def _begin(name: str) -> int:
    global _named
    if not _stoker.trace_on():
        return 0
    if _named is None:
        _named = _Named()
    return _named.begin(name)


class trace_event(ContextDecorator):
    """A slice of this thread's time in the trace: the body of `with`, or each call of a function that it decorates.

    Without a trace it does nothing.
    """

    __slots__ = ("_name", "_slice")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        self._name = name
        self._slice = 0

    def _recreate_cm(self) -> Self:
        return type(self)(self._name)

    def __enter__(self) -> None:
        self._slice = _begin(self._name)

    def __exit__(self, *exc: object) -> None:
        if self._slice:
            _stoker.trace_end(self._slice)


def trace_counter(i: int, val: float) -> None:
    """The value of counter `i`, from 0 to 63, from here on.  Without a trace it does nothing."""
    index, value = integer("i", i, 0, 63), number("val", val)
    if _stoker.trace_on():
        _stoker.trace_counter(index, value)


_collecting = 0  # the slice of the collection that runs; there is one at a time


def _on_gc(phase: str, info: dict[str, Any]) -> None:
    global _collecting
    if phase == "start":
        _collecting = _begin(f"gc {info['generation']}")
    else:
        _stoker.trace_end(_collecting)


def trace_gc() -> None:
    """From here on traces have the collections of Python's garbage collector, as slices `gc 0` to `gc 2`."""
    import gc

    if _on_gc not in gc.callbacks:
        gc.callbacks.append(_on_gc)
