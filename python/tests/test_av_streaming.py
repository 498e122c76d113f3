"""Decoding packets that come in parts, no earlier than their frames are asked for."""

from __future__ import annotations

import logging
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import stoker
from stoker.io import Decoder, Demuxer, convert_frames, decode_packets, demux_audio, demux_video

from av import ffmpeg, make, needs_ffmpeg, tone
from support import resident

pytestmark = needs_ffmpeg

H264 = ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("streaming")


@pytest.fixture(scope="module")
def clip(folder):
    return make(folder / "clip.mp4", *H264)


@pytest.fixture(scope="module")
def broken(folder):
    """Of ten pictures the third and the sixth are damaged."""
    path = make(folder / "broken.mov", "-c:v", "png", seconds=0.4)
    data = bytearray(path.read_bytes())
    starts = [i for i in range(len(data)) if data[i : i + 8] == b"\x89PNG\r\n\x1a\n"]
    for i in (2, 5):
        data[starts[i] : starts[i] + 30] = bytes(30)
    path.write_bytes(data)
    return path


def array(frames):
    return np.asarray(convert_frames(frames))


def joined(parts):
    return np.concatenate([array(part) for part in parts])


def all_of(decoder, *packets):
    for some in packets:
        yield from decoder.streaming_decode_packets(some)
    yield from decoder.flush()


def test_packets_are_decoded_when_their_frames_are_asked_for(broken):
    packets = demux_video(broken)
    decoder = Decoder(packets.codec)
    decoder.set_buffer_size(1)
    frames = decoder.streaming_decode_packets(packets)
    seen = []
    for _ in frames:
        seen.append(decoder.num_failed)
    assert seen == [0, 0, 1, 1, 2, 2, 2, 2]


def test_the_sizes_of_parts(clip):
    packets = demux_video(clip)
    every = array(decode_packets(packets.clone()))
    decoder = Decoder(packets.codec)
    for size in (1, 3, 7, 49, 50, 1000):
        decoder.set_buffer_size(size)
        during = list(decoder.streaming_decode_packets(packets.clone()))
        after = list(decoder.flush())
        assert all(len(part) == size for part in during[:-1])
        assert all(0 < len(part) <= size for part in during + after)
        assert 44 <= sum(map(len, during)) < 50  # what FFmpeg keeps comes with the flush
        np.testing.assert_array_equal(joined(during + after), every)
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError, match="buffer_size"):
            decoder.set_buffer_size(wrong)


@pytest.mark.figures
def test_memory_is_bounded(folder):
    path = make(folder / "long.avi", "-c:v", "mpeg4", "-q:v", "9", size="640x360", seconds=20)
    packets = demux_video(path)
    decoder = Decoder(packets.codec)
    before, most, count = resident(), 0, 0
    for part in all_of(decoder, packets):
        most = max(most, resident())
        count += len(part)
        assert len(part) <= 1 + (16 << 20) // (640 * 360 * 3)
    assert count == 500
    assert most - before < 100 << 20  # all of them have 345 MB


def test_audio_comes_in_parts(folder):
    path = tone(folder / "long.flac", "-c:a", "flac", seconds=60)
    packets = demux_audio(path)
    every = array(decode_packets(packets.clone()))
    parts = list(all_of(Decoder(packets.codec), packets))
    sizes = [array(part.clone()).nbytes for part in parts]
    assert len(sizes) == 2
    assert 15 << 20 < sizes[0] < 17 << 20
    np.testing.assert_array_equal(np.concatenate([array(part) for part in parts], 1), every)


def test_what_nobody_asked_for_comes_with_the_next_packets(clip):
    with Demuxer(clip) as demuxer:
        decoder = Decoder(demuxer.video_codec)
        decoder.set_buffer_size(2)
        parts = []
        for packets in demuxer.streaming_demux(num_packets=10):
            parts += islice(decoder.streaming_decode_packets(packets), 1)
        assert len(parts) == 5
        parts += decoder.flush()
    np.testing.assert_array_equal(joined(parts), array(decode_packets(demux_video(clip))))


def test_two_iterators_share_what_comes(clip):
    packets = demux_video(clip)
    every = array(decode_packets(packets.clone()))
    decoder = Decoder(packets.codec)
    decoder.set_buffer_size(5)
    one = decoder.streaming_decode_packets(packets)
    parts = [next(one)]
    two = decoder.flush()
    parts += [next(two), next(one), next(two), *one, *two]
    np.testing.assert_array_equal(joined(parts), every)


def test_so_many_packets_may_wait(clip):
    packets = demux_video(clip, timestamp=(0, "1/5"))
    decoder = Decoder(packets.codec)
    for _ in range(64):
        decoder.streaming_decode_packets(packets.clone())
    kept = packets.clone()
    with pytest.raises(stoker.LimitError, match="64 parts wait to be decoded"):
        decoder.streaming_decode_packets(kept)
    assert len(kept) == 5
    assert sum(map(len, decoder.flush())) == 64 * 5
    assert sum(map(len, all_of(decoder, kept))) == 5


