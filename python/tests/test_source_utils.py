"""Sources made of other sources."""

from __future__ import annotations

import gc
import math
import pickle
import random
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.source import DistributedRandomSampler, SizedIterable
from stoker.source.utils import MergeIterator, embed_shuffle, repeat_source

NAN, INF = math.nan, math.inf


class Numbers:
    """0 to n - 1; writes down what was asked of it.  Pickles."""

    def __init__(self, n=3):
        self.n = n
        self.log = []

    def shuffle(self, seed):
        self.log.append(seed)

    def __iter__(self):
        self.log.append("pass")
        return iter(range(self.n))


class SizedNumbers(Numbers):
    def __len__(self):
        return self.n


class Closing:
    """An iterable whose iterators say when they are closed."""

    def __init__(self, n):
        self.n = n
        self.closed = 0

    def __iter__(self):
        try:
            yield from range(self.n)
        finally:
            self.closed += 1


# MergeIterator


def model_in_turn(lists, stop_after):
    """Plain rounds."""
    out, left = [], [list(items) for items in lists]
    live = list(range(len(left)))
    while live:
        for i in list(live):
            if left[i]:
                out.append(left[i].pop(0))
                if len(out) == stop_after:
                    return out
            elif stop_after == -1:
                return out
            else:
                live.remove(i)
    return out


LISTS = st.lists(st.lists(st.integers(), max_size=6), min_size=1, max_size=5)


@given(lists=LISTS, stop_after=st.integers(-1, 20))
def test_merging_in_turn(lists, stop_after):
    merged = MergeIterator(lists, stop_after=stop_after)
    want = model_in_turn(lists, stop_after)
    assert list(merged) == want and list(merged) == want
    assert merged.iterables == lists and merged.weights is None


def test_merging_in_turn_by_example():
    lists = [[1, 2, 3], "a", (10, 20)]
    assert list(MergeIterator(lists)) == [1, "a", 10, 2, 20, 3]
    assert list(MergeIterator(lists, stop_after=4)) == [1, "a", 10, 2]
    assert list(MergeIterator(lists, stop_after=-1)) == [1, "a", 10, 2]
    assert list(MergeIterator(lists, stop_after=99)) == [1, "a", 10, 2, 20, 3]


WEIGHTS = st.floats(min_value=0, allow_nan=False, allow_infinity=False, allow_subnormal=True)


@given(
    pairs=st.lists(st.tuples(st.integers(0, 9), WEIGHTS), min_size=1, max_size=5),
    stop_after=st.integers(-1, 20),
    seed=st.integers(0, 5),
)
def test_merging_by_weights(pairs, stop_after, seed):
    weights = [weight for _, weight in pairs]
    if not any(weights):
        weights[0] = 5e-324
    lists = [[(i, k) for k in range(n)] for i, (n, _) in enumerate(pairs)]
    merged = MergeIterator(lists, weights=weights, stop_after=stop_after, seed=seed)
    used = [i for i, weight in enumerate(weights) if weight > 0]
    assert merged.iterables == [lists[i] for i in used]
    assert merged.weights == [weights[i] for i in used]
    assert all(type(weight) is float for weight in merged.weights)

    items = list(merged)
    assert list(merged) == items
    by_source = {i: [k for j, k in items if j == i] for i in range(len(lists))}
    assert all(got == list(range(len(got))) for got in by_source.values()), "each keeps its order"
    available = sum(len(lists[i]) for i in used)
    if stop_after == 0:
        assert len(items) == available
    elif stop_after > 0:
        assert len(items) == min(stop_after, available)
    else:
        assert any(len(by_source[i]) == len(lists[i]) for i in used)
    assert all(not by_source[i] for i in range(len(lists)) if i not in used)


def drawn(weights, count, **options):
    """How often each endless source was drawn."""
    sources = [repeat_source([i]) for i in range(len(weights))]
    return Counter(MergeIterator(sources, weights=weights, stop_after=count, **options))


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ([1, 1], [0.5, 0.5]),
        ([0.1, 0.3, 0.6], [0.1, 0.3, 0.6]),
        ([1e-320, 3e-320], [0.25, 0.75]),
        ([1e308, 1.5e308], [0.4, 0.6]),
        ([5e-324, 0, 1e308], [0, 0, 1]),
        ([7], [1]),
    ],
)
def test_weights_decide_how_often(weights, shares):
    """Numbers of any size; 5 standard deviations, and a hundredth of a percent for subnormals."""
    count = 20_000
    got = drawn(weights, count)
    for i, p in enumerate(shares):
        assert abs(got[i] - count * p) <= 5 * math.sqrt(count * p * (1 - p)) + 1e-4 * count * (0 < p < 1)


