"""Configurations: fields, checks, equality, pickles."""

from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import pytest

from stages import (
    AsyncCall,
    Resize,
    Total,
    double,
    everything,
    fetch,
    merge,
    pipeline,
    route,
    split,
    stream,
)
from stoker import ops
from stoker.pipeline import defs
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    AggregateConfig,
    Aggregator,
    BatchConfig,
    Collate,
    Disaggregate,
    DisaggregateConfig,
    ExecutorConfig,
    InterpreterPoolExecutorConfig,
    Merge,
    MergeConfig,
    PathVariants,
    PathVariantsConfig,
    Pipe,
    PipeConfig,
    PipelineConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
    SinkConfig,
    SourceConfig,
)


# --- names and fields ---


def test_every_name_can_be_imported():
    names = {}
    exec("from stoker.pipeline.defs import *", names)  # noqa: S102
    assert set(defs.__all__) <= set(names)
    public = (
        "SourceConfig PipeConfig AggregateConfig DisaggregateConfig PathVariantsConfig MergeConfig "
        "SinkConfig PipelineConfig PlacementConfig ExecutorConfig ProcessPoolExecutorConfig "
        "InterpreterPoolExecutorConfig MAIN_PROCESS Aggregator Collate Pipe Aggregate Disaggregate "
        "Merge PathVariants BatchConfig"
    )
    assert set(public.split()) <= set(defs.__all__)
    for name in defs.__all__:
        thing = getattr(defs, name)
        if isinstance(thing, type):
            assert (thing.__module__, thing.__qualname__) == ("stoker.pipeline.defs", name)


def test_signatures():
    def names(factory):
        return list(inspect.signature(factory).parameters)

    assert names(SourceConfig) == ["source", "continuous"]
    assert names(Pipe) == [
        "op", "concurrency", "executor", "name", "output_order", "max_failures", "on_error",
        "retries", "timeout",
    ]  # fmt: skip
    assert names(Aggregate) == ["n", "drop_last"]
    assert names(Disaggregate) == []
    assert names(Merge) == names(MergeConfig) == ["pipeline_configs", "op"]
    assert names(PathVariants) == ["router", "paths", "name", "batched"]
    assert names(ExecutorConfig) == ["max_workers", "initializer", "initargs"]
    assert names(ProcessPoolExecutorConfig)[:4] == ["max_workers", "initializer", "initargs", "mp_context"]
    assert names(PlacementConfig) == ["target", "name", "buffer_size"]
    assert names(PipelineConfig) == ["src", "pipes", "sink"]


def test_fields_of_a_pipe():
    with ThreadPoolExecutor(1) as pool:
        config = Pipe(
            double, concurrency=3, executor=pool, name="n", output_order="input", max_failures=2,
            retries=4, timeout=0.5,
        )  # fmt: skip
    assert (config.name, config._max_failures) == ("n", 2)
    args = config._args
    assert (args.op, args.executor, args.concurrency, args.op_requires_eof) == (double, pool, 3, False)
    assert config._type is defs._PipeType.OrderedPipe
    assert (config.op, config.executor, config.concurrency) == (double, pool, 3)
    assert (config.output_order, config.max_failures) == ("input", 2)
    assert (config.on_error, config.retries, config.timeout) == ("skip", 4, 0.5)


def test_what_is_not_passed_depends_on_the_op():
    python, native = Pipe(double), Pipe(ops.read())
    assert (python.name, python.concurrency, python.output_order) == ("double", 1, "completion")
    assert (python.on_error, python.max_failures) == ("skip", None)
    assert (native.name, native.concurrency, native.output_order) == ("read", None, "input")
    assert (native.on_error, native.max_failures) == ("raise", None)
    assert Pipe(ops.read(), max_failures=3).on_error == "skip"
    for config in (python, native):
        assert (config.executor, config.retries, config.timeout) == (None, 0, None)


def test_fields_of_the_others():
    assert (SourceConfig([1]).source, SourceConfig([1]).continuous) == ([1], False)
    config = Aggregate(3, drop_last=True)
    assert isinstance(config, AggregateConfig) and isinstance(config.op, Collate)
    assert (config.name, config.op.n, config.drop_last) == ("aggregate", 3, True)
    total = Total()
    assert Aggregate(total).op is total and Aggregate(total).drop_last is False
    assert isinstance(Disaggregate(), DisaggregateConfig) and Disaggregate().name == "disaggregate"
    variants = PathVariants(route, [[Pipe(double)], [Disaggregate()]], batched=True)
    assert isinstance(variants, PathVariantsConfig)
    assert (variants.name, variants.router, variants.batched) == ("path_variants", route, True)
    assert variants.paths == ((Pipe(double),), (Disaggregate(),))
    mark = PlacementConfig(MAIN_PROCESS)
    assert (mark.target, mark.name, mark.buffer_size) == (MAIN_PROCESS, "placement", 1)
    whole = pipeline(Pipe(double))
    assert (whole.src.source, whole.pipes, whole.sink.buffer_size) == ((1, 2), (Pipe(double),), 3)
    assert SinkConfig(10**9).buffer_size == 10**9


