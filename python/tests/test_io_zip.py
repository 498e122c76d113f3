"""iter_zipfile beside the zipfile module."""

from __future__ import annotations

import gc
import io
import os
import stat
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import errors
from stoker import io as sio
from support import at_once

Entries = list[tuple[str, bytes]]


def entry(name: str, method: int = zipfile.ZIP_STORED, mode: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = method
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def zipped(entries: Entries, method: int = zipfile.ZIP_DEFLATED, **options: object) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        with zipfile.ZipFile(out, "w", method, **options) as archive:  # type: ignore[arg-type]
            for name, data in entries:
                archive.writestr(name, data)
    return out.getvalue()


def listed(src: object, **options: object) -> Entries:
    return [(name, bytes(data)) for name, data in sio.iter_zipfile(src, **options)]  # type: ignore[arg-type]


def by_zipfile(data: bytes) -> Entries:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist() if not info.is_dir()]


SOME: Entries = [
    ("a.txt", b"hello"),
    ("b/c.bin", bytes(range(256)) * 40),
    ("empty", b""),
    ("../../etc/passwd", b"root"),
    ("/etc/passwd", b"root too"),
    ("C:\\x", b"what is it"),
    ("Grüße 🎈", b"utf-8"),
]


class Stream(io.RawIOBase):
    """A file that zipfile cannot seek in: data descriptors follow the data."""

    def __init__(self) -> None:
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.written += bytes(data)  # type: ignore[call-overload]
        return memoryview(data).nbytes  # type: ignore[arg-type]


def streamed(method: int) -> bytes:
    out = Stream()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in SOME:
            archive.writestr(name, data)
    return out.written


@contextmanager
def everything_zip64() -> Iterator[None]:
    """The zipfile module writes ZIP64 for what is small, too."""
    before = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = 3, 0
    try:
        yield
    finally:
        zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = before


def as_path(data: bytes, folder: object) -> object:
    path = folder / "a.zip"  # type: ignore[operator]
    path.write_bytes(data)
    return path


SOURCES: dict[str, Callable[[bytes, object], object]] = {
    "bytes": lambda data, folder: data,
    "bytearray": lambda data, folder: bytearray(data),
    "memoryview": lambda data, folder: memoryview(b"x" + data)[1:],
    "array": lambda data, folder: np.frombuffer(data, np.uint8),
    "path": as_path,
    "str": lambda data, folder: str(as_path(data, folder)),
    "BytesIO": lambda data, folder: io.BytesIO(data),
    "file": lambda data, folder: open(as_path(data, folder), "rb"),  # type: ignore[call-overload]
    "raw file": lambda data, folder: open(as_path(data, folder), "rb", buffering=0),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_from_anywhere(source, method, tmp_path):
    data = zipped(SOME, method)
    src = SOURCES[source](data, tmp_path)
    assert listed(src) == SOME == by_zipfile(data)
    if hasattr(src, "close"):
        assert not src.closed
        src.close()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_kinds_of_archives(method, tmp_path):
    with everything_zip64():
        wide = zipped(SOME, method)
    assert b"PK\6\6" in wide
    for data in (zipped(SOME, method), streamed(method), wide):
        for prefix in (b"", b"#!/bin/sh\nexit\n", bytes(70000)):
            for behind in (b"", bytes(100)):
                whole = prefix + data + behind
                assert listed(whole) == SOME
                assert listed(io.BytesIO(whole)) == SOME
                assert listed(as_path(whole, tmp_path)) == SOME


def test_comments():
    for comment in (b"PK\5\6" * 1000, b"c" * 65535):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("a", b"1")
            archive.comment = comment
        assert listed(out.getvalue()) == [("a", b"1")]


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=12), st.binary(max_size=300))
    ),
    st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    st.binary(max_size=40),
)
def test_round_trips(entries, method, prefix):
    data = zipped(entries, method)
    wanted = [(name, content) for name, content in entries if not name.endswith("/")]
    assert listed(data) == wanted
    assert listed(prefix + data) == wanted


@pytest.mark.parametrize("relative", [False, True])
def test_behind_four_gigabytes(relative, tmp_path):
    """Offsets of more than 32 bits, in a sparse file: counted from its first byte, or from the archive's."""
    far, path = 5 << 30, tmp_path / "far.zip"
    with path.open("wb") as file:
        file.seek(far)
        if relative:
            file.write(zipped(SOME))
        else:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in SOME:
                    archive.writestr(name, data)
    assert (b"PK\6\6" in _tail(path)) is not relative
    assert listed(path) == SOME
    with path.open("rb") as file:
        assert listed(file) == SOME


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-200, os.SEEK_END)
        return file.read()


