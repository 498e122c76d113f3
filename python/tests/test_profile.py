"""Profiles: which runs they make, of what, and what they say of them.

The runs are those of a model that is as fast as it says, so that figures can be known.
"""

from __future__ import annotations

import logging
import pickle
from contextlib import contextmanager

import pytest

from stoker.pipeline import ProfileHook, ProfileResult, _profile, config, profile_pipeline
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    AggregateConfig,
    Aggregator,
    Disaggregate,
    DisaggregateConfig,
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

FIVE = [32, 16, 8, 4, 1]


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Model:
    """A pipeline in one thread, whose stages take a second for `concurrency` items."""

    clock: Clock
    runs: list[tuple[list[str], int]]

    def __init__(self, cfg, *, num_threads):
        self.runs.append(([stage.name for stage in cfg.pipes], num_threads))
        self.cfg = cfg

    def items(self, src):
        if isinstance(src, MergeConfig):
            for upstream in src.pipeline_configs:
                yield from Model.__iter__(self.of(upstream))
        else:
            yield from src.source

    def of(self, cfg):
        other = object.__new__(Model)
        other.cfg = cfg
        return other

    def __iter__(self):
        items = self.items(self.cfg.src)
        for stage in self.cfg.pipes:
            items = self.stage(stage, items)
        return iter(items)

    def stage(self, stage, items):
        if isinstance(stage, PipeConfig):
            for item in items:
                self.clock.now += 1 / stage.concurrency
                made = stage.op(item)
                if made is not None:
                    yield made
        elif isinstance(stage, AggregateConfig):
            for item in items:
                made = stage.op.accumulate(item)
                if made is not None:
                    yield made
            if not stage.drop_last and (made := stage.op.flush()) is not None:
                yield made
        elif isinstance(stage, DisaggregateConfig):
            for item in items:
                yield from item
        elif isinstance(stage, PathVariantsConfig):
            for item in items:
                path = stage.paths[stage.router(item)]
                yield from Model(PipelineConfig(SourceConfig([item]), path, SinkConfig(1)), num_threads=0)
        else:
            yield from items

    @contextmanager
    def auto_stop(self):
        yield
        self.clock.now += 1000  # not the stage's

    def stats(self):
        return {"queues": [{"empty": 0.9}, {"empty": 0.25}]}


@pytest.fixture(autouse=True)
def model(monkeypatch):
    Model.clock, Model.runs = Clock(), []
    monkeypatch.setattr(_profile, "build_pipeline", Model)
    monkeypatch.setattr(_profile, "time", Model.clock)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    for name in ("_profile_hook", "_profile_callback"):
        monkeypatch.setattr(config, name, None)
    return Model


def pipeline(source, *stages):
    return PipelineConfig(SourceConfig(source), stages, SinkConfig(3))


def double(x):
    return 2 * x


def test_every_stage_alone(model):
    seen = []
    cfg = pipeline(range(100), Pipe(double, name="double", concurrency=7), Pipe(seen.append, name="keep"))
    results = profile_pipeline(cfg, 40)
    assert [result.name for result in results] == ["double", "keep"]
    assert [[entry.concurrency for entry in result.stats] for result in results] == [FIVE, FIVE]
    # Stage and threads alike; the first run only fetches.
    assert model.runs[0][0] == [] and model.runs[1:] == [
        ([name], n) for name in ("double", "keep") for n in FIVE
    ]
    assert seen == [2 * x for x in range(40)] * 5
    for entry in results[0].stats:
        assert entry.qps == pytest.approx(entry.concurrency) and entry.occupancy_rate == 0.75
        assert tuple(entry) == (entry.concurrency, entry.qps, entry.occupancy_rate)
    assert all(entry.qps == 0 for entry in results[1].stats)  # it gives nothing


def test_a_thousand_inputs_unless_told_otherwise(model):
    seen = []
    profile_pipeline(pipeline(range(5000), Pipe(seen.append, name="keep")))
    assert len(seen) == 5 * 1000
    seen.clear()
    profile_pipeline(pipeline(range(3), Pipe(seen.append, name="keep")))
    assert len(seen) == 5 * 3
    with pytest.raises(ValueError, match="num_inputs"):
        profile_pipeline(pipeline(range(3)), 0)


def test_aggregates_run_with_one(model):
    seen = []
    cfg = pipeline(range(10), Aggregate(4), Disaggregate(), Pipe(seen.append, name="keep"))
    aggregate, disaggregate, keep = profile_pipeline(cfg)
    assert [[e.concurrency for e in r.stats] for r in (aggregate, disaggregate, keep)] == [[1], [1], FIVE]
    assert "aggregate" in aggregate.name and disaggregate.name == "disaggregate"
    assert seen == list(range(10)) * 5


def test_aggregators_keep_their_state(model):
    class Sum(Aggregator):
        total = 0

        def accumulate(self, item):
            self.total += item

        def flush(self):
            return self.total

    op = Sum()
    profile_pipeline(pipeline(range(10), Aggregate(op, drop_last=True)))
    assert op.total == 0


def test_upstream_pipelines_come_first(model):
    seen = []
    left = pipeline(range(3), Pipe(double, name="left"))
    right = pipeline(range(10, 13), Pipe(double, name="right"))
    cfg = PipelineConfig(Merge([left, right]), (Pipe(seen.append, name="keep"),), SinkConfig(3))
    assert [result.name for result in profile_pipeline(cfg)] == ["left", "right", "keep"]
    assert seen == [0, 2, 4, 20, 22, 24] * 5


