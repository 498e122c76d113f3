"""Lines of text, and JSON lines."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import subprocess
import threading

import pytest

import stoker
from stoker.io import iter_jsonl, iter_lines


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def sources(data: bytes, folder) -> list[object]:
    path = folder / "lines.txt"
    path.write_bytes(data)
    packed = folder / "lines.gz"
    packed.write_bytes(gzip.compress(data))
    return [
        data, bytearray(data), memoryview(data), path, str(path), packed, io.BytesIO(data), gzip.compress(data), zstd(data),
        io.BytesIO(zstd(data)), open(path, "rb"),
    ]  # fmt: skip


def texts(data: bytes) -> list[str]:
    """What Python's own reader says, without its treatment of a lone carriage return."""
    with io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n") as f:
        return [line.removesuffix("\n").removesuffix("\r") for line in f]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"\n\n", b"one", b"one\n", b"one\ntwo", b"one\r\ntwo\r\n", b"\r\n\r\n", b"a\rb\n", b"\r\r\n",
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}\n\N{SNOWMAN}\x85 and \N{LINE SEPARATOR}\n".encode(), b"\0\n\x0b\x0c\x1c\n",
        b"\n".join(b"%d" % i * (i % 50) for i in range(40_000)),
        b"x" * 1_000_000 + b"\n" + b"y" * 600_000,
    ],
)  # fmt: skip
def test_as_text_files_are_read(data, tmp_path):
    for source in sources(data, tmp_path):
        assert list(iter_lines(source)) == texts(data)
        if hasattr(source, "close"):
            source.close()


def test_ends_of_blocks():
    """Lines that end just before, at and behind the end of a block of 256 KiB."""
    for size in range(262_140, 262_148):
        data = b"a" * size + b"\r\n" + b"b" * 300_000 + b"\nc"
        assert list(map(len, iter_lines(data))) == [size, 300_000, 1]


def test_byte_order_mark():
    assert list(iter_lines("\ufeffone\n\ufefftwo".encode())) == ["one", "\ufefftwo"]
    assert list(iter_jsonl('\ufeff{"a": 1}\n'.encode())) == [{"a": 1}]


def test_encodings():
    text = "gr\xfc\xdfe\nzwei"
    assert list(iter_lines(text.encode("latin-1"), encoding="latin-1")) == text.split("\n")
    assert list(iter_lines("日本\n語".encode("shift-jis"), encoding="shift-jis")) == ["日本", "語"]
    assert list(iter_lines(b"a\xffb\n", errors="replace")) == ["a\N{REPLACEMENT CHARACTER}b"]
    for bad in ("utf-16", "utf-32-le", "no such"):
        with pytest.raises(ValueError, match="encoding: "):
            iter_lines(b"", encoding=bad)


def test_errors_name_the_place(tmp_path):
    data = b"one\ntwo\n\xff\nfour\n"
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    for source, place in ((data, "line 3: "), (path, f"{path}:3: "), (io.BytesIO(gzip.compress(data)), "line 3: ")):
        lines = iter_lines(source)
        assert [next(lines), next(lines)] == ["one", "two"]
        with pytest.raises(stoker.MalformedError) as caught:
            next(lines)
        assert str(caught.value).startswith(place + "'utf-8' codec can't decode byte 0xff")
        assert isinstance(caught.value, ValueError) and isinstance(caught.value.__cause__, UnicodeDecodeError)
        assert list(lines) == []


@pytest.mark.parametrize("line", [100, 300_000])
def test_limit_of_a_line(line, tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"one\n" + b"x" * line + b"\nthree")
    assert len(list(iter_lines(path, max_line_bytes=line))) == 3
    with pytest.raises(stoker.LimitError, match=rf"long.txt:2: over {line - 1} bytes in a line"):
        list(iter_lines(path, max_line_bytes=line - 1))
    with pytest.raises(stoker.LimitError, match="line 1: over 16777216 bytes"):
        list(iter_lines(gzip.compress(bytes(17 << 20))))
    for bad, error in ((0, ValueError), (-1, ValueError), ("1", TypeError)):
        with pytest.raises(error, match="max_line_bytes"):
            iter_lines(path, max_line_bytes=bad)
        with pytest.raises(error, match="max_line_bytes"):
            iter_jsonl(path, max_line_bytes=bad)


def test_compressed_text_is_checked():
    data = random.Random(1).randbytes(1000).hex().encode() + b"\n"
    for packed in (gzip.compress(data * 3), zstd(data * 3)):
        for n in range(4, len(packed), 50):
            with pytest.raises(stoker.CorruptError, match="too early"):
                list(iter_lines(packed[:n]))
        with pytest.raises(stoker.LimitError, match="max_uncompressed_bytes"):
            list(iter_lines(packed, max_uncompressed_bytes=5000))
    assert list(iter_lines(gzip.compress(b"one\n") + gzip.compress(b"two\n"))) == ["one", "two"]


def test_json_lines(tmp_path):
    documents = [{"a": [1, 2.5, None]}, "text\u2028", 3, [], None, {"é": "☃"}]
    data = "\n".join(json.dumps(d, ensure_ascii=i % 2 == 0) for i, d in enumerate(documents)).encode() + b"\n\n \t\r\n"
    for source in sources(data, tmp_path):
        assert list(iter_jsonl(source)) == documents
        if hasattr(source, "close"):
            source.close()
    assert list(iter_jsonl(b"1.5\n2.5", loads=lambda text: json.loads(text, parse_float=str))) == ["1.5", "2.5"]


@pytest.mark.parametrize("bad", [b"{", b"{'a': 1}", b'{"a": 1} x', b"[" * 100_000, b"nul", b"1" * 5000, b'"\xff"'])
def test_bad_json_names_the_place(bad, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"a": 1}\n\n' + bad + b"\n4\n")
    documents = iter_jsonl(path)
    assert next(documents) == {"a": 1}
    with pytest.raises(stoker.MalformedError, match=r"bad.jsonl:3: ") as caught:
        next(documents)
    assert isinstance(caught.value, ValueError) and caught.value.__cause__ is not None


def test_pipes_line_by_line():
    """A line comes when it is there, and not when the pipe ends."""
    read, write = os.pipe()
    with open(read, "rb", buffering=0) as f:
        lines = iter_lines(f)
        for i in range(5):
            os.write(write, b"line %d\npart" % i)
            assert next(lines).endswith(f"line {i}")
        os.close(write)
        assert list(lines) == ["part"]


def test_what_is_no_source(tmp_path):
    for function in (iter_lines, iter_jsonl):
        with pytest.raises(stoker.NotFoundError):
            function(tmp_path / "nothing")
        with pytest.raises(TypeError):
            function(3)
    with pytest.raises(TypeError, match="must give bytes"):
        list(iter_lines(io.StringIO("text")))


def test_files_are_closed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    before = set(os.listdir("/proc/self/fd"))
    begun, fresh = iter_lines(path), iter_jsonl(path)
    assert next(begun) == "one"
    begun.close()
    del fresh
    list(iter_lines(path))
    assert set(os.listdir("/proc/self/fd")) == before


def test_threaded():
    data = b"\n".join(b"%d" % i for i in range(20_000))
    results = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda r=r: r.extend(map(int, iter_lines(data)))) for r in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(r == list(range(20_000)) for r in results)
