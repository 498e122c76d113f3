"""Iterables, and whole pipelines, in a process of their own."""

from __future__ import annotations

import os
import signal
import time
import warnings

from . import _remote, _worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from fractions import Fraction
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess
    from typing import Any, Final, TypeVar

    from ._arena import Arena
    from ._arena_pool import SharedMemorySegmentPool
    from ._arena_ring import SharedMemoryRingBuffer
    from .defs import PipelineConfig

    T = TypeVar("T")
    Initializers = Callable[[], object] | Sequence[Callable[[], object]] | None

__all__ = ["iterate_in_subprocess", "run_pipeline_in_subprocess"]

_GRACE_S: Final = 5.0  # for a worker to end what it is at
_FORCE_S: Final = 1.0  # the same after SIGTERM
_STATUS_S: Final = 2.0  # for the exit status of a process that has ended to arrive


class ProcessWorker:
    """A child process, as a session sees it, and those that it needs."""

    word = "subprocess"

    def __init__(self, process: BaseProcess, helpers: Sequence[BaseProcess] = ()) -> None:
        self._process = process
        self._helpers = list(helpers)
        self._death = _watch(process)

    @property
    def death(self) -> int:
        """A descriptor that can be read when the process has ended."""
        return self._process.sentinel if self._death is None else self._death

    def how_it_ended(self) -> str:
        self._process.join(_STATUS_S)
        code = self._process.exitcode
        if code is None:
            return ""
        if code >= 0:
            return f"Its exit code is {code}."
        try:
            return f"It was killed by signal {-code} ({signal.Signals(-code).name})."
        except ValueError:  # a real-time signal has no name
            return f"It was killed by signal {-code}."

    def end(self) -> None:
        end_processes([self._process])
        end_processes(self._helpers)
        if self._death is not None:
            os.close(self._death)
            self._death = None

    def abandon(self) -> None:
        """The worker's ends are closed here since it began."""


def _watch(process: BaseProcess) -> int | None:
    """A pidfd: unlike the sentinel of a forked process, it is not held open by children of that process."""
    assert process.pid is not None
    try:
        return os.pidfd_open(process.pid)
    except OSError:  # it has ended, and the fork server knows it
        return None


def end_processes(processes: Sequence[BaseProcess]) -> None:
    """Waits for processes that were asked to end, and forces them where that takes too long.

    Does nothing to those that it has ended before.
    """
    left = [process for process in processes if not getattr(process, "_closed", False)]
    for force, seconds in ((None, _GRACE_S), ("terminate", _FORCE_S), ("kill", _FORCE_S)):
        deadline = time.monotonic() + seconds
        if force is not None:
            for process in left:
                getattr(process, force)()
        for process in left:
            process.join(max(0.0, deadline - time.monotonic()))
        for process in [process for process in left if process.exitcode is not None]:
            process.close()
            left.remove(process)


