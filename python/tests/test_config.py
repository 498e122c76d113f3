"""Defaults of pipelines, set by a program or by its environment."""

from __future__ import annotations

from functools import partial

import pytest

from stoker.pipeline import AsyncQueue, PipelineBuilder, StatsQueue, TaskStatsHook, config
from support import ok

PREFIXES = ("STOKER", "SPDL")


@pytest.fixture(autouse=True)
def untouched(monkeypatch):
    """Each test begins with nothing set."""
    for prefix in PREFIXES:
        for name in ("COMPACT_LOG", "DIAGNOSTIC_MODE", "DIAGNOSTIC_MODE_NUM_ITEMS"):
            monkeypatch.delenv(f"{prefix}_PIPELINE_{name}", raising=False)
    for name in vars(config):
        if name.startswith("_") and f"set_default{name}" in config.__all__:
            monkeypatch.setattr(config, name, getattr(config, name))
    monkeypatch.setattr(config, "_compact_log", None)


def test_every_name_is_there():
    assert set(config.__all__) == {
        "is_diagnostic_mode_enabled", "diagnostic_mode_num_sources", "set_compact_log",
        "set_default_hook_class", "get_default_hook_class",
        "set_default_queue_class", "get_default_queue_class",
        "set_default_profile_hook", "get_default_profile_hook",
        "set_default_profile_callback", "get_default_profile_callback",
        "set_default_build_callback", "get_default_build_callback",
        "set_default_background_tasks", "get_default_background_tasks",
    }  # fmt: skip
    assert all(callable(getattr(config, name)) for name in config.__all__)


def test_importing_it_loads_little():
    out = ok(
        """
        from stoker.pipeline import config
        config.set_compact_log(True)
        config.set_default_build_callback(print)
        assert config.is_diagnostic_mode_enabled() is False
        print([name for name in ("asyncio", "typing", "logging", "multiprocessing") if name in sys.modules])
        """
    )
    assert out == "[]\n"


def test_hook_class():
    class Mine(TaskStatsHook):
        pass

    assert config.get_default_hook_class() is TaskStatsHook
    config.set_default_hook_class(Mine)
    assert config.get_default_hook_class() is Mine
    config.set_default_hook_class()
    assert config.get_default_hook_class() is TaskStatsHook
    with pytest.raises(TypeError, match="hook_class must be callable, not int"):
        config.set_default_hook_class(3)


def test_queue_class():
    assert config.get_default_queue_class() is StatsQueue
    config.set_default_queue_class(AsyncQueue)
    assert config.get_default_queue_class() is AsyncQueue
    config.set_default_queue_class()
    assert config.get_default_queue_class() is StatsQueue
    with pytest.raises(TypeError, match="queue_class must be callable, not str"):
        config.set_default_queue_class("StatsQueue")


def make_hook(made, info, *, interval):
    made.append((info.stage_name, interval))
    return TaskStatsHook(info, interval=interval)


def make_queue(made, info, *, buffer_size, interval):
    made.append((info.stage_name, buffer_size, interval))
    return StatsQueue(info, buffer_size=buffer_size, interval=interval)


@pytest.mark.parametrize("form", [partial, lambda f, made: lambda *args, **how: f(made, *args, **how)])
def test_factories(form):
    hooks, queues = [], []
    hook, queue = form(make_hook, hooks), form(make_queue, queues)
    config.set_default_hook_class(hook)
    config.set_default_queue_class(queue)
    assert (config.get_default_hook_class(), config.get_default_queue_class()) == (hook, queue)
    builder = PipelineBuilder().add_source(range(3)).pipe(str).add_sink(4)
    assert list(builder.build(num_threads=1, report_stats_interval=7)) == ["0", "1", "2"]
    assert hooks == [("str", 7)]
    assert queues == [("source", 2, 7), ("str", 2, 7), ("sink", 4, 7)]


