"""Iterables and pipelines in a worker process."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import remote
from stoker.pipeline import _subprocess, iterate_in_subprocess
from support import ok, script, until

METHOD = "forkserver"
run = partial(iterate_in_subprocess, mp_context=METHOD)
again = pytest.raises(RuntimeError, match="^The worker process is shutdown. Cannot iterate again.$")


def pid_of(src) -> int:
    return src._session._worker._process.pid


@pytest.fixture
def hurried(monkeypatch):
    """Workers that do not end by themselves are made to soon."""
    monkeypatch.setattr(_subprocess, "_GRACE_S", 0.5)


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"  # its parent has not looked yet
    except OSError:
        return True


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_every_pass_is_complete(method):
    src = iterate_in_subprocess(remote.Count(10), mp_context=method)
    for _ in range(3):
        assert list(src) == list(range(10))
    context = multiprocessing.get_context(method)
    assert list(iterate_in_subprocess(remote.Count(3), mp_context=context)) == [0, 1, 2]


def test_it_is_another_process():
    src = run(remote.Info())
    first, second = list(src), list(src)
    assert first == second and first[0] not in (os.getpid(), os.getppid())


def test_large_items_without_an_arena():
    make = partial(remote.blob, size=3_000_000)
    for buffer_size in (1, 3, -1):
        src = run(remote.Count(5, make), buffer_size=buffer_size)
        for i, item in enumerate(src):
            assert item == make(i)


@pytest.mark.parametrize("buffer_size", [1, 2, 3])
def test_the_worker_is_never_further_ahead(buffer_size, tmp_path):
    path = tmp_path / "began"
    began = lambda: path.read_text().split() if path.exists() else []  # noqa: E731
    src = run(remote.Noting(20, str(path)), buffer_size=buffer_size)
    assert began() == []  # not before somebody iterates
    reader = iter(src)
    for i in range(5):
        until(lambda: len(began()) == i + buffer_size)
        assert next(reader) == i
    until(lambda: len(began()) == 5 + buffer_size)


def test_without_a_limit_it_runs_to_the_end(tmp_path):
    path = tmp_path / "began"
    src = run(remote.Noting(2000, str(path)), buffer_size=-1)
    reader = iter(src)
    until(lambda: path.exists() and path.read_text().endswith("closed\n"))
    assert list(reader) == list(range(2000))


@pytest.mark.parametrize("buffer_size", [0, -2])
def test_sizes_are_checked(buffer_size):
    with pytest.raises(ValueError, match="buffer_size"):
        run(remote.Count(1), buffer_size=buffer_size)


def test_break_closes_the_iterator_there(tmp_path):
    path = tmp_path / "began"
    src = run(remote.Noting(100, str(path)))
    for i in src:
        if i == 3:
            break
    until(lambda: path.read_text().endswith("closed\n"))
    assert list(src) == list(range(100))


def test_iterators_that_were_left():
    src = run(remote.Count(10))
    first = iter(src)
    assert next(first) == 0
    second = iter(src)
    with pytest.raises(RuntimeError, match="has begun another iteration"):
        next(first)
    del first
    assert list(second) == list(range(10))
    with pytest.raises(StopIteration):
        next(second)


def test_the_iterator_keeps_the_worker():
    assert [i for i in run(remote.Count(5))] == [0, 1, 2, 3, 4]


def test_a_generator_function_is_empty_later(caplog):
    src = run(remote.generator)
    assert list(src) == [0, 1, 2] and not caplog.records
    assert list(src) == []
    assert "its own iterator and is exhausted" in caplog.text


def test_initializers_run_in_order_before_fn():
    steps = [partial(remote.remember, text) for text in "abc"]
    assert list(run(remote.Remembered, initializer=steps)) == ["abc"]
    assert list(run(remote.Remembered, initializer=steps[0])) == ["a"]


# --- errors ---


def test_an_initializer_that_fails():
    with pytest.raises(RuntimeError, match="Initializer failed: it is broken") as info:
        run(remote.Count(1), initializer=[remote.fail])
    assert isinstance(info.value.__cause__, ValueError)
    assert "remote.py" in str(info.value.__cause__.__cause__)  # its traceback


def test_fn_that_fails():
    with pytest.raises(RuntimeError, match="Failed to create the iterable: it is broken"):
        run(remote.fail)


@pytest.mark.parametrize("make", [remote.fail_at_2, remote.unpicklable])
def test_an_item_that_fails(make):
    src = run(remote.Count(5, make), buffer_size=5)
    reader, seen = iter(src), []
    with pytest.raises(RuntimeError, match="Failed to fetch the next item: "):
        for item in reader:
            seen.append(item)
    assert seen == [0, 1]
    assert list(reader) == []  # a live iterator of what is closed ends
    with again:
        iter(src)


@pytest.mark.parametrize(
    ("make", "how"), [(remote.die, "Its exit code is 3."), (remote.killed, r"killed by signal 9 \(SIGKILL\).")]
)
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_worker_that_dies(make, how, method):
    src = iterate_in_subprocess(remote.Count(5, make), mp_context=method)
    seen = []
    with pytest.raises(RuntimeError, match=r"^The worker subprocess exited unexpectedly\. .*" + how):
        for item in src:
            seen.append(item)
    assert seen == [0, 1]
    with again:
        iter(src)


def test_death_is_noticed_although_a_child_keeps_the_pipes():
    src = iter(run(remote.Orphaning(1), buffer_size=-1))
    child = next(src)
    with pytest.raises(RuntimeError, match="exited unexpectedly. .*SIGKILL"):
        next(src)
    assert not gone(child)
    os.kill(child, signal.SIGKILL)


def test_a_worker_that_dies_while_nobody_reads():
    src = run(remote.Count(3))
    assert list(src) == [0, 1, 2]
    pid = pid_of(src)
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(src)


def test_time_outs(tmp_path, hurried):
    os.mkfifo(tmp_path / "gate")
    src = run(remote.Gated(5, str(tmp_path / "gate")), timeout=3)
    seen = []
    with pytest.raises(RuntimeError, match="did not produce any data for 3 seconds"):
        for item in src:
            seen.append(item)
    assert seen == [0, 1]
    with again:
        iter(src)


def test_a_late_start(tmp_path, hurried):
    os.mkfifo(tmp_path / "gate")
    with pytest.raises(RuntimeError, match="did not initialize after 0.01 seconds"):
        run(remote.Count(1), initializer=Path(tmp_path / "gate").read_bytes, timeout=0.01)


def test_what_cannot_be_started_leaves_nothing():
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        iterate_in_subprocess(lambda: [1], mp_context="spawn")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # multiprocessing's resource tracker


# --- the end ---


def test_dropping_it_ends_the_worker_and_leaves_nothing():
    list(run(remote.Count(1)))  # starts the fork server
    gc.collect()
    before = os.listdir("/proc/self/fd"), threading.active_count()
    src = run(remote.Count(1000))
    reader = iter(src)
    assert next(reader) == 0
    pid = pid_of(src)
    del src, reader
    gc.collect()
    assert gone(pid)
    assert (os.listdir("/proc/self/fd"), threading.active_count()) == before


def test_many_times():
    for i in range(20):
        src = run(remote.Count(50))
        for item in src:
            if item == i:
                break


@pytest.mark.parametrize("how", ["idle", "in the middle", "blocked", "reading thread"])
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_live_iterable_does_not_hold_the_interpreter(how, method, tmp_path):
    os.mkfifo(tmp_path / "gate")
    endings = {
        "idle": "",
        "in the middle": "reader = iter(src); next(reader)",
        "blocked": "reader = iter(src); next(reader); next(reader)",
        "reading thread": "got = threading.Event();"
        " threading.Thread(target=lambda: [got.set() for _ in src], daemon=True).start(); got.wait()",
    }
    ok(
        f"""
        import sys, threading
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import remote
        from stoker.pipeline import _subprocess, iterate_in_subprocess
        _subprocess._GRACE_S = 0.5
        if __name__ == "__main__":
            src = iterate_in_subprocess(remote.Gated(5, {str(tmp_path / "gate")!r}), mp_context={method!r})
            {endings[how]}
        """
    )


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_kill_of_the_parent_ends_the_workers(method):
    done = script(
        f"""
        import os, signal, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import remote
        from stoker.pipeline import iterate_in_subprocess
        if __name__ == "__main__":
            kept = [iterate_in_subprocess(remote.Count(9), mp_context={method!r}) for _ in range(3)]
            readers = [iter(src) for src in kept[1:]]
            next(readers[0])
            print(*[src._session._worker._process.pid for src in kept], flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    pids = [int(text) for text in done.stdout.split()]
    assert len(pids) == 3 and done.returncode == -signal.SIGKILL
    until(lambda: all(gone(pid) for pid in pids))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_disturb():
    src = run(remote.Count(5))
    reader = iter(src)
    assert next(reader) == 0
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            try:
                iter(src)
            except RuntimeError:
                code = 0 if list(reader) == [] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert list(reader) == [1, 2, 3, 4] and list(src) == [0, 1, 2, 3, 4]


def test_readers_in_many_threads_share_the_items():
    src = run(remote.Count(500))
    reader = iter(src)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: list(reader), range(4)))
    assert sorted(sum(parts, [])) == list(range(500))


def test_a_waiting_reader_uses_no_processor(tmp_path):
    import time

    os.mkfifo(tmp_path / "gate")
    reader = iter(run(remote.Gated(4, str(tmp_path / "gate"))))
    assert next(reader) == 0 and next(reader) == 1
    timer = threading.Timer(0.5, (tmp_path / "gate").write_bytes, (b"x",))
    timer.start()
    before = time.thread_time()
    assert next(reader) == 2
    assert time.thread_time() - before < 0.1
    timer.join()


def test_random_numbers_of_this_process_are_left_alone():
    random.seed(3)
    state = random.getstate()
    list(run(remote.Count(3)))
    assert random.getstate() == state
