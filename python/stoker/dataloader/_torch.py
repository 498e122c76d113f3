"""In place of torch.utils.data.DataLoader, for data sets that must run in processes."""

from __future__ import annotations

import warnings
from itertools import chain, islice

from .. import _check
from ._passes import Passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.context import BaseContext
    from typing import Any, Final, Generic

    from typing_extensions import TypeVar

    from ..pipeline import Pipeline
    from ._workers import Job, Workers
else:
    from .._generic import Generic, TypeVar

__all__ = ["PyTorchDataLoader", "get_pytorch_dataloader"]

T = TypeVar("T", covariant=True, default="Any")  # what collate_fn makes

_MAX_AHEAD: Final = 1023  # batches
_SEEDS: Final = 2**63  # torch's generators take one of so many


def get_pytorch_dataloader(
    dataset: Any,
    batch_size: int | None = 1,
    shuffle: bool = False,
    sampler: Iterable[Any] | None = None,
    batch_sampler: Iterable[Any] | None = None,
    num_workers: int = 1,
    collate_fn: Callable[[Any], T] | None = None,
    pin_memory: bool = False,
    drop_last: bool = False,
    timeout: float | None = None,
    worker_init_fn: Callable[[int], None] | None = None,
    multiprocessing_context: str | BaseContext | None = None,
    generator: Any = None,
    *,
    prefetch_factor: int = 2,
    persistent_workers: bool = False,
    pin_memory_device: str | None = None,
    in_order: bool = False,
    worker_init_concurrency: int | None = None,
) -> PyTorchDataLoader[T]:
    """The arguments are those of torch.utils.data.DataLoader, with these differences.

    `dataset`: map-style.  It is pickled here, once, into memory that the workers share: arrays in it are not
    copied, and a worker sees no changes that are made later.
    `num_workers`: at least 1; 0 counts as 1, with a warning.  They are started for each pass, and end with it.
    `timeout`: seconds that the reader waits for a batch, more is a TimeoutError; None or 0: for ever.
    `in_order`: False gives batches as they are made.
    `worker_init_concurrency`: how many workers may unpickle the data set at a time (None: all).
    A batch that fails is left out, counted (stats()) and logged.  What samples draw from the global generators of
    random, NumPy and torch depends on `generator` (None: torch's) and the number of the batch only.

    ValueError: an IterableDataset, worker_init_fn, pin_memory_device or persistent_workers; arguments that
    exclude each other; numbers out of range.  RuntimeError, where it is read: a worker process died.
    ModuleNotFoundError: no torch.
    """
    for name, value, why in (
        ("worker_init_fn", worker_init_fn, "workers begin alike"),
        ("pin_memory_device", pin_memory_device, "batches are pinned for the device that is current"),
        ("persistent_workers", persistent_workers, "workers are started for each pass"),
    ):
        if value:
            raise ValueError(f"{name} is not supported: {why}")
    torch = _torch()
    if isinstance(dataset, torch.utils.data.IterableDataset):
        raise ValueError("an IterableDataset is not supported: use a map-style data set, or DataLoader")
    if _check.integer("num_workers", num_workers, 0) == 0:
        warnings.warn("num_workers=0 is not supported: there is 1 worker process", stacklevel=2)
        num_workers = 1
    sampler, batch_sampler, batch_size = _samplers(
        dataset, batch_size, shuffle, sampler, batch_sampler, drop_last, generator
    )
    data = torch.utils.data
    collate = collate_fn or (data.default_convert if batch_sampler is None else data.default_collate)
    if worker_init_concurrency is not None:
        worker_init_concurrency = _check.integer("worker_init_concurrency", worker_init_concurrency, 1)
    return PyTorchDataLoader(
        dataset,
        batch_size=batch_size,
        sampler=sampler,
        batch_sampler=batch_sampler,
        num_workers=num_workers,
        collate_fn=collate,
        pin_memory=_check.flag("pin_memory", pin_memory),
        drop_last=drop_last,
        timeout=_check.number("timeout", timeout or 0, 0) or None,
        multiprocessing_context=multiprocessing_context,
        generator=generator,
        prefetch_factor=_check.integer("prefetch_factor", prefetch_factor, 1),
        in_order=_check.flag("in_order", in_order),
        worker_init_concurrency=worker_init_concurrency,
    )


def _torch() -> Any:
    from importlib import import_module

    try:
        import_module("torch.utils.data")
        return import_module("torch")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "get_pytorch_dataloader needs PyTorch: pip install torch", name=error.name
        ) from error


