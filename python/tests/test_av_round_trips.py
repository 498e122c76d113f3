"""Round trips: what each encoder makes, our muxer writes, our demuxer reads, and our decoder gives back.

Those that this FFmpeg was built without are named by one test that is skipped.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from stoker.io import (
    FilterGraph,
    Muxer,
    convert_frames,
    create_reference_video_frame,
    decode_packets,
    demux_audio,
    demux_image,
    demux_video,
    load_image,
    video_encode_config,
)

from av import MISSING, VIDEOS, listed, needs_ffmpeg
from encoding import HEIGHT, RATE, WIDTH, audio, clip, encode

pytestmark = needs_ffmpeg

EXACT = 0  # a tolerance: bit for bit, in the format that was encoded
TRY = {"strict": "experimental"}
X265 = {"x265-params": "log-level=0:crf=15"}
X265_LOSSLESS = {"x265-params": "log-level=0:lossless=1"}

# Ending, encoder, pixel format, tolerance (the mean difference of components as RGB of 8 bits), options.
VIDEO = [
    ("mp4", "libx264", "yuv420p", EXACT, {"qp": "0"}),
    ("mkv", "libx264", "yuv420p10le", EXACT, {"qp": "0"}),
    ("mp4", "libx264", "yuv420p", 4, {"crf": "15"}),
    ("mkv", "libx264rgb", "rgb24", EXACT, {"qp": "0"}),
    ("mp4", "libx265", "yuv420p", EXACT, X265_LOSSLESS),
    ("mkv", "libx265", "yuv444p", EXACT, X265_LOSSLESS),
    ("mov", "libx265", "yuv420p10le", EXACT, X265_LOSSLESS),
    ("ts", "libx265", "yuv420p", 4, X265),
    ("webm", "libvpx-vp9", "yuv420p", EXACT, {"lossless": "1", "cpu-used": "8"}),
    ("mp4", "libvpx-vp9", "yuv444p", EXACT, {"lossless": "1", "cpu-used": "8"}),
    ("webm", "libvpx-vp9", "yuv420p10le", 4, {"crf": "10", "cpu-used": "8"}),
    ("webm", "libvpx", "yuv420p", 4, {"crf": "4", "b": "2M", "cpu-used": "8"}),
    ("mkv", "libaom-av1", "yuv420p", EXACT, {"aom-params": "lossless=1", "cpu-used": "8"}),
    ("mp4", "libaom-av1", "yuv420p10le", 4, {"crf": "10", "cpu-used": "8"}),
    ("mkv", "librav1e", "yuv420p", 4, {"qp": "30", "speed": "10"}),
    ("webm", "libsvtav1", "yuv420p", 4, {"crf": "10", "preset": "12"}),
    ("mov", "prores", "yuv422p10le", 3, {}),
    ("mov", "prores_aw", "yuv444p10le", 3, {}),
    ("mkv", "prores_ks", "yuv422p10le", 3, {"profile": "hq"}),
    ("gif", "gif", "bgr8", EXACT, {}),
    ("apng", "apng", "rgb24", EXACT, {}),
    ("apng", "apng", "rgba", EXACT, {}),
    ("apng", "apng", "gray16be", EXACT, {}),
    ("mov", "png", "rgba", EXACT, {}),
    ("mkv", "png", "rgb48be", EXACT, {}),
    ("mkv", "ffv1", "yuv422p10le", EXACT, {}),
    ("avi", "ffv1", "bgra", EXACT, {}),
    ("nut", "ffv1", "gray16le", EXACT, {"level": "3"}),
    ("avi", "ffvhuff", "yuv420p", EXACT, {}),
    ("avi", "huffyuv", "yuv422p", EXACT, {}),
    ("avi", "utvideo", "gbrp", EXACT, {}),
    ("avi", "magicyuv", "yuv444p", EXACT, {}),
    ("mov", "qtrle", "rgb24", EXACT, {}),
    ("avi", "zlib", "bgr24", EXACT, {}),
    ("flv", "flashsv", "bgr24", EXACT, {}),
    ("mov", "v210", "yuv422p10le", EXACT, {}),
    ("mov", "r210", "gbrp10le", EXACT, {}),
    ("avi", "rawvideo", "yuv420p", EXACT, {}),
    ("nut", "rawvideo", "nv12", EXACT, {}),
    ("mov", "rawvideo", "yuyv422", EXACT, {}),
    ("mov", "mjpeg", "yuvj420p", 4, {}),
    ("mkv", "mjpeg", "yuvj444p", 4, {}),
    ("mpg", "mpeg1video", "yuv420p", 4, {}),
    ("ts", "mpeg2video", "yuv422p", 4, {}),
    ("mp4", "mpeg4", "yuv420p", 4, {}),
    ("avi", "libxvid", "yuv420p", 8, {}),
    ("avi", "msmpeg4", "yuv420p", 4, {}),
    ("avi", "msmpeg4v2", "yuv420p", 4, {}),
    ("asf", "wmv1", "yuv420p", 4, {}),
    ("asf", "wmv2", "yuv420p", 4, {}),
    ("flv", "flv", "yuv420p", 4, {}),
    ("avi", "h263", "yuv420p", 6, {}),
    ("avi", "h263p", "yuv420p", 6, {}),
    ("ogv", "libtheora", "yuv420p", 4, {}),
    ("mkv", "snow", "yuv420p", 4, TRY),
    ("mov", "jpeg2000", "yuv420p", 4, {}),
    ("mov", "dnxhd", "yuv422p", 6, {"profile": "dnxhr_hq"}),
    ("avi", "cfhd", "yuv422p10le", 4, {}),
    ("avi", "asv2", "yuv420p", 6, {}),
]

IMAGES = [
    ("png", "png", "rgb24", EXACT, {}),
    ("png", "png", "gray16be", EXACT, {}),
    ("png", "png", "pal8", EXACT, {}),
    ("jpg", "mjpeg", "yuvj444p", 4, {}),
    ("jpg", "ljpeg", "bgr24", EXACT, TRY),
    ("jls", "jpegls", "rgb24", EXACT, {}),
    ("jp2", "jpeg2000", "rgb24", EXACT, {"pred": "dwt53"}),
    ("j2k", "jpeg2000", "gray", 4, {}),
    ("jp2", "libopenjpeg", "rgb24", EXACT, {}),
    ("jxl", "libjxl", "rgb24", EXACT, {"distance": "0"}),
    ("jxl", "libjxl", "rgb24", 4, {"distance": "1"}),
    ("webp", "libwebp", "bgra", EXACT, {"lossless": "1"}),
    ("webp", "libwebp", "yuv420p", 4, {"quality": "95"}),
    ("avif", "libaom-av1", "yuv420p", 4, {"still-picture": "1", "cpu-used": "8"}),
    ("gif", "gif", "bgr8", EXACT, {}),
    ("bmp", "bmp", "bgra", EXACT, {}),
    ("tif", "tiff", "gray", EXACT, {"compression_algo": "packbits"}),
    ("tiff", "tiff", "rgb24", EXACT, {"compression_algo": "lzw"}),
    ("tiff", "tiff", "rgba64le", EXACT, {"compression_algo": "deflate"}),
    ("ppm", "ppm", "rgb48be", EXACT, {}),
    ("pgm", "pgm", "gray16be", EXACT, {}),
    ("pam", "pam", "rgba", EXACT, {}),
    ("pfm", "pfm", "gbrpf32le", EXACT, {}),
    ("qoi", "qoi", "rgba", EXACT, {}),
    ("tga", "targa", "bgra", EXACT, {}),
    ("dpx", "dpx", "gbrp10le", EXACT, {}),
    ("exr", "exr", "gbrpf32le", EXACT, {}),
    ("pcx", "pcx", "rgb24", EXACT, {}),
    ("sgi", "sgi", "rgba64be", EXACT, {}),
    ("sun", "sunrast", "bgr24", EXACT, {}),
    ("xwd", "xwd", "bgra", EXACT, {}),
    ("fits", "fits", "gbrp16be", EXACT, {}),
]

# Ending, encoder, sample format, rate, channels, tolerance (the mean difference, against the mean of the
# sound), how many samples it may come too late or lose at its start, where the file does not say, options.
SOUNDS = [
    ("wav", "pcm_u8", "u8", 44100, 2, EXACT, 0, {}),
    ("wav", "pcm_s16le", "s16", 44100, 2, EXACT, 0, {}),
    ("wav", "pcm_s24le", "s32", 44100, 2, EXACT, 0, {}),
    ("wav", "pcm_s32le", "s32", 44100, 2, EXACT, 0, {}),
    ("wav", "pcm_s64le", "s64", 44100, 2, EXACT, 0, {}),
    ("wav", "pcm_f32le", "flt", 44100, 2, EXACT, 0, {}),
    ("mkv", "pcm_f64le", "dbl", 44100, 2, EXACT, 0, {}),
    ("aiff", "pcm_s16be", "s16", 44100, 2, EXACT, 0, {}),
    ("aiff", "pcm_s24be", "s32", 44100, 2, EXACT, 0, {}),
    ("caf", "pcm_s32be", "s32", 44100, 2, EXACT, 0, {}),
    ("aiff", "pcm_f32be", "flt", 44100, 2, EXACT, 0, {}),
    ("aiff", "pcm_f64be", "dbl", 44100, 2, EXACT, 0, {}),
    ("nut", "pcm_s8", "u8", 44100, 2, EXACT, 0, {}),
    ("wav", "pcm_alaw", "s16", 8000, 1, 0.03, 0, {}),
    ("au", "pcm_mulaw", "s16", 8000, 1, 0.03, 0, {}),
    ("flac", "flac", "s16", 44100, 2, EXACT, 0, {}),
    ("mkv", "flac", "s32", 44100, 6, EXACT, 0, {}),
    ("ogg", "flac", "s16", 44100, 1, EXACT, 0, {}),
    ("m4a", "alac", "s16p", 44100, 2, EXACT, 0, {}),
    ("mov", "alac", "s32p", 48000, 1, EXACT, 0, {}),
    ("mkv", "alac", "s16p", 48000, 6, EXACT, 0, {}),
    ("caf", "alac", "s16p", 44100, 2, EXACT, 0, {}),
    ("wv", "wavpack", "fltp", 44100, 2, EXACT, 0, {}),
    ("tta", "tta", "s16", 44100, 2, EXACT, 0, {}),
    ("thd", "truehd", "s32", 48000, 2, EXACT, 0, TRY),
    ("ts", "s302m", "s16", 48000, 2, EXACT, 0, TRY),
    ("m4a", "aac", "fltp", 44100, 2, 0.1, 0, {"b": "192k"}),
    ("aac", "aac", "fltp", 44100, 1, 0.1, 1024, {}),
    ("mkv", "aac", "fltp", 48000, 5, 0.1, 1024, {"b": "512k"}),
    ("ac3", "ac3", "fltp", 48000, 2, 0.02, 256, {"b": "192k"}),
    ("mp4", "ac3", "fltp", 48000, 2, 0.02, 256, {"b": "192k"}),
    ("ts", "ac3", "fltp", 48000, 1, 0.02, 256, {"b": "192k"}),
    ("mkv", "ac3", "fltp", 44100, 5, 0.02, 256, {"b": "448k"}),
    ("ac3", "ac3_fixed", "s32p", 48000, 2, 0.02, 256, {"b": "192k"}),
    ("eac3", "eac3", "fltp", 48000, 2, 0.02, 256, {"b": "192k"}),
    ("mkv", "dca", "s32", 48000, 2, 0.02, 512, {**TRY, "b": "768k"}),
    ("ogg", "libopus", "flt", 48000, 2, 0.05, 0, {"b": "192k"}),
    ("webm", "libopus", "s16", 48000, 1, 0.05, 0, {"b": "128k"}),
    ("mp4", "libopus", "flt", 48000, 2, 0.05, 0, {"b": "192k"}),
    ("ogg", "opus", "fltp", 48000, 2, 0.2, 0, {**TRY, "b": "192k"}),
    ("mkv", "opus", "fltp", 48000, 1, 0.2, 1, {**TRY, "b": "128k"}),
    ("ogg", "libvorbis", "fltp", 44100, 2, 0.05, 0, {"b": "192k"}),
    ("webm", "libvorbis", "fltp", 44100, 1, 0.05, 0, {"b": "96k"}),
    ("ogg", "vorbis", "fltp", 44100, 2, 0.15, 0, TRY),
    ("mp3", "libmp3lame", "s16p", 44100, 2, 0.1, 0, {"b": "192k"}),
    ("mp3", "libmp3lame", "fltp", 22050, 1, 0.15, 0, {}),
    ("mkv", "libshine", "s16p", 44100, 2, 0.3, 1105, {}),
    ("mp2", "mp2", "s16", 44100, 2, 0.05, 481, {"b": "256k"}),
    ("ts", "mp2fixed", "s16", 44100, 2, 0.05, 481, {"b": "256k"}),
    ("mp2", "libtwolame", "fltp", 44100, 2, 0.05, 481, {"b": "256k"}),
    ("asf", "wmav1", "fltp", 44100, 2, 0.05, 2048, {"b": "192k"}),
    ("asf", "wmav2", "fltp", 44100, 2, 0.05, 2048, {"b": "192k"}),
    ("wav", "adpcm_ms", "s16", 44100, 2, 0.05, 0, {}),
    ("wav", "adpcm_ima_wav", "s16p", 44100, 2, 0.05, 0, {}),
    ("mov", "adpcm_ima_qt", "s16p", 44100, 2, 0.05, 0, {}),
    ("g722", "g722", "s16", 16000, 1, 0.02, 22, {}),
    ("wav", "g726", "s16", 8000, 1, 0.05, 0, {}),
    ("sbc", "sbc", "s16", 44100, 1, 0.1, 200, {}),
    ("ogg", "libspeex", "s16", 16000, 1, 0.4, 300, {"b": "32k"}),
    ("gsm", "libgsm", "s16", 8000, 1, 0.3, 0, {}),
]

SIZES = {"cfhd": (256, 128), "dnxhd": (256, 128), "h263": (176, 144), "libsvtav1": (128, 96)}  # smallest that they take
STORED = {"h263p": "h263", "ljpeg": "mjpeg"}  # what the file says instead
SEEN = {"bgr8": "rgb24", "pal8": "rgb24"}  # palettes are compared as their colours
TYPES = {"u8": np.uint8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "flt": np.float32, "dbl": np.float64}


def is_there(encoder):
    return bool(MISSING) or encoder in listed("encoders")


def each(rows):
    return [pytest.param(*row, id=f"{row[1]}-{row[2]}-{row[0]}") for row in rows if is_there(row[1])]


def converted(frames, *filters):
    """The frames behind these filters."""
    source = f"buffer=video_size={frames.width}x{frames.height}:pix_fmt={frames.pix_fmt}:time_base=1/{RATE}:pixel_aspect=1/1"
    graph = FilterGraph(",".join([source, *filters, "buffersink"]))
    graph.add_frames(frames)
    graph.flush()
    return graph.get_frames()


def pictures(encoder, pix_fmt, n):
    width, height = SIZES.get(encoder, (WIDTH, HEIGHT))
    frames = create_reference_video_frame(clip(n), "rgb24", RATE)
    return converted(frames, f"scale={width}:{height}", f"format=pix_fmts={pix_fmt}")


def write_pictures(path, frames, encoder, options):
    """A file of the frames, in two parts; they stay."""
    config = video_encode_config(height=frames.height, width=frames.width, frame_rate=RATE, pix_fmt=frames.pix_fmt)
    muxer = Muxer(path)
    made = muxer.add_encode_stream(config, encoder=encoder, encoder_config=options)
    with muxer.open({"update": "1"} if muxer.format == "image2" else None):
        for part in (frames[:3], frames[3:]):
            if len(part) and (packets := made.encode(part)) is not None:
                muxer.write(0, packets)
        if (packets := made.flush()) is not None:
            muxer.write(0, packets)
    return made.codec.name


def compare(got, frames, seen, tolerance):
    want = np.asarray(convert_frames(converted(frames, f"format=pix_fmts={seen}")))
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if tolerance:
        assert np.abs(got.astype(float) - want).mean() < tolerance
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("ending", "encoder", "pix_fmt", "tolerance", "options"), each(VIDEO))
def test_video(tmp_path, ending, encoder, pix_fmt, tolerance, options):
    n = 8
    priority = os.sched_getscheduler(0)
    seen = "rgb24" if tolerance else SEEN.get(pix_fmt, pix_fmt)
    frames = pictures(encoder, pix_fmt, n)
    name = write_pictures(tmp_path / f"a.{ending}", frames, encoder, options)
    assert os.sched_getscheduler(0) == priority  # which SVT-AV1 raises where root runs it
    packets = demux_video(tmp_path / f"a.{ending}")
    assert packets.codec.name == STORED.get(name, name)
    assert (packets.width, packets.height) == (frames.width, frames.height)
    back = decode_packets(packets, f"format=pix_fmts={seen}", strict=True)
    times = np.array(back.get_timestamps())
    np.testing.assert_allclose(times - times[0], np.arange(n) / RATE, atol=2e-3)
    compare(np.asarray(convert_frames(back)), frames, seen, tolerance)


@pytest.mark.parametrize(("ending", "encoder", "pix_fmt", "tolerance", "options"), each(IMAGES))
def test_image(tmp_path, ending, encoder, pix_fmt, tolerance, options):
    seen = "rgb24" if tolerance else SEEN.get(pix_fmt, pix_fmt)
    frames = pictures(encoder, pix_fmt, 1)
    name = write_pictures(tmp_path / f"a.{ending}", frames, encoder, options)
    assert demux_image(tmp_path / f"a.{ending}").codec.name == STORED.get(name, name)
    got = np.asarray(load_image(tmp_path / f"a.{ending}", filter_desc=f"format=pix_fmts={seen}"))
    compare(got[None], frames, seen, tolerance)


def sweep(sample_fmt, rate, channels):
    """Half a second, nowhere the same: as floats of (channels, time), and as an encoder takes it."""
    t = np.arange(rate // 2) / rate
    waves = np.stack([0.5 * np.sin(2 * np.pi * (200 + 100 * c + 1200 * t) * t) for c in range(channels)])
    dtype = TYPES[sample_fmt.removesuffix("p")]
    bits = 8 * np.dtype(dtype).itemsize
    array = waves.astype(dtype)
    if dtype == np.uint8:
        array = (waves * 127 + 128).round().astype(dtype)
    elif array.dtype.kind == "i":
        depth = min(bits, 24)  # as deep as the least of these formats
        array = (waves * (2 ** (depth - 1) - 1)).round().astype(dtype) << (bits - depth)
    return waves, array if sample_fmt.endswith("p") else np.ascontiguousarray(array.T)


@pytest.mark.parametrize(("ending", "encoder", "sample_fmt", "rate", "channels", "tolerance", "late", "options"), each(SOUNDS))
def test_audio(tmp_path, ending, encoder, sample_fmt, rate, channels, tolerance, late, options):
    waves, array = sweep(sample_fmt, rate, channels)
    stream = (audio(sample_fmt, channels, rate), array, {"encoder": encoder, "encoder_config": options})
    packets = demux_audio(encode(tmp_path / f"a.{ending}", [stream]))
    assert (packets.sample_rate, packets.num_channels) == (rate, channels)
    back = decode_packets(packets, f"aformat=sample_fmts={'fltp' if tolerance else sample_fmt}", strict=True)
    got = np.asarray(convert_frames(back))
    if not tolerance:
        np.testing.assert_array_equal(got, array)
        return
    n = waves.shape[1]
    found = slice(n // 4, 3 * n // 8)
    shift = int(np.argmax(np.correlate(got[0], waves[0][found], "valid"))) - found.start
    assert abs(shift) <= late
    middle = slice(n // 5, 4 * n // 5)
    error = np.abs(got[:, middle.start + shift : middle.stop + shift] - waves[:, middle]).mean()
    assert error < tolerance * np.abs(waves).mean()
    assert abs(got.shape[1] - n) <= 2048


def test_every_encoder_is_there():
    tried = {row[1] for row in [*VIDEO, *IMAGES, *SOUNDS]}
    assert {args[args.index("-c:v") + 1] for args in VIDEOS.values()} <= tried
    if missing := sorted(name for name in tried if not is_there(name)):
        pytest.skip(f"this FFmpeg has no encoder {', '.join(missing)}")
