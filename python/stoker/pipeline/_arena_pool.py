"""Segments of shared memory that are read where they lie."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from functools import partial

from .. import _check
from ._arena import Arena, copy, flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from typing_extensions import Buffer

    from ._arena import Watch

__all__ = ["SharedMemorySegmentPool"]

_ALIGN: Final = 64  # bytes: a cache line, and the widest vector loads


def _up(n: int) -> int:
    return -(-n // _ALIGN) * _ALIGN


class SharedMemorySegmentPool(Arena):
    """`count` segments of `segment_size` bytes: a worker fills one for each item, and the parent gets views.

        iterate_in_subprocess(fn, arena=SharedMemorySegmentPool(64 << 20, 4))

    Large bytes-like objects, arrays and CPU tensors of an item travel through it with one copy, the
    worker's; bytes arrive as a memoryview.  A segment is used again when every view into it was
    collected, and those before it were: keep at most `count` - 1 items.  `published` and `reclaimed` count
    segments since the pool was made.  `acquire_timeout`: seconds that the worker waits for a segment
    before it fails with BufferError; 0 for not at all, None for ever.

    Threads: one writes, one reads; views may be dropped anywhere.
    """

    __module__ = "stoker.pipeline"

    def __init__(self, segment_size: int, count: int, *, acquire_timeout: float | None = 60) -> None:
        self._segment_size = _check.integer("segment_size", segment_size, 1)
        self._count = _check.integer("count", count, 1)
        self._ledger = _Ledger()
        super().__init__(_up(self._segment_size) * self._count, acquire_timeout)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_ledger"]  # of the side that reads
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._ledger = _Ledger()
        super().__setstate__(state)

    @property
    def segment_size(self) -> int:
        """Bytes of one segment."""
        return self._segment_size

    @property
    def count(self) -> int:
        """How many segments there are."""
        return self._count

    @property
    def published(self) -> int:
        """How many segments were written so far; the writer sets it."""
        return self._written()

    @published.setter
    def published(self, value: int) -> None:
        self._set_written(value)

    @property
    def reclaimed(self) -> int:
        """How many of them may be written again; the reader sets it."""
        return self._given_back()

    @reclaimed.setter
    def reclaimed(self, value: int) -> None:
        self._give_back_to(value)

    def open_writer(self) -> PoolWriter:
        """Its one writer, for the process that fills segments."""
        return PoolWriter(self)

    def open_reader(self) -> PoolReader:
        """Its one reader, for the process that looks into them."""
        return PoolReader(self)

    def __repr__(self) -> str:
        return f"SharedMemorySegmentPool({self._segment_size}, {self._count})"


class PoolWriter:
    """The worker's end."""

    def __init__(self, pool: SharedMemorySegmentPool) -> None:
        self.watch: Watch | None = None
        self._pool = pool
        self._base: int | None = None  # of the segment that is open
        self._used = 0

    def begin_unit(self) -> None:
        """Takes a segment, when there is one.  BufferError: see the pool."""
        if self._base is not None:
            raise RuntimeError("a unit is open already")
        pool = self._pool
        pool._wait(lambda: pool.published - pool.reclaimed < pool.count, self.watch)
        self._base = pool.published % pool.count * _up(pool.segment_size)
        self._used = 0

    def write_binary(self, data: Buffer) -> tuple[int, int]:
        """Adds bytes to the segment: (offset, n)."""
        if self._base is None:
            raise RuntimeError("no unit is open")
        bytes_, at = flat(data), _up(self._used)
        n, size = len(bytes_), self._pool.segment_size
        if at + n > size:
            raise BufferError(f"A unit of {at + n} bytes can never fit in a segment of {size}.")
        offset = self._base + at
        copy(self._pool._data[offset : offset + n], bytes_)
        self._used = at + n
        return offset, n

    def commit_unit(self) -> int:
        """Publishes the segment; what it returns goes to the reader's end_unit()."""
        if self._base is None:
            raise RuntimeError("no unit is open")
        self._base = None
        number = self._pool.published
        self._pool.published = number + 1
        return number

    def abort_unit(self) -> None:
        """Leaves the segment that is open, if one is, as if it had never been taken."""
        self._base = None

    def reset(self) -> None:
        """Before another iteration: what was committed stays, until the reader gives it back."""
        self.abort_unit()


class PoolReader:
    """The parent's end."""

    zero_copy = True

    def __init__(self, pool: SharedMemorySegmentPool) -> None:
        self._pool = pool

    def read_binary(self, offset: int, n: int) -> memoryview:
        """The bytes themselves, writable.  Whatever is made of the view keeps the segment."""
        pool = self._pool
        if not (0 <= offset and 0 <= n and offset + n <= len(pool._data)):
            raise ValueError(f"{n} bytes at {offset} are not in {pool!r}")
        view = pool._data[offset : offset + n]
        if n == 0:
            return memoryview(b"")
        # An object between the mapping and the views, which they all refer to and which can be watched:
        # a view that is cut out of another one does not keep that alive.
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            return memoryview(numpy.frombuffer(view, numpy.uint8))
        import ctypes

        return memoryview((ctypes.c_ubyte * n).from_buffer(view)).cast("B")

    def end_unit(self, span: int, views: list[Any]) -> None:
        """Gives the segment back once all of `views`, and what was made of them, are collected."""
        objects = [view.obj if isinstance(view, memoryview) else view for view in views]
        objects = [thing for thing in objects if not isinstance(thing, bytes)]  # a view of nothing
        self._pool._ledger.end(self._pool, span, objects)

    def reset(self) -> None:
        """Before another iteration: views that live keep their segments."""


class _Ledger:
    """Which segments the reading side still uses.

    Objects are collected at any moment, in any thread, and also inside the functions below.  So a
    callback only notes that, and whoever has the lock, or gets it, draws the conclusion.
    """

    def __init__(self) -> None:
        self._gone: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()  # guards everything below
        self._used: dict[int, dict[int, weakref.ref[Any]]] = {}  # by number of the segment, then of the view

    def end(self, pool: SharedMemorySegmentPool, number: int, objects: list[Any]) -> None:
        seen = weakref.ref(pool)  # what watches the views keeps nothing alive
        refs = {i: weakref.ref(thing, partial(_drop, seen, number, i)) for i, thing in enumerate(objects)}
        del objects
        with self._lock:
            self._used[number] = refs
        del refs
        self.settle(pool)

    def note(self, number: int, i: int) -> None:
        self._gone.append((number, i))

    def settle(self, pool: SharedMemorySegmentPool) -> None:
        while True:
            if not self._lock.acquire(blocking=False):
                return  # who has it looks again below
            try:
                self._settle_locked(pool)
            finally:
                self._lock.release()
            if not self._gone:
                return

    def _settle_locked(self, pool: SharedMemorySegmentPool) -> None:
        while self._gone:
            number, i = self._gone.popleft()
            self._used.get(number, {}).pop(i, None)
        if pool._counters is None:
            return
        # The lock was taken after the last look at what is given back, which orders the two for the
        # other process as well.
        number = first = pool.reclaimed
        while number in self._used and not self._used[number]:
            del self._used[number]
            number += 1
        if number != first:
            pool.reclaimed = number


def _drop(seen: weakref.ref[SharedMemorySegmentPool], number: int, i: int, _: object) -> None:
    pool = seen()
    if pool is not None:
        pool._ledger.note(number, i)
        pool._ledger.settle(pool)
