"""stoker.ops.decode_audio: clips of what FFmpeg decodes, in the native lane."""

from __future__ import annotations

import subprocess
import sys
import wave

import numpy as np
import pytest

import stoker
from av import ffmpeg, make, needs_ffmpeg, samples, tone
from stoker import PipelineBuilder, ops, source
from stoker.io import demux_audio, load_audio
from support import failing

pytestmark = needs_ffmpeg

LOSSLESS = {
    "pcm.wav": ["-c:a", "pcm_s16le"],
    "float.wav": ["-c:a", "pcm_f32le"],
    "flac.flac": ["-c:a", "flac"],
    "alac.m4a": ["-c:a", "alac"],
    "flac.mkv": ["-c:a", "flac"],
}
LOSSY = {
    "mp3.mp3": ["-c:a", "libmp3lame"],
    "aac.m4a": ["-c:a", "aac"],
    "aac.ts": ["-c:a", "aac"],
    "vorbis.ogg": ["-c:a", "libvorbis"],
    "opus.webm": ["-c:a", "libopus", "-ar", "48000"],
}
ALL = {**LOSSLESS, **LOSSY}
SECONDS = 3


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    return {name: tone(folder / name, *args, seconds=SECONDS) for name, args in ALL.items()}


def run(src, op, n=100, on_error="raise", threads=2):
    builder = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(op, on_error=on_error)
    pipeline = builder.batch(n).add_sink(1).build(num_threads=threads)
    return list(pipeline), pipeline


def sound(paths, op, **options):
    (batch,), _ = run(source.List(audio=paths, files=["audio"], **options), op)
    return np.asarray(batch["audio"]), np.asarray(batch["mask"]) if "mask" in batch else None


def place(whole: np.ndarray, clip: np.ndarray) -> tuple[int, float]:
    """Where in `whole` (time,) the clip fits best, and its largest difference there."""
    few = slice(0, 400, 40)
    windows = np.lib.stride_tricks.sliding_window_view(whole[: len(whole) - len(clip) + 400], 400)
    best = int(np.abs(windows[:, few] - clip[few]).max(1).argmin())
    return best, float(np.abs(whole[best : best + len(clip)] - clip).max())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("rate", [None, 16000])
def test_whole_files_are_those_of_load_audio(files, name, rate):
    got, mask = sound([files[name]] * 2, ops.decode_audio(sample_rate=rate))
    whole = np.asarray(load_audio(files[name], filter_desc=f"{f'aresample={rate},' if rate else ''}aformat=sample_fmts=fltp"))
    assert mask is None and got.dtype == np.float32
    assert np.array_equal(got[0], whole) and np.array_equal(got[1], whole)


@pytest.mark.parametrize("name", ["pcm.wav", "flac.flac", "mp3.mp3", "aac.m4a"])
def test_as_the_ffmpeg_command(files, name):
    want = samples(files[name], "-af", "aresample=22050")
    got, mask = sound([files[name]], ops.decode_audio(SECONDS + 1, sample_rate=22050, channels=2))
    assert got.shape == (1, 2, 22050 * (SECONDS + 1)) and mask[0].sum() == len(want)
    assert np.array_equal(got[0, :, : len(want)].T, want) and not got[0, :, len(want) :].any()


@pytest.mark.parametrize("name", ALL)
def test_the_start(files, name):
    whole = np.asarray(load_audio(files[name], filter_desc="aresample=16000,aformat=sample_fmts=fltp"))
    got, mask = sound([files[name]], ops.decode_audio(1, sample_rate=16000))
    assert got.shape == (1, 2, 16000) and mask.all()
    assert np.array_equal(got[0], whole[:, :16000])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("where", ["middle", "random"])
