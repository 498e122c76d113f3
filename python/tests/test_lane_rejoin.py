"""Input order throughout: through paths and merges, too."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from lanes import Gate, chain, config, read, same
from stoker.pipeline import AsyncQueue, TaskHook, build_pipeline
from stoker.pipeline.defs import Disaggregate, Merge, PathVariants, Pipe, PipelineConfig, SinkConfig
from support import pass_time

IN_ORDER = {"output_order": "input"}
NUM = 48


class Nothing(TaskHook):
    @asynccontextmanager
    async def task_hook(self, input_item=None):
        yield


class Queue(AsyncQueue):
    """One of the user's: it stands between the stages."""


def uneven(x):
    pass_time(0.0005 * (hash(x) % 3))
    return x


def twice(x):
    yield x
    if x % 3:
        pass_time(0.0005)
        yield -x


def nothing_of_some(x):
    if x % 4:
        yield x


def breaks(x):
    yield x
    if x % 5 == 0:
        raise ValueError(x)
    yield -x


def skips(x):
    return None if x % 5 == 0 else x


def parity(x):
    return x % 2


def pipe(op, concurrency=1):
    return Pipe(op, concurrency=concurrency, **IN_ORDER)


def in_model(op):
    """What a stage makes of one item."""

    def results(x):
        try:
            made = op(x)
            if hasattr(made, "__next__"):
                yield from made
            elif made is not None:
                yield made
        except ValueError:
            pass

    return results


def through(ops, items):
    for op in ops:
        items = [y for x in items for y in in_model(op)(x)]
    return items


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize(
    "ops",
    [
        [uneven],
        [twice],
        [nothing_of_some],
        [breaks],
        [skips, twice],
        [twice, skips],
        [twice, twice],
        [twice, nothing_of_some, uneven],
        [breaks, uneven, twice],
    ],
    ids=lambda ops: "-".join(op.__name__ for op in ops),
)
def test_paths_rejoin_in_input_order(ops, concurrency):
    paths = [[pipe(op, concurrency) for op in ops], [pipe(same)]]
    expected = [y for x in range(NUM) for y in (through(ops, [x]) if x % 2 == 0 else [x])]
    for threads in (1, 4):
        assert list(chain(PathVariants(parity, paths), src=range(NUM), threads=threads)) == expected


def nested(inner):
    """Each fourth item goes through `inner`, which has the results of paths to wait for."""
    deep = PathVariants(lambda x: x // 2 % 2, [[pipe(op, 2) for op in inner], [pipe(same)]])
    return PathVariants(parity, [[pipe(skips), deep, pipe(same)], [pipe(same)]])


@pytest.mark.parametrize("inner", [[uneven], [twice], [twice, nothing_of_some]])
def test_paths_within_paths(inner):
    expected = []
    for x in range(NUM):
        if x % 2 or x // 2 % 2:
            expected += [x] if x % 2 else through([skips], [x])
        else:
            expected += through([skips, *inner], [x])
    assert list(chain(nested(inner), src=range(NUM))) == expected


def test_paths_behind_what_expands():
    """An item that a path has made is one of those that the path within it is asked for."""
    deep = PathVariants(lambda x: int(x > 0), [[pipe(same)], [pipe(twice), pipe(uneven)]])
    stages = PathVariants(parity, [[pipe(twice, 2), deep], [pipe(uneven)]])
    expected = []
    for x in range(NUM):
        if x % 2:
            expected.append(x)
            continue
        for y in twice(x):
            expected += list(twice(y)) if y > 0 else [y]
    assert list(chain(stages, src=range(NUM))) == expected


async def late(x):
    await asyncio.sleep(0.0005 * (x * 7 % 4))
    return x


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"task_hook_factory": lambda info: [Nothing()]}, {"queue_class": Queue}],
    ids=["plain", "hooks", "queues"],
)
def test_what_was_skipped_does_not_overtake_what_the_loop_has(options, first, threads):
    paths = [[pipe(skips, first), pipe(late, 4)], [pipe(same)]]
    pipeline = chain(
        PathVariants(parity, paths), src=range(NUM), continuous=True, threads=threads, **options
    )
    expected = [x for x in range(NUM) if x % 2 or skips(x) is not None]
    with pipeline.auto_stop():
        for _ in range(2):
            assert list(pipeline) == expected


