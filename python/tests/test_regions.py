"""Regions: stages between `.to(...)` marks, in worker processes."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

import region_ops as ops
from stoker.pipeline import PipelineBuilder, PipelineFailure, build_pipeline, run_pipeline_in_subprocess
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    Merge,
    Pipe,
    PipelineConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
    SinkConfig,
    SourceConfig,
)
from support import ok, script, until
from test_subprocess import gone

METHOD = "forkserver"
FAILED = "Fused subprocess pipeline failed: "


def workers(n=2, initializer=None, *initargs, method=METHOD):
    return ProcessPoolExecutorConfig(n, initializer, initargs, method)


def region(src, *stages, n=2, sizes=(1, 1), target=None, continuous=False, sink=3):
    """A builder with one region.  Stages are ops, numbers to aggregate, or arguments of pipe()."""
    b = PipelineBuilder().add_source(src, continuous=continuous)
    b.to(target or workers(n), buffer_size=sizes[0])
    for stage in stages:
        if isinstance(stage, dict):
            options = dict(stage)
            b.pipe(options.pop("op"), **options)
        elif isinstance(stage, int):
            b.aggregate(stage)
        else:
            b.pipe(stage)
    return b.to(MAIN_PROCESS, buffer_size=sizes[1]).add_sink(sink)


def run(builder, num_threads=1, **options):
    pipeline = builder.build(num_threads=num_threads, **options)
    with pipeline.auto_stop():
        return list(pipeline)


def failure(builder, **options) -> Exception:
    """What the only exception of the failed pipeline is."""
    pipeline = builder.build(num_threads=1, **options)
    with pytest.raises(PipelineFailure) as info:
        with pipeline.auto_stop():
            list(pipeline)
    (error,) = info.value.exceptions
    return error


def pids_of(pipeline) -> list[int]:
    (stage,) = pipeline._groups[-1].loop._regions if pipeline._groups[-1].loop else []
    return [link.worker._process.pid for link in stage.region.links]


def children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


# --- what comes out ---


@pytest.mark.parametrize("sizes", [(1, 1), (4, 2), (3, 100), (100, 3)])
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*forked while:RuntimeWarning")
def test_every_item_goes_through_a_worker_once(method, sizes):
    out = run(region(range(23), ops.double, ops.mark, target=workers(method=method), sizes=sizes))
    assert sorted(x for x, _ in out) == list(range(0, 46, 2))
    pids = {pid for _, pid in out}
    assert os.getpid() not in pids and len(pids) == (1 if sizes[0] == 100 else 2)


def test_one_worker_keeps_the_order():
    assert run(region(range(50), ops.double, n=1, sizes=(3, 4))) == list(range(0, 100, 2))


@pytest.mark.parametrize("size", [1, 3])
def test_whole_transfers_go_round_robin(size):
    pid_of = dict(run(region(range(24), ops.mark, n=3, sizes=(size, 1))))
    turns = [pid_of[i] for i in range(0, 24, size)]
    assert len(set(turns[:3])) == 3
    assert all(pid_of[i] == turns[i // size] for i in range(24))
    assert turns[3:] == turns[:-3]


def test_few_items_and_a_large_transfer_leave_workers_idle():
    out = run(region(range(5), ops.mark, n=2, sizes=(8, 1)))
    assert len({pid for _, pid in out}) == 1 and len(out) == 5


def test_all_kinds_of_ops():
    async_and_none = region(range(6), ops.later, ops.even_only, ops.twice, ops.thrice)
    assert sorted(run(async_and_none)) == sorted([100, 102, 104] * 6)
    assert sorted(run(region(range(3), [7, 8, 9]))) == [7, 8, 9]


@pytest.mark.parametrize("router", [ops.odd, ops.odd_later])
def test_variants(router):
    b = PipelineBuilder().add_source(range(10)).to(workers())
    b.path_variants(router, [[Pipe(ops.double)], [Pipe(ops.later), Aggregate(2)]])
    out = run(b.to(MAIN_PROCESS).add_sink())
    assert sorted(x for x in out if isinstance(x, int)) == [0, 4, 8, 12, 16]
    assert sorted(sum((x for x in out if not isinstance(x, int)), [])) == [101, 103, 105, 107, 109]


def test_aggregates_are_flushed_in_each_worker():
    out = run(region(range(10), 3, ops.mark, n=2))
    assert sorted(sum((part for part, _ in out), [])) == list(range(10))
    assert sorted(len(part) for part, _ in out) == [2, 2, 3, 3]


def test_adjacent_regions():
    b = PipelineBuilder().add_source(range(12)).pipe(ops.double)
    b.to(workers(2), buffer_size=2).pipe(ops.mark).to(workers(1), buffer_size=3).pipe(ops.mark)
    out = run(b.to(MAIN_PROCESS, buffer_size=5).pipe(ops.mark).add_sink())
    assert sorted(x for ((x, _), _), _ in out) == list(range(0, 24, 2))
    first, second, here = ({get(item) for item in out} for get in (
        lambda item: item[0][0][1], lambda item: item[0][1], lambda item: item[1]))
    assert (len(first), len(second), here) == (2, 1, {os.getpid()}) and not first & second


def test_a_region_that_is_not_closed_runs_to_the_end():
    marks = PlacementConfig(MAIN_PROCESS), PlacementConfig(workers(), buffer_size=2)
    config = PipelineConfig(SourceConfig(range(6)), (*marks, Pipe(ops.double)), SinkConfig(2))
    with build_pipeline(config, num_threads=1).auto_stop() as _:
        pass
    pipeline = build_pipeline(config, num_threads=1)
    with pipeline.auto_stop():
        assert sorted(pipeline) == [0, 2, 4, 6, 8, 10]


def test_regions_of_pipelines_that_are_merged():
    upstream = [
        PipelineConfig(SourceConfig(range(i, i + 5)), (PlacementConfig(workers(1)), Pipe(ops.mark)), SinkConfig(1))
        for i in (0, 10)
    ]
    pipeline = build_pipeline(PipelineConfig(Merge(upstream), (), SinkConfig(3)), num_threads=1)
    with pipeline.auto_stop():
        out = list(pipeline)
    assert sorted(x for x, _ in out) == [*range(5), *range(10, 15)]
    assert len({pid for _, pid in out}) == 2
    bad = PipelineConfig(SourceConfig([1]), (PlacementConfig(workers(1)),), SinkConfig(1))
    with pytest.raises(ValueError, match="has no stages"):
        build_pipeline(PipelineConfig(Merge([bad]), (), SinkConfig(3)), num_threads=1)


def test_large_arrays_can_be_written_to():
    b = region(range(20), ops.arrays, sizes=(2, 3)).get_config()
    pipes = (*b.pipes, PlacementConfig(workers(1)), Pipe(ops.total), PlacementConfig(MAIN_PROCESS))
    pipeline = build_pipeline(PipelineConfig(b.src, pipes, b.sink), num_threads=1)
    with pipeline.auto_stop():
        assert sorted(pipeline) == [(120_000.0 * i, True) for i in range(20)]


def test_an_empty_source():
    assert run(region([], ops.double, 3)) == []


# --- epochs ---


@pytest.mark.parametrize("sizes", [(1, 1), (4, 3)])
def test_epochs_are_barriers(sizes):
    pipeline = region(range(7), ops.double, 3, sizes=sizes, continuous=True).build(num_threads=1)
    with pipeline.auto_stop():
        for _ in range(4):
            assert sorted(sum(pipeline, [])) == [0, 2, 4, 6, 8, 10, 12]


def test_an_epoch_that_was_left_goes_on():
    pipeline = region(range(9), ops.double, n=1, continuous=True).build(num_threads=1)
    with pipeline.auto_stop():
        for x in pipeline:
            if x == 6:
                break
        assert list(pipeline) == [8, 10, 12, 14, 16]
        assert list(pipeline) == list(range(0, 18, 2))


# --- what reaches a region ---


def test_the_name_says_the_sizes():
    pipeline = region([], ops.double, ops.mark, sizes=(4, 2)).build(num_threads=1)
    assert [info.stage_name for info in pipeline._infos][1] == "double+mark[buffer_size in=4 out=2]"
    assert pipeline._infos[1].concurrency == 2
    plain = region([], ops.double).build(num_threads=1)
    assert plain._infos[1].stage_name == "double"


def test_threads_of_a_worker_are_the_sum_of_concurrencies(tmp_path):
    b = PipelineBuilder().add_source(range(5)).to(workers(1))
    b.pipe(ops.later, concurrency=64)
    b.path_variants(ops.odd, [[Pipe(partial(ops.meet, n=5, folder=str(tmp_path)), concurrency=3)],
                              [Pipe(partial(ops.meet, n=5, folder=str(tmp_path)), concurrency=2)]])
    assert len(run(b.to(MAIN_PROCESS).add_sink())) == 5
    config = b.get_config()
    from stoker.pipeline._placement import gather
    from stoker.pipeline._regions import _setup

    (stage,) = gather(config.pipes)
    setup = _setup(stage, (), False, {"max_failures": 5, "report_stats_interval": 7})
    assert setup.build == {"num_threads": 1 + 3 + 2 + 1, "max_failures": -1, "report_stats_interval": 7}
    assert _setup(stage, (), False, {"max_failures": 0, "report_stats_interval": -1}).build["max_failures"] == 0


def test_executors_are_stripped():
    with ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        names = run(region(range(3), {"op": ops.thread_name, "executor": pool}))
    assert len(names) == 3 and not any("mine" in name for name in names)


def test_failures_are_dropped_and_counted(caplog):
    pipeline = region(range(10), ops.fail_odd).build(num_threads=1, max_failures=2)
    with pipeline.auto_stop():
        assert sorted(pipeline) == [0, 2, 4, 6, 8]
        stats = pipeline.stats()
    assert stats["stages"][1]["failed"] == 5
    assert "is odd" in str(pipeline.failures()[0].__cause__)


def test_max_failures_of_a_stage_counts():
    error = failure(region(range(10), {"op": ops.fail_odd, "max_failures": 1}, n=1))
    assert type(error) is RuntimeError and str(error).startswith(FAILED)
    assert "failed 2 times, which exceeds the threshold (1)" in str(error)


def test_no_failure_allowed_by_build():
    error = failure(region(range(10), ops.fail_at_3), max_failures=0)
    assert str(error).startswith(FAILED) and "which exceeds the threshold (0)" in str(error)
    assert "region_ops.py" in str(error.__cause__.__cause__)  # the traceback there


def test_errors_that_do_not_pickle():
    error = failure(region(range(3), {"op": ops.fail_picky, "on_error": "raise"}))
    assert str(error).startswith(f"{FAILED}pipeline stages failed: Picky: ")
    assert "region_ops.py" in str(error.__cause__)


def test_hooks_do_not_reach_it():
    pipeline = region(range(4), ops.double).build(num_threads=1, task_hook_factory=ops.fail_hook)
    with pipeline.auto_stop():
        assert sorted(pipeline) == [0, 2, 4, 6]


def test_initializers_run_before_the_pipeline_is_built():
    out = run(region(range(3), ops.remembered, target=workers(1, ops.remember, "a", 7)))
    assert out == [["a", 7]] * 3
    hooked = region([1, 2], ops.remembered, n=1, target=workers(1, ops.use_hooks))
    assert run(hooked) == [[1], [1, 2]]


def test_an_initializer_that_fails():
    error = failure(region(range(3), ops.double, target=workers(2, ops.broken)))
    assert str(error) == f"{FAILED}Initializer failed: ValueError: it is broken"
    assert isinstance(error.__cause__, ValueError)


def test_workers_are_daemons():
    assert set(run(region(range(4), ops.is_daemon))) == {True}


def test_a_source_is_not_far_ahead():
    taken = []

    def source():
        for i in range(1000):
            taken.append(i)
            yield i

    pipeline = region(source(), ops.double, n=2, sizes=(2, 2), sink=1).build(num_threads=1)
    with pipeline.auto_stop():
        pipeline.get_item()
        size = -1
        while size != len(taken):  # until nothing moves any more
            size = len(taken)
            threading.Event().wait(0.5)
    assert size < 100


# --- what goes wrong ---


@pytest.mark.parametrize("sizes", [(1, 1), (4, 2)])
def test_what_does_not_pickle(sizes):
    error = failure(region([0, 1, threading.Lock(), 3], ops.double, sizes=sizes))
    assert str(error).startswith("Fused subprocess input could not be serialized: TypeError: cannot pickle")
    error = failure(region(range(8), ops.lock_at_3, sizes=sizes))
    assert str(error).startswith("Fused subprocess output could not be serialized: TypeError: cannot pickle")


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.parametrize(
    ("op", "how"), [(ops.killed_at_3, "It was killed by signal 9 (SIGKILL)."), (ops.exit_at_3, "Its exit code is 5.")]
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*forked while:RuntimeWarning")
def test_a_worker_that_dies(method, op, how):
    error = failure(region(range(100), op, target=workers(method=method)))
    assert type(error) is RuntimeError
    assert str(error) == f"{FAILED}The worker subprocess exited unexpectedly. {how}"


def test_a_worker_that_is_killed_while_it_waits():
    gate = threading.Event()

    def source():
        yield 1
        gate.wait()

    pipeline = region(source(), ops.double).build(num_threads=1)
    with pytest.raises(PipelineFailure) as info:
        with pipeline.auto_stop():
            assert pipeline.get_item() == 2
            os.kill(pids_of(pipeline)[1], signal.SIGKILL)
            try:
                pipeline.get_item()  # without any item: its end alone is the news
            finally:
                gate.set()
    assert "SIGKILL" in str(info.value.exceptions[0])


# --- the end ---


def test_stop_ends_the_workers():
    before = len(os.listdir("/proc/self/fd"))
    pipeline = region(range(10**9), ops.double, sizes=(4, 4)).build(num_threads=1)
    with pipeline.auto_stop():
        pids = pids_of(pipeline)
        pipeline.get_item()
    assert len(pids) == 2 and all(map(gone, pids))
    del pipeline
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # the fork server's


def test_they_end_with_the_last_item():
    pipeline = region(range(10), ops.double).build(num_threads=1)
    pids = pids_of(pipeline)
    assert len(list(pipeline)) == 10
    until(lambda: all(map(gone, pids)))
    pipeline.stop()


@pytest.mark.parametrize("started", [False, True])
def test_dropping_the_pipeline_ends_them_and_leaves_nothing(started):
    run(region(range(3), ops.double))  # starts the fork server
    gc.collect()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    pipeline = region(range(10**9), ops.double).build(num_threads=1)
    pids = pids_of(pipeline)
    if started:
        pipeline.get_item()
    del pipeline
    gc.collect()
    # Without the GIL a thread of the pipeline may be the one that collects it, and nobody waits for that.
    until(lambda: all(map(gone, pids)))
    until(lambda: (len(os.listdir("/proc/self/fd")), threading.active_count()) == before)


def test_what_cannot_be_started_leaves_nothing():
    run(region(range(3), ops.double))
    before = len(os.listdir("/proc/self/fd"))
    alive = children()
    b = PipelineBuilder().add_source(range(3)).to(workers()).pipe(ops.double)
    b.to(workers(method="spawn")).pipe(lambda x: x).to(MAIN_PROCESS).add_sink()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        b.build(num_threads=1)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # multiprocessing's resource tracker
    assert children() - alive <= {resource_tracker._resource_tracker._pid}


SCRIPT = f"""
    import os, signal, sys
    sys.path.insert(0, {os.path.dirname(__file__)!r})
    import region_ops as ops
    from stoker.pipeline import PipelineBuilder
    from stoker.pipeline.defs import MAIN_PROCESS, ProcessPoolExecutorConfig

    def build(method):
        b = PipelineBuilder().add_source(range(10**9)).to(ProcessPoolExecutorConfig(2, mp_context=method))
        return b.pipe(ops.mark).to(MAIN_PROCESS).add_sink().build(num_threads=1)
