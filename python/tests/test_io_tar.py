"""Tar archives: against Python's own module, what is broken, compressed ones, and how long views live."""

from __future__ import annotations

import gc
import gzip
import io
import os
import random
import tarfile
import weakref

import numpy as np
import pytest

import stoker
from archives import Trickle, close, expected, listed, make, member, sources, zstd
from stoker.io import iter_tarfile

LONG = "folder/" * 30 + "n" * 120
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


@pytest.mark.parametrize("format", FORMATS)
def test_as_the_tarfile_module_reads_it(format, tmp_path):
    rng = random.Random(3)
    names = ["a.txt", "folder/b", "é\N{SNOWMAN}", "../up", "/absolute", "a.txt", "./dot", "x" * 100, "with space "]
    names += ["long/" * 25 + "b"] if format == "ustar" else [LONG, "x" * 101, "x" * 255, "y" * 70_000]
    members = [member(name, rng.randbytes(rng.choice([0, 1, 511, 512, 513, 5000]))) for name in names]
    members += [
        member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), member("hard", type=tarfile.LNKTYPE, linkname="a.txt"),
        member("folder", type=tarfile.DIRTYPE), member("fifo", type=tarfile.FIFOTYPE), member("device", type=tarfile.CHRTYPE),
        member("contiguous", b"c", type=tarfile.CONTTYPE), member("last", b"last"),
    ]  # fmt: skip
    if format == "pax":
        members.append(member("own", b"headers", pax_headers={"comment": "x" * 2000, "path": "by pax"}))
    archive = make(*members, format=FORMATS[format])
    want = expected(archive)
    assert len(want) == len(members) - 5
    for source in sources(archive, tmp_path):
        assert listed(source) == want
        close(source)


def test_large_members_and_blocks(tmp_path):
    rng = random.Random(5)
    sizes = [3_000_000, 10, 262_144 - 1024, 262_144, 0, 1_000_001] + [rng.randrange(20_000) for _ in range(300)]
    archive = make(*[member(f"{i}", rng.randbytes(size)) for i, size in enumerate(sizes)])
    want = expected(archive)
    for source in sources(archive, tmp_path)[:13]:
        assert listed(source) == want
        close(source)
    assert listed(zstd(archive)) == want


def test_global_headers_as_git_writes_them():
    archive = make(member("a", b"1"), format=tarfile.PAX_FORMAT, pax_headers={"comment": "0123456789abcdef"})
    assert listed(archive) == [("a", b"1")] == expected(archive)
    only = make(format=tarfile.PAX_FORMAT, pax_headers={"comment": "nothing else"})
    assert listed(only) == []


