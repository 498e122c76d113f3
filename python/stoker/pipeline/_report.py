"""Reports of a stage while it runs, on the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["LOGGER", "reporting"]

LOGGER = logging.getLogger("stoker.pipeline")


@asynccontextmanager
async def reporting(
    interval: float, take: Callable[[], T], callback: Callable[[T], Awaitable[None] | None]
) -> AsyncGenerator[None, None]:
    """Gives callback(take()) every `interval` seconds of the block, and at its end what is left.

    0 or less: never.  An error of the callback is logged.
    """
    if not interval > 0:
        yield
        return
    repeat = asyncio.get_running_loop().create_task(_repeat(interval, take, callback))
    try:
        yield
    finally:
        repeat.cancel()
        await asyncio.wait([repeat])
        await _deliver(take, callback)


async def _repeat(
    interval: float, take: Callable[[], T], callback: Callable[[T], Awaitable[None] | None]
) -> None:
    clock = asyncio.get_running_loop().time
    due = clock() + interval
    while True:
        await asyncio.sleep(due - clock())
        await _deliver(take, callback)
        due = max(due + interval, clock())  # a slow callback does not make those after it hurry


async def _deliver(take: Callable[[], T], callback: Callable[[T], Awaitable[None] | None]) -> None:
    try:
        waits = callback(take())
        if waits is not None and hasattr(waits, "__await__"):
            await waits
    except Exception:
        LOGGER.exception("a callback for statistics failed")
