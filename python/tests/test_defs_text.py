"""What configurations look like when they are printed."""

from __future__ import annotations

import inspect
import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

from stages import (
    Resize,
    Total,
    Words,
    double,
    everything,
    fetch,
    merge,
    pipeline,
    route,
    split,
)
from stoker import ops, source
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    Disaggregate,
    InterpreterPoolExecutorConfig,
    Merge,
    PathVariants,
    Pipe,
    PipelineConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
    SinkConfig,
    SourceConfig,
)


def at(thing):
    return f"{thing.__name__} at {inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]}"


def test_repr_of_places():
    assert repr(MAIN_PROCESS) == "MAIN_PROCESS"
    assert repr(PlacementConfig(MAIN_PROCESS)) == "placement(MAIN_PROCESS)"
    assert repr(PlacementConfig(MAIN_PROCESS, buffer_size=4)) == "placement(MAIN_PROCESS, buffer_size=4)"
    config = ProcessPoolExecutorConfig(2, double, (1,), "spawn")
    text = f"ProcessPoolExecutorConfig(max_workers=2, initializer={at(double)}, initargs=(1,), mp_context='spawn')"
    assert repr(config) == text
    assert repr(PlacementConfig(config)) == f"placement({text})"
    assert repr(InterpreterPoolExecutorConfig()) == "InterpreterPoolExecutorConfig()"


def test_repr_of_a_source_has_no_elements():
    assert repr(SourceConfig(list(range(10**5)))) == "SourceConfig(list)"
    assert repr(SourceConfig(range(9), continuous=True)) == "SourceConfig(range, continuous=True)"
    assert repr(SourceConfig(Words())) == f"SourceConfig({at(Words)})"
    assert repr(SourceConfig(split(1))) == f"SourceConfig({at(split)})"
    native = repr(SourceConfig(source.List(["a.jpg"] * 9)))
    assert native.startswith("SourceConfig(List(9 samples of image")


def test_repr_of_stages():
    assert repr(Pipe(double)) == f"double(op={at(double)}, concurrency=1)"
    assert repr(Pipe(partial(double), name="n", concurrency=4)) == f"n(op={at(double)}, concurrency=4)"
    assert repr(Pipe(Resize())) == f"Resize(op={at(Resize)}, concurrency=1)"
    assert repr(Pipe({1: 2})) == "dict(op=dict, concurrency=1)"
    assert re.fullmatch(r"<lambda>\(op=<lambda> at .*:\d+, concurrency=1\)", repr(Pipe(lambda x: x)))
    with ThreadPoolExecutor(1) as pool:
        assert "executor=ThreadPoolExecutor" in repr(Pipe(double, executor=pool))
    text = repr(
        Pipe(double, output_order="input", max_failures=Fraction(1, 2), retries=2, timeout=2.5)
    )
    assert text.endswith("concurrency=1, output_order='input', max_failures=1/2, retries=2, timeout=2.5)")
    assert repr(Pipe(ops.read(), on_error="skip")) == "read(op=read(max_bytes=None), on_error='skip')"
    assert repr(Aggregate(32)) == "aggregate(32, drop_last=False)"
    assert repr(Aggregate(Total(), drop_last=True)) == f"aggregate(op={at(Total)}, drop_last=True)"
    assert repr(Disaggregate()) == "disaggregate()"
    assert repr(SinkConfig(4)) == "SinkConfig(buffer_size=4)"


def test_repr_of_a_pipeline():
    config = pipeline(
        Pipe(double, concurrency=2),
        PathVariants(route, [[Pipe(fetch)], [Aggregate(2), Disaggregate()]], batched=True),
        src=[1, 2],
    )
    assert repr(config) == "\n".join(
        [
            "PipelineConfig",
            "  Source: SourceConfig(list)",
            "  Pipes:",
            f"    double(op={at(double)}, concurrency=2)",
            f"    PathVariants(path_variants, router={at(route)}, batched=True)",
            "      path0:",
            f"        fetch(op={at(fetch)}, concurrency=1)",
            "      path1:",
            "        aggregate(2, drop_last=False)",
            "        disaggregate()",
            "  Sink: SinkConfig(buffer_size=3)",
        ]
    )


def test_repr_of_a_merge():
    config = PipelineConfig(Merge([pipeline(), pipeline(Pipe(double))], merge), [], SinkConfig(1))
    assert repr(config) == "\n".join(
        [
            "PipelineConfig",
            "  Source: MergeConfig(",
            f"    op={at(merge)}",
            "    Pipeline 1:",
            "      PipelineConfig",
            "        Source: SourceConfig(tuple)",
            "        Pipes:",
            "          (none)",
            "        Sink: SinkConfig(buffer_size=3)",
            "    Pipeline 2:",
            "      PipelineConfig",
            "        Source: SourceConfig(tuple)",
            "        Pipes:",
            f"          double(op={at(double)}, concurrency=1)",
            "        Sink: SinkConfig(buffer_size=3)",
            "  )",
            "  Pipes:",
            "    (none)",
            "  Sink: SinkConfig(buffer_size=1)",
        ]
    )


def test_repr_of_everything():
    text = repr(everything())
    for part in ("path0:", "path1:", "Pipeline 2:", "placement(MAIN_PROCESS)", "batch(8", "inner"):
        assert part in text
    assert "lambda" in repr(Pipe(lambda x: x))


def test_a_class_in_a_function_is_found():
    class Inside:
        def __call__(self, x):
            return x

    assert repr(Pipe(Inside())) == f"Inside(op={at(Inside)}, concurrency=1)"
