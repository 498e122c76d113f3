# SPDX-License-Identifier: BSD-2-Clause
"""Runs one contender as a process and tells what it cost."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import Any

TIME_LIMIT_S = 600
SAMPLE_EVERY_S = 0.025


class Failed(Exception):
    """A contender that did not run or whose output is wrong."""


@dataclass
class Outcome:
    cpu_s: float  # user + system, of the process and of all children it waited for
    wall_s: float
    start_ns: int
    result: dict[str, Any] = field(default_factory=dict)  # the JSON line it printed
    peak_pss_kib: int = 0  # of the tree, where asked for

    @property
    def work_cpu_s(self) -> float:
        """Without the interpreter's start and the imports."""
        return self.cpu_s - float(self.result.get("start_cpu_s", 0.0))


def tree(pid: int) -> list[int]:
    """The process and all that descend from it."""
    found, todo = [], [pid]
    while todo:
        at = todo.pop()
        found.append(at)
        try:
            for task in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{task}/children") as file:
                    todo += [int(word) for word in file.read().split()]
        except OSError:
            continue
    return found


def pss_kib(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1])
    except OSError:  # it ended meanwhile
        pass
    return 0


class PssSampler:
    """The highest sum of PSS over the tree, looked at 40 times a second."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.peak = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()

    def sample(self) -> None:
        while not self.ended.wait(SAMPLE_EVERY_S):
            self.peak = max(self.peak, sum(pss_kib(pid) for pid in tree(self.pid)))

    def finish(self) -> int:
        self.ended.set()
        self.thread.join()
        return self.peak


def last_json(text: str) -> dict[str, Any]:
    for line in reversed(text.strip().splitlines()):
        if line.startswith("{"):
            result = json.loads(line)
            if isinstance(result, dict):
                return result
    return {}


def name_of(command: list[str]) -> str:
    """The words that tell one run from another, without the paths."""
    return " ".join(w for w in command[1:] if not w.startswith(("/", "-", "root=", "out=")))


def stop_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(
    command: list[str], env: dict[str, str] | None = None, *, pss: bool = False, start_word: bool = False
) -> Outcome:
    """Runs it to its end.  `start_word` appends start_ns=<monotonic clock> to the command."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start_ns = time.monotonic_ns()
        words = [*command, f"start_ns={start_ns}"] if start_word else command
        child = subprocess.Popen(
            words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        timer = threading.Timer(TIME_LIMIT_S, stop_group, [child.pid])
        timer.start()
        sampler = PssSampler(child.pid) if pss else None
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            stop_group(child.pid)
            raise
        finally:
            timer.cancel()
            peak = sampler.finish() if sampler else 0
        wall_s = (time.monotonic_ns() - start_ns) / 1e9
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            tail = " | ".join(err.read().strip().splitlines()[-1:])
            raise Failed(f"{name_of(command)}: exit status {child.returncode}: {tail}")
        return Outcome(usage.ru_utime + usage.ru_stime, wall_s, start_ns, last_json(out.read()), peak)