@pytest.mark.parametrize("name", ["build_callback", "profile_callback", "profile_hook"])
def test_nothing_unless_set(name):
    get, put = getattr(config, f"get_default_{name}"), getattr(config, f"set_default_{name}")
    assert get() is None
    put(print)
    assert get() is print
    put(None)
    assert get() is None
    if "callback" in name:
        with pytest.raises(TypeError, match="callback must be callable"):
            put(3)


def test_background_tasks():
    tasks = [object(), object()]
    assert config.get_default_background_tasks() == []
    config.set_default_background_tasks(tasks)
    assert config.get_default_background_tasks() == tasks
    config.get_default_background_tasks().clear()  # a copy
    tasks.pop()
    assert len(config.get_default_background_tasks()) == 2
    config.set_default_background_tasks(None)
    assert config.get_default_background_tasks() == []


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("value", "expected"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_diagnostic_mode(monkeypatch, prefix, value, expected):
    assert not config.is_diagnostic_mode_enabled()
    monkeypatch.setenv(f"{prefix}_PIPELINE_DIAGNOSTIC_MODE", value)
    assert config.is_diagnostic_mode_enabled() is expected


@pytest.mark.parametrize("prefix", PREFIXES)
def test_number_of_items(monkeypatch, prefix):
    assert config.diagnostic_mode_num_sources() == 1000
    monkeypatch.setenv(f"{prefix}_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS", "12")
    assert config.diagnostic_mode_num_sources() == 12


@pytest.mark.parametrize("prefix", PREFIXES)
def test_compact_log(monkeypatch, prefix):
    assert not config.is_compact_log()
    monkeypatch.setenv(f"{prefix}_PIPELINE_COMPACT_LOG", "1")
    assert config.is_compact_log()
    config.set_compact_log(False)  # the program's word counts
    assert not config.is_compact_log()
    monkeypatch.setenv(f"{prefix}_PIPELINE_COMPACT_LOG", "0")
    config.set_compact_log(True)
    assert config.is_compact_log()


class Lines:
    def __repr__(self):
        return "a\nb"


def test_compact_logs_have_one_line_for_an_item(caplog):
    def op(item):
        raise LookupError("no\n such thing")

    config.set_compact_log(True)
    assert list(PipelineBuilder().add_source([Lines()]).pipe(op).add_sink(1).build(num_threads=1)) == []
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert record.exc_info is None and "item 0: a b: LookupError: no such thing (" in record.getMessage()
    assert record.getMessage().endswith(":op)") and "test_config.py:" in record.getMessage()


def test_a_bad_value_does_not_hide_the_error_that_is_logged(monkeypatch, caplog):
    monkeypatch.setenv("SPDL_PIPELINE_COMPACT_LOG", "perhaps")
    assert not config.is_compact_log() and not config.is_compact_log()
    assert caplog.text.count("perhaps") == 1


def test_our_own_variables_come_first(monkeypatch):
    monkeypatch.setenv("SPDL_PIPELINE_DIAGNOSTIC_MODE", "1")
    monkeypatch.setenv("STOKER_PIPELINE_DIAGNOSTIC_MODE", "0")
    assert not config.is_diagnostic_mode_enabled()
    monkeypatch.setenv("SPDL_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS", "3")
    monkeypatch.setenv("STOKER_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS", "4")
    assert config.diagnostic_mode_num_sources() == 4


def test_what_means_nothing_is_refused(monkeypatch):
    monkeypatch.setenv("SPDL_PIPELINE_DIAGNOSTIC_MODE", "perhaps")
    with pytest.raises(ValueError, match="SPDL_PIPELINE_DIAGNOSTIC_MODE .*perhaps"):
        config.is_diagnostic_mode_enabled()
    for bad in ("0", "-1", "1.5", "many"):
        monkeypatch.setenv("STOKER_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS", bad)
        with pytest.raises(ValueError, match=f"STOKER_PIPELINE_DIAGNOSTIC_MODE_NUM_ITEMS .*{bad}"):
            config.diagnostic_mode_num_sources()
