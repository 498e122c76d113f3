"""Arrow IPC and Parquet through pyarrow."""

from __future__ import annotations

import io
import random
import struct
import sys
from importlib import import_module

import pytest

import stoker
from stoker.io import iter_arrow, iter_parquet


@pytest.fixture(autouse=True, scope="module")
def table() -> None:
    """Imported when a test needs it: not by those who collect the tests of a sanitizer."""
    global pa, TABLE
    pa = import_module("pyarrow")
    import_module("pyarrow.ipc"), import_module("pyarrow.parquet")
    TABLE = pa.table(
        {
            "id": pa.array(range(1000), pa.int64()),
            "text": [f"text {i}" for i in range(1000)],
            "nested": [{"a": i, "b": [i] * (i % 3)} for i in range(1000)],
            "label": pa.array([i % 7 for i in range(1000)], pa.int8()),
        }
    )


def arrow(kind: str) -> bytes:
    out = io.BytesIO()
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(out, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=300)
    return out.getvalue()


def packed(kind: str, batches: list, **options) -> bytearray:
    out = io.BytesIO()
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(out, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytearray(out.getvalue())


def values(batches) -> list[object]:
    """All of them: what is broken must have been found before."""
    return [column.to_pylist() for batch in batches for column in batch.columns]


def parquet() -> bytes:
    out = io.BytesIO()
    pa.parquet.write_table(TABLE, out, row_group_size=300)
    return out.getvalue()


class NoSeek(io.BytesIO):
    def seekable(self) -> bool:
        return False


def sources(data: bytes, tmp_path, pipes: bool) -> list[object]:
    path = tmp_path / "data"
    path.write_bytes(data)
    return [data, bytearray(data), memoryview(data), path, str(path), io.BytesIO(data)] + [NoSeek(data)] * pipes


def together(batches):
    return pa.Table.from_batches(list(batches))


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow(kind, tmp_path):
    for source in sources(arrow(kind), tmp_path, pipes=True):
        batches = list(iter_arrow(source))
        assert [b.num_rows for b in batches] == [300, 300, 300, 100]
        assert together(batches).equals(TABLE)


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("columns", [["id"], ["id", "label"], ["label", "id"], ["nested", "text"], []])
def test_arrow_columns(kind, columns, tmp_path):
    for source in sources(arrow(kind), tmp_path, pipes=True):
        batches = list(iter_arrow(source, columns))
        assert [b.schema.names for b in batches] == [columns] * 4
        if columns:
            assert together(batches).equals(TABLE.select(columns))


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_batch_size(kind):
    data = arrow(kind)
    assert [b.num_rows for b in iter_arrow(data, batch_size=128)] == [128, 128, 44] * 3 + [100]
    assert together(iter_arrow(data, ["id"], 128)).equals(TABLE.select(["id"]))
    assert [b.num_rows for b in iter_arrow(data, batch_size=10**9)] == [300, 300, 300, 100]


def test_parquet(tmp_path):
    for source in sources(parquet(), tmp_path, pipes=False):
        assert together(iter_parquet(source)).equals(TABLE)
        assert together(iter_parquet(source, ["id", "label"])).equals(TABLE.select(["id", "label"]))
        assert together(iter_parquet(source, ["nested.a"]))["nested"][999].as_py() == {"a": 999}
        assert max(b.num_rows for b in iter_parquet(source, batch_size=100)) == 100
        assert together(iter_parquet(source, row_groups=[1, 3])).equals(
            pa.concat_tables([TABLE.slice(300, 300), TABLE.slice(900)])
        )


@pytest.mark.parametrize(("function", "data"), [(iter_arrow, arrow), (iter_parquet, lambda kind: parquet())])
def test_what_is_wrong(function, data, tmp_path):
    good = data("file")
    with pytest.raises(stoker.InvalidArgumentError, match="columns: there is no 'nothing'; there are id, text"):
        function(good, ["id", "nothing"])
    for bad in (0, -1):
        with pytest.raises(ValueError, match="batch_size"):
            function(good, batch_size=bad)
    with pytest.raises(TypeError, match="batch_size"):
        function(good, batch_size="1")
    with pytest.raises(stoker.NotFoundError, match="nothing"):
        function(tmp_path / "nothing")
    with pytest.raises(stoker.IOError):
        list(function(tmp_path))


@pytest.mark.parametrize(("function", "data"), [(iter_arrow, arrow), (iter_parquet, lambda kind: parquet())])
def test_cut_anywhere_and_harmed(function, data, tmp_path):
    good = data("file")
    for size in range(0, len(good), max(1, len(good) // 200)):
        try:
            list(function(good[:size]))
        except stoker.MalformedError as error:
            assert str(error).startswith("Arrow data: ")
        else:
            raise AssertionError(f"{size} of {len(good)} bytes")
    for at in range(0, len(good), max(1, len(good) // 200)):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        try:
            values(function(bytes(bad)))
        except stoker.DecodeError:
            pass
    path = tmp_path / "cut"
    path.write_bytes(good[:100])
    with pytest.raises(stoker.MalformedError, match="cut"):
        list(function(path))


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_harmed_at_random(kind, compression):
    """Whatever is changed, values are those of the file's memory, and errors those of the tree."""
    words = pa.array(["one", "two", "three"] * 60)
    batch = pa.record_batch({"text": words, "word": words.dictionary_encode(), "n": pa.array(range(180))})
    good = packed(kind, [batch, batch], compression=compression)
    chance = random.Random(5)
    for _ in range(400):
        bad = bytearray(good)
        for _ in range(2):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        try:
            values(iter_arrow(bytes(bad)))
        except stoker.Error as error:
            assert isinstance(error, (stoker.DecodeError, stoker.LimitError, stoker.OutOfMemoryError)), error


def test_offsets_outside():
    good = packed("stream", [pa.record_batch({"text": ["abcd", "efgh", "ijkl"]})])
    bad = good.replace(struct.pack("<4i", 0, 4, 8, 12), struct.pack("<4i", 0, 4, 8, 1 << 20))
    assert bad != good
    for size in (None, 2):
        with pytest.raises(stoker.MalformedError, match="Arrow data: .*offset"):
            next(iter_arrow(bad, batch_size=size))
    assert next(iter_arrow(bad, validate=False)).num_rows == 3
    with pytest.raises(TypeError, match="validate"):
        iter_arrow(good, validate=1)


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_what_compressed_batches_stand_for(kind, compression, tmp_path):
    small, large = (pa.record_batch({"n": pa.array([0] * n), "m": pa.array([0] * n)}) for n in (1000, 100_000))
    size = 2 * 100_000 * 8
    data = packed(kind, [small, large], compression=compression)
    assert len(data) < size // 50
    for source in sources(bytes(data), tmp_path, pipes=True):
        assert [b.num_rows for b in iter_arrow(source, max_uncompressed_bytes=size)] == [1000, 100_000]
    for source in sources(bytes(data), tmp_path, pipes=True):
        batches = iter_arrow(source, max_uncompressed_bytes=size - 1)
        assert next(batches).num_rows == 1000
        with pytest.raises(stoker.LimitError, match=f"{size} bytes when unpacked, max_uncompressed_bytes is {size - 1}"):
            next(batches)
    plain = packed(kind, [small, large])
    assert len(list(iter_arrow(plain, max_uncompressed_bytes=0))) == 2  # which is no larger than it is


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_sizes_that_are_claimed(kind):
    """Refused before memory for it is asked for."""
    good = packed(kind, [pa.record_batch({"n": pa.array(range(5000))})], compression="zstd")
    claims = struct.pack("<q", 40_000)
    assert good.count(claims) == 1
    with pytest.raises(stoker.LimitError, match=f"a batch of {1 << 60} bytes when unpacked"):
        next(iter_arrow(good.replace(claims, struct.pack("<q", 1 << 60))))
    with pytest.raises(stoker.DecodeError):
        next(iter_arrow(good.replace(claims, struct.pack("<q", 1 << 16))))


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("end", [(0, 4), (1 << 40, 100), (-(1 << 40), 100)])
def test_sizes_that_cannot_be_read(kind, end):
    """What was summed before one of them counts."""
    zeros = pa.array([0] * 10_000)
    bad = packed(kind, [pa.record_batch({"n": zeros, "m": zeros})], compression="zstd")
    claims = struct.pack("<q", 80_000)
    first = bad.index(claims)
    offset = bad.index(claims, first + 8) - first
    struct.pack_into("<qq", bad, bad.rindex(struct.pack("<q", offset), 0, first), offset + end[0], end[1])
    with pytest.raises(stoker.MalformedError, match="Arrow data: a batch does not tell how large it is"):
        next(iter_arrow(bad, max_uncompressed_bytes=80_000))
    with pytest.raises(stoker.LimitError, match="a batch of 80000 bytes"):
        next(iter_arrow(bad, max_uncompressed_bytes=79_999))


def test_a_codec_that_old_metadata_name():
    batch, out = pa.record_batch({"n": pa.array([1 << 50] * 1000)}), io.BytesIO()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(out, batch.schema, options=options) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "zstd"})
    batches = iter_arrow(out.getvalue())
    assert next(batches).equals(batch)
    with pytest.raises(stoker.LimitError, match=f"a batch of {1 << 50} bytes"):
        next(batches)


@pytest.mark.parametrize("deltas", [False, True])
def test_dictionaries_count_too(deltas):
    first, more = (pa.array([str(i) * 100 for i in range(n)]) for n in (2000, 4000))
    batches = [
        pa.record_batch({"word": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), words)})
        for words in (first, more)
    ]
    data = packed("stream", batches, compression="lz4", emit_dictionary_deltas=deltas)
    sizes = [len("".join(words.to_pylist())) + 4 * (len(words) + 1) for words in (first, more)]
    assert len(list(iter_arrow(data, max_uncompressed_bytes=sizes[1] + 1000))) == 2
    with pytest.raises(stoker.LimitError, match="dictionaries of"):
        list(iter_arrow(data, max_uncompressed_bytes=sizes[1] - 1000))
    with pytest.raises(stoker.LimitError, match="dictionaries of"):
        next(iter_arrow(data, max_uncompressed_bytes=sizes[0] - 1))
    stored = packed("file", batches[:1], compression="lz4")
    with pytest.raises(stoker.LimitError, match="dictionaries of"):
        next(iter_arrow(stored, max_uncompressed_bytes=sizes[0] - 1))


def test_parquet_limit():
    out = io.BytesIO()
    pa.parquet.write_table(pa.table({"n": pa.array([0] * 100_000)}), out, compression="zstd")
    assert len(list(iter_parquet(out.getvalue(), max_uncompressed_bytes=600_000))) == 2
    with pytest.raises(stoker.LimitError, match="65536 rows has 5[0-9]* bytes, max_uncompressed_bytes is 500000: ask"):
        next(iter_parquet(out.getvalue(), max_uncompressed_bytes=500_000))
    assert list(iter_parquet(out.getvalue(), batch_size=100, max_uncompressed_bytes=1000))
    for function in (iter_arrow, iter_parquet):
        with pytest.raises(stoker.InvalidArgumentError, match="max_uncompressed_bytes"):
            function(out.getvalue(), max_uncompressed_bytes=-1)


def test_row_groups_that_are_not_there():
    for wrong in (4, -1, 2**70, "0"):
        with pytest.raises(stoker.InvalidArgumentError, match=f"row_groups: there is no {wrong!r}; there are 4"):
            iter_parquet(parquet(), row_groups=[0, wrong])


@pytest.mark.parametrize("function", [iter_arrow, iter_parquet])
def test_without_pyarrow(function, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(stoker.NotInstalledError, match="pip install pyarrow") as caught:
        function(b"ARROW1")
    assert isinstance(caught.value, ImportError)
