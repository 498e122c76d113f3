"""Pipelines in a worker process: passes, random numbers, executors."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import region_ops
import remote
from stoker.pipeline import PipelineBuilder, PriorityThreadPoolExecutor, run_pipeline_in_subprocess
from stoker.pipeline.defs import Pipe, PipelineConfig, SinkConfig, SourceConfig
from support import until
from test_regions import region, workers
from test_subprocess import gone, pid_of

METHODS = ["spawn", "fork", "forkserver"]


def config(*pipes, source=None, continuous=False):
    return PipelineConfig(SourceConfig(source or remote.Stateful(), continuous), pipes, SinkConfig(3))


def run(made, method="forkserver", **kwargs):
    return run_pipeline_in_subprocess(made, num_threads=1, mp_context=method, **kwargs)


def run_plain(made, method="forkserver"):
    """For what is about executors, of which each op here fails the pipeline."""
    return run(made, method, initializer=remote.build_plain)


@pytest.fixture
def processes():
    pools = []

    def make(workers=2, method="forkserver", **kwargs):
        pools.append(ProcessPoolExecutor(workers, multiprocessing.get_context(method), **kwargs))
        return pools[-1]

    yield make
    for pool in pools:
        pool.shutdown()


@pytest.mark.parametrize("start", [partial(run, method="spawn"), run, partial(run_plain, method="fork")])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_each_pass_builds_it_anew(start):
    source = remote.Stateful()
    src = start(config(source=source))
    assert list(src) == [100, 101, 102, 103]
    assert list(src) == [200, 201, 202, 203]  # the state of the source goes on there
    assert source.passes == 0


def test_a_continuous_one_goes_on_where_it_was_left():
    src = run(config(Pipe(remote.who), source=range(6), continuous=True))
    reader = iter(src)
    seen = [next(reader)[0] for _ in range(2)]
    del reader
    seen += [item for item, *_ in src]
    assert seen == [0, 1, 2, 3, 4, 5]  # nothing that was made ahead is lost
    assert len({pid for _, pid, _ in src}) == 1


def test_random_state_is_copied():
    random.seed(5), np.random.seed(6)
    src = run(config(Pipe(remote.draw), source=range(2)))
    got = list(src)
    assert got == [remote.draw(0), remote.draw(1)]  # as it would have gone on here


def test_a_builder_is_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match="takes a config"):
        src = run(PipelineBuilder().add_source(range(3)).add_sink())
    assert list(src) == [0, 1, 2]


def test_failures_in_the_worker_end_it():
    src = run(config(Pipe(remote.fail)), max_failures=0)
    text = r"Failed to fetch the next item: pipeline stages failed \(1 sub-exception\)$"
    with pytest.raises(RuntimeError, match=text):
        list(src)
    with pytest.raises(RuntimeError, match="Cannot iterate again"):
        list(src)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pool_method", METHODS)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*forked while:RuntimeWarning")
def test_process_pools_have_workers_of_this_process(processes, method, pool_method):
    pool = processes(2, pool_method)
    src = run_plain(config(Pipe(remote.who, executor=pool), Pipe(remote.who, executor=pool)), method)
    seen = [(inner, outer) for ((_, inner, _), outer, _) in src]
    parents = {parent for _, _, parent in src}
    workers = {pid for pair in seen for pid in pair}
    assert len(workers) <= 2 and pid_of(src) not in workers
    if pool_method != "forkserver":
        assert parents == {os.getpid()}
    del src
    gc.collect()
    until(lambda: all(gone(pid) for pid in workers))


def test_pool_initializers_run(processes):
    pool = processes(1, initializer=remote.remember, initargs=("yes",))
    src = run_plain(config(Pipe(partial(os.getenv, "REMEMBERED"), executor=pool), source=["x"]))
    with pytest.raises(RuntimeError):  # getenv(key, default): the item is the default
        next(iter(run_plain(config(Pipe(remote.fail, executor=processes(1))))))
    assert list(src) == ["yes"]


def test_a_pool_worker_that_dies_breaks_the_executor(processes):
    src = run_plain(config(Pipe(remote.exit_at_2, executor=processes(1))))
    reader, seen = iter(src), []
    with pytest.raises(RuntimeError, match="A worker process of the executor ended") as info:
        for item in reader:
            seen.append(item)
    assert seen == [100, 101] and type(info.value.__cause__).__name__ == "BrokenProcessPool"


@pytest.mark.parametrize("op", [remote.lock_at_2, partial(remote.error_text, remote.lock_at_2)])
def test_a_result_that_cannot_be_pickled_fails_its_call(processes, op):
    src = run_plain(config(Pipe(op, executor=processes(1))))
    reader, seen = iter(src), []
    with pytest.raises(RuntimeError, match="cannot pickle"):
        for item in reader:
            seen.append(item)
    assert seen == [100, 101]


def test_errors_of_pool_workers_keep_their_traceback(processes):
    src = run_plain(config(Pipe(remote.fail, executor=processes(1))))
    with pytest.raises(RuntimeError, match="it is broken") as info:
        list(src)
    assert "in fail" in str(info.value.__cause__.__cause__)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_thread_pools_are_made_anew(method):
    with ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        src = run_plain(config(Pipe(remote.thread_name, executor=pool), Pipe(str, executor=pool)), method)
        assert set(src) == {"mine_0"}
        assert pool.submit(int).result() == 0  # and this one is as it was


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_priority_pools_are_made_anew(method):
    pool = PriorityThreadPoolExecutor(1, "first")
    first, second = pool.get_executor(), pool.get_executor()
    assert first.submit(int).result() == 0  # used: its thread is not there after a fork
    src = run_plain(config(Pipe(str, executor=first), Pipe(remote.thread_name, executor=second)), method)
    assert set(src) == {"first_0"}
    pool.shutdown()


def test_executors_that_were_used_are_refused(processes):
    pool = processes(1)
    assert pool.submit(int).result() == 0
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(int).result() == 0
        for executor in (pool, threads):
            with pytest.raises(ValueError, match="was used already"):
                run_plain(config(Pipe(str, executor=executor)))


def test_a_start_that_fails_ends_the_pool_workers(processes):
    before = set(multiprocessing.active_children())
    with pytest.raises(RuntimeError, match="Initializer failed"):
        run_pipeline_in_subprocess(
            config(Pipe(str, executor=processes(2))),
            num_threads=1,
            mp_context="forkserver",
            initializer=remote.fail,
        )
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_pool_workers_beside_threads_are_warned_of(processes):
    opened = threading.Event()
    thread = threading.Thread(target=opened.wait)
    thread.start()
    try:
        with pytest.warns(RuntimeWarning, match="forked while other threads run"):
            src = run_plain(config(Pipe(str, executor=processes(1, "fork"))))
        assert list(src)[0] == "100"
    finally:
        opened.set()
        thread.join()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("hoisted", [False, True])
def test_region_workers_forked_beside_threads_are_warned_of(hoisted):
    opened = threading.Event()
    thread = threading.Thread(target=opened.wait)
    thread.start()
    try:
        b = region(range(3), region_ops.double, target=workers(1, method="fork"))
        with pytest.warns(RuntimeWarning, match="of a region are forked while other threads run") as warned:
            if hoisted:
                src = run_pipeline_in_subprocess(b.get_config(), num_threads=1, mp_context="spawn")
            else:
                src = b.build(num_threads=1)
        assert [w.filename for w in warned if w.category is RuntimeWarning] == [__file__]
        assert sorted(src) == [0, 2, 4]
        del src
        gc.collect()
    finally:
        opened.set()
        thread.join()
