"""What the processes of a group use, read from /proc.

Also a program, which ProcessGroupStatsMonitor runs: python -I -S _procfs.py SOCKET PID PGID SECONDS.
It imports nothing of Stoker, so that it is small and starts at once.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

__all__ = ["FIELDS", "Sampler", "serve"]

FIELDS = (
    "cpu_percent",
    "rss_bytes",
    "pss_bytes",
    "private_bytes",
    "disk_read_bytes",
    "disk_write_bytes",
    "num_procs",
    "net_rx_bytes",
    "net_tx_bytes",
)

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sampler:
    """Takes samples of a process group; one thread at a time."""

    def __init__(self, pid: int, pgid: int) -> None:
        """`pid`: whose network is looked at.  This process is left out."""
        self._pid = pid
        self._pgid = pgid
        self._time = self._boot_time = 0.0
        self._used: dict[tuple[int, int], tuple[float, int, int]] = {}  # by pid and start
        self._net = (0, 0)
        self.take()

    def take(self) -> tuple[float, ...]:
        """The values of FIELDS: memory as it is, the others since the last call."""
        now, boot_time = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
        used: dict[tuple[int, int], tuple[float, int, int]] = {}
        spent = [0.0, 0, 0]  # CPU seconds, bytes read and written
        memory = [0, 0, 0]
        processes = 0
        for name in os.listdir("/proc"):
            if not name.isdecimal() or int(name) == os.getpid():
                continue
            try:
                stat = _stat(name)
                if int(stat[2]) != self._pgid or stat[0] in "ZX":
                    continue
                key = int(name), int(stat[19])
                figures = ((int(stat[11]) + int(stat[12])) * _TICK_S, *_disk(name))
                sizes = _memory(name)
            except OSError:  # it has ended meanwhile
                continue
            processes += 1
            memory = [a + b for a, b in zip(memory, sizes)]
            used[key] = figures
            before = self._used.get(key)
            if before is None:
                joined = key[1] * _TICK_S < self._boot_time  # older than the last sample: nothing is known
                before = figures if joined else (0.0, 0, 0)
            spent = [total + max(b - a, 0) for total, a, b in zip(spent, before, figures)]
        net = _network(self._pid)
        received, sent = (max(b - a, 0) for a, b in zip(self._net, net))
        cpu_percent = 100 * spent[0] / max(now - self._time, _TICK_S)
        self._time, self._boot_time, self._used, self._net = now, boot_time, used, net
        return cpu_percent, *memory, spent[1], spent[2], processes, received, sent


def _stat(name: str) -> list[str]:
    """The fields from the state on: the name before them may hold anything."""
    with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _keyed(path: str) -> dict[str, int]:
    """Lines like `Pss:   12 kB`, as numbers of the unit there."""
    values: dict[str, int] = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if len(words) >= 2 and words[0].endswith(":") and words[1].isdecimal():
                values[words[0][:-1]] = int(words[1])
    return values


def _disk(name: str) -> tuple[int, int]:
    try:
        values = _keyed(f"/proc/{name}/io")
    except PermissionError:  # of another user: not ours to know
        return 0, 0
    return values.get("read_bytes", 0), values.get("write_bytes", 0)


def _memory(name: str) -> tuple[int, int, int]:
    """Resident, proportional and private bytes."""
    with open(f"/proc/{name}/statm", encoding="ascii") as file:
        words = file.read().split()
    rss, shared = int(words[1]) * _PAGE, int(words[2]) * _PAGE
    try:
        values = _keyed(f"/proc/{name}/smaps_rollup")
    except (FileNotFoundError, PermissionError):  # an old kernel, another user: the best that statm can say
        values = {}
    if "Pss" not in values:
        return rss, rss, rss - shared
    private = sum(values.get(f"Private_{kind}", 0) for kind in ("Clean", "Dirty", "Hugetlb"))
    return rss, values["Pss"] * 1024, private * 1024


def _network(pid: int) -> tuple[int, int]:
    """Bytes received and sent in the network namespace of `pid`, without the loopback."""
    received = sent = 0
    try:
        with open(f"/proc/{pid}/net/dev", encoding="ascii", errors="replace") as file:
            for line in file:
                name, colon, rest = line.partition(":")
                if colon and name.strip() != "lo":
                    words = rest.split()
                    received += int(words[0])
                    sent += int(words[8])
    except OSError:
        pass
    return received, sent


def serve(
    channel: socket.socket, other: socket.socket | None, pid: int, pgid: int, interval: float
) -> None:
    """Sends a sample every `interval` seconds, until nobody is at the other end.

    `other`: the other end, where this process has inherited it.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the program: it ends us in its time
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if other is not None:
        other.close()
    sampler = Sampler(pid, pgid)
    due = time.monotonic() + interval
    with channel:
        while True:
            channel.settimeout(max(due - time.monotonic(), 1e-3))
            try:
                if not channel.recv(1):
                    return
            except TimeoutError:
                pass
            try:
                channel.send(" ".join(map(repr, sampler.take())).encode())
            except (BrokenPipeError, ConnectionResetError):
                return
            due = max(due + interval, time.monotonic())


if __name__ == "__main__":
    serve(
        socket.socket(fileno=int(sys.argv[1])),
        None,
        int(sys.argv[2]),
        int(sys.argv[3]),
        float(sys.argv[4]),
    )