# --- checks ---


@pytest.mark.parametrize("op", [fetch, AsyncCall(), partial(fetch), stream])
def test_no_executor_for_what_is_async(op):
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="^`executor` cannot be specified when op is async\\.$"):
            Pipe(op, executor=pool)


def test_an_executor_is_one():
    for executor in (3, ThreadPoolExecutor, object()):
        with pytest.raises(TypeError, match="executor must be an Executor"):
            Pipe(double, executor=executor)
    with pytest.raises(ValueError, match="op is native"):
        Pipe(ops.read(), executor=ExecutorConfig(1))


def test_an_async_generator_has_no_input_order():
    class Stream:
        async def __call__(self, x):
            yield x

    for op in (stream, Stream()):
        with pytest.raises(ValueError, match="output_order='input'"):
            Pipe(op, output_order="input")
    for op in (double, fetch, split, {}):
        assert Pipe(op, output_order="input").output_order == "input"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"concurrency": -3}, ValueError, "concurrency"),
        ({"concurrency": 1.5}, TypeError, "concurrency"),
        ({"concurrency": None}, TypeError, "concurrency"),
        ({"output_order": "random"}, ValueError, "output_order"),
        ({"output_order": None}, TypeError, "output_order"),
        ({"name": ""}, TypeError, "name"),
        ({"name": 3}, TypeError, "name"),
        ({"max_failures": Fraction(3, 2)}, ValueError, r"must be in range \(0, 1\]"),
        ({"max_failures": Fraction(0)}, ValueError, r"must be in range \(0, 1\]"),
        ({"max_failures": Fraction(-1, 2)}, ValueError, r"must be in range \(0, 1\]"),
        ({"max_failures": "3"}, TypeError, "max_failures"),
        ({"on_error": "ignore"}, ValueError, "on_error"),
        ({"on_error": "raise", "max_failures": 3}, ValueError, "max_failures"),
        ({"on_error": "substitute", "max_failures": 0}, ValueError, "max_failures"),
        ({"retries": -1}, ValueError, "retries"),
        ({"retries": 1.0}, TypeError, "retries"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"timeout": -0.5}, ValueError, "timeout"),
        ({"timeout": float("inf")}, ValueError, "timeout"),
        ({"timeout": float("nan")}, ValueError, "timeout"),
        ({"timeout": "1"}, TypeError, "timeout"),
    ],
)
def test_pipe_names_the_bad_argument(options, error, text):
    for op in (double, fetch, ops.read()):
        with pytest.raises(error, match=text):
            Pipe(op, **options)


def test_a_rate_of_one_and_any_number_are_limits():
    for limit in (0, -1, 10**12, Fraction(1), Fraction(1, 10**6)):
        assert Pipe(double, max_failures=limit).max_failures == limit
    assert Pipe(double, max_failures=-7).max_failures == -1


def test_python_stages_have_no_upper_limit():
    assert Pipe(fetch, concurrency=100_000).concurrency == 100_000
    with pytest.raises(ValueError, match="from 1 to 1024"):
        Pipe(ops.read(), concurrency=1025)


@pytest.mark.parametrize("n", [0, -1, 2.0, "3", None, True])
def test_counts(n):
    for make in (Aggregate, Collate, SinkConfig, BatchConfig):
        with pytest.raises((ValueError, TypeError), match="must be"):
            make(n)


def test_merge():
    with pytest.raises(ValueError, match="at least one upstream pipeline"):
        Merge([])
    with pytest.raises(ValueError, match="at least one upstream pipeline"):
        MergeConfig([])
    with pytest.raises(TypeError, match="PipelineConfig, not list"):
        Merge([[1]])
    for op in (route, {}, stream, AsyncCall):
        with pytest.raises(TypeError, match="async function"):
            Merge([pipeline()], op)
    assert Merge([pipeline()], merge).op is merge
    assert Merge([pipeline(), pipeline()]).pipeline_configs == (pipeline(), pipeline())
    assert Merge(iter([pipeline()])).pipeline_configs == (pipeline(),)


