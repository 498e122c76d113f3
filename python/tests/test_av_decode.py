"""Frames, compared with what the ffmpeg command decodes."""

from __future__ import annotations

import gc
import io
import logging
import re
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import stoker
from stoker.io import (
    AudioFrames,
    Decoder,
    Demuxer,
    ImageFrames,
    VideoFrames,
    convert_frames,
    decode_config,
    decode_packets,
    demux_audio,
    demux_image,
    demux_video,
    get_abuffer_desc,
    get_audio_filter_desc,
    get_buffer_desc,
    get_filter_desc,
    get_video_filter_desc,
    load_audio,
    load_image,
    load_video,
    sample_decode_video,
)

from av import VIDEOS, decodable, make, needs_ffmpeg, pixels, samples, tone

pytestmark = needs_ffmpeg

AUDIOS = {
    "pcm.wav": ["-c:a", "pcm_s16le"],
    "float.wav": ["-c:a", "pcm_f32le"],
    "flac.flac": ["-c:a", "flac"],
    "mp3.mp3": ["-c:a", "libmp3lame"],
    "aac.m4a": ["-c:a", "aac"],
    "vorbis.ogg": ["-c:a", "libvorbis"],
    "opus.webm": ["-c:a", "libopus", "-ar", "48000"],
    "alac.m4a": ["-c:a", "alac"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("decode")


def media(folder, name, maker, options):
    path = folder / name
    return path if path.exists() else maker(path, *options)


@pytest.fixture(scope="module", params=decodable(VIDEOS))
def video(folder, request):
    return media(folder, request.param, make, VIDEOS[request.param])


@pytest.fixture(scope="module", params=AUDIOS)
def audio(folder, request):
    return media(folder, request.param, tone, AUDIOS[request.param])


@pytest.fixture(scope="module")
def clip(folder):
    return media(folder, "h264.mp4", make, VIDEOS["h264.mp4"])


@pytest.fixture(scope="module")
def wav(folder):
    return media(folder, "pcm.wav", tone, AUDIOS["pcm.wav"])


def array(frames):
    return np.asarray(convert_frames(frames))


def test_video_is_what_the_command_decodes(video):
    frames = decode_packets(demux_video(video), strict=True)
    assert isinstance(frames, VideoFrames)
    assert frames.num_failed == 0
    np.testing.assert_array_equal(array(frames), pixels(video))


def test_video_windows(video):
    whole = decode_packets(demux_video(video))
    times = whole.get_timestamps()
    every = array(whole)
    with Demuxer(video) as demuxer:
        for start, end in [(1.0, 1.5), (0.52, 0.6), (0.8, 0.81), (1.7, 99), (0, 0.3), (0.39, 0.42), (1.92, 99), (1.96, 99)]:
            window = (times[0] + start - 1e-4, times[0] + end - 1e-4)
            inside = [window[0] <= t < window[1] for t in times]
            frames = decode_packets(demuxer.demux_video(window), strict=True)
            assert frames.get_timestamps() == [t for t in times if window[0] <= t < window[1]]
            if any(inside):
                np.testing.assert_array_equal(array(frames), every[inside])


def test_audio_is_what_the_command_decodes(audio):
    frames = decode_packets(demux_audio(audio), strict=True)
    assert isinstance(frames, AudioFrames)
    assert (frames.num_channels, frames.sample_fmt) == (2, "fltp")
    np.testing.assert_array_equal(array(frames), samples(audio).T)


@pytest.mark.parametrize("name", ["pcm.wav", "float.wav", "flac.flac", "alac.m4a"])
def test_audio_windows(folder, name):
    path = media(folder, name, tone, AUDIOS[name])
    every = samples(path).T
    for start, end in [(0.5, 1), (0, 0.1), (1.25, 1.5), (1.9, 5)]:
        frames = decode_packets(demux_audio(path, timestamp=(start, end)))
        expected = every[:, int(start * 44100) : int(end * 44100)]
        assert len(frames) == expected.shape[1]
        np.testing.assert_array_equal(array(frames), expected)


@pytest.mark.parametrize("name", ["mp3.mp3", "vorbis.ogg"])
def test_audio_windows_of_lossy_codecs(folder, name):
    path = media(folder, name, tone, AUDIOS[name])
    every = array(decode_packets(demux_audio(path)))
    frames = decode_packets(demux_audio(path, timestamp=(0.5, 1)))
    assert abs(len(frames) - 22050) <= 1
    found = array(frames)
    start = min(range(20000, 24000), key=lambda i: np.abs(every[:, i : i + 4000] - found[:, :4000]).max())
    assert np.abs(every[:, start : start + 20000] - found[:, :20000]).max() < 1e-3


@pytest.mark.parametrize("codec", ["adpcm_ms", "adpcm_ima_wav", "g722", "g726", "libmp3lame", "pcm_s24le", "pcm_mulaw"])
@pytest.mark.parametrize("suffix", ["wav", "w64"])
def test_audio_windows_of_codecs_in_wav(folder, codec, suffix):
    """Of what has no whole bytes a sample, the header of WAV tells an average only."""
    path = folder / f"{codec}.{suffix}"
    tone(path, "-c:a", codec, *(["-ar", 8000] if codec == "g726" else []), rate=16000, channels=1, seconds=5)
    windows_are_cut_out_of_the_whole(path)


@pytest.mark.parametrize("name, codec", [("ima.aiff", "adpcm_ima_qt"), ("g722.au", "g722"), ("pcm.aiff", "pcm_s16be")])
def test_audio_windows_of_codecs_in_other_headers(folder, name, codec):
    windows_are_cut_out_of_the_whole(tone(folder / name, "-c:a", codec, rate=16000, channels=1, seconds=5))


@pytest.mark.parametrize("codec", ["ac3", "libmp3lame", "mp2", "pcm_s16le", "adpcm_ms"])
def test_audio_windows_of_avi(folder, codec):
    """The times of AVI are multiples of a packet's length."""
    path = tone(folder / f"{codec}.avi", "-c:a", codec, rate=32000, channels=1, seconds=5)
    windows_are_cut_out_of_the_whole(path)


def windows_are_cut_out_of_the_whole(path):
    every = array(decode_packets(demux_audio(path)))
    for start, end in [(2, 2.1), (1.001, 1.5), (3.003, 9), (0, 0.5), (0.013, 0.02)]:
        frames = decode_packets(demux_audio(path, timestamp=(str(start), str(end))))
        expected = every[:, round(start * frames.sample_rate) : round(end * frames.sample_rate)]
        np.testing.assert_allclose(array(frames), expected, rtol=0, atol=1e-4, err_msg=f"[{start}, {end})")


VIDEO_FILTERS = {
    "scaled": dict(scale_width=40, scale_height=40),
    "covered": dict(scale_width=40, scale_height=40, scale_mode="crop"),
    "distorted": dict(scale_width=40, scale_height=40, scale_mode=None, scale_algo="bilinear"),
    "one side": dict(scale_width=32, scale_height=-2),
    "cropped": dict(crop_width=20, crop_height=10),
    "slower": dict(frame_rate=(10, 1)),
    "faster": dict(frame_rate=(50, 1)),
    "odd": dict(frame_rate=(30000, 1001)),
    "trimmed": dict(timestamp=(0.5, 1)),
    "short": dict(num_frames=7),
    "padded": dict(num_frames=60),
    "white": dict(num_frames=55, pad_mode="white"),
    "hflip": dict(filter_desc="hflip"),
    "all": dict(frame_rate=(12, 1), timestamp=(0.2, 1.5), scale_width=30, scale_height=40, crop_width=20,
                crop_height=20, num_frames=30, pad_mode="black", filter_desc="vflip"),
}  # fmt: skip


@pytest.mark.parametrize("name", VIDEO_FILTERS)
def test_video_filters_in_the_command(clip, name):
    desc = get_video_filter_desc(**VIDEO_FILTERS[name])
    found = array(decode_packets(demux_video(clip), desc))
    expected = pixels(clip, "-vf", desc, shape=found.shape[1:])
    np.testing.assert_array_equal(found, expected)


AUDIO_FILTERS = {
    "rate": dict(sample_rate=8000),
    "mono": dict(num_channels=1),
    "trimmed": dict(timestamp=(0.25, 0.5)),
    "short": dict(num_frames=1000),
    "padded": dict(num_frames=100_000),
    "quiet": dict(filter_desc="volume=0.5"),
    "all": dict(sample_rate=16000, num_channels=1, timestamp=(0.1, 1.5), num_frames=30_000, filter_desc="volume=2"),
}


@pytest.mark.parametrize("name", AUDIO_FILTERS)
def test_audio_filters_in_the_command(wav, name):
    desc = get_audio_filter_desc(**AUDIO_FILTERS[name])
    found = array(decode_packets(demux_audio(wav), desc))
    expected = samples(wav, "-af", desc, channels=found.shape[0])
    np.testing.assert_array_equal(found.T, expected)


TINY = [(5e-5, 1), (1e-7, 1), ("1/100000", 1), (0.1 * 3 - 0.3, 1), (-1e-7, 1), (-1e300, 1e300), (1 / 3, 2 / 3)]


@pytest.mark.parametrize("window", TINY)
def test_windows_of_any_size(clip, wav, window):
    """The filters, and the command, read them; and they cut where the window does."""
    start, end = (Fraction(time) for time in window)
    every = array(decode_packets(demux_audio(wav)))
    first, last = (min(10**9, max(0, round(time * 44100))) for time in (start, end))
    sound = array(decode_packets(demux_audio(wav, timestamp=window)))
    np.testing.assert_array_equal(sound, every[:, first:last])
    desc = get_audio_filter_desc(timestamp=window)
    np.testing.assert_array_equal(samples(wav, "-af", desc, channels=2), sound.T)
    desc = get_video_filter_desc(timestamp=window)
    picture = array(decode_packets(demux_video(clip), desc))
    np.testing.assert_array_equal(picture, pixels(clip, "-vf", desc, shape=picture.shape[1:]))


def test_texts_of_filters(clip, wav):
    assert get_video_filter_desc(pix_fmt=None) is None
    assert get_audio_filter_desc(sample_fmt=None) is None
    assert get_video_filter_desc() == "format=pix_fmts=rgb24"
    assert get_audio_filter_desc() == "aformat=sample_fmts=fltp"
    assert get_video_filter_desc(scale_width=64, scale_height=48, num_frames=10) == (
        "scale=w=64:h=48:flags=bicubic:force_original_aspect_ratio=decrease,pad=w=64:h=48:x=-1:y=-1:color=black,"
        "tpad=stop=-1:stop_mode=clone,trim=end_frame=10,format=pix_fmts=rgb24"
    )
    assert get_audio_filter_desc(
        sample_rate=8000, num_channels=1, sample_fmt="s16", timestamp=(0.1, 0.5), num_frames=100
    ) == (
        "aformat=channel_layouts=1c,aresample=8000,atrim=start=0.1:end=0.5,apad,atrim=end_sample=100,"
        "aformat=sample_fmts=s16"
    )
    video, audio = demux_video(clip), demux_audio(wav, timestamp=("1/2", 1))
    assert get_filter_desc(video) == "format=pix_fmts=rgb24"
    assert get_filter_desc(audio) == "atrim=start=0.5:end=1.0,aformat=sample_fmts=fltp"
    assert get_buffer_desc(video.codec) == (
        "buffer=video_size=64x48:pix_fmt=yuv420p:time_base=1/12800:pixel_aspect=1/1:frame_rate=25/1"
    )
    assert get_buffer_desc(video.codec, label="x", pix_fmt="rgb24").startswith("buffer@x=video_size=64x48:pix_fmt=rgb24")
    assert get_abuffer_desc(audio.codec, label="y").startswith("abuffer@y=time_base=1/44100:sample_rate=44100:")
    for bad in (dict(scale_width="1"), dict(num_frames=0), dict(pad_mode="red", num_frames=1), dict(timestamp=3)):
        with pytest.raises((TypeError, ValueError)):
            get_video_filter_desc(**bad)


def test_packets_are_consumed(clip):
    packets = demux_video(clip)
    kept = packets.clone()
    decode_packets(packets)
    for use in (len, repr, lambda p: p.clone(), lambda p: p.codec, lambda p: p.get_timestamps(), decode_packets):
        with pytest.raises(TypeError, match="consumed"):
            use(packets)
    assert len(decode_packets(kept)) == 50


def test_frames(clip):
    frames = decode_packets(demux_video(clip))
    assert (frames.num_frames, frames.width, frames.height, frames.pix_fmt) == (50, 64, 48, "rgb24")
    assert (frames.num_planes, frames.time_base, frames.frame_rate) == (1, (1, 12800), (25, 1))
    assert frames.get_pts() == [i * 512 for i in range(50)]
    one, some, chosen, none = frames[-1], frames[10:20:3], frames[[3, 1]], frames[5:5]
    assert isinstance(one, ImageFrames)
    assert one.pts == pytest.approx(49 / 25)
    assert one.metadata == {}
    assert some.get_pts() == [i * 512 for i in (10, 13, 16, 19)]
    assert chosen.get_pts() == [1536, 512]
    assert len(none) == 0
    for bad in (50, -51, [0, 50]):
        with pytest.raises(IndexError):
            frames[bad]
    clone = frames.clone()
    every = array(frames)
    with pytest.raises(TypeError, match="consumed"):
        len(frames)
    np.testing.assert_array_equal(array(one), every[-1])
    np.testing.assert_array_equal(array(some), every[10:20:3])
    np.testing.assert_array_equal(array(clone), every)


def numbers(text):
    """Numbers and ratios of what EXIF says, whatever is around them."""
    return [float(Fraction(part.replace(":", "/"))) for part in re.findall(r"[\d.]+(?:[:/]\d+)?", text)]


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
@pytest.mark.parametrize("filter_desc", [None, "hflip,format=pix_fmts=rgb24"])
def test_metadata_of_images(kind, filter_desc):
    """What EXIF says goes through filters and into copies."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x0112], exif[0x011A] = "Maker", "Model 1", 6, 72.5
    exif.get_ifd(0x8769).update({0x9003: "2026:01:02 03:04:05", 0x8827: 200})
    exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 51.0, 30.25)})
    file = io.BytesIO()
    Image.new("RGB", (30, 22)).save(file, kind, exif=exif)
    image = decode_packets(demux_image(file.getvalue()), filter_desc)
    assert isinstance(image, ImageFrames)
    assert (image.width, image.height) == (30, 22)  # as it is stored: nothing is turned
    # FFmpeg 8 says of which directory it is ("GPSInfo/GPSLatitude"), and keeps the orientation apart.
    found = {key.rpartition("/")[2]: value for key, value in image.metadata.items()}
    assert (found["Make"], found["Model"], found["GPSLatitudeRef"]) == ("Maker", "Model 1", "N")
    assert found["DateTimeOriginal"] == "2026:01:02 03:04:05"
    assert [numbers(found[key]) for key in ("XResolution", "GPSLatitude")] == [[72.5], [48, 51, 30.25]]
    if "GPSLatitude" in image.metadata:
        assert numbers(found["Orientation"]) == [6]
    assert image.clone().metadata == image.metadata
    image.metadata.clear()
    assert image.metadata["Make"] == "Maker"


def test_texts_of_images():
    """Those of PNG; and EXIF that is no UTF-8, or cut off."""
    text = PngInfo()
    text.add_text("Title", "of the picture")
    text.add_text("Long", "x" * 1000, zip=True)
    file = io.BytesIO()
    Image.new("RGB", (30, 22)).save(file, "PNG", pnginfo=text)
    found = decode_packets(demux_image(file.getvalue())).metadata
    assert found == {"Title": "of the picture", "Long": "x" * 1000}
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x010F] = b"caf\xe9"
    Image.new("RGB", (30, 22)).save(file, "JPEG", exif=exif)
    data = file.getvalue()
    assert decode_packets(demux_image(data)).metadata["Make"] == "caf\\xe9"
    damaged = data.replace(b"caf\xe9", b"caf")  # what follows has moved
    assert isinstance(decode_packets(demux_image(damaged)).metadata, dict)


def test_without_filters(clip, wav):
    frames = decode_packets(demux_video(clip), None)
    assert (frames.pix_fmt, frames.num_planes, len(frames)) == ("yuv420p", 3, 50)
    assert decode_packets(demux_audio(wav), None).sample_fmt == "s16"


@pytest.mark.parametrize("n", [1, 7, 50, 60])
def test_a_number_of_frames(clip, n):
    every = array(decode_packets(demux_video(clip)))
    np.testing.assert_array_equal(array(decode_packets(demux_video(clip), num_frames=n)), every[:n])


@pytest.mark.parametrize("desc", ["nosuch", "scale=nonsense=1", "[in", "scale,,hflip", "aresample=8000", "nullsink"])
def test_wrong_filters(clip, desc):
    with pytest.raises(ValueError, match="filters") as error:
        decode_packets(demux_video(clip), desc)
    assert isinstance(error.value, stoker.InvalidArgumentError)


def test_decoders(clip):
    with pytest.raises(stoker.UnsupportedError, match="nosuch"):
        decode_packets(demux_video(clip), decode_config=decode_config(decoder="nosuch"))
    with pytest.raises(stoker.InvalidArgumentError, match="no option 'nosuch'"):
        decode_packets(demux_video(clip), decode_config=decode_config(decoder_options={"nosuch": "1"}))
    with pytest.raises(stoker.InvalidArgumentError, match="not for"):
        decode_packets(demux_video(clip), decode_config=decode_config(decoder="aac"))
    with pytest.raises(stoker.Error):
        decode_packets(demux_video(clip), decode_config=decode_config(max_pixels=1000))
    every = array(decode_packets(demux_video(clip)))
    threads = decode_config(decoder="h264", decoder_options={"threads": "2"})
    np.testing.assert_array_equal(array(decode_packets(demux_video(clip), decode_config=threads)), every)


@pytest.mark.parametrize("desc", ["format=pix_fmts=rgb24", "null,format=pix_fmts=rgb24", None])
def test_a_limit_of_what_is_decoded(clip, desc):
    """By libswscale alone, by filters, and as it was decoded."""
    every = array(decode_packets(demux_video(clip), desc))
    for most, ends in ((every.nbytes, False), (every.nbytes - 1, True), (1, True)):
        config = decode_config(max_bytes=most)
        packets, picks = demux_video(clip), range(len(every))
        if not ends:
            np.testing.assert_array_equal(array(decode_packets(packets.clone(), desc, config)), every)
            assert len(sample_decode_video(packets, picks, filter_desc=desc, decode_config=config)) == len(every)
            continue
        for call in (
            lambda: decode_packets(packets.clone(), desc, config),
            lambda: sample_decode_video(packets, picks, filter_desc=desc, decode_config=config),
        ):
            with pytest.raises(stoker.LimitError, match=f"the limit is {most} bytes, max_bytes"):
                call()
    with Demuxer(clip) as demuxer:  # which gives parts
        decoder = Decoder(demuxer.video_codec, filter_desc=desc, decode_config=decode_config(max_bytes=1))
        frames = [len(f) for f in streamed(decoder, demuxer.streaming_demux(num_packets=7))]
    assert sum(frames) == len(every)


def test_a_limit_of_what_is_loaded(clip, wav):
    for load, path in ((load_video, clip), (load_image, clip), (load_audio, wav)):
        size = np.asarray(load(path)).nbytes
        assert np.asarray(load(path, decode_config=decode_config(max_bytes=size))).nbytes == size
        with pytest.raises(stoker.LimitError, match="max_bytes"):
            load(path, decode_config=decode_config(max_bytes=size - 1))
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="max_bytes"):
            decode_config(max_bytes=wrong)


def streamed(decoder, parts):
    for part in parts:
        yield from decoder.streaming_decode_packets(part)
    yield from decoder.flush()


@pytest.mark.parametrize("size", [0, 1, 4, 100])
def test_streaming_video(video, size):
    with Demuxer(video) as demuxer:
        decoder = Decoder(demuxer.video_codec)
        decoder.set_buffer_size(size)
        parts = list(streamed(decoder, demuxer.streaming_demux(num_packets=7)))
    assert all(0 < len(part) <= (size or 10**9) for part in parts)
    np.testing.assert_array_equal(np.concatenate([array(part) for part in parts]), pixels(video))


def test_streaming_audio(audio):
    with Demuxer(audio) as demuxer:
        decoder = Decoder(demuxer.audio_codec)
        parts = list(streamed(decoder, demuxer.streaming_demux(duration=0.3)))
    np.testing.assert_array_equal(np.concatenate([array(part) for part in parts], 1), samples(audio).T)


def test_a_decoder_begins_anew(clip):
    with Demuxer(clip) as demuxer:
        decoder = Decoder(demuxer.video_codec)
        first = [array(f) for f in streamed(decoder, [demuxer.demux_video()])]
        again = [array(f) for f in streamed(decoder, [demuxer.demux_video()])]
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(again))
    with pytest.raises(TypeError, match="codec"):
        Decoder(demux_image(clip).codec)


@pytest.fixture
def broken(tmp_path):
    """Of ten pictures the third and the sixth are damaged."""
    path = make(tmp_path / "broken.mov", "-c:v", "png", seconds=0.4)
    data = bytearray(path.read_bytes())
    starts = [i for i in range(len(data)) if data[i : i + 8] == b"\x89PNG\r\n\x1a\n"]
    assert len(starts) == 10
    for i in (2, 5):
        data[starts[i] : starts[i] + 30] = bytes(30)
    path.write_bytes(data)
    return path


def test_damaged_packets_are_counted(broken, caplog):
    with caplog.at_level(logging.WARNING, "stoker.io"):
        frames = decode_packets(demux_video(broken))
    assert (len(frames), frames.num_failed) == (8, 2)
    assert "2 packets could not be decoded" in caplog.text
    assert frames.get_timestamps() == pytest.approx([i / 25 for i in (0, 1, 3, 4, 6, 7, 8, 9)])
    with pytest.raises(stoker.CorruptError, match="packet 2 cannot be decoded"):
        decode_packets(demux_video(broken), strict=True)


def test_damaged_packets_of_a_stream_are_counted(broken, caplog):
    with Demuxer(broken) as demuxer, caplog.at_level(logging.WARNING, "stoker.io"):
        decoder = Decoder(demuxer.video_codec)
        parts = list(streamed(decoder, demuxer.streaming_demux(num_packets=4)))
    assert sum(map(len, parts)) == 8
    assert caplog.text.count("1 packets could not be decoded") == 2
    assert parts[-1].num_failed == 2


def test_nothing_that_can_be_decoded(broken):
    packets = demux_video(broken, timestamp=("2/25", "3/25"))
    with pytest.raises(stoker.CorruptError, match="none of 1 packets could be decoded"):
        decode_packets(packets)


def test_frames_outlive_what_they_came_from(clip):
    packets = demux_video(clip.read_bytes())
    frames = decode_packets(packets)
    part = frames[3:5]
    del packets, frames
    gc.collect()
    assert array(part).shape == (2, 48, 64, 3)


def test_types():
    with pytest.raises(TypeError):
        decode_packets(b"packets")  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        VideoFrames()
