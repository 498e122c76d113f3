"""Watches what a program and its worker processes use, from a helper process."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable

from .. import _check
from .._value import Value
from . import _procfs
from ._report import LOGGER
from ._tasks import BackgroundTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.context import BaseContext
    from subprocess import Popen
    from typing import Any

__all__ = ["ProcessGroupResourceUsage", "ProcessGroupStatsMonitor"]

_END_S = 5.0  # how long the helper may take to end: it is killed then
_MESSAGE = 4096  # bytes, more than nine numbers take


class ProcessGroupResourceUsage(Value):
    """What the processes of a group used: bytes, and the CPU in percent of one core.

    Memory is as it was at the time of the sample.  CPU, disk and network are sums of the time since the
    sample before.  `pss_bytes` counts a page that n processes share as 1/n of it in each, `private_bytes` only
    pages of one process.  The network is that of the network namespace, without the loopback.
    """

    __slots__ = ("pid", "pgid", *_procfs.FIELDS)
    __module__ = "stoker.pipeline"

    pid: int
    pgid: int
    cpu_percent: float
    rss_bytes: int
    pss_bytes: int
    private_bytes: int
    disk_read_bytes: int
    disk_write_bytes: int
    num_procs: int
    net_rx_bytes: int
    net_tx_bytes: int

    def __init__(
        self,
        pid: int,
        pgid: int,
        cpu_percent: float,
        rss_bytes: int,
        pss_bytes: int,
        private_bytes: int,
        disk_read_bytes: int,
        disk_write_bytes: int,
        num_procs: int,
        net_rx_bytes: int,
        net_tx_bytes: int,
    ) -> None:
        """`pid`: the process that is watched; `pgid`: its group."""
        self._set(
            pid=pid,
            pgid=pgid,
            cpu_percent=cpu_percent,
            rss_bytes=rss_bytes,
            pss_bytes=pss_bytes,
            private_bytes=private_bytes,
            disk_read_bytes=disk_read_bytes,
            disk_write_bytes=disk_write_bytes,
            num_procs=num_procs,
            net_rx_bytes=net_rx_bytes,
            net_tx_bytes=net_tx_bytes,
        )


class ProcessGroupStatsMonitor(BackgroundTask):
    """A background task that samples this process's group (Linux).

    A helper process reads /proc, so that large processes do not wait for it; it ends with the pipeline, and
    with this process however that ends.  In a daemon process nothing runs: its parent's monitor sees it.
    """

    __module__ = "stoker.pipeline"

    def __init__(
        self,
        callback: Callable[[ProcessGroupResourceUsage], object],
        interval: float = 60,
        mp_context: BaseContext | None = None,
    ) -> None:
        """`callback`: gets a sample every `interval` seconds, on the pipeline's event loop; a function or a
        coroutine function, whose errors are logged.
        `mp_context`: starts the helper, as multiprocessing.get_context() gives it; None: a bare interpreter
        that imports nothing of the program.
        """
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback).__name__}")
        self.callback = callback
        self.interval = _check.number("interval", interval, 1e-3)
        self.mp_context = mp_context

    async def run(self) -> None:
        if not os.path.isdir("/proc/self/net"):
            LOGGER.warning("what processes use is not known without /proc: it is not watched")
            return
        if _is_daemon():
            LOGGER.debug("a daemon process leaves watching its group to its parent")
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid, pgid = os.getpid(), os.getpgid(0)
        with ours:
            ours.setblocking(False)
            with theirs:
                helper = _start(self.mp_context, ours, theirs, pid, pgid, self.interval)
            try:
                await self._receive(ours, pid, pgid)
                LOGGER.error("the process that watches this process's group has ended by itself")
            finally:
                helper.end()

    async def _receive(self, channel: socket.socket, pid: int, pgid: int) -> None:
        """Until nobody is at the other end."""
        loop = asyncio.get_running_loop()
        while message := await loop.sock_recv(channel, _MESSAGE):
            cpu_percent, *counts = message.split()
            try:
                waits = self.callback(
                    ProcessGroupResourceUsage(pid, pgid, float(cpu_percent), *map(int, counts))
                )
                if isinstance(waits, Awaitable):
                    await waits
            except Exception:
                LOGGER.exception("the callback of ProcessGroupStatsMonitor failed")


def _is_daemon() -> bool:
    """Whether multiprocessing made this process a daemon.  It has been imported then."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and bool(process.current_process().daemon)


class _Program:
    """The helper as a program of its own."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process

    def end(self) -> None:
        from subprocess import TimeoutExpired

        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Worker:
    """The helper as a process of multiprocessing."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def end(self) -> None:
        self._process.terminate()
        self._process.join(_END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _start(
    context: BaseContext | None,
    ours: socket.socket,
    theirs: socket.socket,
    pid: int,
    pgid: int,
    interval: float,
) -> _Program | _Worker:
    if context is None:
        import subprocess

        program = [sys.executable, "-I", "-S", _procfs.__file__, str(theirs.fileno())]
        return _Program(
            subprocess.Popen(
                [*program, str(pid), str(pgid), repr(interval)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        )
    starter: Any = context  # the type of the contexts' base has no Process
    process = starter.Process(
        target=_procfs.serve,
        args=(theirs, ours, pid, pgid, interval),
        name="stoker-monitor",
        daemon=True,
    )
    process.start()
    return _Worker(process)
