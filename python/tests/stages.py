"""Stages of Python's, for tests of what describes them."""

from __future__ import annotations

from fractions import Fraction

from stoker import ops
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    Aggregator,
    BatchConfig,
    Disaggregate,
    ExecutorConfig,
    Merge,
    PathVariants,
    Pipe,
    PipelineConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
    SinkConfig,
    SourceConfig,
)


def double(x):
    return 2 * x


async def fetch(x):
    return x


def split(x):
    yield x


async def stream(x):
    yield x


def route(x):
    return x % 2


async def merge(info, inputs, output):
    pass


class Resize:
    def __call__(self, x):
        return x


class AsyncCall:
    async def __call__(self, x):
        return x


class Total(Aggregator):
    def __init__(self):
        self.total = 0

    def accumulate(self, item):
        self.total += item

    def flush(self):
        return self.total


RESIZE = Resize()


class Words:
    def __iter__(self):
        return iter("abc")


def pipeline(*pipes, src=(1, 2), continuous=False):
    return PipelineConfig(SourceConfig(src, continuous), pipes, SinkConfig(3))


def everything():
    return PipelineConfig(
        Merge([pipeline(Pipe(double)), pipeline(Pipe(fetch, concurrency=4))], merge),
        [
            Pipe(double, name="twice", output_order="input", max_failures=Fraction(1, 2), retries=2),
            Pipe({1: 2}, on_error="raise", timeout=2.5),
            Pipe(ops.read(), on_error="substitute"),
            PlacementConfig(ProcessPoolExecutorConfig(2, double, (1,), "spawn"), buffer_size=4),
            Pipe(RESIZE, executor=ExecutorConfig(3)),
            PlacementConfig(MAIN_PROCESS),
            Aggregate(3, drop_last=True),
            Disaggregate(),
            BatchConfig(8),
            PathVariants(
                route,
                [[Pipe(double)], [Aggregate(2), PathVariants(fetch, [[Pipe(split)]], "inner", True)]],
            ),
        ],
        SinkConfig(5),
    )
