"""stoker info of Arrow and Parquet files, which the user's pyarrow reads."""

import json
import os
import sys

import pytest

pa = pytest.importorskip("pyarrow")
ipc = pytest.importorskip("pyarrow.ipc")
parquet = pytest.importorskip("pyarrow.parquet")

ENV = {**os.environ, "STOKER_PYTHON": sys.executable}
COLUMNS = [("label", "int64"), ("text", "string"), ("box", "fixed_size_list<element: float>[4]")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same table of 300 rows in each form, with names that say nothing of it."""
    folder = tmp_path_factory.mktemp("columns")
    boxes = pa.array([[0.0, 1, 2, 3]] * 300, pa.list_(pa.field("element", pa.float32()), 4))
    table = pa.table({"label": pa.array(range(300)), "text": pa.array(["word"] * 300), "box": boxes})
    for name, writer in (("file", ipc.new_file), ("stream", ipc.new_stream)):
        with pa.OSFile(str(folder / name), "wb") as out, writer(out, table.schema) as to:
            to.write_table(table, max_chunksize=100)
    parquet.write_table(table, folder / "parquet", row_group_size=100)
    return [folder / name for name in ("file", "stream", "parquet")]


def test_rows_columns_and_types(stoker, files):
    done = stoker("info", "--json", *files, env=ENV)
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert [f["format"] for f in found] == ["Arrow", "Arrow", "Parquet"]
    for path, one in zip(files, found, strict=True):
        assert (one["rows"], one["num_columns"], one["bytes"], one["decodes"]) == (300, 3, path.stat().st_size, True)
        assert [(c["name"], c["type"]) for c in one["columns"]] == COLUMNS
    lines = stoker("info", files[2], env=ENV).stdout.splitlines()
    assert lines[0] == f"{files[2]}: Parquet, 300 rows of 3 columns, {files[2].stat().st_size} bytes: can be read"
    assert lines[1:] == [f"  {name}: {kind}" for name, kind in COLUMNS]


def test_what_names_say_does_no_harm(stoker, tmp_path):
    names = ["two\nlines", "nul\0nul", "\x1b[31m", "long" * 1000, *map(str, range(300))]
    parquet.write_table(pa.table({name: pa.array([1]) for name in names}), tmp_path / "a")
    lines = stoker("info", tmp_path / "a", env=ENV).stdout.splitlines()
    assert ", 1 row of 304 columns, " in lines[0]
    assert lines[1:4] == ["  two?lines: int64", "  nul?nul: int64", "  ?[31m: int64"]
    assert lines[4].startswith("  longlong") and lines[4].endswith("...: int64") and len(lines[4]) < 520
    assert len(lines) == 202 and lines[-1] == "  and 104 more"


def test_broken_files(stoker, files, tmp_path):
    whole = [path.read_bytes() for path in files]
    for name, data in {
        "cut file": whole[0][:-100],
        "cut stream": whole[1][: len(whole[1]) // 2 + 3],
        "cut parquet": whole[2][:-100],
        "footer": whole[2][:-60] + bytes(52) + whole[2][-8:],
        "magic": b"PAR1",
    }.items():
        (tmp_path / name).write_bytes(data)
        done = stoker("info", tmp_path / name, env=ENV)
        assert done.returncode == 1 and done.stderr == "", name
        assert ": is broken: " in done.stdout, done.stdout
        assert ("its end is missing" in done.stdout) == (name in {"cut file", "cut parquet"}), done.stdout


def test_without_pyarrow_it_says_what_is_missing(stoker, files, tmp_path):
    (tmp_path / "pyarrow.py").write_text("raise ImportError('it is not there')")
    cases = {
        "pip install pyarrow (it is not there)": {**ENV, "PYTHONPATH": str(tmp_path)},
        "/nonexistent: No such file": {**ENV, "STOKER_PYTHON": "/nonexistent"},
        "ended with exit code 1": {**ENV, "STOKER_PYTHON": "false"},
    }
    for words, env in cases.items():
        done = stoker("info", *files, env=env)
        assert done.returncode == 1
        for line, kind in zip(done.stdout.splitlines(), ("Arrow", "Arrow", "Parquet"), strict=True):
            assert f": {kind}, " in line and " bytes: cannot be read: " in line and words in line


def test_the_working_directory_is_not_imported(stoker, files, tmp_path):
    for name in ("pyarrow", "mmap"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    assert stoker("info", *files, env=ENV, cwd=tmp_path).returncode == 0
