"""load_npz: what np.savez writes, beside np.load, and archives that are wrong."""

from __future__ import annotations

import gc
import io
import pickle
import struct
import warnings
import zipfile
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import errors
from stoker import io as sio
from support import at_once

ARRAYS = {
    "ints": np.arange(600).reshape(20, 30),
    "big": np.arange(5, dtype=">f4"),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "scalar": np.array(3 + 4j),
    "empty": np.zeros((0, 4), np.uint8),
    "text": np.array(["a", "bcd"]),
    "when": np.array(["2020-02-02", "1999-01-01"], "M8[D]"),
    "sub/folder": np.array([True, False]),
}


def saved(compressed: bool = False, **arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **(arrays or ARRAYS))
    return out.getvalue()


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def zipped(entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, data in entries:
                archive.writestr(name, data)
    return out.getvalue()


def patched(data: bytes, fmt: str, at: int, value: int) -> bytes:
    out = bytearray(data)
    struct.pack_into(fmt, out, at, value)
    return bytes(out)


def central(data: bytes) -> int:
    return data.index(b"PK\1\2")


def same(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ours.strides == theirs.strides or not ours.size
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_as_numpy_reads_it(compressed, kind):
    data = saved(compressed)
    ours = sio.load_npz(kind(data))
    theirs = np.load(io.BytesIO(data))
    assert list(ours) == list(ours.keys()) == ours.files == list(theirs) == list(ARRAYS)
    assert len(ours) == len(ARRAYS)
    for name, array in ours.items():
        same(array, theirs[name])
        same(ours[f"{name}.npy"], theirs[name])
        assert name in ours and f"{name}.npy" in ours


@given(
    st.dictionaries(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=9), st.integers(0, 99)),
    st.booleans(),
)
def test_round_trips(sizes, compressed):
    entries = [(f"{name}.npy", npy(np.arange(n))) for name, n in sizes.items() if not name.endswith("/")]
    npz = sio.load_npz(zipped(entries, zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED))
    for name, data in entries:
        same(npz[name], np.load(io.BytesIO(data)))
    assert len(npz) == len(entries)


def test_is_a_mapping():
    npz = sio.load_npz(saved(a=np.arange(3), b=np.zeros(2)))
    assert isinstance(npz, Mapping) and isinstance(npz, sio.NpzFile)
    assert npz.get("no") is None
    for name in ("no", "no.npy", "a.npy.npy", "", 3):
        assert name not in npz
        with pytest.raises(KeyError) as caught:
            npz[name]  # type: ignore[index]
        assert caught.value.args == (name,)
    assert repr(npz) == "NpzFile(a, b)"
    assert npz != {}


def test_stored_arrays_are_views():
    data = saved(a=np.arange(5))
    array = sio.load_npz(data)["a"]
    assert not array.flags.writeable
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    changing = bytearray(data)
    npz = sio.load_npz(changing)
    array = npz["a"]
    array[0] = 7
    assert array[0] == 7 and bytes(changing) != data
    with pytest.raises(BufferError):
        changing.append(0)
    with pytest.raises(errors.CorruptError, match="CRC-32"):  # checked on each access
        npz["a"]
    del npz, array
    gc.collect()
    changing.append(0)


def test_deflated_arrays_own_writable_memory():
    data = bytearray(saved(True, a=np.arange(500)))
    npz = sio.load_npz(data)
    one, other = npz["a"], npz["a"]
    assert one.flags.writeable and not np.shares_memory(one, other)
    one[0] = 9
    assert other[0] == 0
    assert not np.shares_memory(one, np.frombuffer(data, np.uint8))
    del npz, other
    gc.collect()
    data.clear()
    assert one[:3].tolist() == [9, 1, 2]


@pytest.mark.parametrize("compressed", [False, True])
def test_paths(tmp_path, compressed):
    path = tmp_path / "a.npz"
    path.write_bytes(saved(compressed))
    with sio.load_npz(path) as npz:
        for name, array in npz.items():
            same(array, ARRAYS[name])
            assert array.flags.writeable
        kept = npz["ints"]
    same(kept, ARRAYS["ints"])
    with pytest.raises(errors.InvalidArgumentError, match="closed"):
        npz["ints"]
    npz.close()
    path.write_bytes(b"not a zip file, but long enough")
    with pytest.raises(errors.CorruptError, match=f"^{path}: Failed to locate") as caught:
        sio.load_npz(str(path))
    assert caught.value.key == str(path)
    with pytest.raises(FileNotFoundError):
        sio.load_npz(tmp_path / "none.npz")


def test_a_file_that_shrinks(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(saved(a=np.zeros(5000)))
    npz = sio.load_npz(path)
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(errors.IOError, match=f"{path}: shrank"):
        npz["a"]


def test_names_without_suffix_and_others():
    data = zipped(
        [("plain", npy(np.arange(1))), ("plain.npy", npy(np.arange(2))), ("raw.txt", b"hello"), ("folder/", b""),
         ("folder/x.npy", npy(np.arange(3))), ("../x.npy", npy(np.arange(4))), ("/x.npy", npy(np.arange(5)))]
    )  # fmt: skip
    npz = sio.load_npz(data)
    assert list(npz) == ["plain", "plain.npy", "raw.txt", "folder/x", "../x", "/x"]
    assert [len(npz[name]) for name in npz if name != "raw.txt"] == [1, 2, 3, 4, 5]
    with pytest.raises(errors.CorruptError, match="raw.txt: NPY: not a NumPy file"):
        npz["raw.txt"]
    with pytest.raises(KeyError):
        npz["folder/"]


def test_of_equal_names_the_last_is_meant():
    data = zipped([("a.npy", npy(np.arange(1))), ("b.npy", npy(np.arange(2))), ("a.npy", npy(np.arange(3)))])
    npz = sio.load_npz(data)
    assert list(npz) == ["a", "b"] and len(npz) == 2
    assert len(npz["a"]) == 3 == len(np.load(io.BytesIO(data))["a"])


def test_zip64():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in ARRAYS.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(npy(array))
    for name, array in sio.load_npz(out.getvalue()).items():
        same(array, ARRAYS[name])


@pytest.mark.parametrize("size", range(22))
def test_less_than_any_archive_has(size):
    with pytest.raises(RuntimeError, match=r"The data is not a valid zip file\.") as caught:
        sio.load_npz(bytes(size))
    assert isinstance(caught.value, errors.CorruptError)


def test_cut_at_every_byte():
    data = saved(True)
    for size in range(22, len(data)):
        with pytest.raises(RuntimeError, match=r"Failed to locate the end of the central directory\."):
            sio.load_npz(data[:size])


def test_each_byte_changed():
    """Errors of the tree, at the call or on access, or the arrays as they were under some name."""
    data = saved(True, a=np.arange(50), b=np.arange(3))
    wanted = {npy(np.arange(50)), npy(np.arange(3))}
    for at in range(len(data)):
        for value in (0, 1, 0x80, 0xFF, data[at] ^ 4):
            changed = bytearray(data)
            changed[at] = value
            try:
                npz = sio.load_npz(changed)
                for array in npz.values():
                    assert npy(array) in wanted
            except errors.Error as error:
                assert isinstance(error, (RuntimeError, ValueError))


def test_limit():
    data = saved(True, a=np.zeros(1000, np.uint8), b=np.zeros(500, np.uint8))
    total = 1500 + 2 * 128
    assert len(sio.load_npz(data, max_uncompressed_bytes=total)) == 2
    with pytest.raises(ValueError, match="max_uncompressed_bytes is 1755") as caught:
        sio.load_npz(data, max_uncompressed_bytes=total - 1)
    assert isinstance(caught.value, errors.LimitError)
    assert len(sio.load_npz(saved(a=np.zeros(1000)), max_uncompressed_bytes=0)) == 1  # stored
    with pytest.raises(errors.LimitError, match="central directory"):
        sio.load_npz(data, max_directory_bytes=90)
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="max_uncompressed_bytes must be at least 0"):
            sio.load_npz(data, max_uncompressed_bytes=wrong)


def test_bombs():
    """The default limit, by what is declared, before any of it is inflated."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(2**21))
    bomb = out.getvalue()
    for declared in (2**30 + 1, 2**32 - 2):
        data = patched(bomb, "<I", central(bomb) + 24, declared)
        with pytest.raises((errors.LimitError, errors.CorruptError)):
            sio.load_npz(data)
    with pytest.raises(errors.CorruptError, match="longer than declared"):
        sio.load_npz(patched(bomb, "<I", central(bomb) + 24, 1000))["a"]


@pytest.mark.parametrize(
    ("fmt", "offset", "value", "text"),
    [
        ("<H", 8, 1, "encrypted"),
        ("<H", 10, 12, "method 12, bzip2"),
        ("<H", 10, 14, "method 14, LZMA"),
        ("<H", 10, 1234, "method 1234"),
        ("<H", 34, 1, "several disks"),
        ("<I", 42, 2**20, "outside of the archive"),
        ("<I", 42, 2**32 - 1, "extra field"),
        ("<I", 20, 2**20, "outside of the archive"),
        ("<I", 24, 2**20, "two sizes"),
        ("<H", 28, 2**16 - 1, "central directory is broken"),
        ("<I", 0, 1, "central directory is broken"),
    ],
)
def test_refused_at_the_call(fmt, offset, value, text):
    data = saved(a=np.arange(9), b=np.arange(9))
    with pytest.raises(errors.DecodeError, match=text) as caught:
        sio.load_npz(patched(data, fmt, central(data) + offset, value))
    assert isinstance(caught.value, (sio.CorruptArchiveError, sio.UnsupportedArchiveError))
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, ValueError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is type(caught.value) and str(copy) == str(caught.value)


def test_entries_that_overlap():
    data = saved(a=np.arange(9), b=np.arange(9))
    second = data.index(b"PK\1\2", central(data) + 1)
    with pytest.raises(errors.CorruptError, match="overlaps"):
        sio.load_npz(patched(data, "<I", second + 42, 0))


@pytest.mark.parametrize(
    ("compressed", "offset", "value", "text"),
    [
        (False, 16, 1, "wrong CRC-32"),
        (True, 16, 1, "wrong CRC-32"),
        (True, 24, 100, "longer than declared"),
        (True, 24, 2000, "shorter than declared"),
    ],
)
def test_refused_on_access(compressed, offset, value, text):
    data = saved(compressed, a=np.arange(99), b=np.arange(9))
    npz = sio.load_npz(patched(data, "<I", central(data) + offset, value))
    with pytest.raises(RuntimeError, match=f"a.npy: .*{text}") as caught:
        npz["a"]
    assert isinstance(caught.value, errors.CorruptError)
    assert npz["b"].tolist() == list(range(9))


def test_arrays_of_objects():
    data = zipped([("a.npy", npy(np.zeros(2, [("x", "i4")])))])
    with pytest.raises(errors.UnsupportedError, match="a.npy: NPY: a structured dtype"):
        sio.load_npz(data)["a"]


@pytest.mark.parametrize("data", [np.zeros((40, 4), np.uint8), np.zeros(40, np.int32)])
def test_other_buffers(data):
    with pytest.raises(ValueError, match="Expected a one-dimensional, C-contiguous byte buffer."):
        sio.load_npz(data)
    with pytest.raises(TypeError):
        sio.load_npz(None)  # type: ignore[arg-type]


def test_threaded():
    large = np.arange(50_000)
    npz = sio.load_npz(saved(True, a=large, b=large + 1))

    def load():
        for _ in range(20):
            assert npz["a"][-1] == 49_999 and npz["b"][-1] == 50_000

    at_once(load, load, load, load)
