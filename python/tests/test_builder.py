"""Building: arguments, errors, what is printed."""

from __future__ import annotations

import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction

import pytest

import stoker.pipeline
import typed_builder
from stoker import PipelineBuilder, ops, source
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    Aggregator,
    Collate,
    Disaggregate,
    ExecutorConfig,
    InterpreterPoolExecutorConfig,
    PathVariants,
    Pipe,
    PipelineConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
    SinkConfig,
    SourceConfig,
)
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


# --- stages of Python's ---


def double(x):
    return 2 * x


async def fetch(x):
    return x


def route(x):
    return x % 2


def python_builder(*pipes):
    b = PipelineBuilder().add_source([1, 2, 3])
    for stage in pipes:
        b.pipe(stage)
    return b


class Asynchronous:
    def __aiter__(self):
        return self

    async def __anext__(self):
        raise StopAsyncIteration


class OldSequence:
    def __getitem__(self, i):
        raise IndexError


def test_a_builder_makes_the_configs_that_the_factories_make():
    total = Collate(2)
    b = PipelineBuilder().add_source((1, 2), continuous=True)
    assert b.pipe(double, concurrency=4, name="n", output_order="input", max_failures=3) is b
    assert b.pipe(fetch, on_error="raise", retries=2, timeout=0.5) is b
    assert b.pipe({1: 2}, executor=ExecutorConfig(2)) is b
    assert b.aggregate(3, drop_last=True) is b
    assert b.aggregate(total) is b
    assert b.disaggregate() is b
    assert b.path_variants(route, [[Pipe(double)], [Disaggregate()]], "v", True) is b
    assert b.to(ProcessPoolExecutorConfig(2), buffer_size=4) is b
    assert b.pipe(double) is b
    assert b.to(MAIN_PROCESS) is b
    assert b.add_sink(1000) is b
    assert b.get_config() == PipelineConfig(
        SourceConfig((1, 2), True),
        [
            Pipe(double, concurrency=4, name="n", output_order="input", max_failures=3),
            Pipe(fetch, on_error="raise", retries=2, timeout=0.5),
            Pipe({1: 2}, executor=ExecutorConfig(2)),
            Aggregate(3, drop_last=True),
            Aggregate(total),
            Disaggregate(),
            PathVariants(route, [[Pipe(double)], [Disaggregate()]], "v", True),
            PlacementConfig(ProcessPoolExecutorConfig(2), buffer_size=4),
            Pipe(double),
            PlacementConfig(MAIN_PROCESS),
        ],
        SinkConfig(1000),
    )


@pytest.mark.parametrize(
    "iterable", [[], (1,), "abc", {1: 2}, range(3), iter([1]), (i for i in ()), Asynchronous(), OldSequence()]
)
def test_anything_to_iterate_over_is_a_source(iterable):
    b = PipelineBuilder().add_source(iterable).add_sink()
    assert b.get_config().src == SourceConfig(iterable)
    with pytest.raises(ValueError, match="source already"):
        b.add_source(iterable)


def test_a_source_that_says_yes_to_any_name():
    class Proxy:
        def __getattr__(self, name):
            return lambda *args: pytest.fail(name) if name.startswith("_stoker") else None

        def __iter__(self):
            return iter(range(1000))

    pipeline = PipelineBuilder().add_source(Proxy()).pipe(double).add_sink(1).build(num_threads=1)
    with pipeline.auto_stop():
        assert next(iter(pipeline)) == 0


def test_a_config_does_not_change_with_its_builder():
    b = python_builder(double).add_sink()
    config = b.get_config()
    b.pipe(fetch)
    assert [stage.name for stage in config.pipes] == ["double"]
    assert [stage.name for stage in b.get_config().pipes] == ["double", "fetch"]


def test_defaults_of_the_sink():
    assert python_builder().add_sink().get_config().sink == SinkConfig(3)


