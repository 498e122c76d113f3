#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several data sets in one stream: in a fixed proportion, or as they come."""

from collections import Counter

from stoker.pipeline import PipelineBuilder, build_pipeline
from stoker.pipeline.defs import Merge, Pipe, PipelineConfig, SinkConfig, SourceConfig
from stoker.source.utils import MergeIterator


def origin(item: tuple[str, int]) -> str:
    return item[0]


def dataset(name: str, size: int) -> list[tuple[str, int]]:
    return [(name, i) for i in range(size)]


def in_turn() -> None:
    """One of each in turn, until one has come to its end."""
    source = MergeIterator([dataset("web", 100), dataset("books", 50)], stop_after=-1)
    pipeline = (
        PipelineBuilder().add_source(source).pipe(origin).aggregate(20).add_sink(3).build(num_threads=1)
    )
    with pipeline.auto_stop():
        for batch in pipeline:
            print(sorted(Counter(batch).items()))


def as_they_come() -> None:
    """Each data set has a pipeline of its own; the merged stream has all of their results."""
    inputs = [
        PipelineConfig(SourceConfig(dataset(name, size)), [Pipe(origin)], SinkConfig(3))
        for name, size in (("web", 30), ("books", 20), ("code", 10))
    ]
    config = PipelineConfig(Merge(inputs), [], SinkConfig(3))
    pipeline = build_pipeline(config, num_threads=3)
    with pipeline.auto_stop():
        print(sorted(Counter(pipeline).items()))


if __name__ == "__main__":
    in_turn()
    as_they_come()
