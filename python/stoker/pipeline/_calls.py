"""What the event loop awaits for one item: the op, where it runs, and what is around it."""

from __future__ import annotations

import asyncio
import time
from concurrent import futures
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context

from ..errors import TimeoutError
from ._hooks import task_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import Executor
    from contextvars import Context
    from typing import Any, Literal, Protocol

    from ._hooks import TaskHook
    from ._loop import Loop

    Call = Callable[[Any], Awaitable[Any]]
    Workers = Literal["threads", "processes", "interpreters", "unknown"]
else:
    Protocol = object

__all__ = [
    "ListOf",
    "Place",
    "Remote",
    "result_of",
    "sync_call",
    "too_long",
    "with_hooks",
    "with_retries",
    "with_timeout",
    "within",
]


class Running(Protocol):
    """A sync call under way."""

    future: asyncio.Future[Any]

    def elapsed(self) -> float:
        """Seconds since a thread, or a process, took it on; 0 while it waits for one."""
        ...

    def abandon(self) -> None:
        """Nobody waits for it any more."""


class Place:
    """Where the sync calls of one stage run: on the threads of the loop or on the user's executor; on
    threads in a copy of the hooks' context."""

    def __init__(self, loop: Loop, executor: Executor | None, stage: str) -> None:
        self._loop = loop
        self._stage = stage
        self._executor = executor

    @property
    def workers(self) -> Workers:
        return "threads" if self._executor is None else workers_of(self._executor)

    def begin(self, function: Callable[[Any], Any], item: Any) -> Running:
        if self._executor is None:
            return self._loop.pool.call(function, item, self._stage)
        return _Submitted(self._executor, function, item)


def workers_of(executor: Executor) -> Workers:
    """What it runs calls in."""
    if type(executor) is ThreadPoolExecutor:
        return "threads"
    if isinstance(executor, ProcessPoolExecutor):
        return "processes"
    interpreters = getattr(futures, "InterpreterPoolExecutor", None)
    if interpreters is not None and isinstance(executor, interpreters):
        return "interpreters"
    known: Workers = "threads" if isinstance(executor, ThreadPoolExecutor) else "unknown"
    return getattr(executor, "_stoker_workers", known)  # an entry point of a priority pool


class _Submitted:
    def __init__(self, executor: Executor, function: Callable[[Any], Any], item: Any) -> None:
        self._begun: list[float] = []
        if workers_of(executor) == "threads":
            self._submitted = executor.submit(_noted, self._begun, copy_context(), function, item)
        else:
            self._submitted = executor.submit(function, item)
        self.future = asyncio.wrap_future(self._submitted)

    def elapsed(self) -> float:
        if not self._begun and self._submitted.running():
            self._begun.append(time.monotonic())  # all that is known where it is no thread of ours
        return time.monotonic() - self._begun[0] if self._begun else 0.0

    def abandon(self) -> None:
        self.future.cancel()


def _noted(
    begun: list[float], context: Context, function: Callable[[Any], Any], item: Any
) -> Any:
    begun.append(time.monotonic())
    for var, value in copy_context().items():  # what the executor's initializer has set
        if var not in context:
            context.run(var.set, value)
    return context.run(function, item)


async def result_of(running: Running, seconds: float | None, text: str) -> Any:
    """TimeoutError(text) once it has run for `seconds`, when it is abandoned."""
    wait = seconds
    try:
        if seconds is None or wait is None:
            return await running.future
        while not (await asyncio.wait((running.future,), timeout=max(0.0, wait)))[0]:
            wait = seconds - running.elapsed()
            if wait <= 0:
                running.abandon()
                raise TimeoutError(text)
        return running.future.result()
    finally:
        running.future.cancel()
        del running  # an error of the future refers to this frame


def sync_call(
    op: Callable[[Any], Any], place: Place, seconds: float | None = None, name: str = ""
) -> Call:
    """A sync op as an async one."""
    function = Remote(op) if place.workers == "processes" else op
    text = too_long(name, seconds)

    async def call(item: Any) -> Any:
        return await result_of(place.begin(function, item), seconds, text)

    return call


class Remote:
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


def with_timeout(call: Call, seconds: float, name: str) -> Call:
    """TimeoutError after `seconds`, when the op, which is async, is cancelled."""
    text = too_long(name, seconds)

    async def timed(item: Any) -> Any:
        return await within(call(item), seconds, text)

    return timed


async def within(work: Awaitable[Any], seconds: float, text: str) -> Any:
    """TimeoutError(text) after `seconds`, when the work is cancelled; its own one as it is."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except builtin_timeout:
        if not limit.expired():
            raise
        raise TimeoutError(text) from None


def too_long(name: str, seconds: float | None) -> str:
    return f"stage {name}: the item took longer than {seconds or 0:g} s"


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
