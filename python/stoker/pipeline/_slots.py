"""Stages of async ops: several items at once on the event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from types import coroutine

from .. import _stoker
from ._loop import LoopStage, StageOver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from typing import Any, Final

    from ._log import FailureLog
    from ._loop import Loop, Port

__all__ = ["AsyncMap"]

_BURST: Final = 64
_BURST_S: Final = 50e-6  # then what is done goes on, although there is more to do


@coroutine
def _resume(steps: Any, waits_for: Any) -> Generator[Any, Any, Any]:
    """Goes on with a coroutine that has waited once, as `await` would have."""
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:
            step = lambda error=error: steps.throw(error)  # noqa: E731
        else:
            step = lambda sent=sent: steps.send(sent)  # noqa: E731
        try:
            waits_for = step()
        except StopIteration as stop:
            return stop.value


def _is_cancelled() -> bool:
    """Whether somebody wants the running task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class AsyncMap(LoopStage):
    """Awaits `make(loop)(value)` for each item, at most `concurrency` at once.

    Slots, which are tasks, take items one by one.  An op that never waits is run to its end at once:
    only when one waits does another slot go on with the next item, so that cheap ops cost neither a
    task nor a turn of the loop.
    """

    def __init__(
        self,
        index: int,
        make: Callable[[Loop], Callable[[Any], Awaitable[Any]]],
        concurrency: int,
        ordered: bool,
        log: FailureLog | None,
        is_router: bool = False,
    ) -> None:
        super().__init__()
        self.index = index
        self._make = make
        self._concurrency = concurrency
        self._ordered = ordered
        self._log = log
        self._is_router = is_router

    async def serve(self, port: Port, loop: Loop) -> None:
        await _Slots(self, port, self._make(loop)).serve()


class _Slots:
    """One stage while it runs."""

    def __init__(
        self, stage: AsyncMap, port: Port, call: Callable[[Any], Awaitable[Any]]
    ) -> None:
        self._stage = stage
        self._call = call
        self._port = port
        self._pending: deque[tuple[int, _stoker.Slip]] = deque()  # taken, not begun
        self._tasks: set[asyncio.Task[None]] = set()
        self._taking = False  # a slot waits for input
        self._ended = False
        self._taken = 0  # items so far, and of those:
        self._gone = 0  # have been put
        self._ready: dict[int, _stoker.Slip] = {}  # in input order: done, behind one that is not
        self._putting = False
        self._changed: asyncio.Future[None] | None = None
        self._epochs = 0
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        self._start()
        try:
            await self._over
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _start(self) -> None:
        task = asyncio.get_running_loop().create_task(self._slot())
        self._tasks.add(task)
        task.add_done_callback(self._slot_ended)

    def _slot_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if not self._over.done() and error is not None:
            self._over.set_exception(error)
        elif not self._over.done() and not self._tasks:
            self._over.set_result(None)
        self._tell()

    def _tell(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    async def _wait_for_change(self) -> None:
        self._changed = asyncio.get_running_loop().create_future()
        await self._changed

    def _room(self) -> int:
        """How many more may be under way: in input order results wait for those before them."""
        if not self._stage._ordered:
            return _BURST
        return self._stage._concurrency + 2 - (self._taken - self._gone)

    async def _next(self) -> tuple[int, _stoker.Slip] | None:
        """The next item; None: there is none, or another slot looks for it."""
        while not self._pending:
            if self._taking or self._ended:
                return None
            self._taking = True
            try:
                while self._room() <= 0:
                    await self._wait_for_change()
                got = await self._port.take(max(1, min(_BURST, self._room())))
                if got is _stoker.END:
                    self._ended = True
                elif got is _stoker.EPOCH_END:
                    await self._end_epoch()
                else:
                    self._pending.extend(enumerate(got, self._taken))
                    self._taken += len(got)
            finally:
                self._taking = False
        return self._pending.popleft()

    async def _end_epoch(self) -> None:
        while len(self._tasks) > 1 or self._gone < self._taken:
            await self._wait_for_change()
        await self._port.mark(self._epochs)
        self._epochs += 1

    async def _slot(self) -> None:
        done: list[_stoker.Slip] = []
        begin = time.perf_counter()
        while True:
            if done and not self._pending:
                await self._put(done, time.perf_counter() - begin)
                done = []
            item = self._pending.popleft() if self._pending else await self._next()
            if item is None:
                break
            if not done:
                begin = time.perf_counter()
            number, slip = item
            waits = await self._step(slip, done, begin)
            if self._stage._ordered:
                self._ready[number] = slip
                done = []
                if waits or not self._pending or len(self._ready) >= _BURST:
                    await self._put_ready(time.perf_counter() - begin)
                continue
            if waits:
                done = []
            done.append(slip)
            if waits or len(done) >= _BURST or time.perf_counter() - begin > _BURST_S:
                await self._put(done, time.perf_counter() - begin)
                done = []

    async def _step(self, slip: _stoker.Slip, done: list[_stoker.Slip], begin: float) -> bool:
        """Runs the op.  True: it waited, and what was done before it has gone on."""
        waits = False
        value = slip.value
        try:
            steps: Any = self._call(value)
        except Exception as error:  # before it began: it cannot be called so
            slip.fail(error, True)
            return False
        try:
            if not hasattr(steps, "send"):
                result = await steps
            else:
                try:
                    waits_for = steps.send(None)
                except StopIteration as stop:
                    result = stop.value
                else:
                    waits = True
                    putting = self._leave(done, begin)
                    try:
                        result = await _resume(steps, waits_for)
                    finally:
                        if putting is not None:
                            await putting
        except StageOver:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise  # not by the op
            if self._stage._log is not None:
                self._stage._log(error, value, slip.id)
            slip.fail(error, not isinstance(error, (Exception, asyncio.CancelledError)))
        else:
            if self._stage._is_router:
                slip.route(result)
            else:
                slip.set(result)
        return waits

    def _leave(self, done: list[_stoker.Slip], begin: float) -> asyncio.Task[None] | None:
        """An op waits: what was done goes on, and another slot takes the next item."""
        rest = done
        if self._stage._ordered:
            rest = []
            task = asyncio.get_running_loop().create_task(self._put_ready(0.0)) if self._ready else None
        else:
            task = None
            if done:
                rest = self._port.put_now(done, time.perf_counter() - begin)
                self._gone += len(done) - len(rest)
        if rest:
            task = asyncio.get_running_loop().create_task(self._put(rest, 0.0))
        if not self._taking and not self._ended and len(self._tasks) < self._stage._concurrency:
            self._start()
        return task

    async def _put(self, done: list[_stoker.Slip], busy: float) -> None:
        n = len(done)
        await self._port.put(done, busy)
        self._gone += n
        self._tell()

    async def _put_ready(self, busy: float) -> None:
        if self._putting:
            return
        self._putting = True
        try:
            while self._gone in self._ready:
                batch = []
                while len(batch) < _BURST and self._gone + len(batch) in self._ready:
                    batch.append(self._ready.pop(self._gone + len(batch)))
                await self._put(batch, busy)
                busy = 0.0
        finally:
            self._putting = False
