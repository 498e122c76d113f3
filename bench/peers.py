# SPDX-License-Identifier: BSD-2-Clause
"""The contenders, and the installation of those that are not ours into build/venv-peers.

A peer that cannot be had is reported by name, with what would help; it never stops the others.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from bench.context import PYTHON_STAGES, REPO, STOKER, Contender

VENV = REPO / "build" / "venv-peers"
PYTHON = str(VENV / "bin" / "python")
MOST_DOWNLOAD = 1 << 30  # bytes, without being asked


@dataclass(frozen=True)
class Peer:
    contender: Contender
    requirements: tuple[str, ...]
    probe: str  # fails with a reason while something is missing
    package: str = ""  # of Debian, that `probe` needs
    large: bool = False  # its download is looked at first


SOUNDFILE = Peer(
    Contender("soundfile", "soundfile", PYTHON), ("soundfile==0.14.0", "numpy==2.4.6"), "import soundfile"
)
TORCHVISION = "torchvision==0.28.0"  # for the torch of scripts/requirements.txt
TORCHCODEC = "torchcodec==0.13.0"  # the last whose wheel there works without CUDA
SPDL_CORE = "spdl_core==0.8.0"
SPDL = Peer(
    Contender("spdl_pipeline", "SPDL pipeline", PYTHON),
    ("spdl==0.8.0", "numpy==2.4.6", "pillow==13.0.0"),
    "import spdl.io.utils as u; u.get_ffmpeg_versions()",
    "ffmpeg",
)
TORCH = Peer(
    Contender("torch_loader", "torch DataLoader, Pillow", PYTHON, True),
    ("torch==2.13.0",),
    "import torch.utils.data",
    large=True,
)
DALI = Peer(
    Contender("dali_cpu", "DALI, CPU pipeline", PYTHON, True, True),
    ("nvidia-dali-cuda120",),
    "import nvidia.dali.fn",
    large=True,
)


def call(command: list[str]) -> str:
    """The last line of what it says when it fails, or ""."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1]


def probe(peer: Peer) -> str:
    return call([PYTHON, "-c", peer.probe]) if Path(PYTHON).exists() else "not installed"


def pip(*words: str) -> list[str]:
    return [PYTHON, "-m", "pip", "-q", "--disable-pip-version-check", *words]


def download_size(peer: Peer, report: Path) -> int:
    """Bytes of all wheels that pip would fetch; raises where it cannot tell."""
    problem = call(pip("install", "--dry-run", "--report", str(report), *peer.requirements))
    if problem:
        raise OSError(problem)
    total = 0
    for item in json.loads(report.read_text())["install"]:
        url = item["download_info"]["url"]
        if url.startswith("file:"):
            continue
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=60) as answer:
            total += int(answer.headers["Content-Length"])
    return total


def pip_install(peer: Peer) -> str:
    """Why it was not installed, or ""."""
    command = f"{Path(PYTHON).relative_to(REPO)} -m pip install {' '.join(peer.requirements)}"
    if peer.large:
        try:
            size = download_size(peer, VENV / "report.json")
        except OSError as error:
            return f"pip cannot have it: {error}"
        if size > MOST_DOWNLOAD:
            return f"would download {size / 2**30:.1f} GiB; to have it: {command}"
    print(f"bench: {command}", flush=True)
    problem = call(pip("install", *peer.requirements))
    return f"{command}: {problem}" if problem else ""


def apt_install(package: str) -> str:
    command = ["apt-get", "-q", "-y", "install", "--no-install-recommends", package]
    if os.getuid() != 0:
        if not shutil.which("sudo"):
            return f"not root and no sudo; run as root: {' '.join(command)}"
        command.insert(0, "sudo")
    print(f"bench: {' '.join(command)}", flush=True)
    problem = call(command)
    return f"{' '.join(command)}: {problem}" if problem else ""


def install(peer: Peer) -> str:
    """Installs what is missing.  Why the peer cannot run, or ""."""
    if not probe(peer):
        return ""
    if not Path(PYTHON).exists():
        problem = call(["/usr/bin/python3", "-m", "venv", str(VENV)])
        # Old versions of pip fetch whole wheels to tell their size.
        problem = problem or call(pip("install", "--upgrade", "pip"))
        if problem:
            return problem
    problem = pip_install(peer)
    if problem:
        return problem
    if peer.package and probe(peer):
        problem = apt_install(peer.package)
    return problem or probe(peer)


def pipelines() -> tuple[list[Contender], dict[str, str]]:
    """Those whose stages are Python, after `gather`: SPDL's need no FFmpeg."""
    found = [Contender(PYTHON_STAGES, "Stoker", sys.executable)]
    problem = call([PYTHON, "-c", "import spdl.pipeline"]) if Path(PYTHON).exists() else "not installed"
    if problem:
        return found, {"SPDL": problem}
    return [*found, Contender("stages_spdl", "SPDL", PYTHON)], {}


def soundfile() -> Contender | str:
    """Or why there is none."""
    return install(SOUNDFILE) or SOUNDFILE.contender


def beside_torch(requirement: str) -> Path | str:
    """A folder with this package alone, for the torch that the tests use; or why not."""
    if importlib.util.find_spec("torch") is None:
        return "there is no torch"
    folder = VENV / requirement.split("==")[0]
    if not folder.exists():
        command = [sys.executable, *pip("install", "--no-deps", "--target", str(folder), requirement)[1:]]
        problem = call(command)
        if problem:
            return problem
    return folder


def spdl_core() -> Path | str:
    """A folder with SPDL's pipelines alone, which are pure Python, for any interpreter; or why not."""
    folder = VENV / "core"
    if not folder.exists():
        problem = call(pip("install", "--no-deps", "--target", str(folder), SPDL_CORE))
        if problem:
            return problem
    return folder


def gather(with_peers: bool) -> tuple[list[Contender], dict[str, str]]:
    """Everyone who can run, ours first; and the title of each who cannot, with the reason."""
    found = [
        Contender(STOKER, "Stoker", sys.executable),
        Contender("pillow_threads", "Python threads, Pillow", sys.executable),
    ]
    missing = {}
    for peer in (SPDL, TORCH, DALI) if with_peers else (SPDL,):
        problem = install(peer)
        if problem:
            missing[peer.contender.title] = problem
        else:
            found.append(peer.contender)
    return found, missing
