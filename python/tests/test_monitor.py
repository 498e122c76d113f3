"""What a group of processes uses, against what this test made it use."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import pytest

from stoker.pipeline import BackgroundTask, ProcessGroupResourceUsage, ProcessGroupStatsMonitor
from stoker.pipeline import _monitor
from stoker.pipeline._procfs import FIELDS, Sampler
from support import WATCHDOG_S, ok, until

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/net"), reason="needs /proc")
MIB = 1 << 20


def watch(enough, then=None, **options):
    """Runs a monitor until it gave `enough` samples or ended: its task, and the samples.

    `then`: called with each.
    """
    seen = []

    async def main():
        reached = asyncio.Event()

        def callback(usage):
            seen.append(usage)
            if len(seen) >= enough:
                reached.set()
            return then(usage) if then else None

        task = asyncio.create_task(ProcessGroupStatsMonitor(callback, **options).run())
        task.add_done_callback(lambda _: reached.set())
        await asyncio.wait_for(reached.wait(), WATCHDOG_S)
        task.cancel()
        await asyncio.wait([task], timeout=WATCHDOG_S)
        return task

    return asyncio.run(main()), seen


def children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return set(map(int, file.read().split()))


@pytest.mark.parametrize("method", [None, "spawn", "forkserver", "fork"])
def test_samples_arrive(method):
    context = method and multiprocessing.get_context(method)
    if method in ("spawn", "forkserver"):
        context.Process(target=print).is_alive()  # the helpers of multiprocessing are not ours
    task, seen = watch(3, interval=0.01, mp_context=context)
    assert task.cancelled() and len(seen) >= 3
    for usage in seen:
        assert isinstance(usage, ProcessGroupResourceUsage)
        assert (usage.pid, usage.pgid) == (os.getpid(), os.getpgid(0))
        assert usage.num_procs >= 1 and usage.cpu_percent >= 0
        assert 0 < usage.private_bytes <= usage.pss_bytes <= usage.rss_bytes
        counts = (usage.disk_read_bytes, usage.disk_write_bytes, usage.net_rx_bytes, usage.net_tx_bytes)
        assert all(isinstance(count, int) and count >= 0 for count in counts)
    assert not multiprocessing.active_children()


def test_nothing_is_left():
    before, fds = children(), os.listdir("/proc/self/fd")
    for _ in range(3):
        watch(1, interval=0.001)
    assert children() == before and len(os.listdir("/proc/self/fd")) == len(fds)


def test_coroutines_and_errors_of_callbacks(caplog):
    awaited = []

    async def callback(usage):
        await asyncio.sleep(0)
        awaited.append(usage)
        if len(awaited) == 1:
            raise LookupError("no such table")

    watch(4, callback, interval=0.001)
    assert len(awaited) >= 3 and "no such table" in caplog.text


def test_a_helper_that_dies_is_noticed(caplog):
    before = children()

    def kill(usage):
        (helper,) = children() - before
        os.kill(helper, signal.SIGKILL)

    task, _ = watch(1 << 30, kill, interval=0.001)
    assert not task.cancelled() and task.exception() is None
    assert "ended by itself" in caplog.text and children() == before


def test_a_helper_ends_with_its_program():
    """However the program ends."""
    out = subprocess.run(
        [
            sys.executable,
            "-c",
            "import asyncio, os, signal\n"
            "from stoker.pipeline import ProcessGroupStatsMonitor\n"
            "def kill(usage):\n"
            "    print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True)\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
            "asyncio.run(ProcessGroupStatsMonitor(kill, interval=0.2).run())\n",
        ],
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
    )
    assert out.returncode == -signal.SIGKILL and out.stderr == ""
    helper = int(out.stdout)
    until(lambda: not running(helper))


def running(pid: int) -> bool:
    """A zombie whose parent is gone may wait for long where nobody reaps."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_daemons_leave_it_to_their_parent(caplog, monkeypatch):
    caplog.set_level(logging.DEBUG, "stoker.pipeline")
    monkeypatch.setattr(_monitor, "_start", lambda *args: pytest.fail("started"))
    monkeypatch.setitem(multiprocessing.process.current_process()._config, "daemon", True)
    asyncio.run(ProcessGroupStatsMonitor(print).run())
    assert "daemon" in caplog.text


