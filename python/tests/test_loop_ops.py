"""Async ops: what they are given, how many run at once, in which order results come, what is around them."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from functools import partial

import pytest

from lanes import chain, read
from stoker.pipeline.defs import Aggregate, Pipe
from support import until


async def fetch(x):
    await asyncio.sleep(0)
    return x + 1


class Fetcher:
    def __init__(self, by: int = 1) -> None:
        self.by = by

    async def __call__(self, x):
        await asyncio.sleep(0)
        return x + self.by

    async def method(self, x):
        return x + self.by


async def plus(by, x):
    return x + by


class Turns:
    """An async op whose items wait until the test, or another item, lets them go."""

    def __init__(self) -> None:
        self.entered: list = []
        self.cancelled: list = []
        self.inside = 0
        self.most = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: dict = {}

    def _event(self, item) -> asyncio.Event:
        return self._events.setdefault(item, asyncio.Event())

    async def __call__(self, item):
        self._loop = asyncio.get_running_loop()
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.append(item)
        try:
            await self._event(item).wait()
        except asyncio.CancelledError:
            self.cancelled.append(item)
            raise
        finally:
            self.inside -= 1
        return item

    def let(self, *items) -> None:
        until(lambda: self._loop is not None)
        for item in items:
            self._loop.call_soon_threadsafe(lambda item=item: self._event(item).set())


@pytest.mark.parametrize("op", [fetch, Fetcher(), Fetcher().method, partial(plus, 1), partial(Fetcher())])
@pytest.mark.parametrize("order", ["completion", "input"])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_every_kind_of_async_op(op, order, concurrency):
    stage = Pipe(op, output_order=order, concurrency=concurrency)
    items, error = read(chain(stage, src=range(100)))
    assert error is None
    assert sorted(items) == list(range(1, 101))
    if order == "input" or concurrency == 1:
        assert items == sorted(items)


def test_none_is_skipped():
    async def odd(x):
        return x if x % 2 else None

    async def odd_later(x):
        await asyncio.sleep(0)
        return x if x % 2 else None

    for op in (odd, odd_later):
        for order in ("completion", "input"):
            stage = Pipe(op, output_order=order, concurrency=2)
            assert sorted(read(chain(stage, src=range(9)))[0]) == [1, 3, 5, 7]


def test_falsy_results_are_results():
    async def falsy(x):
        return [0, "", [], False][x]

    assert read(chain(Pipe(falsy), src=range(4)))[0] == [0, "", [], False]


@pytest.mark.parametrize("order", ["completion", "input"])
def test_no_more_run_than_the_concurrency(order):
    turns = Turns()
    pipeline = chain(Pipe(turns, concurrency=3, output_order=order), src=range(8))
    with pipeline.auto_stop():
        until(lambda: len(turns.entered) == 3)
        assert turns.entered == [0, 1, 2]
        turns.let(*range(8))
        assert sorted(read(pipeline)[0]) == list(range(8))
    assert turns.most == 3


def test_results_come_as_they_are_done():
    turns = Turns()
    pipeline = chain(Pipe(turns, concurrency=3), src=range(3))
    with pipeline.auto_stop():
        for item in (2, 0, 1):
            until(lambda: len(turns.entered) == 3)
            turns.let(item)
            assert pipeline.get_item() == item


def test_results_in_input_order_wait_for_those_before_them():
    turns = Turns()
    pipeline = chain(Pipe(turns, concurrency=3, output_order="input"), src=range(20))
    with pipeline.auto_stop():
        turns.let(*range(1, 20))
        until(lambda: len(turns.entered) >= 3)
        with pytest.raises(TimeoutError):
            pipeline.get_item(timeout=0)
        turns.let(0)
        assert read(pipeline) == (list(range(20)), None)


def test_an_op_runs_ahead_of_a_slow_first_one_by_its_concurrency_and_two():
    started = []
    first = threading.Event()

    async def op(x):
        started.append(x)
        while x == 0 and not first.is_set():
            await asyncio.sleep(0)
        return x

    pipeline = chain(Pipe(op, concurrency=2, output_order="input"), src=range(50))
    with pipeline.auto_stop():
        until(lambda: len(started) >= 2)
        first_seen = len(started)
        assert first_seen <= 4
        first.set()
        assert read(pipeline)[0] == list(range(50))


def test_the_wrong_number_of_arguments_fails_the_stage_at_once():
    async def two(a, b):
        raise AssertionError

    taken = []

    def source():
        for i in range(1000):
            taken.append(i)
            yield i

    for limit in (None, -1, 5):
        items, error = read(chain(Pipe(two, max_failures=limit), src=source()))
        assert items == []
        assert isinstance(error.exceptions[0], TypeError)
        assert "positional argument" in str(error.exceptions[0])
    assert len(taken) < 1500


def test_a_sync_op_with_the_wrong_number_of_arguments_fails_item_by_item():
    assert read(chain(Pipe(lambda a, b: a), src=range(20))) == ([], None)


def test_the_op_has_a_task_of_its_loop():
    seen = []

    async def op(x):
        before = asyncio.current_task()
        await asyncio.sleep(0)
        seen.append((asyncio.current_task() is before, asyncio.get_running_loop().is_running()))
        return x

    read(chain(Pipe(op)))
    assert seen == [(True, True)] * 10


def test_timeouts_and_task_groups_in_ops():
    async def op(x):
        if x % 3 == 0:
            try:
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()
            except TimeoutError:
                return ("late", x)
        if x % 3 == 1:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(fetch(x)) for _ in range(3)]
            return sum(task.result() for task in tasks)
        return await asyncio.wait_for(fetch(x), 60)

    expected = {("late", x) if x % 3 == 0 else 3 * (x + 1) if x % 3 == 1 else x + 1 for x in range(30)}
    for concurrency in (1, 4):
        assert set(read(chain(Pipe(op, concurrency=concurrency), src=range(30)))[0]) == expected


def test_a_task_group_that_fails_in_an_op_is_that_items_failure():
    async def bad():
        raise ValueError("inner")

    async def op(x):
        if x != 4:
            return x
        async with asyncio.TaskGroup() as group:
            group.create_task(bad())
            group.create_task(asyncio.Event().wait())

    pipeline = chain(Pipe(op, concurrency=2))
    assert sorted(read(pipeline)[0]) == [x for x in range(10) if x != 4]
    assert len(pipeline.failures()) == 1
    assert isinstance(pipeline.failures()[0].__cause__, ExceptionGroup)


def test_an_op_that_raises_cancelled_error_itself_fails_that_item():
    async def op(x):
        if x == 2:
            raise asyncio.CancelledError
        if x == 5:
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
        return x

    for order in ("completion", "input"):
        pipeline = chain(Pipe(op, concurrency=2, output_order=order))
        assert sorted(read(pipeline)[0]) == [0, 1, 3, 4, 6, 7, 8, 9]
        assert len(pipeline.failures()) == 2


VAR: contextvars.ContextVar[str] = contextvars.ContextVar("VAR", default="unset")


def test_ops_see_the_context_of_the_start():
    async def op(x):
        await asyncio.sleep(0)
        return VAR.get()

    async def stream(x):
        yield VAR.get()

    token = VAR.set("caller")
    try:
        assert set(read(chain(Pipe(op)))[0]) == {"caller"}
        assert set(read(chain(Pipe(stream)))[0]) == {"caller"}
    finally:
        VAR.reset(token)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_one_item_sets_in_its_context_no_other_sees(waits, concurrency):
    async def op(x):
        before = VAR.get()
        VAR.set(f"item {x}")
        if waits:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return before, VAR.get() == f"item {x}"

    assert read(chain(Pipe(op, concurrency=concurrency)))[0] == [("unset", True)] * 10


def test_tasks_that_an_op_makes_have_its_context():
    async def inner():
        return VAR.get()

    async def op(x):
        VAR.set(str(x))
        await asyncio.sleep(0)
        return await asyncio.create_task(inner())

    assert read(chain(Pipe(op)))[0] == [str(x) for x in range(10)]


def test_async_generators():
    async def each(x):
        for i in range(x):
            await asyncio.sleep(0)
            yield None if i == 1 else (x, i)

    items, error = read(chain(Pipe(each), src=range(5)))
    assert items == [(x, i) for x in range(5) for i in range(x) if i != 1]
    assert error is None
    many, _ = read(chain(Pipe(each, concurrency=3), src=range(5)))
    assert sorted(many) == items


def test_an_async_generator_that_fails_keeps_what_it_gave():
    async def each(x):
        yield x
        if x == 3:
            raise ValueError
        yield -x

    pipeline = chain(Pipe(each), src=range(5))
    assert read(pipeline)[0] == [0, 0, 1, -1, 2, -2, 3, 4, -4]
    assert len(pipeline.failures()) == 1


def test_async_generators_are_closed():
    closed = []

    class Steps:
        def __init__(self, x):
            self.x, self.n = x, 0

        def __aiter__(self):
            return self

        async def __anext__(self):
            self.n += 1
            if self.n > 3:
                raise StopAsyncIteration
            return self.x

        async def aclose(self):
            await asyncio.sleep(0)
            closed.append(self.x)

    class Make:
        async def __call__(self, x):
            yield x

    async def inner(x):
        try:
            while True:
                yield x
        finally:
            await asyncio.sleep(0)
            closed.append(x)

    async def ends(x):
        try:
            yield x
        finally:
            closed.append(x)

    assert read(chain(Pipe(ends), src=range(3)))[0] == [0, 1, 2]
    assert closed == [0, 1, 2]
    closed.clear()
    pipeline = chain(Pipe(inner, concurrency=2), src=range(3))
    with pipeline.auto_stop():
        pipeline.get_item()
        until(lambda: True)
    assert closed and set(closed) <= {0, 1}
    assert read(chain(Pipe(Make()), src=range(3)))[0] == [0, 1, 2]


def test_mixed_kinds_in_one_chain():
    async def twice(x):
        yield x
        yield x

    pipeline = chain(
        Pipe(lambda x: x * 2), Pipe(fetch), Pipe(twice), Pipe(str), Aggregate(5), Pipe(fetch_len), src=range(7)
    )
    assert read(pipeline) == ([5, 5, 4], None)


async def fetch_len(items):
    return len(items)


def test_objects_and_texts_pass_unchanged():
    things = [object(), "", b"x", None, [1], {"a": 1}]

    async def wrap(x):
        return (x,)

    assert [x for (x,) in read(chain(Pipe(wrap), src=things))[0]] == things


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def test_no_thread_for_the_loop_where_nothing_needs_one():
    until(lambda: "stoker-loop" not in names())

    def op(x):
        return names().count("stoker-loop")

    assert set(read(chain(Pipe(op)))[0]) == {0}
    pipeline = chain(Pipe(fetch), Pipe(op))
    with pipeline.auto_stop():
        assert max(read(pipeline)[0]) == 1
    assert "stoker-loop" not in names()
