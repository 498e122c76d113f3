"""DataLoader and CacheDataLoader: passes, order, what is lost, how passes end."""

from __future__ import annotations

import asyncio
import logging
import pickle
import re
import sys
import threading

import pytest

from stoker import Pipeline, PipelineFailure, dataloader, source
from stoker.dataloader import CacheDataLoader, DataLoader


def double(x):
    return 2 * x


def odd_fails(x):
    if x % 2:
        raise ValueError(f"odd: {x}")
    return x


def twice(x):
    yield x
    yield x


def test_alone_it_gives_what_the_source_gives():
    loader = DataLoader(range(5))
    assert list(loader) == list(range(5))
    assert list(loader) == list(range(5))  # each `for` is a pass of its own
    assert len(loader) == 5 and loader


def test_the_whole_chain_in_order():
    loader = DataLoader(
        range(10),
        preprocessor=double,
        batch_size=4,
        aggregator=tuple,
        transfer_fn=lambda batch: ("moved", batch),
        output_order="input",
    )
    want = [("moved", batch) for batch in [(0, 2, 4, 6), (8, 10, 12, 14), (16, 18)]]
    assert list(loader) == want and len(loader) == 3


def test_drop_last():
    loader = DataLoader(range(10), batch_size=4, drop_last=True)
    assert list(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]] and len(loader) == 2


def test_by_default_in_order_of_completion():
    first = threading.Event()

    def late(x):
        if x == 0:
            first.wait()
        elif x == 3:
            first.set()
        return x

    got = list(DataLoader(range(4), preprocessor=late, num_threads=2))
    assert got[0] == 1 and sorted(got) == [0, 1, 2, 3]


def test_num_threads_at_once():
    barrier = threading.Barrier(6)

    def meet(x):
        barrier.wait()
        return x

    assert sorted(DataLoader(range(12), preprocessor=meet, num_threads=6)) == list(range(12))
    loader = DataLoader(range(12), batch_size=1, aggregator=meet, num_threads=6)
    assert sorted(loader) == [[i] for i in range(12)]


def test_transfers_one_at_a_time():
    busy = threading.Lock()

    def alone(x):
        assert busy.acquire(blocking=False)
        busy.release()
        return x

    loader = DataLoader(range(200), transfer_fn=alone)
    assert list(loader) == list(range(200)) and loader.stats()["stages"][1]["failed"] == 0


def test_generators_and_none():
    loader = DataLoader(range(3), preprocessor=twice, num_threads=1, aggregator=lambda x: x or None)
    assert list(loader) == [1, 1, 2, 2]


def test_losses_are_counted_and_reported(caplog):
    loader = DataLoader(range(7), preprocessor=odd_fails, batch_size=2, num_threads=1)
    assert loader.stats() is None
    assert list(loader) == [[0, 2], [4, 6]]
    failed = {stage["name"]: stage["failed"] for stage in loader.stats()["stages"]}
    assert failed["odd_fails"] == 3 and sum(failed.values()) == 3
    assert "ValueError: odd: 5" in caplog.text
    assert loader.stats()["failed"] == 3
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.getMessage().startswith("3 items failed: ") and ":odd_fails[1] 3" in record.getMessage()
    caplog.clear()
    assert sorted(DataLoader(range(0, 8, 2), preprocessor=odd_fails)) == [0, 2, 4, 6]
    assert not caplog.records


def test_losses_of_a_pass_that_was_left(caplog):
    for item in DataLoader(range(1, 100), preprocessor=odd_fails, num_threads=1):
        assert item == 2
        break
    assert re.search(r"\d items? failed: ", caplog.text)


def test_stats_of_the_pass_that_goes_on():
    loader = DataLoader(range(100))
    passing = iter(loader)
    assert loader.stats() is None
    next(passing)
    assert loader.stats()["results"] < 100
    assert [*passing][-1] == 99 and loader.stats()["results"] == 100


def test_a_failing_source():
    def items():
        yield 1
        raise LookupError("no more")

    passing = iter(DataLoader(items()))
    assert next(passing) == 1
    with pytest.raises(PipelineFailure) as caught:
        next(passing)
    assert [type(error) for error in caught.value.exceptions] == [LookupError]


def test_leaving_early_ends_the_pass():
    closed = threading.Event()

    def items():
        try:
            yield from range(10**9)
        finally:
            closed.set()

    before = set(threading.enumerate())
    for item in DataLoader(items(), preprocessor=double):
        if item == 8:
            break
    assert closed.is_set() and set(threading.enumerate()) <= before


