"""A process pool whose workers are children of one process and work for another one.

The main process makes the workers, because a daemon must not have children and because a fork is best
done early; the pipeline's process has the pipes to them, and this executor.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import threading
import traceback
import weakref
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = ["HoistedExecutor", "Link", "work"]


class Link:
    """The pipeline's side of one worker.  It is picklable while a process is started."""

    def __init__(self, pid: int, calls: Connection, results: Connection) -> None:
        self.pid = pid
        self.calls = calls
        self.results = results


def work(
    calls: Connection,
    results: Connection,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
    others: list[Connection],
) -> None:
    """The worker: runs calls until nobody can send any more.  `others`: ends that a fork has copied."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for connection in others:
        connection.close()
    try:
        if initializer is not None:
            initializer(*initargs)
    except BaseException:
        # What the standard library does: the error is shown here, and the executor is broken.
        traceback.print_exc()
        return
    try:
        while True:
            results.send_bytes(_answer(calls.recv_bytes()))
    except (EOFError, OSError):
        return


def _answer(call: bytes) -> bytes:
    try:
        fn, args, kwargs = pickle.loads(call)
        return pickle.dumps((fn(*args, **kwargs), None), 5)
    except BaseException as error:
        trace = "".join(traceback.format_exception(error))
        try:
            return pickle.dumps((None, (error, trace)), 5)
        except Exception:
            text = f"{type(error).__name__}: {error}"
            return pickle.dumps((None, (RuntimeError(text), trace)), 5)


class _RemoteTrace(Exception):
    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class HoistedExecutor(ProcessPoolExecutor):
    """Stands for the ProcessPoolExecutor of the configuration, in the pipeline's process.

    It is one by type only, since that is what stages look at.  One thread sends calls to idle workers,
    collects results, and sees workers die.
    """

    def __init__(self, links: list[Link]) -> None:
        # Not that of the base, which would make workers of its own.
        self._links = links
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._wake)
        self._guard = threading.Lock()  # guards everything below
        self._calls: deque[tuple[Future[Any], bytes]] = deque()
        self._ended = False
        self._broken_by: str | None = None
        self._thread: threading.Thread | None = None

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[Any] = Future()
        try:
            call = pickle.dumps((fn, args, kwargs), 5)
        except Exception as error:
            future.set_running_or_notify_cancel()
            future.set_exception(error)
            return future
        with self._guard:
            if self._broken_by is not None:
                raise BrokenProcessPool(self._broken_by)
            if self._ended:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._calls.append((future, call))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stoker pool", daemon=True)
                self._thread.start()
        os.eventfd_write(self._wake, 1)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._guard:
            self._ended = True
            cancelled = list(self._calls) if cancel_futures else []
            if cancel_futures:
                self._calls.clear()
        for future, _ in cancelled:
            future.cancel()
            future.set_running_or_notify_cancel()
        if self._thread is not None:
            os.eventfd_write(self._wake, 1)
            if wait:
                self._thread.join()

    # --- the thread ---

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        by_fd: dict[int, Link] = {}
        deaths: list[int] = []
        idle = deque(self._links)
        busy: dict[Link, Future[Any]] = {}
        try:
            for link in self._links:
                by_fd[link.results.fileno()] = link
                deaths.append(os.pidfd_open(link.pid))
                by_fd[deaths[-1]] = link
            for fd in by_fd:
                poll.register(fd, select.POLLIN)
            while self._hand_out(idle, busy):
                self._collect([fd for fd, _ in poll.poll()], by_fd, idle, busy)
        except (EOFError, OSError):
            self._break("A worker process of the executor ended while calls were pending.", busy.values())
        finally:
            for fd in deaths:
                os.close(fd)
            for link in self._links:  # the workers see it, and end
                link.calls.close()

    def _hand_out(self, idle: deque[Link], busy: dict[Link, Future[Any]]) -> bool:
        """False: it was shut down, and everything is done."""
        while idle:
            with self._guard:
                if not self._calls:
                    return not self._ended or bool(busy)
                future, call = self._calls.popleft()
            if future.set_running_or_notify_cancel():
                link = idle.popleft()
                busy[link] = future
                link.calls.send_bytes(call)
        return True

    def _collect(
        self, ready: list[int], by_fd: dict[int, Link], idle: deque[Link], busy: dict[Link, Future[Any]]
    ) -> None:
        if self._wake in ready:
            os.eventfd_read(self._wake)
        # Results first: one that was sent before its worker died counts.
        for link in {by_fd[fd] for fd in ready if fd != self._wake}:
            if link.results.poll():
                answer = link.results.recv_bytes()
                _settle(busy.pop(link), answer)
                idle.append(link)
            else:
                raise EOFError

    def _break(self, text: str, running: Any) -> None:
        with self._guard:
            self._broken_by = text
            waiting = [future for future, _ in self._calls]
            self._calls.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokenProcessPool(text))
        for future in running:
            future.set_exception(BrokenProcessPool(text))


def _settle(future: Future[Any], answer: bytes) -> None:
    try:
        result, failure = pickle.loads(answer)
    except Exception as error:  # it was pickled there, and cannot be read here
        future.set_exception(error)
        return
    if failure is None:
        future.set_result(result)
    else:
        failure[0].__cause__ = _RemoteTrace(failure[1])
        future.set_exception(failure[0])
