"""Stages of the event loop that are no maps: sources, generators, aggregates."""

from __future__ import annotations

import asyncio
import time

from .. import _stoker
from ._loop import LoopStage, StageOver, end, guarded, is_cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable
    from typing import Any, Final

    from ._log import FailureLog
    from ._loop import Loop, Port
    from .defs import Aggregator

__all__ = ["AsyncAggregate", "AsyncExpand", "AsyncSource"]

_BURST: Final = 64  # slips of one take: what the engine gives at once


class AsyncSource(LoopStage):
    """An async iterable, item by item: the next one is asked for when the last one had room."""

    def __init__(self, index: int, source: AsyncIterable[Any], continuous: bool) -> None:
        super().__init__()
        self.index = index
        self._source = source
        self._continuous = continuous

    async def serve(self, port: Port, loop: Loop) -> None:
        count = epoch = 0
        iterator = None
        try:
            while True:
                iterator = aiter(self._source)
                own: object = iterator is self._source
                async for value in iterator:
                    await port.put_value(value, count, epoch)
                    count += 1
                if not own or not self._continuous:
                    ended, iterator = iterator, None
                    await self._close(ended)
                if not self._continuous:
                    return
                await port.mark(epoch)
                epoch += 1
        finally:
            if iterator is not None:
                await self._close(iterator)

    async def _close(self, iterator: object) -> None:
        await _close(iterator, self.closing)


async def _close(iterator: object, closing: set[asyncio.Task[Any] | None]) -> None:
    """The task is among those of `closing` meanwhile."""
    close = getattr(iterator, "aclose", None)
    if close is None:
        return
    task = asyncio.current_task()
    closing.add(task)
    try:
        await close()
    finally:
        closing.discard(task)


class AsyncExpand(LoopStage):
    """An async generator function: many results of each item, of `concurrency` items at once."""

    def __init__(
        self,
        index: int,
        make: Callable[[Loop], Callable[[Any], AsyncIterator[Any]]],
        concurrency: int,
        log: FailureLog | None,
        in_turn: bool = False,
    ) -> None:
        """`in_turn`: results have the order of the items, and the last of each is told."""
        super().__init__()
        self.index = index
        self._make = make
        self._in_turn = in_turn
        self._concurrency = concurrency
        self._log = log

    async def serve(self, port: Port, loop: Loop) -> None:
        generate, epoch = self._make(loop), 0
        running: set[asyncio.Task[None]] = set()
        turn = None
        try:
            while True:
                while len(running) >= self._concurrency:
                    running = await _wait(running, asyncio.FIRST_COMPLETED)
                got = await _take(port, running)
                if got is _stoker.END or got is _stoker.EPOCH_END:
                    while running:
                        running = await _wait(running, asyncio.FIRST_EXCEPTION)
                    if got is _stoker.END:
                        return
                    await port.mark(epoch)
                    epoch += 1
                    continue
                (slip,) = got
                turn = _Turn(turn if running and self._in_turn else None)
                running.add(asyncio.create_task(guarded(self._expand(slip, port, generate, turn))))
                del got, slip
        finally:
            await end(running, self.closing)

    async def _expand(
        self,
        slip: _stoker.Slip,
        port: Port,
        generate: Callable[[Any], AsyncIterator[Any]],
        turn: _Turn,
    ) -> None:
        value, begin = slip.value, time.perf_counter()
        iterator = None
        self.under_way[slip] = (slip,)
        try:
            iterator = generate(value)
            async for result in iterator:
                busy = time.perf_counter() - begin
                if result is not None:
                    await turn.come()
                    await port.put_value(result, slip.id, slip.epoch, busy)
                begin = time.perf_counter()
            if self._in_turn:
                busy = time.perf_counter() - begin
                await turn.come()
                slip.close()
                await port.put([slip], busy)
        except StageOver:
            raise
        except BaseException as error:
            if is_cancelled():
                raise
            if self._log is not None:
                self._log(error, value, slip.id)
            busy = time.perf_counter() - begin
            await turn.come()
            slip.fail(error, False)
            await port.put([slip], busy)
        finally:
            turn.end()
            await _close(iterator, self.closing)
            del self.under_way[slip]


class _Turn:
    """To put results: comes when the one before it has ended."""

    def __init__(self, before: _Turn | None) -> None:
        """None: it is there."""
        self._ended = asyncio.Event()
        self._before: asyncio.Event | None = None if before is None else before._ended

    async def come(self) -> None:
        if self._before is not None:
            await self._before.wait()

    def end(self) -> None:
        self._ended.set()


async def _wait(tasks: set[asyncio.Task[None]], until: str) -> set[asyncio.Task[None]]:
    """Those that go on; raises what one of the others did."""
    done, rest = await asyncio.wait(tasks, return_when=until)
    for task in done:
        task.result()
    return rest


async def _take(port: Port, running: set[asyncio.Task[None]]) -> Any:
    """One item, or the end; a task that fails meanwhile ends the wait."""
    if not running:
        return await port.take(1)
    take = asyncio.create_task(port.take(1))
    try:
        waiting: set[asyncio.Task[Any]] = {take, *running}
        while not take.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {take}:
                running.discard(task)
                task.result()
        return take.result()
    finally:
        take.cancel()


class AsyncAggregate(LoopStage):
    """An aggregator with hooks around each call.

    What the aggregator raises fails the stage; what a hook raises drops the item, and counts.
    """

    def __init__(
        self,
        index: int,
        op: Aggregator[Any, Any],
        drop_last: bool,
        wrap: Callable[[Callable[[Any], Any]], Callable[[Any], Any]],
        log: FailureLog | None,
        in_turn: bool,
    ) -> None:
        """`wrap`: puts the hooks around an async function of an item.
        `in_turn`: what each item has become ends with itself; what is held back belongs to none."""
        super().__init__()
        self.index = index
        self._op = op
        self._drop_last = drop_last
        self._add = wrap(self._accumulate)
        self._end = wrap(self._flush)
        self._log = log
        self._in_turn = in_turn
        self._raised: Exception | None = None  # by the aggregator

    async def _accumulate(self, item: Any) -> Any:
        return self._noting(self._op.accumulate, item)

    async def _flush(self, _: Any) -> Any:
        return self._noting(self._op.flush)

    def _noting(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except Exception as error:
            self._raised = error
            raise

    async def serve(self, port: Port, loop: Loop) -> None:
        epoch, last = 0, (-1, 0)
        while True:
            got = await port.take(_BURST)
            if got is _stoker.END or got is _stoker.EPOCH_END:
                if self._drop_last:
                    self._op.flush()
                else:
                    await self._call(self._end, None, port, *last)
                if got is _stoker.END:
                    return
                await port.mark(epoch)
                epoch += 1
                continue
            got.reverse()
            while got:  # what the aggregator has is its own: nothing here shall keep it alive
                slip = got.pop()
                last = slip.id, slip.epoch
                self.under_way[self] = (slip,)
                try:
                    await self._call(self._add, slip.value, port, *last)
                    if self._in_turn:
                        slip.close()
                        await port.put([slip], 0.0)
                finally:
                    del self.under_way[self], slip

    async def _call(
        self, call: Callable[[Any], Any], item: Any, port: Port, id: int, epoch: int
    ) -> None:
        try:
            result = await call(item)
        except Exception as error:
            if self._log is not None:
                self._log(error, item, id)
            if error is self._raised:
                raise
            slip = port.slip(item, id, epoch)
            slip.fail(error, False)
            await port.put([slip], 0.0)
        else:
            if result is not None:
                await port.put_value(result, id, epoch)
