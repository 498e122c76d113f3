"""Starting, stopping, waiting and dropping pipelines of Python stages."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import weakref

import pytest

from lanes import Gate, Watched, chain, read, same
from stoker.pipeline.defs import Pipe
from support import ok, pass_time, until


async def awaited(x):
    return x


def test_nothing_runs_before_the_start():
    src = Watched(range(3))
    before = threading.active_count()
    pipeline = chain(Pipe(same), src=src)
    pipeline.stop()
    assert threading.active_count() == before and not src.threads
    with pipeline.auto_stop():
        assert list(pipeline) == [0, 1, 2]


def test_no_second_start():
    pipeline = chain(Pipe(same), src=itertools.count())
    with pipeline.auto_stop():
        with pytest.raises(RuntimeError, match=r"The pipeline was already started\."):
            pipeline.start()
        with pytest.raises(RuntimeError, match=r"The pipeline was already started\."), pipeline.auto_stop():
            pass
    with pytest.raises(RuntimeError, match=r"The pipeline was already started\."):
        pipeline.start()


@pytest.mark.parametrize("stages", [[Pipe(same)], [Pipe(same), Pipe(awaited)]], ids=["lanes", "loop"])
def test_a_start_that_takes_too_long(monkeypatch, stages):
    """The pipeline has been stopped then: it gives nothing, and its threads end."""
    before, start = threading.active_count(), threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (start(thread), pass_time(0.02)))
    pipeline = chain(*stages, src=itertools.count())
    with pytest.raises(TimeoutError, match=r"Event loop did not start after 0\.01 seconds\."):
        pipeline.start(timeout=0.01)
    assert "stopped" in repr(pipeline) and list(pipeline) == []
    with pytest.raises(RuntimeError, match=r"The pipeline was already started\."):
        pipeline.start()
    pipeline.stop()
    assert threading.active_count() == before


def test_get_item_times_out_and_loses_nothing():
    gate = Gate()
    pipeline = chain(Pipe(gate), src=range(3))
    with pipeline.auto_stop():
        for i in range(3):
            for timeout in (0, 0.01):
                with pytest.raises(TimeoutError, match="The next item is not available after"):
                    pipeline.get_item(timeout=timeout)
            gate.let(i)
            assert pipeline.get_item(timeout=60) == i
        with pytest.raises(EOFError, match=r"Reached the end of the pipeline\."):
            pipeline.get_item()


def test_iterators_time_out_and_go_on():
    gate = Gate()
    pipeline = chain(Pipe(gate), src=range(2))
    with pipeline.auto_stop():
        iterator = pipeline.get_iterator(timeout=0.01)
        with pytest.raises(TimeoutError, match="The next item is not available after"):
            next(iterator)
        gate.open()
        until(lambda: pipeline.stats()["stages"][1]["items"] == 2)
        assert list(iterator) == [0, 1]
        with pytest.raises(StopIteration):
            next(iterator)


def test_breaking_out_loses_nothing():
    pipeline, got = chain(Pipe(same), src=range(1000)), []
    while len(got) < 1000:
        for item in pipeline:
            got.append(item)
            if item % 7 == 0:
                break
    assert got == list(range(1000))


@pytest.mark.parametrize("with_it", [lambda pipeline: pipeline, lambda pipeline: pipeline.auto_stop()])
def test_ctrl_c_is_not_replaced_by_a_failure(with_it, caplog):
    """What an `except Exception` must not see is not hidden by what stop() raises."""
    for error, seen in [(KeyboardInterrupt(), KeyboardInterrupt), (KeyError(), ExceptionGroup)]:
        pipeline = chain(Pipe(lambda x: 1 // 0), max_failures=0)
        with pytest.raises(seen), with_it(pipeline):
            until(lambda p=pipeline: p.failures())
            raise error
    assert caplog.text.count("the pipeline did not end well") == 1


@pytest.mark.parametrize("sink", [1, 4])
def test_what_is_left_after_a_stop(sink):
    pipeline = chain(Pipe(same), src=itertools.count(), sink=sink)
    assert pipeline.get_item() == 0
    until(lambda: pipeline.stats()["queues"][-1]["len"] == sink)
    pipeline.stop()
    left = list(pipeline)
    assert left == list(range(1, 1 + sink))
    for _ in range(2):
        with pytest.raises(EOFError):
            pipeline.get_item()


@pytest.mark.parametrize("sink", [1, 4])
def test_an_iterator_goes_on_after_a_stop(sink):
    """Where one read takes many results, those behind the sink's room are dropped, and none before them."""
    pipeline = chain(Pipe(same), src=itertools.count(), sink=sink)
    results = iter(pipeline)
    got = [next(results) for _ in range(5000)]
    pipeline.stop()
    got += results
    assert got == list(range(len(got))) and 5000 <= len(got) <= 5000 + sink


