"""stoker.ops.decode_wav: clips of WAV files in the native lane."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest

import stoker
from av import ffmpeg, needs_ffmpeg
from stoker import PipelineBuilder, ops, source
from stoker.errors import UnsupportedError
from stoker.pipeline.defs import MAIN_PROCESS, ProcessPoolExecutorConfig
from support import failing

RATE = 1000


def wav(samples: np.ndarray, rate: int = RATE) -> bytes:
    """(time, channels) as a file; 24 bits: what is in the upper three bytes of int32."""
    return wav_of(samples.tobytes(), samples.dtype, samples.shape[1], rate, samples.itemsize)


def wav_of(data: bytes, dtype: np.dtype, channels: int, rate: int, width: int) -> bytes:
    tag = 3 if dtype.kind == "f" else 1
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * channels * width, channels * width, 8 * width)
    return struct.pack("<4sI4s4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16) + form + struct.pack("<4sI", b"data", len(data)) + data


def ramp(n: int, channels: int = 1, first: int = 0) -> np.ndarray:
    """Sample i of channel c is first + i + 1000 c, as int16."""
    return (first + np.arange(n)[:, None] + 1000 * np.arange(channels)).astype("<i2")


def save(folder, files):
    paths = [folder / f"{i:03}.wav" for i in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    return paths


def run(src, op, n=100, on_error="raise", threads=2):
    pipeline = (
        PipelineBuilder().add_source(src).pipe(ops.read()).pipe(op, on_error=on_error).batch(n).add_sink(1).build(num_threads=threads)
    )
    return list(pipeline), pipeline


def sound(paths, op, **options):
    (batch,), _ = run(source.List(audio=paths, files=["audio"], **options), op)
    return np.asarray(batch["audio"]), np.asarray(batch["mask"]) if "mask" in batch else None


@pytest.mark.parametrize(
    ("dtype", "zero", "full"),
    [("u1", 128, 128), ("<i2", 0, 2**15), ("<i4", 0, 2**31), ("<i8", 0, 2**63), ("<f4", 0, 1), ("<f8", 0, 1)],
)
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_numbers_become_those_from_minus_1_to_1(tmp_path, dtype, zero, full, channels):
    rng = np.random.default_rng(1)
    files = []
    for _ in range(3):
        if np.dtype(dtype).kind == "f":
            files.append(rng.uniform(-1, 1, (2500, channels)).astype(dtype))
        else:
            info = np.iinfo(dtype)
            files.append(rng.integers(info.min, info.max, (2500, channels), dtype, endpoint=True))
    got, mask = sound(save(tmp_path, [wav(f) for f in files]), ops.decode_wav(2.5, sample_rate=RATE, channels=channels))
    want = np.stack([((f.astype("f8") - zero) / full).astype("f4").T for f in files])
    assert got.dtype == np.float32 and got.shape == (3, channels, 2500)
    assert np.abs(got - want).max() <= 2**-24  # int64 goes to float32 at once, not by way of float64
    assert mask.dtype == bool and mask.shape == (3, 2500) and mask.all()


def test_24_bits(tmp_path):
    values = np.random.default_rng(2).integers(-(2**23), 2**23, (700, 2))
    data = (values.astype("<i4") * 256).view("u1").reshape(-1, 4)[:, 1:].tobytes()
    (path,) = save(tmp_path, [wav_of(data, np.dtype("<i4"), 2, RATE, 3)])
    got, _ = sound([path], ops.decode_wav(0.7))
    assert np.array_equal(got[0].T, (values / 2**23).astype("f4"))


def test_places(tmp_path):
    paths = save(tmp_path, [wav(ramp(100)), wav(ramp(301))])

    def begins(where):
        got, mask = sound(paths, ops.decode_wav(0.05, where=where))
        assert mask.all() and got.shape == (2, 1, 50)
        first = np.rint(got[:, 0, 0] * 2**15).astype(int)
        assert np.array_equal(np.rint(got[:, 0] * 2**15), first[:, None] + np.arange(50))
        return first.tolist()

    assert begins("start") == [0, 0]
    assert begins("middle") == [25, 125]
    first, second = begins("random")
    assert 0 <= first <= 50 and 0 <= second <= 251


def test_short_files_are_padded(tmp_path):
    lengths = [0, 1, 49, 50]
    paths = save(tmp_path, [wav(ramp(n, 2, 7)) for n in lengths])
    for where in ("start", "middle", "random", "all"):
        got, mask = sound(paths, ops.decode_wav(0.05, where=where))
        for i, n in enumerate(lengths):
            assert mask[i].tolist() == [True] * n + [False] * (50 - n)
            assert np.array_equal(np.rint(got[i] * 2**15).T[:n], ramp(n, 2, 7)) and not got[i, :, n:].any()


def test_all_of_a_file_must_fit(tmp_path):
    paths = save(tmp_path, [wav(ramp(50)), wav(ramp(51))])
    (batch,), pipeline = run(source.List(paths), ops.decode_wav(0.05, where="all"), on_error="skip")
    assert np.asarray(batch.id).tolist() == [0]
    (failure,) = pipeline.failures()
    assert "0.051 seconds of sound, but a clip has 0.05" in str(failure) and failure.key == str(paths[1])


def test_whole_files(tmp_path):
    paths = save(tmp_path, [wav(ramp(80, 3)), wav(ramp(80, 3, 5))])
    got, mask = sound(paths, ops.decode_wav())
    assert got.shape == (2, 3, 80) and mask is None
    with failing("is float32 1x3 behind stage 'decode_wav', but the batch holds float32 1x80"):
        run(source.List(save(tmp_path, [wav(ramp(80)), wav(ramp(3))])), ops.decode_wav())


def test_random_places_are_keyed(tmp_path):
    n = 20
    paths = save(tmp_path, [wav(ramp(5000))] * n)
    op = ops.decode_wav(0.05, where="random")

    def begins(threads, **options):
        batches, _ = run(source.List(paths, **options), op, n, threads=threads)
        return [np.asarray(b.image)[np.argsort(np.asarray(b.id)), 0, 0].tolist() for b in batches]

    one = begins(1, seed=3, epochs=2)
    assert len(one) == 2 and one[0] != one[1]  # another epoch, other places
    assert len(set(one[0])) > n // 2  # and for each sample
    assert begins(4, seed=3, epochs=2) == one
    assert begins(2, seed=3, epochs=2, shuffle=True) == one  # the order does not matter
    assert begins(2, seed=4, epochs=2) != one
    places = np.rint(np.array(one) * 2**15)
    assert places.min() >= 0 and places.max() <= 4950 and places.std() > 500


def test_channels(tmp_path):
    stereo, mono = wav(np.array([[100, 300], [-5, 6]], "<i2")), wav(np.array([[100], [7]], "<i2"))
    got, _ = sound(save(tmp_path, [stereo, mono]), ops.decode_wav(channels=1))
    assert (got[:, 0] * 2**15).tolist() == [[200, 0.5], [100, 7]]
    got, _ = sound(save(tmp_path, [stereo, mono]), ops.decode_wav(channels=2))
    assert (got * 2**15).tolist() == [[[100, -5], [300, 6]], [[100, 7], [100, 7]]]
    with failing("2 channels, not 3: decode_wav makes one of several, or several of one"):
        run(source.List(save(tmp_path, [stereo])), ops.decode_wav(channels=3))


def test_rates(tmp_path):
    paths = save(tmp_path, [wav(ramp(50)), wav(ramp(50), 2000)])
    (batch,), pipeline = run(source.List(paths), ops.decode_wav(0.05, sample_rate=RATE), on_error="skip")
    assert np.asarray(batch.id).tolist() == [0]
    assert "2000 Hz, not 1000: decode_wav does not resample, decode_audio does" in str(pipeline.failures()[0])


def test_parts_of_a_sample_are_cut_alike(tmp_path):
    (tmp_path / "clean").mkdir()
    noisy = save(tmp_path, [wav(ramp(900, 2, i)) for i in range(4)])
    clean = save(tmp_path / "clean", [wav(ramp(m, 1, i)) for i, m in enumerate([900, 900, 10, 900])])
    src = source.List(noisy=noisy, clean=clean, files=["noisy", "clean"])
    (batch,), _ = run(src, ops.decode_wav(0.05, where="random", mask="valid"))
    a, b, valid = (np.asarray(batch[name]) for name in ("noisy", "clean", "valid"))
    assert a.shape == (4, 2, 50) and b.shape == (4, 1, 50) and valid.shape == (4, 50)
    for i in (0, 1, 3):
        assert np.array_equal(a[i, 0], b[i, 0]) and valid[i].all()
    assert valid[2].sum() == max(0, 10 - (a[2, 0, 0] * 2**15 - 2))


def test_a_mask_needs_a_name_of_its_own(tmp_path):
    (path,) = save(tmp_path, [wav(ramp(50))])
    with pytest.raises(ValueError, match="adds a part 'weight', but samples have something of that name"):
        run(source.List([path], weight=[1.0]), ops.decode_wav(0.05, mask="weight"))
    with pytest.raises(ValueError, match="adds a part 'id'"):
        run(source.List([path]), ops.decode_wav(0.05, mask="id"))
    (batch,), _ = run(source.List([path]), ops.decode_wav(0.05, mask=None))
    assert "mask" not in batch


def test_python_sees_the_mask_as_a_part(tmp_path):
    paths = save(tmp_path, [wav(ramp(30)), wav(ramp(50))])

    def louder(sample):
        data, mask = sample.parts
        sample.parts = np.asarray(data) * 2, mask
        return sample

    builder = PipelineBuilder().add_source(source.List(paths)).pipe(ops.read()).pipe(ops.decode_wav(0.05)).pipe(louder)
    (batch,) = builder.batch(2).add_sink(1).build(num_threads=2)
    assert np.asarray(batch["mask"]).sum(1).tolist() == [30, 50]
    assert np.asarray(batch.image)[1, 0, 3] * 2**15 == 6


def test_the_plan_says_so(tmp_path):
    (path,) = save(tmp_path, [wav(ramp(50))])
    pipeline = PipelineBuilder().add_source(source.List([path])).pipe(ops.read()).pipe(ops.decode_wav(1, sample_rate=RATE)).batch(1)
    text = str(pipeline.add_sink(1))
    assert "decode_wav(1s, where=start, sample_rate=1000, channels=own)" in text and "adds mask" in text


def test_truncation_at_every_byte(tmp_path):
    data = wav(ramp(20))
    paths = save(tmp_path, [data[:i] for i in range(len(data))] + [data])
    found, pipeline = run(source.List(paths), ops.decode_wav(0.05), 1000, "skip")
    assert np.asarray(found[0].id).tolist() == [len(data)]
    assert pipeline.stats()["failed"] == len(data)


def test_what_cannot_be_read_fails_by_name(tmp_path):
    data = bytearray(wav(ramp(20)))
    data[20:22] = struct.pack("<H", 0x55)
    (path,) = save(tmp_path, [bytes(data)])
    _, pipeline = run(source.List([path]), ops.decode_wav(0.05), on_error="skip")
    (failure,) = pipeline.failures()
    assert isinstance(failure, UnsupportedError) and "MP3" in str(failure) and failure.stage == "decode_wav"


def test_a_limit(tmp_path):
    (path,) = save(tmp_path, [wav(ramp(1000, 2))])
    assert sound([path], ops.decode_wav(max_bytes=8000))[0].shape == (1, 2, 1000)
    with failing("1000 samples of 2 channels: the limit is 7999 bytes"):
        run(source.List([path]), ops.decode_wav(max_bytes=7999))


def test_arguments():
    for bad in ({"seconds": 0}, {"seconds": -1}, {"where": "start"}, {"seconds": 1, "where": "end"}, {"channels": 0}, {"sample_rate": 0}, {"seconds": 1e-4, "sample_rate": 1000}):
        with pytest.raises(ValueError):
            ops.decode_wav(**bad)
    for bad in ({"seconds": "1"}, {"mask": ""}, {"mask": 1}, {"channels": 1.5}):
        with pytest.raises(TypeError):
            ops.decode_wav(**bad)
    op = ops.decode_wav(2, sample_rate=16000, where="random")
    assert pickle.loads(pickle.dumps(op)) == op
    assert repr(op) == "decode_wav(seconds=2.0, sample_rate=16000, where='random')"
    assert issubclass(ops.decode_wav, stoker.ops.Op)


@needs_ffmpeg
@pytest.mark.parametrize("codec", ["pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_s64le", "pcm_f32le", "pcm_f64le"])
def test_as_the_ffmpeg_command(tmp_path, codec):
    path = tmp_path / "x.wav"
    ffmpeg("-f", "lavfi", "-i", "aevalsrc=0.4*sin(300*t*t)|0.7*cos(500*t):s=8000:d=1", "-c:a", codec, path)
    raw = ffmpeg("-i", path, "-f", "f32le", "-c:a", "pcm_f32le", "-")
    got, mask = sound([path], ops.decode_wav(1, sample_rate=8000, channels=2))
    assert mask.all() and np.array_equal(got[0].T, np.frombuffer(raw, "f4").reshape(-1, 2))


def test_parts_leave_a_region_in_batches(tmp_path):
    paths = save(tmp_path, [wav(ramp(30))] * 6)

    def inside():
        builder = PipelineBuilder().add_source(source.List(paths)).pipe(ops.read())
        return builder.to(ProcessPoolExecutorConfig(1)).pipe(ops.decode_wav(0.05))

    pipeline = inside().batch(3).to(MAIN_PROCESS).add_sink(1).build(num_threads=1)
    with pipeline.auto_stop():
        assert [np.asarray(batch["mask"]).sum() for batch in pipeline] == [90, 90]
    with pytest.raises(ValueError, match="adds parts to samples, which leave a region in batches only"):
        inside().to(MAIN_PROCESS).batch(3).add_sink(1).build(num_threads=1)
