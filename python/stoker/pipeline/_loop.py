"""The event loop thread of a pipeline, and its way into the engine."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack

from .. import _stoker
from ._log import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from concurrent.futures import Executor
    from contextlib import AbstractAsyncContextManager
    from typing import Any, Final

    from ._regions import RegionStage
    from ._loop_pool import LoopPool
    from ._tasks import BackgroundTask, BackgroundTaskFactory

__all__ = ["Escaped", "LoopStage", "Loop", "Port", "StageOver", "end", "guarded", "is_cancelled"]

_BURST: Final = 64  # slips of one put: what the engine takes at once


class StageOver(Exception):
    """The stage takes nothing any more: it failed, or the run has ended."""


class LoopStage(ABC):
    """A stage that the event loop serves.  `index`: its number among the engine's stages."""

    index: int

    def __init__(self) -> None:
        self.contexts: list[AbstractAsyncContextManager[Any]] = []  # around its whole life
        self.closing: set[asyncio.Task[Any] | None] = set()  # tasks that let users' iterators end
        self.under_way: dict[object, Sequence[_stoker.Slip]] = {}  # what each task has begun
        self.text: Callable[[], str] = lambda: f"stage {self.index}"
        self.ended = False

    def items(self) -> list[str]:
        """What its op is at, for those who wait for it; any thread may ask."""
        slips = [
            next((slip for slip in burst if slip.value is not None), None)
            for burst in list(self.under_way.values())
        ]
        return [f"item {slip.id}: {shorten(slip.value)}" for slip in slips if slip is not None]

    @abstractmethod
    async def serve(self, port: Port, loop: Loop) -> None:
        """Takes and puts until the input has ended."""

    async def live(self, port: Port, loop: Loop) -> None:
        """Serves within its contexts; what goes wrong fails the stage.

        The failure is on its way before the contexts are left, which may take long and be cancelled.
        """
        told: BaseException | None = None
        over = False
        try:
            async with AsyncExitStack() as stack:
                for context in self.contexts:
                    await stack.enter_async_context(context)
                try:
                    await guarded(self.serve(port, loop))
                except StageOver:
                    over = True
                    raise asyncio.CancelledError from None
                except Exception as error:
                    told = error
                    await port.fail(error)
                    raise
        except BaseException as error:  # none of them shall look like the end of the input
            if isinstance(error, asyncio.CancelledError) and (over or is_cancelled()):
                if loop.failure is None:
                    raise
                error = loop.failure
            if error is not told:
                await port.fail(error)
        finally:
            port.close()
            self.ended = True


class Escaped(Exception):
    """Stands for an exception that would end the event loop, or look like the end of its task."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


async def guarded(work: Awaitable[Any]) -> Any:
    """For users' code in a task: raises Escaped for what is no Exception, unless the task is cancelled."""
    try:
        return await work
    except Exception:
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise Escaped(error) from None


