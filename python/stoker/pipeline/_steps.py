"""What the event loop steps through for one item: a generator, where it runs, and what is around it."""

from __future__ import annotations

import asyncio
import threading
import time

from ..errors import TimeoutError
from ._calls import ListOf, Remote, result_of, too_long, with_hooks, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
    from typing import Any, Final

    from ._calls import Place
    from ._hooks import TaskHook

    Generate = Callable[[Any], AsyncIterator[Any]]

__all__ = ["Generate", "stepping", "steps_with_hooks", "steps_with_retries", "steps_with_timeout"]

_END: Final = object()  # of a generator


def stepping(
    op: Callable[[Any], Any], place: Place, seconds: float | None = None, name: str = ""
) -> Generate:
    """A sync generator function as an async one: each step, and close(), where its stage runs.

    TimeoutError when the steps of an item have taken `seconds` in all: the last one is left alone, and
    whoever runs it closes the generator behind it.
    """
    text = too_long(name, seconds)

    async def generate(item: Any) -> AsyncGenerator[Any, None]:
        left = seconds

        async def call(function: Callable[[Any], Any], argument: Any) -> Any:
            nonlocal left
            if left is not None and left <= 0:
                raise TimeoutError(text)
            running = place.begin(function, argument)
            try:
                result = await result_of(running, left, text)
                if left is not None:
                    left -= running.elapsed()
                return result
            finally:
                del running  # an error of its future refers to this frame

        if place.workers in ("processes", "interpreters"):  # which a generator cannot leave
            whole = ListOf(op)
            for value in await call(Remote(whole) if place.workers == "processes" else whole, item):
                yield value
            return
        steps = _Steps(await call(op, item), op, item)
        try:
            while (value := await call(steps.next, None)) is not _END:
                yield value
        finally:
            if not steps.left_alone():
                await asyncio.shield(place.begin(steps.close, None).future)

    return generate


class _Steps:
    """A generator whose step may be abandoned: the thread that is at it closes it then."""

    def __init__(self, iterable: Any, op: Callable[[Any], Any], item: Any) -> None:
        self._iterator = iter(iterable)
        self._stoker_steps = op, item  # whose steps they are
        self._lock = threading.Lock()  # guards everything below
        self._is_busy = False
        self._ends = False

    def next(self, _: None) -> Any:
        with self._lock:
            if self._ends:
                return _END
            self._is_busy = True
        try:
            return next(self._iterator, _END)
        finally:
            with self._lock:
                self._is_busy = False
                ends = self._ends
            if ends:
                self.close(None)

    def left_alone(self) -> bool:
        """Whether a step runs, which will be the last one."""
        with self._lock:
            self._ends = True
            return self._is_busy

    def close(self, _: None) -> None:
        with self._lock:
            if self._is_busy:
                return
        if hasattr(self._iterator, "close"):
            self._iterator.close()


def steps_with_timeout(generate: Generate, seconds: float, name: str) -> Generate:
    """TimeoutError when the steps of an item have taken `seconds` in all, when the async generator is
    cancelled.  What it waits for between them does not count."""
    text = too_long(name, seconds)

    async def generate_timed(item: Any) -> AsyncGenerator[Any, None]:
        iterator, left = generate(item), seconds
        try:
            while True:
                begin = time.monotonic()
                try:
                    value = await within(anext(iterator), left, text)
                except StopAsyncIteration:
                    return
                left -= time.monotonic() - begin
                yield value
        finally:
            await _aclose(iterator)

    return generate_timed


def steps_with_retries(generate: Generate, retries: int) -> Generate:
    """Begins again at once, at most `retries` times, as long as no result was given."""

    async def generate_again(item: Any) -> AsyncGenerator[Any, None]:
        for left in range(retries, -1, -1):
            iterator, given = generate(item), False
            try:
                async for value in iterator:
                    given = given or value is not None
                    yield value
                return
            except Exception:
                if given or not left:
                    raise
            finally:
                await _aclose(iterator)

    return generate_again


def steps_with_hooks(generate: Generate, hooks: Sequence[TaskHook]) -> Generate:
    """Each step of an async generator within the hooks' contexts."""

    async def generate_hooked(item: Any) -> AsyncGenerator[Any, None]:
        iterator = generate(item)

        async def step(_: Any) -> Any:
            return await anext(iterator)

        call = with_hooks(step, hooks)
        try:
            while True:
                try:
                    value = await call(item)
                except StopAsyncIteration:
                    return
                yield value
        finally:
            await _aclose(iterator)

    return generate_hooked


async def _aclose(iterator: Any) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()
