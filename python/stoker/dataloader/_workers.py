"""Worker processes that fetch samples of a data set: their side, and the pool of one pass."""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import threading
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from multiprocessing.context import BaseContext
    from typing import Any

    from ._shared import SharedPickle

    Job = tuple[int, Any]  # the seed, and an index or a list of them

__all__ = ["Workers"]


class WorkerFailed(RuntimeError):
    """A worker that cannot work: nothing that it is asked for can succeed."""


# --- in the worker ---

_fetch: Callable[[Any], Any]  # what begin() made
_failed: str | None = None


def begin(
    dataset: SharedPickle,
    collate: Callable[[Any], Any],
    batched: bool,
    seed: int,
    count: int,
    numbers: Any,
    gate: AbstractContextManager[Any] | None,
) -> None:
    """Runs first in each worker.  `numbers` gives each of the `count` one of its own, `gate` lets so many
    through at once."""
    global _failed, _fetch
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    _end_with_parent()
    import_module("torch").set_num_threads(1)  # there are as many workers as somebody wants threads
    try:
        with gate or nullcontext():
            loaded = dataset.load()
            _tell_torch(numbers.get(), count, seed, loaded)
            _fetch = fetcher(loaded, collate, batched)
    except Exception as error:
        _failed = f"{type(error).__name__}: {error}"


def _tell_torch(number: int, count: int, seed: int, dataset: Any) -> None:
    """What torch.utils.data.get_worker_info() gives here."""
    worker: Any = import_module("torch.utils.data._utils.worker")
    worker._worker_info = worker.WorkerInfo(
        id=number, num_workers=count, seed=(seed + number) % 2**63, dataset=dataset
    )


def _end_with_parent() -> None:
    """The pool's pipes are held open by the other workers, so they do not say that the parent is gone."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    try:
        watch = os.pidfd_open(parent.pid)
    except ProcessLookupError:
        os._exit(1)
    except OSError:  # Linux before 5.3
        return
    threading.Thread(target=_exit_after, args=(watch,), name="stoker parent", daemon=True).start()


def _exit_after(watch: int) -> None:
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    poll.poll()
    os._exit(1)


def fetcher(dataset: Any, collate: Callable[[Any], Any], batched: bool) -> Callable[[Any], Any]:
    """What makes a batch of a list of indices, or a sample of an index."""
    if not batched:
        return lambda index: collate(dataset[index])
    several = getattr(dataset, "__getitems__", None)
    if several is not None:
        return lambda indices: collate(several(indices))
    return lambda indices: collate([dataset[index] for index in indices])


def ready() -> None:
    """Makes the pool start a worker."""


def fetch(job: Job) -> Any:
    if _failed is not None:
        raise WorkerFailed(f"The data set could not be unpickled in a worker process: {_failed}")
    seed, indices = job
    _seed(seed)
    return _fetch(indices)


def _seed(seed: int) -> None:
    """What a sample draws depends on its batch, not on the worker that happens to make it."""
    random.seed(seed)
    sys.modules["torch"].default_generator.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32])


# --- in the parent ---


class Workers(Executor):
    """The processes of one pass, as the executor of its stage: runs fetch, whatever it is given.

    Threads: any may submit; one closes.
    """

    def __init__(
        self,
        count: int,
        context: BaseContext,
        at_once: int | None,
        arguments: tuple[SharedPickle, Callable[[Any], Any], bool, int],
    ) -> None:
        """Starts them.  `at_once`: how many may unpickle at a time; `arguments`: the first of begin()."""
        gate = None if at_once is None else context.BoundedSemaphore(at_once)
        numbers: Any = context.SimpleQueue()
        for number in range(count):
            numbers.put(number)
        self._pool = ProcessPoolExecutor(count, context, begin, (*arguments, count, numbers, gate))
        self._closing = False
        self._error: Exception | None = None
        for _ in range(count):  # before the threads of the pipeline, which a fork would copy half
            self._pool.submit(ready)
        self._processes = list((self._pool._processes or {}).values())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A batch; None once the workers have ended, or cannot work."""
        given: Future[Any] = Future()
        given.set_running_or_notify_cancel()  # a batch that nobody waits for is made all the same
        try:
            self._pool.submit(fetch, *args).add_done_callback(partial(self._give, given))
        except RuntimeError as error:  # broken, or closed
            self._note(error)
            given.set_result(None)
        return given

    def _give(self, given: Future[Any], made: Future[Any]) -> None:
        try:
            given.set_result(made.result())
        except (BrokenExecutor, CancelledError, WorkerFailed) as error:
            self._note(error)
            given.set_result(None)
        except BaseException as error:
            given.set_exception(error)

    def _note(self, error: Exception) -> None:
        if not self._closing and self._error is None:
            self._error = error

    @property
    def failed(self) -> bool:
        return self._error is not None

    def close(self, finished: bool) -> None:
        """Ends them; at once unless everything was fetched."""
        self._closing = True
        if not finished:
            for process in self._processes:
                process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def raise_failure(self) -> None:
        """RuntimeError: they could not go on.  After close()."""
        if isinstance(self._error, WorkerFailed):
            raise self._error
        if self._error is not None:
            text = f"A worker process exited unexpectedly. {self._how_it_ended()}"
            raise RuntimeError(text.rstrip()) from self._error

    def _how_it_ended(self) -> str:
        """The pool ends the others with SIGTERM when one has died."""
        codes = [process.exitcode for process in self._processes]
        for code in sorted((code for code in codes if code), key=lambda code: code == -signal.SIGTERM):
            if code > 0:
                return f"Its exit code is {code}."
            return f"It was killed by signal {-code} ({signal.Signals(-code).name})."
        return ""
