"""Failures of Python stages: what is counted, what ends a run, and who hears of it."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import threading
import weakref
from fractions import Fraction

import pytest

from lanes import Gate, Watched, chain, config, read, same
from stoker.pipeline import PipelineFailure
from stoker.pipeline.defs import Aggregate, Aggregator, Disaggregate, Merge, Pipe
from stoker.pipeline.defs import PipelineConfig, SinkConfig, PathVariants
from stoker.pipeline import build_pipeline
from support import ok, until


def fails(*items, kind=ValueError):
    """An op that fails for some items."""

    def op(x):
        if x in items:
            raise kind(x)
        return x

    return op


def inner(error) -> Exception:
    assert type(error) is PipelineFailure, error
    (exception,) = error.exceptions
    return exception


def test_failures_are_dropped_by_default():
    items, error = read(chain(Pipe(fails(*range(0, 100, 3))), src=range(100)))
    assert (items, error) == ([x for x in range(100) if x % 3], None)


@pytest.mark.parametrize("order", ["completion", "input"])
@pytest.mark.parametrize("where", ["stage", "pipeline"])
@pytest.mark.parametrize("limit", [0, 1, 4])
def test_counts(order, where, limit):
    """The stage fails with the failure that is one too many; what came before it arrives."""
    src = Watched(itertools.count())
    stage = Pipe(
        fails(*range(0, 1000, 10)), output_order=order, max_failures=limit if where == "stage" else None
    )
    pipeline = chain(stage, src=src, max_failures=limit if where == "pipeline" else -1)
    items, error = read(pipeline)
    assert items == [x for x in range(10 * limit) if x % 10]
    exception = inner(error)
    assert type(exception) is RuntimeError or isinstance(exception, RuntimeError)
    name = f"{pipeline.stats()['stages'][1]['name']}[1]"
    assert f":1:{name}) failed {limit + 1} times, which exceeds the threshold ({limit})." in str(exception)
    assert str(exception).startswith("The pipeline stage (")
    assert type(exception.__cause__) is ValueError and exception.__cause__.args == (10 * limit,)
    assert any(note.startswith("Pipeline stage: ") for note in exception.__notes__)
    assert src.taken < 10 * limit + 200


def test_as_many_as_allowed():
    items, error = read(chain(Pipe(fails(1, 3, 5), max_failures=3), src=range(7)))
    assert (items, error) == ([0, 2, 4, 6], None)


def test_a_stages_own_count_and_that_of_the_whole():
    """Stages without a limit of their own share one count; the others have theirs."""
    own = Pipe(fails(*range(5)), max_failures=-1)
    items, error = read(chain(own, Pipe(fails(*range(5, 10))), src=range(20), max_failures=5))
    assert (items, error) == (list(range(10, 20)), None)
    stages = [Pipe(fails(*range(3)), name="one"), Pipe(fails(3, 4, 5), name="two")]
    items, error = read(chain(*stages, src=range(20), max_failures=5))
    assert items == [] and "two" in str(inner(error)) and "failed 6 times" in str(inner(error))
    assert read(chain(*stages, src=range(20), max_failures=6)) == (list(range(6, 20)), None)


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1, 2), Fraction(3, 2)])
def test_rates_that_are_none(bad):
    with pytest.raises(ValueError, match=r"must be in range \(0, 1\]"):
        chain(Pipe(same), max_failures=bad)
    with pytest.raises(ValueError, match=r"must be in range \(0, 1\]"):
        chain(Pipe(same, max_failures=bad))


@pytest.mark.parametrize("where", ["stage", "pipeline"])
def test_rates(where):
    """From the 100th call on, that one included."""
    rate = Fraction(1, 2)
    limits = (rate, -1) if where == "stage" else (None, rate)
    bad = range(0, 102, 2)
    stage = Pipe(fails(*bad, 99), max_failures=limits[0])
    items, error = read(chain(stage, src=range(1000), max_failures=limits[1]))
    assert items == list(range(1, 99, 2))
    text = "failed 51 times out of 100 invocations (51.0%), which exceeds the threshold (50.0%)."
    assert str(inner(error)).endswith(text) and inner(error).__cause__.args == (99,)
    stage = Pipe(fails(*range(50)), max_failures=limits[0])
    assert read(chain(stage, src=range(1000), max_failures=limits[1])) == (list(range(50, 1000)), None)
    stage = Pipe(fails(*range(99)), max_failures=limits[0])
    assert read(chain(stage, src=range(99), max_failures=limits[1])) == ([], None)


def test_a_rate_that_is_reached_by_a_success():
    stage = Pipe(fails(*range(60)), max_failures=Fraction(1, 2))
    items, error = read(chain(stage, src=range(1000)))
    assert items == list(range(60, 99))
    assert "failed 60 times out of 100 invocations (60.0%)" in str(inner(error))


def test_limits_run_on_over_epochs():
    pipeline = chain(Pipe(fails(0), max_failures=2), src=range(3), continuous=True)
    assert [list(pipeline) for _ in range(2)] == [[1, 2], [1, 2]]
    items, error = read(pipeline)
    assert items == [] and "failed 3 times" in str(inner(error))


def test_input_order_judges_in_order():
    """Every item before the failure arrives, although the failure was there first."""
    gate = Gate()
    gate.let(*range(5, 100))

    def op(x):
        gate(x)
        if x == 5:
            raise ValueError(x)
        return x

    stage = Pipe(op, concurrency=6, output_order="input", max_failures=0)
    pipeline = chain(stage, src=range(100), threads=8)
    with pytest.raises(PipelineFailure), pipeline.auto_stop():
        gate.until_inside(5)
        gate.open()
        items, error = read(pipeline)
        assert items == [0, 1, 2, 3, 4] and inner(error)
        raise error


def test_at_once_while_others_run():
    """The reader hears of the failure although another op of the stage has not returned."""
    gate = Gate()

    def op(x):
        if x == 1:
            gate.until_inside(1)
            raise ValueError(x)
        return gate(x)

    pipeline = chain(Pipe(op, concurrency=2, max_failures=0), src=[0, 1])
    pipeline.start()
    try:
        with pytest.raises(PipelineFailure):
            pipeline.get_item(timeout=5)
    finally:
        gate.open()
        pipeline.stop()


def test_while_the_source_waits():
    go = threading.Event()

    def src():
        yield 1
        go.wait(60)

    pipeline = chain(Pipe(fails(1), max_failures=0), src=src())
    try:
        with pytest.raises(PipelineFailure):
            pipeline.get_item(timeout=30)
    finally:
        go.set()
        pipeline.stop()


def test_downstream_drains():
    seen = []

    def last(x):
        seen.append(x)
        return x

    stages = [Pipe(fails(7), max_failures=0), Pipe(same), Aggregate(3), Disaggregate(), Pipe(last)]
    items, error = read(chain(*stages, src=range(100)))
    assert items == seen == [0, 1, 2, 3, 4, 5, 6] and inner(error)


@pytest.mark.parametrize("threaded", [False, True])
def test_every_read_raises(threaded):
    pipeline = chain(Pipe(fails(2), max_failures=0), src=range(9), use_thread_output_queue=threaded)
    iterator = iter(pipeline)
    assert [next(iterator), next(iterator)] == [0, 1]
    raised = []
    for attempt in (lambda: next(iterator),) * 3 + (lambda: list(pipeline), pipeline.get_item) * 2:
        with pytest.raises(PipelineFailure) as caught:
            attempt()
        raised.append(caught.value.exceptions[0])
    pipeline.stop()
    pipeline.stop()
    for attempt in (lambda: next(iterator), pipeline.get_item, lambda: pipeline.get_item(timeout=0)):
        with pytest.raises(PipelineFailure) as caught:
            attempt()
        raised.append(caught.value.exceptions[0])
    assert len(set(map(id, raised))) == 1


def failed_unread():
    """A pipeline whose failure is there, and that nobody has read."""
    pipeline = chain(Pipe(fails(0), max_failures=0), src=[0])
    return pipeline


def test_stop_raises_once():
    pipeline = failed_unread()
    pipeline.start()
    until(lambda: pipeline.stats()["stages"][1]["failed"])
    with pytest.raises(PipelineFailure, match="pipeline stages failed"):
        pipeline.stop()
    pipeline.stop()
    with pytest.raises(PipelineFailure):
        pipeline.get_item()


def test_leaving_auto_stop_raises_what_nobody_read():
    pipeline = failed_unread()
    with pytest.raises(PipelineFailure), pipeline.auto_stop():
        until(lambda: pipeline.stats()["stages"][1]["failed"])


def test_leaving_auto_stop_with_another_exception():
    pipeline = failed_unread()
    with pytest.raises(PipelineFailure) as caught, pipeline.auto_stop():
        until(lambda: pipeline.stats()["stages"][1]["failed"])
        raise KeyError("body")
    assert type(caught.value.__context__) is KeyError


def test_leaving_auto_stop_after_a_read():
    pipeline = failed_unread()
    with pytest.raises(KeyError), pipeline.auto_stop():
        assert read(pipeline)[1]
        raise KeyError("body")


def test_exception_groups():
    _, error = read(chain(Pipe(fails(0, kind=OSError), max_failures=0), src=[0]))
    assert str(error) == "pipeline stages failed (1 sub-exception)"
    assert isinstance(error, ExceptionGroup)
    part = error.subgroup(RuntimeError)
    assert type(part) is PipelineFailure and error.subgroup(KeyError) is None
    match, rest = error.split(lambda e: False)
    assert match is None and type(rest) is PipelineFailure
    caught = []
    try:
        raise error
    except* RuntimeError as group:
        caught.append(group)
    assert type(caught[0]) is PipelineFailure and type(caught[0].exceptions[0].__cause__) is OSError


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("generates", [False, True])
def test_what_ends_programs_in_an_op_fails_the_pipeline(kind, generates):
    """As in an op of the event loop, and whatever the stage says of failures."""
    op = fails(3, kind=kind)

    def generator(x):
        yield op(x)

    pipeline = chain(Pipe(generator if generates else op, max_failures=-1), src=range(100))
    items, error = read(pipeline)
    assert items == [0, 1, 2]
    assert type(inner(error).__cause__) is kind


def test_a_cancelled_error_of_an_op_is_one_items():
    items, error = read(chain(Pipe(fails(1, kind=asyncio.CancelledError)), src=range(3)))
    assert (items, error) == ([0, 2], None)


class Bad(Aggregator):
    def accumulate(self, item):
        if item == 3:
            raise ValueError(item)
        return item

    def flush(self):
        return None


def test_an_aggregator_that_fails_ends_the_run():
    items, error = read(chain(Aggregate(Bad()), src=range(9), max_failures=-1))
    assert items == [0, 1, 2] and type(inner(error)) is ValueError


def test_a_failing_router_ends_the_run():
    def route(x):
        return x // 3

    paths = PathVariants(route, [[Pipe(same)], [Pipe(same)]])
    items, error = read(chain(paths, src=range(9), max_failures=-1))
    assert sorted(items) == [0, 1, 2, 3, 4, 5] and type(inner(error)) is IndexError
    assert str(inner(error)).startswith("Router returned index 2")


def test_one_failing_input_of_a_merge():
    """The others run to their end, their items arrive, then the failure."""

    def upstream(*pipes, src):
        from lanes import config

        return config(*pipes, src=src)

    merged = Merge([upstream(Pipe(fails(3), max_failures=0), src=range(9)), upstream(src=range(100, 400))])
    items, error = read(build_pipeline(PipelineConfig(merged, [], SinkConfig(3)), num_threads=2))
    assert [x for x in items if x < 100] == [0, 1, 2]
    assert [x for x in items if x >= 100] == list(range(100, 400)) and inner(error)


def test_what_is_logged(caplog):
    """The first ten with stage, item and traceback; then they are counted only."""
    pipeline = chain(Pipe(fails(*range(30)), name="load"), src=range(40))
    assert list(pipeline) == list(range(30, 40))
    records = [r for r in caplog.records if r.name == "stoker.pipeline" and r.levelno == logging.ERROR]
    assert len(records) == 10
    assert all(f"item {i}: {i}" in r.getMessage() and "load" in r.getMessage() for i, r in enumerate(records))
    assert "ValueError" in caplog.text and os.path.basename(__file__) in caplog.text
    assert pipeline.stats()["stages"][1]["failed"] == 30
    assert [error.id for error in pipeline.failures()] == list(range(10))


def test_logs_begin_with_the_users_line(caplog):
    gone = threading.Event()

    def wait(x):
        if x == 1:
            gone.wait(30)
        return x

    items, _ = read(chain(Pipe(wait, timeout=0.05, name="slow"), Pipe(fails(2)), src=range(4)))
    gone.set()
    assert items == [0, 3]
    late, failed = sorted(caplog.text.split("ERROR")[1:], key=lambda text: "ValueError" in text)
    assert "TimeoutError" in late and "item 1: 1" in late and "Traceback" not in late
    assert failed.count("item 2: 2") == 1
    assert f"{os.sep}stoker{os.sep}pipeline" not in failed and os.path.basename(__file__) in failed


def test_the_stage_is_named_once():
    """Also where a read and stop() meet the same failure."""
    pipeline = chain(Pipe(fails(1), on_error="raise"), src=range(3))
    with pytest.raises(PipelineFailure) as caught, pipeline.auto_stop():
        list(pipeline)
    assert sum(note.startswith("Pipeline stage: ") for note in inner(caught.value).__notes__) == 1


def test_stop_says_how_many_were_lost(caplog):
    caplog.set_level(logging.WARNING, "stoker.pipeline")
    pipeline = chain(Pipe(fails(*range(30)), name="load"), Pipe(fails(35), name="use"), src=range(40))
    with pipeline.auto_stop():
        list(pipeline)
        caplog.clear()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "31 items failed" in record.getMessage()
    assert "load[1] 30" in record.getMessage() and "use[1] 1" in record.getMessage()
    assert pipeline.stats()["failed"] == 31
    caplog.clear()
    pipeline.stop()
    assert not caplog.records
    pipeline = chain(Pipe(same), src=range(4))
    with pipeline.auto_stop():
        list(pipeline)
    assert not caplog.records


@pytest.mark.parametrize("limit", [-1, 0])
def test_no_cycle_keeps_a_failed_pipeline(limit, caplog):
    caplog.set_level(logging.CRITICAL, "stoker.pipeline")
    op = fails(*range(20))
    pipeline = chain(Pipe(op, max_failures=limit), src=range(30))
    refs = [weakref.ref(pipeline), weakref.ref(op)]
    read(pipeline)
    gc.disable()
    try:
        del pipeline, op
        until(lambda: [ref() for ref in refs] == [None, None])
    finally:
        gc.enable()


def test_nobody_reads():
    """Collection and the interpreter's end are silent."""
    out = ok(
        """
        import gc, logging
        from lanes import chain
        from stoker.pipeline.defs import Pipe
        logging.disable()

        def op(x):
            raise ValueError(x)

        for keep in (False, True):
            pipeline = chain(Pipe(op, max_failures=0), src=range(10))
            pipeline.start()
            while not pipeline.stats()["stages"][1]["failed"]:
                pass
            if not keep:
                del pipeline
                gc.collect()
        print("end")
        """
    )
    assert out == "end\n"


