"""Packets that are written as they were read."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stoker
from stoker.io import Demuxer, Muxer, apply_bsf, demux_audio, demux_video, load_video

from av import ffmpeg, make, needs_ffmpeg

pytestmark = needs_ffmpeg


def sums(path, stream):
    """What the packets of a stream hold: sizes and checksums, in their order."""
    text = ffmpeg("-i", path, "-map", stream, "-c", "copy", "-f", "framecrc", "-").decode()
    found = re.findall(r"^0, *-?\d+, *-?\d+, *\d+, *(\d+), (0x[0-9a-f]+)", text, re.MULTILINE)
    assert found
    return found


def remux(src, dst, *kinds):
    muxer = Muxer(dst)
    packets = [demux_video(src) if kind == "v" else demux_audio(src) for kind in kinds]
    for one in packets:
        muxer.add_remux_stream(one.codec)
    with muxer.open():
        for i, one in enumerate(packets):
            muxer.write(i, one)
    return dst


@pytest.mark.parametrize(
    ("source", "target", "options"),
    [
        ("a.mp4", "b.mkv", ["-c:v", "libx264", "-bf", "2", "-c:a", "aac"]),
        ("a.mkv", "b.mp4", ["-c:v", "libx264", "-bf", "2", "-c:a", "aac"]),
        ("a.mp4", "b.ts", ["-c:v", "libx264", "-bf", "2", "-c:a", "aac"]),
        ("a.avi", "b.mkv", ["-c:v", "mpeg4", "-c:a", "pcm_s16le"]),
        ("a.mkv", "b.mov", ["-c:v", "mpeg4", "-bf", "2", "-c:a", "pcm_s16le"]),
        ("a.mkv", "b.mp4", ["-c:v", "libx265", "-x265-params", "log-level=none", "-c:a", "libmp3lame"]),
    ],
)
def test_as_the_command_does(tmp_path, source, target, options):
    src = make(tmp_path / source, *options, audio=True)
    ours = remux(src, tmp_path / target, "v", "a")
    theirs = tmp_path / f"theirs-{target}"
    ffmpeg("-i", src, "-map", "0:v", "-map", "0:a", "-c", "copy", theirs)
    for stream in ("0:v", "0:a"):
        assert sums(ours, stream) == sums(theirs, stream)
    np.testing.assert_array_equal(np.asarray(load_video(ours)), np.asarray(load_video(src)))


def test_in_parts(tmp_path):
    src = make(tmp_path / "a.mp4", "-c:v", "libx264", "-bf", "2", "-c:a", "aac", audio=True)
    muxer = Muxer(tmp_path / "b.mkv")
    with Demuxer(src) as demuxer:
        streams = {demuxer.video_stream_index: 0, demuxer.audio_stream_index: 1}
        muxer.add_remux_stream(demuxer.video_codec)
        muxer.add_remux_stream(demuxer.audio_codec)
        with muxer.open():
            for part in demuxer.streaming_demux(list(streams), duration=0.3):
                for index, packets in part.items():
                    muxer.write(streams[index], packets)
    for stream in ("0:v", "0:a"):
        assert sums(tmp_path / "b.mkv", stream) == sums(src, stream)


def test_a_window_is_copied_from_its_key_frame(tmp_path):
    src = make(tmp_path / "a.mp4", "-c:v", "libx264", "-bf", "0", "-g", "10", "-pix_fmt", "yuv420p")
    packets = demux_video(src, timestamp=(1, 1.4))
    muxer = Muxer(tmp_path / "b.mkv")
    muxer.add_remux_stream(packets.codec)
    with muxer.open():
        muxer.write(0, packets)
    whole = np.asarray(load_video(src))
    part = np.asarray(load_video(tmp_path / "b.mkv"))
    assert len(packets) == 10
    np.testing.assert_array_equal(part, whole[20 : 20 + len(part)])  # 20 is the key frame before 25
    assert 15 <= len(part) <= 16


def test_bitstream_filters(tmp_path):
    src = make(tmp_path / "a.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p")
    packets = apply_bsf(demux_video(src), "h264_mp4toannexb")
    muxer = Muxer(tmp_path / "b.h264")
    muxer.add_remux_stream(packets.codec)
    with muxer.open():
        muxer.write(0, packets)
    ffmpeg("-i", src, "-c", "copy", "-bsf:v", "h264_mp4toannexb", tmp_path / "c.h264")
    assert (tmp_path / "b.h264").read_bytes() == (tmp_path / "c.h264").read_bytes()


def test_what_a_file_cannot_hold(tmp_path):
    src = make(tmp_path / "a.mkv", "-c:v", "ffv1", "-c:a", "flac", audio=True)
    with pytest.raises(stoker.UnsupportedError, match="'flv' cannot hold ffv1"):
        Muxer(tmp_path / "b.flv").add_remux_stream(demux_video(src).codec)
    with pytest.raises(TypeError, match="codec"):
        Muxer(tmp_path / "b.mp4").add_remux_stream("h264")
    muxer = Muxer(tmp_path / "b.mkv")
    muxer.add_remux_stream(demux_video(src).codec)
    with muxer.open(), pytest.raises(ValueError, match="stream 0 is video"):
        muxer.write(0, demux_audio(src))


def test_packets_out_of_order(tmp_path):
    src = make(tmp_path / "a.mkv", "-c:v", "ffv1")
    packets = demux_video(src)
    muxer = Muxer(tmp_path / "b.mkv")
    muxer.add_remux_stream(packets.codec)
    with muxer.open():
        muxer.write(0, packets)
        with pytest.raises(ValueError, match="monoton"):
            muxer.write(0, packets)
