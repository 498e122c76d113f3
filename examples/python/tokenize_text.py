#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Text, tokenized in processes: for work in pure Python that one interpreter's lock would hold up."""

import multiprocessing
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from stoker.pipeline import PipelineBuilder

WORDS = "the quick brown fox jumps over the lazy dog while five boxing wizards jump".split()


def lines(count: int) -> Iterator[str]:
    for i in range(count):
        yield " ".join(WORDS[(i * 7 + k) % len(WORDS)] for k in range(5 + i % 11)) + f" {i}."


def tokenize(line: str) -> list[int]:
    """A number for each word or sign, the same in every process."""
    return [sum(ord(c) * 31**k for k, c in enumerate(word)) % 30000 for word in re.findall(r"\w+|\S", line)]


def pad(batch: list[list[int]]) -> list[list[int]]:
    longest = max(map(len, batch))
    return [tokens + [0] * (longest - len(tokens)) for tokens in batch]


def main() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        pipeline = (
            PipelineBuilder()
            .add_source(lines(64))
            .pipe(tokenize, executor=executor, concurrency=4, output_order="input")
            .aggregate(16)
            .pipe(pad)
            .add_sink(3)
            .build(num_threads=1)
        )
        with pipeline.auto_stop():
            for batch in pipeline:
                print(len(batch), len(batch[0]), sum(map(sum, batch)))


if __name__ == "__main__":
    main()
