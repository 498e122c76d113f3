"""What is around an op of Python before the engine gets it."""

from __future__ import annotations

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
    last of the threads that ran it, and not by whoever drops it."""

    def __init__(self, op: Any) -> None:
        self._op = op
        self._live: dict[int, Any] = {}  # by id; changed by single calls

    def __call__(self, item: Any) -> Any:
        steps = self._op(item)
        if isinstance(steps, GeneratorType):
            self._live[id(steps)] = steps
        return steps

    def _stoker_ended(self, steps: Any) -> None:
        """It gave its last, or failed: told by the thread that was at it."""
        self._live.pop(id(steps), None)

    def close(self) -> None:
        """No thread is at one of them any more."""
        while self._live:
            _, steps = self._live.popitem()
            try:
                steps.close()
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
    `closing`: what the last thread that ran it closes at the end."""
    op, kind = stage.op, kind_of(stage.op)
    text = locate(op)[:199]
    if kind == "container":
        op = partial(getitem, op)
    if stage.retries:
        op = (RetryingSteps if kind == "generator" else Retrying)(op, stage.retries)
    if kind == "generator":
        op = Closing(op)
        closing.append(op)
    run = "expand" if kind == "generator" else "map"
    return _stoker.op_python(run, op, log, text, takes, taker)
