"""A ring of bytes in shared memory."""

from __future__ import annotations

from .. import _check
from ._arena import Arena, copy, flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Buffer

    from ._arena import Watch

__all__ = ["SharedMemoryRingBuffer"]


class SharedMemoryRingBuffer(Arena):
    """`capacity` bytes that a worker fills and the parent copies out, in order.

        iterate_in_subprocess(fn, arena=SharedMemoryRingBuffer(256 << 20))

    Large bytes-like objects, arrays and CPU tensors of an item travel through it, not through the pipe.
    `head` and `tail` count the bytes that were published and given back since it was made.
    `acquire_timeout`: seconds that the worker waits for room before it fails with BufferError; 0 for not
    at all, None for ever.

    Threads: one writes, one reads.
    """

    __module__ = "stoker.pipeline"

    def __init__(self, capacity: int, *, acquire_timeout: float | None = 60) -> None:
        self._capacity = _check.integer("capacity", capacity, 1)
        super().__init__(self._capacity, acquire_timeout)

    @property
    def capacity(self) -> int:
        """Bytes that it holds."""
        return self._capacity

    @property
    def head(self) -> int:
        """How many bytes were written so far; the writer sets it."""
        return self._written()

    @head.setter
    def head(self, value: int) -> None:
        self._set_written(value)

    @property
    def tail(self) -> int:
        """How many of them were read; the reader sets it."""
        return self._given_back()

    @tail.setter
    def tail(self, value: int) -> None:
        self._give_back_to(value)

    def open_writer(self) -> RingWriter:
        """Its one writer, for the process that fills it."""
        return RingWriter(self)

    def open_reader(self) -> RingReader:
        """Its one reader, for the process that empties it."""
        return RingReader(self)

    def __repr__(self) -> str:
        return f"SharedMemoryRingBuffer({self._capacity})"


class RingWriter:
    """The worker's end."""

    def __init__(self, ring: SharedMemoryRingBuffer) -> None:
        self.watch: Watch | None = None
        self._ring = ring
        self._start: int | None = None  # of the unit that is open
        self._position = 0

    def begin_unit(self) -> None:
        """A unit is seen as a whole, by its commit, or never."""
        if self._start is not None:
            raise RuntimeError("a unit is open already")
        self._start = self._position = self._ring.head

    def write_binary(self, data: Buffer) -> tuple[int, int]:
        """Adds bytes to the unit, when there is room: (offset, n).  BufferError: see the ring."""
        if self._start is None:
            raise RuntimeError("no unit is open")
        ring, position, bytes_ = self._ring, self._position, flat(data)
        n, capacity = len(bytes_), ring.capacity
        if position - self._start + n > capacity:
            raise BufferError(
                f"A unit of {position - self._start + n} bytes can never fit in a ring of {capacity}."
            )
        ring._wait(lambda: position + n - ring.tail <= capacity, self.watch)
        at = position % capacity
        first = min(n, capacity - at)
        copy(ring._data[at : at + first], bytes_[:first])
        copy(ring._data[: n - first], bytes_[first:])
        self._position = position + n
        return at, n

    def commit_unit(self) -> int:
        """Publishes the unit; what it returns goes to the reader's end_unit()."""
        if self._start is None:
            raise RuntimeError("no unit is open")
        span = self._position - self._start
        self._start = None
        self._ring.head = self._position
        return span

    def abort_unit(self) -> None:
        """Forgets the unit that is open, if one is."""
        self._start = None

    def reset(self) -> None:
        """Before another iteration: what was committed stays, until the reader gives it back."""
        self.abort_unit()


class RingReader:
    """The parent's end."""

    zero_copy = False

    def __init__(self, ring: SharedMemoryRingBuffer) -> None:
        self._ring = ring

    def read_binary(self, offset: int, n: int) -> bytes:
        return b"".join(self._parts(offset, n))

    def read_mutable(self, offset: int, n: int) -> bytearray:
        """As read_binary(), into memory that may be written."""
        first, *others = self._parts(offset, n)
        found = bytearray(first)
        for part in others:
            found += part
        return found

    def _parts(self, offset: int, n: int) -> list[memoryview]:
        ring = self._ring
        if not (0 <= offset < ring.capacity and 0 <= n <= ring.capacity):
            raise ValueError(f"{n} bytes at {offset} are not in a ring of {ring.capacity}")
        first = min(n, ring.capacity - offset)
        parts = [ring._data[offset : offset + first]]
        return parts if first == n else [*parts, ring._data[: n - first]]

    def end_unit(self, span: int, views: list[Any]) -> None:
        """Gives the bytes of the oldest unit back, read or not.  `views` is there for the pool."""
        self._ring.tail += span

    def reset(self) -> None:
        """Before another iteration: nothing is kept here."""
