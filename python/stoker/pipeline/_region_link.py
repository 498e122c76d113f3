"""The parent's side of a region's workers: pipes that never make it wait, and their ends."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque

from . import _wire
from ._exchange import Frame
from ._forking import warn_of_fork
from ._region_worker import ROOM, Setup, serve
from ._wire import FrameReceiver, Gone, send_command, write_some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection
    from typing import Any, Final

    from ._remote import Worker
    from ._placement import RegionConfig

__all__ = ["HoistedRegion", "Link", "Region", "hoist", "room_of", "start"]

_TRANSFERS: Final = 4  # on the way back, of all workers of a region, where two of each are fewer


def room_of(num_workers: int) -> int:
    """Transfers of results that one worker may be ahead."""
    return max(ROOM, -(-_TRANSFERS // num_workers))


class Link:
    """One worker.  Owns three descriptors; `worker` and `death` come when it was started.

    Threads: one at a time.
    """

    def __init__(self, data_fd: int, command_fd: int, frame_fd: int) -> None:
        os.set_blocking(data_fd, False)
        self.data_fd = data_fd
        self.frame_fd = frame_fd
        self._command_fd = command_fd
        self._backlog: list[memoryview] = []  # frames that the pipe has not taken yet
        self.worker: Worker | None = None
        self.death: int | None = None
        self.number = 0  # of the pass
        self.credit = 0  # transfers that the worker has room for
        self._read = 0  # results whose room the worker has not been given back
        self._receiver: FrameReceiver | None = None

    def begin(self) -> None:
        """Another pass: what belongs to earlier ones is dropped, here and there."""
        self.number += 1
        self.credit = ROOM
        self._read = 0
        self._command(_wire.ITERATE, self.number)

    def stop(self) -> None:
        """Nobody reads this pass any more."""
        self._command(_wire.STOP)

    def give_room(self, at_once: int) -> None:
        """A transfer of results was read; says so when there are `at_once`, fewer than the worker has room for."""
        self._read += 1
        if self._read >= at_once:
            self._command(_wire.CREDIT, self._read)
            self._read = 0

    def _command(self, command: bytes, number: int = 0) -> None:
        try:
            send_command(self._command_fd, command, number)
        except Gone:
            pass  # whoever reads its frames hears of its end

    def send(self, parts: Sequence[Any]) -> bool:
        """Takes a frame, whose memory must not change.  False: some of it is left, see flush()."""
        self._backlog += [memoryview(part) for part in parts]
        return self.flush()

    def flush(self) -> bool:
        """Writes what the pipe takes.  True: nothing is left, or nobody reads."""
        if not write_some(self.data_fd, self._backlog):
            self._backlog.clear()
        return not self._backlog

    def frames(self) -> Iterator[Frame]:
        """Those that are there.  Gone: the worker has ended, and there are no more."""
        if self._receiver is None:
            self._receiver = FrameReceiver(self.frame_fd, self.death)
        while True:
            try:
                yield self._receiver.receive(0)
            except TimeoutError:
                return

    def close(self) -> None:
        """By which the worker sees that it is to end."""
        for fd in (self.data_fd, self._command_fd, self.frame_fd):
            os.close(fd)
        self._backlog.clear()


class Region:
    """The workers of one pipeline's region, which end with it.

    Threads: the event loop's from take() on; any, for close() before that.  In a forked child it is
    nothing.
    """

    def __init__(self) -> None:
        self.links: list[Link] = []
        self._processes: list[Any] = []
        self._lock = threading.Lock()  # guards the two below
        self._taken = False
        self._closed = False
        _regions.add(self)

    def take(self) -> bool:
        """The caller will use it, and close it.  False: it was closed."""
        with self._lock:
            self._taken = not self._closed
            return self._taken

    def release(self) -> None:
        """Closes it unless somebody has taken it."""
        with self._lock:
            taken = self._taken
        if not taken:
            self.close()

    def close(self) -> None:
        """Ends the workers, and forces those that take too long.  Any number of times."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for link in self.links:
            link.close()
        if self._processes:
            from ._subprocess import end_processes

            end_processes(self._processes)
        for link in self.links:
            if link.worker is not None:
                link.worker.end()

    def abandon(self) -> None:
        """In a forked child: lets go of the pipes, so that the workers see the end of their parent."""
        self._lock = threading.Lock()
        if not self._closed:
            self._closed = True
            for link in self.links:
                link.close()
                if link.worker is not None:
                    link.worker.abandon()

    # --- starting ---

    def start_process(self, context: Any, setup: Setup) -> None:
        from ._subprocess import ProcessWorker

        ends = _Ends(context)
        link = Link(*(os.dup(end.fileno()) for end in ends.ours))
        self.links.append(link)  # before a fork, whose child must not keep it
        ends.close_ours()
        try:
            process = _process(context, setup, ends, [])
            process.start()
            self._processes.append(process)
            link.worker = worker = ProcessWorker(process)
            link.death = worker.death
        finally:
            ends.close_theirs()

    def start_interpreter(self, interpreters: Any, setup: Setup) -> None:
        from ._subinterpreter import InterpreterWorker

        (data, our_data), (commands, our_commands), (our_frames, frames) = (os.pipe() for _ in range(3))
        link = Link(our_data, our_commands, our_frames)
        self.links.append(link)
        _release_at_exit()
        link.worker = InterpreterWorker(interpreters, serve, [data, commands, frames], (setup,))