def test_a_merge_has_the_failures_of_all_its_inputs():
    def broken():
        yield 7
        raise KeyError("source")

    inputs = [
        config(Pipe(fails(2), name="one", max_failures=0), src=[1, 2, 3]),
        config(src=[10, 20]),
        config(Pipe(fails(4, 5, 6, kind=TypeError), name="two", max_failures=2), src=[4, 5, 6, 8]),
        config(src=broken()),
    ]
    merged = PipelineConfig(Merge(inputs), [Pipe(same)], SinkConfig(3))
    pipeline = build_pipeline(merged, num_threads=2)
    items, failure = read(pipeline)
    assert sorted(items) == [1, 7, 10, 20]
    by_text = {str(error): error for error in failure.exceptions}
    one, two = (next(e for text, e in by_text.items() if f":{name}[1])" in text) for name in ("one", "two"))
    assert "failed 1 times, which exceeds the threshold (0)." in str(one)
    assert "failed 3 times, which exceeds the threshold (2)." in str(two)
    assert isinstance(one.__cause__, ValueError) and isinstance(two.__cause__, TypeError)
    assert [len(error.failures) for error in (one, two)] == [1, 3]
    assert one.__notes__ == ["Pipeline stage: one"] and two.__notes__ == ["Pipeline stage: two"]
    assert len(by_text) == 3 and any(isinstance(error, KeyError) for error in failure.exceptions)
    with pytest.raises(PipelineFailure) as again:
        pipeline.get_item()
    assert again.value.exceptions == failure.exceptions
