"""Threads for sync ops whose stages the event loop serves."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import deque
from queue import SimpleQueue

from ._locate import locate
from ._log import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["LoopPool"]


class LoopPool:
    """At most `limit` threads, made on demand.

    Results go to the loop by one wake-up for all that are there, which is why this is no
    ThreadPoolExecutor.  Threads: call(), abandon() and end() are for the loop's own.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._done: deque[_Call] = deque()
        self._told = False  # the loop will look at _done
        self._threads: list[threading.Thread] = []
        self._open = 0  # calls without a result that nobody has abandoned
        self._abandoned: set[_Call] = set()
        self._running: set[_Call] = set()  # changed by single calls

    def call(self, function: Callable[[Any], Any], item: Any, stage: str) -> _Call:
        """`function(item)` in a copy of the caller's context, on a thread that has the name of the
        stage meanwhile; await its `future`."""
        call = _Call(self, self._loop.create_future(), function, item, stage)
        self._open += 1
        if len(self._threads) < min(self._open, self._limit) + len(self._abandoned):
            # Daemons, as an op that was abandoned must not keep the interpreter; end() waits for others.
            name = f"stoker-loop-worker-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._calls.put(call)
        return call

    def abandon(self, call: _Call) -> None:
        """Nobody waits for it any more: another thread takes the place of the one that it keeps."""
        if not call.future.done():
            call.future.cancel()
            self._open -= 1
            self._abandoned.add(call)

    def end(self) -> None:
        """Waits for calls that run; those that nobody has abandoned."""
        for _ in self._threads:
            self._calls.put(None)
        busy = {call.thread for call in list(self._abandoned)}
        for thread in self._threads:
            if thread not in busy:
                thread.join()

    def under_way(self) -> list[str]:
        """What runs although its stage has ended, but for what was abandoned.  Any thread may ask."""
        calls = list(self._running)
        return [call.text() for call in calls if call.future.done() and call not in self._abandoned]

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if not call.future.cancelled():
                self._running.add(call)
                call.run()
                self._running.discard(call)
            self._done.append(call)
            del call
            if not self._told:
                self._told = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:  # the loop has ended
                    return

    def _deliver(self) -> None:
        self._told = False
        while self._done:
            call = self._done.popleft()
            if call in self._abandoned:
                self._abandoned.discard(call)
                continue
            self._open -= 1
            call.settle()


class _Call:
    """One call, on its way there and back."""

    __slots__ = (
        "future",
        "thread",
        "_begun",
        "_pool",
        "_context",
        "_function",
        "_item",
        "_stage",
        "_result",
        "_error",
    )

    def __init__(
        self,
        pool: LoopPool,
        future: asyncio.Future[Any],
        function: Callable[[Any], Any],
        item: Any,
        stage: str,
    ) -> None:
        self.future = future
        self.thread: threading.Thread | None = None  # that runs it
        self._begun = 0.0
        self._pool = pool
        self._context = contextvars.copy_context()
        self._function = function
        self._item = item
        self._stage = stage
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        self._begun = time.monotonic()
        self.thread = thread = threading.current_thread()
        own, thread.name = thread.name, f"{thread.name}: {self._stage}"
        try:
            self._result = self._context.run(self._function, self._item)
        except BaseException as error:
            self._error = error
        thread.name = own
        self._item = None
        del self  # the error refers to this frame

    def text(self) -> str:
        steps = getattr(self._function, "__self__", None)  # of a generator, perhaps
        op, item = getattr(steps, "_stoker_steps", (self._function, self._item))
        return f"stage {self._stage}, op {locate(op)}, item {shorten(item)}"

    def elapsed(self) -> float:
        """Seconds since a thread took it on; 0 while it waits for one."""
        return 0.0 if self.thread is None else time.monotonic() - self._begun

    def abandon(self) -> None:
        self._pool.abandon(self)

    def settle(self) -> None:
        error, self._error = self._error, None
        if self.future.done():
            return
        if isinstance(error, StopIteration):  # which no future takes
            wrapped = RuntimeError("an op raised StopIteration")
            wrapped.__cause__ = error
            error = wrapped
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self._result)
