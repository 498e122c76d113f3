"""Aggregates, variants, merges and epochs of Python stages."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

import pytest

from lanes import Gate, Watched, chain, config, read, same
from stoker.pipeline import PipelineBuilder, PipelineFailure, build_pipeline
from stoker.pipeline.defs import (
    Aggregate,
    Aggregator,
    Collate,
    Disaggregate,
    Merge,
    PathVariants,
    Pipe,
    PipelineConfig,
    SinkConfig,
)
from support import pass_time, until


def merge(*configs, pipes=(), threads=4, **options):
    return build_pipeline(
        PipelineConfig(Merge(configs), pipes, SinkConfig(3)), num_threads=threads, **options
    )


class Sums(Aggregator):
    """Gives the sum whenever it passes 10."""

    def __init__(self):
        self.sum = 0
        self.threads = set()

    def accumulate(self, item):
        self.threads.add(threading.current_thread())
        self.sum += item
        return self.flush() if self.sum > 10 else None

    def flush(self):
        total, self.sum = self.sum, 0
        return total or None


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [1, 3, 10, 11])
def test_aggregate(n, drop_last):
    expected = [list(range(i, min(i + n, 10))) for i in range(0, 10, n)]
    if drop_last:
        expected = [group for group in expected if len(group) == n]
    assert list(chain(Aggregate(n, drop_last=drop_last))) == expected
    assert list(chain(Aggregate(Collate(n), drop_last=drop_last))) == expected


def test_aggregate_of_nothing():
    assert list(chain(Aggregate(3), src=[])) == []
    assert list(chain(Pipe(lambda x: None), Aggregate(3))) == []


def test_aggregator():
    sums = Sums()
    assert list(chain(Aggregate(sums), src=range(10))) == [15, 13, 17]
    assert all(thread is not threading.current_thread() for thread in sums.threads)
    assert list(chain(Aggregate(Sums()), src=range(8))) == [15, 13]
    assert list(chain(Aggregate(Sums(), drop_last=True), src=range(9))) == [15, 13]
    assert list(chain(Aggregate(Sums()), src=range(9))) == [15, 13, 8]


def test_an_aggregate_over_failures_and_skips():
    def op(x):
        if x % 3 == 0:
            raise ValueError
        return x if x % 3 == 1 else None

    assert list(chain(Pipe(op), Aggregate(2), src=range(15))) == [[1, 4], [7, 10], [13]]


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_aggregate_begins_again_with_each_epoch(drop_last):
    pipeline = chain(Aggregate(4, drop_last=drop_last), src=range(10), continuous=True)
    expected = [[0, 1, 2, 3], [4, 5, 6, 7]] + ([] if drop_last else [[8, 9]])
    with pipeline.auto_stop():
        for _ in range(4):
            assert list(pipeline) == expected
    sums = chain(Aggregate(Sums(), drop_last=drop_last), src=range(9), continuous=True)
    with sums.auto_stop():
        for _ in range(3):
            assert list(sums) == [15, 13] + ([] if drop_last else [8])


def test_aggregate_takes_what_arrives():
    """A group that is full does not wait for more."""
    go = threading.Semaphore(0)

    def src():
        for i in itertools.count():
            assert go.acquire(timeout=60)
            yield i

    pipeline = chain(Aggregate(2), src=src())
    pipeline.start()
    try:
        go.release(3)
        assert pipeline.get_item(timeout=30) == [0, 1]
        with pytest.raises(TimeoutError):
            pipeline.get_item(timeout=0.02)
        go.release()
        assert pipeline.get_item(timeout=30) == [2, 3]
    finally:
        go.release(1000)
        pipeline.stop()


def test_disaggregate():
    assert list(chain(Disaggregate(), src=[[1, 2], [], [3], (4, 5)])) == [1, 2, 3, 4, 5]
    assert list(chain(Aggregate(3), Disaggregate(), Aggregate(4), src=range(9))) == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8],
    ]  # fmt: skip
    items, error = read(chain(Disaggregate(), src=[[1], 2, [3]]))
    assert (items, error) == ([1, 3], None)


def test_paths():
    paths = PathVariants(lambda x: x % 3, [[Pipe(lambda x, k=k: (k, x))] for k in range(3)])
    assert sorted(chain(paths, src=range(30))) == sorted((x % 3, x) for x in range(30))


def test_order_within_a_path():
    paths = PathVariants(lambda x: x % 2, [[Pipe(same)], [Pipe(same), Pipe(same)]])
    items = list(chain(paths, src=range(500)))
    for k in (0, 1):
        assert [x for x in items if x % 2 == k] == list(range(k, 500, 2))


def test_routers():
    class Router:
        def __call__(self, x):
            return int(x > 4)

    for router in (Router(), Router().__call__, {x: int(x > 4) for x in range(10)}.get, lambda x: x > 4):
        items = list(chain(PathVariants(router, [[Pipe(str)], [Pipe(same)]])))
        assert Counter(items) == Counter([*map(str, range(5)), *range(5, 10)]), router


@pytest.mark.parametrize("answer", [1.0, None, "1"])
def test_routers_that_give_no_index(answer):
    items, error = read(chain(PathVariants(lambda x: answer, [[Pipe(str)], [Pipe(same)]])))
    assert items == [] and type(error.exceptions[0]) is TypeError
    assert "Router returned" in str(error.exceptions[0])


def test_batched_routers_may_give_bools():
    paths = PathVariants(lambda items: [x % 2 == 0 for x in items], [[Pipe(same)], [Pipe(same)]], batched=True)
    assert list(chain(paths, src=[[1, 2, 3], [4]])) == [[1, 3, 2], [4]]


def parity(items):
    return [x % 2 for x in items]


INNER = PathVariants(
    lambda items: [x // 2 % 2 for x in items], [[Pipe(same)], [Pipe(lambda items: [-x for x in items])]], batched=True
)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ([INNER], [[0, -2, 1, 3], [4, -6, 5, 7], [8, -10, 9, 11]]),
        ([Disaggregate(), Pipe(lambda x: [x])], [[0, 2, 1, 3], [4, 6, 5, 7], [8, 10, 9, 11]]),
        ([Disaggregate(), Pipe(same), Aggregate(2)], [[0, 2, 1, 3], [4, 6, 5, 7], [8, 10, 9, 11]]),
        ([Disaggregate(), Aggregate(4)], [[1, 3], [0, 2, 4, 6, 5, 7], [9, 11], [8, 10]]),
        ([Aggregate(2)], [[1, 3], [[0, 2], [4, 6], 5, 7], [9, 11], [[8, 10]]]),
    ],
)
@pytest.mark.parametrize("epochs", [1, 2])
def test_batched_paths_that_hold_back(path, want, epochs):
    """What belongs to one batch is one list; what a stage holds back comes with a later batch, or last."""
    paths = PathVariants(parity, [path, [Pipe(same)]], batched=True)
    src = [list(range(i, i + 4)) for i in (0, 4, 8)]
    if epochs == 1:
        assert list(chain(paths, src=src)) == want
        return
    pipeline = PipelineBuilder().add_source(src, continuous=True)
    pipeline = pipeline.path_variants(parity, [path, [Pipe(same)]], batched=True).add_sink(3).build(num_threads=2)
    with pipeline.auto_stop():
        for _ in range(epochs):
            assert list(pipeline) == want


@pytest.mark.parametrize("index", [2, -1, 10**30])
def test_an_index_out_of_range(index):
    paths = PathVariants(lambda x: index if x == 4 else 0, [[Pipe(same)], [Pipe(same)]])
    items, error = read(chain(paths))
    assert items == [0, 1, 2, 3]
    assert type(error.exceptions[0]) is IndexError
    assert str(error.exceptions[0]).startswith(f"Router returned index {index}")


def test_paths_with_aggregates_and_paths():
    nested = PathVariants(lambda x: x % 4 // 2, [[Pipe(lambda x: -x)], [Aggregate(2), Disaggregate()]])
    paths = PathVariants(lambda x: x % 2, [[nested], [Aggregate(4)]])
    items = list(chain(paths, src=range(20)))
    groups = [x for x in items if isinstance(x, list)]
    assert groups == [[1, 3, 5, 7], [9, 11, 13, 15], [17, 19]]
    assert sorted(x for x in items if not isinstance(x, list)) == sorted(
        -x if x % 4 == 0 else x for x in range(0, 20, 2)
    )


def test_a_full_path_does_not_hold_up_the_others():
    """Up to 32 items wait for it while those behind them go past."""
    gate = Gate()
    src = [*["slow"] * 20, *range(50)]
    paths = PathVariants(lambda x: int(x == "slow"), [[Pipe(same)], [Pipe(gate)]])
    pipeline = chain(paths, src=src, sink=100)
    with pipeline.auto_stop():
        assert [pipeline.get_item() for _ in range(50)] == list(range(50))
        gate.open()
        assert list(pipeline) == ["slow"] * 20


def test_the_look_ahead_is_bounded():
    gate, src = Gate(), Watched(pass_time(0.0005) or 1 for _ in itertools.count())  # no window grows
    paths = PathVariants(lambda x: x, [[Pipe(same)], [Pipe(gate)]])
    pipeline = chain(paths, src=src)
    with pipeline.auto_stop():
        gate.until_inside(1)
        until(lambda: src.taken >= 32)
        pass_time(0.05)
        assert src.taken <= 32 + 15
        gate.open()


def test_paths_and_epochs():
    paths = PathVariants(lambda x: x % 2, [[Pipe(same, concurrency=3)], [Aggregate(4)]])
    pipeline = chain(paths, src=range(10), continuous=True)
    with pipeline.auto_stop():
        for _ in range(5):
            items = list(pipeline)
            assert sorted(x for x in items if isinstance(x, int)) == [0, 2, 4, 6, 8]
            assert [x for x in items if isinstance(x, list)] == [[1, 3, 5, 7], [9]]


def test_names_of_the_stages_of_paths():
    paths = PathVariants(lambda x: 0, [[Pipe(same)], [Pipe(str)]])
    pipeline = chain(paths, Pipe(same, name="last"), src=range(3))
    list(pipeline)
    names = [stage["name"] for stage in pipeline.stats()["stages"]]
    assert "path_variants" in names and names.count("same") == 1 and "last" in names


def test_merge():
    items = list(merge(config(src=range(5)), config(src=[]), config(Pipe(str), src=range(100, 103))))
    assert [x for x in items if isinstance(x, int)] == list(range(5))
    assert [x for x in items if isinstance(x, str)] == ["100", "101", "102"]


def test_merge_in_order_of_arrival():
    """An input that has nothing yet holds nobody up."""
    gate = Gate()
    pipeline = merge(config(Pipe(gate), src=["late"]), config(src=range(50)), pipes=[Pipe(same)])
    with pipeline.auto_stop():
        assert [pipeline.get_item() for _ in range(50)] == list(range(50))
        gate.open()
        assert list(pipeline) == ["late"]


def test_merge_of_merges():
    inner = PipelineConfig(Merge([config(src=range(3)), config(src=range(3, 6))]), [], SinkConfig(2))
    assert sorted(merge(inner, config(src=range(6, 9)))) == list(range(9))


def test_merge_waits_for_all_at_the_end_of_an_epoch():
    short, long = config(src=range(3), continuous=True), config(src=range(100, 120), continuous=True)
    pipeline = merge(short, long, pipes=[Aggregate(50)])
    with pipeline.auto_stop():
        for _ in range(4):
            (items,) = list(pipeline)
            assert sorted(items) == [0, 1, 2, *range(100, 120)]


def test_merge_of_nothing_and_of_both_kinds():
    with pytest.raises(ValueError, match="at least one upstream pipeline"):
        Merge([])
    with pytest.raises(ValueError, match="Mixed continuous mode"):
        merge(config(src=range(3), continuous=True), config(src=range(3)))


def test_epochs():
    pipeline = chain(Pipe(same, concurrency=4), src=range(7), continuous=True)
    with pipeline.auto_stop():
        for _ in range(5):
            assert sorted(pipeline) == list(range(7))
        for _ in range(7):
            pipeline.get_item()
        for _ in range(3):
            with pytest.raises(EOFError, match=r"Reached the end of the pipeline\."):
                pipeline.get_item()
            assert len({pipeline.get_item() for _ in range(7)}) == 7


def test_a_break_in_an_epoch_loses_nothing():
    pipeline = chain(Pipe(same), src=range(6), continuous=True)
    with pipeline.auto_stop():
        for item in pipeline:
            if item == 2:
                break
        assert list(pipeline) == [3, 4, 5]
        assert list(pipeline) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_no_stage_runs_two_epochs_at_once(concurrency):
    lock, epochs, mixed = threading.Lock(), Counter(), []

    class Source:
        epoch = 0

        def __iter__(self):
            self.epoch += 1
            return iter([(self.epoch, i) for i in range(9)])

    def op(x):
        with lock:
            epochs[x[0]] += 1
            mixed.append(len(+epochs))
        pass_time(0.0002)
        with lock:
            epochs[x[0]] -= 1
        return x

    pipeline = chain(Pipe(op, concurrency=concurrency), src=Source(), continuous=True, sink=100)
    with pipeline.auto_stop():
        for epoch in range(1, 20):
            assert sorted(pipeline) == [(epoch, i) for i in range(9)]
    assert set(mixed) == {1}


def test_epochs_close_their_iterators():
    closed = []

    class Source:
        def __iter__(self):
            src = Watched(range(4))
            closed.append(src.closed)
            return src

    pipeline = chain(src=Source(), continuous=True)
    with pipeline.auto_stop():
        for _ in range(4):
            assert list(pipeline) == [0, 1, 2, 3]
    assert len(closed) >= 4 and all(len(c) == 1 for c in closed)


def test_a_source_that_is_its_own_iterator_is_closed_at_the_end():
    class Own(Watched):
        def __next__(self):
            assert not self.closed
            self.taken += 1
            if self.taken % 4 == 0:
                raise StopIteration
            return self.taken

    src = Own(())
    pipeline = chain(src=src, continuous=True)
    with pipeline.auto_stop():
        assert [list(pipeline) for _ in range(3)] == [[1, 2, 3], [5, 6, 7], [9, 10, 11]]
        assert not src.closed
    assert len(src.closed) == 1


def test_a_source_that_is_its_own_iterator_is_closed_between_passes():
    class Own(Watched):
        passes = 0

        def __iter__(self):
            self.passes += 1
            if self.passes > 1:
                raise ValueError("no second pass")
            return self

    src = Own(range(3))
    pipeline = chain(src=src, continuous=True)
    with pytest.raises(PipelineFailure), pipeline.auto_stop():
        for _ in range(2):
            list(pipeline)
    assert len(src.closed) == 1


def test_empty_epochs():
    pipeline = chain(Pipe(same), src=[], continuous=True)
    with pipeline.auto_stop():
        assert [list(pipeline) for _ in range(5)] == [[]] * 5


def test_one_builder_many_pipelines():
    builder = PipelineBuilder().add_source(range(5)).pipe(same).aggregate(2).add_sink()
    pipelines = [builder.build(num_threads=1) for _ in range(3)]
    assert [list(p) for p in pipelines] == [[[0, 1], [2, 3], [4]]] * 3
