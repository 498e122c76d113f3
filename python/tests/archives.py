"""Tar archives for tests, and everything that one can be read from."""

from __future__ import annotations

import gzip
import io
import mmap
import subprocess
import tarfile
from pathlib import Path

import numpy as np

from stoker.io import iter_tarfile


def member(name: str, data: bytes = b"", **changes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in changes.items():
        setattr(info, key, value)
    return info, data


def make(*members: tuple[tarfile.TarInfo, bytes], format=tarfile.GNU_FORMAT, **options) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format, **options) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def expected(archive: bytes) -> list[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as t:
        return [(m.name, t.extractfile(m).read()) for m in t if m.isreg()]


def listed(src, **options) -> list[tuple[str, bytes]]:
    return [(name, bytes(data)) for name, data in iter_tarfile(src, **options)]


class Trickle(io.RawIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, piece: int) -> None:
        self.data, self.piece, self.at = data, piece, 0

    def readable(self) -> bool:
        return True

    def readinto(self, b) -> int:
        piece = self.data[self.at : self.at + min(self.piece, len(b))]
        b[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)


class OnlyRead:
    def __init__(self, data: bytes) -> None:
        self.file = io.BytesIO(data)

    def read(self, size: int) -> bytes:
        return self.file.read(size)


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-q", "-c", "--check"], input=data, capture_output=True, check=True).stdout


def sources(archive: bytes, folder: Path) -> list[object]:
    """Everything that an archive can be."""
    path = folder / "archive.tar"
    path.write_bytes(archive)
    with open(path, "rb") as f:
        mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    return [
        archive, bytearray(archive), memoryview(archive), np.frombuffer(archive, np.uint8), mapped,
        path, str(path), open(path, "rb"), open(path, "rb", buffering=0), io.BytesIO(archive),
        Trickle(archive, 7), Trickle(archive, 100_000), OnlyRead(archive),
        gzip.compress(archive), io.BytesIO(gzip.compress(archive)), Trickle(gzip.compress(archive), 3),
        zstd(archive), OnlyRead(zstd(archive)),
    ]  # fmt: skip


def close(source: object) -> None:
    if hasattr(source, "close"):
        source.close()
