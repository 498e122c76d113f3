"""Configurations, statistics and ops, as dataclasses sees them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pprint
from fractions import Fraction

import pytest

from stages import double
from stoker import io, ops
from stoker._value import Value
from stoker.pipeline import (
    PipelineBuilder,
    ProcessGroupResourceUsage,
    ProfileResult,
    QueuePerfStats,
    StageInfo,
    TaskPerfStats,
)
from stoker.pipeline._placement import RegionConfig
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    BatchConfig,
    Disaggregate,
    ExecutorConfig,
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

STATS = TaskPerfStats(10, 1, 0.5, 0.75, 1.0)
PIPELINE = PipelineConfig(SourceConfig([1, 2]), [Pipe(double, max_failures=Fraction(1, 2))], SinkConfig(2))
VALUES = [
    STATS,
    QueuePerfStats(2.0, 10, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    StageInfo(1, "2", "three", 4),
    ProfileResult("stage", [(4, 100.0, 0.5), (1, 30.0, 0.25)]),
    ProcessGroupResourceUsage(*range(11)),
    PIPELINE,
    *(PIPELINE.src, PIPELINE.pipes[0], PIPELINE.pipes[0]._args, PIPELINE.sink),
    Merge([PIPELINE, PIPELINE]),
    Aggregate(3, drop_last=True),
    Disaggregate(),
    BatchConfig(4, keep_empty=True),
    PathVariants(bool, [[Pipe(double)], [Pipe(double)]]),
    PlacementConfig(MAIN_PROCESS, buffer_size=4),
    ExecutorConfig(2),
    ProcessPoolExecutorConfig(2, mp_context="spawn"),
    InterpreterPoolExecutorConfig(3),
    ops.read(max_bytes=9),
    ops.decode_image(8, 8, crop="center"),
    ops.normalize(),
    ops.mixup(0.2),
    ops.color_jitter(0.4),
    io.demux_config(format_options={"a": "b"}, protocols=["file"]),
    io.decode_config(decoder_options={"threads": "2"}),
    io.audio_encode_config(num_channels=2, sample_rate=8000),
    io.video_encode_config(height=4, width=6, frame_rate=(30, 1)),
]
EACH = pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)


@EACH
def test_fields_are_the_parameters(value):
    assert dataclasses.is_dataclass(value) and dataclasses.is_dataclass(type(value))
    fields = {field.name: field for field in dataclasses.fields(value)}
    parameters = inspect.signature(type(value)).parameters
    assert list(fields) == list(parameters)
    for name, parameter in parameters.items():
        default = dataclasses.MISSING if parameter.default is parameter.empty else parameter.default
        assert fields[name].default == default and fields[name].init
        assert fields[name].kw_only == (parameter.kind is parameter.KEYWORD_ONLY)
        assert isinstance(fields[name].type, str)


@EACH
def test_they_are_replaced_and_read(value):
    names = [field.name for field in dataclasses.fields(value)]
    assert vars(value) == {name: getattr(value, name) for name in names}
    again = dataclasses.replace(value)
    assert again == value and type(again) is type(value) and again is not value
    assert value.__replace__() == value == copy.copy(value)
    assert list(dataclasses.asdict(value)) == names
    assert pprint.pformat(value) == repr(value)


def below(cls):
    for child in cls.__subclasses__():
        yield child
        yield from below(child)


def test_every_field_can_be_given():
    for cls in below(Value):
        if cls.__module__.startswith("stoker") and cls is not RegionConfig:  # which the builder makes
            names = {field.name for field in dataclasses.fields(cls) if field.init}
            assert names == set(inspect.signature(cls).parameters) == set(cls._names), cls


def test_as_callbacks_log_them():
    want = {"num_tasks": 10, "num_failures": 1, "ave_time": 0.5, "p90_time": 0.75, "p99_time": 1.0}
    assert dataclasses.asdict(STATS) == vars(STATS) == want
    assert dataclasses.astuple(STATS) == (10, 1, 0.5, 0.75, 1.0)
    assert vars(STATS) is not vars(STATS), "so nobody changes it that way"


def test_replacing():
    config = PipelineBuilder().add_source([1, 2, 3]).pipe(double).add_sink(2).get_config()
    more = dataclasses.replace(config, sink=dataclasses.replace(config.sink, buffer_size=5))
    assert more.sink == SinkConfig(5) and config.sink == SinkConfig(2)
    assert (more.src, more.pipes) == (config.src, config.pipes)
    assert dataclasses.replace(config.pipes[0], name="twice").name == "twice"
    assert dataclasses.asdict(config)["sink"] == {"buffer_size": 2}
    with pytest.raises(ValueError, match="buffer_size"):
        dataclasses.replace(config.sink, buffer_size=0)
    with pytest.raises(TypeError, match="size"):
        dataclasses.replace(config.sink, size=3)


def test_fields_are_those_of_the_class_itself():
    """Whichever is asked first."""
    names = [field.name for field in dataclasses.fields(ProcessPoolExecutorConfig)]
    assert names == ["max_workers", "initializer", "initargs", "mp_context"]
    assert [field.name for field in dataclasses.fields(ExecutorConfig)] == names[:3]
    assert ProcessPoolExecutorConfig.__dataclass_params__.frozen


def test_matching():
    match StageInfo(1, "2", "three", 4):
        case StageInfo(pipeline, _, name, concurrency=4):
            assert (pipeline, name) == (1, "three")
        case _:
            raise AssertionError
    assert ops.decode_image.__match_args__ == ("width", "height")


def test_they_do_not_change():
    with pytest.raises(AttributeError, match="cannot be changed"):
        STATS.num_tasks = 3