def test_disaggregate_in_paths():
    paths = [[Disaggregate(), pipe(uneven, 2)], [pipe(list), Disaggregate()]]
    lists = [list(range(n, n + n % 4)) for n in range(NUM)]
    stages = PathVariants(lambda x: len(x) % 2, paths)
    assert list(chain(stages, src=lists)) == [x for each in lists for x in each]


def test_epochs_through_paths_that_expand():
    stages = PathVariants(parity, [[pipe(twice)], [pipe(uneven)]])
    expected = [y for x in range(9) for y in (twice(x) if x % 2 == 0 else [x])]
    pipeline = chain(stages, src=range(9), continuous=True)
    with pipeline.auto_stop():
        for _ in range(3):
            assert list(pipeline) == expected


def test_a_failure_in_a_path_that_expands_comes_behind_what_was_before_it():
    def fails(x):
        yield x
        if x == 8:
            raise ValueError(x)

    strict = Pipe(fails, on_error="raise", **IN_ORDER)
    items, failure = read(chain(PathVariants(parity, [[strict], [pipe(uneven)]]), src=range(NUM)))
    assert items == list(range(9))
    assert [str(error) for error in failure.exceptions] == ["8"]


def merge(*upstreams, **options):
    return build_pipeline(PipelineConfig(Merge(upstreams), [pipe(same)], SinkConfig(3)), num_threads=4, **options)


TAKES_TURNS = [y for x in range(5) for y in (x, x + 100)]


@pytest.mark.parametrize("hooks", [None, lambda info: [Nothing()]], ids=["plain", "hooks"])
@pytest.mark.parametrize("second", [[], [pipe(same)], [PathVariants(lambda x: 0, [[pipe(same)]])]])
def test_merges_take_turns(second, hooks):
    """An input that is late is waited for."""
    gate = Gate()
    pipeline = merge(
        config(pipe(gate), src=range(5)), config(*second, src=range(100, 105)), task_hook_factory=hooks
    )
    with pipeline.auto_stop():
        gate.until_inside(1)
        with pytest.raises(TimeoutError):
            pipeline.get_item(timeout=0.05)
        gate.open()
        assert list(pipeline) == TAKES_TURNS


def test_merges_of_merges_take_turns():
    gate = Gate()
    inner = PipelineConfig(Merge([config(pipe(gate), src=range(5)), config(src=[])]), [], SinkConfig(1))
    pipeline = merge(inner, config(src=range(100, 105)))
    with pipeline.auto_stop():
        with pytest.raises(TimeoutError):
            pipeline.get_item(timeout=0.05)
        gate.open()
        assert list(pipeline) == TAKES_TURNS


@pytest.mark.parametrize("hooks", [None, lambda info: [Nothing()]], ids=["plain", "hooks"])
def test_a_stage_in_order_of_completion_makes_it_order_of_arrival(hooks):
    gate = Gate()
    late = config(PathVariants(lambda x: 0, [[Pipe(gate)]]), src=range(5))
    pipeline = merge(late, config(pipe(same), src=range(100, 105)), task_hook_factory=hooks)
    with pipeline.auto_stop():
        assert [pipeline.get_item() for _ in range(5)] == list(range(100, 105))
        gate.open()
        assert list(pipeline) == list(range(5))


def test_epochs_of_a_merge_with_hooks():
    pipeline = merge(
        config(pipe(same), src=range(3), continuous=True),
        config(src=range(100, 103), continuous=True),
        task_hook_factory=lambda info: [Nothing()],
    )
    with pipeline.auto_stop():
        for _ in range(3):
            assert list(pipeline) == [0, 100, 1, 101, 2, 102]