def test_names_without_utf8():
    data = zipped([("grusse", b"1")])
    assert listed(data.replace(b"grusse", b"gr\x81\xe1e.")) == [("grüße.", b"1")]  # code page 437
    broken = bytearray(data.replace(b"grusse", b"gr\x81\xe1e."))
    for at in (6, broken.index(b"PK\1\2") + 8):
        struct.pack_into("<H", broken, at, 1 << 11)  # UTF-8, it says
    assert os.fsencode(listed(broken)[0][0]) == b"gr\x81\xe1e."


def test_only_regular_files():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(entry("folder/", mode=stat.S_IFDIR | 0o755), b"")
        archive.writestr(entry("link", mode=stat.S_IFLNK | 0o777), b"/etc/passwd")
        archive.writestr(entry("fifo", mode=stat.S_IFIFO), b"")
        archive.writestr(entry("device", mode=stat.S_IFCHR), b"")
        archive.writestr(entry("file", mode=stat.S_IFREG | 0o4777), b"1")
        archive.writestr(entry("any"), b"2")
    assert listed(out.getvalue()) == [("file", b"1"), ("any", b"2")]


def test_equal_names_come_as_often():
    twice = [("a", b"1"), ("b", b"2"), ("a", b"3")]
    assert listed(zipped(twice)) == twice


def test_stored_entries_are_views():
    data = bytearray(zipped(SOME, zipfile.ZIP_STORED))
    views = dict(sio.iter_zipfile(data))
    at = data.index(b"hello")
    views["a.txt"][0] = ord("j")
    assert data[at : at + 5] == b"jello"
    with pytest.raises(BufferError):
        data.append(0)
    views.clear()
    gc.collect()
    data.append(0)
    view = next(iter(sio.iter_zipfile(zipped([("a", b"of bytes")], zipfile.ZIP_STORED))))[1]
    gc.collect()
    assert view.readonly and bytes(view) == b"of bytes"


def test_deflated_entries_have_memory_of_their_own():
    data = bytearray(zipped(SOME))
    views = dict(sio.iter_zipfile(data))
    data.clear()
    assert {name: bytes(view) for name, view in views.items()} == dict(SOME)
    assert all(isinstance(view, memoryview) and view.format == "B" for view in views.values())


def test_files_are_closed_that_it_opened(tmp_path):
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    entries = sio.iter_zipfile(as_path(zipped(SOME), tmp_path))  # type: ignore[arg-type]
    next(entries)
    assert count() == before + 1
    del entries
    gc.collect()
    assert count() == before
    assert len(listed(tmp_path / "a.zip")) == len(SOME)
    assert count() == before


def test_a_file_that_fails():
    class Broken(io.BytesIO):
        left = 3

        def read(self, size: int | None = -1, /) -> bytes:
            self.left -= 1
            if self.left < 0:
                raise OSError("the cable is out")
            return super().read(size)

    for at in range(20):
        file = Broken(zipped(SOME))
        file.left = at
        try:
            assert listed(file) == SOME
            break
        except OSError as error:
            assert str(error) == "the cable is out"
    else:
        raise AssertionError

    class Short(io.BytesIO):
        def seek(self, offset: int, whence: int = 0, /) -> int:
            return super().seek(offset, whence) + (1000 if whence == os.SEEK_END else 0)

    with pytest.raises(errors.IOError, match="ended while it was read"):
        listed(Short(zipped(SOME)))


def test_a_file_that_gives_little_at_once():
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 7))

    assert listed(Slow(zipped(SOME))) == SOME