def _samplers(
    dataset: Any,
    batch_size: int | None,
    shuffle: bool,
    sampler: Iterable[Any] | None,
    batch_sampler: Iterable[Any] | None,
    drop_last: bool,
    generator: Any,
) -> tuple[Any, Any, int | None]:
    """(sampler, batch_sampler, batch_size), as torch chooses them.  `is None`: a sampler may be empty."""
    data = _torch().utils.data
    if sampler is not None and shuffle:
        raise ValueError("sampler and shuffle exclude each other")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        batch_size = None
    elif batch_size is None and drop_last:
        raise ValueError("drop_last is for batches: batch_size=None makes none")
    if sampler is None:
        if shuffle:
            sampler = data.RandomSampler(dataset, generator=generator)
        else:
            sampler = data.SequentialSampler(dataset)
    if batch_size is not None:
        batch_size = _check.integer("batch_size", batch_size, 1)
        batch_sampler = data.BatchSampler(sampler, batch_size, drop_last)
    return sampler, batch_sampler, batch_size


class PyTorchDataLoader(Passes, Generic[T]):
    """What get_pytorch_dataloader() makes.  Every `for` is one pass, with workers of its own.

    Attributes are as those of torch.utils.data.DataLoader.
    Threads: an iterator belongs to one at a time; one that is dropped or closed ends its workers.
    """

    __module__ = "stoker.dataloader"

    def __init__(
        self,
        dataset: Any,
        *,
        batch_size: int | None,
        sampler: Any,
        batch_sampler: Any,
        num_workers: int,
        collate_fn: Callable[[Any], T],
        pin_memory: bool,
        drop_last: bool,
        timeout: float | None,
        multiprocessing_context: str | BaseContext | None,
        generator: Any,
        prefetch_factor: int,
        in_order: bool,
        worker_init_concurrency: int | None,
    ) -> None:
        from ._shared import SharedPickle

        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.timeout = timeout
        self.multiprocessing_context = _context(multiprocessing_context)
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.in_order = in_order
        self.worker_init_concurrency = worker_init_concurrency
        try:
            self._shared = SharedPickle(dataset)
        except Exception as error:
            error.add_note("The data set of a PyTorchDataLoader goes to worker processes: it must pickle.")
            raise

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[T]:
        from ._workers import Workers

        seed, jobs = self._jobs()
        workers = Workers(
            self.num_workers,
            self.multiprocessing_context,
            self.worker_init_concurrency,
            (self._shared, self.collate_fn, self.batch_sampler is not None, seed),
        )
        try:
            pipeline = self._pipeline(_numbered(seed, jobs, workers), workers)
            yield from self._read(pipeline, self.timeout, workers.close)
        finally:
            workers.close(False)  # where there is no pipeline
        workers.raise_failure()

    def _jobs(self) -> tuple[int, Iterator[Any]]:
        """A seed, and what to fetch.  Both draw in the order of torch's loader, on the thread of the reader."""
        torch = _torch()
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self.generator).item())
        indices = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        first = list(islice(indices, 1))
        return seed, chain(first, indices)

    def _pipeline(self, jobs: Iterator[Job], workers: Workers) -> Pipeline:
        from ..pipeline import PipelineBuilder
        from ._workers import fetch

        ahead = min(self.num_workers * self.prefetch_factor, _MAX_AHEAD)
        order: Any = "input" if self.in_order else "completion"
        builder: PipelineBuilder[Any] = PipelineBuilder().add_source(jobs)
        builder.pipe(fetch, executor=workers, name="fetch", concurrency=ahead, output_order=order)
        if self.pin_memory and _can_pin():
            from torch.utils.data._utils.pin_memory import pin_memory

            builder.pipe(pin_memory, name="pin_memory", output_order=order)
        return builder.add_sink(self.prefetch_factor).build(num_threads=1)


def _context(given: str | BaseContext | None) -> BaseContext:
    import multiprocessing

    return multiprocessing.get_context(given) if given is None or isinstance(given, str) else given


def _can_pin() -> bool:
    if _torch().cuda.is_available():
        return True
    warnings.warn("pin_memory has no effect: there is no CUDA device", stacklevel=4)
    return False


def _numbered(seed: int, jobs: Iterator[Any], workers: Workers) -> Iterator[Job]:
    for number, indices in enumerate(jobs):
        if workers.failed:
            return
        yield (seed + number) % _SEEDS, indices
