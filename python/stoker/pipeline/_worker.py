"""What runs on the far side: an iterable that is iterated by command."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Sequence

from . import _wire
from ._exchange import END, ERROR, ITEM, READY, Encoder
from ._wire import Commands, FrameSender, Gone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._arena import Writer

__all__ = ["serve"]


class _Stopped(BaseException):
    """The parent left this iteration."""


class _Exit(BaseException):
    """The parent wants no more."""


class _Worker:
    """Threads: one, and that of the sender."""

    def __init__(self, command_fd: int, frame_fd: int, buffer_size: int, writer: Writer | None) -> None:
        self._commands = Commands(command_fd, self._handle)
        self._sender = FrameSender(frame_fd)
        self._buffer_size = math.inf if buffer_size < 0 else buffer_size
        self._writer = writer
        self._encoder = Encoder(writer)
        self._credit: float = 0  # items that the parent has room for
        self._wanted = 0  # the epoch that the parent reads, 0 for none
        self._begun = 0  # the one that was begun last
        if writer is not None:
            writer.watch = command_fd, self._look

    def _handle(self, command: bytes, number: int) -> None:
        if command == _wire.ITERATE:
            self._wanted, self._credit = number, self._buffer_size
        elif command == _wire.CREDIT:
            self._credit += number
        elif command == _wire.STOP:
            self._wanted = 0
        else:
            raise _Exit

    def _look(self) -> None:
        """Between items, and while there is no room in the arena."""
        self._commands.drain()
        if self._wanted != self._begun:
            raise _Stopped

    def _send(self, kind: int, value: object = None) -> None:
        self._sender.send(self._encoder.encode(kind, self._begun, value))

    def run(self, initializers: Sequence[Callable[[], object]], make: Callable[[], Iterable[Any]]) -> None:
        what = "Initializer failed"
        wanted = True  # that is, what was sent
        try:
            for initializer in initializers:
                initializer()
            what = "Failed to create the iterable"
            iterable = make()
            what = "Failed to fetch the next item"
            self._send(READY)
            while True:
                self._commands.wait()
                while self._wanted not in (0, self._begun):
                    self._begun = self._wanted
                    try:
                        self._iterate(iterable)
                    except _Stopped:
                        pass
        except (_Exit, Gone):
            wanted = False
        except BaseException as error:
            self._fail(what, error)
        finally:
            self._sender.close(drop=not wanted)

    def _iterate(self, iterable: Iterable[Any]) -> None:
        if self._writer is not None:
            self._writer.reset()
        iterator = iter(iterable)
        try:
            items = 0
            for items, item in enumerate(self._limited(iterator), 1):
                self._send(ITEM, item)
                self._credit -= 1
                del item
            self._send(END, (items, iterator is iterable))
        finally:
            if iterator is not iterable and (close := getattr(iterator, "close", None)) is not None:
                close()

    def _limited(self, iterator: Any) -> Any:
        """The items, each begun only when the parent has room for it."""
        while True:
            self._look()
            while self._credit < 1:
                self._commands.wait()
                self._look()
            try:
                item = next(iterator)
            except StopIteration:
                return
            yield item
            del item

    def _fail(self, what: str, error: BaseException) -> None:
        import pickle

        text = str(error) or type(error).__name__
        trace = "".join(traceback.format_exception(error))
        try:
            pickled: bytes | None = pickle.dumps(error)
        except Exception:  # the text says it
            pickled = None
        self._encoder = Encoder()
        try:
            self._send(ERROR, (f"{what}: {text}", trace, pickled))
        except Gone:
            pass


def serve(
    command_fd: int,
    frame_fd: int,
    buffer_size: int,
    writer: Writer | None,
    initializers: Sequence[Callable[[], object]],
    make: Callable[[], Iterable[Any]],
) -> None:
    """Serves the parent until it wants no more or is gone, or something fails.  Closes no descriptor."""
    _Worker(command_fd, frame_fd, buffer_size, writer).run(initializers, make)
