"""How types flow through the builder: read by the type checker, run by test_builder."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import Any, assert_type

from stoker import Batch, Sample, ops, source
from stoker.dataloader import PyTorchDataLoader, get_pytorch_dataloader
from stoker.pipeline import (
    AsyncQueue,
    Pipeline,
    PipelineBuilder,
    PipelineIterator,
    StatsQueue,
    TaskPerfStats,
    TaskStatsHook,
    build_pipeline,
    config,
    run_pipeline_in_subprocess,
)
from stoker.pipeline.defs import (
    AggregateConfig,
    Aggregator,
    DisaggregateConfig,
    Merge,
    PathVariantsConfig,
    PipeConfig,
    PipelineConfig,
    SinkConfig,
)


def text(x: int) -> str:
    return str(x)


def some(x: int) -> str | None:
    return None if x < 0 else str(x)


async def later(x: str) -> float:
    return float(x)


def split(x: float) -> Iterator[bytes]:
    yield repr(x).encode()


async def chunks(x: bytes) -> AsyncIterator[int]:
    yield len(x)


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, x: int) -> float:
        return x * self.by

    async def afterwards(self, x: float) -> complex:
        return complex(x)


class Sum(Aggregator[int, str]):
    def accumulate(self, item: int, /) -> str | None:
        return str(item)

    def flush(self) -> str | None:
        return None


async def numbers() -> AsyncIterator[int]:
    yield 1


def add(n: int, x: int) -> int:
    return n + x


def functions() -> None:
    assert_type(PipelineBuilder(), PipelineBuilder[Any])
    ints = PipelineBuilder().add_source([1, 2, 3])
    assert_type(ints, PipelineBuilder[int])
    assert_type(ints.pipe(text), PipelineBuilder[str])
    assert_type(ints.pipe(some, concurrency=4), PipelineBuilder[str])
    assert_type(ints.pipe(lambda x: [x]), PipelineBuilder[list[int]])
    assert_type(ints.pipe(partial(add, 3)), PipelineBuilder[int])
    assert_type(ints.pipe(Scale(2)).pipe(Scale(2).afterwards), PipelineBuilder[complex])
    assert_type(ints.pipe({1: "one"}), PipelineBuilder[str])
    assert_type(
        ints.pipe(text).pipe(later).pipe(split).pipe(chunks, name="chunks").add_sink(),
        PipelineBuilder[int],
    )
    assert_type(PipelineBuilder().add_source(numbers()), PipelineBuilder[int])


def groups() -> None:
    ints = PipelineBuilder().add_source(range(9))
    assert_type(ints.aggregate(3), PipelineBuilder[list[int]])
    assert_type(ints.aggregate(3).disaggregate(), PipelineBuilder[int])
    assert_type(ints.aggregate(Sum()), PipelineBuilder[str])
    assert_type(ints.add_sink().get_config(), PipelineConfig[int])


def native() -> None:
    samples = PipelineBuilder().add_source(source.List(["a.jpg"]))
    assert_type(samples, PipelineBuilder[Sample])
    decoded = samples.pipe(ops.read()).pipe(ops.decode_image(8, 8))
    assert_type(decoded, PipelineBuilder[Sample])
    assert_type(decoded.pipe(ops.color_jitter(0.4)), PipelineBuilder[Sample])
    batches = decoded.batch(4).pipe(ops.normalize())
    assert_type(batches, PipelineBuilder[Batch])
    assert_type(batches.pipe(ops.mixup(0.2)), PipelineBuilder[Batch])
    assert_type(batches.disaggregate(), PipelineBuilder[Sample])


def make() -> Pipeline[str]:
    return PipelineBuilder().add_source([1, 2]).pipe(text).add_sink().build(num_threads=1)


def wider() -> Pipeline[object]:
    return make()


def reading() -> None:
    pipeline = make()
    assert_type(pipeline, Pipeline[str])
    assert_type(pipeline.get_item(), str)
    assert_type(pipeline.get_iterator(timeout=9), PipelineIterator[str])
    for item in pipeline:
        assert_type(item, str)
    with make() as entered:
        assert_type(next(iter(entered)), str)
    assert_type(wider().get_item(), object)


def batches() -> Pipeline[Batch]:
    return PipelineBuilder().add_source(source.List(["a.jpg"])).batch(4).add_sink().build(num_threads=1)


def configured() -> None:
    chain = PipelineBuilder().add_source([1, 2]).pipe(text).add_sink().get_config()
    assert_type(build_pipeline(chain, num_threads=1), Pipeline[str])
    merged: PipelineConfig[str] = PipelineConfig(Merge([chain, chain]), [], SinkConfig(3))
    assert_type(build_pipeline(merged, num_threads=1), Pipeline[str])
    untold = PipelineConfig(Merge([chain]), [], SinkConfig())
    assert_type(build_pipeline(untold, num_threads=1), Pipeline[Any])


def with_factories() -> Pipeline[int]:
    config.set_default_queue_class(partial(StatsQueue, interval=9))
    config.set_default_hook_class(TaskStatsHook)
    return PipelineBuilder().add_source([1]).add_sink().build(num_threads=1, queue_class=partial(AsyncQueue))


def elsewhere(chain: PipelineConfig[str]) -> Iterator[str]:
    yield from assert_type(run_pipeline_in_subprocess(chain, num_threads=1), Iterable[str])


def collate(samples: list[int]) -> bytes:
    return bytes(samples)


def loaders(data: list[int]) -> None:
    loader = get_pytorch_dataloader(data, collate_fn=collate)
    assert_type(loader, PyTorchDataLoader[bytes])
    assert_type(next(iter(loader)), bytes)
    untold = get_pytorch_dataloader(data)
    assert_type(untold, PyTorchDataLoader[Any])


def values(stats: TaskPerfStats) -> dict[str, Any]:
    assert_type(dataclasses.replace(SinkConfig[str](3), buffer_size=5), SinkConfig[str])
    return dataclasses.asdict(stats)


GENERIC = (
    Pipeline[str],
    PipelineIterator[str],
    AggregateConfig[str],
    DisaggregateConfig[str],
    PathVariantsConfig[str],
    PipeConfig[int, str],
    SinkConfig[str],
    PyTorchDataLoader[str],
)


def run() -> None:
    functions()
    groups()
    native()
    reading()
    configured()
