"""Tasks whose errors are logged, and those that run beside a pipeline."""

from __future__ import annotations

import asyncio
import logging

import pytest

from stoker.pipeline import BackgroundTask, config, create_task
from stoker.pipeline._tasks import _MAX_KINDS, background


@pytest.fixture(autouse=True)
def full_log(monkeypatch):
    monkeypatch.setattr(config, "_compact_log", False)


async def fail(text="no such file"):
    raise FileNotFoundError(text)


async def settle(*tasks):
    """Until tasks and their callbacks are done."""
    await asyncio.wait(tasks)
    await asyncio.sleep(0)


def run(coro, **options):
    async def main():
        task = create_task(coro, **options)
        await settle(task)
        return task

    return asyncio.run(main())


def test_a_result_is_not_logged(caplog):
    caplog.set_level(logging.DEBUG, "stoker.pipeline")

    async def add(a, b):
        return a + b

    task = run(add(1, 2), name="adder")
    assert isinstance(task, asyncio.Task) and task.result() == 3 and task.get_name() == "adder"
    assert not caplog.records


def test_an_error_is_logged_with_its_traceback(caplog):
    task = run(fail(), name="reader")
    assert isinstance(task.exception(), FileNotFoundError)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR and record.name == "stoker.pipeline"
    assert "[reader] FileNotFoundError: no such file" in caplog.text
    assert "Traceback" in caplog.text and "in fail" in caplog.text


def test_compact_log(caplog):
    config.set_compact_log(True)
    run(fail("two\nlines"), name="reader")
    (record,) = caplog.records
    line = fail.__code__.co_firstlineno + 1
    assert record.getMessage() == f"[reader] FileNotFoundError: two lines ({__file__}:{line}:fail)"
    assert record.exc_info is None


def test_cancellations(caplog):
    async def main(**options):
        task = create_task(asyncio.Event().wait(), name="waiter", **options)
        await asyncio.sleep(0)
        task.cancel()
        await settle(task)

    asyncio.run(main())
    assert not caplog.records
    asyncio.run(main(log_cancelled=True))
    (record,) = caplog.records
    assert "waiter" in record.getMessage() and "cancelled" in record.getMessage()


async def repeat(count, name="stage", **options):
    for _ in range(count):
        await settle(create_task(fail(), name=name, **options))


def errors(caplog):
    return [record for record in caplog.records if record.levelno == logging.ERROR]


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_repeated_errors_are_all_logged_unless_told_otherwise(caplog):
    asyncio.run(repeat(20))
    assert len(errors(caplog)) == 20 and not warnings(caplog)


def test_repeated_errors_are_suppressed(caplog):
    asyncio.run(repeat(325, suppress_repeated_logs=True))
    assert len(errors(caplog)) == 5
    assert [w.split(":")[1].split()[0] for w in warnings(caplog)] == ["5", "105", "205", "305"]


def test_the_numbers_of_suppression(caplog):
    options = {"suppression_threshold": 2, "suppression_warning_interval": 10}
    asyncio.run(repeat(33, suppress_repeated_logs=True, **options))
    assert len(errors(caplog)) == 2
    assert [w.split(":")[1].split()[0] for w in warnings(caplog)] == ["2", "12", "22", "32"]


def test_only_errors_alike_are_suppressed(caplog):
    async def other():
        raise FileNotFoundError("elsewhere")

    async def main():
        await repeat(10, suppress_repeated_logs=True)
        for _ in range(2):
            await settle(create_task(other(), name="stage", suppress_repeated_logs=True))
        await repeat(3, name="other stage", suppress_repeated_logs=True)

    asyncio.run(main())
    assert len(errors(caplog)) == 5 + 2 + 3


def test_each_pipeline_begins_anew(caplog):
    for _ in range(2):
        asyncio.run(repeat(10, suppress_repeated_logs=True))
    assert len(errors(caplog)) == 10


def test_kinds_are_bounded():
    from stoker.pipeline import _tasks

    async def main():
        for i in range(_MAX_KINDS + 20):
            await repeat(1, name=str(i), suppress_repeated_logs=True)
        return len(_tasks._counts[asyncio.get_running_loop()])

    assert asyncio.run(main()) == _MAX_KINDS


class Ticks(BackgroundTask):
    def __init__(self):
        self.log = []
        self.began = asyncio.Event()

    async def run(self):
        self.log.append("began")
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("ended")


def test_background_task_is_abstract():
    with pytest.raises(TypeError, match="run"):
        BackgroundTask()


@pytest.mark.parametrize("as_factory", [False, True])
def test_background_tasks_run_during_the_block(as_factory):
    made = []

    def factory():
        made.append(Ticks())
        return made[-1]

    async def main():
        tasks = [factory, factory] if as_factory else [factory(), factory()]
        async with background(tasks):
            for ticks in made:
                await ticks.began.wait()
            assert len(made) == 2

    asyncio.run(main())
    assert [ticks.log for ticks in made] == [["began", "ended"]] * 2


def test_background_errors_are_logged_only(caplog):
    class Broken(BackgroundTask):
        async def run(self):
            raise OSError("disk full")

    def no_factory():
        raise LookupError("no such service")

    async def main():
        ticks = Ticks()
        async with background([Broken(), no_factory, Broken, ticks]):
            await ticks.began.wait()
        return ticks.log

    assert asyncio.run(main()) == ["began", "ended"]
    assert caplog.text.count("OSError: disk full") >= 2 and "LookupError: no such service" in caplog.text
    assert "Broken" in caplog.text and "no_factory" in caplog.text


def test_one_that_does_not_end_is_named(caplog, monkeypatch):
    from stoker.pipeline import _tasks

    monkeypatch.setattr(_tasks, "_END_S", 0.01)

    class Stubborn(BackgroundTask):
        def __init__(self):
            self.enough = asyncio.Event()

        async def run(self):
            while not self.enough.is_set():
                try:
                    await self.enough.wait()
                except asyncio.CancelledError:
                    pass

    async def main():
        stubborn = Stubborn()
        async with background([stubborn]):
            await asyncio.sleep(0)
        stubborn.enough.set()
        await settle(*asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(main())
    assert "Stubborn" in caplog.text