def test_variants_and_regions_pass_their_items_on(model):
    seen = []
    paths = [[Pipe(double, name="even")], [Pipe(str, name="odd")]]
    region = ProcessPoolExecutorConfig(1)
    cfg = pipeline(
        range(4),
        PathVariants(lambda x: x % 2, paths),
        Pipe(lambda x: [x], name="wrap"),
        PlacementConfig(region),
        Pipe(lambda x: x * 2, name="twice"),
        PlacementConfig(region),
        Pipe(len, name="len"),
        PlacementConfig(MAIN_PROCESS),
        Pipe(seen.append, name="keep"),
        PlacementConfig(region),
        Pipe(double, name="left open"),
    )
    assert [result.name for result in profile_pipeline(cfg)] == ["wrap", "keep"]
    assert seen == [2, 2, 2, 2] * 5
    names = [names for names, _ in model.runs]
    assert ["placement", "twice", "placement", "len", "placement"] in names
    assert ["placement", "left open"] in names


def test_callbacks(model, caplog):
    told = []
    cfg = pipeline(range(3), Pipe(double, name="one"), Pipe(double, name="two"))
    results = profile_pipeline(cfg, callback=told.append)
    assert told == results and all(isinstance(result, ProfileResult) for result in told)
    config.set_default_profile_callback(lambda result: told.append(result.name))
    profile_pipeline(cfg)
    assert told[2:] == ["one", "two"]

    def fail(result):
        raise LookupError("no such table")

    assert len(profile_pipeline(cfg, callback=fail)) == 2
    assert caplog.text.count("LookupError: no such table") == 2


def test_results_are_logged_where_nobody_takes_them(model, caplog):
    caplog.set_level(logging.INFO, "stoker.pipeline")
    profile_pipeline(pipeline(range(3), Pipe(double, name="one")))
    assert "one:" in caplog.text and "concurrency 32" in caplog.text


class Hook(ProfileHook):
    def __init__(self):
        self.log = []

    @contextmanager
    def stage_profile_hook(self, stage, concurrency):
        self.log.append((stage, concurrency))
        yield
        self.log.append("after")

    @contextmanager
    def pipeline_profile_hook(self):
        self.log.append("begin")
        yield
        self.log.append("end")


@pytest.mark.parametrize("default", [False, True])
def test_hooks(model, default):
    hook = Hook()
    if default:
        config.set_default_profile_hook(hook)
    upstream = pipeline(range(3), Pipe(double, name="one"))
    cfg = PipelineConfig(Merge([upstream]), (Aggregate(2),), SinkConfig(1))
    profile_pipeline(cfg, hook=None if default else hook)
    (aggregate,) = [entry[0] for entry in hook.log[11:] if isinstance(entry, tuple)]
    calls = [("one", n) for n in FIVE] + [(aggregate, 1)]
    between = [entry for call in calls for entry in (call, "after")]
    assert hook.log == ["begin", *between, "end"]


@pytest.mark.parametrize(("rank", "runs"), [("0", True), ("", True), ("1", False), ("7", False)])
def test_only_on_the_first_rank(model, monkeypatch, rank, runs):
    monkeypatch.setenv("LOCAL_RANK", rank)
    results = profile_pipeline(pipeline(range(3), Pipe(double, name="one")))
    assert bool(results) is bool(model.runs) is runs


def test_results_are_plain_values():
    result = ProfileResult("stage", [(32, 10.5, 0.5), (1, 2.0, 0.25)])
    assert result == ProfileResult(name="stage", stats=[(32, 10.5, 0.5), (1, 2.0, 0.25)])
    assert pickle.loads(pickle.dumps(result)) == result and hash(result)
    assert result.stats[1].concurrency == 1 and result.stats[0].qps == 10.5
    assert "stage:" in str(result) and "10.5 items/s" in str(result) and "50.0 %" in str(result)


WAYS = {
    "start": lambda p: p.start(),
    "for": lambda p: list(p),
    "get_item": lambda p: p.get_item(timeout=1),
    "get_iterator": lambda p: next(p.get_iterator(timeout=1)),
    "auto_stop": lambda p: p.auto_stop().__enter__(),
    "with": lambda p: p.__enter__(),
}


@pytest.mark.parametrize("way", WAYS)
def test_diagnostic_mode(model, monkeypatch, capsys, way):
    monkeypatch.setenv("STOKER_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS", "7")
    seen = []
    made = _profile.diagnostic_pipeline(pipeline(range(100), Pipe(seen.append, name="keep")))
    assert not model.runs and "diagnostic" in repr(made) and "keep" in str(made)
    made.stop()
    with pytest.raises(SystemExit) as raised:
        WAYS[way](made)
    assert raised.value.code == 0 and len(seen) == 5 * 7
    assert "keep:" in capsys.readouterr().err


def test_diagnostic_mode_with_a_callback(model, capsys):
    told = []
    config.set_default_profile_callback(told.append)
    with pytest.raises(SystemExit):
        _profile.diagnostic_pipeline(pipeline(range(3), Pipe(double, name="one"))).start()
    assert [result.name for result in told] == ["one"] and capsys.readouterr().err == ""


def test_pipelines_of_a_profile_are_not_diagnosed(model, monkeypatch):
    cfg = pipeline(range(3), Pipe(lambda x: made.append(_profile.diagnostic_pipeline(cfg)), name="one"))
    made = []
    profile_pipeline(cfg)
    assert made == [None] * 15
    assert _profile.diagnostic_pipeline(cfg) is not None