def is_cancelled() -> bool:
    """Whether somebody wants the running task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def end(tasks: Collection[asyncio.Task[Any]], closing: Collection[object] = ()) -> None:
    """Cancels tasks and waits for them, whoever wants this one to end meanwhile.

    `closing`: tasks that end already, which nothing shall interrupt.
    """
    for task in tasks:
        if task not in closing:
            task.cancel()
    interrupted = False
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            interrupted = True
    for task in tasks:
        task.cancelled() or task.exception()  # or asyncio would log that nobody has looked at it
    if interrupted:
        raise asyncio.CancelledError


class Port:
    """One stage's inputs and output, for coroutines.

    A take or put that cannot go on waits for news of the engine, which come as one wake-up for all.
    """

    def __init__(self, run: _stoker.Run, index: int, loop: Loop) -> None:
        self._port = _stoker.port(run, index)
        self._loop = loop

    async def take(self, max: int, input: int = 0) -> Any:
        """At most `max` slips, in a list; or _stoker.END or EPOCH_END.  StageOver."""
        while True:
            got = self._port.take(input, max)
            if got is not None:
                if got is _stoker.CANCELLED:
                    raise StageOver
                return got
            await self._loop.news()

    async def put(self, slips: list[_stoker.Slip], busy: float) -> None:
        """Waits until there was room for all.  `busy`: seconds that were spent on them.  StageOver."""
        while slips:
            n = self._port.put(slips, busy)
            if n < 0:
                raise StageOver
            busy = 0.0
            if n == len(slips):
                return
            slips = slips[n:]
            if n < _BURST:
                await self._loop.news()

    def put_now(self, slips: list[_stoker.Slip], busy: float) -> list[_stoker.Slip]:
        """Those that had no room."""
        n = self._port.put(slips, busy)
        if n < 0:
            raise StageOver
        return slips[n:]

    def run(
        self, call: Callable[[Any], Any], slips: list[_stoker.Slip], routes: bool
    ) -> tuple[int, Any, Any, Any]:
        """See _stoker.Port.run."""
        return self._port.run(call, slips, routes)

    async def put_value(self, value: object, id: int, epoch: int, busy: float = 0.0) -> None:
        await self.put([self.slip(value, id, epoch)], busy)

    def slip(self, value: object, id: int, epoch: int) -> _stoker.Slip:
        slip = self._port.slip(value, id, epoch)
        if slip is _stoker.CANCELLED:
            raise StageOver
        assert isinstance(slip, _stoker.Slip)
        return slip

    async def mark(self, epoch: int) -> None:
        while True:
            done = self._port.mark(epoch)
            if done:
                if done < 0:
                    raise StageOver
                return
            await self._loop.news()

    async def fail(self, error: BaseException) -> None:
        """The stage ends with this error, behind what was put."""
        if isinstance(error, Escaped):
            error = error.error
        try:
            slip = self.slip(None, -1, 0)
            slip.fail(error, True)
            await self.put([slip], 0.0)
        except StageOver:
            pass

    def close(self) -> None:
        self._port.close()


class Loop:
    """The event loop of one run: a thread of the run calls run().

    What that thread needs is imported where the pipeline is built: a thread in the middle of an import
    would, in a child of fork, hold that module's lock for ever.
    """

    def __init__(
        self,
        stages: Sequence[LoopStage],
        num_threads: int,
        background_tasks: Sequence[BackgroundTask | BackgroundTaskFactory],
        executors: Sequence[Executor] = (),
        regions: Sequence[RegionStage] = (),
    ) -> None:
        """`executors`: end with the loop, as the workers of `regions`, which are some of the stages."""
        self.stages = list(stages)
        self._num_threads = num_threads
        self._background_tasks = background_tasks
        self._executors = executors
        self._regions = regions
        self._waiters: list[asyncio.Future[None]] = []
        self._lives: list[asyncio.Task[None]] = []
        self.failure: BaseException | None = None  # of a task that is no stage's
        self._pool: LoopPool | None = None
        from ._loop_pool import LoopPool

        self._make_pool = LoopPool
        if background_tasks:
            from . import _tasks  # noqa: F401

    def run(self, run: _stoker.Run, group: int) -> None:
        """Until the stages have ended, or the run has."""
        for stage in self._regions:
            stage.take()
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            main = loop.create_task(self._main(run, group))
            while not main.done():
                try:
                    loop.run_until_complete(main)
                except (KeyboardInterrupt, SystemExit) as error:  # of a task that users made
                    if main.done():
                        raise
                    self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Every stage ends with it."""
        if self.failure is None:
            self.failure = error
            for life in self._lives:
                life.cancel()

    @property
    def has_regions(self) -> bool:
        return bool(self._regions)

    def start_regions(self, build: dict[str, Any]) -> None:
        """Starts the workers of regions, or none.  `build`: arguments of build_pipeline."""
        try:
            for stage in self._regions:
                stage.start(build)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Gives back what the pipeline of a loop that does not run has, or would have had."""
        for stage in self._regions:
            stage.release()

    async def _main(self, run: _stoker.Run, group: int) -> None:
        loop = asyncio.get_running_loop()
        main = asyncio.current_task()
        assert main is not None
        fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

        def on_news() -> None:
            _stoker.hear(fd)
            if run.ended():
                if not main.cancelling():
                    main.cancel()
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

        loop.add_reader(fd, on_news)
        for number in {0, group}:  # 0: tells of the end, also where no stage would
            _stoker.notify(run, number, fd)
        try:
            if not run.ended():
                await self._serve(run)
        except asyncio.CancelledError:
            if not run.ended():
                raise
        finally:
            for number in {0, group}:
                _stoker.notify(run, number, -1)
            loop.remove_reader(fd)
            os.close(fd)
            self.shutdown()

    def shutdown(self) -> None:
        """Ends the threads and the executors that belong to the pipeline."""
        for executor in self._executors:
            executor.shutdown(wait=False, cancel_futures=True)
        if self._pool is not None:
            self._pool.end()
        for stage in self._regions:
            stage.close()

    async def _serve(self, run: _stoker.Run) -> None:
        async with AsyncExitStack() as stack:
            if self._background_tasks:
                from ._tasks import background

                await stack.enter_async_context(background(self._background_tasks))
            ports = [Port(run, stage.index, self) for stage in self.stages]
            self._lives = lives = [
                asyncio.create_task(stage.live(port, self), name=f"stoker-stage-{stage.index}")
                for stage, port in zip(self.stages, ports, strict=True)
            ]
            if self.failure is not None:  # before there was any
                for life in lives:
                    life.cancel()
            try:
                if lives:
                    await asyncio.wait(lives)
                if self._background_tasks:
                    await asyncio.Event().wait()  # they live as long as the run: its end cancels this
            finally:
                await end(lives, {task for stage in self.stages for task in stage.closing})

    async def news(self) -> None:
        """Waits until the engine says that a take or a put may go on."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def under_way(self) -> list[str]:
        """Which stages are at which items: what a stop that gives up says."""
        items = [f"{stage.text()}, {item}" for stage in self.stages for item in stage.items()]
        if self._pool is not None:
            items += self._pool.under_way()
        return items or [stage.text() for stage in self.stages if not stage.ended]

    @property
    def pool(self) -> LoopPool:
        """For sync ops whose stages the loop serves."""
        if self._pool is None:
            self._pool = self._make_pool(self._num_threads)
        return self._pool
