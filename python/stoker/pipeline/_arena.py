"""Memory that two processes share: what the ring and the pool have in common.

The memory has no name: it is a memfd whose descriptor the worker gets when it is started, whatever the
start method, so it is gone with the last process that uses it, however that one ends.  It does not
count against the size of /dev/shm either.

One process writes, one reads.  Each counter in the first page has one writer; the other side looks
at it.  The reading side announces what it gives back by an eventfd, so the writing side sleeps for it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import sys
import time
from collections.abc import Callable
from pickle import PickleBuffer

from .. import _check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Protocol, Self

    from typing_extensions import Buffer

    class Writer(Protocol):
        """Where the worker puts what is large.  A unit is what belongs to one item."""

        watch: Watch | None

        def begin_unit(self) -> None: ...
        def write_binary(self, data: Buffer) -> tuple[int, int]: ...
        def commit_unit(self) -> int: ...
        def abort_unit(self) -> None: ...
        def reset(self) -> None: ...

    class Reader(Protocol):
        """Where the parent finds it."""

        zero_copy: bool

        def read_binary(self, offset: int, n: int) -> bytes | memoryview: ...
        def end_unit(self, span: int, views: list[Any]) -> None: ...
        def reset(self) -> None: ...

    # A descriptor to look at while waiting for room, and what to do when it can be read: it may raise.
    Watch = tuple[int, Callable[[], None]]

__all__ = ["Arena", "copy", "flat"]

_PAGE: Final = 4096  # before the data: counters
_WRITTEN, _GIVEN_BACK, _SHUT = range(3)
_COPY_UNLOCKED: Final = 1 << 18  # bytes: from here on a copy takes longer than giving up the interpreter's lock


class Arena:
    """A memfd, mapped: a page of counters and `size` bytes.

    Only iterate_in_subprocess and run_pipeline_in_subprocess hand it to a worker.
    """

    def __init__(self, size: int, acquire_timeout: float | None) -> None:
        if acquire_timeout is not None:
            acquire_timeout = _check.number("acquire_timeout", acquire_timeout, 0)
        self._size = size
        self._acquire_timeout = acquire_timeout
        self._fd = os.memfd_create(type(self).__name__, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self._fd, _PAGE + size)
            # Nobody can take memory away under the other's feet.
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, seals)
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except BaseException:
            os.close(self._fd)
            raise
        self._map()

    def _map(self) -> None:
        self._memory = mmap.mmap(self._fd, _PAGE + self._size)
        view = memoryview(self._memory)
        self._counters: memoryview | None = view[:_PAGE].cast("Q")
        self._last = [0, 0]  # what they were at close()
        self._data = view[_PAGE:]

    def open_writer(self) -> Writer:
        """The end of the side that writes."""
        raise NotImplementedError

    def open_reader(self) -> Reader:
        """The end of the side that reads."""
        raise NotImplementedError

    # --- to a worker ---

    def __getstate__(self) -> dict[str, Any]:
        from multiprocessing.context import assert_spawning
        from multiprocessing.reduction import DupFd

        assert_spawning(self)
        self._require()
        if self._fd < 0:
            raise ValueError("the arena has its worker already")
        state = self.__dict__.copy()
        for name in ("_memory", "_counters", "_data"):
            del state[name]
        state["_fd"], state["_wake"] = DupFd(self._fd), DupFd(self._wake)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._fd, self._wake = state["_fd"].detach(), state["_wake"].detach()
        self._map()

    # --- counters ---

    def _require(self) -> memoryview:
        if self._counters is None:
            raise ValueError("the arena is closed")
        return self._counters

    def _count_of(self, which: int) -> int:
        return int(self._last[which] if self._counters is None else self._counters[which])

    def _written(self) -> int:
        return self._count_of(_WRITTEN)

    def _set_written(self, value: int) -> None:
        self._require()[_WRITTEN] = value

    def _given_back(self) -> int:
        return self._count_of(_GIVEN_BACK)

    def _give_back_to(self, value: int) -> None:
        self._require()[_GIVEN_BACK] = value
        self._notify()

    def _notify(self) -> None:
        try:
            os.eventfd_write(self._wake, 1)
        except BlockingIOError:  # it is as full as it gets: the writer will wake
            pass

    # --- ends ---

    def shutdown_arena(self) -> None:
        """A writer that waits, or will, gets a BufferError.  In any process, any number of times."""
        if self._counters is not None:
            self._counters[_SHUT] = 1
            self._notify()

    def close(self) -> None:
        """Lets go of the memory in this process.  Views that somebody holds stay valid, counters readable."""
        self.unlink()
        if self._counters is None:
            return
        self._last = self._counters[:_SHUT].tolist()
        self._counters.release()
        self._counters = None
        self._data.release()
        os.close(self._wake)
        try:
            self._memory.close()
        except BufferError:  # of views; the last of them unmaps it
            pass
        del self._memory

    def unlink(self) -> None:
        """No other process can be given the memory from here on.  Those that have it keep it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        if hasattr(self, "_data"):
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown_arena()
        self.close()

    # --- waiting ---

    def _wait(self, fits: Callable[[], bool], watch: Watch | None) -> None:
        """Sleeps until `fits`.  BufferError: not within the acquire timeout, or the arena was shut down."""
        if self._require()[_SHUT]:
            raise BufferError("The arena was shut down.")
        if fits():
            return
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if watch is not None:
            poll.register(watch[0], select.POLLIN)
        limit = self._acquire_timeout
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = [fd for fd, _ in poll.poll(None if left is None else left * 1000)]
            if watch is not None and watch[0] in ready:
                watch[1]()
            if self._wake in ready:
                try:
                    os.eventfd_read(self._wake)  # before looking: what comes after it wakes again
                except BlockingIOError:
                    pass
            if self._require()[_SHUT]:
                raise BufferError("The arena was shut down.")
            if fits():
                return
            if left == 0.0:
                raise BufferError(f"There was no room in the arena within {limit:g} seconds (acquire_timeout).")


def flat(data: Buffer) -> memoryview:
    """The bytes of a buffer; a copy only where they do not lie side by side."""
    try:
        return PickleBuffer(data).raw()
    except BufferError:
        return memoryview(memoryview(data).tobytes())


def copy(to: memoryview, data: memoryview) -> None:
    """Copies bytes; without the interpreter's lock if there are many and NumPy is there to do it."""
    numpy = sys.modules.get("numpy")
    if len(data) >= _COPY_UNLOCKED and numpy is not None:
        numpy.copyto(numpy.frombuffer(to, numpy.uint8), numpy.frombuffer(data, numpy.uint8))
    else:
        to[:] = data