def test_windows_one_after_the_other(clip):
    """Each begins at a key frame before it, and what is decoded for that is cut off."""
    times = [(0, "1/2"), ("1/2", "13/10"), ("13/10", 2)]
    with Demuxer(clip) as demuxer:
        decoder = Decoder(demuxer.video_codec)
        parts = list(all_of(decoder, *[demuxer.demux_video(window) for window in times]))
        np.testing.assert_array_equal(joined(parts), array(decode_packets(demuxer.demux_video())))
        mixed = list(all_of(decoder, demuxer.demux_video((1, "6/5")), demuxer.demux_video()))
    assert [t for part in mixed for t in part.get_timestamps()] == pytest.approx(
        [i / 25 for i in (*range(25, 30), *range(50))]
    )


def test_with_strict_the_error_comes_after_the_frames(broken, caplog):
    packets = demux_video(broken)
    decoder = Decoder(packets.codec, strict=True)
    for size in (0, 1, 100):
        decoder.set_buffer_size(size)
        frames = decoder.streaming_decode_packets(packets.clone())
        count = 0
        with pytest.raises(stoker.CorruptError, match="packet 2 cannot be decoded"):
            for part in frames:
                count += len(part)
        assert count == 2
        assert list(frames) == []
    assert not caplog.text


def test_failures_are_counted_once(broken, caplog):
    packets = demux_video(broken)
    decoder = Decoder(packets.codec)
    decoder.set_buffer_size(1)
    with caplog.at_level(logging.WARNING, "stoker.io"):
        for turn in (1, 2):
            parts = list(all_of(decoder, packets.clone()))
            assert [part.num_failed for part in parts] == [0, 0, 1, 1, 2, 2, 2, 2]
            assert decoder.num_failed == 2 * turn
    assert caplog.text.count("1 packets could not be decoded") == 4


def test_nothing_that_can_be_decoded(broken):
    with Demuxer(broken) as demuxer:
        decoder = Decoder(demuxer.video_codec)
        for _ in range(2):
            assert list(decoder.streaming_decode_packets(demuxer.demux_video(("2/25", "3/25")))) == []
            with pytest.raises(stoker.CorruptError, match="none of 1 packets could be decoded"):
                list(decoder.flush())
        assert sum(map(len, all_of(decoder, demuxer.demux_video()))) == 8


def test_filters_without_end(clip):
    packets = demux_video(clip)
    decoder = Decoder(packets.codec, filter_desc="loop=loop=-1:size=3,format=rgb24")
    decoder.set_buffer_size(2)
    parts = list(islice(all_of(decoder, packets.clone()), 40))
    frames = joined(parts)
    first = array(decode_packets(packets)[:3])
    assert len(frames) == 80
    np.testing.assert_array_equal(frames, first[np.arange(80) % 3])


def test_a_stream_that_changes_its_size(folder, clip):
    """As decode_packets does, filters begin anew for frames of another size."""
    small, large = (folder / f"{size}.ts" for size in ("64x48", "80x60"))
    for path in (small, large):
        make(path, *H264, "-an", size=path.stem, seconds=0.4)
    both = folder / "both.ts"
    both.write_bytes(small.read_bytes() + large.read_bytes())
    packets = demux_video(both)
    desc = "scale=w=32:h=24,reverse,format=rgb24"
    expected = array(decode_packets(packets.clone(), desc))
    assert len(expected) == 20
    for size in (0, 1, 3):
        decoder = Decoder(packets.codec, filter_desc=desc)
        decoder.set_buffer_size(size)
        np.testing.assert_array_equal(joined(all_of(decoder, packets.clone())), expected)
    commands = [ffmpeg("-i", path, "-vf", desc, "-f", "rawvideo", "-") for path in (small, large)]
    np.testing.assert_array_equal(expected, np.frombuffer(b"".join(commands), np.uint8).reshape(20, 24, 32, 3))


def test_what_is_not_taken_is_not_consumed(clip, folder):
    packets = demux_audio(tone(folder / "short.wav", seconds=0.1))
    decoder = Decoder(demux_video(clip).codec)
    with pytest.raises(stoker.InvalidArgumentError, match="of another kind"):
        decoder.streaming_decode_packets(packets)
    assert len(packets) > 0
    for wrong in (b"packets", None):
        with pytest.raises(TypeError, match="expected packets"):
            decoder.streaming_decode_packets(wrong)
    taken = demux_video(clip)
    decoder.streaming_decode_packets(taken)
    with pytest.raises(TypeError, match="consumed"):
        len(taken)


def test_wrong_filters(clip):
    packets = demux_video(clip)
    decoder = Decoder(packets.codec, filter_desc="nosuch")
    for _ in range(2):
        with pytest.raises(stoker.InvalidArgumentError, match="No such filter: 'nosuch'"):
            list(decoder.streaming_decode_packets(packets.clone()))


def test_parts_of_times_that_are_further_apart_than_numbers_go():
    """Packets at -2^62, 2^63 - 2^56, 100 ms later, and 5 ms."""
    seed = Path(__file__).parents[2] / "tests/fuzz/demux/corpus/far_stream.mkv"
    with Demuxer(seed.read_bytes()[4:]) as demuxer:  # four bytes are for the fuzz target
        assert [len(packets) for packets in demuxer.streaming_demux(duration=1)] == [1, 3]
