"""Python stages, for tests of how they run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from stoker.pipeline import Pipeline, build_pipeline
from stoker.pipeline.defs import PipelineConfig, SinkConfig, SourceConfig
from support import WATCHDOG_S


def config(*stages, src: Iterable = range(10), continuous=False, sink=3) -> PipelineConfig:
    return PipelineConfig(SourceConfig(src, continuous), stages, SinkConfig(sink))


def chain(*stages, src: Iterable = range(10), continuous=False, sink=3, threads=4, **options) -> Pipeline:
    return build_pipeline(
        config(*stages, src=src, continuous=continuous, sink=sink), num_threads=threads, **options
    )


def read(pipeline) -> tuple[list, BaseException | None]:
    """The items, and what the read ended with."""
    items = []
    try:
        for item in pipeline:
            items.append(item)
    except Exception as error:
        return items, error
    return items, None


def same(x):
    return x


class Gate:
    """An op whose items wait until the test lets them go."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.entered: list = []
        self.most = 0  # at once
        self._inside = 0
        self._open: set = set()
        self._all = False

    def __call__(self, item):
        with self.changed:
            self.entered.append(item)
            self._inside += 1
            self.most = max(self.most, self._inside)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self._all or item in self._open, WATCHDOG_S)
            self._inside -= 1
        return item

    def let(self, *items) -> None:
        with self.changed:
            self._open.update(items)
            self.changed.notify_all()

    def open(self) -> None:
        with self.changed:
            self._all = True
            self.changed.notify_all()

    def until_inside(self, n: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self._inside >= n, WATCHDOG_S), self._inside


class Watched:
    """Gives what it is made of; knows what was taken, by whom, and who closed it."""

    def __init__(self, items: Iterable, error: BaseException | None = None) -> None:
        self._items = iter(items)
        self._error = error
        self.taken = 0
        self.threads: set[threading.Thread] = set()
        self.closed: list[threading.Thread] = []

    def __iter__(self) -> Iterator:
        self.threads.add(threading.current_thread())
        return self

    def __next__(self):
        self.threads.add(threading.current_thread())
        assert not self.closed
        try:
            item = next(self._items)
        except StopIteration:
            if self._error is not None:
                raise self._error from None
            raise
        self.taken += 1
        return item

    def close(self) -> None:
        self.closed.append(threading.current_thread())
