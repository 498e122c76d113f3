"""Iterables in another interpreter, where Python has them; the refusal elsewhere."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pytest

import remote
from stoker.pipeline import iterate_in_subinterpreter, run_pipeline_in_subinterpreter
from stoker.pipeline.defs import Pipe, PipelineConfig, SinkConfig, SourceConfig
from support import ok, until

try:
    from concurrent import interpreters  # type: ignore[attr-defined]
except ImportError:
    interpreters = None

there = pytest.mark.python(since=(3, 14))
again = pytest.raises(RuntimeError, match="Cannot iterate again")


def config(*pipes):
    return PipelineConfig(SourceConfig(remote.Stateful()), pipes, SinkConfig(3))


@pytest.mark.python(before=(3, 14))
def test_refused_before_3_14():
    with pytest.raises(RuntimeError, match="Python 3.14"):
        iterate_in_subinterpreter(remote.Count(3))
    with pytest.raises(RuntimeError, match="Python 3.14"):
        run_pipeline_in_subinterpreter(config(), num_threads=1)


@there
def test_every_pass_is_complete():
    src = iterate_in_subinterpreter(remote.Count(10, partial(remote.blob, size=100_000)))
    for _ in range(3):
        assert [item[0] for item in src] == list(range(10))
    for item in src:
        break
    assert len(list(src)) == 10


@there
def test_it_is_another_interpreter():
    os.environ.pop("REMEMBERED", None)
    src = iterate_in_subinterpreter(remote.Info())
    pid, modules = list(src)
    assert pid == os.getpid() and modules == [] and "numpy" in sys.modules


@there
@pytest.mark.parametrize("buffer_size", [1, 3])
def test_the_worker_is_never_further_ahead(buffer_size, tmp_path):
    path = tmp_path / "began"
    src = iterate_in_subinterpreter(remote.Noting(20, str(path)), buffer_size=buffer_size)
    reader = iter(src)
    for i in range(4):
        until(lambda: path.exists() and len(path.read_text().split()) == i + buffer_size)
        assert next(reader) == i


@there
def test_errors():
    with pytest.raises(RuntimeError, match="Initializer failed: it is broken"):
        iterate_in_subinterpreter(remote.Count(1), initializer=remote.fail)
    with pytest.raises(RuntimeError, match="Failed to create the iterable: it is broken"):
        iterate_in_subinterpreter(remote.fail)
    src = iterate_in_subinterpreter(remote.Count(5, remote.fail_at_2))
    seen = []
    with pytest.raises(RuntimeError, match="Failed to fetch the next item: it is broken"):
        for item in src:
            seen.append(item)
    assert seen == [0, 1]
    with again:
        iter(src)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        iterate_in_subinterpreter(lambda: [1])


@there
def test_a_time_out_asks_it_to_end(tmp_path):
    os.mkfifo(tmp_path / "gate")
    before = threading.active_count()
    src = iterate_in_subinterpreter(remote.Gated(5, str(tmp_path / "gate")), timeout=0.5)
    with pytest.raises(RuntimeError, match="did not produce any data for 0.5 seconds"):
        list(src)
    (tmp_path / "gate").write_bytes(b"x")
    until(lambda: threading.active_count() == before)
    assert len(interpreters.list_all()) == 1


@there
def test_dropping_it_leaves_nothing():
    gc.collect()
    before = os.listdir("/proc/self/fd"), threading.active_count(), len(interpreters.list_all())
    src = iterate_in_subinterpreter(remote.Count(100))
    reader = iter(src)
    assert next(reader) == 0
    del src, reader
    gc.collect()
    after = os.listdir("/proc/self/fd"), threading.active_count(), len(interpreters.list_all())
    assert after == before


@there
def test_a_live_iterable_does_not_hold_the_interpreter():
    ok(
        f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import remote
        from stoker.pipeline import iterate_in_subinterpreter
        src = iterate_in_subinterpreter(remote.Count(1000))
        reader = iter(src)
        next(reader)
        """
    )


@there
def test_pipelines():
    with ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        src = run_pipeline_in_subinterpreter(
            config(Pipe(remote.thread_name, executor=pool)), num_threads=1, initializer=remote.build_plain
        )
        assert set(src) == {"mine_0"}
    with ProcessPoolExecutor(1) as processes, pytest.raises(ValueError, match="another interpreter"):
        run_pipeline_in_subinterpreter(config(Pipe(str, executor=processes)), num_threads=1)
