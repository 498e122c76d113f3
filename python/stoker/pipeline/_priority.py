"""Pools whose waiting calls run by priority, not by age.

Several stages of a pipeline may share one pool.  With a common queue the stages near the source fill
it, and what is nearly done waits behind what was begun last.  Here every stage gets an entry point
with a priority of its own, later stages the higher one, so that a pipeline drains towards its sink.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any, Self, TypeVar

    from ._calls import Workers

    T = TypeVar("T")

__all__ = [
    "PriorityExecutorEntrypoint",
    "PriorityInterpreterPoolExecutor",
    "PriorityProcessPoolExecutor",
    "PriorityThreadPoolExecutor",
]


class _Call:
    """A call that waits for its turn: the higher priority first, then the older one."""

    __slots__ = ("rank", "future", "fn", "args", "kwargs")

    def __init__(
        self,
        rank: tuple[float, int],
        future: Future[Any],
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.rank = rank
        self.future = future
        self.fn = fn
        self.args = args
        self.kwargs = kwargs

    def __lt__(self, other: _Call) -> bool:
        return self.rank < other.rank


class _Dispatcher:
    """Calls in order of priority, in front of a pool of the standard library.

    It outlives its owner until the last call is done.  Threads: any.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._lock = threading.Lock()  # guards everything below
        self._waiting: list[_Call] = []
        self._count = 0
        self._closed = False

    def submit(
        self, priority: float, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._count += 1
            heappush(self._waiting, _Call((-priority, self._count), future, fn, args, kwargs))
        self._dispatch()
        return future

    def _dispatch(self) -> None:
        """Makes the pool take one more call, at once or as soon as it can."""
        raise NotImplementedError

    def _pop_locked(self) -> _Call | None:
        while self._waiting:
            call = heappop(self._waiting)
            if call.future.set_running_or_notify_cancel():
                return call
        return None

    def close(self, cancel: bool = False, join: bool = False) -> None:
        """No more calls.  Those that wait still run, unless `cancel`; then the pool ends (`join`: waits for it)."""
        with self._lock:
            self._closed = True
            cancelled = self._waiting if cancel else []
            if cancel:
                self._waiting = []
        for call in cancelled:
            call.future.cancel()
            call.future.set_running_or_notify_cancel()
        self._end(join)

    def _end(self, join: bool) -> None:
        """Ends the pool behind the calls that wait."""
        self._pool.shutdown(wait=join)


class _ThreadDispatcher(_Dispatcher):
    """Gives the pool, for every call, one turn: what runs then is the best call at that time."""

    def _dispatch(self) -> None:
        try:
            turn = self._pool.submit(self._run)
        except BaseException as error:  # the pool ends, or its initializer failed
            self._fail(error)
            if not isinstance(error, Exception):
                raise
        else:
            turn.add_done_callback(self._done)

    def _run(self) -> None:
        with self._lock:
            call = self._pop_locked()
        if call is None:
            return
        future = call.future
        try:
            result = call.fn(*call.args, **call.kwargs)
        except BaseException as error:
            del call
            future.set_exception(error)
            del future  # which, with the traceback, refers to this frame
        else:
            del call  # its arguments go before anybody sees the result
            future.set_result(result)

    def _done(self, turn: Future[None]) -> None:
        if not turn.cancelled() and (error := turn.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            call = self._pop_locked()
        if call is not None:
            call.future.set_exception(error)


class _RemoteDispatcher(_Dispatcher):
    """Hands a pool outside this interpreter as many calls as it has workers."""

    def __init__(self, pool: Executor, workers: int) -> None:
        super().__init__(pool)
        self._workers = workers
        self._local = threading.local()  # .dispatching: this thread is inside _dispatch()
        self._running = 0  # guarded by the lock, as what follows
        self._ended = False  # the pool was shut down

    def _dispatch(self) -> None:
        # A call that is done before its submit() returns must not begin another level of this.
        if getattr(self._local, "dispatching", False):
            return
        self._local.dispatching = True
        try:
            while (call := self._take()) is not None:
                self._begin(call)
                del call  # the pool has it, and what its arguments hold is not kept here
        finally:
            self._local.dispatching = False
        self._end(False)

    def _take(self) -> _Call | None:
        with self._lock:
            if self._running >= self._workers:
                return None
            call = self._pop_locked()
            self._running += call is not None
            return call

    def _begin(self, call: _Call) -> None:
        outer = call.future
        try:
            inner = self._pool.submit(call.fn, *call.args, **call.kwargs)
        except BaseException as error:
            self._finish(outer, None, error)
            if not isinstance(error, Exception):
                raise
        else:
            inner.add_done_callback(lambda done: self._done(outer, done))

    def _done(self, outer: Future[Any], inner: Future[Any]) -> None:
        if inner.cancelled():
            from concurrent.futures import CancelledError

            self._finish(outer, None, CancelledError())
        elif (error := inner.exception()) is not None:
            self._finish(outer, None, error)
        else:
            self._finish(outer, inner.result(), None)

    def _finish(self, outer: Future[Any], result: object, error: BaseException | None) -> None:
        from concurrent.futures import BrokenExecutor

        with self._lock:
            self._running -= 1
        if isinstance(error, BrokenExecutor):
            self._break(error)
        else:
            self._dispatch()  # first: the worker is idle
        if error is not None:
            outer.set_exception(error)
        else:
            outer.set_result(result)

    def _break(self, error: BaseException) -> None:
        """Fails every call that waits.  The pool ends by itself; it may hold its lock while it calls this."""
        with self._lock:
            self._ended = True
            waiting, self._waiting = self._waiting, []
        for call in waiting:
            if call.future.set_running_or_notify_cancel():
                call.future.set_exception(error)

    def _end(self, join: bool) -> None:
        from concurrent.futures import wait

        with self._lock:
            if self._ended and not join:
                return
            if not join and (not self._closed or self._waiting or self._running):
                return
            self._ended = True  # with join by the last line of this, which could not wait otherwise
            left = [call.future for call in self._waiting]
        wait(left)
        self._pool.shutdown(wait=join)


class _PriorityPool:
    """What the three pools share: entry points, their priorities, pickling, the end."""

    __module__ = "stoker.pipeline"
    _stoker_workers: Workers

    def __init__(self, options: dict[str, Any], dispatcher: _Dispatcher) -> None:
        self._options = options
        self._dispatcher = dispatcher
        self._closed = False
        self._highest = -1.0  # of the entry points so far
        self._lock = threading.Lock()  # guards _highest
        # Not at exit: the standard library ends its pools itself.
        weakref.finalize(self, dispatcher.close).atexit = False

    def get_executor(self, priority: float | None = None) -> PriorityExecutorEntrypoint:
        """An executor whose calls have this priority; a higher number runs first.

        Without a number it is higher than that of every entry point before.
        """
        with self._lock:
            chosen = self._highest + 1 if priority is None else priority
            self._highest = max(self._highest, chosen)
        return PriorityExecutorEntrypoint(self, chosen)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls; waits for those it has, which run unless `cancel_futures`."""
        self._closed = True
        self._dispatcher.close(cancel_futures, join=wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._options, self._highest, self._closed)


def _restore(kind: type, options: dict[str, Any], highest: float, closed: bool) -> _PriorityPool:
    """A pool like the one that was pickled, with workers of its own that start with its first call."""
    pool: _PriorityPool = kind(**options)
    pool._highest = highest
    if closed:
        pool.shutdown()
    return pool


class PriorityExecutorEntrypoint(Executor):
    """One priority of a pool, as an executor: for `executor=` of a stage.

    It keeps the pool alive.  shutdown() does nothing: the pool may have other entry points.  Entry points
    that are pickled together have one pool together again, with workers of its own.
    """

    __module__ = "stoker.pipeline"

    def __init__(self, owner: _PriorityPool, priority: float) -> None:
        self._owner = owner
        self._priority = priority
        self._stoker_workers = owner._stoker_workers

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return self._owner._dispatcher.submit(self._priority, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Does nothing: the pool ends with its last entry point, or by its own shutdown()."""

    def __reduce__(self) -> tuple[Any, ...]:
        return PriorityExecutorEntrypoint, (self._owner, self._priority)

    def __repr__(self) -> str:
        return f"<entry point of {type(self._owner).__name__}, priority {self._priority:g}>"


def _num_workers(pool: Any) -> int:
    """How many workers the standard library chose where nobody said."""
    return int(pool._max_workers)


class PriorityThreadPoolExecutor(_PriorityPool):
    """Threads.  The arguments are those of concurrent.futures.ThreadPoolExecutor."""

    _stoker_workers: Workers = "threads"

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(max_workers, thread_name_prefix, initializer, initargs)
        options = {
            "max_workers": max_workers,
            "thread_name_prefix": thread_name_prefix,
            "initializer": initializer,
            "initargs": initargs,
        }
        super().__init__(options, _ThreadDispatcher(pool))


class PriorityProcessPoolExecutor(_PriorityPool):
    """Processes.  The keywords are those of concurrent.futures.ProcessPoolExecutor."""

    _stoker_workers: Workers = "processes"

    def __init__(self, max_workers: int | None = None, **kwargs: Any) -> None:
        from concurrent.futures import ProcessPoolExecutor

        pool = ProcessPoolExecutor(max_workers, **kwargs)
        super().__init__({"max_workers": max_workers, **kwargs}, _RemoteDispatcher(pool, _num_workers(pool)))


class PriorityInterpreterPoolExecutor(_PriorityPool):
    """Interpreters.  The arguments are those of concurrent.futures.InterpreterPoolExecutor.

    RuntimeError where Python is older than 3.14.
    """

    _stoker_workers: Workers = "interpreters"

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        options = {
            "max_workers": max_workers,
            "thread_name_prefix": thread_name_prefix,
            "initializer": initializer,
            "initargs": initargs,
        }
        pool = _interpreter_pool(options)
        super().__init__(options, _RemoteDispatcher(pool, _num_workers(pool)))


def _interpreter_pool(options: dict[str, Any]) -> ThreadPoolExecutor:
    if sys.version_info < (3, 14):
        raise RuntimeError("PriorityInterpreterPoolExecutor requires Python 3.14 or later")
    import concurrent.futures

    made: ThreadPoolExecutor = concurrent.futures.InterpreterPoolExecutor(**options)
    return made
