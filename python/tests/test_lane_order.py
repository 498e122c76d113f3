"""Order, concurrency, and how much is on its way."""

from __future__ import annotations

import itertools
import random
import threading

import pytest

from lanes import Gate, Watched, chain, read, same
from stoker.pipeline.defs import Pipe
from support import pass_time, until


@pytest.mark.parametrize("order", ["completion", "input"])
@pytest.mark.parametrize("concurrency", [1, 2, 7])
def test_concurrency(order, concurrency):
    """As many as the stage may have run at once, and no more."""
    gate = Gate()
    stage = Pipe(gate, concurrency=concurrency, output_order=order)
    pipeline = chain(stage, src=range(50), threads=16)
    with pipeline.auto_stop():
        gate.until_inside(concurrency)
        gate.open()
        assert sorted(pipeline) == list(range(50))
    assert gate.most == concurrency


def test_one_at_a_time_keeps_order():
    for order in ("completion", "input"):
        stages = [Pipe(same, output_order=order) for _ in range(3)]
        assert list(chain(*stages, src=range(5000))) == list(range(5000))


def test_order_of_completion():
    """What is ready first leaves first."""
    gate = Gate()
    pipeline = chain(Pipe(gate, concurrency=3), src=range(3))
    with pipeline.auto_stop():
        gate.until_inside(3)
        for i in (2, 0, 1):
            gate.let(i)
            assert pipeline.get_item() == i


def test_order_of_input():
    """What is ready first waits for those before it."""
    gate = Gate()
    pipeline = chain(Pipe(gate, concurrency=3, output_order="input"), src=range(3))
    with pipeline.auto_stop():
        gate.until_inside(3)
        gate.let(2, 1)
        with pytest.raises(TimeoutError):
            pipeline.get_item(timeout=0.05)
        gate.let(0)
        assert list(pipeline) == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_input_order_throughout_is_reproducible(threads):
    rng = random.Random(1)
    waits = [rng.random() < 0.1 for _ in range(400)]

    def op(x):
        if waits[x % 400]:
            pass_time(0.0005)
        return None if x % 7 == 0 else x

    def many(x):
        yield x
        yield -x

    def fail(x):
        if x % 11 == 0:
            raise ValueError(x)
        return x

    stages = [
        Pipe(op, concurrency=threads, output_order="input"),
        Pipe(many, concurrency=threads, output_order="input"),
        Pipe(fail, concurrency=2, output_order="input"),
    ]
    expected = [y for x in range(400) if x % 7 for y in (x, -x) if y % 11]
    assert list(chain(*stages, src=range(400), threads=threads)) == expected


def test_input_order_with_one_slow_item():
    """The others go on, at most concurrency + 2 in flight, and the window behind them."""
    gate = Gate()
    gate.let(*range(1, 1000))
    began = []

    def op(x):
        began.append(x)
        return gate(x)

    pipeline = chain(Pipe(op, concurrency=4, output_order="input"), src=itertools.count(), threads=8)
    with pipeline.auto_stop():
        gate.until_inside(1)
        until(lambda: len(began) >= 4)
        pass_time(0.05)
        assert len(began) <= 4 + 2 + 1
        gate.open()
        assert [pipeline.get_item() for _ in range(100)] == list(range(100))


@pytest.mark.parametrize("order", ["completion", "input"])
@pytest.mark.parametrize(("stages", "concurrency"), [(1, 1), (3, 1), (2, 4)])
def test_look_ahead(order, stages, concurrency):
    """Nobody reads: each stage has its own in hand and two behind it, and then all stands still."""
    src = Watched(itertools.count())

    def op(x):
        pass_time(0.001)
        return x

    chained = [Pipe(op, concurrency=concurrency, output_order=order) for _ in range(stages)]
    pipeline = chain(*chained, src=src, sink=3, threads=16)
    with pipeline.auto_stop():
        until(lambda: src.taken >= 3 + stages * 2)
        taken = -1
        while src.taken != taken:  # on a busy machine it takes its time
            taken = src.taken
            pass_time(0.2)
        assert taken <= 3 + 3 + stages * (2 * concurrency + 2)
        items = [pipeline.get_item() for _ in range(20)]
    assert sorted(items) == items or concurrency > 1


def test_look_ahead_behind_a_slow_source():
    """What a reader that pauses lets gather does not become more with each pause."""

    def slow():
        for i in itertools.count():
            pass_time(0.0005)
            yield i

    src = Watched(slow())
    pipeline = chain(Pipe(same), Pipe(same), src=src, sink=3)
    read = 0
    with pipeline.auto_stop():
        for _ in range(12):
            taken = -1
            while src.taken != taken:
                taken = src.taken
                pass_time(0.05)
            assert taken - read <= 64
            for _ in range(taken - read + 5):
                assert pipeline.get_item() == read
                read += 1


def test_look_ahead_of_quick_stages():
    """Windows grow while they hold quick stages up, within a bound."""
    src = Watched(itertools.count())
    pipeline = chain(Pipe(same), Pipe(same), src=src, sink=3)
    with pipeline.auto_stop():
        assert [pipeline.get_item() for _ in range(20000)] == list(range(20000))
        pass_time(0.05)
        taken = src.taken
        assert taken <= 20000 + 3 + 3 * 1024 + 3 * 256
        pass_time(0.05)
        assert src.taken == taken


def test_slow_readers_do_not_widen_the_windows():
    src = Watched(itertools.count())
    pipeline = chain(Pipe(same), src=src, sink=2)
    with pipeline.auto_stop():
        for i in range(30):
            until(lambda n=i: src.taken >= n + 4)
            pass_time(0.002)
            assert pipeline.get_item() == i
        assert src.taken <= 2 * (30 + 2 + 3 + 4 + 1)  # far from the hundreds of a wide window


def test_a_slow_stage_behind_a_quick_one():
    """What waits for it stays what it was at the beginning, however quick the source is."""
    src, ran = Watched(range(60)), []

    def slow(x):
        ran.append(src.taken - x)
        pass_time(0.001)
        return x

    assert list(chain(Pipe(same), Pipe(slow), src=src)) == list(range(60))
    assert max(ran) <= 2 * (3 + 3 + 4)  # one window may have grown before its cost was known


@pytest.mark.parametrize("concurrency", [1, 4])
def test_all_stages_run_at_once(concurrency):
    """A full pipeline: items in each stage at the same time."""
    gates = [Gate(), Gate(), Gate()]
    gates[0].let(*range(2 * concurrency))
    gates[1].let(*range(concurrency))
    stages = [Pipe(gate, concurrency=concurrency) for gate in gates]
    pipeline = chain(*stages, src=itertools.count(), threads=3 * concurrency)
    with pipeline.auto_stop():
        for gate in gates:
            gate.until_inside(concurrency)
        for gate in gates:
            gate.open()


def test_many_readers():
    pipeline, got, lock = chain(Pipe(same, concurrency=2), src=range(3000)), [], threading.Lock()

    def reader():
        items = read(pipeline)[0]
        with lock:
            got.extend(items)

    readers = [threading.Thread(target=reader) for _ in range(4)]
    pipeline.start()
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()
    assert sorted(got) == list(range(3000))


def test_random_state_is_left_alone():
    """The engine draws nothing from the generator of the program."""
    random.seed(7)
    expected = [random.random() for _ in range(100)]
    random.seed(7)
    stage = Pipe(lambda x: random.random())
    assert list(chain(stage, src=range(100))) == expected
