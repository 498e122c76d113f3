"""What the event loop awaits for one item: the op, where it runs, and what is around it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ProcessPoolExecutor

from ..errors import TimeoutError
from ._hooks import task_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
    from concurrent.futures import Executor
    from typing import Any

    from ._hooks import TaskHook
    from ._loop import Loop

    Call = Callable[[Any], Awaitable[Any]]

__all__ = ["in_executor", "in_pool", "stepping", "with_hooks", "with_retries", "with_timeout"]

_END = object()  # of a generator


def in_pool(
    op: Callable[[Any], Any], loop: Loop, seconds: float | None = None, name: str = ""
) -> Call:
    """A sync op on the threads of the loop, in a copy of the hooks' context.

    TimeoutError after `seconds`, when its thread is left alone.
    """

    async def call(item: Any) -> Any:
        pool = loop.pool
        running = pool.call(op, item)
        if seconds is None:
            return await running.future
        if not (await asyncio.wait((running.future,), timeout=seconds))[0]:
            pool.abandon(running)
            raise TimeoutError(too_long(name, seconds))
        return running.future.result()

    return call


def in_executor(op: Callable[[Any], Any], executor: Executor) -> Call:
    """A sync op on the user's executor: with its threads' own contexts, or in its processes."""
    function = _Remote(op) if isinstance(executor, ProcessPoolExecutor) else op

    async def call(item: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(executor, function, item)

    return call


class _Remote:
    """Runs in a process: what an op raises may not be picklable there, so it comes as text."""

    def __init__(self, op: Callable[[Any], Any]) -> None:
        self._op = op

    def __call__(self, item: Any) -> Any:
        try:
            return self._op(item)
        except Exception as error:
            raise RuntimeError(f"Function failed in subprocess: {_text(error)}") from None


class ListOf:
    """A generator's whole output: what a process gives of it."""

    def __init__(self, op: Callable[[Any], Any]) -> None:
        self._op = op

    def __call__(self, item: Any) -> list[Any]:
        return list(self._op(item))


def _text(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    text = f"{type(error).__name__}: {error}"
    if trace is None:
        return text
    code = trace.tb_frame.f_code
    return f"{text} ({code.co_filename}:{trace.tb_lineno}:{code.co_name})"


def stepping(
    op: Callable[[Any], Any], executor: Executor | None, loop: Loop
) -> Callable[[Any], AsyncGenerator[Any, None]]:
    """A sync generator function as an async one: each step, and close(), on the executor's threads."""

    def call(function: Callable[[Any], Any], item: Any) -> asyncio.Future[Any]:
        if executor is None:
            return loop.pool.call(function, item).future
        return asyncio.get_running_loop().run_in_executor(executor, function, item)

    async def generate(item: Any) -> AsyncGenerator[Any, None]:
        if isinstance(executor, ProcessPoolExecutor):
            for value in await call(_Remote(ListOf(op)), item):
                yield value
            return
        iterator = iter(await call(op, item))
        try:
            while (value := await call(_next, iterator)) is not _END:
                yield value
        finally:
            if hasattr(iterator, "close"):
                await asyncio.shield(call(_close, iterator))

    return generate


def _next(iterator: Any) -> Any:
    return next(iterator, _END)


def _close(iterator: Any) -> None:
    iterator.close()


def with_timeout(call: Call, seconds: float, name: str) -> Call:
    """TimeoutError after `seconds`: an async op is cancelled; a sync one goes on, and is left alone."""

    async def timed(item: Any) -> Any:
        try:
            async with asyncio.timeout(seconds) as limit:
                return await call(item)
        except builtin_timeout:
            if not limit.expired():
                raise
            raise TimeoutError(too_long(name, seconds)) from None

    return timed


def too_long(name: str, seconds: float) -> str:
    return f"stage {name}: the item took longer than {seconds:g} s"


builtin_timeout = asyncio.TimeoutError


def with_retries(call: Call, retries: int) -> Call:
    """Tries again at once, at most `retries` times; the last failure is the item's."""

    async def tried(item: Any) -> Any:
        for _ in range(retries):
            try:
                return await call(item)
            except Exception:
                continue
        return await call(item)

    return tried


def with_hooks(call: Call, hooks: Sequence[TaskHook]) -> Call:
    """Within the hooks' contexts, the first outermost.  What a hook swallows is still a failure."""

    def around(hook: TaskHook, inner: Call) -> Call:
        async def hooked(item: Any) -> Any:
            failed: BaseException | None = None
            async with task_context(hook, item):
                try:
                    return await inner(item)
                except BaseException as error:
                    failed = error
                    raise
            assert failed is not None  # the hook has swallowed it
            raise failed

        return hooked

    for hook in reversed(hooks):
        call = around(hook, call)
    return call


def steps_with_hooks(
    generate: Callable[[Any], AsyncIterator[Any]], hooks: Sequence[TaskHook]
) -> Callable[[Any], AsyncGenerator[Any, None]]:
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
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()

    return generate_hooked
