"""A pipeline that runs, and those who read from it."""

from __future__ import annotations

import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context

from .. import _stoker
from ..errors import Error, ForkError, TimeoutError
from ._failure import PipelineFailure, explain, sample_error
from ._lanes import Lanes, at_exit
from ._log import forget_locals
from ._perf import perf
from ._reporter import Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, Generic, Self

    from typing_extensions import TypeVar

    from ._info import QueuePerfStats, StageInfo, TaskPerfStats
    from ._plan import PlanMaker
else:
    from .._generic import Generic, TypeVar

__all__ = ["Pipeline", "PipelineIterator"]

T = TypeVar("T", covariant=True, default="Any")  # what the reader gets

_STOP_S: Final = 6.0  # how long stop() waits unless told otherwise
_FINISH_S: Final = 10.0  # the same for a pipeline that nobody refers to any more

_CODES: Final = frozenset(
    (_stoker.END, _stoker.EPOCH_END, _stoker.TIMED_OUT, _stoker.CANCELLED)
)  # what a read gives in place of a result: compared by identity, as results may be anything

_NO_STATS: _stoker.Stats = {
    "stages": [],
    "queues": [],
    "verdict": "not started",
    "bottleneck": None,
    "elapsed_s": 0.0,
    "first_result_s": None,
    "results": 0,
    "failed": 0,
    "num_threads": 0,
    "num_io_threads": 0,
}


def _finish(run: _stoker.Run, lanes: Lanes | None) -> None:
    """Ends the run of a pipeline that nobody refers to any more, or that Python's end found running.

    The collector may call it anywhere, also where this thread holds a lock that a thread of Python
    needs to end: so it does not wait for those.
    """
    if lanes is not None:
        lanes.cancel()
        return
    run.cancel()
    try:
        run.stop(_FINISH_S)
    except Error:  # nobody is there to hear of it
        if sys.is_finalizing():  # nothing can be imported
            return
        import logging

        logging.getLogger(__name__).debug("a pipeline did not stop", exc_info=True)


