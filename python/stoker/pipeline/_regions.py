"""Regions: stages that run in workers, as one stage of the pipeline around them."""

from __future__ import annotations

import asyncio
from collections import deque

from .. import _stoker
from ..ops import Op
from ._exchange import END, ERROR, ITEM, Decoder, Encoder
from ._kinds import is_async, kind_of, kind_of_call
from ._loop import LoopStage, end
from ._placement import RegionConfig, gather, gives_batches
from ._region_link import hoist, room_of, start
from ._region_worker import LEAVE, TAKEN, Setup
from ._remote import remote_error
from ._wire import Gone
from .defs import (
    MergeConfig,
    PathVariantsConfig,
    PipeConfig,
    PipelineConfig,
    ProcessPoolExecutorConfig,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Final

    from ._exchange import Frame
    from ._loop import Loop, Port
    from ._region_link import HoistedRegion, Link, Region

__all__ = ["RegionStage", "hoist_regions"]

_MAX_THREADS: Final = 1024
_STATUS_S: Final = 2.0  # between the end of a worker's pipe and its own


def _setup(
    config: RegionConfig, parts: Sequence[str], batched: bool, build: dict[str, Any]
) -> Setup:
    """What its workers run.  `build`: arguments of the build of the whole pipeline."""
    given = {
        "num_threads": min(_MAX_THREADS, _threads(config.stages) + 1),
        "max_failures": 0 if _is_zero(build["max_failures"]) else -1,
        "report_stats_interval": build["report_stats_interval"],
    }
    target = config.target
    room = room_of(config.num_workers)
    first = target.initializer, target.initargs
    return Setup(config.stages, parts, batched, config.out_size, room, *first, given)


def _is_zero(max_failures: object) -> bool:
    return isinstance(max_failures, int) and max_failures == 0


def _threads(stages: Iterable[Any]) -> int:
    """How many calls of sync ops may run at once."""
    count = 0
    for stage in stages:
        if isinstance(stage, PipeConfig) and not is_async(kind_of(stage.op)):
            count += stage.concurrency or 1
        elif isinstance(stage, PathVariantsConfig):
            count += not is_async(kind_of_call(stage.router))
            count += sum(map(_threads, stage.paths))
    return count


def hoist_regions(
    config: PipelineConfig[Any], build: dict[str, Any], ends: list[Any] | None, processes: list[Any]
) -> PipelineConfig[Any]:
    """A configuration whose regions of processes have workers that are children of this process.

    `ends`, `processes`: see hoist().  ends None, ValueError: processes cannot be used from there.
    """
    from ..source import Source

    src = config.src
    parts: tuple[str, ...] = ("image",)
    if isinstance(src, MergeConfig):
        upstream = [hoist_regions(c, build, ends, processes) for c in src.pipeline_configs]
        src = MergeConfig(upstream, src.op)
    elif isinstance(src.source, Source):
        parts = src.source._parts()
    takes = lambda stage: stage.op._handle(parts).takes if isinstance(stage.op, Op) else None  # noqa: E731
    pipes, batched = [], False
    for stage in gather(config.pipes):
        if isinstance(stage, RegionConfig):
            gives = stage.gives_batches(takes, batched)
            if isinstance(stage.target, ProcessPoolExecutorConfig):
                if ends is None:
                    raise ValueError("a region of processes cannot be used from another interpreter")
                setup = _setup(stage, parts, batched, build)
                stage = stage.hoisted(hoist(stage, setup, ends, processes), gives)
            batched = gives
        else:
            batched = gives_batches([stage], takes, batched)
        pipes.append(stage)
    return PipelineConfig(src, pipes, config.sink)


class RegionStage(LoopStage):
    """Sends items to workers in turn, and gives what they send back as it comes."""

    def __init__(self, index: int, config: RegionConfig, parts: Sequence[str], batched: bool) -> None:
        super().__init__()
        self.index = index
        self._config = config
        self._parts = parts
        self._batched = batched
        self.region: Region | HoistedRegion | None = config.region

    def start(self, build: dict[str, Any]) -> None:
        """Starts the workers, unless they run already."""
        if self.region is None:
            self.region = start(self._config, _setup(self._config, self._parts, self._batched, build))

    def take(self) -> None:
        """The loop begins; close() is its last."""
        if self.region is not None:
            self.region.take()

    def close(self) -> None:
        if self.region is not None:
            self.region.close()

    def release(self) -> None:
        """Ends the workers of a pipeline that has not been started."""
        if self.region is not None:
            self.region.release()

    async def serve(self, port: Port, loop: Loop) -> None:
        assert self.region is not None
        await _Serving(self.region.links, port, self._config.in_size).run()


class _Serving:
    """One stage while it runs."""

    def __init__(self, links: Sequence[Link], port: Port, size: int) -> None:
        self._links = links
        self._at_once = room_of(len(links)) // 2
        self._port = port
        self._size = size
        self._loop = asyncio.get_running_loop()
        self._encoder = Encoder()
        self._decoder = Decoder()
        self._arrived: deque[tuple[Link, Frame | Exception]] = deque()
        self._arrival = asyncio.Event()  # something has arrived
        self._credit = asyncio.Event()  # somebody has room
        self._level = asyncio.Event()  # all workers are at the end of the epoch
        self._behind = 0  # workers that are not
        self._count = 0  # results so far
        self._epoch = 0

    async def run(self) -> None:
        for link in self._links:
            link.begin()
            for fd in (link.frame_fd, link.death):
                if fd is not None:
                    self._loop.add_reader(fd, self._read, link)
        give, feed = self._loop.create_task(self._give()), self._loop.create_task(self._feed())
        try:
            await asyncio.wait((give, feed), return_when=asyncio.FIRST_COMPLETED)
            for task in (give, feed):  # a worker's own error says more than what it led to
                if task.done():
                    task.result()
        finally:
            try:
                await end((give, feed))
            finally:
                self._leave()

    def _leave(self) -> None:
        for link in self._links:
            self._forget(link)
            self._loop.remove_writer(link.data_fd)
            link.stop()
            link.send(self._encoder.encode(LEAVE, link.number, None))

    # --- to the workers ---

    async def _feed(self) -> None:
        turn = 0
        while True:
            link = self._links[turn % len(self._links)]
            while link.credit < 1:
                self._credit.clear()
                await self._credit.wait()
            values, ended = await self._take()
            if values:
                self._send(link, values)
                turn += 1
            if ended is not None:
                await self._end_epoch()
                if ended is _stoker.END:
                    return
                await self._port.mark(self._epoch)
                self._epoch += 1

    async def _take(self) -> tuple[list[Any], object]:
        """What makes a transfer, and what ended before it was full."""
        values: list[Any] = []
        while len(values) < self._size:
            got = await self._port.take(self._size - len(values))
            if got is _stoker.END or got is _stoker.EPOCH_END:
                return values, got
            values += [slip.value for slip in got]
        return values, None

    def _send(self, link: Link, values: list[Any]) -> None:
        try:
            parts = self._encoder.encode(ITEM, link.number, values)
        except Exception as error:
            name = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"Fused subprocess input could not be serialized: {name}") from error
        link.credit -= 1
        self._write(link, parts)

    def _write(self, link: Link, parts: Sequence[Any]) -> None:
        if not link.send(parts):
            self._loop.add_writer(link.data_fd, self._write_on, link)

    def _write_on(self, link: Link) -> None:
        if link.flush():
            self._loop.remove_writer(link.data_fd)

    async def _end_epoch(self) -> None:
        """A barrier: returns when everything was given."""
        self._level.clear()
        self._behind = len(self._links)
        for link in self._links:
            self._write(link, self._encoder.encode(END, link.number, None))
        await self._level.wait()

    # --- from the workers ---

    def _read(self, link: Link) -> None:
        try:
            for frame in link.frames():
                if frame.kind != ERROR and frame.epoch != link.number:
                    continue  # of a pass that was left
                if frame.kind == TAKEN:
                    link.credit += 1
                    self._credit.set()
                else:
                    self._arrived.append((link, frame))
                    self._arrival.set()
        except Gone:
            self._forget(link)
            if link.death is None:
                self._bury(link)
                return
            # Its pipe may have ended a little before it.
            timer = self._loop.call_later(_STATUS_S, self._bury, link)
            self._loop.add_reader(link.death, self._bury, link, timer)

    def _forget(self, link: Link) -> None:
        for fd in (link.frame_fd, link.death):
            if fd is not None:
                self._loop.remove_reader(fd)

    def _bury(self, link: Link, timer: asyncio.TimerHandle | None = None) -> None:
        """It has ended: how?"""
        assert link.worker is not None
        self._forget(link)
        if timer is not None:
            timer.cancel()
        how = link.worker.how_it_ended()
        text = f"Fused subprocess pipeline failed: The worker {link.worker.word} exited unexpectedly. {how}"
        self._arrived.append((link, RuntimeError(text.rstrip())))
        self._arrival.set()

    async def _give(self) -> None:
        while True:
            while not self._arrived:
                self._arrival.clear()
                await self._arrival.wait()
            link, frame = self._arrived.popleft()
            if isinstance(frame, Exception):
                raise frame
            if frame.kind == ERROR:
                text, trace, pickled = self._decoder.decode(frame)
                raise RuntimeError(text) from remote_error(trace, pickled)
            await self._put(*self._decoded(frame))
            if frame.kind == ITEM:
                link.give_room(self._at_once)
            else:
                self._behind -= 1
                if not self._behind:
                    self._level.set()

    def _decoded(self, frame: Frame) -> tuple[list[Any], float, int, list[str]]:
        try:
            return self._decoder.decode(frame)  # type: ignore[no-any-return]
        except Exception as error:
            text = f"Fused subprocess output could not be read: {type(error).__name__}: {error}"
            raise RuntimeError(text) from error

    async def _put(self, values: list[Any], busy: float, failed: int, texts: list[str]) -> None:
        slips = []
        for value in values:
            slips.append(self._port.slip(value, self._count, self._epoch))
            self._count += 1
        values.clear()
        for i in range(failed):  # items that were dropped there are counted here
            slip = self._port.slip(None, -1, self._epoch)
            slip.fail(RuntimeError(texts[i] if i < len(texts) else "in a worker of the region"), False)
            slips.append(slip)
        await self._port.put(slips, busy)
