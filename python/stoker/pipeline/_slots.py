"""Stages of async ops: several items at once on the event loop."""

from __future__ import annotations

import asyncio
import time
from types import coroutine

from .. import _stoker
from ._loop import LoopStage, StageOver, end, is_cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextvars import Context
    from typing import Any, Final

    from ._log import FailureLog
    from ._loop import Loop, Port

__all__ = ["AsyncMap"]

_BURST: Final = 64


@coroutine
def _resume(steps: Any, waits_for: Any, context: Context) -> Generator[Any, Any, Any]:
    """Goes on in its context with a coroutine that has waited once, as `await` would have."""
    given: Any
    while True:
        try:
            given, step = (yield waits_for), steps.send
        except BaseException as error:
            given, step = error, steps.throw
        waits_for = None  # a future's exception will refer to this frame
        try:
            waits_for = context.run(step, given)
        except StopIteration as stop:
            return stop.value
        finally:
            del given  # an exception refers to this frame


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
        self._pending: list[_stoker.Slip] = []  # taken, not begun; the first is number _taken - its length
        self._tasks: set[asyncio.Task[None]] = set()
        self._taking = False  # a slot waits for input
        self._ended = False
        self._taken = 0  # items so far, and of those:
        self._gone = 0  # have been put
        # In input order: done, behind one that is not; with the seconds that were spent on each.
        self._ready: dict[int, tuple[_stoker.Slip, float]] = {}
        self._putting = False
        self._changed: asyncio.Future[None] | None = None
        self._epochs = 0
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        self._start()
        try:
            await self._over
        finally:
            await end(list(self._tasks))

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

    async def _next(self) -> bool:
        """Waits for items.  False: there are none, or another slot looks for them."""
        while not self._pending:
            if self._taking or self._ended:
                return False
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
                    self._pending = got
                    self._taken += len(got)
            finally:
                self._taking = False
        return True

    async def _end_epoch(self) -> None:
        while len(self._tasks) > 1 or self._gone < self._taken:
            await self._wait_for_change()
        await self._port.mark(self._epochs)
        self._epochs += 1

    async def _slot(self) -> None:
        me, under_way = asyncio.current_task(), self._stage.under_way
        while self._pending or await self._next():
            burst, self._pending = self._pending, []
            under_way[me] = burst
            number = self._taken - len(burst)
            begin = time.perf_counter()
            n, steps, waits_for, context = self._port.run(self._call, burst, self._stage._is_router)
            busy = time.perf_counter() - begin
            done, self._pending = burst[:n], burst[n:]
            if steps is None and waits_for is None:
                del under_way[me]
                await self._deliver(number, done, busy)
                continue
            slip, self._pending = self._pending[0], self._pending[1:]
            if isinstance(waits_for, BaseException):
                del under_way[me]
                self._fail(slip, waits_for, steps is None)
                done.append(slip)
                await self._deliver(number, done, busy)
                continue
            under_way[me] = (slip,)
            putting = self._leave(number, done, busy)
            begin = time.perf_counter()
            try:
                await self._finish(slip, steps, waits_for, context)
            finally:
                del under_way[me]
                if putting is not None:
                    if is_cancelled():
                        putting.cancel()  # there may never be room
                    await putting
            await self._deliver(number + n, [slip], time.perf_counter() - begin)

    async def _finish(
        self, slip: _stoker.Slip, steps: Any, waits_for: Any, context: Context
    ) -> None:
        going_on = _resume(steps, waits_for, context)
        del waits_for  # as there
        try:
            result = await going_on
        except StageOver:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise  # not by the op
            self._fail(slip, error, False)
        else:
            (slip.route if self._stage._is_router else slip.set)(result)

    def _fail(self, slip: _stoker.Slip, error: BaseException, uncallable: bool) -> None:
        """uncallable: the op could not even be called, which no other item will change."""
        if self._stage._log is not None:
            self._stage._log(error, slip.value, slip.id)
        slip.fail(error, uncallable)

    def _leave(
        self, number: int, done: list[_stoker.Slip], busy: float
    ) -> asyncio.Task[None] | None:
        """An op waits: what was done goes on, and another slot takes the next item."""
        putting = None
        if done and not self._stage._ordered:
            try:
                rest = self._port.put_now(done, busy)
            except StageOver:  # which the op that waits shall not see
                rest = done
            self._gone += len(done) - len(rest)
            done, busy, number = rest, 0.0, -1
        if done:
            putting = asyncio.get_running_loop().create_task(self._deliver(number, done, busy))
        if not self._taking and not self._ended and len(self._tasks) < self._stage._concurrency:
            self._start()
        return putting

    async def _deliver(self, number: int, done: list[_stoker.Slip], busy: float) -> None:
        """Puts slips, of which the first has that number."""
        if not done:
            return
        if not self._stage._ordered:
            await self._put(done, busy)
            return
        each = busy / len(done)
        self._ready.update(enumerate(((slip, each) for slip in done), number))
        if self._putting:
            return
        self._putting = True
        try:
            while self._gone in self._ready:
                batch: list[_stoker.Slip] = []
                busy = 0.0
                while len(batch) < _BURST and self._gone + len(batch) in self._ready:
                    slip, each = self._ready.pop(self._gone + len(batch))
                    batch.append(slip)
                    busy += each
                await self._put(batch, busy)
        finally:
            self._putting = False

    async def _put(self, done: list[_stoker.Slip], busy: float) -> None:
        n = len(done)
        await self._port.put(done, busy)
        self._gone += n
        self._tell()
