"""cache_iterator: how many items come from the source, and which come again."""

from __future__ import annotations

import gc
import weakref
from itertools import count, cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.pipeline import cache_iterator


@given(
    n=st.integers(0, 12),
    caches=st.integers(1, 6),
    after=st.none() | st.integers(1, 15),
    stop=st.none() | st.integers(1, 40),
    delete=st.booleans(),
)
def test_against_a_model(n, caches, after, stop, delete):
    source = list(range(n))[: caches if after is None else after]
    kept = source[:caches]
    endless = source + list(islice(cycle(kept), 60)) if kept else source
    want = endless[: 50 if stop is None else stop]
    items = cache_iterator(
        range(n), caches, return_caches_after=after, stop_after=stop, delete_src=delete
    )
    assert list(islice(items, 50)) == want
    if stop is not None or not kept:
        assert list(items) == []


def test_by_example():
    assert list(islice(cache_iterator(count(), 3), 8)) == [0, 1, 2, 0, 1, 2, 0, 1]
    assert list(islice(cache_iterator(count(), 2, return_caches_after=4), 8)) == [0, 1, 2, 3, 0, 1, 0, 1]
    assert list(cache_iterator(count(), 2, stop_after=3)) == [0, 1, 0]
    assert list(cache_iterator([], 2)) == []
    assert list(cache_iterator("ab", 5, stop_after=5)) == ["a", "b", "a", "b", "a"]


def test_no_more_is_taken_than_is_given():
    taken = []

    def source():
        for i in count():
            taken.append(i)
            yield i

    items = cache_iterator(source(), 2, return_caches_after=3)
    assert taken == []
    for n in (1, 2, 3, 3, 3):
        next(items)
        assert len(taken) == n
    list(cache_iterator(source(), 5, stop_after=2))
    assert len(taken) == 5


def test_the_same_objects_come_again():
    items = cache_iterator((object() for _ in range(5)), 2)
    first = list(islice(items, 2))
    assert all(a is b for a, b in zip(first, islice(items, 2), strict=True))


@pytest.mark.parametrize("delete", [True, False])
def test_letting_go_of_the_source(delete):
    class Source:
        def __iter__(self):
            for i in range(100):
                yield i, self

    source = Source()
    gone = weakref.ref(source)
    items = cache_iterator((i for i, _ in source), 2, delete_src=delete)
    del source
    list(islice(items, 2))
    assert gone() is not None
    assert next(items) == 0
    gc.collect()
    assert (gone() is None) == delete
    del items
    gc.collect()
    assert gone() is None


def test_an_error_comes_through():
    def source():
        yield 1
        raise OSError("disk")

    items = cache_iterator(source(), 3)
    assert next(items) == 1
    with pytest.raises(OSError, match="disk"):
        next(items)


@pytest.mark.parametrize("name", ["num_caches", "return_caches_after", "stop_after"])
@pytest.mark.parametrize("value", [0, -1])
def test_numbers_are_checked_at_the_call(name, value):
    with pytest.raises(ValueError, match=f"{name} must be greater than zero, not {value}"):
        cache_iterator([1], **{"num_caches": 1, name: value})
    with pytest.raises(TypeError, match=name):
        cache_iterator([1], **{"num_caches": 1, name: 1.5})
