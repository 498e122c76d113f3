"""How iterables are driven as sources."""

from __future__ import annotations

import itertools
import threading

import pytest

from lanes import Gate, Watched, chain, read, same
from stoker.pipeline import PipelineBuilder, PipelineFailure
from stoker.pipeline.defs import Disaggregate, Pipe
from support import ok, pass_time, until


def numbered(n, closed=None):
    try:
        yield from range(n)
    finally:
        if closed is not None:
            closed.append(threading.current_thread())


@pytest.mark.parametrize("src", [[1, 2, 3], (1, 2, 3), range(1, 4), {1: 0, 2: 0, 3: 0}, b"\1\2\3"])
def test_iterables(src):
    assert list(chain(Pipe(same), src=src)) == [1, 2, 3]
    assert list(chain(src=src)) == [1, 2, 3]


def test_nothing():
    assert list(chain(Pipe(same), src=[])) == []
    assert list(chain(src=iter(()))) == []


def test_what_only_has_getitem():
    class Old:
        def __getitem__(self, i):
            if i == 3:
                raise IndexError
            return i

    assert list(chain(src=Old())) == [0, 1, 2]


def test_two_sources():
    with pytest.raises(ValueError):
        PipelineBuilder().add_source([1]).add_source([2])


def test_a_thread_of_its_own():
    ran = set()
    src = Watched(range(50))

    def op(x):
        ran.add(threading.current_thread())

    assert list(chain(Pipe(op), src=src, threads=1)) == []
    (thread,) = src.threads
    assert src.closed == [] or src.closed == [thread]
    assert thread not in ran and not thread.daemon and len(ran) == 1
    assert thread is not threading.current_thread()


def test_a_source_takes_no_slot_of_num_threads():
    """A source that waits for what the only worker does."""
    done = threading.Semaphore(0)

    def src():
        for i in range(20):
            yield i
            assert done.acquire(timeout=60)

    def op(x):
        done.release()
        return x

    assert list(chain(Pipe(op), src=src(), threads=1)) == list(range(20))


@pytest.mark.parametrize("sink", [1, 3])
def test_how_far_a_source_is_read_when_nobody_reads(sink):
    """The queues, 2 behind the source and the sink's, and one item in each hand."""
    src = Watched(itertools.count())
    pipeline = chain(src=src, sink=sink)
    with pipeline.auto_stop():
        until(lambda: src.taken >= sink + 2)
        pass_time(0.05)
        assert src.taken <= sink + 2 + 2
        for i in range(5):
            assert pipeline.get_item() == i
            until(lambda n=i: src.taken >= n + 1 + sink + 2)


def test_a_blocked_stage_holds_the_source_back():
    src, gate = Watched(itertools.count()), Gate()
    pipeline = chain(Pipe(gate, concurrency=2), src=src)
    with pipeline.auto_stop():
        gate.until_inside(2)
        assert src.taken <= 2 + 2 + 2 + 2
        gate.open()


def test_one_item_at_a_time():
    """A slow source: next() is called once the item before it was taken, never in a batch."""
    go, given = threading.Semaphore(0), []

    def src():
        for i in range(6):
            assert go.acquire(timeout=60)
            yield i

    pipeline = chain(Pipe(given.append), src=src())
    with pipeline.auto_stop():
        for i in range(6):
            go.release()
            until(lambda n=i: len(given) == n + 1)
        with pytest.raises(EOFError):
            pipeline.get_item()


def test_close_on_early_end():
    closed = []
    pipeline = chain(Pipe(same), src=numbered(10**9, closed))
    with pipeline.auto_stop():
        assert pipeline.get_item() == 0
    (thread,) = closed
    assert thread is not threading.current_thread() and not thread.is_alive()


def test_close_on_failure():
    src = Watched(itertools.count())

    def op(x):
        raise ValueError(x)

    pipeline = chain(Pipe(op, max_failures=2), src=src)
    with pytest.raises(PipelineFailure), pipeline.auto_stop():
        list(pipeline)
    assert src.closed == list(src.threads)


def test_an_exhausted_source_is_left_alone():
    src = Watched(range(3))
    assert list(chain(Pipe(same), src=src)) == [0, 1, 2]
    assert len(src.closed) <= 1