_regions: weakref.WeakSet[Region] = weakref.WeakSet()


def _abandon_all() -> None:
    for region in list(_regions):
        region.abandon()


os.register_at_fork(after_in_child=_abandon_all)

_registered: list[bool] = []


def _release_all() -> None:
    for region in list(_regions):
        region.release()


def _release_at_exit() -> None:
    """Before Python waits for its threads, of which those of interpreters are some."""
    if not _registered:
        _registered.append(True)
        threading._register_atexit(_release_all)  # type: ignore[attr-defined]


class _Ends:
    """The pipes of one worker: data and commands to it, frames from it."""

    def __init__(self, context: Any) -> None:
        data, our_data = context.Pipe(duplex=False)
        commands, our_commands = context.Pipe(duplex=False)
        our_frames, frames = context.Pipe(duplex=False)
        self.theirs: list[Connection] = [data, commands, frames]
        self.ours: list[Connection] = [our_data, our_commands, our_frames]

    def close_ours(self) -> None:
        for end in self.ours:
            end.close()

    def close_theirs(self) -> None:
        for end in self.theirs:
            end.close()


def _process(context: Any, setup: Setup, ends: _Ends, others: Sequence[Connection]) -> Any:
    spawned = context.get_start_method() == "spawn"
    return context.Process(
        target=_main, args=(*ends.theirs, setup, others, spawned), name="stoker region", daemon=True
    )


def _main(
    data: Connection,
    commands: Connection,
    frames: Connection,
    setup: Setup,
    others: Sequence[Connection],
    spawned: bool,
) -> None:
    """Runs in the worker process.  `others`: ends that a fork has copied."""
    import signal

    from ._subprocess import _leave

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    for end in others:
        end.close()
    serve(data.fileno(), commands.fileno(), frames.fileno(), setup)
    if spawned:
        _leave()


def start(config: RegionConfig, setup: Setup) -> Region:
    """Starts the workers; what was started is ended where one cannot be."""
    from .defs import ProcessPoolExecutorConfig

    region, target = Region(), config.target
    try:
        if isinstance(target, ProcessPoolExecutorConfig):
            from ._subprocess import _context

            context = _context(target.mp_context)
            warn_of_fork("a region", context)
            for _ in range(config.num_workers):
                region.start_process(context, setup)
        else:
            from ._subinterpreter import _interpreters

            interpreters = _interpreters("a region of InterpreterPoolExecutorConfig")
            for _ in range(config.num_workers):
                region.start_interpreter(interpreters, setup)
    except BaseException:
        region.close()
        raise
    return region


# --- regions of a pipeline that runs in a process of its own ---


class _Sibling:
    """A worker process that another process has started: how it ended is not to be learnt."""

    word = "subprocess"

    def how_it_ended(self) -> str:
        return ""

    def end(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class HoistedRegion:
    """Workers that are children of the main process, for the pipelines of another one.

    They outlive each of these pipelines, one after the other, and end with that process.
    """

    def __init__(self, pids: Sequence[int], ends: Sequence[Sequence[Connection]]) -> None:
        self._pids = pids
        self._ends = ends
        self._links: list[Link] | None = None

    @property
    def links(self) -> list[Link]:
        """In the pipeline's process."""
        if self._links is None:
            self._links = [self._link(pid, ends) for pid, ends in zip(self._pids, self._ends)]
        return self._links

    def _link(self, pid: int, ends: Sequence[Connection]) -> Link:
        link = Link(*(end.fileno() for end in ends))
        link.worker = _Sibling()
        try:
            link.death = os.pidfd_open(pid)
        except OSError:  # it has ended: so have its frames
            pass
        return link

    def take(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def close(self) -> None:
        pass


def hoist(config: RegionConfig, setup: Setup, ends: list[Any], processes: list[Any]) -> HoistedRegion:
    """Starts the workers here.  `processes`: gets them.  `ends`: gets the pipes that are to be closed here
    once the pipeline's process was started; a fork must not keep them."""
    from ._subprocess import _context

    context = _context(getattr(config.target, "mp_context"))
    forks = context.get_start_method() == "fork"
    warn_of_fork("a region", context)
    pids, links = [], []
    for _ in range(config.num_workers):
        pipes = _Ends(context)
        ends += pipes.ours
        try:
            process = _process(context, setup, pipes, ends if forks else [])
            process.start()
        finally:
            pipes.close_theirs()
        processes.append(process)
        pids.append(process.pid)
        links.append(pipes.ours)
    return HoistedRegion(pids, links)