def test_seeds_differ():
    merged = [list(MergeIterator(["a" * 50, "b" * 50], weights=[1, 1], seed=s)) for s in (0, 0, 1)]
    assert merged[0] == merged[1] != merged[2]


def test_an_exhausted_source_leaves_the_draw():
    """The others then share as their weights say."""
    sources = [[0] * 5, repeat_source([1]), repeat_source([2])]
    got = Counter(MergeIterator(sources, weights=[1e6, 1, 3], stop_after=20_005))
    assert got[0] == 5
    assert abs(got[1] - 5000) < 5 * math.sqrt(20_000 * 0.25 * 0.75)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1, -1], "must not be negative"),
        ([1, NAN], r"weights\[1\] is nan"),
        ([INF, 1], r"must be positive and finite.*weights\[0\] is inf"),
        ([0, 0], "must be positive and finite: all are 0"),
        ([0.0, -0.0], "all are 0"),
        ([1], "2 numbers"),
        ([1, 1, 1], "2 numbers"),
    ],
)
def test_bad_weights(weights, text):
    with pytest.raises(ValueError, match=text):
        MergeIterator([[1], [2]], weights=weights)


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="iterables must not be empty"):
        MergeIterator([])
    with pytest.raises(ValueError, match="stop_after"):
        MergeIterator([[1]], stop_after=-2)
    with pytest.raises(TypeError, match="seed"):
        MergeIterator([[1]], seed=1.5)


@pytest.mark.parametrize("weights", [None, [1, 1]])
def test_items_are_drawn_when_they_are_asked_for(weights):
    taken = []

    def source(name):
        for i in range(9):
            taken.append(name)
            yield i

    merged = iter(MergeIterator([source("a"), source("b")], weights=weights))
    assert taken == []
    for n in range(1, 6):
        next(merged)
        assert len(taken) == n


@pytest.mark.parametrize("weights", [None, [1, 1]])
def test_iterators_of_a_pass_are_closed_with_it(weights):
    sources = [Closing(9), Closing(9)]
    running = iter(MergeIterator(sources, weights=weights))
    list(islice(running, 6))
    assert [s.closed for s in sources] == [0, 0]
    running.close()
    assert [s.closed for s in sources] == [1, 1]
    list(MergeIterator(sources, weights=weights, stop_after=6))
    assert [s.closed for s in sources] == [2, 2]


def test_iterators_that_were_given_stay_open():
    sources = [(c for c in "abc"), (c for c in "xyz")]
    merged = MergeIterator(sources, stop_after=2)
    assert [list(merged), list(merged), list(merged), list(merged)] == [["a", "x"], ["b", "y"], ["c", "z"], []]


def test_an_error_of_a_source_comes_through():
    def bad():
        yield 1
        raise OSError("disk")

    good = Closing(9)
    with pytest.raises(OSError, match="disk"):
        list(MergeIterator([good, bad()]))
    assert good.closed == 1


def test_merging_ignores_the_global_generator():
    def draw():
        return list(MergeIterator(["a" * 9, "b" * 9], weights=[1, 2]))

    random.seed(1)
    state, first = random.getstate(), draw()
    assert random.getstate() == state
    random.seed(2)
    assert draw() == first


def test_merging_pickles():
    merged = MergeIterator([[1, 2], [3]], weights=[1, 2], stop_after=2, seed=4)
    assert list(pickle.loads(pickle.dumps(merged))) == list(merged)


# embed_shuffle


@pytest.mark.parametrize("epoch", [0, 7])
def test_embed_shuffle(epoch):
    src = Numbers()
    embedded = embed_shuffle(src, epoch=epoch)
    assert embedded.src is src and src.log == []
    for _ in range(3):
        assert list(embedded) == [0, 1, 2]
    assert src.log == [epoch, "pass", epoch + 1, "pass", epoch + 2, "pass"]
    assert embedded.epoch == epoch + 3


