"""Batched path_variants: what each batch became on its paths comes back as one list, in their order."""

import pytest

from lanes import chain
from stoker.pipeline.defs import Aggregate, PathVariants, Pipe


AROUND = [{}]  # hooks and queues around stages


def parity(items):
    return [x % 2 for x in items]


def same(items):
    return items


def paths(even, odd):
    return PathVariants(parity, [even, odd], batched=True)


def each(items):
    for item in items:
        yield [item]


def joined(parts):
    return sum(parts, [])


BATCHES = [list(range(i, i + 4)) for i in range(0, 200, 4)]
WANT = [[i, i + 2, i + 1, i + 3] for i in range(0, 200, 4)]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("op", [each])
def test_many_results_on_the_last_path_are_one_list(op, around):
    stage = paths([Pipe(same)], [Pipe(op)])
    assert list(chain(stage, src=[[0, 1, 3], [2], [5, 7, 9]], **around)) == [[0, 1, 3], [2], [5, 7, 9]]


@pytest.mark.parametrize("around", AROUND)
def test_paths_within_say_where_their_batches_end(around):
    """Also those whose last path gives several results of a batch, or none."""
    inner = PathVariants(lambda items: [x // 2 % 2 for x in items], [[Pipe(same)], [Pipe(each)]], batched=True)
    dropping = PathVariants(lambda items: [x // 2 % 2 for x in items], [[Pipe(same)], [Pipe(lambda _: None)]], batched=True)
    assert list(chain(paths([inner, Pipe(list)], [inner]), src=BATCHES, **around)) == WANT
    want = [[i, i + 1] for i in range(0, 200, 4)]
    assert list(chain(paths([dropping], [dropping, Pipe(list)]), src=BATCHES, **around)) == want


def test_nothing_is_no_list():
    assert list(chain(paths([Pipe(same)], [Pipe(lambda items: None)]), src=[[1], [2], [3]])) == [[2]]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("path", [0, 1])
@pytest.mark.parametrize("continuous", [False, True])
def test_aggregates_give_the_rest_at_the_end_of_the_epoch(continuous, path, around):
    stages = [[Aggregate(3), Pipe(joined)], [Pipe(same)]]
    src = [[i, i + 1] for i in range(0, 10, 2)]
    pipeline = chain(paths(*stages[:: -1 if path else 1]), src=src, continuous=continuous, **around)
    want = [[[1], [3], [0, 2, 4, 5], [7], [9], [6, 8]], [[0], [2], [4, 1, 3, 5], [6], [8], [7, 9]]][path]
    with pipeline.auto_stop():
        for _ in range(3 if continuous else 1):
            assert list(pipeline.get_iterator(timeout=60)) == want
