# SPDX-License-Identifier: BSD-2-Clause
"""What the figures were measured on."""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from bench.context import Contender

DISTRIBUTIONS = {
    "pillow_threads": "pillow",
    "spdl_pipeline": "spdl",
    "torch_loader": "torch",
    "dali_cpu": "nvidia-dali-cuda120",
}


def processor() -> str:
    match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return match[1] if match else platform.machine()


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def output_of(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def version(contender: Contender) -> str:
    name = DISTRIBUTIONS[contender.loader]
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return f"{name} {output_of([contender.python, '-c', code])}"


def describe(contenders: list[Contender]) -> list[str]:
    peers = [version(c) for c in contenders if c.loader in DISTRIBUTIONS]
    jpeg = output_of(["pkg-config", "--modversion", "libjpeg"]) or "?"
    compiler = (output_of(["gcc", "--version"]).splitlines() or ["?"])[0]
    return [
        f"{processor()}, {len(os.sched_getaffinity(0))} processors, {memory_gib():.0f} GiB",
        f"Linux {platform.release()}, {compiler}, libjpeg-turbo {jpeg}, Python {platform.python_version()}",
        ", ".join(peers),
        f"measured {datetime.now(UTC):%Y-%m-%d}",
    ]
