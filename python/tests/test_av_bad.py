"""Bad input: an exception of the tree or a count, and never a crash or a silently shorter clip."""

from __future__ import annotations

import random

import numpy as np
import pytest

import stoker
from stoker import PipelineBuilder, ops, source
from stoker.io import (
    Decoder,
    Demuxer,
    convert_frames,
    decode_config,
    decode_packets,
    demux_audio,
    demux_config,
    demux_image,
    demux_video,
    load_image,
    load_video,
)

from av import ffmpeg, make, needs_ffmpeg, pixels, tone

pytestmark = needs_ffmpeg

SMALL = {
    "image.png": ["-frames:v", "1"],
    "image.bmp": ["-frames:v", "1"],
    "image.jpg": ["-frames:v", "1"],
    "image.gif": ["-frames:v", "1"],
    "image.webp": ["-frames:v", "1"],
    "video.mp4": ["-c:v", "mpeg4"],
    "video.avi": ["-c:v", "mpeg4"],
    "video.mkv": ["-c:v", "mpeg4"],
    "video.ts": ["-c:v", "mpeg2video"],
    "video.flv": ["-c:v", "flv1"],
}
SOUNDS = {"sound.wav": [], "sound.flac": [], "sound.ogg": ["-c:a", "libvorbis"], "sound.mp3": [], "sound.m4a": []}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bad")


def small(folder, name):
    path = folder / name
    if not path.exists() and name in SMALL:
        make(path, *SMALL[name], size="16x16", rate=5, seconds=0.8)
    elif not path.exists():
        tone(path, *SOUNDS[name], rate=8000, channels=1, seconds=0.05)
    return path.read_bytes()


QUICK = demux_config(timeout=20)
LIMITED = decode_config(max_pixels=1 << 16)


def attempt(data, audio, strict):
    packets = (demux_audio if audio else demux_video)(data, demux_config=QUICK)
    return decode_packets(packets, decode_config=LIMITED, strict=strict)


@pytest.mark.parametrize("name", [*SMALL, *SOUNDS])
def test_truncation_at_every_byte(folder, name):
    data = small(folder, name)
    audio = name in SOUNDS
    whole = len(attempt(data, audio, True))
    for n in range(len(data)):
        try:
            frames = attempt(data[:n], audio, False)
        except stoker.Error as error:
            assert str(error)
            continue
        assert len(frames) <= whole


@pytest.mark.parametrize("name", [*SMALL, *SOUNDS])
def test_flipped_bytes(folder, name):
    data = small(folder, name)
    rng = random.Random(name)
    for _ in range(150):
        bad = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        try:
            frames = attempt(bad, name in SOUNDS, False)
            if len(frames):
                convert_frames(frames)
        except stoker.Error as error:
            assert str(error)


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "avi"])
def test_a_file_without_its_end_says_so(tmp_path, suffix):
    options = ["-movflags", "faststart"] if suffix == "mp4" else []
    path = make(tmp_path / f"clip.{suffix}", "-c:v", "mpeg4", *options)
    data = path.read_bytes()
    half = data[: len(data) // 2]
    with pytest.raises(stoker.CorruptError):
        decode_packets(demux_video(half), strict=True)
    assert decode_packets(demux_video(half)).num_failed > 0


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 1000, bytes(100_000), b"<html></html>", b"%PDF-1.4"])
def test_no_media(data):
    for demux in (demux_audio, demux_video, demux_image):
        with pytest.raises(RuntimeError, match="Failed to open the input") as error:
            demux(data)
        assert isinstance(error.value, stoker.Error)


def test_sizes_that_change(tmp_path):
    parts = [make(tmp_path / f"{i}.ts", "-c:v", "mpeg2video", size=size, seconds=0.4) for i, size in enumerate(["64x48", "32x32"])]
    path = tmp_path / "both.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    frames = decode_packets(demux_video(path))
    sizes = {(frames[i].width, frames[i].height) for i in range(len(frames))}
    assert sizes == {(64, 48), (32, 32)}
    with pytest.raises(stoker.InvalidArgumentError, match="differ in size"):
        convert_frames(frames)
    scaled = load_video(path, filter_desc="scale=20:20,format=rgb24")
    assert scaled.shape[1:] == (20, 20, 3)
    assert scaled.shape[0] == len(decode_packets(demux_video(path), None))


