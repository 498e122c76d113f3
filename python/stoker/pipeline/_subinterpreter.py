"""Iterables, and whole pipelines, in another interpreter of this process: Python 3.14 and later.

The pipes are those of a worker process: waiting for them is sleeping, and the queues of
concurrent.interpreters look every 10 ms whether there is something.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import weakref

from . import _remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from fractions import Fraction
    from typing import Any, Final, TypeVar

    from .defs import PipelineConfig

    T = TypeVar("T")
    Initializers = Callable[[], object] | Sequence[Callable[[], object]] | None

__all__ = ["InterpreterWorker", "iterate_in_subinterpreter", "run_pipeline_in_subinterpreter"]

_GRACE_S: Final = 5.0  # how long the end of an iterable waits for what its interpreter is at


def _interpreters(caller: str) -> Any:
    from importlib import import_module

    try:
        return import_module("concurrent.interpreters")
    except ImportError:
        raise RuntimeError(f"{caller} requires Python 3.14 or later") from None


def _main(
    command_fd: int,
    frame_fd: int,
    buffer_size: int,
    initializers: Sequence[Callable[[], object]],
    make: Callable[[], Iterable[Any]],
) -> None:
    """Runs in the other interpreter."""
    from stoker.pipeline._worker import serve  # there is no package around it there

    serve(command_fd, frame_fd, buffer_size, None, initializers, make)


class InterpreterWorker:
    """A thread that runs in an interpreter of its own, as a session sees it."""

    word = "subinterpreter"

    def __init__(
        self,
        interpreters: Any,
        main: Callable[..., object],
        fds: Sequence[int],
        arguments: tuple[Any, ...],
    ) -> None:
        """Runs main(*fds, *arguments) there.  Takes the descriptors, also where it fails."""
        self._main = main
        self._fds = list(fds)
        self._why = ""
        self._interpreter: Any = None
        try:
            self._interpreter = interpreters.create()
            # It begins with the path that Python found at its start, without what the program added.
            self._interpreter.exec(f"import sys; sys.path[:] = {sys.path!r}")
            self._thread = threading.Thread(target=self._run, args=(arguments,), name="stoker interpreter")
            self._thread.start()
        except BaseException:
            self.abandon()
            if self._interpreter is not None:
                self._interpreter.close()
            raise

    def _run(self, arguments: tuple[Any, ...]) -> None:
        try:
            self._interpreter.call(self._main, *self._fds, *arguments)
        except Exception as error:
            self._why = f"{type(error).__name__}: {error}"
        finally:
            del arguments
            self.abandon()  # by which the reader sees the end
            try:
                self._interpreter.close()
            except Exception as error:  # the iterable's threads run on in it
                import logging

                logging.getLogger("stoker.pipeline").warning("An interpreter was not closed: %s", error)

    def how_it_ended(self) -> str:
        self._thread.join(_GRACE_S)
        return self._why

    def end(self) -> None:
        """Waits a little.  Nothing can force an interpreter; it is closed when its thread has ended."""
        if threading.current_thread() is not self._thread:
            self._thread.join(_GRACE_S)

    def abandon(self) -> None:
        """Closes the worker's ends of the pipes."""
        while self._fds:
            os.close(self._fds.pop())


_sessions: weakref.WeakSet[_remote.Session] = weakref.WeakSet()
_registered: list[bool] = []


def _close_all() -> None:
    for session in list(_sessions):
        session.close()


def _close_at_exit(session: _remote.Session) -> None:
    """Before Python waits for its threads, of which those of interpreters are some."""
    if not _registered:
        _registered.append(True)
        threading._register_atexit(_close_all)  # type: ignore[attr-defined]
    _sessions.add(session)


def iterate_in_subinterpreter(
    fn: Callable[[], Iterable[T]],
    *,
    buffer_size: int = 3,
    initializer: Initializers = None,
    timeout: float | None = None,
) -> Iterable[T]:
    """Runs fn() in another interpreter of this process, and gives what iterating its result there yields.

    Everything is as with iterate_in_subprocess; `fn`, `initializer` and the items must pickle, and
    extensions that know one interpreter only, as NumPy and torch, cannot be imported there. `timeout`:
    seconds to wait; the interpreter is asked to end then, but what it is at cannot be interrupted.

    RuntimeError: Python is older than 3.14.
    """
    interpreters = _interpreters("iterate_in_subinterpreter")
    return _start(interpreters, fn, buffer_size, _remote.initializers_of(initializer), timeout, False)


def _start(
    interpreters: Any,
    fn: Callable[[], Iterable[Any]],
    buffer_size: int,
    initializers: list[Callable[[], object]],
    timeout: float | None,
    resume: bool,
) -> _remote.RemoteIterable:
    _remote.check_options(buffer_size, timeout)
    pickle.dumps((initializers, fn))  # what cannot go there fails here
    commands, to_worker = os.pipe()
    from_worker, frames = os.pipe()
    session = _remote.Session(to_worker, from_worker, None, timeout, buffer_size > 0)
    try:
        worker = InterpreterWorker(interpreters, _main, [commands, frames], (buffer_size, initializers, fn))
        _close_at_exit(session)
        session.begin(worker, None)
    except BaseException:
        session.close()
        raise
    iterable = _remote.RemoteIterable(session, resume)
    weakref.finalize(iterable, session.close).atexit = False
    return iterable


def run_pipeline_in_subinterpreter(
    config: PipelineConfig[T],
    /,
    *,
    num_threads: int,
    max_failures: int | Fraction = -1,
    report_stats_interval: float = -1,
    queue_class: Callable[..., Any] | None = None,
    task_hook_factory: Callable[..., Any] | None = None,
    background_tasks: Sequence[Any] | None = None,
    use_thread_output_queue: bool = False,
    buffer_size: int = 3,
    initializer: Initializers = None,
    timeout: float | None = None,
) -> Iterable[T]:
    """Runs a pipeline in another interpreter of this process, as run_pipeline_in_subprocess does in a process.

    Of the global generators only that of `random` is copied.  Process pools cannot be used there.

    RuntimeError: Python is older than 3.14.
    """
    given = locals()
    from functools import partial

    from ._hoist import Hoist, replace
    from ._pipeline_worker import (
        PipelineMaker,
        build_arguments,
        is_continuous,
        random_state,
        set_random_state,
    )
    from ._regions import hoist_regions

    interpreters = _interpreters("run_pipeline_in_subinterpreter")
    build = build_arguments(given)
    config = hoist_regions(config, build, None, [])
    maker = PipelineMaker(replace(config, Hoist(processes=False).change), build)
    first = partial(set_random_state, random_state(only_random=True))
    initializers: list[Callable[[], object]] = [first, *_remote.initializers_of(initializer)]
    return _start(interpreters, maker, buffer_size, initializers, timeout, is_continuous(config))
