"""Regions of interpreters, where Python has them."""

from __future__ import annotations

import gc
import os
import threading

import pytest

import region_ops as ops
from stoker.pipeline import PipelineBuilder, PipelineFailure, run_pipeline_in_subinterpreter
from stoker.pipeline.defs import MAIN_PROCESS, InterpreterPoolExecutorConfig, ProcessPoolExecutorConfig
from support import ok, until
from test_subinterpreter import there

pytestmark = there


def region(src, *stages, target=None, **options):
    b = PipelineBuilder().add_source(src, **options)
    b.to(target or InterpreterPoolExecutorConfig(2), buffer_size=3)
    for stage in stages:
        b.pipe(stage)
    return b.aggregate(4).to(MAIN_PROCESS, buffer_size=2).add_sink()


def test_every_item_goes_through_once():
    pipeline = region(range(20), ops.double).build(num_threads=1)
    with pipeline.auto_stop():
        assert sorted(sum(pipeline, [])) == list(range(0, 40, 2))


def test_epochs():
    pipeline = region(range(6), ops.double, continuous=True).build(num_threads=1)
    with pipeline.auto_stop():
        for _ in range(3):
            assert sorted(sum(pipeline, [])) == [0, 2, 4, 6, 8, 10]


def test_errors():
    pipeline = region(range(20), ops.fail_at_3).build(num_threads=1, max_failures=0)
    with pytest.raises(PipelineFailure) as info:
        with pipeline.auto_stop():
            list(pipeline)
    (error,) = info.value.exceptions
    assert str(error).startswith("Fused subprocess pipeline failed: ")


@pytest.mark.parametrize("started", [False, True])
def test_dropping_the_pipeline_ends_them_and_leaves_nothing(started):
    gc.collect()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    pipeline = region(range(10**9), ops.double).build(num_threads=1)
    if started:
        pipeline.get_item()
    del pipeline
    gc.collect()
    # Without the GIL a thread of the pipeline may be the one that collects it, and nobody waits for that.
    until(lambda: (len(os.listdir("/proc/self/fd")), threading.active_count()) == before)


@pytest.mark.parametrize("how", ["", "pipeline.get_item()", "pipeline.start()"])
def test_a_live_pipeline_does_not_hold_the_interpreter(how):
    ok(f"""
        import region_ops as ops
        from stoker.pipeline import PipelineBuilder
        from stoker.pipeline.defs import MAIN_PROCESS, InterpreterPoolExecutorConfig
        if __name__ == "__main__":
            b = PipelineBuilder().add_source(range(10**9)).to(InterpreterPoolExecutorConfig(2))
            pipeline = b.pipe(ops.double).to(MAIN_PROCESS).add_sink().build(num_threads=1)
            {how}
    """)


def test_processes_cannot_be_used_from_another_interpreter():
    config = region(range(3), ops.double, target=ProcessPoolExecutorConfig(1)).get_config()
    with pytest.raises(ValueError, match="cannot be used from another interpreter"):
        run_pipeline_in_subinterpreter(config, num_threads=1)