"""


@pytest.mark.parametrize("how", ["", "next(iter(pipeline))", "pipeline.start()"])
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_live_pipeline_does_not_hold_the_interpreter(how, method):
    ok(f"""{SCRIPT}
    if __name__ == "__main__":
        pipeline = build({method!r})
        {how}
    """)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_kill_of_the_parent_ends_the_workers(method):
    done = script(f"""{SCRIPT}
    if __name__ == "__main__":
        first, second = build({method!r}), build({method!r})
        pids = set()
        for number, pipeline in enumerate((first, second), 1):
            while len(pids) < 2 * number:
                pids.add(pipeline.get_item()[1])
        print(*pids, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    pids = [int(text) for text in done.stdout.split()]
    assert len(pids) == 4 and done.returncode == -signal.SIGKILL, done
    until(lambda: all(map(gone, pids)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_disturb():
    pipeline = region(range(100), ops.double, n=1).build(num_threads=1)
    with pipeline.auto_stop():
        assert pipeline.get_item() == 0
        pid = os.fork()
        if pid == 0:
            try:
                del pipeline
                gc.collect()
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert list(pipeline) == list(range(2, 200, 2))


# --- a pipeline in a process of its own ---


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*forked while:RuntimeWarning")
def test_under_run_pipeline_in_subprocess(method):
    b = region(range(20), ops.double, ops.parents, sizes=(3, 2), target=workers(method=method))
    src = run_pipeline_in_subprocess(b.get_config(), num_threads=1, mp_context=method)
    seen = []
    for _ in range(3):
        out = list(src)
        assert sorted(x for x, _, _ in out) == list(range(0, 40, 2))
        seen.append({pid for _, pid, _ in out})
        if method != "forkserver":
            assert {parent for _, _, parent in out} == {os.getpid()}
    assert seen[0] == seen[1] == seen[2] and len(seen[0]) == 2
    for item in src:
        break
    assert sorted(x for x, _, _ in src) == list(range(0, 40, 2))
    del src
    gc.collect()
    until(lambda: all(map(gone, seen[0])))


def test_a_worker_that_dies_under_run_pipeline_in_subprocess():
    config = region(range(20), ops.killed_at_3).get_config()
    src = run_pipeline_in_subprocess(config, num_threads=1, mp_context=METHOD)
    with pytest.raises(RuntimeError, match="Failed to fetch the next item: pipeline stages failed") as info:
        list(src)
    assert f"{FAILED}The worker subprocess exited unexpectedly." in str(info.value.__cause__.exceptions[0])
    with pytest.raises(RuntimeError, match="Cannot iterate again"):
        list(src)


def test_continuous_under_run_pipeline_in_subprocess():
    config = region(range(6), ops.double, 4, n=1, continuous=True).get_config()
    src = run_pipeline_in_subprocess(config, num_threads=1, mp_context=METHOD)
    for _ in range(3):
        assert list(src) == [[0, 2, 4, 6], [8, 10]]
