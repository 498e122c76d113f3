"""The interpreter's end while an iterator lives at module level: quiet, and at once."""

from __future__ import annotations

import pytest

from support import ok, torch_module

SETUP = """
from stoker.dataloader import DataLoader, get_pytorch_dataloader
from stoker.pipeline import PipelineBuilder

def build(op, **options):
    return PipelineBuilder().add_source(range(100)).pipe(op, **options).add_sink().build(num_threads=1)

def odd(x):
    if x % 2 == 0:
        raise ValueError(x)
    return x

async def nothing(x):
    return x

def results(pipeline):
    with pipeline.auto_stop():
        yield from pipeline
"""


def ends_quietly(make: str, quiet: str = "") -> None:
    lines = [*SETUP.splitlines(), quiet, f"iterator = {make}", "print(next(iterator))"]
    assert ok("\n".join(lines)).count("\n") == 1


@pytest.mark.parametrize(
    "make",
    [
        "iter(DataLoader(range(100)))",
        "iter(build(abs))",
        "results(build(abs))",
        "results(build(abs, concurrency=4))",
        "results(build(nothing))",
        "results(build(lambda x: [x][x > 50] if x > 50 else x))",
    ],
)
def test_a_live_iterator(make):
    ends_quietly(make)


def test_items_that_failed():
    ends_quietly("results(build(odd))", "import logging; logging.disable()")


def test_a_failure_that_nobody_read():
    ends_quietly("results(build(odd, max_failures=2))", "import logging; logging.disable()")


def test_a_dataloader_as_pytorchs():
    torch_module()
    ends_quietly("iter(get_pytorch_dataloader(list(range(10)), batch_size=2))")
