"""sample_decode_video: frames of given numbers are those that decoding everything gives."""

from __future__ import annotations

import logging
import random

import numpy as np
import pytest

import stoker
from stoker.io import (
    Demuxer,
    ImageFrames,
    convert_frames,
    decode_config,
    decode_packets,
    demux_audio,
    demux_image,
    demux_video,
    sample_decode_video,
)

from av import VIDEOS, decodable, ffmpeg, make, needs_ffmpeg, tone

pytestmark = needs_ffmpeg

MORE = {
    "intra.mov": ["-c:v", "png"],
    "one_gop.mp4": ["-c:v", "libx264", "-g", "1000", "-bf", "2", "-pix_fmt", "yuv420p"],
    "pyramid.mp4": ["-c:v", "libx264", "-g", "16", "-bf", "7", "-x264-params", "b-pyramid=normal:ref=4:open-gop=1"],
    "refresh.ts": ["-c:v", "libx264", "-x264-params", "intra-refresh=1:keyint=15", "-pix_fmt", "yuv420p"],
    "hidden.webm": ["-c:v", "libvpx", "-auto-alt-ref", "1", "-lag-in-frames", "16", "-g", "20"],
    "interlaced.ts": ["-c:v", "mpeg2video", "-flags", "+ildct+ilme", "-top", "1", "-bf", "2", "-g", "9"],
    "no_times.h264": ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"],
    "no_times.m4v": ["-c:v", "mpeg4", "-bf", "2", "-g", "10"],
}  # fmt: skip
CHOICES = [[0], [49], [24, 25], list(range(50)), [9, 10, 11], *[sorted(random.Random(s).sample(range(50), 5)) for s in range(6)]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sample")


@pytest.fixture(scope="module")
def clip(folder):
    return make(folder / "clip.mp4", *VIDEOS["h264.mp4"])


def array(frames):
    return np.asarray(convert_frames(frames))


def check(packets, choices, **options):
    """Each choice is what decoding all gives."""
    frames = decode_packets(packets.clone(), **options)
    every, times = array(frames.clone()), frames.get_timestamps()
    for indices in choices:
        found = sample_decode_video(packets.clone(), indices, **options)
        assert all(isinstance(frame, ImageFrames) for frame in found)
        np.testing.assert_array_equal([array(frame.clone()) for frame in found], every[indices])
        assert [frame.pts for frame in found] == [times[i] for i in indices]


@pytest.mark.parametrize("name", decodable((*VIDEOS, *MORE)))
def test_the_frames_of_a_video(folder, name):
    path = make(folder / name, *{**VIDEOS, **MORE}[name])
    packets = demux_video(path)
    assert len(packets) >= 50
    check(packets, [*CHOICES, *[[i] for i in range(0, 50, 3)]])


@pytest.mark.parametrize("name", ["h264_open.mkv", "hevc_open.mp4", "pyramid.mp4", "mpeg4.avi"])
def test_the_frames_of_a_window(folder, name):
    path = folder / name
    if not path.exists():
        make(path, *{**VIDEOS, **MORE}[name])
    with Demuxer(path) as demuxer:
        for window in (("1/2", "3/2"), ("14/25", "16/25"), ("19/25", 99)):
            packets = demuxer.demux_video(window)
            n = len(packets)
            check(packets, [[0], [n - 1], list(range(n)), list(range(0, n, 3))])


@pytest.mark.parametrize("name", ["h264_open.mkv", "hevc_open.mp4", "mpeg2_open.mpg"])
def test_a_video_that_was_cut(folder, name):
    """It may begin with pictures that refer to what is not there, and that no decoder gives."""
    whole = folder / name
    if not whole.exists():
        make(whole, *VIDEOS[name])
    path = folder / f"cut_{name}"
    ffmpeg("-ss", "1", "-i", whole, "-c", "copy", path)
    packets = demux_video(path)
    n = len(decode_packets(packets.clone()))
    assert n >= 15
    check(packets, [[0], [n - 1], list(range(n)), [3, 9, 14]])


def test_an_edit_list(folder, clip):
    """Packets before its start are decoded, but no frames of the video."""
    path = folder / "edited.mp4"
    ffmpeg("-ss", "0.52", "-i", clip, "-c", "copy", path)
    packets = demux_video(path)
    n = len(decode_packets(packets.clone()))
    assert n == len(packets) < len(packets.get_timestamps(raw=True))
    check(packets, [[0], [n - 1], list(range(n)), [5, 20]])
    with pytest.raises(IndexError, match=f"there is no frame {n}"):
        sample_decode_video(packets, [n])


def test_sizes_that_change(folder):
    parts = [make(folder / f"{size}.ts", *VIDEOS["h264.ts"], size=size, seconds=0.4) for size in ("64x48", "80x60")]
    both = folder / "both.ts"
    both.write_bytes(b"".join(part.read_bytes() for part in parts))
    packets = demux_video(both)
    check(packets, [[0, 19], [8, 9, 10, 11], list(range(20))], filter_desc="scale=w=32:h=24,format=rgb24")


def test_filters_and_decoders(clip):
    packets = demux_video(clip)
    options = {"decode_config": decode_config(decoder_options={"threads": "2"})}
    check(packets, CHOICES[:4], filter_desc="scale=w=32:h=-2,hflip,format=rgba", **options)
    raw = sample_decode_video(packets.clone(), [3, 30], filter_desc=None)
    assert [frame.pix_fmt for frame in raw] == ["yuv420p"] * 2
    for desc, count in (("fps=50", "4 frames of 2"), ("select=0", "0 frames of 2"), ("tpad=stop=2", "4 frames of 2")):
        with pytest.raises(stoker.InvalidArgumentError, match=f"made {count}"):
            sample_decode_video(packets.clone(), [0, 1], filter_desc=desc)
    with pytest.raises(stoker.InvalidArgumentError, match="No such filter: 'nosuch'"):
        sample_decode_video(packets.clone(), [0], filter_desc="nosuch")
    with pytest.raises(stoker.UnsupportedError, match="nosuch"):
        sample_decode_video(packets.clone(), [0], decode_config=decode_config(decoder="nosuch"))


def test_indices(clip):
    packets = demux_video(clip)
    for wrong, error, text in (
        ([], ValueError, "there are none"),
        ([3, 2], ValueError, "ascend"),
        ([3, 3], ValueError, "ascend"),
        ([50], IndexError, "there is no frame 50, of 50"),
        ([-1], IndexError, "there is no frame -1, of 50"),
        ([2**70], IndexError, "of 50"),
        ([0.5], TypeError, "float"),
    ):
        with pytest.raises(error, match=text):
            sample_decode_video(packets, wrong)
    found = sample_decode_video(packets, np.array([1, 40]))
    assert [frame.pts for frame in found] == pytest.approx([1 / 25, 40 / 25])
    with pytest.raises(TypeError, match="consumed"):
        sample_decode_video(packets, [0])


def test_types(folder, clip):
    for wrong in (demux_audio(tone(folder / "short.wav", seconds=0.1)), demux_image(clip), b"packets"):
        with pytest.raises(TypeError, match="expected VideoPackets"):
            sample_decode_video(wrong, [0])  # type: ignore[arg-type]
    with Demuxer(clip) as demuxer:
        part = next(demuxer.streaming_demux(demuxer.video_stream_index, num_packets=5))
    with pytest.raises(ValueError, match="no codec"):
        sample_decode_video(part, [0])


def broken(folder, bad):
    """A video of ten pictures, of which some are damaged."""
    path = make(folder / f"broken{'_'.join(map(str, bad))}.mov", "-c:v", "png", seconds=0.4)
    data = bytearray(path.read_bytes())
    starts = [i for i in range(len(data)) if data[i : i + 8] == b"\x89PNG\r\n\x1a\n"]
    for i in bad:
        data[starts[i] : starts[i] + 30] = bytes(30)
    path.write_bytes(data)
    return demux_video(path)


def test_only_what_is_needed_is_decoded(folder):
    packets = broken(folder, (2, 5))
    found = sample_decode_video(packets.clone(), [0, 3, 4, 9], strict=True)
    assert [frame.pts for frame in found] == pytest.approx([i / 25 for i in (0, 3, 4, 9)])
    every = array(decode_packets(packets))
    np.testing.assert_array_equal([array(frame) for frame in found], every[[0, 2, 3, 7]])


def test_a_frame_that_is_damaged(folder, caplog):
    packets = broken(folder, (2, 5))
    with pytest.raises(stoker.CorruptError, match="frame 5 could not be decoded: packet"):
        sample_decode_video(packets.clone(), [4, 5])
    with pytest.raises(stoker.CorruptError, match="packet 2 cannot be decoded"):
        sample_decode_video(packets.clone(), [4, 5], strict=True)
    with pytest.raises(stoker.CorruptError):
        sample_decode_video(broken(folder, range(10)), [4, 5])


def test_frames_that_wait_for_what_is_damaged_have_a_limit(folder, caplog):
    """Whether each keeps its number is known in the end: filters make them small only then."""
    packets, size = broken(folder, (2, 5)), 64 * 48 * 3
    small = {"filter_desc": "scale=4:4", "decode_config": decode_config(max_bytes=3 * size)}
    assert len(sample_decode_video(packets.clone(), [0, 3, 4, 9], strict=True, **small)) == 4
    with pytest.raises(stoker.CorruptError, match="frame 5 could not be decoded"):
        sample_decode_video(packets.clone(), [0, 1, 5], **small)
    with pytest.raises(stoker.LimitError, match=f"the limit is {3 * size} bytes, max_bytes"):
        sample_decode_video(packets.clone(), range(10), **small)


def test_groups_that_are_damaged(folder, caplog):
    """Of five groups of ten pictures the third: its pictures fail, or are concealed as decode_packets does it."""
    path = make(folder / "groups.mkv", "-c:v", "ffv1", "-level", "3", "-slicecrc", "1", "-g", "10", "-slices", "4")
    whole = array(decode_packets(demux_video(path)))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 100] = bytes(100)
    path.write_bytes(data)
    packets = demux_video(path)
    found = sample_decode_video(packets.clone(), [3, 14, 33, 49], strict=True)
    np.testing.assert_array_equal([array(frame) for frame in found], whole[[3, 14, 33, 49]])
