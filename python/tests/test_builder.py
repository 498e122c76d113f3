"""Building: arguments, errors, what is printed."""

from __future__ import annotations

import inspect
from fractions import Fraction

import pytest

import stoker.pipeline
from stoker import PipelineBuilder, ops, source
from support import builder


@pytest.fixture
def src(paths):
    return source.List(paths)


def test_there_is_one_builder():
    assert stoker.PipelineBuilder is stoker.pipeline.PipelineBuilder
    assert stoker.PipelineBuilder.__module__ == "stoker.pipeline"
    assert stoker.Pipeline is stoker.pipeline.Pipeline


def test_signatures():
    def names(method):
        return list(inspect.signature(getattr(PipelineBuilder, method)).parameters)[1:]

    assert names("add_source") == ["source", "continuous"]
    assert names("pipe") == [
        "op", "concurrency", "executor", "name", "output_order", "max_failures", "on_error",
        "retries", "timeout",
    ]  # fmt: skip
    assert names("batch") == ["n", "drop_last", "keep_empty"]
    assert names("aggregate") == ["n", "drop_last"]
    assert names("path_variants") == ["router", "paths", "name", "batched"]
    assert names("to") == ["target", "buffer_size"]
    assert names("add_sink") == ["buffer_size"]
    assert names("build") == [
        "num_threads", "max_failures", "report_stats_interval", "queue_class", "task_hook_factory",
        "stage_id", "use_thread_output_queue",
    ]  # fmt: skip
    assert inspect.signature(PipelineBuilder.add_sink).parameters["buffer_size"].default == 3


def test_methods_return_the_builder(src):
    b = PipelineBuilder()
    assert b.add_source(src) is b
    assert b.pipe(ops.read()) is b
    assert b.pipe(ops.decode_image(8, 8)) is b
    assert b.batch(2) is b
    assert b.disaggregate() is b
    assert b.add_sink() is b


def test_prints_at_every_step(src):
    b = PipelineBuilder()
    texts = [str(b)]
    texts.append(str(b.add_source(src)))
    texts.append(str(b.pipe(ops.read(), concurrency=7, name="load")))
    texts.append(str(b.pipe(ops.decode_image(8, 8), on_error="skip")))
    texts.append(str(b.batch(4)))
    texts.append(str(b.add_sink(5)))
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert "Source:" in text and "Pipes:" in text and "Sink:" in text
    assert "load" in texts[-1] and "concurrency=7" in texts[-1] and "buffer_size=5" in texts[-1]
    assert "on_error='skip'" in texts[-1] and "Plan:" in texts[-1]
    assert "cannot run" not in texts[-1]


def test_config(src):
    b = PipelineBuilder().add_source(src)
    with pytest.raises(RuntimeError, match="no sink"):
        b.get_config()
    with pytest.raises(RuntimeError, match="no sink"):
        b.build(num_threads=1)
    with pytest.raises(RuntimeError, match="no source"):
        PipelineBuilder().add_sink().get_config()
    config = b.pipe(ops.read()).add_sink(4).get_config()
    assert config.src.source is src and config.sink.buffer_size == 4
    assert [pipe.name for pipe in config.pipes] == ["read"]
    assert "PipelineConfig" in repr(config) and "SourceConfig" in repr(config)
    assert len(repr(config)) < 1000


def test_second_source_and_sink(src):
    with pytest.raises(ValueError, match="source already"):
        PipelineBuilder().add_source(src).add_source(src)
    with pytest.raises(ValueError, match="sink already"):
        PipelineBuilder().add_sink().add_sink()


def test_what_is_no_op_or_source_is_refused(src):
    b = PipelineBuilder()
    for op in (None, 3, object()):
        with pytest.raises(TypeError, match=r"op must be callable.*ops\.read"):
            b.pipe(op)
    with pytest.raises(TypeError, match=r"ops\.read is a class"):
        b.pipe(ops.read)
    for source_ in (None, 3, list, source.List):
        with pytest.raises(TypeError, match="Directory"):
            b.add_source(source_)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"concurrency": -3}, ValueError, "concurrency"),
        ({"concurrency": 1.5}, TypeError, "concurrency"),
        ({"concurrency": True}, TypeError, "concurrency"),
        ({"executor": object()}, ValueError, "executor"),
        ({"output_order": "random"}, ValueError, "output_order"),
        ({"on_error": "ignore"}, ValueError, "on_error"),
        ({"on_error": None}, TypeError, "on_error"),
        ({"name": ""}, TypeError, "name"),
        ({"max_failures": 1.5}, ValueError, r"must be in range \(0, 1\]"),
        ({"max_failures": Fraction(3, 2)}, ValueError, r"must be in range \(0, 1\]"),
        ({"max_failures": Fraction(0)}, ValueError, r"must be in range \(0, 1\]"),
        ({"max_failures": "3"}, TypeError, "max_failures"),
        ({"max_failures": 3, "on_error": "raise"}, ValueError, "max_failures"),
        ({"max_failures": 3, "on_error": "substitute"}, ValueError, "max_failures"),
    ],
)
def test_pipe_names_the_bad_argument(options, error, text):
    with pytest.raises(error, match=text):
        PipelineBuilder().pipe(ops.read(), **options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_threads": 0}, ValueError, "num_threads"),
        ({"num_threads": "2"}, TypeError, "num_threads"),
        ({"num_threads": 10**6}, ValueError, "num_threads"),
        ({"num_threads": 1, "max_failures": 2.0}, ValueError, "max_failures"),
        ({"num_threads": 1, "queue_class": list}, TypeError, "queue_class"),
        ({"num_threads": 1, "task_hook_factory": print}, TypeError, "task_hook_factory"),
        ({"num_threads": 1, "stage_id": -1}, ValueError, "stage_id"),
        ({}, TypeError, "num_threads"),
    ],
)
def test_build_names_the_bad_argument(src, options, error, text):
    with pytest.raises(error, match=text):
        PipelineBuilder().add_source(src).pipe(ops.read()).add_sink().build(**options)


@pytest.mark.parametrize("n", [0, -1, 1.0, "4", None])
def test_sizes(n):
    with pytest.raises((ValueError, TypeError), match="n must"):
        PipelineBuilder().batch(n)
    with pytest.raises((ValueError, TypeError), match="buffer_size must"):
        PipelineBuilder().add_sink(n)


def test_ends_that_do_not_fit(src):
    def check(*stages):
        b = PipelineBuilder().add_source(src)
        for stage in stages:
            b.batch(4) if stage is None else b.pipe(stage)
        b.add_sink().build(num_threads=1)

    check(ops.read(), ops.decode_image(8, 8), None, ops.normalize())
    for stages in (
        [ops.decode_image(8, 8)],
        [ops.read(), ops.read()],
        [ops.read(), ops.normalize()],
        [ops.read(), ops.decode_image(8, 8), ops.normalize()],
        [ops.read(), ops.decode_image(8, 8), None, None],
    ):
        with pytest.raises(ValueError, match="takes|gives|batch"):
            check(*stages)


def test_a_plan_that_is_not_reproducible_says_so(src):
    ordered = str(builder(src))
    free = str(builder(src, decode={"output_order": "completion"}))
    assert "not reproducible" not in ordered
    assert "not reproducible" in free and "decode_image" in free


def test_one_builder_builds_independent_pipelines(src):
    b = builder(src)
    first, second = b.build(num_threads=1), b.build(num_threads=2)
    a = next(iter(first))
    rest = [batch for batch in second]
    assert a.index == 0 and len(rest) == 6
    assert len(list(first)) == 5
    first.stop()