def test_a_merge_is_continuous_or_not():
    once, forever = pipeline(), pipeline(continuous=True)
    assert Merge([once, once]).continuous is False
    assert Merge([forever, forever]).continuous is True
    nested = PipelineConfig(Merge([forever]), [], SinkConfig(1))
    assert Merge([nested, forever]).continuous is True
    for mixed in ([once, forever], [forever, once], [once, nested]):
        with pytest.raises(ValueError, match="Mixed continuous mode"):
            Merge(mixed).continuous  # noqa: B018


@pytest.mark.parametrize(
    ("router", "paths"),
    [
        (None, [[Pipe(double)]]),
        ({0: 1}, [[Pipe(double)]]),
        (split, [[Pipe(double)]]),
        (stream, [[Pipe(double)]]),
        (route, []),
        (route, [[]]),
        (route, [[Pipe(double)], []]),
        (route, [Pipe(double)]),
        (route, [[double]]),
        (route, [[SourceConfig([1])]]),
        (route, [[Pipe(double), SinkConfig(1)]]),
        (route, [[Merge([pipeline()])]]),
        (route, [[PlacementConfig(MAIN_PROCESS)]]),
    ],
)
def test_path_variants_that_cannot_be(router, paths):
    with pytest.raises(ValueError, match="router must be|at least one path|path[01] m"):
        PathVariants(router, paths)


def test_routers():
    class Both(dict):
        async def __call__(self, x):
            return 0

    for router in (route, fetch, Resize(), AsyncCall(), Both(), partial(route), lambda x: 0):
        assert PathVariants(router, [[Pipe(double)]]).router is router


def test_aggregator_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Aggregator()
    assert issubclass(Collate, Aggregator)


def test_collate():
    collate = Collate(2)
    assert collate.flush() is None
    assert collate.accumulate(1) is None
    assert collate.accumulate(None) == [1, None]
    assert collate.accumulate(3) is None
    assert collate.flush() == [3]
    assert collate.flush() is None
    assert Collate(1).accumulate("a") == ["a"]


# --- values ---


def test_executor_configs():
    config = ProcessPoolExecutorConfig(max_workers=4, initializer=double, initargs=[1, 2])
    assert (config.max_workers, config.initializer, config.initargs) == (4, double, (1, 2))
    assert config.mp_context is None
    assert isinstance(config, ExecutorConfig)
    assert ExecutorConfig() == ExecutorConfig(None, None, ())
    assert InterpreterPoolExecutorConfig(3) == InterpreterPoolExecutorConfig(max_workers=3)
    assert InterpreterPoolExecutorConfig(3) != InterpreterPoolExecutorConfig(4)
    assert InterpreterPoolExecutorConfig(3) != ExecutorConfig(3)
    assert ProcessPoolExecutorConfig(3) != ProcessPoolExecutorConfig(3, mp_context="spawn")
    assert len({ProcessPoolExecutorConfig(3), ProcessPoolExecutorConfig(3)}) == 1
    with pytest.raises(TypeError):
        InterpreterPoolExecutorConfig(mp_context="spawn")
    with pytest.raises(AttributeError):
        config.max_workers = 5
    with pytest.raises(AttributeError):
        InterpreterPoolExecutorConfig(1).max_workers = 5


def test_equal_by_value():
    assert everything() == everything()
    assert Pipe(double) != Pipe(double, retries=1)
    assert Aggregate(2) == Aggregate(2) != Aggregate(3)
    assert BatchConfig(2) != 2


def test_everything_pickles():
    config = everything()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(config, protocol))
        assert repr(again) == repr(config)
        assert again.src == config.src and again.sink == config.sink
        resize = 4  # an object of a class without __eq__
        assert again.pipes[:resize] == config.pipes[:resize]
        assert again.pipes[resize + 1 :] == config.pipes[resize + 1 :]
        assert again.pipes[5].target is MAIN_PROCESS
    assert copy.deepcopy(MAIN_PROCESS) is MAIN_PROCESS
    assert copy.copy(config) == config


def test_an_aggregator_keeps_its_items_in_a_pickle():
    config = Aggregate(3)
    config.op.accumulate(1)
    again = pickle.loads(pickle.dumps(config))
    assert again == config != Aggregate(3)
    assert again.op.flush() == [1]


def test_configs_have_item_types():
    assert PipelineConfig[int].__origin__ is PipelineConfig
    assert Collate[int](2) == Collate(2)
