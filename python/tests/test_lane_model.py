"""Random graphs of Python stages, against what they mean in plain Python."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import config, read
from stoker.pipeline import build_pipeline
from stoker.pipeline.defs import (
    Aggregate,
    Disaggregate,
    Merge,
    PathVariants,
    Pipe,
    PipelineConfig,
    SinkConfig,
)

ORDERS = st.sampled_from(["completion", "input"])


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "stoker.pipeline")


def number(x) -> int:
    """Any item, as a number that does not depend on the order of what is in it."""
    return sum(map(number, x)) if isinstance(x, (list, tuple)) else x


@dataclass(frozen=True)
class Stage:
    """One stage: its config, and what it does to a list of items."""

    kind: str
    k: int = 0
    concurrency: int = 1
    order: str = "completion"
    limit: int = -1
    paths: tuple[tuple[Stage, ...], ...] = ()

    def config(self):
        if self.kind == "aggregate":
            return Aggregate(self.k, drop_last=self.limit >= 0)
        if self.kind == "disaggregate":
            return Disaggregate()
        if self.kind == "paths":
            paths = [[stage.config() for stage in path] for path in self.paths]
            return PathVariants(lambda x: number(x) % len(paths), paths)
        op = {"map": self.map, "skip": self.skip, "fail": self.fail, "many": self.many}[self.kind]
        limit = self.limit if self.kind == "fail" else None
        return Pipe(op, concurrency=self.concurrency, output_order=self.order, max_failures=limit)

    def map(self, x):
        return number(x) * 3 + self.k

    def skip(self, x):
        return x if number(x) % (self.k + 1) else None

    def fail(self, x):
        if number(x) % (self.k + 2) == 0:
            raise ValueError(x)
        return x

    def many(self, x):
        for i in range(number(x) % (self.k + 1)):
            yield None if i == 1 else number(x) + i

    def model(self, items: list) -> tuple[list, bool]:
        """What becomes of the items of one epoch, and whether the stage fails."""
        if self.kind == "aggregate":
            groups = [items[i : i + self.k] for i in range(0, len(items), self.k)]
            return [g for g in groups if len(g) == self.k or self.limit < 0], False
        if self.kind == "disaggregate":
            return [y for x in items if isinstance(x, list) for y in x], False
        if self.kind == "map":
            return [self.map(x) for x in items], False
        if self.kind == "skip":
            return [x for x in items if self.skip(x) is not None], False
        if self.kind == "many":
            return [y for x in items for y in self.many(x) if y is not None], False
        if self.kind == "paths":
            routes = [[x for x in items if number(x) % len(self.paths) == k] for k in range(len(self.paths))]
            return [y for path, xs in zip(self.paths, routes, strict=True) for y in model(path, xs)[0]], False
        out, failed = [], 0
        for x in items:
            try:
                out.append(self.fail(x))
            except ValueError:
                failed += 1
                if failed > self.limit >= 0:
                    return out, True
        return out, False


def model(stages, items):
    fails = False
    for stage in stages:
        items, failed = stage.model(items)
        fails |= failed
    return items, fails


def simple(concurrency, orders=ORDERS):
    return st.builds(
        Stage, st.sampled_from(["map", "skip", "fail", "many"]), st.integers(0, 4), concurrency, orders
    )


def folds():
    return st.builds(
        Stage, st.just("aggregate"), st.integers(1, 5), limit=st.sampled_from([-1, 0])
    ) | st.just(Stage("disaggregate"))


def paths(inner):
    return st.builds(
        Stage,
        st.just("paths"),
        paths=st.lists(st.lists(inner, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3).map(tuple),
    )


SIMPLE = simple(st.integers(1, 5))
ONE = simple(st.just(1))
ITEMS = st.integers(0, 120)
THREADS = st.integers(1, 6)


def build(stages, n, threads, sink, continuous=False):
    cfg = config(*[stage.config() for stage in stages], src=range(n), sink=sink, continuous=continuous)
    return build_pipeline(cfg, num_threads=threads)


def key(x):
    return repr(sorted(map(number, x)) if isinstance(x, list) else x)


@settings(max_examples=150)
@given(st.lists(ONE | folds(), max_size=5), ITEMS, THREADS, st.integers(1, 4))
def test_one_at_a_time(stages, n, threads, sink):
    """Concurrency 1 throughout: the very sequence."""
    items, error = read(build(stages, n, threads, sink))
    assert (items, error) == (model(stages, list(range(n)))[0], None)


@settings(max_examples=100)
@given(
    st.lists(simple(st.integers(1, 5), st.just("input")) | folds(), max_size=5), ITEMS, THREADS
)
def test_input_order(stages, n, threads):
    """Input order throughout: the same sequence at any concurrency."""
    items, error = read(build(stages, n, threads, 3))
    assert (items, error) == (model(stages, list(range(n)))[0], None)


@settings(max_examples=150)
@given(st.lists(SIMPLE | paths(SIMPLE | paths(SIMPLE)), max_size=4), ITEMS, THREADS)
def test_any_order(stages, n, threads):
    """The same items, in whatever order."""
    items, error = read(build(stages, n, threads, 2))
    assert error is None
    assert Counter(map(key, items)) == Counter(map(key, model(stages, list(range(n)))[0]))


@settings(max_examples=80)
@given(st.lists(SIMPLE | paths(SIMPLE), max_size=3), st.integers(0, 40), THREADS, st.integers(1, 6))
def test_epochs(stages, n, threads, epochs):
    """Each epoch by itself, and nothing of one in another."""
    pipeline = build([*stages, Stage("aggregate", 1000)], n, threads, 2, continuous=True)
    expected = sorted(map(key, model(stages, list(range(n)))[0]))
    with pipeline.auto_stop():
        for _ in range(epochs):
            groups = list(pipeline)
            assert len(groups) == bool(expected)
            assert sorted(key(x) for group in groups for x in group) == expected


@settings(max_examples=100)
@given(
    st.lists(ONE, max_size=3),
    st.builds(Stage, st.just("fail"), st.integers(0, 4), limit=st.integers(0, 5)),
    st.lists(ONE | folds(), max_size=3),
    ITEMS,
    THREADS,
)
def test_limits(before, failing, after, n, threads):
    """What came before the failure that is one too many arrives; then the failure."""
    stages = [*before, failing, *after]
    items, error = read(build(stages, n, threads, 2))
    expected, fails = model(stages, list(range(n)))
    assert (items, error is not None) == (expected, fails)
    if fails:
        (inner,) = error.exceptions
        assert f"failed {failing.limit + 1} times, which exceeds" in str(inner)
        assert type(inner.__cause__) is ValueError


@settings(max_examples=80)
@given(st.integers(1, 100), st.sets(st.integers(0, 299)), st.integers(0, 300), st.booleans())
def test_rates(percent, bad, n, shared):
    def op(x):
        if x in bad:
            raise ValueError(x)
        return x

    rate = Fraction(percent, 100)
    stage = Pipe(op, max_failures=None if shared else rate)
    items, error = read(
        build_pipeline(config(stage, src=range(n)), num_threads=2, max_failures=rate if shared else -1)
    )
    failed, end = 0, n
    for i in range(n):
        failed += i in bad
        if i + 1 >= 100 and failed > rate * (i + 1):
            end = i
            break
    assert items == [x for x in range(end) if x not in bad]
    assert (error is not None) == (end < n)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.lists(SIMPLE, max_size=2), ITEMS), min_size=1, max_size=4),
    st.lists(SIMPLE, max_size=2),
    THREADS,
    st.booleans(),
)
def test_merges(inputs, after, threads, continuous):
    upstream = [
        config(*[stage.config() for stage in stages], src=range(n), continuous=continuous)
        for stages, n in inputs
    ]
    pipes = [*[stage.config() for stage in after]]
    pipeline = build_pipeline(PipelineConfig(Merge(upstream), pipes, SinkConfig(2)), num_threads=threads)
    merged = [x for stages, n in inputs for x in model(stages, list(range(n)))[0]]
    expected = Counter(map(key, model(after, merged)[0]))
    with pipeline.auto_stop():
        for _ in range(1 + 2 * continuous):
            assert Counter(map(key, pipeline)) == expected