def test_clips_are_pieces_of_the_whole(files, name, where):
    whole = np.asarray(load_audio(files[name], filter_desc="aformat=sample_fmts=fltp"))
    got, mask = sound([files[name]] * 3, ops.decode_audio(0.5, where=where), seed=5)
    assert mask.all() and got.shape == (3, 2, round(0.5 * (48000 if "opus" in name else 44100)))
    for clip in got:
        at, far = place(whole[0], clip[0])
        assert far == 0 if name in LOSSLESS else far < 0.02
        assert np.abs(whole[:, at : at + clip.shape[1]] - clip).max() < 0.02
        if where == "middle":
            assert abs(at - (whole.shape[1] - clip.shape[1]) // 2) < 3000  # what encoders put around
            if name in LOSSLESS and "mkv" not in name:  # whose times are milliseconds
                assert at == (whole.shape[1] - clip.shape[1]) // 2


def test_resampled_clips(files):
    whole = np.asarray(load_audio(files["flac.flac"], filter_desc="aresample=16000,aformat=sample_fmts=fltp"))
    got, _ = sound([files["flac.flac"]] * 4, ops.decode_audio(0.5, sample_rate=16000, where="random"))
    for clip in got:
        assert place(whole[0], clip[0])[1] < 0.02  # the phase of the resampler is another one


def test_random_places_are_keyed(files):
    n = 12
    op = ops.decode_audio(0.1, sample_rate=8000, where="random")

    def clips(threads, **options):
        batches, _ = run(source.List([files["flac.flac"]] * n, **options), op, n, threads=threads)
        return [np.asarray(b.image)[np.argsort(np.asarray(b.id))] for b in batches]

    one, two = clips(1, seed=3, epochs=2)
    again = clips(2, seed=3, epochs=2, shuffle=True)
    assert np.array_equal(one, again[0]) and np.array_equal(two, again[1])
    assert not np.array_equal(one, two)
    assert len({clip.tobytes() for clip in one}) == n
    assert not np.array_equal(one, clips(1, seed=4)[0])


def test_short_files_are_padded(tmp_path):
    paths = [tone(tmp_path / f"{i}.flac", seconds=s) for i, s in enumerate((0.1, 1.5, 0.75))]
    for where in ("start", "middle", "random"):
        got, mask = sound(paths, ops.decode_audio(1, sample_rate=16000, where=where))
        assert mask.sum(1).tolist() == [1600, 16000, 12000]
        for i, n in enumerate(mask.sum(1)):
            assert mask[i, :n].all() and not got[i, :, n:].any() and got[i, 0, n - 100 : n].any()


EXACT = {
    "mp3.mp3": ["-c:a", "libmp3lame"],
    "mp3.mka": ["-c:a", "libmp3lame"],
    "opus.webm": ["-c:a", "libopus"],
    "opus.ogg": ["-c:a", "libopus"],
    "aac.m4a": ["-c:a", "aac"],
    "aac.mka": ["-c:a", "aac"],
    "aac.ts": ["-c:a", "aac"],
    "vorbis.ogg": ["-c:a", "libvorbis"],
    "flac.mka": ["-c:a", "flac"],
}


@pytest.mark.parametrize("name", EXACT)
def test_what_encoders_put_around_is_no_sound(tmp_path, name):
    """A file as long as the clip, or longer, is never padded."""
    rate = 48000 if "opus" in name else 44100
    for seconds, n in ((2, 4), (3, 24)):
        path = tone(tmp_path / name, *EXACT[name], seconds=seconds, rate=rate)
        for where in ("start", "middle", "random"):
            for to in (None, 16000):
                op = ops.decode_audio(2.0, sample_rate=to, where=where)
                _, mask = sound([path] * (n if where == "random" else 1), op, seed=seconds)
                assert mask.all(), (seconds, where, to, mask.shape[1] - mask.sum(1).min())


def test_all_of_a_file_must_fit(tmp_path):
    paths = [tone(tmp_path / f"{i}.flac", seconds=s) for i, s in enumerate((1, 1.01, 0.5))]
    op = ops.decode_audio(1, sample_rate=16000, where="all")
    (batch,), pipeline = run(source.List(paths), op, on_error="skip")
    assert np.asarray(batch.id).tolist() == [0, 2]
    assert np.asarray(batch["mask"]).sum(1).tolist() == [16000, 8000]
    (failure,) = pipeline.failures()
    assert "more sound than the 1 seconds of a clip" in str(failure) and failure.key == str(paths[1])


@pytest.mark.parametrize("name", ["pcm.wav", "float.wav", "mp3.mp3"])
def test_channels_are_mixed_normalised(files, name):
    whole = np.asarray(load_audio(files[name], filter_desc="aformat=sample_fmts=fltp"))
    got, _ = sound([files[name]], ops.decode_audio(1, channels=1))
    assert np.abs(got[0, 0] - whole[:, :44100].mean(0)).max() < 1e-4
    got, _ = sound([files[name]], ops.decode_audio(1, channels=2))
    assert np.array_equal(got[0], whole[:, :44100])


def wav(path, channels, rate=16000, seconds=1.0):
    """A plain WAV file, which does not say which channel is which; and its samples (channels, time)."""
    data = np.random.default_rng(channels).integers(-9999, 9999, (round(rate * seconds), channels)).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, len(data), "NONE", ""))
        file.writeframes(data.tobytes())
    return path, data.T.astype(np.float32) / 32768


