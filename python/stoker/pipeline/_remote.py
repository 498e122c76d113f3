"""An iterable whose items a worker makes: the parent's side, whatever the worker is."""

from __future__ import annotations

import logging
import os
import pickle
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence

from .. import _check
from . import _wire
from ._exchange import END, ERROR, ITEM, READY, Decoder, Frame
from ._wire import FrameReceiver, Gone, send_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from ._arena import Arena

    class Worker(Protocol):
        """What the parent does with a worker once it runs."""

        word: str  # what it is, for messages

        def how_it_ended(self) -> str:
            """A sentence, or nothing.  Called when it has ended, or is about to."""
            ...

        def end(self) -> None:
            """Waits for its end, which it was asked for, and forces it where that takes too long."""

        def abandon(self) -> None:
            """In a forked child: closes what the worker has of the pipes in this process."""


__all__ = ["RemoteIterable", "Session", "check_options", "initializers_of", "remote_error"]


def check_options(buffer_size: int, timeout: float | None) -> None:
    """ValueError, TypeError: these are not what iterate_in_subprocess takes."""
    if _check.integer("buffer_size", buffer_size, -1) == 0:
        raise ValueError("buffer_size must be at least 1, or -1 for no limit, not 0")
    if timeout is not None:
        _check.number("timeout", timeout, 0)


def initializers_of(
    given: Callable[[], object] | Sequence[Callable[[], object]] | None,
) -> list[Callable[[], object]]:
    if given is None:
        return []
    return [given] if callable(given) else list(given)


class Session:
    """A worker, the pipes to it, and an arena, which end together.

    Threads: any; whoever reads has the lock.  In a forked child it is nothing.
    """

    def __init__(
        self, command_fd: int, frame_fd: int, arena: Arena | None, timeout: float | None, bounded: bool
    ) -> None:
        self._command_fd = command_fd
        self._frame_fd = frame_fd
        self._arena = arena
        self._timeout = timeout
        self._bounded = bounded
        self._decoder = Decoder(None if arena is None else arena.open_reader())
        self._worker: Worker | None = None
        self._receiver: FrameReceiver | None = None
        self._ending = threading.Lock()  # taken once, by whoever closes
        self.closed = False
        self.lock = threading.RLock()  # held while reading; guards everything below
        self.epoch = 0
        self.busy = False  # the epoch has not ended
        _sessions.add(self)

    def begin(self, worker: Worker, death: int | None) -> None:
        """Takes a worker that was started, and waits until it has its iterable."""
        self._worker = worker
        self._receiver = FrameReceiver(self._frame_fd, death)
        frame = self._receive("did not initialize after")
        if frame.kind == ERROR:
            self._fail(frame)
        assert frame.kind == READY

    def iterate(self) -> int:
        """Begins another epoch, and leaves the one that has not ended."""
        if self.closed:
            raise RuntimeError("The worker process is shutdown. Cannot iterate again.")
        self.stop(self.epoch)
        self.epoch += 1
        self.busy = True
        try:
            send_command(self._command_fd, _wire.ITERATE, self.epoch)
        except Gone:
            self._died()
        return self.epoch

    def stop(self, epoch: int) -> None:
        """Nobody reads this epoch any more.  What was sent of it is dropped when another is read."""
        if self.busy and not self.closed and epoch == self.epoch:
            self.busy = False
            try:
                send_command(self._command_fd, _wire.STOP)
            except Gone:
                pass  # the next iteration says so

    def next(self) -> Any:
        """The next item; StopIteration at the end of the epoch."""
        while True:
            frame = self._receive("did not produce any data for")
            if frame.kind == ERROR:
                self._fail(frame)
            if frame.epoch == self.epoch:
                break
            self._decoder.discard(frame)
        if frame.kind == END:
            self.busy = False
            self._note_empty(*self._decoder.decode(frame))
            raise StopIteration
        assert frame.kind == ITEM
        if self._bounded:
            try:
                send_command(self._command_fd, _wire.CREDIT, 1)
            except Gone:
                pass  # the next read says so, after what is in the pipe
        try:
            return self._decoder.decode(frame)
        except Exception as error:
            self.close()
            raise RuntimeError(f"The worker sent what cannot be read: Failed to fetch the next item: {error}") from error

    def _note_empty(self, items: int, own_iterator: bool) -> None:
        if not items and own_iterator and self.epoch > 1:
            logging.getLogger("stoker.pipeline").warning(
                "The iterable of the worker is its own iterator and is exhausted: epoch %d yields nothing. "
                "Return an iterable that can be iterated again.",
                self.epoch,
            )

    def _receive(self, late: str) -> Frame:
        assert self._receiver is not None and self._worker is not None
        try:
            return self._receiver.receive(self._timeout)
        except TimeoutError:
            if self.closed:
                raise StopIteration from None
            self.close()
            raise RuntimeError(f"The worker {self._worker.word} {late} {self._timeout:g} seconds.") from None
        except Gone:
            if self.closed:  # at the interpreter's end, while another thread reads
                raise StopIteration from None
            self._died()
            raise  # never reached

    def _died(self) -> None:
        assert self._worker is not None
        how = self._worker.how_it_ended()
        self.close()
        raise RuntimeError(f"The worker {self._worker.word} exited unexpectedly. {how}".rstrip())

    def _fail(self, frame: Frame) -> None:
        assert self._worker is not None
        text, trace, pickled = self._decoder.decode(frame)
        self.close()
        raise RuntimeError(f"The worker {self._worker.word} failed: {text}") from remote_error(trace, pickled)

    def close(self) -> None:
        """Ends the worker and gives everything back.  Any number of times, also in the middle of a start."""
        if not self._ending.acquire(blocking=False):
            return
        self.closed = True
        if self._arena is not None:
            self._arena.shutdown_arena()
        try:
            send_command(self._command_fd, _wire.EXIT)
        except Gone:
            pass
        # At the interpreter's end a thread may still read, and must not find another file there.
        os.close(self._command_fd)
        if self.lock.acquire(blocking=False):
            os.close(self._frame_fd)
            self.lock.release()
        try:
            if self._worker is not None:
                self._worker.end()
        finally:
            if self._arena is not None:
                self._arena.close()

    def abandon(self) -> None:
        """In a forked child: lets go of the pipes, so that the worker sees the end of its parent."""
        self.lock = threading.RLock()
        if self._ending.acquire(blocking=False):
            self.closed = True
            os.close(self._command_fd)
            os.close(self._frame_fd)
            if self._worker is not None:
                self._worker.abandon()


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _abandon_all() -> None:
    for session in list(_sessions):
        session.abandon()