class Pipeline(Generic[T]):
    """One run of a plan; PipelineBuilder.build makes it.

    It starts by itself at the first read.  Any thread may read; each result goes to one reader.
    """

    __module__ = "stoker.pipeline"

    def __init__(
        self,
        plan: _stoker.Plan,
        maker: PlanMaker,
        *,
        num_threads: int,
        buffer_size: int,
        continuous: bool,
        report_stats_interval: float = -1,
    ) -> None:
        self._plan = plan
        self._groups = maker.groups
        self._infos = maker.infos
        self._watched = maker.watched
        self._num_threads = num_threads
        self._buffer_size = buffer_size
        self._continuous = continuous
        self._report_interval = report_stats_interval

        # Guards everything below.  Where Ctrl-C leaves it taken, its thread gets in again.
        self._lock = threading.RLock()
        self._run: _stoker.Run | None = None
        self._grow: Callable[[int], None] | None = None  # of its lanes, if it has any
        self._lanes: Lanes | None = None
        self._stopped = False
        self._left: deque[Any] = deque()  # found by stop()
        self._failure: list[Exception] | None = None
        self._raised = False  # somebody has seen the failure
        self._exhausted = False
        self._was_exhausted = False  # before it was stopped
        self._warned = False
        self._said = False  # how many items were lost
        self._reporter: Reporter | None = None

    # --- life ---

    def start(self, *, timeout: float | None = None, **kwargs: Any) -> None:
        """Starts the pipeline; reading does it, too.

        TimeoutError: that took longer than `timeout` seconds; the pipeline is stopped, and ends.
        """
        if kwargs.pop("daemon", False):
            warnings.warn("daemon has no effect: threads are not Python's", stacklevel=2)
        if kwargs:
            raise TypeError(f"start() got an unexpected keyword argument {next(iter(kwargs))!r}")
        if timeout is not None and not timeout >= 0:
            raise ValueError("timeout must be None or a number of seconds, at least 0")
        began = time.monotonic()
        with self._lock:
            if self._run is not None:
                raise RuntimeError("The pipeline was already started. It runs once: build another to run again.")
            run = self._start_locked()
            if timeout is None or time.monotonic() - began <= timeout:
                return
            self._stopped = True
        run.cancel()  # and no wait, since it is late
        raise TimeoutError(f"Event loop did not start after {timeout:g} seconds.")

    def _start_locked(self) -> _stoker.Run:
        run = self._plan.start(self._num_threads, self._continuous)
        lanes = Lanes(run, self._groups, copy_context())
        weakref.finalize(self, _finish, run, lanes if self._groups else None)
        at_exit(lanes)
        self._lanes = lanes
        self._reporter = reporter = Reporter(run, self._infos, self._watched, self._report_interval)
        if self._report_interval > 0:
            weakref.finalize(self, reporter.cancel)
        self._grow = lanes.grow if self._groups else None
        self._run = run
        try:
            lanes.start()
            reporter.start(lanes)
        except BaseException:  # Ctrl-C, say: not all of its threads are there
            self._stopped = True
            run.cancel()
            raise
        return run

    def stop(self, *, timeout: float | None = None) -> None:
        """Stops the pipeline; results that were ready can still be read.

        Raises the pipeline's failure if no read has, and TimeoutError where an op takes longer than
        `timeout` (None: about 6 s); then it may be called again.  It does not wait for a source that is
        blocked: the interpreter's end does.
        """
        seconds = _STOP_S if timeout is None else timeout
        deadline = time.monotonic() + seconds
        with self._lock:
            run = self._run
            if run is None:
                return
            first, self._stopped = not self._stopped, True
            if first:
                self._was_exhausted = self._exhausted
        try:
            if first:
                self._keep_results(run)
            assert self._lanes is not None
            self._lanes.stop_waiting()
            is_over = run.stop(seconds)
            late = self._lanes.join(max(0.0, deadline - time.monotonic()), is_over)
            if late:
                raise TimeoutError(f"thread {', '.join(late)} is still running")
        except ForkError:
            raise
        except TimeoutError as error:
            raise TimeoutError(f"Thread did not join after {seconds:g} seconds: {error}") from None
        assert self._reporter is not None
        self._reporter.end()
        self._say_lost(run)
        if self._failure is None:  # else debuggers will ask
            self._forget_items(run)
        self._raise_unread()

    def _forget_items(self, run: _stoker.Run) -> None:
        """Those that failed, and that tracebacks keep."""
        for failure in run.failures():
            if failure["cause"] is not None:
                forget_locals(failure["cause"])

    def _say_lost(self, run: _stoker.Run) -> None:
        """Once: how many items failed, and in which stages."""
        stats = run.stats()
        with self._lock:
            said, self._said = self._said, True
        if said or not stats["failed"] or sys.is_finalizing():  # when nothing can be imported
            return
        import logging

        stages = ", ".join(
            f"{info} {stage['failed']}"
            for info, stage in zip(self._infos, stats["stages"], strict=True)
            if stage["failed"]
        )
        items = "1 item" if stats["failed"] == 1 else f"{stats['failed']} items"
        logging.getLogger("stoker.pipeline").warning("%s failed: %s", items, stages)

    def _keep_results(self, run: _stoker.Run) -> None:
        """Ends the run; takes what a reader would find in the sink, and the failure behind it."""
        try:
            self._left.extend(run.last(self._buffer_size))
            run.look()
        except ForkError:
            raise
        except Error as error:
            self._set_failure(run, error)

    def _raise_unread(self) -> None:
        with self._lock:
            errors, raised = self._failure, self._raised
            self._raised = True
        if errors is not None and not raised:
            raise _group(errors)

    @contextmanager
    def auto_stop(self, *, timeout: float | None = None) -> Iterator[None]:
        """Starts, and stops at the end of the `with`.

        Where Ctrl-C or an exit ends that, what stop() raises does not replace it: it is logged.
        """
        self.start()
        try:
            yield
        except BaseException as error:
            self._stop_after(error, timeout)
            raise
        self.stop(timeout=timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        self._stop_after(error, None)

    def _stop_after(self, error: BaseException | None, timeout: float | None) -> None:
        try:
            self.stop(timeout=timeout)
        except Exception:
            if error is None or isinstance(error, Exception):
                raise
            if sys.is_finalizing():
                return
            import logging

            logging.getLogger("stoker.pipeline").exception("the pipeline did not end well")

    # --- reading ---

    def get_item(self, *, timeout: float | None = None) -> T:
        """The next result.

        EOFError: that was all, or all of an epoch of a continuous source; TimeoutError: there was none
        within `timeout` seconds, and nothing is lost; PipelineFailure: the pipeline failed.
        """
        result = self._read(timeout)
        if not is_code(result):
            return result  # type: ignore[no-any-return]
        if result is _stoker.TIMED_OUT:
            raise TimeoutError(f"The next item is not available after {timeout:g} seconds.")
        raise EOFError("Reached the end of the pipeline.")

    def _read(self, timeout: float | None) -> Any:
        """A result, or a code: END, EPOCH_END, TIMED_OUT."""
        run = self._run
        if run is None:
            with self._lock:
                run = self._run or self._start_locked()
        if self._left:
            try:
                return self._left.popleft()
            except IndexError:  # another reader was faster
                pass
        if self._failure is None:
            try:
                result = run.next(timeout, self._grow)
            except ForkError:
                raise
            except Error as error:
                self._set_failure(run, error)
            else:
                if result is _stoker.CANCELLED:
                    result = _stoker.END
                if result is _stoker.END:
                    self._exhausted = True
                    assert self._reporter is not None
                    self._reporter.end()
                return result
        with self._lock:
            self._raised = True
            failure = self._failure
        assert failure is not None
        raise _group(failure)

    def _set_failure(self, run: _stoker.Run, error: Error) -> None:
        explained = explain(error, run.causes(), self._infos)
        error.__traceback__ = None  # its frames refer to this pipeline
        with self._lock:
            if self._failure is None:
                self._failure = explained

    def get_iterator(self, *, timeout: float | None = None) -> PipelineIterator[T]:
        """Everything that is left, or what is left of an epoch of a continuous source.

        An iterator that is left early has taken nothing beyond what it gave.
        """
        return PipelineIterator(self, timeout)

    def __iter__(self) -> PipelineIterator[T]:
        return self.get_iterator()

    def _warn_exhausted(self) -> None:
        """Once: this `for` yields nothing because one before it had everything, not because of stop()."""
        if self._warned or (self._stopped and not self._was_exhausted):
            return
        self._warned = True
        warnings.warn(
            "The pipeline is exhausted, so iterating it again yields nothing. "
            "With add_source(source, continuous=True) each `for` is one epoch.",
            RuntimeWarning,
            stacklevel=3,
        )

    def __len__(self) -> int:
        """Batches (or items) that an epoch is planned to have, the same on all ranks.

        Those without a sample are counted and not delivered, unless keep_empty: where all were skipped,
        or a rank has no samples for its last positions.  TypeError: it is not known.
        """
        n = self._plan.length()
        if n < 0:
            raise TypeError(
                "the length of the pipeline is not known: if it will be once the files are listed, wait for count() of the source"
            )
        return n

    def __bool__(self) -> bool:
        return True

    # --- watching ---

    def stats(self) -> _stoker.Stats:
        """What each stage and queue did and where it waited, and which is the bottleneck."""
        run = self._run
        return {**_NO_STATS} if run is None else run.stats()

    def task_stats(self) -> list[tuple[StageInfo, TaskPerfStats]]:
        """What the tasks of each stage but the source and the sink did, since the start.

        The fields are those of TaskStatsHook, and cost no hooks: percentiles are within a quarter, of a
        sample of the tasks where these take little time.
        """
        run = self._run
        return [] if run is None else perf(run, self._infos).tasks

    def queue_stats(self) -> list[tuple[StageInfo, QueuePerfStats]]:
        """What went through the queue behind each stage, since the start; the sink's is the last.

        The fields are those of StatsQueue.  Waits are those of a stage, not of each of its tasks.  Native
        stages that run in one hop have no queue between them.
        """
        run = self._run
        return [] if run is None else perf(run, self._infos).queues

    def failures(self) -> list[Error]:
        """The first ten samples that failed, skipped and substituted ones included.

        Of those of a stage that have one key and one text in an epoch it is the first: those of a shard
        that is missing, say.
        After stop() the tracebacks of their causes have no local variables, so that items can go.
        """
        run = self._run
        return [] if run is None else [sample_error(failure) for failure in run.failures()]

    def __str__(self) -> str:
        return str(self._plan)

    def __repr__(self) -> str:
        if self._run is None:
            state = "not started"
        elif self._failure is not None:
            state = "failed"
        else:
            state = "stopped" if self._stopped else "exhausted" if self._exhausted else "running"
        return f"<Pipeline, {state}, num_threads={self._num_threads}>"


def is_code(result: object) -> bool:
    """Whether it is one of _stoker.END, EPOCH_END, TIMED_OUT, CANCELLED."""
    return type(result) is object and result in _CODES


def _group(errors: list[Exception]) -> PipelineFailure:
    return PipelineFailure("pipeline stages failed", errors)


class PipelineIterator(_stoker.Results, Generic[T]):
    """Reads a pipeline to its end, or to the end of an epoch; it cannot be used again.

    Threads may share one.  Over a continuous source each needs its own: of those that share one, the
    first to read on behind the end of an epoch may be given an item of the next.
    """

    __module__ = "stoker.pipeline"

    if TYPE_CHECKING:

        def __next__(self) -> T: ...

    def __init__(self, pipeline: Pipeline[T], timeout: float | None) -> None:
        self._pipeline = pipeline
        self._timeout = timeout
        self._late = pipeline._exhausted  # a reader among several is not, if it began with them
        self._done = False

    def _refill(self) -> Any:
        """The next result, where the run has taken none ahead."""
        if self._done:
            raise StopIteration
        pipeline = self._pipeline
        if self._late:
            self._late = False
            pipeline._warn_exhausted()
        result = pipeline._read(self._timeout)
        if not is_code(result):
            if self._run is None and not pipeline._left:
                self._run = pipeline._run
            return result
        if result is not _stoker.END:  # behind which another reader may still keep results
            self._run = None
        if result is _stoker.TIMED_OUT:
            raise TimeoutError(f"The next item is not available after {self._timeout:g} seconds.")
        self._done = True
        raise StopIteration