@pytest.mark.parametrize("epoch", [0, 7])
def test_shuffle_last(epoch):
    src = Numbers()
    embedded = embed_shuffle(src, shuffle_last=True, epoch=epoch)
    running = iter(embedded)
    assert [next(running) for _ in range(3)] == [0, 1, 2] and src.log == ["pass"]
    assert list(running) == [] and src.log == ["pass", epoch]
    list(embedded)
    assert src.log == ["pass", epoch, "pass", epoch + 1]


@pytest.mark.parametrize("close", [True, False])
def test_shuffle_last_after_half_a_pass(close):
    src = Numbers()
    embedded = embed_shuffle(src, shuffle_last=True)
    running = iter(embedded)
    next(running)
    assert src.log == ["pass"]
    if close:
        running.close()
    else:
        del running
        gc.collect()
    assert src.log == ["pass", 0]


def test_embed_shuffle_has_the_length_if_the_source_has():
    assert len(embed_shuffle(SizedNumbers(5))) == 5
    assert not hasattr(embed_shuffle(Numbers(5)), "__len__")
    assert isinstance(embed_shuffle(SizedNumbers()), SizedIterable)
    assert not isinstance(embed_shuffle(Numbers()), SizedIterable)


def test_embed_shuffle_over_a_sampler():
    def sampler(seed):
        return DistributedRandomSampler(50, rank=0, world_size=2, seed=seed)

    embedded = embed_shuffle(sampler(99), epoch=3)
    assert [list(embedded), list(embedded)] == [list(sampler(3)), list(sampler(4))]


@pytest.mark.parametrize("last", [True, False])
def test_embed_shuffle_pickles(last):
    embedded = embed_shuffle(SizedNumbers(), shuffle_last=last, epoch=2)
    list(embedded)
    again = pickle.loads(pickle.dumps(embedded))
    list(again)
    assert again.epoch == 4 and again.src.log[-1] == ("pass" if not last else 3)


def test_embed_shuffle_needs_shuffle():
    with pytest.raises(TypeError, match="shuffle, unlike list"):
        embed_shuffle([1])
    with pytest.raises(ValueError, match="epoch"):
        embed_shuffle(Numbers(), epoch=-1)


# repeat_source


@given(n=st.integers(1, 5), epoch=st.integers(0, 3), count=st.integers(1, 30))
def test_repeating(n, epoch, count):
    src = Numbers(n)
    repeated = repeat_source(src, epoch)
    assert iter(repeated) is repeated and repeated.src is src
    assert repeated.epoch == epoch and src.log == []
    assert list(islice(repeated, count)) == [i % n for i in range(count)]
    passes = (count - 1) // n + 1
    want = [event for e in range(epoch, epoch + passes) for event in (e, "pass")]
    assert src.log == want
    assert repeated.epoch == epoch, "that of the first pass"


def test_repeating_without_shuffle():
    assert "".join(islice(repeat_source("abc"), 8)) == "abcabcab"


def test_repeating_nothing_ends():
    for src in ([], Numbers(0)):
        assert list(repeat_source(src)) == []
    assert list(repeat_source(iter("ab"))) == ["a", "b"]


def test_repeating_pickles_before_it_begins():
    repeated = repeat_source(Numbers(2), epoch=5)
    again = pickle.loads(pickle.dumps(repeated))
    assert list(islice(again, 3)) == [0, 1, 0] and again.src.log == [5, "pass", 6, "pass"]
    next(repeated)
    with pytest.raises(TypeError, match="cannot pickle a repeated source"):
        pickle.dumps(repeated)


def test_repeating_goes_on_after_an_error_of_shuffle():
    class Bad(Numbers):
        def shuffle(self, seed):
            super().shuffle(seed)
            if self.log.count(1) == 1:
                raise OSError("once")

    repeated = repeat_source(Bad(1))
    assert next(repeated) == 0
    with pytest.raises(OSError, match="once"):
        next(repeated)
    assert next(repeated) == 0 and next(repeated) == 0
    assert repeated.src.log == [0, "pass", 1, 1, "pass", 2, "pass"]