@pytest.mark.parametrize("channels", [9, 12, 64])
def test_channels_without_a_layout(tmp_path, channels):
    path, whole = wav(tmp_path / "many.wav", channels)
    laid = demux_audio(path).codec.channel_layout != f"{channels} channels"  # FFmpeg 7 has one for 12
    for same in (None, channels):
        got, mask = sound([path] * 2, ops.decode_audio(0.5, channels=same))
        assert got.shape == (2, channels, 8000) and mask.all()
        assert np.array_equal(got[0], whole[:, :8000]) and np.array_equal(got[0], got[1])
        got, _ = sound([path] * 4, ops.decode_audio(0.25, sample_rate=8000, channels=same, where="random"))
        assert got.shape == (4, channels, 2000) and got.std(2).all()
    got, mask = sound([path], ops.decode_audio(0.5, channels=1))
    assert got.shape == (1, 1, 8000) and mask.all()
    if laid:
        assert sound([path], ops.decode_audio(0.5, channels=2))[0].shape == (1, 2, 8000)
        return
    assert np.abs(got[0, 0] - whole[:, :8000].mean(0)).max() < 1e-6
    with failing(f"which of the {channels} channels is which is not known, so FFmpeg cannot mix them to 2"):
        run(source.List([path]), ops.decode_audio(0.5, channels=2))


def test_what_cannot_be_mixed_is_said_before_anything_is_decoded(tmp_path):
    path, _ = wav(tmp_path / "two.wav", 2)
    for channels in (9, 33):
        with failing(f"FFmpeg has no layout of {channels} channels that it could mix 2 to"):
            run(source.List([path]), ops.decode_audio(0.5, channels=channels))
    path, _ = wav(tmp_path / "more.wav", 65)
    with failing("65 channels: FFmpeg's filters take at most 64"):
        run(source.List([path]), ops.decode_audio(0.5))


def test_channels_that_are_not_mixed_stay_what_they_are(tmp_path):
    """FFmpeg's usual layout of four channels is another one than quad: as many is no reason to mix."""
    path = make_quad(tmp_path / "quad.wav")
    whole = np.asarray(load_audio(path, filter_desc="aformat=sample_fmts=fltp"))
    assert demux_audio(path).codec.channel_layout == "quad" and whole.shape[0] == 4
    for channels in (None, 4):
        assert np.array_equal(sound([path], ops.decode_audio(channels=channels))[0][0], whole)


def make_quad(path):
    ffmpeg("-f", "lavfi", "-i", "anoisesrc=d=0.5:r=16000:s=3", "-af", "pan=quad|FL=c0|FR=0.5*c0|BL=0.25*c0|BR=0.1*c0", path)
    return path


def test_video_files_have_sound(tmp_path):
    path = make(tmp_path / "x.mp4", "-c:v", "libx264", "-c:a", "aac", audio=True)
    got, mask = sound([path], ops.decode_audio(0.5, sample_rate=16000, channels=1, where="middle"))
    assert mask.all() and got.std() > 0.01


def test_parts_of_a_sample_are_cut_alike(tmp_path):
    one = tone(tmp_path / "one.flac", rate=44100)
    two = tone(tmp_path / "two.wav", rate=32000, channels=1)
    src = source.List(a=[one] * 5, b=[two] * 5, files=["a", "b"])
    (batch,), _ = run(src, ops.decode_audio(0.25, sample_rate=16000, channels=1, where="random"))
    a, b = np.asarray(batch["a"]), np.asarray(batch["b"])
    assert a.shape == b.shape == (5, 1, 4000) and np.asarray(batch["mask"]).all()
    first = np.asarray(load_audio(one, filter_desc="pan=mono|c0=c0,aresample=16000,aformat=sample_fmts=fltp"))[0]
    second = np.asarray(load_audio(two, filter_desc="aresample=16000,aformat=sample_fmts=fltp"))[0]
    for clip in b:
        at, far = place(second, clip[0])
        assert far < 0.02 and abs(at) < len(first) - 3999
    with failing("32000 Hz, but the sample's first part has 44100"):
        run(src, ops.decode_audio(0.25, where="random"))


