"""The two ends of the pipes between a parent and its worker.

Frames go one way, commands the other.  A command is a letter and a number.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct

from ._exchange import ENTRY, HEAD, Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["Commands", "FrameReceiver", "FrameSender", "Gone", "send_command", "write_some"]

ITERATE, STOP, CREDIT, EXIT = b"I", b"S", b"C", b"X"

_COMMAND: Final = Struct("<cQ")
_VECTORS: Final = 64  # buffers for one system call; far below IOV_MAX
_AHEAD: Final = 16384  # bytes: what is read at once where small frames may be waiting


class Gone(Exception):
    """The other side is not there any more."""


def send_command(fd: int, command: bytes, number: int = 0) -> None:
    """Writes a command; it is small enough for a pipe to take it whole.  Gone: nobody reads."""
    try:
        os.write(fd, _COMMAND.pack(command, number))
    except OSError as error:
        raise Gone from error


class Commands:
    """The worker's end of the commands.  Threads: one."""

    def __init__(self, fd: int, handle: Callable[[bytes, int], None]) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._handle = handle
        self._rest = b""

    def drain(self) -> None:
        """Handles what has arrived.  Gone: no more will."""
        try:
            data = os.read(self.fd, 64 * _COMMAND.size)
        except BlockingIOError:
            return
        if not data:
            raise Gone
        data = self._rest + data
        whole = len(data) - len(data) % _COMMAND.size
        self._rest = data[whole:]
        for command, number in _COMMAND.iter_unpack(data[:whole]):
            self._handle(command, number)

    def wait(self) -> None:
        """Sleeps until there is a command, and handles it."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        poll.poll()
        self.drain()


class FrameSender:
    """The worker's end of the frames: sends without waiting for the parent.

    What the pipe does not take at once is copied and written by a thread, which exists from then on.
    How much that may become is for the caller, who counts items.
    """

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._changed = threading.Condition()  # guards everything below
        self._backlog: deque[memoryview] = deque()
        self._thread: threading.Thread | None = None
        self._wake = -1  # an eventfd, made with the thread
        self._closed = False
        self._gone = False

    def send(self, parts: Sequence[Any]) -> None:
        """Takes a frame.  Gone: nobody reads."""
        views = [memoryview(part) for part in parts]
        with self._changed:
            if not self._backlog:
                self._gone |= not write_some(self._fd, views)
            if self._gone:
                raise Gone
            if views:
                # The caller's memory may change as soon as this returns.
                self._backlog.extend(memoryview(bytes(view)) for view in views)
                if self._thread is None:
                    self._wake = os.eventfd(0, os.EFD_CLOEXEC)
                    self._thread = threading.Thread(target=self._run, name="stoker frames")
                    self._thread.start()
                self._changed.notify()

    def close(self, *, drop: bool) -> None:
        """Waits until the parent has read everything, or is gone.  `drop`: it will read nothing more."""
        with self._changed:
            self._closed = True
            self._gone |= drop
            self._changed.notify()
        if self._thread is not None:
            if drop:
                os.eventfd_write(self._wake, 1)
            self._thread.join()
            os.close(self._wake)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        poll.register(self._wake, select.POLLIN)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._backlog or self._closed)
                if not self._backlog:
                    return
            poll.poll()
            with self._changed:
                views = list(self._backlog)
                self._gone = self._gone or not write_some(self._fd, views)
                self._backlog = deque(() if self._gone else views)


def write_some(fd: int, views: list[memoryview]) -> bool:
    """Writes what the pipe takes, and leaves the rest in `views`.  False: nobody reads.

    Where the pipe may be waited for, everything is written.
    """
    while views:
        try:
            n = os.writev(fd, views[:_VECTORS])
        except BlockingIOError:
            return True
        except OSError:
            return False
        _consume(views, n)
    return True


def _consume(views: list[memoryview], n: int) -> None:
    """Takes n bytes off the front."""
    done = 0
    while done < len(views) and n >= len(views[done]):
        n -= len(views[done])
        done += 1
    del views[:done]
    if n:
        views[0] = views[0][n:]


class FrameReceiver:
    """The parent's end of the frames.  It sleeps for the pipe and for the worker's death alike.

    Threads: one at a time.
    """

    def __init__(self, fd: int, death: int | None) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._death = death
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        if death is not None:
            self._poll.register(death, select.POLLIN)
        self._torn = False  # a read was interrupted: nobody knows where the next frame begins
        self._buffer = memoryview(bytearray(_AHEAD))
        self._ahead = self._buffer[:0]  # of it: read already
        self._begin()

    def _begin(self) -> None:
        self._head = bytearray(HEAD.size)
        self._body: bytearray | None = None
        self._entries: list[tuple[int, int, int]] | None = None
        self._inline: list[bytearray] = []
        self._left = [memoryview(self._head)]

    def receive(self, timeout: float | None) -> Frame:
        """The next frame.  Gone: the worker ended; TimeoutError: nothing came, and nothing is lost."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._torn:
            raise Gone
        self._fill(deadline)
        kind, has_span, epoch, count, pickled, span = HEAD.unpack(self._head)
        if self._body is None:
            self._body = bytearray(count * ENTRY.size + pickled)
            self._left = [memoryview(self._body)] if self._body else []
        self._fill(deadline)
        table = memoryview(self._body)[: count * ENTRY.size]
        if self._entries is None:
            self._entries = list(ENTRY.iter_unpack(table))
            self._inline = [bytearray(n) for place, n, _ in self._entries if place < 0]
            self._left = [memoryview(data) for data in self._inline]
        self._fill(deadline)
        rest = memoryview(self._body)[count * ENTRY.size :]
        frame = Frame(kind, epoch, span if has_span else None, self._entries, rest, self._inline)
        self._begin()
        return frame

    def _fill(self, deadline: float | None) -> None:
        dead = False
        while self._left:
            self._torn = True
            n = self._take()
            self._torn = False
            if n == 0 or (n < 0 and dead):
                raise Gone
            if n < 0:
                dead = self._wait(deadline)

    def _take(self) -> int:
        """Reads some of what is missing.  0: there is no more; -1: there is nothing now."""
        left = self._left[0]
        if not self._ahead:
            big = len(left) >= _AHEAD
            try:
                n = os.readv(self._fd, self._left[:_VECTORS] if big else (self._buffer,))
            except BlockingIOError:
                return -1
            if big:
                _consume(self._left, n)
                return n
            self._ahead = self._buffer[:n]
        n = min(len(left), len(self._ahead))
        left[:n] = self._ahead[:n]
        self._ahead = self._ahead[n:]
        _consume(self._left, n)
        return n

    def _wait(self, deadline: float | None) -> bool:
        """Sleeps until there is something to read.  True: there may be nothing, and the worker is dead."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = [fd for fd, _ in self._poll.poll(None if left is None else left * 1000)]
        if not ready and left == 0.0:
            raise TimeoutError
        return self._death in ready and self._fd not in ready