def test_names_that_are_no_utf_8():
    archive = make(member("caf\udce9", b"1"), format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape")
    assert listed(archive) == [("caf\udce9", b"1")]
    assert os.fsencode(listed(io.BytesIO(archive))[0][0]) == b"caf\xe9"


def test_what_comes_out():
    archive = make(member("a", b"data"))
    name, data = next(iter_tarfile(archive))
    assert type(name) is str and type(data) is memoryview
    assert np.shares_memory(np.asarray(data), np.frombuffer(archive, np.uint8))
    assert (data.readonly, data.format, data.shape, data.strides, data.contiguous) == (True, "B", (4,), (1,), True)
    assert data == b"data" and data[1:3] == b"at" and hash(data) == hash(b"data") and data.tolist()[0] == ord("d")
    assert data.cast("H").shape == (2,) and bytes(data[::-1]) == b"atad"
    assert type(next(iter_tarfile(io.BytesIO(archive)))[1]) is bytes
    assert type(next(iter_tarfile(gzip.compress(archive)))[1]) is bytes
    iterator = iter_tarfile(archive)
    assert iter(iterator) is iterator and len(list(iterator)) == 1 and list(iterator) == []


def test_views_can_be_written_to_if_the_archive_can():
    archive = bytearray(make(member("a", b"data"), member("b", b"more")))
    for _, data in iter_tarfile(archive):
        assert not data.readonly
        data[0] = ord("X")
    assert expected(bytes(archive)) == [("a", b"Xata"), ("b", b"Xore")]
    assert next(iter_tarfile(memoryview(archive).toreadonly()))[1].readonly


class Owner(bytearray):
    """Something that can be watched."""


def test_views_outlive_everything():
    archive = Owner(make(member("a", b"data"), member("b", b"more")))
    gone = weakref.ref(archive)
    iterator = iter_tarfile(archive)
    (_, first), (_, second) = iterator
    del iterator, archive
    gc.collect()
    assert bytes(first) == b"data" and bytes(second) == b"more"
    part = second[1:]
    first.release()
    del first, second
    assert gone() is not None and bytes(part) == b"ore"
    del part
    gc.collect()
    assert gone() is None


def test_a_bytearray_can_be_resized_when_the_iterator_is_done():
    archive = bytearray(make(member("a", b"data")))
    iterator = iter_tarfile(archive)
    with pytest.raises(BufferError):
        archive.append(0)
    assert [name for name, _ in iterator] == ["a"]
    archive.append(0)
    iterator = iter_tarfile(archive)
    iterator.close()
    iterator.close()
    archive.append(0)
    assert list(iterator) == []


def cut_at(archive: bytes, n: int):
    """The same for memory, streams and compressed archives."""
    return archive[:n], Trickle(archive[:n], 333), gzip.compress(archive[:n], 1)


@pytest.mark.parametrize("format", FORMATS)
def test_truncated_at_every_byte(format):
    long = "long/" * 25 + "b" if format == "ustar" else LONG
    archive = make(member("a", b"1"), member(long, b"22"), member("c", b""), format=FORMATS[format])
    end = archive.rstrip(b"\0")
    end = (len(end) + 511) // 512 * 512 + 512
    for n in range(end + 100):
        for src in cut_at(archive, n):
            if n >= end:
                assert len(listed(src)) == 3
                continue
            with pytest.raises(stoker.CorruptError, match=rf"\b{n}\b") as caught:
                listed(src)
            assert "tar: the archive ends at byte" in str(caught.value) or "the archive ends at byte" in str(caught.value)


def test_an_end_without_zeros_needs_leave():
    archive = make(member("a", b"1"), member("b", b"2"))[: 4 * 512]
    for src in (archive, io.BytesIO(archive)):
        got = []
        with pytest.raises(stoker.CorruptError, match="ends at byte 2048 without the blocks of zeros"):
            got += (name for name, _ in iter_tarfile(src))
    assert listed(archive, strict=False) == [("a", b"1"), ("b", b"2")] == listed(io.BytesIO(archive), strict=False)
    with pytest.raises(stoker.CorruptError):
        listed(archive[:-1], strict=False)
    assert listed(b"", strict=False) == []


def test_after_a_failure_there_is_nothing():
    archive = bytearray(make(member("a", b"1"), member("b", b"2"), member("c", b"3")))
    archive[1024] ^= 1
    for src in (archive, io.BytesIO(archive)):
        iterator = iter_tarfile(src)
        assert next(iterator)[0] == "a"
        with pytest.raises(stoker.CorruptError, match="checksum of the header at byte 1024 is wrong"):
            next(iterator)
        assert list(iterator) == []


def test_flipped_bits_give_members_or_errors():
    archive = make(member("a", b"1"), member(LONG, b"2"), member("é", b"3"), format=tarfile.PAX_FORMAT)[:-8192]
    for bit in range(0, 8 * len(archive), 3):
        data = bytearray(archive)
        data[bit // 8] ^= 1 << bit % 8
        results = []
        for src in (data, io.BytesIO(data)):
            try:
                results.append(listed(src))
            except stoker.DecodeError as error:
                results.append(type(error))
        assert results[0] == results[1]


def with_size(field: bytes, kind: bytes = b"0") -> bytes:
    archive = bytearray(make(member("big", b"data")))
    archive[124:136], archive[156:157] = field, kind
    archive[148:156] = b" " * 8
    archive[148:156] = b"%06o\0 " % sum(archive[:512])
    return bytes(archive)


@pytest.mark.parametrize(
    ("field", "memory", "stream"),
    [
        (b"\x80" + (2**63 - 1).to_bytes(11, "big"), "big has 9223372036854775807 bytes from byte 512 on", "the limit of one member is 1073741824"),
        (b"\x80" + (2**63).to_bytes(11, "big"), "is no number", "is no number"),
        (b"\x80" + (2**64 + 4).to_bytes(11, "big"), "is no number", "is no number"),
        (b"\xff" * 12, "is no number", "is no number"),
        (b"77777777777\0", "big has 8589934591 bytes", "big has 8589934591 bytes, the limit"),
        (b"-0000000004\0", "is no number", "is no number"),
        (b"00000000008\0", "is no number", "is no number"),
        (b"1" * 12, "big has", "big has"),
    ],
)  # fmt: skip
def test_sizes_that_are_lies(field, memory, stream):
    archive = with_size(field)
    with pytest.raises(stoker.CorruptError, match=memory):
        listed(archive)
    for src in (io.BytesIO(archive), gzip.compress(archive)):
        with pytest.raises((stoker.CorruptError, stoker.LimitError), match=stream):
            listed(src)
    with pytest.raises((stoker.CorruptError, stoker.LimitError)):
        listed(io.BytesIO(with_size(field, b"x")))  # a pax header of that size


def test_a_pax_size_is_a_size():
    archive = make(member("a", b"data", pax_headers={"size": "99999999999999999999"}), format=tarfile.PAX_FORMAT)
    with pytest.raises(stoker.CorruptError, match="no number in the pax header"):
        listed(archive)


@pytest.mark.parametrize("how", ["old", "pax"])
def test_sparse_files_are_refused_by_name(how):
    if how == "old":
        archive = with_size(b"00000000004\0", b"S")
    else:
        headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "big", "GNU.sparse.realsize": "9"}
        archive = make(member("GNUSparseFile.0/big", b"data", pax_headers=headers), format=tarfile.PAX_FORMAT)
    for src in (archive, io.BytesIO(archive)):
        with pytest.raises(stoker.UnsupportedError, match="big, at byte .* is a sparse file"):
            listed(src)


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        (b"BZh9" + bytes(1000), stoker.UnsupportedError, "bzip2"), (b"\xfd7zXZ\0" + bytes(1000), stoker.UnsupportedError, "xz"),
        (b"PK\3\4" + bytes(1000), stoker.UnsupportedError, "zip"), (b"text " * 200, stoker.CorruptError, "no tar archive"),
        (gzip.compress(b"text " * 200), stoker.CorruptError, "no tar archive"),
        (gzip.compress(gzip.compress(make(member("a")))), stoker.DecodeError, "gzip|ends at byte"),  # packed twice stays so
    ],
)  # fmt: skip
def test_what_is_no_archive(data, error, match, tmp_path):
    path = tmp_path / "odd.tar"
    path.write_bytes(data)
    for src in (data, io.BytesIO(data), path):
        with pytest.raises(error, match=match) as caught:
            listed(src)
    assert str(caught.value).startswith(str(path))


