"""load_npy: what np.save writes, beside np.load, and what nobody should have written."""

from __future__ import annotations

import gc
import io
import struct
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import errors
from stoker import io as sio
from support import at_once, ok

DTYPES = [
    *("?", "i1", "u1", "S1", "S7", "V3", "V1"),
    *(f"{order}{kind}" for order in "<>" for kind in ("i2", "u2", "i4", "u4", "i8", "u8")),
    *(f"{order}{kind}" for order in "<>" for kind in ("f2", "f4", "f8", "c8", "c16", "g", "G")),
    *(f"{order}{kind}" for order in "<>" for kind in ("U1", "U5", "M8[ns]", "M8[25s]", "m8[D]", "m8", "M8")),
]
SHAPES = [(), (1,), (7,), (2, 3), (3, 1, 2), (0,), (2, 0, 3)]
HEADER = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }"


def saved(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def made(header: str, data: bytes = bytes(64), major: int = 1) -> bytes:
    length = struct.pack("<H" if major == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([major, 0]) + length + header.encode() + data


def some(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array whose elements differ."""
    kind = np.dtype(dtype)
    n = int(np.prod(shape))
    if kind.kind in "SUV":
        return np.arange(n).astype("S7").astype(kind).reshape(shape)
    return (np.arange(n) * 3 % 251).astype(kind).reshape(shape)


def same(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert type(ours) is np.ndarray
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ours.strides == theirs.strides or not ours.size
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_and_shape_in_both_orders(dtype):
    for shape in SHAPES:
        for order in "CF":
            array = np.array(some(dtype, shape), order=order)
            for version in (None, (1, 0), (2, 0), (3, 0)):
                data = saved(array, version)
                same(sio.load_npy(data), np.load(io.BytesIO(data)))
                same(sio.load_npy(data, copy=True), np.load(io.BytesIO(data)))


@given(st.data())
def test_round_trips(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=6)))
    array = np.array(some(dtype, shape), order=data.draw(st.sampled_from("CF")))
    padding = data.draw(st.binary(max_size=20))
    same(sio.load_npy(saved(array) + padding), array)


def test_64_dimensions():
    array = np.zeros((1,) * 52 + (2,) * 12)
    same(sio.load_npy(saved(array)), array)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
def test_any_buffer_of_bytes(kind):
    array = np.arange(5.0)
    same(sio.load_npy(kind(saved(array))), array)


def test_a_view_of_bytes_is_read_only_and_keeps_them():
    data = np.frombuffer(saved(np.arange(5)), np.uint8)  # of bytes there are no weak references
    gone = weakref.ref(data)
    array = sio.load_npy(data)
    assert not array.flags.writeable and not array.flags.owndata
    assert np.shares_memory(array, data)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    del data
    gc.collect()
    assert gone() is not None
    assert array.tolist() == [0, 1, 2, 3, 4]
    del array
    gc.collect()
    assert gone() is None


def test_a_view_of_a_bytearray_is_in_place():
    data = bytearray(saved(np.arange(5, dtype=np.uint8)))
    array = sio.load_npy(data)
    array[0] = 99
    assert data[-5:] == bytes([99, 1, 2, 3, 4])
    with pytest.raises(BufferError):
        data.append(0)
    assert array.tolist() == [99, 1, 2, 3, 4]
    del array
    gc.collect()
    data.append(0)


def test_a_read_only_view_of_a_bytearray_stays_so():
    assert not sio.load_npy(memoryview(bytearray(saved(np.arange(3)))).toreadonly()).flags.writeable


def test_a_copy_is_independent_and_writable():
    for order in "CF":
        theirs = np.array(np.arange(6).reshape(2, 3), order=order)
        data = bytearray(saved(theirs))
        array = sio.load_npy(data, copy=True)
        assert array.flags.writeable and array.flags.owndata
        same(array, theirs)
        data.append(0)
        array[0, 0] = 7
        assert not np.shares_memory(array, np.frombuffer(data, np.uint8))


def test_paths(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6).reshape(2, 3))
    for name in (path, str(path)):
        array = sio.load_npy(name)
        assert array.flags.writeable
        same(array, np.load(path))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(errors.CorruptError, match=f"{path}: NPY: the data ends after 47 of 48 bytes") as caught:
        sio.load_npy(path)
    assert caught.value.key == str(path)
    path.write_bytes(b"")
    with pytest.raises(errors.CorruptError, match="not a NumPy file"):
        sio.load_npy(path)
    with pytest.raises(FileNotFoundError) as missing:
        sio.load_npy(tmp_path / "b.npy")
    assert isinstance(missing.value, errors.NotFoundError) and missing.value.filename == str(tmp_path / "b.npy")
    with pytest.raises(errors.InvalidArgumentError, match="not a regular file"):
        sio.load_npy(tmp_path)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([None, {}], dtype=object), "an array of objects"),
        (np.zeros(2, [("a", "i4"), ("b", "f8", (2,))]), "a structured dtype is not read"),
    ],
)
def test_objects_and_structures_are_refused(array, text):
    with pytest.raises(errors.UnsupportedError, match=text) as caught:
        sio.load_npy(saved(array))
    assert isinstance(caught.value, RuntimeError)


def test_nothing_is_unpickled():
    class Evil:
        def __reduce__(self):
            return exec, ("raise SystemExit('unpickled')",)

    with pytest.raises(errors.UnsupportedError):
        sio.load_npy(saved(np.array([Evil()], dtype=object)))


@pytest.mark.parametrize(
    "header",
    [
        HEADER.replace("'<i2'", "__import__('os').abort()"),
        HEADER.replace("(3,)", "(lambda: (3,))()"),
        HEADER.replace("(3,)", "(3+0,)"),
        HEADER.replace("(3,)", "(-3,)"),
        HEADER.replace("(3,)", "(3.0,)"),
        HEADER.replace("(3,)", "[3]"),
        HEADER.replace("(3,)", "(3)"),
        HEADER.replace("(3,)", "(9223372036854775808,)"),
        HEADER.replace("(3,)", "(4611686018427387904, 2)"),
        HEADER.replace("(3,)", "(0, 9223372036854775807)"),
        HEADER.replace("False", "None"),
        HEADER.replace("'descr'", "'dtype'"),
        HEADER.replace("'descr': '<i2', ", ""),
        HEADER.replace("}", "'shape': (1,)}"),
        HEADER + "x",
        HEADER[:-1],
        "",
        "(" * 60000,
    ],
)
def test_malformed_headers(header):
    with pytest.raises(errors.CorruptError) as caught:
        sio.load_npy(made(header))
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("dtype", ["<q2", "<i3", "float32x", "<M8[xx]", "|S", "<f4, <f4", "<i4#"])
def test_unknown_dtypes(dtype):
    with pytest.raises(errors.UnsupportedError, match="unknown dtype"):
        sio.load_npy(made(HEADER.replace("<i2", dtype)))


def test_versions():
    for major in (1, 2, 3):
        assert sio.load_npy(made(HEADER, major=major)).shape == (3,)
    for version in (b"\x00\x00", b"\x04\x00", b"\x01\x01"):
        with pytest.raises(errors.UnsupportedError, match="version"):
            sio.load_npy(b"\x93NUMPY" + version + made(HEADER)[8:])


def test_what_others_write():
    python2 = made("{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 1L), }")
    assert sio.load_npy(python2).shape == (2, 1)
    native = made('{"shape":(3,),"fortran_order":False,"descr":"=i2"}\n')
    assert sio.load_npy(native).dtype == np.int16
    odd = made(HEADER, bytes(range(6)))  # elements at an odd address
    assert sio.load_npy(odd + b"x").tolist() == [256, 770, 1284]


def test_cut_at_every_byte():
    data = saved(np.arange(6, dtype=np.int16).reshape(2, 3))
    for size in range(len(data)):
        with pytest.raises(errors.CorruptError):
            sio.load_npy(data[:size])


def test_each_byte_flipped():
    """Another array, or an error of the tree; what both read is the same."""
    data = saved(np.arange(6, dtype=np.int16).reshape(2, 3))
    for at in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            try:
                ours = sio.load_npy(flipped)
            except errors.Error:
                continue
            try:
                theirs = np.load(io.BytesIO(flipped))
            except ValueError:
                continue
            same(ours, theirs)


@pytest.mark.parametrize(
    "data",
    [np.zeros((4, 4), np.uint8), np.zeros(4, np.int32), memoryview(b"12345678")[::2], np.zeros((), np.uint8)],
)
def test_other_buffers(data):
    with pytest.raises(ValueError, match="Expected a one-dimensional, C-contiguous byte buffer.") as caught:
        sio.load_npy(data)
    assert isinstance(caught.value, errors.InvalidArgumentError)


@pytest.mark.parametrize("data", [None, 3, [1, 2]])
def test_no_buffer(data):
    with pytest.raises(TypeError, match="bytes-like"):
        sio.load_npy(data)


def test_threaded():
    data = bytearray(saved(np.arange(1000)))

    def load():
        for _ in range(200):
            assert sio.load_npy(data)[-1] == 999

    at_once(load, load, load, load)


def test_numpy_is_loaded_by_use():
    out = ok(
        """
        from stoker.io import NpzFile, iter_zipfile, load_npy, load_npz
        print("numpy" in sys.modules)
        """
    )
    assert out == "False\n"
