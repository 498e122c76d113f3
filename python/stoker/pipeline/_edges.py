"""Queues and merges that are the user's own, on the event loop."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from .. import _stoker
from ._loop import LoopStage, StageOver, end, guarded
from ._sentinels import _EOF, _EPOCH_END

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any, Final

    from ._info import StageInfo
    from ._loop import Loop, Port

__all__ = ["CustomMerge", "QueueEdge"]

_BURST: Final = 64  # slips of one take: what the engine gives at once
_MAX_UNCLAIMED: Final = 4096  # slips of values that a queue may have dropped


class QueueEdge(LoopStage):
    """A queue of the user's class between two stages: sees each item, and the marks.

    One task puts, another gets: so the queue fills and empties as it would between two stages.
    """

    def __init__(self, index: int, queue: asyncio.Queue[Any]) -> None:
        super().__init__()
        self.index = index
        self._queue = queue
        # Of what the queue has, by the address of the value, the oldest first.
        self._slips: OrderedDict[int, deque[_stoker.Slip]] = OrderedDict()
        self._unclaimed = 0  # slips in it

    async def serve(self, port: Port, loop: Loop) -> None:
        ends = {
            asyncio.create_task(guarded(self._fill(port))),
            asyncio.create_task(guarded(self._empty(port))),
        }
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await end(ends)

    async def _fill(self, port: Port) -> None:
        while True:
            got = await port.take(self._room())
            if got is _stoker.END:
                await self._queue.put(_EOF)
                return
            if got is _stoker.EPOCH_END:
                await self._queue.put(_EPOCH_END)
                continue
            got.reverse()
            while got:  # what the queue has is its own: nothing here shall keep it alive
                slip = got.pop()
                value = slip.value
                slip.release()
                self._note(value, slip)
                del slip
                await self._queue.put(value)
                del value

    def _note(self, value: object, slip: _stoker.Slip) -> None:
        self._slips.setdefault(id(value), deque()).append(slip)
        self._unclaimed += 1
        if self._unclaimed > _MAX_UNCLAIMED + self._queue.qsize():
            self._claim(next(iter(self._slips)))

    def _room(self) -> int:
        """How many to take at once: those behind them stay where they are counted."""
        return max(1, min(_BURST, self._queue.maxsize - self._queue.qsize()))

    async def _empty(self, port: Port) -> None:
        epoch = 0
        while (value := await self._queue.get()) is not _EOF:
            if value is _EPOCH_END:
                await port.mark(epoch)
                epoch += 1
            else:
                slip = self._slip_of(value)
                if slip is None:  # made by the queue
                    slip = port.slip(value, -1, epoch)
                else:
                    slip.restore(value)
                del value
                await port.put([slip], 0.0)
                del slip

    def _slip_of(self, value: object) -> _stoker.Slip | None:
        return self._claim(id(value)) if id(value) in self._slips else None

    def _claim(self, address: int) -> _stoker.Slip:
        known = self._slips[address]
        slip = known.popleft()
        self._unclaimed -= 1
        if not known:
            del self._slips[address]
        return slip


class CustomMerge(LoopStage):
    """`async def op(info, input_queues, output_queue)` in the place of a source."""

    def __init__(
        self,
        index: int,
        op: Callable[..., Awaitable[Any]],
        info: StageInfo,
        inputs: Sequence[asyncio.Queue[Any]],
        output: asyncio.Queue[Any],
    ) -> None:
        super().__init__()
        self.index = index
        self._op = op
        self._info = info
        self._inputs = inputs
        self._output = output

    async def serve(self, port: Port, loop: Loop) -> None:
        fills = [
            asyncio.create_task(guarded(self._fill(port, i, queue)))
            for i, queue in enumerate(self._inputs)
        ]
        empty = asyncio.create_task(guarded(self._empty(port)))
        op = asyncio.create_task(guarded(self._op(self._info, list(self._inputs), self._output)))
        try:
            await _until(op, {*fills, empty})
            await self._output.put(_EOF)
            await empty
        finally:
            await end([op, empty, *fills])

    async def _fill(self, port: Port, input: int, queue: asyncio.Queue[Any]) -> None:
        while True:
            got = await port.take(1, input)
            if got is _stoker.END:
                await queue.put(_EOF)
                return
            await queue.put(_EPOCH_END if got is _stoker.EPOCH_END else got[0].value)

    async def _empty(self, port: Port) -> None:
        count = epoch = 0
        while (value := await self._output.get()) is not _EOF:
            if value is _EPOCH_END:
                await port.mark(epoch)
                epoch += 1
            else:
                await port.put_value(value, count, epoch)
                count += 1


async def _until(op: asyncio.Future[Any], others: set[asyncio.Task[None]]) -> None:
    """Until the op has ended; a failure of another task ends the wait."""
    waiting: set[asyncio.Future[Any]] = {op, *others}
    while not op.done():
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {op}:
            if not task.cancelled() and isinstance(task.exception(), StageOver):
                raise StageOver
            task.result()
    op.result()
