"""What is around an op of Python before the engine gets it."""

from __future__ import annotations

import threading
from functools import partial
from operator import getitem
from types import GeneratorType

from .. import _stoker
from ._kinds import kind_of
from ._locate import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._log import FailureLog
    from .defs import PipeConfig

__all__ = ["Closing", "Folding", "python_op", "same"]


class Retrying:
    """A sync op that is tried again at once; the last failure is the item's."""

    def __init__(self, op: Any, retries: int) -> None:
        self._op = op
        self._retries = retries

    def __call__(self, item: Any) -> Any:
        for _ in range(self._retries):
            try:
                return self._op(item)
            except Exception:
                continue
        return self._op(item)


class RetryingSteps:
    """A generator function that is begun again at once, as long as no result was given."""

    def __init__(self, op: Any, retries: int) -> None:
        self._op = op
        self._retries = retries

    def __call__(self, item: Any) -> Iterator[Any]:
        for left in range(self._retries, -1, -1):
            steps, given = self._op(item), False
            try:
                for value in steps:
                    given = given or value is not None
                    yield value
                return
            except Exception:
                if given or not left:
                    raise
            finally:
                steps.close()


class Closing:
    """A generator function that knows its generators: what a run leaves unfinished is closed by the
    threads that ran it, and not by whoever drops it.  Threads: any."""

    def __init__(self, op: Any, concurrency: int) -> None:
        self._op = op
        self._most = 2 * concurrency + 2
        self._lock = threading.Lock()  # guards `_live`
        self._live: list[Any] = []  # and some that have ended

    def __call__(self, item: Any) -> Any:
        steps = self._op(item)
        if isinstance(steps, GeneratorType):
            with self._lock:
                if len(self._live) >= self._most:
                    self._live = [other for other in self._live if other.gi_frame is not None]
                self._live.append(steps)
        return steps

    def close(self) -> None:
        """Closes those at which no thread is; the others are for the threads that are."""
        with self._lock:
            live, self._live = self._live, []
            self._live += (steps for steps in live if steps.gi_running)
        for steps in live:
            try:
                steps.gi_running or steps.close()
            except Exception:
                import logging

                logger = logging.getLogger("stoker.pipeline")
                logger.warning("%s failed while it was closed", locate(steps), exc_info=True)


class Folding:
    """An Aggregator whose rest is dropped, where the user wants that."""

    def __init__(self, op: Any, drop_last: bool) -> None:
        self.accumulate = op.accumulate
        self._flush = op.flush
        self._drop_last = drop_last

    def flush(self) -> Any:
        rest = self._flush()
        return None if self._drop_last else rest


def same(item: Any) -> Any:
    return item


def python_op(
    stage: PipeConfig,
    log: FailureLog | None,
    takes: str | None,
    taker: str,
    closing: list[Closing],
) -> _stoker.Op:
    """`takes`: what the engine's stage behind it, `taker`, is given; None: that is one of Python's.
    `closing`: what the threads that run it close at the end."""
    op, kind = stage.op, kind_of(stage.op)
    text = locate(op)[:199]
    if kind == "container":
        op = partial(getitem, op)
    if stage.retries:
        op = (RetryingSteps if kind == "generator" else Retrying)(op, stage.retries)
    if kind == "generator":
        op = Closing(op, stage.concurrency or 1)
        closing.append(op)
    run = "expand" if kind == "generator" else "map"
    return _stoker.op_python(run, op, log, text, takes, taker)