def test_the_helper_is_treated_well():
    """Started once, ended once, waited for, and hardly asked whether it lives."""
    real = multiprocessing.get_context("fork")
    calls = []

    class Process:
        def __init__(self, **options):
            self._process = real.Process(**options)

        def __getattr__(self, name):
            calls.append(name)
            return getattr(self._process, name)

    class Context:
        pass

    Context.Process = Process
    watch(1, interval=0.001, mp_context=Context())
    assert calls.count("start") == calls.count("terminate") == 1
    assert "join" in calls and calls.count("is_alive") <= 3 and "kill" not in calls


def test_arguments():
    monitor = ProcessGroupStatsMonitor(print)
    assert isinstance(monitor, BackgroundTask)
    assert monitor.interval == 60 and monitor.mp_context is None
    assert pickle.loads(pickle.dumps(monitor)).interval == 60
    for bad in (0, -1):
        with pytest.raises(ValueError, match="interval"):
            ProcessGroupStatsMonitor(print, interval=bad)
    with pytest.raises(TypeError, match="callback"):
        ProcessGroupStatsMonitor(None)


def test_usage_is_a_plain_value():
    usage = ProcessGroupResourceUsage(1, 2, 3.5, 4, 5, 6, 7, 8, 9, 10, 11)
    assert (usage.pid, usage.pgid, usage.cpu_percent, usage.rss_bytes, usage.pss_bytes) == (1, 2, 3.5, 4, 5)
    assert (usage.private_bytes, usage.disk_read_bytes, usage.disk_write_bytes) == (6, 7, 8)
    assert (usage.num_procs, usage.net_rx_bytes, usage.net_tx_bytes) == (9, 10, 11)
    assert pickle.loads(pickle.dumps(usage)) == usage


class Group:
    """A process group of its own, whose leader obeys."""

    def __init__(self, code: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def say(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.wait(WATCHDOG_S)
        self.process.stdout.close()


OBEY = """
import os, time
while True:
    try: line = input()
    except EOFError: break
    exec(line)
    print("done", flush=True)
"""


def take(sampler):
    return dict(zip(FIELDS, sampler.take()))


def test_memory_and_processes():
    with Group(OBEY) as group:
        group.say("pass")
        pid = group.process.pid
        sampler = Sampler(pid, pid)
        before = take(sampler)
        assert before["num_procs"] == 1
        group.say(f"data = bytearray(os.urandom({32 * MIB}))")
        after = take(sampler)
        for name in ("rss_bytes", "pss_bytes", "private_bytes"):
            assert 31 * MIB < after[name] - before[name] < 80 * MIB
        group.say("r, w = os.pipe(); child = os.fork() or (os.read(r, 1), os._exit(0))")
        forked = take(sampler)
        assert forked["num_procs"] == 2
        # The child shares its memory: resident counts it twice, proportional once, private not at all.
        assert forked["rss_bytes"] > after["rss_bytes"] + 31 * MIB
        assert forked["pss_bytes"] < after["pss_bytes"] + 8 * MIB
        assert forked["private_bytes"] < after["private_bytes"] - 24 * MIB
        group.say("os.write(w, b'x'); os.waitpid(child, 0)")
        assert take(sampler)["num_procs"] == 1


def test_cpu():
    with Group(OBEY) as group:
        group.say("pass")
        sampler = Sampler(group.process.pid, group.process.pid)
        group.say("list(iter(lambda: time.process_time() > 0.5, True))")
        busy = take(sampler)["cpu_percent"]
        assert 5 < busy <= 130
        for _ in range(3):
            idle = take(sampler)["cpu_percent"]
        assert idle < busy


def test_disk(tmp_path):
    if os.major(os.stat(tmp_path).st_dev) == 0:
        pytest.skip("the folder for temporary files is not on a disk")
    file = tmp_path / "file"
    with Group(OBEY) as group:
        group.say("pass")
        sampler = Sampler(group.process.pid, group.process.pid)
        group.say(f"f = open({str(file)!r}, 'wb'); f.write(bytes({4 * MIB})); f.flush(); os.fsync(f.fileno())")
        assert 4 * MIB <= take(sampler)["disk_write_bytes"] < 8 * MIB
        assert take(sampler)["disk_write_bytes"] == 0  # since the sample before


def test_the_helper_imports_nothing_of_ours():
    out = ok(
        """
        import subprocess
        from stoker.pipeline import _procfs
        code = f"import sys; exec(open({_procfs.__file__!r}).read(), {{}}); print(*sys.modules)"
        print(subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True))
        """
    )
    assert not {name for name in out.split() if name.split(".")[0] in ("stoker", "asyncio", "numpy", "typing")}
