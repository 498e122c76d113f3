"""Profiles: which runs they make, of what, and what they say of them."""

from __future__ import annotations

import logging
import pickle
import threading
from contextlib import contextmanager

import pytest

from stoker import PipelineBuilder, PipelineFailure
from stoker.pipeline import ProfileHook, ProfileResult, _profile, build_pipeline, config, profile_pipeline
from stoker.pipeline.defs import (
    MAIN_PROCESS,
    Aggregate,
    Aggregator,
    Disaggregate,
    Merge,
    PathVariants,
    Pipe,
    PipelineConfig,
    PlacementConfig,
    ProcessPoolExecutorConfig,
    SinkConfig,
    SourceConfig,
)
from support import ok, pass_time, script

FIVE = [32, 16, 8, 4, 1]


@pytest.fixture(autouse=True)
def runs(monkeypatch):
    """The stages and the threads of each pipeline that a profile builds."""
    made = []

    def build(cfg, *, num_threads):
        made.append(([stage.name for stage in cfg.pipes], num_threads))
        return build_pipeline(cfg, num_threads=num_threads)

    monkeypatch.setattr(_profile, "build_pipeline", build)
    for name in ("LOCAL_RANK", "STOKER_PIPELINE_DIAGNOSTIC_MODE", "SPDL_PIPELINE_DIAGNOSTIC_MODE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("_profile_hook", "_profile_callback", "_build_callback"):
        monkeypatch.setattr(config, name, None)
    return made


def pipeline(source, *stages):
    return PipelineConfig(SourceConfig(source), stages, SinkConfig(3))


def double(x):
    return 2 * x


def test_every_stage_alone(runs):
    seen = []
    cfg = pipeline(range(100), Pipe(double, name="double", concurrency=7), Pipe(seen.append, name="keep"))
    results = profile_pipeline(cfg, 40)
    assert [result.name for result in results] == ["double", "keep"]
    assert [[entry.concurrency for entry in result.stats] for result in results] == [FIVE, FIVE]
    # Stage and threads alike; the first run only fetches.
    assert runs[0][0] == [] and runs[1:] == [([name], n) for name in ("double", "keep") for n in FIVE]
    assert len(seen) == 5 * 40
    for i in range(5):
        assert sorted(seen[40 * i : 40 * i + 40]) == [2 * x for x in range(40)]
    for entry in results[0].stats:
        assert entry.qps > 0 and 0 <= entry.occupancy_rate <= 1
        assert tuple(entry) == (entry.concurrency, entry.qps, entry.occupancy_rate)
    assert all(entry.qps == 0 for entry in results[1].stats)  # it gives nothing


class Clock:
    """Goes on by a second for each `concurrency` items of the stage that is measured."""

    def __init__(self):
        self.now, self.concurrency, self.lock = 0.0, 1, threading.Lock()

    def perf_counter(self):
        return self.now

    def work(self, item):
        with self.lock:
            self.now += 1 / self.concurrency
        return item


def test_the_rate_is_that_of_the_stage(monkeypatch):
    clock = Clock()

    class Watch(ProfileHook):
        @contextmanager
        def stage_profile_hook(self, stage, concurrency):
            clock.concurrency = concurrency
            yield
            clock.now += 1000  # not the stage's

    monkeypatch.setattr(_profile, "time", clock)
    (result,) = profile_pipeline(pipeline(range(64), Pipe(clock.work)), hook=Watch())
    assert [entry.qps for entry in result.stats] == pytest.approx(FIVE)


def test_as_many_at_once_as_it_says():
    most = []
    lock, busy = threading.Lock(), 0

    def op(item):
        nonlocal busy
        with lock:
            busy += 1
            most.append(busy)
        pass_time(0.001)
        with lock:
            busy -= 1

    profile_pipeline(pipeline(range(64), Pipe(op)))
    peaks = [max(most[64 * i : 64 * i + 64]) for i in range(5)]
    assert all(peak <= n for peak, n in zip(peaks, FIVE, strict=True)) and peaks[4] == 1
    assert peaks[3] > 1


def test_a_slow_stage_has_an_empty_queue():
    (result,) = profile_pipeline(pipeline(range(20), Pipe(lambda x: pass_time(0.01) or x, name="slow")))
    assert result.stats[-1].occupancy_rate < 0.5 and result.stats[-1].qps <= 100


def test_failures():
    def fail():
        yield 1
        raise LookupError("no more")

    with pytest.raises(PipelineFailure, match="pipeline stages failed"):
        profile_pipeline(pipeline(fail(), Pipe(double)))
    strict = Pipe(lambda x: 1 // x, max_failures=0, name="strict")
    with pytest.raises(PipelineFailure):
        profile_pipeline(pipeline([1, 0, 2], strict))


def test_a_thousand_inputs_unless_told_otherwise():
    seen = []
    profile_pipeline(pipeline(range(5000), Pipe(seen.append, name="keep")))
    assert len(seen) == 5 * 1000
    seen.clear()
    profile_pipeline(pipeline(range(3), Pipe(seen.append, name="keep")))
    assert len(seen) == 5 * 3
    with pytest.raises(ValueError, match="num_inputs"):
        profile_pipeline(pipeline(range(3)), 0)


def test_aggregates_run_with_one():
    seen = []
    cfg = pipeline(range(10), Aggregate(4), Disaggregate(), Pipe(seen.append, name="keep"))
    aggregate, disaggregate, keep = profile_pipeline(cfg)
    assert [[e.concurrency for e in r.stats] for r in (aggregate, disaggregate, keep)] == [[1], [1], FIVE]
    assert "aggregate" in aggregate.name and disaggregate.name == "disaggregate"
    assert sorted(seen) == sorted(list(range(10)) * 5)


def test_aggregators_keep_their_state():
    class Sum(Aggregator):
        total = 0

        def accumulate(self, item):
            self.total += item

        def flush(self):
            return self.total

    op = Sum()
    profile_pipeline(pipeline(range(10), Aggregate(op, drop_last=True)))
    assert op.total == 0


def test_upstream_pipelines_come_first():
    seen = []
    left = pipeline(range(3), Pipe(double, name="left"))
    right = pipeline(range(10, 13), Pipe(double, name="right"))
    cfg = PipelineConfig(Merge([left, right]), (Pipe(seen.append, name="keep"),), SinkConfig(3))
    assert [result.name for result in profile_pipeline(cfg)] == ["left", "right", "keep"]
    assert sorted(seen) == sorted([0, 2, 4, 20, 22, 24] * 5)


def test_variants_pass_their_items_on(runs):
    seen = []
    paths = [[Pipe(double, name="even")], [Pipe(str, name="odd")]]
    cfg = pipeline(
        range(4),
        PathVariants(lambda x: x % 2, paths),
        Pipe(lambda x: [x], name="wrap"),
        Pipe(seen.append, name="keep"),
    )
    assert [result.name for result in profile_pipeline(cfg)] == ["wrap", "keep"]
    assert sorted(map(repr, seen)) == sorted(["[0]", "['1']", "[4]", "['3']"] * 5)
    assert [names for names, _ in runs].count(["path_variants"]) == 1


def test_stages_of_a_region_stay_together():
    region = PlacementConfig(ProcessPoolExecutorConfig(1))
    end = PlacementConfig(MAIN_PROCESS)
    one, two, three = (Pipe(double, name=name) for name in ("one", "two", "three"))
    assert list(_profile._steps([one, region, two, region, three, end, one])) == [
        (one,),
        (region, two, region, three, end),
        (one,),
    ]
    assert list(_profile._steps([one, end, region, two])) == [(one,), (region, two)]


def test_callbacks(caplog):
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


def test_results_are_logged_where_nobody_takes_them(caplog):
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
def test_hooks(default):
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


@pytest.mark.parametrize(("rank", "does"), [("0", True), ("", True), ("1", False), ("7", False)])
def test_only_on_the_first_rank(monkeypatch, runs, rank, does):
    monkeypatch.setenv("LOCAL_RANK", rank)
    results = profile_pipeline(pipeline(range(3), Pipe(double, name="one")))
    assert bool(results) is bool(runs) is does


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
def test_diagnostic_mode(monkeypatch, capsys, runs, way):
    monkeypatch.setenv("STOKER_PIPELINE_DIAGNOSTIC_MODE", "1")
    monkeypatch.setenv("STOKER_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS", "7")
    seen = []
    made = build_pipeline(pipeline(range(100), Pipe(seen.append, name="keep")), num_threads=1)
    assert not runs and "diagnostic" in repr(made) and "keep" in str(made)
    assert made.stats()["stages"] == [] and made.failures() == []
    made.stop()
    with pytest.raises(SystemExit) as raised:
        WAYS[way](made)
    assert raised.value.code == 0 and len(seen) == 5 * 7
    assert "keep:" in capsys.readouterr().err


def test_diagnostic_mode_with_a_callback(monkeypatch, capsys):
    monkeypatch.setenv("SPDL_PIPELINE_DIAGNOSTIC_MODE", "1")
    told = []
    config.set_default_profile_callback(told.append)
    builder = PipelineBuilder().add_source(range(3)).pipe(double, name="one").add_sink()
    with pytest.raises(SystemExit):
        builder.build(num_threads=1).start()
    assert [result.name for result in told] == ["one"] and capsys.readouterr().err == ""


def test_diagnostic_mode_by_the_environment_alone():
    code = """
        from stoker.dataloader import DataLoader
        list(DataLoader(range(5), preprocessor=abs))
        print("never reached")
        """
    done = script(code, STOKER_PIPELINE_DIAGNOSTIC_MODE="1")
    assert (done.returncode, done.stdout) == (0, "") and "abs:" in done.stderr
    assert ok(code, STOKER_PIPELINE_DIAGNOSTIC_MODE="0") == "never reached\n"


def test_pipelines_within_a_profile_run(monkeypatch):
    """Those that it builds itself, and those that its stages build."""
    monkeypatch.setenv("STOKER_PIPELINE_DIAGNOSTIC_MODE", "1")
    told = []
    config.set_default_build_callback(told.append)

    def nested(x):
        return sum(build_pipeline(pipeline(range(x), Pipe(double)), num_threads=1))

    made = []
    cfg = pipeline(range(3), Pipe(nested, name="nested"), Pipe(made.append, name="keep"))
    profile_pipeline(cfg)
    assert sorted(made) == sorted([0, 0, 2] * 5) and told == []
    with pytest.raises(SystemExit):
        next(iter(build_pipeline(cfg, num_threads=1)))
    assert told == [cfg]


def test_build_callback(caplog):
    told = []
    config.set_default_build_callback(told.append)
    cfg = pipeline(range(3), Pipe(double))
    assert list(build_pipeline(cfg, num_threads=1)) == [0, 2, 4] and told == [cfg]

    def fail(cfg):
        raise LookupError("no such table")

    config.set_default_build_callback(fail)
    assert list(build_pipeline(cfg, num_threads=1)) == [0, 2, 4]
    assert "LookupError: no such table" in caplog.text
