"""What runs in a worker of a region: its stages as a pipeline, between pipes from and to the parent.

    parent   transfers, ends of epochs ──►  source thread ─ stages ─ main thread
             begin, room, stop ──────────────────────────────────────►  │
             ◄── what was taken, results, ends of epochs, an error ─────┘

Frames are those of worker processes; their epoch is the number of the pass, of which each has a pipeline.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque

from . import _wire
from ._exchange import END, ERROR, HEAD, ITEM, Decoder, Encoder, Frame
from ._wire import Commands, FrameReceiver, Gone, write_some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Final

    from ._pipeline import Pipeline
    from .defs._stages import Stage

__all__ = ["LEAVE", "ROOM", "TAKEN", "RegionSource", "Setup", "serve"]

LEAVE, TAKEN = 4, 5  # more kinds of frames: the pass is left; a transfer has been begun

ROOM: Final = 2  # transfers that wait on the way to a worker, and as many on the way back
_LOOK_S: Final = 0.1  # how often the figures of the pipeline are looked at


class Setup:
    """What a worker runs."""

    def __init__(
        self,
        stages: Sequence[Stage],
        parts: Sequence[str],
        batched: bool,
        buffer_size: int,
        room: int,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
        build: dict[str, Any],
    ) -> None:
        """`parts`, `batched`: see RegionSource.  `buffer_size`: results of a transfer, at most.  `room`:
        transfers of results ahead of the parent.  `build`: arguments of build_pipeline."""
        self.stages = tuple(stages)
        self.parts = tuple(parts)
        self.batched = batched
        self.buffer_size = buffer_size
        self.room = room
        self.initializer = initializer
        self.initargs = initargs
        self.build = build


class _Left(BaseException):
    """The parent has no use for this pass."""


class _Failed(BaseException):
    """The parent was told why."""


class RegionSource:
    """The items of one pass; an iterator gives those of an epoch.

    What PlanMaker has to know of them, and of a source of its own knows: `parts`, what a sample's parts are
    called, and `batched`, whether they are batches of the engine.
    """

    _stoker_parts: tuple[str, ...] = ("image",)
    _stoker_batched = False

    def __init__(self, worker: _Worker, number: int, parts: Sequence[str], batched: bool) -> None:
        self._worker = worker
        self._number = number
        self._stoker_parts = tuple(parts)
        self._stoker_batched = batched

    def __iter__(self) -> Iterator[Any]:
        while (items := self._worker.receive(self._number)) is not None:
            while items:
                yield items.popleft()

    def __repr__(self) -> str:
        return "region"


class _Worker:
    """Threads: the main one, and that of the pipeline's source, which calls receive()."""

    def __init__(self, data_fd: int, command_fd: int, frame_fd: int, setup: Setup) -> None:
        self._setup = setup
        self._receiver = FrameReceiver(data_fd, None)
        self._decoder = Decoder()
        self._kept: Frame | None = None  # of the next pass
        self._commands = Commands(command_fd, self._handle)
        self._encoder = Encoder()
        self._frame_fd = frame_fd
        self._sending = threading.Lock()  # held for one frame
        self._wanted = 0  # the pass that the parent reads, 0 for none
        self._begun = 0  # the one that was begun last
        self._room = 0  # transfers that the parent has room for
        self._left = False  # this pass will get no more input
        self._pipeline: Pipeline | None = None
        self._next_look = 0.0
        self._seen = (0.0, 0, 0)  # of the pipeline's figures: seconds, failures, those with a text

    # --- the source's thread ---

    def receive(self, number: int) -> deque[Any] | None:
        """The items of the next transfer; None at the end of an epoch, or of the pass."""
        try:
            while not self._left:
                frame, self._kept = self._kept or self._receiver.receive(None), None
                if frame.epoch < number:
                    continue  # of a pass that was left
                if frame.epoch > number:
                    self._kept = frame
                    break
                if frame.kind == LEAVE:
                    break
                if frame.kind == END:
                    return None
                self._send([HEAD.pack(TAKEN, False, number, 0, 0, 0)])
                return self._items(frame)
        except Gone:
            pass
        self._left = True
        pipeline = self._pipeline
        assert pipeline is not None and pipeline._run is not None
        pipeline._run.cancel()
        return None

    def _items(self, frame: Frame) -> deque[Any]:
        try:
            return deque(self._decoder.decode(frame))
        except Exception as error:
            text = f"Fused subprocess input could not be read: {type(error).__name__}: {error}"
            raise RuntimeError(text) from error

    # --- the main thread ---

    def _handle(self, command: bytes, number: int) -> None:
        if command == _wire.ITERATE:
            self._wanted, self._room = number, self._setup.room
        elif command == _wire.CREDIT:
            self._room += number
        else:
            self._wanted = 0

    def _send(self, parts: Sequence[Any]) -> None:
        """Waits until the pipe has taken it.  Gone: nobody reads."""
        views = [memoryview(part) for part in parts]
        with self._sending:
            if not write_some(self._frame_fd, views):
                raise Gone

    def run(self) -> None:
        setup, what = self._setup, "Initializer failed: "
        try:
            if setup.initializer is not None:
                setup.initializer(*setup.initargs)
            what = ""
            while True:
                self._commands.wait()
                while self._wanted > self._begun:
                    self._pass()
        except (Gone, _Failed):
            pass
        except BaseException as error:
            self._fail(f"Fused subprocess pipeline failed: {what}{_text(error)}", error)

    def _pass(self) -> None:
        from ._build import make_pipeline
        from .defs import PipelineConfig, SinkConfig, SourceConfig

        setup = self._setup
        number = self._begun = self._wanted
        self._left, self._next_look, self._seen = False, 0.0, (0.0, 0, 0)
        source = RegionSource(self, number, setup.parts, setup.batched)
        config: Any = PipelineConfig(SourceConfig(source, True), setup.stages, SinkConfig(2))
        pipeline = self._pipeline = make_pipeline(config, **setup.build)
        pipeline._said = True  # the parent counts what fails here, and says so
        try:
            while not self._left:
                self._epoch(pipeline)
        except _Left:
            pass
        except (Gone, _Failed):
            raise
        except BaseException as error:
            self._fail(f"Fused subprocess pipeline failed: {_text(error)}", error)
            raise _Failed from None
        finally:
            self._stop(pipeline)
            self._pipeline = None

    def _stop(self, pipeline: Pipeline) -> None:
        """Waits for ops however long they take: the source's thread shares the pipes with the next pass."""
        while True:
            try:
                return pipeline.stop()
            except TimeoutError:
                self._commands.drain()  # Gone: nobody waits for the next pass
            except Exception:  # the parent was told, or does not listen
                return

    def _epoch(self, pipeline: Pipeline) -> None:
        items: list[Any] = []
        for item in pipeline:
            items.append(item)
            del item
            if len(items) == self._setup.buffer_size:
                self._give(items)
        if self._left:
            raise _Left
        if items:
            self._give(items)
        self._send(self._encoder.encode(END, self._begun, ([], *self._figures(last=True))))

    def _give(self, items: list[Any]) -> None:
        """Sends a transfer once the parent has room for it, and empties the list."""
        if self._room < 1:
            self._commands.drain()
        while self._wanted == self._begun and self._room < 1:
            self._commands.wait()
        if self._wanted != self._begun:
            raise _Left
        self._room -= 1
        try:
            parts = self._encoder.encode(ITEM, self._begun, (items, *self._figures(last=False)))
        except Exception as error:
            name = f"{type(error).__name__}: {error}"
            self._fail(f"Fused subprocess output could not be serialized: {name}", error)
            raise _Failed from None
        self._send(parts)
        items.clear()

    def _figures(self, *, last: bool) -> tuple[float, int, list[str]]:
        """What was added since the last time: seconds of the busiest stage, failures, texts of the first."""
        now = time.monotonic()
        if not last and now < self._next_look:
            return 0.0, 0, []
        self._next_look = now + _LOOK_S
        pipeline = self._pipeline
        assert pipeline is not None
        stages = pipeline.stats()["stages"][1:]  # for the source, waiting for the parent is work
        busy = max(stage["busy_s"] / max(1, stage["concurrency"]) for stage in stages)
        failed = sum(stage["failed"] for stage in stages)
        texts = [str(error) for error in pipeline.failures()]
        before, self._seen = self._seen, (busy, failed, len(texts))
        return busy - before[0], failed - before[1], texts[before[2] :]

    def _fail(self, text: str, error: BaseException) -> None:
        import pickle

        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        trace = "".join(traceback.format_exception(error))
        try:
            pickled: bytes | None = pickle.dumps(error)
        except Exception:  # the text says it
            pickled = None
        try:
            self._send(Encoder().encode(ERROR, self._begun, (text, trace, pickled)))
        except Gone:
            pass


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return f"{error.message}: {_text(error.exceptions[0])}"
    return f"{type(error).__name__}: {error}"


def serve(data_fd: int, command_fd: int, frame_fd: int, setup: Setup) -> None:
    """Serves the parent until it is gone, or something fails.  Closes no descriptor."""
    _Worker(data_fd, command_fd, frame_fd, setup).run()