def test_stop_with_an_op_that_goes_on():
    """It says what runs, and a later stop goes on waiting."""
    gate = Gate()
    pipeline = chain(Pipe(gate, name="slow"), src=range(3))
    pipeline.start()
    gate.until_inside(1)
    for _ in range(2):
        begin = time.monotonic()
        with pytest.raises(TimeoutError, match=r"Thread did not join after 0\.05 seconds: .*'slow'"):
            pipeline.stop(timeout=0.05)
        assert time.monotonic() - begin < 5
    gate.open()
    pipeline.stop()
    pipeline.stop(timeout=0)


def test_stop_wakes_readers():
    gate, ended = Gate(), []
    pipeline = chain(Pipe(gate), src=range(3))
    pipeline.start()

    def reader():
        with pytest.raises(EOFError):
            pipeline.get_item()
        ended.append(list(pipeline))

    thread = threading.Thread(target=reader)
    thread.start()
    gate.until_inside(1)
    with pytest.raises(TimeoutError):
        pipeline.stop(timeout=0)
    thread.join(60)
    assert ended == [[]]
    gate.open()
    pipeline.stop()


def test_stop_from_any_thread():
    pipeline = chain(Pipe(same, concurrency=3), src=itertools.count())
    pipeline.start()
    threads = [threading.Thread(target=pipeline.stop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_stop_from_an_op():
    """An op that stops its own pipeline does not wait for itself."""
    held = []

    def op(x):
        if x == 3:
            try:
                held[0].stop(timeout=0.05)
            except TimeoutError:
                pass
        return x

    pipeline = chain(Pipe(op), src=itertools.count())
    held.append(pipeline)
    items, error = read(pipeline)
    assert error is None and items == list(range(len(items)))
    pipeline.stop()
    held.clear()


def test_no_thread_is_left():
    before = set(threading.enumerate())
    for _ in range(20):
        pipeline = chain(Pipe(same, concurrency=3), Pipe(same), src=itertools.count())
        with pipeline.auto_stop():
            for _ in range(5):
                pipeline.get_item()
        assert set(threading.enumerate()) == before


@pytest.mark.parametrize("read_some", [False, True])
def test_dropped_without_a_collection(read_some):
    """Nothing refers to a pipeline in a circle: its threads end when the last name is gone."""
    before, src = set(threading.enumerate()), Watched(itertools.count())
    gc.disable()
    try:
        pipeline = chain(Pipe(same, concurrency=2), src=src)
        pipeline.start()
        if read_some:
            for _, item in zip(range(5), pipeline):
                assert item >= 0
        ref = weakref.ref(pipeline)
        del pipeline
        assert ref() is None
        until(lambda: set(threading.enumerate()) == before)
    finally:
        gc.enable()
    assert len(src.closed) == 1


def test_an_iterator_keeps_its_pipeline():
    iterator = iter(chain(Pipe(same), src=range(100)))
    gc.collect()
    assert list(iterator) == list(range(100))


def test_dropped_by_an_op():
    """The last reference goes away on a thread of the pipeline itself."""
    held = []

    def op(x):
        if x == 5:
            held.clear()
        return x

    held.append(chain(Pipe(op), src=range(100)))
    before = threading.active_count()
    held[0].start()
    until(lambda: not held and threading.active_count() <= before)


@pytest.mark.parametrize("reads", [0, 3])
@pytest.mark.parametrize("source", ["itertools.count()", "(pass_time(0.01) or i for i in range(10**9))"])
def test_the_interpreter_ends(reads, source):
    out = ok(
        f"""
        import itertools
        from lanes import chain, same
        from support import pass_time
        from stoker.pipeline.defs import Pipe
        pipeline = chain(Pipe(same, concurrency=3), src={source})
        pipeline.start()
        for _ in range({reads}):
            pipeline.get_item()
        print("end")
        """
    )
    assert out == "end\n"


def test_the_interpreter_ends_inside_a_loop():
    out = ok(
        """
        import itertools, sys
        from lanes import chain, same
        from stoker.pipeline.defs import Pipe
        for item in chain(Pipe(same), src=itertools.count()):
            if item == 100:
                print("end")
                sys.exit(0)
        """
    )
    assert out == "end\n"


@pytest.mark.parametrize("threaded", [False, True])
def test_use_thread_output_queue(threaded):
    pipeline = chain(Pipe(same), src=range(50), use_thread_output_queue=threaded)
    assert list(pipeline) == list(range(50))


def test_no_thread_without_python_stages_is_made():
    before = threading.active_count()
    pipeline = chain(Pipe(same), src=range(5))
    assert threading.active_count() == before
    assert list(pipeline) == [0, 1, 2, 3, 4]
