"""Merge ops of the user's, and async routers."""

from __future__ import annotations

import asyncio

import pytest

from lanes import Watched, config, read
from stoker.pipeline import PipelineFailure, build_pipeline, is_eof, is_epoch_end
from stoker.pipeline.defs import Merge, PathVariants, Pipe, PipelineConfig, SinkConfig
from support import until


def merged(op, *sources, stages=(), continuous=False):
    inputs = [config(src=source, continuous=continuous) for source in sources]
    return build_pipeline(PipelineConfig(Merge(inputs, op), stages, SinkConfig(3)), num_threads=2)


async def in_turn(info, inputs, output):
    for queue in inputs:
        while not is_eof(item := await queue.get()):
            await output.put(item)


async def zipped(info, inputs, output):
    while True:
        items = [await queue.get() for queue in inputs]
        if any(map(is_eof, items)):
            return
        if any(map(is_epoch_end, items)):
            await output.put(items[0])
            continue
        await output.put(tuple(items))


def test_a_merge_op_decides_the_order():
    assert read(merged(in_turn, range(50), range(50, 60), "ab")) == ([*range(60), "a", "b"], None)
    assert read(merged(zipped, range(100), "abc"))[0] == [(0, "a"), (1, "b"), (2, "c")]


def test_what_the_op_is_given():
    seen = []

    async def op(info, inputs, output):
        seen.append((info.stage_name, len(inputs), isinstance(inputs[0], asyncio.Queue), isinstance(output, asyncio.Queue)))
        await in_turn(info, inputs, output)

    class Op:
        async def __call__(self, info, inputs, output):
            await op(info, inputs, output)

    for each in (op, Op()):
        assert read(merged(each, "a", "b"))[0] == ["a", "b"]
    assert seen == [("merge", 2, True, True)] * 2


def test_an_op_that_returns_early_ends_the_sources():
    async def first(info, inputs, output):
        await output.put(await inputs[0].get())

    sources = [Watched(range(10**9)), Watched(range(10**9))]
    pipeline = merged(first, *sources)
    assert read(pipeline) == ([0], None)
    until(lambda: all(source.closed for source in sources))
    assert all(source.taken < 1000 for source in sources)
    pipeline.stop()


def test_an_op_that_returns_at_once():
    async def nothing(info, inputs, output):
        return None

    assert read(merged(nothing, range(10), range(10))) == ([], None)


def test_epochs_through_a_merge_op():
    pipeline = merged(zipped, range(3), "abc", continuous=True)
    with pipeline.auto_stop():
        for _ in range(3):
            assert list(pipeline) == [(0, "a"), (1, "b"), (2, "c")]


@pytest.mark.parametrize("error", [ValueError("merge"), asyncio.CancelledError("merge"), KeyboardInterrupt("merge")])
def test_an_error_in_a_merge_op_comes_behind_its_items(error):
    async def op(info, inputs, output):
        for _ in range(3):
            await output.put(await inputs[0].get())
        raise error

    items, failure = read(merged(op, range(10**6), range(10**6)))
    assert items == [0, 1, 2]
    assert isinstance(failure, PipelineFailure)
    (first,) = failure.exceptions
    assert (first if isinstance(error, Exception) else first.__cause__) is error


def test_an_op_with_the_wrong_arguments():
    async def op(inputs, output):
        pass

    _, failure = read(merged(op, "a", "b"))
    assert isinstance(failure.exceptions[0], TypeError)


def test_a_failed_source_ends_the_inputs_and_is_raised_at_the_end():
    items, failure = read(merged(in_turn, Watched(range(3), ValueError("source")), range(10, 13)))
    assert items == [0, 1, 2, 10, 11, 12]
    assert [str(e) for e in failure.exceptions] == ["source"]


def test_the_failures_of_all_inputs():
    sources = [Watched(range(3), ValueError("one")), Watched(range(3, 6), TypeError("two")), range(6, 9)]
    items, failure = read(merged(in_turn, *sources))
    assert items == list(range(9))
    assert [repr(error) for error in failure.exceptions] == ["ValueError('one')", "TypeError('two')"]


def test_a_blocked_merge_op_is_cancelled():
    cancelled = []

    async def op(info, inputs, output):
        await output.put(await inputs[0].get())
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    pipeline = merged(op, range(9), range(9))
    with pipeline.auto_stop():
        assert pipeline.get_item() == 0
    assert cancelled == [True]


def test_stages_behind_a_merge_op():
    async def twice(x):
        return 2 * x

    assert read(merged(in_turn, range(5), range(5), stages=[Pipe(twice), Pipe(str)]))[0] == [
        str(2 * x) for x in [*range(5), *range(5)]
    ]


async def later(x):
    await asyncio.sleep(0)
    return x % 2


class Later:
    async def __call__(self, x):
        return x % 2


def variants(router):
    paths = [[Pipe(lambda x: ("even", x))], [Pipe(lambda x: ("odd", x))]]
    return build_pipeline(config(PathVariants(router, paths)), num_threads=2)


@pytest.mark.parametrize("router", [later, Later()])
def test_async_routers(router):
    items, error = read(variants(router))
    assert error is None
    assert sorted(items, key=lambda item: item[1]) == [("odd" if x % 2 else "even", x) for x in range(10)]


def test_an_async_router_that_is_out_of_range_fails_the_stage():
    async def wrong(x):
        return 2

    items, failure = read(variants(wrong))
    assert items == []
    assert isinstance(failure.exceptions[0], IndexError)
    assert "Router returned index" in str(failure.exceptions[0])


def test_an_async_router_that_fails():
    async def bad(x):
        await asyncio.sleep(0)
        raise ValueError("router")

    _, failure = read(variants(bad))
    assert [str(e) for e in failure.exceptions] == ["router"]


def test_batched_async_routers():
    async def router(items):
        await asyncio.sleep(0)
        return [x % 2 for x in items]

    paths = [[Pipe(lambda items: [("even", x) for x in items])], [Pipe(list)]]
    stage = PathVariants(router, paths, batched=True)
    items, error = read(build_pipeline(config(stage, src=[[1, 2, 3], [4], []]), num_threads=2))
    assert error is None
    assert items == [[("even", 2), 1, 3], [("even", 4)]]


def test_a_part_that_is_no_list_fails():
    def evens(items):
        return 7 if 4 in items else items

    def odds(items):
        return None if 1 in items else items

    stage = PathVariants(lambda items: [x % 2 for x in items], [[Pipe(evens)], [Pipe(odds)]], batched=True)
    pipeline = build_pipeline(config(stage, src=[[2, 1], [4, 3], [6, 5]]), num_threads=2)
    items, error = read(pipeline)
    assert isinstance(error, PipelineFailure)
    assert [str(e) for e in error.exceptions] == ["'int' object is not iterable"]
    assert items in ([], [[2]])
