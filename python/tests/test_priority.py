"""Executors with priorities."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
import weakref
from concurrent.futures import BrokenExecutor, CancelledError, Executor, wait
from concurrent.futures.process import BrokenProcessPool

import pytest

from stoker import pipeline as sp
from support import ok, until

HERE: list[object] = []


class Gate:
    """Holds the only worker of a pool until it is opened."""

    def __init__(self, executor: Executor) -> None:
        self.opened = threading.Event()
        entered = threading.Event()

        def hold() -> None:
            entered.set()
            assert self.opened.wait(60)

        self.future = executor.submit(hold)
        assert entered.wait(60)


def test_a_higher_number_runs_first_and_equals_in_order():
    pool = sp.PriorityThreadPoolExecutor(max_workers=1)
    low, high = pool.get_executor(1), pool.get_executor(5)
    gate, seen = Gate(low), []
    calls = [low.submit(seen.append, f"low{i}") for i in range(3)]
    calls += [high.submit(seen.append, f"high{i}") for i in range(3)]
    gate.opened.set()
    wait(calls)
    assert seen == ["high0", "high1", "high2", "low0", "low1", "low2"]
    pool.shutdown()


def test_later_entry_points_are_higher_by_default():
    pool = sp.PriorityThreadPoolExecutor(max_workers=1)
    entries = [pool.get_executor() for _ in range(3)]
    named = pool.get_executor(10)
    last = pool.get_executor()
    gate, seen = Gate(named), []
    wait_for = [e.submit(seen.append, i) for i, e in enumerate([*entries, named, last])]
    gate.opened.set()
    wait(wait_for)
    assert seen == [4, 3, 2, 1, 0]
    pool.shutdown()


def test_results_errors_and_cancelling():
    pool = sp.PriorityThreadPoolExecutor(max_workers=1)
    entry = pool.get_executor()
    assert isinstance(entry, sp.PriorityExecutorEntrypoint) and isinstance(entry, Executor)
    assert entry.submit(pow, 2, exp=5).result() == 32
    assert list(entry.map(abs, [-1, -2])) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        entry.submit(divmod, 1, 0).result()
    gate = Gate(entry)
    waiting = entry.submit(pow, 1, 1)
    assert waiting.cancel() and not gate.future.cancel()
    gate.opened.set()
    with pytest.raises(CancelledError):
        waiting.result()
    assert entry.submit(pow, 3, 2).result() == 9
    pool.shutdown()


def test_thread_options_are_used():
    started = []
    pool = sp.PriorityThreadPoolExecutor(2, "named", started.append, ("x",))
    name = pool.get_executor().submit(lambda: threading.current_thread().name).result()
    assert name.startswith("named") and started == ["x"]
    pool.shutdown()


def test_shutdown_of_an_entry_point_does_nothing():
    with sp.PriorityThreadPoolExecutor(1) as pool:
        first, second = pool.get_executor(), pool.get_executor()
        first.shutdown()
        with second:
            pass
        assert first.submit(int, "3").result() == 3 and second.submit(int, "4").result() == 4


def test_shutdown_of_the_pool():
    pool = sp.PriorityThreadPoolExecutor(1)
    entry = pool.get_executor()
    gate = Gate(entry)
    waiting = [entry.submit(int, str(i)) for i in range(3)]
    threading.Thread(target=gate.opened.set).start()
    pool.shutdown()
    assert [f.result(0) for f in waiting] == [0, 1, 2]
    with pytest.raises(RuntimeError, match="after shutdown"):
        entry.submit(int)


def test_shutdown_that_cancels():
    pool = sp.PriorityThreadPoolExecutor(1)
    entry = pool.get_executor()
    gate = Gate(entry)
    waiting = [entry.submit(int, str(i)) for i in range(3)]
    pool.shutdown(wait=False, cancel_futures=True)
    assert all(f.cancelled() for f in waiting)
    gate.opened.set()
    assert gate.future.result(60) is None


def test_the_owner_goes_with_its_last_entry_point():
    before = threading.active_count()
    pool = sp.PriorityThreadPoolExecutor(2)
    alive = weakref.ref(pool)
    first, second = pool.get_executor(), pool.get_executor()
    del pool, first
    gc.collect()
    assert alive() is not None and second.submit(int, "7").result() == 7
    gate = Gate(second)
    later = [second.submit(int, str(i)) for i in range(5)]
    del second
    gc.collect()
    assert alive() is None
    gate.opened.set()
    assert [f.result(60) for f in later] == [0, 1, 2, 3, 4]  # what was submitted still runs
    until(lambda: threading.active_count() == before)


def test_many_calls_that_end_at_once_do_not_nest():
    pool = sp.PriorityThreadPoolExecutor(1)
    entry = pool.get_executor()
    gate = Gate(entry)
    calls = [entry.submit(int, "1") for _ in range(5000)]
    gate.opened.set()
    assert sum(f.result(60) for f in calls) == 5000
    pool.shutdown()


def test_pickling_keeps_the_owner_in_common():
    pool = sp.PriorityThreadPoolExecutor(1, "copied")
    copies = pickle.loads(pickle.dumps([pool.get_executor(0), pool.get_executor(1)]))
    gate, seen = Gate(copies[0]), []
    calls = [copies[0].submit(seen.append, "low"), copies[1].submit(seen.append, "high")]
    gate.opened.set()
    wait(calls)
    assert seen == ["high", "low"]
    copies[0].submit(HERE.append, None).result()
    early = pickle.dumps(pool)
    pool.shutdown()
    assert pickle.loads(early).get_executor().submit(int, "5").result() == 5
    with pytest.raises(RuntimeError, match="after shutdown"):
        pickle.loads(pickle.dumps(pool)).get_executor().submit(int)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes(method, tmp_path):
    import multiprocessing

    pool = sp.PriorityProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method))
    low, high = pool.get_executor(), pool.get_executor()
    assert low.submit(pow, 2, 10).result() == 1024
    with pytest.raises(ZeroDivisionError):
        high.submit(divmod, 1, 0).result()
    order = []
    os.mkfifo(tmp_path / "gate")
    calls = [low.submit((tmp_path / "gate").read_text)]
    calls += [low.submit(abs, -i) for i in range(3)] + [high.submit(abs, -9)]
    for i, call in enumerate(calls):
        call.add_done_callback(lambda _, i=i: order.append(i))
    (tmp_path / "gate").write_text("open")
    wait(calls)
    pool.shutdown()
    assert order == [0, 4, 1, 2, 3]


def test_a_dead_process_fails_every_call():
    import multiprocessing

    pool = sp.PriorityProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    entry = pool.get_executor()
    calls = [entry.submit(os._exit, 3)] + [entry.submit(int, "1") for _ in range(3)]
    for call in calls:
        with pytest.raises(BrokenProcessPool):
            call.result(60)
    pool.shutdown()


def test_interpreters():
    if sys.version_info < (3, 14):
        with pytest.raises(RuntimeError, match="requires Python 3.14"):
            sp.PriorityInterpreterPoolExecutor(1)
        return
    with sp.PriorityInterpreterPoolExecutor(1) as pool:
        assert pool.get_executor().submit(pow, 2, 5).result() == 32


def test_exit_with_calls_that_wait():
    out = ok(
        """
        from stoker.pipeline import PriorityThreadPoolExecutor
        entry = PriorityThreadPoolExecutor(1).get_executor()
        for i in range(3):
            entry.submit(print, i)
        """
    )
    assert out == "0\n1\n2\n"


def test_an_initializer_that_fails_fails_every_call():
    def broken() -> None:
        raise OSError("no")

    pool = sp.PriorityThreadPoolExecutor(1, initializer=broken)
    entry = pool.get_executor()
    for _ in range(3):
        with pytest.raises(BrokenExecutor):
            entry.submit(int).result(60)
    pool.shutdown()