os.register_at_fork(after_in_child=_abandon_all)


class _RemoteError(Exception):
    """The traceback of the worker, as the cause of what is raised here."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self._trace = trace

    def __str__(self) -> str:
        return f'\n"""\n{self._trace}"""'


def remote_error(trace: str, pickled: bytes | None) -> BaseException:
    """What a worker raised, with its traceback there; the traceback alone where it did not pickle."""
    cause = _RemoteError(trace)
    if pickled is None:
        return cause
    try:
        original = pickle.loads(pickled)
        original.__cause__ = cause
    except Exception:  # the text says what it was
        return cause
    return original  # type: ignore[no-any-return]


class RemoteIterable(Iterable["Any"]):
    """Iterates in a worker; every `for` is one pass of its iterable.

    Threads: any, and each item goes to one reader.
    """

    def __init__(self, session: Session, resume: bool) -> None:
        self._session = session
        self._resume = resume  # an epoch that was left early goes on with the next `for`

    def __iter__(self) -> Iterator[Any]:
        session = self._session
        with session.lock:
            if self._resume and session.busy and not session.closed:
                return _RemoteIterator(self, session, session.epoch)
            return _RemoteIterator(self, session, session.iterate())

    def __repr__(self) -> str:
        state = "ended" if self._session.closed else "running"
        return f"<iterable of a worker, {state}>"


class _RemoteIterator(Iterator["Any"]):
    """One epoch.  It keeps the iterable."""

    def __init__(self, owner: RemoteIterable, session: Session, epoch: int) -> None:
        self._owner: RemoteIterable | None = owner
        self._session = session
        self._epoch = epoch

    def __next__(self) -> Any:
        session = self._session
        with session.lock:
            if self._owner is None or session.closed:
                raise StopIteration
            if session.epoch != self._epoch:
                raise RuntimeError("This iterator was left: the iterable has begun another iteration.")
            if not session.busy:
                raise StopIteration
            return session.next()

    def close(self) -> None:
        """Leaves the epoch, as dropping the iterator does."""
        owner, self._owner = self._owner, None
        session = self._session
        # Whoever has the lock reads, which is another iterator; the collector must not wait for it.
        if owner is not None and not owner._resume and session.lock.acquire(blocking=False):
            try:
                session.stop(self._epoch)
            finally:
                session.lock.release()

    def __del__(self) -> None:
        self.close()