@pytest.mark.parametrize(("method", "name"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "LZMA")])
def test_methods_are_refused_when_their_turn_comes(method, name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(entry("first"), b"1")
        archive.writestr(entry("second", method), b"2")
    entries = sio.iter_zipfile(out.getvalue())
    assert next(entries)[0] == "first"
    with pytest.raises(errors.UnsupportedError, match=f"second: compression method {method}, {name}") as caught:
        next(entries)
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("flag", [1, 1 << 6, 1 << 13])
def test_encrypted_entries(flag):
    data = bytearray(zipped([("secret", b"x")]))
    struct.pack_into("<H", data, data.index(b"PK\1\2") + 8, flag)
    with pytest.raises(errors.UnsupportedError, match="secret: an encrypted entry"):
        listed(data)


def test_limits():
    zeros = [("zeros", bytes(1 << 20))]
    data = zipped(zeros)
    assert listed(data, max_uncompressed_bytes=1 << 20) == zeros
    with pytest.raises(errors.LimitError, match=r"zeros: 1048576 bytes, max_uncompressed_bytes is 1048575"):
        listed(data, max_uncompressed_bytes=(1 << 20) - 1)
    with pytest.raises(errors.LimitError, match="the limit is 100 times as many") as caught:
        listed(data, max_ratio=100)
    assert isinstance(caught.value, ValueError)
    assert listed(zipped(zeros, zipfile.ZIP_STORED), max_uncompressed_bytes=0, max_ratio=1) == zeros
    assert listed(data, max_ratio=10**30, max_uncompressed_bytes=10**30, max_directory_bytes=10**30) == zeros
    directory = len(data) - data.index(b"PK\1\2") - 22
    assert listed(data, max_directory_bytes=directory) == zeros
    with pytest.raises(errors.LimitError, match=f"directory of {directory} bytes, the limit is {directory - 1}"):
        sio.iter_zipfile(data, max_directory_bytes=directory - 1)
    for wrong in ({"max_ratio": 0}, {"max_uncompressed_bytes": -1}, {"max_directory_bytes": 0}):
        with pytest.raises(errors.InvalidArgumentError, match=next(iter(wrong))):
            sio.iter_zipfile(data, **wrong)


def test_sizes_that_cannot_be():
    data = zipped([("a", b"abc" * 100)])
    at = data.index(b"PK\1\2")
    for size in (2**20, 2**31, 2**32 - 2):
        wrong = bytearray(data)
        struct.pack_into("<I", wrong, at + 24, size)
        with pytest.raises((errors.CorruptError, errors.LimitError)):
            listed(wrong)
    with everything_zip64():
        wide = zipped([("a", b"abc" * 100)])
    field = wide.index(b"\1\0\x10\0", wide.index(b"PK\1\2")) + 4  # size and compressed size
    for size in (2**63 - 1, 2**63, 2**64 - 1):
        for at in (field, field + 8):
            wrong = bytearray(wide)
            struct.pack_into("<Q", wrong, at, size)
            with pytest.raises((errors.CorruptError, errors.LimitError)):
                listed(wrong)


def test_overlapping_bombs():
    """Many entries of the directory, one piece of data."""
    data = zipped([("a", bytes(1 << 20))])
    at = data.index(b"PK\1\2")
    header, end = data[at:-22], bytearray(data[-22:])
    struct.pack_into("<HHI", end, 8, 100, 100, 100 * len(header))
    with pytest.raises(errors.CorruptError, match="overlaps"):
        sio.iter_zipfile(data[:at] + header * 100 + end)


def test_cut_at_every_byte(tmp_path):
    data = zipped(SOME[:3])
    for size in range(len(data)):
        for src in (data[:size], io.BytesIO(data[:size])):
            with pytest.raises(errors.CorruptError):
                sio.iter_zipfile(src)


def test_each_byte_changed():
    """Errors of the tree, or what zipfile reads as well."""
    data = zipped(SOME[:3])
    for at in range(len(data)):
        for value in (0, 0x80, 0xFF, data[at] ^ 1):
            changed = bytearray(data)
            changed[at] = value
            try:
                ours = listed(changed)
            except errors.Error:
                continue
            try:
                theirs = by_zipfile(bytes(changed))
            except (zipfile.BadZipFile, zlib.error, NotImplementedError, UnicodeDecodeError):
                continue
            assert set(ours) <= set(theirs)  # which takes links for files


@pytest.mark.parametrize("src", [None, 3, object()])
def test_no_source(src):
    with pytest.raises(TypeError):
        sio.iter_zipfile(src)


def test_threaded(tmp_path):
    data = zipped([(f"{i}", bytes([i]) * 20000) for i in range(20)])
    path = as_path(data, tmp_path)

    def read():
        for src in (data, path):
            assert [(n, len(d)) for n, d in listed(src)] == [(f"{i}", 20000) for i in range(20)]

    at_once(read, read, read, read)