def test_what_cannot_be_decoded_is_named_and_counted(tmp_path, files):
    silent = make(tmp_path / "silent.mp4", "-c:v", "libx264")
    noise = tmp_path / "noise.mp3"
    noise.write_bytes(b"no sound at all" * 100)
    empty = tmp_path / "empty.wav"
    empty.write_bytes(b"")
    paths = [silent, noise, empty, files["mp3.mp3"]]
    (batch,), pipeline = run(source.List(paths), ops.decode_audio(1, sample_rate=16000), on_error="skip")
    assert np.asarray(batch.id).tolist() == [3]
    failures = pipeline.failures()
    assert [f.key for f in failures] == [str(p) for p in paths[:3]]
    assert all(f.stage == "decode_audio" and isinstance(f, stoker.Error) for f in failures)
    assert "there is no audio stream" in str(failures[0])


def test_broken_packets_fail_the_sample_unless_it_is_lenient(tmp_path, files):
    data = bytearray(files["flac.flac"].read_bytes())
    at = len(data) // 2
    data[at : at + 2000] = bytes(2000)
    path = tmp_path / "broken.flac"
    path.write_bytes(data)
    _, pipeline = run(source.List([path]), ops.decode_audio(), on_error="skip")
    assert pipeline.stats()["failed"] == 1
    got, _ = sound([path], ops.decode_audio(strict=False))
    assert 44100 < got.shape[2] < 44100 * SECONDS
    assert sound([path], ops.decode_audio(0.5))[1].all()  # what is behind the clip is not decoded


def test_a_limit(files):
    with failing("the limit is 100000 bytes"):
        run(source.List([files["flac.flac"]]), ops.decode_audio(max_bytes=100_000))


def test_arguments():
    with pytest.raises(ValueError, match="where='random' needs seconds"):
        ops.decode_audio(where="random")
    with pytest.raises(TypeError, match="strict"):
        ops.decode_audio(strict=1)
    assert ops.decode_audio(2, strict=False) != ops.decode_audio(2)
    assert repr(ops.decode_audio(2, channels=1, strict=False)) == "decode_audio(seconds=2.0, channels=1, where='start', strict=False)"


def test_without_ffmpeg(tmp_path):
    code = (
        "import stoker\n"
        "try:\n"
        "    stoker.ops.decode_audio(1)\n"
        "except stoker.UnsupportedError as error:\n"
        "    print(error)\n"
    )
    env = {**__import__("os").environ, "STOKER_AV_MODULE": str(tmp_path / "none.so")}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert "STOKER_AV_MODULE" in out.stdout


def test_a_file_without_end(tmp_path):
    """A stream that was piped says nothing of its length."""
    path = tmp_path / "piped.mkv"
    path.write_bytes(ffmpeg("-f", "lavfi", "-i", "sine=440:d=2", "-c:a", "flac", "-f", "matroska", "-"))
    got, mask = sound([path], ops.decode_audio(1, where="middle"))
    assert got.shape == (1, 1, 44100) and mask.all()


def test_no_damage_does_more_than_fail_a_sample(tmp_path):
    rng = np.random.default_rng(7)
    paths = []
    for name in ("mp3.mp3", "flac.flac", "aac.m4a", "pcm.wav", "opus.webm"):
        data = tone(tmp_path / name, *ALL[name], seconds=0.6).read_bytes()
        for i in range(40):
            damaged = np.frombuffer(data, np.uint8)[: len(data) * i // 20 if i < 20 else len(data)].copy()
            if i >= 20:
                at = rng.integers(0, len(data) if i % 2 else 400, int(rng.choice([1, 3, 30])))
                damaged[at] ^= rng.integers(1, 256, len(at), np.uint8)
            paths.append(tmp_path / f"{i:02}.{name}")
            paths[-1].write_bytes(damaged.tobytes())
    for options in ({"where": "random"}, {"where": "start", "strict": False}):
        op = ops.decode_audio(0.3, sample_rate=16000, channels=1, **options)
        found, pipeline = run(source.List(paths), op, 1000, "skip")
        assert len(np.asarray(found[0].id)) + pipeline.stats()["failed"] == len(paths)
        assert np.isfinite(np.asarray(found[0].image)).all()


def test_one_channel_becomes_two(tmp_path):
    path = tone(tmp_path / "one.wav", channels=1)
    got, _ = sound([path], ops.decode_audio(1, channels=2))
    want = samples(path, "-af", "aformat=channel_layouts=stereo")
    assert np.array_equal(got[0].T, want[:44100]) and np.array_equal(got[0, 0], got[0, 1])