def _main(
    commands: Connection,
    frames: Connection,
    buffer_size: int,
    arena: Arena | None,
    initializers: Sequence[Callable[[], object]],
    make: Callable[[], Iterable[Any]],
    spawned: bool,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    writer = None if arena is None else arena.open_writer()
    _worker.serve(commands.fileno(), frames.fileno(), buffer_size, writer, initializers, make)
    if spawned:
        _leave()


def _leave() -> None:
    """Ends a spawned process as multiprocessing ends a forked one, without taking the interpreter apart.

    That takes a second where torch is imported, for which the parent would wait.
    """
    import atexit
    import sys
    import threading

    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads, as the interpreter does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _context(given: BaseContext | str | None) -> Any:
    import multiprocessing

    if given is None or isinstance(given, str):
        return multiprocessing.get_context(given)
    return given


def iterate_in_subprocess(
    fn: Callable[[], Iterable[T]],
    *,
    buffer_size: int = 3,
    initializer: Initializers = None,
    mp_context: BaseContext | str | None = None,
    timeout: float | None = None,
    daemon: bool = False,
    arena: SharedMemoryRingBuffer | SharedMemorySegmentPool | None = None,
) -> Iterable[T]:
    """Runs fn() in a worker process, and gives what iterating its result there yields.

    The worker is started at the call and ends when the iterable is collected, after an error, or with the
    interpreter.  Each `for` iterates fn()'s result anew; one that is left early makes the worker stop.

    `buffer_size`: how many items the worker may make ahead; 1 is lock-step, -1 is no limit.
    `initializer`: a function, or several, that the worker runs before fn.
    `mp_context`: the start method, or a context of multiprocessing; the default is that of multiprocessing.
    `timeout`: seconds to wait for the worker to be ready, and for each item; None: for ever.
    `daemon`: as of multiprocessing.Process; a daemon cannot have children.
    `arena`: shared memory for what is large in items; it ends with the iterable.

    RuntimeError: an initializer or fn failed, here; the worker failed, died or is late, where the iterable
    is read.  Then the worker has ended, and iterating again is a RuntimeError as well.
    """
    return _Options(buffer_size, initializer, mp_context, timeout, daemon, arena).start(fn)


class _Options:
    """What iterate_in_subprocess was given, but for the function."""

    def __init__(
        self,
        buffer_size: int = 3,
        initializer: Initializers = None,
        mp_context: BaseContext | str | None = None,
        timeout: float | None = None,
        daemon: bool = False,
        arena: Arena | None = None,
    ) -> None:
        _remote.check_options(buffer_size, timeout)
        self.buffer_size = buffer_size
        self.initializers = _remote.initializers_of(initializer)
        self.context = _context(mp_context)
        self.timeout = timeout
        self.daemon = daemon
        self.arena = arena

    def start(
        self,
        fn: Callable[[], Iterable[Any]],
        *,
        resume: bool = False,
        helpers: Sequence[BaseProcess] = (),
        started: Callable[[], object] = bool,
    ) -> _remote.RemoteIterable:
        """Starts the worker.  `helpers` are processes that end after it; `started` is called once it has begun."""
        from multiprocessing.util import Finalize

        commands, to_worker = self.context.Pipe(duplex=False)
        from_worker, frames = self.context.Pipe(duplex=False)
        # The session owns descriptors, not connections: it outlives what the collector takes apart.
        session = _remote.Session(
            os.dup(to_worker.fileno()),
            os.dup(from_worker.fileno()),
            self.arena,
            self.timeout,
            self.buffer_size > 0,
        )
        to_worker.close()
        from_worker.close()
        spawned = self.context.get_start_method() == "spawn"
        process = self.context.Process(
            target=_main,
            args=(commands, frames, self.buffer_size, self.arena, self.initializers, fn, spawned),
            name="stoker worker",
            daemon=self.daemon,
        )
        try:
            process.start()
            worker = ProcessWorker(process, helpers)
            started()
            if self.arena is not None:
                self.arena.unlink()
            commands.close()
            frames.close()
            session.begin(worker, worker.death)
        except BaseException:
            commands.close()
            frames.close()
            session.close()
            raise
        iterable = _remote.RemoteIterable(session, resume)
        # At exit before multiprocessing waits for its children, which it does with priority 0.
        Finalize(iterable, session.close, exitpriority=10)
        return iterable


# --- pipelines ---


def run_pipeline_in_subprocess(
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
    **kwargs: Any,
) -> Iterable[T]:
    """Runs a pipeline in a worker process; `kwargs` are those of iterate_in_subprocess.

    Every `for` builds the pipeline anew there, unless its source is continuous: then each is one epoch, and
    one that was left early goes on where it was.  The state of `random`, and of NumPy's and torch's global
    generators where they are imported, is copied when the worker starts.

    Executors of stages are made anew there.  The processes of a ProcessPoolExecutor, and of regions (`to`),
    are children of this process, started here with the worker.  ValueError: an executor was used before.
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

    config = _config_of(config)
    options = _Options(**kwargs)
    options.initializers.insert(0, partial(set_random_state, random_state()))
    build = build_arguments(given)
    hoist = Hoist()
    try:
        config = hoist_regions(config, build, hoist.ends, hoist.processes)
        maker = PipelineMaker(replace(config, hoist.change), build)
        return options.start(
            maker, resume=is_continuous(config), helpers=hoist.processes, started=hoist.close_ends
        )
    except BaseException:
        hoist.close_ends()  # by which the workers see that they are not needed
        end_processes(hoist.processes)
        raise


def _config_of(config: Any) -> Any:
    if not hasattr(config, "get_config"):
        return config
    warnings.warn(
        "run_pipeline_in_subprocess takes a config: pass builder.get_config(), not the builder",
        DeprecationWarning,
        stacklevel=3,
    )
    return config.get_config()
