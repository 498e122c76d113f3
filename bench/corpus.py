# SPDX-License-Identifier: BSD-2-Clause
"""The files that contenders read, made once and kept under build/."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from bench.job import listing
from bench.proc import Failed

NAMES_PER_FOLDER = 1300


@dataclass(frozen=True)
class Corpus:
    name: str
    root: Path
    count: int
    label_sum: int
    mean_bytes: float

    @property
    def list_file(self) -> Path:
        return self.root.with_suffix(".list")


def describe(name: str, root: Path) -> Corpus:
    files = listing(str(root))
    sizes = [os.stat(path).st_size for path, _ in files]
    corpus = Corpus(name, root, len(files), sum(label for _, label in files), sum(sizes) / len(sizes))
    corpus.list_file.write_text("".join(f"{path}\n" for path, _ in files))
    return corpus


def photographs(repo: Path, count: int, short_side: int) -> Corpus:
    """Made by scripts/make-photos.py, whose last line is the folder."""
    command = [sys.executable, str(repo / "scripts/make-photos.py"), "--count", str(count)]
    if short_side:
        command += ["--short-side", str(short_side)]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        raise Failed("scripts/make-photos.py failed: scripts/setup installs what it needs")
    name = f"short side {short_side} px" if short_side else "photographs"
    return describe(name, Path(made.stdout.strip().splitlines()[-1]))


def shards(corpus: Corpus, count: int) -> Path:
    """A folder of tar archives with the same pictures, and their labels beside them."""
    root = corpus.root.with_name(f"{corpus.root.name}-shards")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    files = listing(str(corpus.root))
    for k in range(count):
        with tarfile.open(root / f"{k:03}.tar", "w") as tar:
            for number, (path, label) in list(enumerate(files))[k * len(files) // count : (k + 1) * len(files) // count]:
                tar.add(path, f"{number:06}.jpg")
                member = tarfile.TarInfo(f"{number:06}.cls")
                member.size = len(str(label))
                tar.addfile(member, io.BytesIO(str(label).encode()))
    return root


def warm(corpus: Corpus) -> None:
    """Into the page cache: disks are not what is compared."""
    for line in corpus.list_file.read_text().splitlines():
        Path(line).read_bytes()


class ManyNames:
    """A folder of hard links, on a file system in memory, for as long as the `with` lasts.

    Hard links to a few thousand pictures: the names are many, the bytes are not.
    """

    def __init__(self, corpus: Corpus, names: int) -> None:
        self.corpus, self.names = corpus, names
        self.root = Path(f"/dev/shm/stoker-bench-{os.getpid()}")

    def __enter__(self) -> Path:
        try:
            return self.make()
        except OSError as error:
            self.__exit__()
            raise Failed(f"{self.names} names in {self.root.parent}: {error.strerror}") from error

    def make(self) -> Path:
        pictures, links = self.root / "pictures", self.root / "names"
        pictures.mkdir(parents=True)
        sources = []
        for number, (path, _) in enumerate(listing(str(self.corpus.root))):
            sources.append(str(pictures / f"{number}.jpg"))
            shutil.copyfile(path, sources[-1])
        for at in range(0, self.names, NAMES_PER_FOLDER):
            folder = f"{links}/{at // NAMES_PER_FOLDER:06d}"
            os.makedirs(folder)
            for number in range(at, min(at + NAMES_PER_FOLDER, self.names)):
                os.link(sources[number % len(sources)], f"{folder}/{number:08d}.jpg")
        return links

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
