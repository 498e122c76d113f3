"""WAV files: against Python's own reader, what is broken, and how long memory lives."""

from __future__ import annotations

import ctypes
import gc
import io
import math
import os
import struct
import wave
import weakref
from array import array
from pathlib import Path

import numpy as np
import pytest

import stoker
from stoker.io import WAVHeader, load_wav, parse_wav
from support import at_once

PCM, FLOAT, ALAW, EXTENSIBLE = 1, 3, 6, 0xFFFE
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
NONE, MOST = 0, 0xFFFFFFFF


def fmt_chunk(tag=PCM, channels=2, rate=8000, bits=16, code=PCM):
    align = channels * ((bits + 7) // 8)
    chunk = struct.pack("<HHIIHH", tag, channels, rate, rate * align, align, bits)
    if tag == EXTENSIBLE:
        chunk += struct.pack("<HHIH", 22, bits, 3, code) + GUID_TAIL
    return chunk


def make(data: bytes, *, riff=None, size=None, before=b"", **fmt) -> bytes:
    chunk = fmt_chunk(**fmt)
    size = len(data) if size is None else size
    body = b"WAVE" + before + b"fmt " + struct.pack("<I", len(chunk)) + chunk + b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", len(body) if riff is None else riff) + body


def samples(dtype: str, frames=100, channels=2) -> np.ndarray:
    rng = np.random.default_rng(7)
    if dtype.startswith("float"):
        return rng.uniform(-1, 1, (frames, channels)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (frames, channels), dtype, endpoint=True)


KINDS = [("uint8", PCM, 8), ("int16", PCM, 16), ("int32", PCM, 32), ("int64", PCM, 64),
         ("float32", FLOAT, 32), ("float64", FLOAT, 64)]  # fmt: skip


@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize(("dtype", "tag", "bits"), KINDS)
def test_formats(dtype, tag, bits, channels):
    want = samples(dtype, 100, channels)
    for fmt in ({"tag": tag}, {"tag": EXTENSIBLE, "code": tag}):
        data = make(want.tobytes(), channels=channels, bits=bits, **fmt)
        got = load_wav(data)
        assert got.shape == (100, channels) and got.dtype == dtype and got.readonly
        assert np.array_equal(np.asarray(got), want)
        assert got.__array_interface__["data"][0] == address(data) + len(data) - want.nbytes
        assert got.__array_interface__["typestr"] == np.dtype(dtype).str
        assert np.array_equal(np.asarray(memoryview(got)), want)
        header = parse_wav(data)
        assert (header.audio_format, header.bits_per_sample, header.dtype) == (tag, bits, dtype)
        assert header.extensible == ("code" in fmt) and header.channel_mask == (3 if "code" in fmt else 0)


def address(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value


def test_24_bits_are_widened_like_others_do_it():
    want = samples("int32") & ~0xFF
    packed = want.astype("<i4").tobytes()
    data = make(b"".join(packed[i + 1 : i + 4] for i in range(0, len(packed), 4)), bits=24)
    got = load_wav(data)
    assert got.dtype == "int32" and not got.readonly  # memory of its own
    assert np.array_equal(np.asarray(got), want)
    assert np.array_equal(np.asarray(load_wav(data, 0.00125, 0.001)), want[10:18])
    assert parse_wav(data).bits_per_sample == 24


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_as_the_wave_module_reads_it(width, channels, tmp_path):
    raw = np.random.default_rng(width).bytes(width * channels * 333)
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as w:
        w.setnchannels(channels)
        w.setsampwidth(width)
        w.setframerate(22050)
        w.writeframes(raw)
    with wave.open(str(path)) as w:
        frames, params = w.readframes(w.getnframes()), w.getparams()
    for src in (path, str(path), os.fsencode(path).decode(), path.read_bytes(), bytearray(path.read_bytes())):
        header = parse_wav(src)
        assert (header.num_channels, header.sample_rate, header.num_frames) == (
            params.nchannels, params.framerate, params.nframes)  # fmt: skip
        assert header.data_size == len(frames) and header.duration_seconds == 333 / 22050
        got = np.asarray(load_wav(src))
        if width == 3:
            assert (got & 0xFF == 0).all()
            got = got.astype("<i4").view(np.uint8).reshape(-1, 4)[:, 1:]
        assert got.tobytes() == frames


def test_header_is_a_value():
    data = make(bytes(400))
    assert parse_wav(data) == WAVHeader(
        audio_format=1, num_channels=2, sample_rate=8000, byte_rate=32000, block_align=4, bits_per_sample=16,
        data_size=400, valid_bits=16, channel_mask=0, container="RIFF", extensible=False, unsized=False,
        dtype="int16", data_offset=44, num_frames=100, duration_seconds=0.0125,
    )  # fmt: skip
    with pytest.raises(AttributeError):
        parse_wav(data).data_size = 3


@pytest.mark.parametrize(
    ("offset", "duration", "first", "count"),
    [
        (None, None, 0, 100), (0, None, 0, 100), (0.005, None, 40, 60), (None, 0.005, 0, 40),
        (0.00019, None, 1, 99), (0.00012, None, 0, 100), (0.01249, None, 99, 1), (0, 0, 0, 0),
        (0, 5, 0, 100), (0.01, 5, 80, 20), (0.01, 1e300, 80, 20), (0, 0.00019, 0, 1), (np.float32(0.0078125), 1, 62, 38),
    ],
)  # fmt: skip
def test_windows(offset, duration, first, count, tmp_path):
    want = samples("int16")
    data = make(want.tobytes())
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    for src in (data, path):
        got = np.asarray(load_wav(src, offset, duration))
        assert got.shape == (count, 2) and np.array_equal(got, want[first : first + count])
    same = load_wav(data=data, duration_seconds=duration, time_offset_seconds=offset)
    assert np.array_equal(np.asarray(same), got)


@pytest.mark.parametrize("bad", [-1, -1e-9, math.nan, math.inf, -math.inf])
def test_windows_that_are_none(bad):
    data = make(bytes(400))
    for window in ((bad, None), (None, bad)):
        with pytest.raises(ValueError, match="finite and at least 0"):
            load_wav(data, *window)


@pytest.mark.parametrize("offset", [0.0125, 0.0126, 1e300])
def test_windows_past_the_end(offset, tmp_path):
    data = make(bytes(400))
    (tmp_path / "a.wav").write_bytes(data)
    for src in (data, tmp_path / "a.wav"):
        with pytest.raises(stoker.InvalidArgumentError, match="the samples end at 0.0125"):
            load_wav(src, offset)
    assert load_wav(make(b"")).shape == (0, 2)
    with pytest.raises(ValueError):
        load_wav(make(b""), 0.1)


@pytest.mark.parametrize(
    ("riff", "size", "unsized"),
    [(MOST, MOST, True), (NONE, MOST, True), (NONE, NONE, True), (36, NONE, True), (MOST, 0x7FFFFFFF, True),
     (36, 0x7FFFEFDC, True), (MOST, 400, False), (NONE, 400, False), (7, 400, False)],
)  # fmt: skip
def test_sizes_that_streams_write(riff, size, unsized):
    want = samples("int16")
    data = make(want.tobytes() + (b"x" if unsized else b""), riff=riff, size=size)
    assert parse_wav(data).unsized is unsized and parse_wav(data).data_size == 400
    assert np.array_equal(np.asarray(load_wav(data)), want)


def rf64(data: bytes, size: int, name=b"RF64") -> bytes:
    rest = make(data, size=MOST)[12:]
    ds64 = struct.pack("<QQQI", 0, size, 0, 0)
    return name + struct.pack("<I", MOST) + b"WAVEds64" + struct.pack("<I", len(ds64)) + ds64 + rest


def w64(data: bytes, size=None) -> bytes:
    tail = bytes.fromhex("f3acd3118cd100c04f8edb8a")
    chunk = fmt_chunk()
    body = b"wave" + tail
    body += b"fmt " + tail + struct.pack("<Q", 24 + len(chunk)) + chunk
    body += b"data" + tail + struct.pack("<Q", 24 + len(data) if size is None else size) + data
    return b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000") + struct.pack("<Q", 24 + len(body)) + body


@pytest.mark.parametrize(
    ("data", "container"),
    [
        (lambda raw: rf64(raw, len(raw)), "RF64"), (lambda raw: rf64(raw, len(raw), b"BW64"), "RF64"),
        (lambda raw: rf64(raw, 2**64 - 1), "RF64"), (w64, "W64"), (lambda raw: w64(raw, 2**63 - 1), "W64"),
    ],
)  # fmt: skip
def test_64_bit_containers(data, container):
    want = samples("int16")
    file = data(want.tobytes())
    assert parse_wav(file).container == container
    assert np.array_equal(np.asarray(load_wav(file)), want)


GOOD = make(bytes(400))


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        (b"", stoker.MalformedError, "too few"),
        (GOOD[:443], stoker.MalformedError, "'data' has 400 bytes from byte 44 on"),
        (make(bytes(402)), stoker.MalformedError, "no whole number of frames"),
        (make(bytes(400), size=401), stoker.MalformedError, "ends after 400"),
        (make(bytes(400), before=b"LIST\xf0\0\0\0"), stoker.MalformedError, "there is no chunk 'fmt '"),
        (make(bytes(400), before=b"LIST\0\0\0\x60"), stoker.MalformedError, "'LIST' has 1610612736 bytes"),
        (make(bytes(400), channels=0), stoker.MalformedError, "0 channels"),
        (make(bytes(400), rate=0), stoker.MalformedError, "at 0 Hz"),
        (GOOD[:28] + b"\1\2\3\4" + GOOD[32:], stoker.MalformedError, "byte rate"),
        (GOOD[:32] + b"\5\0" + GOOD[34:], stoker.MalformedError, "block align"),
        (b"OggS" + bytes(100), stoker.UnsupportedFormatError, "no WAV file"),
        (b"RIFX" + GOOD[4:], stoker.UnsupportedFormatError, "big-endian"),
        (make(bytes(400), tag=ALAW, bits=8), stoker.UnsupportedFormatError, r"format 6 \(A-law\)"),
        (make(bytes(480), bits=40), stoker.UnsupportedFormatError, "of 40 bits"),
        (make(bytes(400), tag=FLOAT), stoker.UnsupportedFormatError, r"\(float\) of 16 bits"),
        (rf64(bytes(400), 404), stoker.MalformedError, "'data' has 404 bytes"),
        (rf64(bytes(400), 2**63), stoker.MalformedError, "'data' has 9223372036854775808 bytes"),
        (w64(bytes(400), 2**64 - 8), stoker.MalformedError, "'data' has"),
        (w64(bytes(400), 7), stoker.MalformedError, "less than its own header"),
    ],
)  # fmt: skip
def test_what_is_wrong(data, error, match, tmp_path):
    path = tmp_path / "bad.wav"
    path.write_bytes(data)
    for src in (data, bytearray(data), path):
        with pytest.raises(error, match=match) as caught:
            load_wav(src)
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, stoker.DecodeError)
        assert str(caught.value).startswith("WAV: " if src is not path else str(path))