def test_an_error_in_close():
    class Bad(Watched):
        def close(self):
            super().close()
            raise OSError("cannot close")

    src, seen = Bad(itertools.count()), []
    old, threading.excepthook = threading.excepthook, seen.append
    try:
        pipeline = chain(src=src)
        with pipeline.auto_stop():
            pipeline.get_item()
    finally:
        threading.excepthook = old
    assert len(src.closed) == 1 and len(seen) <= 1


def test_items_outlive_their_iterator():
    """Items are valid after their iterator was closed."""
    src = Watched([object() for _ in range(100)])
    pipeline = chain(src=src)
    with pipeline.auto_stop():
        first = pipeline.get_item()
        until(lambda: pipeline.stats()["queues"][-1]["len"] == 3)
    assert [type(x) for x in (first, *pipeline)].count(object) >= 4


def test_none_is_an_item():
    assert list(chain(src=[None, 1, None])) == [None, 1, None]
    assert list(chain(Pipe(lambda x: x is None), src=[None, 1, None])) == [True, False, True]


@pytest.mark.parametrize("where", ["iter", "next"])
@pytest.mark.parametrize("kind", [ValueError, StopAsyncIteration, PipelineFailure])
def test_an_exception_in_a_source(where, kind):
    error = kind("no more", [OSError()]) if kind is PipelineFailure else kind("no more")

    class Source:
        def __iter__(self):
            if where == "iter":
                raise error
            return Watched(range(5), error)

    pipeline = chain(Pipe(same), src=Source(), max_failures=100)
    items, raised = read(pipeline)
    assert items == ([] if where == "iter" else [0, 1, 2, 3, 4])
    assert type(raised) is PipelineFailure and raised.exceptions == (error,)
    assert raised.exceptions[0] is error
    assert any(note.startswith("Pipeline stage: ") for note in error.__notes__)
    assert read(pipeline)[0] == [] and isinstance(read(pipeline)[1], PipelineFailure)
    pipeline.stop()


def test_what_is_no_iterable():
    pipeline = chain(src=3)
    with pytest.raises(PipelineFailure) as caught:
        list(pipeline)
    assert isinstance(caught.value.exceptions[0], TypeError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_programs_ends_a_source_only(kind):
    """The reader learns of it, and is not left waiting."""
    error = kind("enough")
    pipeline = chain(Pipe(same), src=Watched(range(4), error))
    items, raised = read(pipeline)
    assert items == [0, 1, 2, 3] and type(raised) is PipelineFailure
    (inner,) = raised.exceptions
    assert kind.__name__ in str(inner) and inner.__cause__ is error
    pipeline.stop()


def test_a_blocked_source_does_not_hold_up_stop():
    """Nothing but the interpreter's end waits for it."""
    out = ok(
        """
        import threading, time
        from lanes import chain
        inside, go = threading.Event(), threading.Event()

        def src():
            yield 1
            inside.set()
            go.wait(60)
            print("source ends")

        pipeline = chain(src=src())
        with pipeline.auto_stop():
            assert pipeline.get_item() == 1
            inside.wait()
            begin = time.monotonic()
        pipeline.stop()
        assert time.monotonic() - begin < 5
        print("main ends")
        threading.Timer(0.2, go.set).start()
        """
    )
    assert out == "main ends\nsource ends\n"


def test_what_stop_waits_for_beside_a_blocked_source():
    inside, go, gate = threading.Event(), threading.Event(), Gate()
    before = set(threading.enumerate())

    def left():
        return [t.name for t in threading.enumerate() if t not in before and t.name.startswith("stoker")]

    def src():
        yield 1
        inside.set()
        go.wait(60)

    pipeline = chain(Pipe(gate, name="slow"), src=src())
    pipeline.start()
    gate.until_inside(1)
    inside.wait()
    with pytest.raises(TimeoutError, match="stage 'slow' is still running"):
        pipeline.stop(timeout=0.05)
    gate.open()
    pipeline.stop()
    assert left() == ["stoker-source"]
    go.set()
    until(lambda: not left())


def test_many_items_quickly():
    n = 20000
    assert list(chain(Pipe(same), src=range(n), sink=100)) == list(range(n))
    lists = [list(range(100))] * 100
    assert sum(chain(Disaggregate(), Pipe(same), src=lists)) == 100 * 4950