def test_colours_that_change(tmp_path):
    """The matrix and the range from which RGB is made are those of each frame."""
    kinds = [("bt709", "tv"), ("smpte170m", "pc"), ("bt470bg", "tv")]
    parts = [
        make(tmp_path / f"{i}.h264", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-colorspace", space, "-color_range", full, seconds=0.4)
        for i, (space, full) in enumerate(kinds)
    ]
    path = tmp_path / "all.h264"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    found = np.asarray(convert_frames(decode_packets(demux_video(path), strict=True)))
    np.testing.assert_array_equal(found, np.concatenate([pixels(part) for part in parts]))


def test_no_timestamps(tmp_path):
    path = make(tmp_path / "raw.h264", "-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p")
    frames = decode_packets(demux_video(path), strict=True)
    np.testing.assert_array_equal(np.asarray(convert_frames(frames)), pixels(path))
    try:
        some = demux_video(path, timestamp=(0.5, 1))
    except stoker.UnsupportedError as error:
        assert "no times" in str(error)
    else:
        assert 0 < len(some) < 50


def test_negative_times(tmp_path):
    path = tone(tmp_path / "early.m4a", "-c:a", "aac")  # the encoder's delay comes first
    with Demuxer(path) as demuxer:
        every = demuxer.demux_audio()
        assert len(demuxer.demux_audio((-5, 50))) == len(every)
        assert len(demuxer.demux_audio((0, 50))) == len(every) - 1
        assert len(demuxer.demux_audio((-1, 0))) == 1


LOSING = {
    "h264.mkv": ["-c:v", "libx264", "-g", "10", "-bf", "2", "-pix_fmt", "yuv420p"],
    "h264.mp4": ["-c:v", "libx264", "-g", "10", "-bf", "2", "-pix_fmt", "yuv420p"],
    "mpeg2.mkv": ["-c:v", "mpeg2video", "-g", "10", "-bf", "0"],
    "mpeg4.mp4": ["-c:v", "mpeg4", "-g", "10"],
    "vp9.mkv": ["-c:v", "libvpx-vp9", "-g", "10"],
}


def lose(path, lost, *args):
    """The same video without some packets."""
    whole = make(path.with_stem("whole"), *args)
    ffmpeg("-i", whole, "-c", "copy", "-bsf:v", f"noise=drop={'+'.join(f'eq(n,{n})' for n in lost)}".replace(",", r"\,"), path)
    return path


@pytest.mark.parametrize("name", LOSING)
def test_a_first_key_frame_that_is_lost(tmp_path, name):
    packets = demux_video(lose(tmp_path / name, [0], *LOSING[name]))
    n = len(packets)
    frames = decode_packets(packets)
    assert len(frames) + frames.num_failed >= n - 9  # what is before the first key frame is no loss


CUT = {
    "mpeg2": ["-c:v", "mpeg2video", "-g", "10", "-bf", "2"],
    "h264": ["-c:v", "libx264", "-g", "10", "-bf", "2", "-pix_fmt", "yuv420p"],
    "fields": ["-c:v", "libx264", "-g", "10", "-flags", "+ildct+ilme", "-x264-params", "tff=1", "-pix_fmt", "yuv420p"],
}


@pytest.mark.parametrize("name", CUT)
def test_a_recording_that_begins_between_key_frames(tmp_path, name):
    """What refers to a key frame that was before it is no loss."""
    path = lose(tmp_path / "cut.ts", [0, 1, 2], *CUT[name])
    n = len(demux_video(path))
    frames = decode_packets(demux_video(path), strict=True)
    assert frames.num_failed == 0 and n - 9 <= len(frames) <= n
    assert len(decode_packets(demux_video(path))) == len(frames)
    for n, place in ((30, "start"), (8, "middle"), (8, "all")):
        builder = PipelineBuilder().add_source(source.List(video=[path], files=["video"])).pipe(ops.read())
        builder.pipe(ops.decode_video(n, where=place), on_error="skip")
        assert len(list(builder.batch(1).add_sink(1).build(num_threads=1))) == 1


def test_key_frames_that_are_lost(tmp_path, caplog):
    """FFmpeg leaves out what refers to them, and says nothing."""
    path = lose(tmp_path / "clip.mkv", [10, 20], *LOSING["h264.mkv"])
    frames = decode_packets(demux_video(path))
    assert 20 < len(frames) < 48 and len(frames) + frames.num_failed == 48
    assert f"{frames.num_failed} packets could not be decoded" in caplog.text
    for broken in (
        lambda: decode_packets(demux_video(path), strict=True),
        lambda: load_video(path, strict=True),
        lambda: load_video(path, (0.44, 0.8), strict=True),
        lambda: list(streamed(path, strict=True)),
    ):
        with pytest.raises(stoker.CorruptError, match="packets gave no picture|none of"):
            broken()
    assert load_video(path, (0, 0.36), strict=True).shape[0] == 9
    parts = list(streamed(path))
    assert sum(map(len, parts)) == len(frames)
    assert sum(part.num_failed for part in parts) == frames.num_failed


def streamed(path, strict=False):
    with Demuxer(path) as demuxer:
        decoder = Decoder(demuxer.video_codec, strict=strict)
        for packets in demuxer.streaming_demux(num_packets=5):
            yield from decoder.streaming_decode_packets(packets)
        yield from decoder.flush()


def test_clips_of_key_frames_that_are_lost(tmp_path):
    path = lose(tmp_path / "clip.mkv", [10, 20], *LOSING["h264.mkv"])
    for place, failed in (("start", 0), ("middle", 1)):
        builder = PipelineBuilder().add_source(source.List(video=[path], files=["video"])).pipe(ops.read())
        builder.pipe(ops.decode_video(5, size=(24, 32), where=place), on_error="skip")
        pipeline = builder.batch(1).add_sink(1).build(num_threads=1)
        assert len(list(pipeline)) == 1 - failed


def test_a_codec_that_is_not_there(tmp_path):
    path = make(tmp_path / "clip.avi", "-c:v", "mpeg4")
    data = path.read_bytes().replace(b"FMP4", b"QQQQ")
    with pytest.raises(stoker.Error, match="decoder"):
        decode_packets(demux_video(data))


def test_images_are_complete_or_errors(folder):
    data = small(folder, "image.png")
    for n in range(len(data) - 12):
        with pytest.raises(stoker.Error):
            load_image(data[:n])


def test_large_pictures_are_refused(tmp_path):
    path = tmp_path / "large.png"
    ffmpeg("-f", "lavfi", "-i", "color=s=2000x2000", "-frames:v", 1, path)
    assert load_image(path).shape == (2000, 2000, 3)
    with pytest.raises(stoker.Error):
        load_image(path, decode_config=decode_config(max_pixels=1_000_000))


def test_audio_that_is_video(folder):
    with pytest.raises(stoker.NotFoundError):
        demux_video(small(folder, "sound.wav"))