def test_truncated_at_every_byte(tmp_path):
    path = tmp_path / "cut.wav"
    for whole in (make(bytes(24), tag=EXTENSIBLE), rf64(bytes(24), 24), w64(bytes(24))):
        for n in range(len(whole)):
            with pytest.raises(stoker.MalformedError):
                load_wav(whole[:n])
            path.write_bytes(whole[:n])
            with pytest.raises(stoker.MalformedError, match="cut.wav"):
                load_wav(path)


def test_flipped_bits_give_samples_or_errors():
    for whole in (make(bytes(24), tag=EXTENSIBLE), rf64(bytes(24), 24), w64(bytes(24))):
        for bit in range(8 * len(whole)):
            data = bytearray(whole)
            data[bit // 8] ^= 1 << bit % 8
            try:
                got = np.asarray(load_wav(data))
            except ValueError:
                continue
            assert got.nbytes <= 48  # 24 bits widened
            got.sum()


def test_paths_that_are_none(tmp_path):
    with pytest.raises(stoker.NotFoundError, match="nothing.wav"):
        load_wav(tmp_path / "nothing.wav")
    with pytest.raises(stoker.InvalidArgumentError, match="not a regular file"):
        load_wav(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(stoker.InvalidArgumentError, match="a FIFO"):
        load_wav(tmp_path / "fifo")
    with pytest.raises(ValueError, match="null"):
        load_wav("a\0b")


def test_arguments():
    for bad in (3, None, io.BytesIO(GOOD), [1]):
        for function in (load_wav, parse_wav):
            with pytest.raises(TypeError):
                function(bad)
    for call in (lambda: load_wav(), lambda: load_wav(GOOD, 0, 0, 0), lambda: load_wav(GOOD, max_bytes=0.5), lambda: load_wav(GOOD, data=GOOD),
                 lambda: load_wav(GOOD, start=1), lambda: load_wav(GOOD, "0")):  # fmt: skip
        with pytest.raises(TypeError):
            call()
    text = "Expected a one-dimensional, C-contiguous byte buffer."
    array_2d = np.frombuffer(GOOD, np.uint8).reshape(2, -1)
    for bad in (array_2d, np.frombuffer(GOOD, np.int16), np.frombuffer(GOOD * 2, np.uint8)[::2], memoryview(GOOD)[::2]):
        for function in (load_wav, parse_wav):
            with pytest.raises(ValueError, match=text):
                function(bad)


@pytest.mark.parametrize("view", [bytearray, lambda d: memoryview(bytearray(d)), lambda d: np.frombuffer(bytearray(d), np.uint8),
                                  lambda d: array("B", d)])  # fmt: skip
def test_writable_if_the_data_are(view):
    data = view(GOOD)
    got = load_wav(data)
    assert not got.readonly
    np.asarray(got)[3, 1] = -7
    assert bytes(memoryview(data)[44 + 14 : 44 + 16]) == struct.pack("<h", -7)
    assert np.asarray(load_wav(memoryview(data).toreadonly())).flags.writeable is False


def test_a_bytearray_stays_where_it_is():
    data = bytearray(GOOD)
    got = load_wav(data)
    kept = np.asarray(got)
    del got
    with pytest.raises(BufferError):
        data.append(0)
    del kept
    gc.collect()
    data.append(0)


class Owner(bytearray):
    """Something that can be watched."""


@pytest.mark.parametrize("through", [np.asarray, memoryview, np.from_dlpack, lambda f: f])
def test_views_keep_their_owner(through):
    """And let go of it with the last of them; what DLPack holds may be dropped on threads without Python,
    so that waits for the next field that Python drops."""
    data = Owner(GOOD)
    gone = weakref.ref(data)
    got = load_wav(data, 0.001)
    kept = through(got)
    del got, data
    gc.collect()
    assert gone() is not None
    assert np.asarray(kept).shape == (92, 2)
    del kept
    gc.collect()
    if through is np.from_dlpack:
        load_wav(GOOD)
    assert gone() is None


def test_dlpack_needs_no_aligned_address():
    want = samples("float64")
    data = make(want.tobytes(), tag=FLOAT, bits=64, before=b"LIST\1\0\0\0a\0")  # at byte 54
    assert np.array_equal(np.from_dlpack(load_wav(data)), want)
    assert np.array_equal(np.asarray(load_wav(data)), want)


def test_samples_of_a_path_are_its_own(tmp_path):
    want = samples("int16")
    path = Path(tmp_path / "a.wav")
    path.write_bytes(make(want.tobytes(), before=b"LIST" + struct.pack("<I", 100_000) + bytes(100_000)))
    got = load_wav(path)
    path.unlink()
    assert not got.readonly and np.array_equal(np.asarray(got), want)


def test_limit_of_a_path(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(GOOD)
    assert load_wav(path, max_bytes=400).shape == (100, 2)
    assert load_wav(path, 0, 0.001, max_bytes=32).shape == (8, 2)
    with pytest.raises(stoker.LimitError, match="the limit is 399 bytes"):
        load_wav(path, max_bytes=399)
    assert load_wav(GOOD, max_bytes=1).shape == (100, 2)  # a view costs nothing
    for bad in (0, -1):
        with pytest.raises(ValueError, match="max_bytes"):
            load_wav(path, max_bytes=bad)


def test_threaded():
    want = samples("int16", 1000)
    data = make(want.tobytes())
    shared = bytearray(data)

    def work():
        for _ in range(300):
            assert np.array_equal(np.asarray(load_wav(data, 0.1)), want[800:])
            assert load_wav(shared).shape == (1000, 2)

    at_once(*[work] * 4)
    gc.collect()
    shared.append(0)
