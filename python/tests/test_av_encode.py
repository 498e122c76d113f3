"""Encoders and muxers: what they write, the ffmpeg command and our own decoders read."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

import stoker
from stoker.io import (
    AudioEncoder,
    Muxer,
    VideoEncoder,
    audio_encode_config,
    convert_frames,
    decode_packets,
    demux_video,
    load_audio,
    load_video,
    video_encode_config,
)

from av import ffmpeg, make, needs, needs_ffmpeg, pixels, samples
from encoding import HEIGHT, RATE, WIDTH, audio, clip, coded, encode, of, sound, video
from support import at_once

pytestmark = needs_ffmpeg

# --- video ---


@pytest.mark.parametrize(
    ("name", "encoder", "pix_fmt", "options"),
    [
        ("a.avi", "rawvideo", "bgr24", {}),
        ("a.mkv", "ffv1", "yuv420p", {}),
        ("a.mkv", "ffv1", "yuv444p", {}),
        coded("a.mkv", "libx264", "yuv420p", {"qp": "0"}),
        coded("a.mp4", "libx264", "yuv444p", {"qp": "0"}),
        coded("a.mkv", "libx264rgb", "rgb24", {"qp": "0"}),
        ("a.mov", "png", "rgb24", {}),
        ("a.mov", "png", "gray", {}),
    ],
)
def test_lossless_video(tmp_path, name, encoder, pix_fmt, options):
    array = clip(pix_fmt=pix_fmt)
    path = encode(tmp_path / name, [(video(pix_fmt), array, {"encoder": encoder, "encoder_config": options})])
    raw = pixels(path, pix_fmt=pix_fmt, shape=array.shape[1:])
    np.testing.assert_array_equal(raw, array)
    ours = np.asarray(load_video(path, filter_desc=f"format=pix_fmts={pix_fmt}"))
    np.testing.assert_array_equal(ours.reshape(array.shape), array)
    times = demux_video(path).get_timestamps()
    assert len(times) == len(array)
    np.testing.assert_allclose(np.diff(times), 1 / RATE, atol=2e-3)


@pytest.mark.parametrize(
    ("name", "encoder", "pix_fmt", "options"),
    [
        ("a.mp4", None, "yuv420p", {}),
        coded("a.mp4", "libx264", "yuv420p", {"bit_rate": 2_000_000, "max_b_frames": 2, "gop_size": 10}),
        ("a.mp4", "mpeg4", "yuv420p", {"qscale": 2}),
        ("a.avi", "mpeg4", "yuv420p", {"bit_rate": 4_000_000, "max_b_frames": 1}),
        ("a.mkv", "mjpeg", "yuvj420p", {"qscale": 2}),
        ("a.ts", "mpeg2video", "yuv420p", {"qscale": 2}),
    ],
)
def test_lossy_video(tmp_path, name, encoder, pix_fmt, options):
    array = clip(pix_fmt="yuv420p")
    path = encode(tmp_path / name, [(video(pix_fmt, **options), array, {"encoder": encoder})])
    raw = pixels(path, pix_fmt=pix_fmt, shape=array.shape[1:])
    assert raw.shape == array.shape
    assert np.abs(raw.astype(int) - array).mean() < 4


def test_options_reach_the_encoder(tmp_path):
    noise = np.random.default_rng(1).integers(0, 256, (60, 1, 72, 64), np.uint8)

    def size(array, **options):
        return os.path.getsize(encode(tmp_path / "a.avi", [(video("yuv420p", **options), array, {"encoder": "mpeg4"})]))

    assert size(noise, qscale=2) > size(noise, qscale=31)
    assert size(noise, bit_rate=2_000_000) > size(noise, bit_rate=100_000)
    smooth = clip(60, "yuv420p")
    assert size(smooth, qscale=5, gop_size=1) > size(smooth, qscale=5, gop_size=50)
    packed = [
        os.path.getsize(encode(tmp_path / "a.mov", [(video(compression_level=level), clip(), {"encoder": "png"})]))
        for level in (0, 9)
    ]
    assert packed[0] > packed[1]


@needs("encoders", "libx264")
def test_key_frames_and_b_frames(tmp_path):
    config = video("yuv420p", gop_size=5, max_b_frames=0)
    path = encode(tmp_path / "a.mp4", [(config, clip(20, "yuv420p"), {"encoder": "libx264", "encoder_config": {"sc_threshold": "0"}})])
    flags = ffmpeg("-i", path, "-c", "copy", "-f", "framecrc", "-").decode()
    lines = [line for line in flags.splitlines() if line.startswith("0,")]
    assert sum("F=0x0" not in line for line in lines) == 4
    packets = demux_video(path)
    assert packets.get_timestamps(raw=True) == packets.get_timestamps()  # without B-frames, in order


@needs("encoders", "libx264")
def test_colors_are_in_the_file(tmp_path):
    config = video("yuv420p", colorspace="bt709", color_primaries="bt709", color_trc="bt709")
    path = encode(tmp_path / "a.mp4", [(config, clip(5, "yuv420p"), {"encoder": "libx264"})])
    codec = demux_video(path).codec
    assert (codec.colorspace, codec.color_primaries, codec.color_trc) == ("bt709",) * 3


def test_decoded_frames_are_encoded_again(tmp_path):
    source = make(tmp_path / "in.mp4", "-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p")
    frames = decode_packets(demux_video(source), filter_desc=None)
    expected = np.asarray(convert_frames(frames.clone()))
    muxer = Muxer(tmp_path / "out.mkv")
    encoder = muxer.add_encode_stream(video("yuv420p"), encoder="ffv1")
    with muxer.open():
        muxer.write(0, encoder.encode(frames))
        assert encoder.flush() is None
    np.testing.assert_array_equal(np.asarray(load_video(tmp_path / "out.mkv", filter_desc=None)), expected)


def test_packets_can_be_decoded_at_once():
    config = video("yuv420p")
    encoder = Muxer("never.mp4").add_encode_stream(config, encoder="mpeg4")
    assert encoder.codec.width == WIDTH
    packets = encoder.encode(of(clip(30, "yuv420p"), config))
    assert packets.codec.name == "mpeg4"
    assert len(decode_packets(packets, filter_desc=None)) == 30


def test_one_image_after_another(tmp_path):
    config = video()
    muxer = Muxer(tmp_path / "frame%02d.png")
    encoder = muxer.add_encode_stream(config)
    array = clip(3)
    frames = of(array, config)
    with muxer.open({"start_number": "5"}):
        for i in range(3):
            muxer.write(0, encoder.encode(frames[i]))
    assert sorted(os.listdir(tmp_path)) == ["frame05.png", "frame06.png", "frame07.png"]
    np.testing.assert_array_equal(pixels(tmp_path / "frame06.png")[0], array[1])


# --- audio ---


@pytest.mark.parametrize(
    ("name", "encoder", "sample_fmt", "kind"),
    [
        ("a.wav", None, "s16", ("s16le", np.int16)),
        ("a.wav", "pcm_s16le", "s16", ("s16le", np.int16)),
        ("a.wav", "pcm_f32le", "flt", ("f32le", np.float32)),
        ("a.flac", None, "s16", ("s16le", np.int16)),
        ("a.mka", "flac", "s32", ("s32le", np.int32)),
    ],
)
@pytest.mark.parametrize("channels", [1, 2])
def test_lossless_audio(tmp_path, name, encoder, sample_fmt, kind, channels):
    array = sound(channels=channels, sample_fmt=sample_fmt)
    path = encode(tmp_path / name, [(audio(sample_fmt, channels), array, {"encoder": encoder})])
    np.testing.assert_array_equal(samples(path, channels=channels, kind=kind[0], dtype=kind[1]), array)
    np.testing.assert_array_equal(np.asarray(load_audio(path, filter_desc=f"aformat=sample_fmts={sample_fmt}")), array)


@pytest.mark.parametrize(
    ("name", "encoder", "sample_fmt"), [("a.m4a", None, "fltp"), coded("a.mp3", "libmp3lame", "fltp"), coded("a.ogg", "libvorbis", "fltp")]
)
def test_lossy_audio(tmp_path, name, encoder, sample_fmt):
    array = sound(44100)
    path = encode(tmp_path / name, [(audio(sample_fmt, bit_rate=192_000), array, {"encoder": encoder})])
    raw = samples(path)
    assert abs(len(raw) - 44100) <= 1200  # priming and padding, where the file does not say
    middle = slice(10_000, 30_000)
    assert np.abs(raw[middle] - array.T[middle]).mean() < 0.02


def test_frames_of_any_length(tmp_path):
    """Encoders that want 1024 samples get 1024."""
    config = audio(rate=8000, channels=1)
    array = sound(10_000, 1)
    muxer = Muxer(tmp_path / "a.m4a")
    encoder = muxer.add_encode_stream(config)
    assert isinstance(encoder, AudioEncoder)
    assert encoder.frame_size == 1024
    count = 0
    for at, n in ((0, 1), (1, 1023), (1024, 5000), (6024, 3), (6027, 3973)):
        packets = encoder.encode(of(array[:, at : at + n], config, at))
        count += 0 if packets is None else len(packets)
    last = encoder.flush()
    assert count + len(last) == -(-10_000 // 1024) + 1  # and one for what the codec looks ahead
    assert encoder.codec.name == "aac"
    assert Muxer("x.wav").add_encode_stream(audio("s16")).frame_size == 0


def test_packets_of_an_encoder_are_decoded():
    config = audio("s16")
    encoder = Muxer("never.flac").add_encode_stream(config)
    array = sound(10_000, sample_fmt="s16")
    decoded = []
    for packets in (encoder.encode(of(array, config)), encoder.flush()):
        frames = decode_packets(packets, filter_desc=None, strict=True)
        decoded.append(np.asarray(convert_frames(frames)))
    np.testing.assert_array_equal(np.concatenate(decoded), array)


# --- several streams ---


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_sound_and_pictures(tmp_path, name):
    pictures, noise = clip(50, "yuv420p"), sound(88200)
    path = encode(
        tmp_path / name,
        [(video("yuv420p"), pictures, {"encoder": "mpeg4"}), (audio(), noise, {"encoder": "aac"})],
    )
    assert np.asarray(load_video(path)).shape == (50, HEIGHT, WIDTH, 3)
    assert abs(np.asarray(load_audio(path)).shape[1] - 88200) <= 2048
    duration = ffmpeg("-i", path, "-c", "copy", "-f", "framecrc", "-").decode()
    streams = [line.split(",")[0] for line in duration.splitlines() if line[:1].isdigit()]
    assert streams.index("1") < 20  # interleaved


def test_muxer_options(tmp_path):
    array = clip(20, "yuv420p")
    streams = [(video("yuv420p"), array, {"encoder": "mpeg4"})]
    data = encode(tmp_path / "a.mp4", streams, muxer_config={"movflags": "+faststart"}).read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    assert encode(tmp_path / "b.bin", streams, format="matroska").read_bytes().startswith(b"\x1a\x45\xdf\xa3")


def test_names_that_look_like_addresses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encode("tcp:x.avi", [(video("bgr24"), clip(2, "bgr24"), {"encoder": "rawvideo"})])
    assert os.listdir(tmp_path) == ["tcp:x.avi"]


def test_flush_writes_what_waits(tmp_path):
    path = tmp_path / "a.wav"
    config = audio("s16")
    muxer = Muxer(path)
    encoder = muxer.add_encode_stream(config)
    with muxer.open():
        muxer.write(0, encoder.encode(of(sound(50_000, sample_fmt="s16"), config)))
        muxer.flush()
        assert path.stat().st_size >= 200_000


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("name", "config", "options", "text"),
    [
        ("a.mp4", video(), {"encoder": "mpeg4"}, "'mpeg4' does not take the pixel format 'rgb24': it takes yuv420p$"),
        ("a.jpg", video(), {}, "'mjpeg' does not take the pixel format 'rgb24': it takes yuvj420p, "),
        ("a.wav", audio(), {}, "'pcm_s16le' does not take the sample format 'fltp': it takes s16"),
        ("a.mp2", audio("s16", rate=12345), {"encoder": "mp2"}, "sample rate '12345': it takes 44100, 48000"),
        ("a.mp4", video(), {"encoder": "nonsense"}, "no encoder of the name 'nonsense'"),
        ("a.wav", video(), {}, "'wav' has no video"),
        ("a.png", audio(), {}, "has no audio"),
        ("a.flv", video("yuv420p"), {"encoder": "ffv1"}, "'flv' cannot hold ffv1"),
    ],
)
def test_what_an_encoder_does_not_take(name, config, options, text):
    with pytest.raises(stoker.UnsupportedError, match=text):
        Muxer(name).add_encode_stream(config, **options)


@pytest.mark.parametrize(
    ("config", "options", "text"),
    [
        (video("yuv420q"), {"encoder": "mpeg4"}, "no pixel format 'yuv420q'"),
        (audio("fltq"), {"encoder": "aac"}, "no sample format 'fltq'"),
        (video("yuv420p"), {"encoder": "aac"}, "'aac' is not for video"),
        (video("yuv420p"), {"encoder": "mpeg4", "encoder_config": {"foo": "bar"}}, "no option 'foo'"),
        (video("yuv420p", colorspace="bt7"), {"encoder": "mpeg4"}, "no colorspace 'bt7'"),
        (video("yuv420p"), {"encoder": "ffv1", "encoder_config": {"coder": "fast"}}, "cannot be opened.*coder"),
    ],
)
def test_wrong_configurations(config, options, text):
    with pytest.raises(stoker.InvalidArgumentError, match=text):
        Muxer("a.mkv").add_encode_stream(config, **options)


def test_frames_of_another_kind():
    config = video("yuv420p")
    encoder = Muxer("a.mkv").add_encode_stream(config, encoder="ffv1")
    array = clip(5, "yuv420p")
    with pytest.raises(ValueError, match="made for frames in yuv420p, 64x48, not in rgb24, 64x48"):
        encoder.encode(of(clip(5), video()))
    with pytest.raises(ValueError, match="not in yuv420p, 64x32"):
        encoder.encode(of(np.ascontiguousarray(array[:, :, :48]), config))
    with pytest.raises(TypeError, match="expected VideoFrames"):
        encoder.encode(of(sound(), audio()))
    assert len(encoder.encode(of(array, config))) == 5  # none of these has harmed it
    with pytest.raises(ValueError, match=r"frame at 0.08 s does not come after"):
        encoder.encode(of(array, config, 2))
    with pytest.raises(ValueError, match="an earlier call failed"):
        encoder.encode(of(array, config, 20))
    speaker = Muxer("a.wav").add_encode_stream(audio("s16"))
    with pytest.raises(ValueError, match="made for 2 channels of s16 at 44100 Hz, not 1 of s16 at 44100 Hz"):
        speaker.encode(of(sound(100, 1, "s16"), audio("s16")))


def test_frames_are_consumed():
    config = video("yuv420p")
    encoder = Muxer("a.mkv").add_encode_stream(config, encoder="ffv1")
    frames = of(clip(5, "yuv420p"), config)
    packets = encoder.encode(frames)
    with pytest.raises(TypeError, match="consumed"):
        len(frames)
    assert len(packets) == 5
    assert encoder.flush() is None
    with pytest.raises(ValueError, match="flushed"):
        encoder.encode(of(clip(5, "yuv420p"), config, 5))


def test_order_of_calls(tmp_path):
    config = video("yuv420p")
    muxer = Muxer(tmp_path / "a.mkv")
    with pytest.raises(ValueError, match="add a stream"):
        muxer.open()
    encoder = muxer.add_encode_stream(config, encoder="ffv1")
    packets = encoder.encode(of(clip(5, "yuv420p"), config))
    with pytest.raises(ValueError, match="not opened"):
        muxer.write(0, packets)
    assert os.listdir(tmp_path) == []
    with muxer.open() as same:
        assert same is muxer
        with pytest.raises(ValueError, match="opened before"):
            muxer.open()
        with pytest.raises(ValueError, match="before the muxer is opened"):
            muxer.add_encode_stream(config, encoder="ffv1")
        with pytest.raises(ValueError, match="no stream 1, of 1"):
            muxer.write(1, packets)
        with pytest.raises(TypeError):
            muxer.write(0, None)
        muxer.write(0, packets)
        assert len(packets) == 5  # still there
    muxer.close()
    with pytest.raises(ValueError, match="was closed"):
        muxer.write(0, packets)
    with pytest.raises(ValueError, match="was closed"):
        muxer.flush()
    assert len(demux_video(tmp_path / "a.mkv")) == 5


def test_files_that_cannot_be_made(tmp_path):
    with pytest.raises(ValueError, match="no format goes by that ending"):
        Muxer(tmp_path / "a.nonsense")
    with pytest.raises(stoker.UnsupportedError, match="no muxer 'nonsense'"):
        Muxer(tmp_path / "a.mp4", format="nonsense")
    with pytest.raises(ValueError, match="null character"):
        Muxer("a\0.mp4")
    muxer = Muxer(tmp_path / "missing" / "a.mkv")
    muxer.add_encode_stream(video("yuv420p"), encoder="ffv1")
    with pytest.raises(FileNotFoundError, match="Failed to open the output"):
        muxer.open()
    muxer = Muxer(tmp_path / "a.mkv")
    muxer.add_encode_stream(video("yuv420p"), encoder="ffv1")
    with pytest.raises(ValueError, match="'matroska' has no option 'foo'"):
        muxer.open({"foo": "bar"})


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_disk_that_is_full():
    config = audio("s16")
    muxer = Muxer("/dev/full", format="wav")
    encoder = muxer.add_encode_stream(config)
    with pytest.raises(OSError, match="No space left"), muxer.open():
        muxer.write(0, encoder.encode(of(sound(100, sample_fmt="s16"), config)))
    muxer.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_the_first_error_is_the_one(tmp_path):
    config = audio("s16")
    muxer = Muxer("/dev/full", format="wav")
    encoder = muxer.add_encode_stream(config)
    with pytest.raises(KeyError) as error, muxer.open():
        muxer.write(0, encoder.encode(of(sound(100, sample_fmt="s16"), config)))
        raise KeyError("mine")
    assert "could not be closed" in error.value.__notes__[0]


def test_a_file_that_is_not_closed(tmp_path):
    config = video("yuv420p")
    muxer = Muxer(tmp_path / "a.mkv")
    muxer.add_encode_stream(config, encoder="ffv1")
    muxer.open()
    with pytest.warns(ResourceWarning, match="not closed"):
        del muxer
        gc.collect()


def test_types_of_arguments():
    with pytest.raises(TypeError, match="config"):
        Muxer("a.mkv").add_encode_stream({"width": 3})
    with pytest.raises(TypeError, match="encoder_config"):
        Muxer("a.mkv").add_encode_stream(video("yuv420p"), encoder_config="x")
    with pytest.raises(TypeError):
        AudioEncoder()
    with pytest.raises(TypeError):
        video_encode_config(48, 64, 25)
    for wrong in ({"width": 0}, {"height": -1}, {"frame_rate": 0}, {"bit_rate": -2}, {"width": 2**31}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            video_encode_config(**{"height": 4, "width": 4, "frame_rate": 25, **wrong})
    assert video("yuv420p") == video("yuv420p") != video("rgb24")
    assert audio().sample_fmt == "fltp"
    assert video().frame_rate == video_encode_config(height=4, width=4).frame_rate == (25, 1)


# --- threads ---


def test_an_encoder_and_a_muxer_in_many_threads(tmp_path):
    config = audio("s16")
    muxer = Muxer(tmp_path / "a.wav")
    encoder = muxer.add_encode_stream(config)
    array = sound(2000, sample_fmt="s16")
    lock, made = threading.Lock(), []

    def work():
        for _ in range(50):
            try:
                packets = encoder.encode(of(array, config))
                muxer.write(0, packets)
            except stoker.BusyError:
                continue
            except ValueError as error:
                assert "monoton" in str(error)  # another thread wrote later packets
            with lock:
                made.append(1)

    with muxer.open():
        at_once(*[work] * 4)
    assert made