def test_compressed_archives_are_checked():
    archive = make(member("a", random.Random(1).randbytes(3000)), member("b", b"2"))
    for packed in (gzip.compress(archive), zstd(archive)):
        for n in range(4, len(packed) - 20, 97):
            with pytest.raises(stoker.CorruptError, match="too early, after"):
                listed(packed[:n])
        broken = bytearray(packed)
        broken[len(packed) // 2] ^= 0x10
        with pytest.raises(stoker.CorruptError):  # the bytes of a member or its checksum
            listed(bytes(broken))


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_checksums_of_what_cannot_be_packed(pack):
    """They stand behind the end of the archive, and all members have been given by then."""
    archive = make(member("a", random.Random(1).randbytes(700_000))) + bytes(600_000)
    packed = bytearray(pack(archive))
    packed[300_000] ^= 1
    for src in (packed, io.BytesIO(packed)):
        iterator = iter_tarfile(src)
        assert next(iterator)[0] == "a"
        with pytest.raises(stoker.CorruptError, match="gzip|zstd"):
            list(iterator)


def test_limits():
    archive = make(member("a", bytes(5000)), member("b", bytes(100)))
    for packed in (gzip.compress(archive), zstd(archive)):
        assert len(listed(packed, max_uncompressed_bytes=len(archive))) == 2
        with pytest.raises(stoker.LimitError, match="max_uncompressed_bytes"):
            listed(packed, max_uncompressed_bytes=5000)
        with pytest.raises(stoker.LimitError, match="a has 5000 bytes, the limit of one member is 4999"):
            listed(packed, max_member_bytes=4999)
    assert len(listed(archive, max_member_bytes=1, max_uncompressed_bytes=1)) == 2  # nothing is made of it
    long = make(member("x" * 3000, b"1"))
    assert len(listed(long, max_header_bytes=3001)) == 1
    with pytest.raises(stoker.LimitError, match="the limit for one member is 3000"):
        listed(long, max_header_bytes=3000)
    for bad in (0, -1):
        for option in ("max_uncompressed_bytes", "max_ratio", "max_member_bytes", "max_header_bytes"):
            with pytest.raises(ValueError, match=option):
                iter_tarfile(archive, **{option: bad})
    with pytest.raises(TypeError):
        iter_tarfile(archive, max_ratio=1.5)


def test_bombs():
    """300 MiB of zeros in a few bytes; inside of them nothing is unpacked."""
    bomb = zstd(make(member("zeros", bytes(300 << 20))))
    assert len(bomb) < 40_000
    with pytest.raises(stoker.LimitError, match="max_ratio"):
        listed(bomb)
    with pytest.raises(stoker.LimitError, match="max_ratio"):
        listed(io.BytesIO(gzip.compress(make(member("zeros", bytes(80 << 20))), 9)))
    inside = make(member("bomb.tar.zst", bomb))
    assert listed(inside) == [("bomb.tar.zst", bomb)]
    assert listed(zstd(inside)) == [("bomb.tar.zst", bomb)]


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["../outside", "/absolute", "inside", "a/../../b"]
    archive = make(*[member(name, b"x") for name in names], member("l", type=tarfile.SYMTYPE, linkname="/etc"))
    assert [name for name, _ in listed(archive)] == names
    assert list(tmp_path.iterdir()) == []