def test_pipe_checks_at_once():
    b = python_builder()
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="`executor` cannot be specified when op is async"):
            b.pipe(fetch, executor=pool)
        b.pipe(double, executor=pool)
    for options in ({"concurrency": 0}, {"output_order": "x"}, {"timeout": 0}, {"retries": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            b.pipe(double, **options)
    with pytest.raises(ValueError, match="at least one path"):
        b.path_variants(route, [])
    with pytest.raises(TypeError, match="n must be an integer"):
        b.aggregate("3")
    with pytest.raises(TypeError, match="drop_last"):
        b.aggregate(3, drop_last=1)
    assert len(b.add_sink().get_config().pipes) == 1


def test_prints_python_stages_at_every_step():
    class Total(Aggregator):
        def accumulate(self, item):
            return item

        def flush(self):
            return None

    b = PipelineBuilder()
    steps = [
        lambda: b.add_source(range(9), continuous=True),
        lambda: b.pipe(double, concurrency=3),
        lambda: b.pipe(lambda x: x),
        lambda: b.aggregate(32),
        lambda: b.aggregate(Total()),
        lambda: b.disaggregate(),
        lambda: b.path_variants(route, [[Pipe(fetch)], [Aggregate(2)]]),
        lambda: b.to(ProcessPoolExecutorConfig(2)),
        lambda: b.pipe({1: 2}),
        lambda: b.to(MAIN_PROCESS, buffer_size=2),
        lambda: b.add_sink(7),
    ]
    texts = [str(b)]
    for step in steps:
        step()
        texts.append(str(b))
        assert all(part in texts[-1] for part in ("PipelineBuilder", "Source:", "Pipes:", "Sink:"))
    assert len(set(texts)) == len(texts)
    line = inspect.getsourcelines(double)[1]
    for part in (
        "SourceConfig(range, continuous=True)", f"double at {__file__}:{line}", "concurrency=3",
        "<lambda> at ", "aggregate(32", "Total at ", "disaggregate()", "PathVariants(", "path1:",
        "placement(ProcessPoolExecutorConfig(max_workers=2))", "dict", "buffer_size=7",
        "placement(MAIN_PROCESS, buffer_size=2)",
    ):  # fmt: skip
        assert part in texts[-1]


def test_builders_pickle(photos, paths):
    b = (
        python_builder(double, fetch)
        .aggregate(2)
        .path_variants(route, [[Pipe(double)]])
        .to(ProcessPoolExecutorConfig(1, mp_context="spawn"))
        .pipe(double)
        .to(MAIN_PROCESS)
    )
    again = pickle.loads(pickle.dumps(b))
    assert repr(again) == repr(b)
    assert again.add_sink().get_config() == b.add_sink().get_config()
    assert pickle.loads(pickle.dumps(b.get_config())) == b.get_config()


# --- regions ---


def region(target=None, **options):
    return python_builder().to(target or ProcessPoolExecutorConfig(1), **options)


@pytest.mark.parametrize("buffer_size", [0, -1, 1.5, "2", None, True])
def test_buffer_size_of_a_region(buffer_size):
    with pytest.raises(ValueError, match="`buffer_size` must be a positive integer"):
        region(buffer_size=buffer_size)


def test_targets():
    b = python_builder()
    with ThreadPoolExecutor(1) as threads, ProcessPoolExecutor(1) as processes:
        for executor in (threads, processes):
            with pytest.raises(TypeError, match="must be a ProcessPoolExecutorConfig.*not a live Executor"):
                b.to(executor)
    for target in (None, 3, ExecutorConfig(1), ProcessPoolExecutorConfig):
        with pytest.raises(TypeError, match="target must be a ProcessPoolExecutorConfig"):
            b.to(target)
    assert b.add_sink().get_config().pipes == ()


@pytest.mark.python(before=(3, 14))
def test_interpreters_need_a_newer_python():
    with pytest.raises(RuntimeError, match="requires Python 3.14"):
        region(InterpreterPoolExecutorConfig(2))


def test_regions_that_cannot_be():
    two = ProcessPoolExecutorConfig(2)
    for b, text in (
        (region().add_sink(), "must be closed with"),
        (region().pipe(double).add_sink(), "must be closed with"),
        (region().pipe(double).to(two).pipe(double).add_sink(), "must be closed with"),
        (region().to(MAIN_PROCESS).add_sink(), "has no stages"),
        (region().to(two).pipe(double).to(MAIN_PROCESS).add_sink(), "has no stages"),
        (region().pipe(double).to(two).to(MAIN_PROCESS).add_sink(), "has no stages"),
        (region().pipe(double, output_order="input").to(MAIN_PROCESS).add_sink(), "output_order='input'"),
        (
            region()
            .path_variants(route, [[PathVariants(route, [[Pipe(fetch, output_order="input")]])]])
            .to(MAIN_PROCESS)
            .add_sink(),
            "'fetch': output_order='input'",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            b.get_config()
        with pytest.raises(ValueError, match=text):
            b.build(num_threads=1)


def test_regions_that_can_be():
    b = python_builder(double).to(MAIN_PROCESS).pipe(double, output_order="input")
    b.to(ProcessPoolExecutorConfig(1)).pipe(double).to(ProcessPoolExecutorConfig(2)).aggregate(2)
    b.to(MAIN_PROCESS).pipe(double, output_order="input").add_sink()
    assert [stage.name for stage in b.get_config().pipes].count("placement") == 4


@pytest.mark.parametrize(
    ("marks", "error", "text"),
    [
        ([PlacementConfig(MAIN_PROCESS, buffer_size=0)], ValueError, "`buffer_size` must be a positive"),
        ([PlacementConfig(3)], TypeError, "target must be a ProcessPoolExecutorConfig"),
        ([PlacementConfig(ProcessPoolExecutorConfig(1))], ValueError, "has no stages"),
        (
            [PlacementConfig(ProcessPoolExecutorConfig(1)), Pipe(double, output_order="input")],
            ValueError,
            "output_order='input'",
        ),
    ],
)
def test_marks_made_by_hand_are_checked_when_built(src, marks, error, text):
    config = PipelineConfig(SourceConfig(src), marks, SinkConfig(1))
    with pytest.raises(error, match=text):
        stoker.pipeline.build_pipeline(config, num_threads=1)


def test_types_flow():
    typed_builder.run()
    assert PipelineBuilder[int]().add_source([1]).add_sink().get_config().src.source == [1]


@pytest.mark.parametrize("name", ["Pipeline", "PipelineIterator"])
def test_pipelines_name_the_type_of_their_items(name):
    cls = getattr(stoker.pipeline, name)
    alias = cls[int]
    assert (alias.__origin__, alias.__args__) == (cls, (int,))
    assert issubclass(type("Mine", (cls,), {}), cls)
    assert pickle.loads(pickle.dumps(alias)) == alias


CONFIGS = "Source Merge Pipe Aggregate Disaggregate PathVariants Sink Pipeline"


@pytest.mark.parametrize("name", [f"{word}Config" for word in CONFIGS.split()])
def test_configs_name_the_type_of_their_items(name):
    assert getattr(stoker.pipeline.defs, name)[int].__args__ == (int,)


def test_loaders_and_folders_name_the_type_of_their_items():
    from stoker.dataloader import CacheDataLoader, DataLoader, PyTorchDataLoader
    from stoker.source.imagenet import ImageNet
    from stoker.source.local_directory import LocalDirectory

    for cls in (CacheDataLoader, DataLoader, PyTorchDataLoader, ImageNet, LocalDirectory):
        assert cls[int].__origin__ is cls
