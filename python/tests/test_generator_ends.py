"""Generators that a run leaves unfinished are closed by the threads that ran them."""

from __future__ import annotations

import sys
import threading

import pytest

from lanes import chain, read
from stoker.pipeline.defs import Pipe
from support import until

HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()


class Ends:
    """A generator function that notes on which thread each of its generators ends."""

    def __init__(self) -> None:
        self.begun: list = []
        self.closed: list = []

    def __call__(self, x):
        self.begun.append(x)
        try:
            while True:
                yield x
        finally:
            self.closed.append((x, threading.current_thread().name))

    def check(self) -> None:
        assert sorted(x for x, _ in self.closed) == sorted(self.begun)
        assert all(name.startswith("stoker-worker") for _, name in self.closed), self.closed


@pytest.mark.parametrize("options", [{}, {"concurrency": 3}, {"retries": 1}])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_stop_closes_them_on_a_worker(options, threads):
    for _ in range(20):
        ends = Ends()
        pipeline = chain(Pipe(ends, **options), src=range(3), threads=threads)
        with pipeline.auto_stop():
            pipeline.get_item()
        ends.check()


def test_so_does_a_failure():
    def fails(x):
        raise ValueError

    ends = Ends()
    pipeline = chain(Pipe(ends), Pipe(fails, on_error="raise"))
    assert read(pipeline)[1] is not None
    pipeline.stop()
    ends.check()


def test_so_does_a_pipeline_that_is_dropped():
    ends = Ends()
    pipeline = chain(Pipe(ends))
    pipeline.get_item()
    del pipeline
    until(lambda: ends.closed)
    ends.check()


def test_one_that_runs_is_closed_by_its_own_thread():
    entered, release, closed = threading.Event(), threading.Event(), []

    def waits(x):
        try:
            yield x
            entered.set()
            release.wait()
            yield x
        finally:
            closed.append(threading.current_thread().name)

    pipeline = chain(Pipe(waits), src=range(1), threads=2)
    pipeline.get_item()
    assert entered.wait(60)
    with pytest.raises(TimeoutError):
        pipeline.stop(timeout=0.05)
    assert not closed
    release.set()
    pipeline.stop()
    assert len(closed) == 1 and closed[0].startswith("stoker-worker")


def test_what_a_generator_raises_then_is_logged(caplog):
    def each(x):
        try:
            while True:
                yield x
        finally:
            raise OSError("disk full")

    pipeline = chain(Pipe(each), src=range(1))
    with pipeline.auto_stop():
        pipeline.get_item()
    assert "disk full" in caplog.text and "each at " in caplog.text


def test_generators_that_have_ended_are_not_kept():
    import gc
    import weakref

    refs = []

    class Item:
        pass

    def make(x):
        item = Item()
        refs.append(weakref.ref(item))
        return item

    def each(item):
        yield 1

    pipeline = chain(Pipe(make), Pipe(each), src=range(1000))
    with pipeline.auto_stop():
        assert sum(pipeline) == 1000
        assert not any(ref() for ref in refs) or not HAS_LOCK  # their owner frees them, when it runs again
        gc.collect()
        generators = [o for o in gc.get_objects() if getattr(o, "__qualname__", "").endswith("kept.<locals>.each")]
        assert len(generators) < 20


def test_one_that_skips_for_ever_is_stopped():
    started = threading.Event()

    def nothing(x):
        while True:
            started.set()
            yield None

    pipeline = chain(Pipe(nothing), src=range(10))
    pipeline.start()
    assert started.wait(60)
    pipeline.stop(timeout=60)