def test_passes_at_once():
    loader = DataLoader(range(50), preprocessor=double, output_order="input")
    assert list(zip(loader, loader, strict=True)) == [(2 * x, 2 * x) for x in range(50)]


def test_timeout(monkeypatch):
    gate, stop = threading.Event(), Pipeline.stop

    def let_it_end(self, **options):
        gate.set()
        stop(self, **options)

    monkeypatch.setattr(Pipeline, "stop", let_it_end)
    loader = DataLoader([1], preprocessor=lambda x: gate.wait(), timeout=0.05, num_threads=1)
    passing = iter(loader)
    with pytest.raises(TimeoutError, match="not available after"):
        next(passing)


def test_native_sources(paths):
    loader = DataLoader(source.List(paths), preprocessor=lambda sample: sample.id, output_order="input")
    assert [sample.data for sample in loader] == list(range(len(paths)))
    with pytest.raises(TypeError, match="List"):
        len(loader)


def test_the_length_is_that_of_the_source():
    with pytest.raises(TypeError):
        len(DataLoader(iter([1])))
    empty = DataLoader([])
    assert list(empty) == [] and len(empty) == 0 and empty


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"batch_size": 1.5}, TypeError, "batch_size"),
        ({"num_threads": 0}, ValueError, "num_threads"),
        ({"buffer_size": 0}, ValueError, "buffer_size"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"output_order": "random"}, ValueError, "output_order"),
        ({"preprocessor": 3}, TypeError, "int"),
    ],
)
def test_arguments(options, error, text):
    with pytest.raises(error, match=text):
        DataLoader([1], **options)


def test_loaders_pickle():
    loader = DataLoader(range(4), preprocessor=double, output_order="input")
    list(loader)
    again = pickle.loads(pickle.dumps(loader))
    assert again.stats() is None and list(again) == [0, 2, 4, 6]
    assert "double" in repr(again)
    cached = pickle.loads(pickle.dumps(CacheDataLoader(loader, 2, 2, 5)))
    assert list(cached) == [0, 2, 0, 2, 0]


def test_types_take_parameters():
    assert DataLoader[int, str] is not DataLoader and CacheDataLoader[int] is not CacheDataLoader


# --- CacheDataLoader ---


def test_kept_results_are_repeated():
    loader = DataLoader(range(100), preprocessor=double, output_order="input")
    cached = CacheDataLoader(loader, 2, 5, 10)
    for _ in range(2):
        assert list(cached) == [0, 2, 4, 6, 8, 0, 2, 0, 2, 0]
    assert len(cached) == 100 and cached


def test_the_loader_is_stopped_when_the_kept_results_begin():
    closed = threading.Event()

    class Source:
        def __iter__(self):
            try:
                yield from range(10**9)
            finally:
                closed.set()

    passing = iter(CacheDataLoader(DataLoader(Source()), 3, 3))
    assert [next(passing) for _ in range(3)] == [0, 1, 2] and not closed.is_set()
    assert next(passing) == 0 and closed.is_set()
    passing.close()


def test_attributes_are_the_loaders():
    class Loader(list):
        epoch = 7

        def shuffle(self, seed):
            return seed + 1

    cached = CacheDataLoader(Loader([1, 2]), 1, 1)
    assert cached.epoch == 7 and cached.shuffle(3) == 4 and len(cached) == 2
    with pytest.raises(AttributeError, match="no_such_thing"):
        cached.no_such_thing
    with pytest.raises(TypeError):
        len(CacheDataLoader(iter([1]), 1, 1))


@pytest.mark.parametrize("numbers", [(0, 1, None), (1, 0, None), (1, 1, 0)])
def test_numbers_of_caches(numbers):
    with pytest.raises(ValueError, match="must be greater than zero"):
        CacheDataLoader([1], *numbers)


def test_every_public_name_is_there():
    for name in dataloader.__all__:
        assert getattr(dataloader, name).__module__.startswith("stoker.dataloader")
    assert set(dataloader.__all__) <= set(dir(dataloader))
    assert not hasattr(dataloader, "no_such_name")


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.utils.data", None)
    with pytest.raises(ModuleNotFoundError, match="pip install torch"):
        dataloader.get_pytorch_dataloader([1])


def test_async_functions():
    async def later(x):
        await asyncio.sleep(0)
        return 2 * x

    async def items():
        for i in range(5):
            yield i

    loader = DataLoader(items(), preprocessor=later, aggregator=later, output_order="input")
    assert list(loader) == [0, 4, 8, 12, 16]
