"""A pipeline that is built anew for each epoch."""

from __future__ import annotations

from .. import _check
from ._passes import Passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Iterator
    from typing import Any, Final, Generic, TypeVar

    from ..pipeline import PipelineBuilder
    from ..pipeline.defs._stages import OutputOrder
else:
    from .._generic import Generic, TypeVar

__all__ = ["DataLoader"]

S = TypeVar("S")  # what the source gives
T = TypeVar("T")  # what the reader gets

_MAX_THREADS: Final = 1024


class DataLoader(Passes, Generic[S, T]):
    """Every `for` is one pass over `src`, by a pipeline of its own.

        src ─► preprocessor ─► batch_size ─► aggregator ─► transfer_fn ─► buffer_size ─► for

    `src`: anything to iterate over, also asynchronously, or one of stoker.source.
    `preprocessor`, `aggregator`: for each item, and for each list of `batch_size` items; `num_threads` at once.
    `batch_size`: how many items make a list; None leaves them single.
    `drop_last`: leaves out the last list of a pass where it is shorter.
    `transfer_fn`: for each result, one at a time and in the background: a copy to a device, say.
    Functions are what PipelineBuilder.pipe() takes, also async ones and generators.  What gives None is left
    out, and so is what fails, which is counted (stats()) and logged.
    `buffer_size`: how many results may wait for the reader.
    `num_threads`: for functions that are not async.
    `timeout`: seconds that the reader waits for one result; more is a TimeoutError, which ends the pass.
    `output_order`: "completion", or "input": as the source gave them.

    An iterator that is dropped or closed ends its pass.  PipelineFailure: the source failed.
    Threads: any; an iterator belongs to one at a time, and passes that run at once share the source.
    """

    __module__ = "stoker.dataloader"

    def __init__(
        self,
        src: Iterable[S] | AsyncIterable[S],
        *,
        preprocessor: Callable[[S], Any] | None = None,
        batch_size: int | None = None,
        drop_last: bool = False,
        aggregator: Callable[[Any], Any] | None = None,
        transfer_fn: Callable[[Any], T] | None = None,
        buffer_size: int = 3,
        num_threads: int = 8,
        timeout: float | None = None,
        output_order: OutputOrder = "completion",
    ) -> None:
        self._src = src
        self._preprocessor = preprocessor
        self._batch_size = None if batch_size is None else _check.positive("batch_size", batch_size)
        self._drop_last = _check.flag("drop_last", drop_last)
        self._aggregator = aggregator
        self._transfer_fn = transfer_fn
        self._buffer_size = buffer_size
        self._num_threads = _check.integer("num_threads", num_threads, 1, _MAX_THREADS)
        self._timeout = None if timeout is None else _check.number("timeout", timeout, 0)
        self._output_order = _check.choice("output_order", output_order, ("completion", "input"))
        self._builder()  # finds what does not go together

    def _builder(self) -> PipelineBuilder[Any]:
        from ..pipeline import PipelineBuilder

        builder: PipelineBuilder[Any] = PipelineBuilder().add_source(self._src)
        order: Any = self._output_order
        if self._preprocessor is not None:
            builder.pipe(self._preprocessor, concurrency=self._num_threads, output_order=order)
        if self._batch_size is not None:
            builder.aggregate(self._batch_size, drop_last=self._drop_last)
        if self._aggregator is not None:
            builder.pipe(self._aggregator, concurrency=self._num_threads, output_order=order)
        if self._transfer_fn is not None:
            builder.pipe(self._transfer_fn, output_order=order)
        return builder.add_sink(self._buffer_size)

    def __iter__(self) -> Iterator[T]:
        return self._read(self._builder().build(num_threads=self._num_threads), self._timeout)

    def __len__(self) -> int:
        """How many results a pass has, as long as each function gives one for each item.

        TypeError: the length of the source is not known.
        """
        from ..source import Source

        if isinstance(self._src, Source):
            raise TypeError(f"the number of items that {type(self._src).__name__} gives is not known beforehand")
        n = len(self._src)  # type: ignore[arg-type]  # that of a source without one says so
        if self._batch_size is None:
            return n
        return n // self._batch_size if self._drop_last else -(-n // self._batch_size)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<DataLoader over {self._builder()!r}>"
