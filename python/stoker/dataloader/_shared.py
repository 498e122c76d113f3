"""An object in memory that processes share."""

from __future__ import annotations

import mmap
import os
import pickle
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["SharedPickle"]

_ALIGN: Final = 64  # bytes: the widest vector loads
_INLINE: Final = 4096  # buffers below this stay in the pickle


class SharedPickle:
    """An object that is pickled once, for worker processes to unpickle.

    The memory is a memfd: it has no name, so it is gone with the last process that uses it, however that
    one ends.  A worker gets the descriptor when it is started, with every start method.  Arrays are not
    copied: workers find them where they lie, and a page is copied only when a worker changes it.
    """

    def __init__(self, thing: object) -> None:
        buffers: list[memoryview] = []

        def take(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if len(raw) < _INLINE:
                return True
            buffers.append(raw)
            return False

        stream = pickle.dumps(thing, 5, buffer_callback=take)
        self._places: list[tuple[int, int]] = []  # where each buffer begins and ends; the pickle is the first
        end = 0
        parts = [memoryview(stream), *buffers]
        for part in parts:
            begin = -(-end // _ALIGN) * _ALIGN
            end = begin + len(part)
            self._places.append((begin, end))
        self._size = end
        self._fd = os.memfd_create("stoker data set", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        os.ftruncate(self._fd, end)
        with mmap.mmap(self._fd, end) as memory:
            for (begin, end), part in zip(self._places, parts, strict=True):
                memory[begin:end] = part

    def __getstate__(self) -> dict[str, Any]:
        from multiprocessing.context import assert_spawning
        from multiprocessing.reduction import DupFd

        assert_spawning(self)
        return {**self.__dict__, "_fd": DupFd(self._fd)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._fd = state["_fd"].detach()
        weakref.finalize(self, os.close, self._fd)

    def load(self) -> Any:
        """Another object like it, whose changes nobody else sees."""
        view = memoryview(mmap.mmap(self._fd, self._size, access=mmap.ACCESS_COPY))
        stream, *buffers = (view[begin:end] for begin, end in self._places)
        return pickle.loads(stream, buffers=buffers)
