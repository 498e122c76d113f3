"""Starting, stopping, threads, garbage collection."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

import stoker
from stoker import source
from support import build, ids, pass_time, until


def test_starts_by_itself_and_only_once(paths):
    pipeline = build(source.List(paths))
    assert "not started" in repr(pipeline)
    pipeline.get_item()
    with pytest.raises(RuntimeError, match=r"The pipeline was already started\."):
        pipeline.start()
    with pytest.raises(RuntimeError, match=r"The pipeline was already started\."), pipeline.auto_stop():
        pass
    pipeline.stop()
    assert "stopped" in repr(pipeline)
    with pytest.raises(RuntimeError, match=r"The pipeline was already started\."):
        pipeline.start()


def test_start_arguments(paths):
    pipeline = build(source.List(paths))
    with pytest.raises(TypeError, match="speed"):
        pipeline.start(speed=3)
    with pytest.raises(ValueError, match="timeout"):
        pipeline.start(timeout=-1)
    pipeline.start(timeout=10)
    pipeline.stop()
    other = build(source.List(paths))
    with pytest.warns(UserWarning, match="daemon"):
        other.start(daemon=True)
    other.stop()


def test_stop(paths):
    pipeline = build(source.List(paths, epochs=None))
    pipeline.stop()  # before the start: nothing
    with pipeline.auto_stop(timeout=60):
        pipeline.get_item()
    pipeline.stop()
    pipeline.stop(timeout=0)


def test_what_was_ready_can_be_read_after_a_stop(paths):
    pipeline = build(source.List(paths), batch=4, sink=2)
    pipeline.start()
    first = pipeline.get_item()
    pipeline.stop()
    rest = list(pipeline)
    assert [b.index for b in (first, *rest)] == list(range(len(rest) + 1))
    assert len(rest) <= 2
    for _ in range(2):
        with pytest.raises(EOFError):
            pipeline.get_item()
    assert list(pipeline) == []


def test_context_manager(paths):
    with build(source.List(paths)) as pipeline:
        assert ids(pipeline.get_item()) == list(range(8))
    with pytest.raises(ZeroDivisionError), build(source.List(paths)).auto_stop():
        raise ZeroDivisionError


def test_timeouts(paths):
    pipeline = build(source.List(paths), batch=4)
    got = 0
    while got < 12:
        try:
            batch = pipeline.get_item(timeout=0)
        except TimeoutError as error:
            assert isinstance(error, stoker.TimeoutError)
            assert "The next item is not available after" in str(error)
            continue
        assert batch.index == got
        got += 1
    for bad in (-1, float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            pipeline.get_item(timeout=bad)
    with pytest.raises(TypeError):
        pipeline.get_item(timeout="1")


def test_iterator_timeout(paths):
    pipeline = build(source.List(paths), batch=4)
    assert len(list(pipeline.get_iterator(timeout=60))) == 12


def test_each_batch_goes_to_one_reader_threaded(paths):
    pipeline = build(source.List(paths, epochs=5), batch=4, threads=2)
    seen: list[list[tuple[int, int]]] = [[] for _ in range(4)]
    ready = threading.Barrier(4)

    def read(mine):
        iterator = iter(pipeline)
        ready.wait()
        for batch in iterator:
            mine.append((batch.epoch, batch.index))

    threads = [threading.Thread(target=read, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in seen)
    assert sorted(x for mine in seen for x in mine) == [(e, i) for e in range(5) for i in range(12)]


def test_stop_wakes_readers_threaded(tmp_path):
    """A reader for whom nothing ever comes ends when told to."""
    src = source.List([tmp_path / "x.jpg"], epochs=2**62)
    pipeline = build(src, read={"on_error": "skip"}, batch=64)
    pipeline.start()
    entered = threading.Event()
    ended: list[object] = []

    def read():
        entered.set()
        try:
            pipeline.get_item()
        except EOFError:
            ended.append("end")

    thread = threading.Thread(target=read)
    thread.start()
    entered.wait()
    pipeline.stop(timeout=60)
    thread.join()
    assert ended == ["end"]


def test_a_dropped_pipeline_is_collected(paths):
    pipeline = build(source.List(paths, epochs=None))
    iterator = iter(pipeline)
    next(iterator)
    run = pipeline._run
    gone = weakref.ref(pipeline)
    del pipeline, iterator
    gc.collect()
    assert gone() is None
    assert run.next(0, None) is stoker._stoker.CANCELLED


def test_dropping_in_a_cycle(paths):
    class Holder:
        pass

    holder = Holder()
    holder.pipeline = build(source.List(paths, epochs=None))
    holder.me = holder
    holder.iterator = iter(holder.pipeline)
    next(holder.iterator)
    gone = weakref.ref(holder.pipeline)
    del holder
    gc.collect()
    assert gone() is None


def test_batches_outlive_everything(paths):
    pipeline = build(source.List(paths))
    kept = list(pipeline)
    want = [bytes(b.image) for b in kept]
    del pipeline
    gc.collect()
    again = build(source.List(paths))
    assert [bytes(b.image) for b in kept] == want == [bytes(b.image) for b in again]
    assert kept[0].key[0] == str(paths[0])


@pytest.mark.figures
def test_an_idle_pipeline_uses_no_time(paths):
    pipeline = build(source.List(paths, epochs=None))
    pipeline.get_item()
    used = [time.process_time()]

    def settled():  # the queues are full
        pass_time(0.1)
        used.append(time.process_time())
        return used[-1] - used[-2] < 0.02

    until(settled)
    pass_time(0.5)
    assert time.process_time() - used[-1] < 0.05
    pipeline.stop()


@pytest.mark.filterwarnings("ignore:The pipeline is exhausted")  # before its stop, sometimes
def test_stress_start_and_stop_threaded(paths):
    """Pipelines that are stopped, dropped, or read to the end, at any moment."""
    import os
    import random

    seed = int(os.environ.get("STK_SEED", "1"))

    def work(rng):
        for _ in range(15):
            pipeline = build(
                source.List(paths, epochs=rng.choice([1, None]), shuffle=True, seed=rng.randrange(99)),
                batch=rng.choice([1, 3, 16]),
                threads=rng.choice([1, 2, 4]),
                sink=rng.choice([1, 3]),
            )
            kept = [batch for batch, _ in zip(pipeline, range(rng.randrange(8)))]
            end = rng.randrange(3)
            if end == 0:
                pipeline.stop(timeout=60)
            elif end == 1:
                del pipeline
            else:
                threading.Thread(target=pipeline.stop).start()
                for _ in pipeline:
                    pass
            assert all(len(bytes(b.image)) == len(b) * 32 * 32 * 3 for b in kept)

    threads = [threading.Thread(target=work, args=(random.Random(seed + i),)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
