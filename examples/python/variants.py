#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Items of two kinds that need different stages, in one pipeline."""

from stoker.pipeline import PipelineBuilder
from stoker.pipeline.defs import Pipe


def kind(item: str) -> int:
    return 0 if item.isdigit() else 1


def as_number(item: str) -> str:
    return f"number {int(item)}"


def as_word(item: str) -> str:
    return f"word {item}"


def main() -> None:
    items = ["7", "fox", "12", "dog", "4", "wizard", "99"]
    pipeline = (
        PipelineBuilder()
        .add_source(items)
        .path_variants(kind, [[Pipe(as_number)], [Pipe(as_word), Pipe(str.upper)]])
        .add_sink(3)
        .build(num_threads=2)
    )
    with pipeline.auto_stop():
        print(sorted(pipeline))


if __name__ == "__main__":
    main()
