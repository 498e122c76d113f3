"""Arrow IPC and Parquet through pyarrow."""

from __future__ import annotations

import io
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
            list(function(bytes(bad)))
        except stoker.DecodeError:
            pass
    path = tmp_path / "cut"
    path.write_bytes(good[:100])
    with pytest.raises(stoker.MalformedError, match="cut"):
        list(function(path))


@pytest.mark.parametrize("function", [iter_arrow, iter_parquet])
def test_without_pyarrow(function, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(stoker.NotInstalledError, match="pip install pyarrow") as caught:
        function(b"ARROW1")
    assert isinstance(caught.value, ImportError)
