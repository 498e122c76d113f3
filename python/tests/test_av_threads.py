"""Objects shared between threads: results are the same, or an error says that one is in use."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import stoker
from stoker.io import (
    BSF,
    Decoder,
    Demuxer,
    apply_bsf,
    convert_frames,
    decode_packets,
    demux_video,
    load_video,
)

from av import make, needs_ffmpeg
from support import WATCHDOG_S, at_once

pytestmark = needs_ffmpeg


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("threads") / "clip.mp4"
    return make(path, "-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p")


def array(packets):
    return np.asarray(convert_frames(decode_packets(packets)))


def test_packets_and_frames_are_shared(clip):
    packets = demux_video(clip)
    expected = np.asarray(convert_frames(decode_packets(packets.clone())))
    frames = decode_packets(packets.clone())

    def decode():
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(convert_frames(decode_packets(packets.clone()))), expected)

    def convert():
        for _ in range(10):
            np.testing.assert_array_equal(np.asarray(convert_frames(frames.clone())), expected)
            assert len(packets) == 50
            assert frames[3].width == 64

    at_once(decode, decode, convert, convert)


def test_one_thread_consumes(clip):
    for _ in range(20):
        packets = demux_video(clip, timestamp=(0, "1/5"))
        results = []

        def take(packets=packets, results=results):
            try:
                results.append(len(decode_packets(packets)))
            except TypeError:
                results.append(None)

        at_once(*[take] * 4)
        assert sorted(results, key=str) == [5, None, None, None]


class Slow:
    """A file that waits in read() while `slow` is set."""

    def __init__(self, file):
        self.file = file
        self.slow = False
        self.inside, self.leave = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def read(self, n):
        if self.slow:
            self.inside.set()
            self.leave.wait(WATCHDOG_S)
        return self.file.read(n)


@pytest.fixture
def slow(tmp_path):
    """A file larger than what opening it reads, of 50 frames."""
    with make(tmp_path / "large.avi", "-c:v", "rawvideo", "-pix_fmt", "rgb24").open("rb") as file:
        yield Slow(file)


def test_a_demuxer_in_use_says_so(slow):
    with Demuxer(slow) as demuxer, ThreadPoolExecutor(1) as pool:
        slow.slow = True
        first = pool.submit(demuxer.demux_video)
        assert slow.inside.wait(WATCHDOG_S)
        with pytest.raises(stoker.BusyError, match="another thread"):
            demuxer.demux_video()
        with pytest.raises(stoker.BusyError):
            next(demuxer.streaming_demux(num_packets=1))
        slow.slow = False
        slow.leave.set()
        assert len(first.result()) == 50
        assert len(demuxer.demux_video()) == 50


def test_streaming_in_use_says_so_and_goes_on(slow):
    with Demuxer(slow) as demuxer, ThreadPoolExecutor(1) as pool:
        parts = demuxer.streaming_demux(num_packets=40)
        slow.slow = True
        first = pool.submit(next, parts)
        assert slow.inside.wait(WATCHDOG_S)
        for call in (lambda: next(parts), demuxer.demux_video):
            with pytest.raises(stoker.BusyError, match="another thread"):
                call()
        slow.slow = False
        slow.leave.set()
        assert len(first.result()) == 40
        assert [len(part) for part in parts] == [10]
        demuxer.demux_video((0, 1))  # the demuxer stands elsewhere; what is over stays over
        assert next(parts, None) is None


def test_many_threads_on_one_stream_of_packets(clip):
    for _ in range(10):
        with Demuxer(clip) as demuxer:
            parts = demuxer.streaming_demux(num_packets=1)
            times = []

            def take(parts=parts, times=times):
                while True:
                    try:
                        part = next(parts, None)
                    except stoker.BusyError:
                        continue
                    if part is None:
                        return
                    times.extend(part.get_timestamps())

            at_once(*[take] * 4)
        assert sorted(times) == pytest.approx([i / 25 for i in range(50)])


def test_many_threads_on_one_demuxer(clip):
    with Demuxer(clip) as demuxer:

        def read():
            for _ in range(10):
                try:
                    assert len(demuxer.demux_video((0.5, 1))) == 12
                except stoker.BusyError:
                    pass

        at_once(*[read] * 4)
        assert len(demuxer.demux_video()) == 50


def test_many_threads_on_one_decoder(clip):
    with Demuxer(clip) as demuxer:
        decoder = Decoder(demuxer.video_codec)
    packets = demux_video(clip)

    def use():
        for _ in range(5):
            try:
                list(decoder.streaming_decode_packets(packets.clone()))
                list(decoder.flush())
            except stoker.BusyError:
                pass

    at_once(*[use] * 4)


def test_many_threads_on_one_bsf(clip):
    with Demuxer(clip) as demuxer:
        bsf = BSF(demuxer.video_codec, "h264_mp4toannexb")
    packets = demux_video(clip)
    expected = array(apply_bsf(packets, "h264_mp4toannexb"))
    made = []

    def use():
        for _ in range(20):
            try:
                made.append(bsf.filter(packets, flush=True))
            except stoker.BusyError as error:
                assert "another thread" in str(error)

    at_once(*[use] * 4)
    assert made
    for found in made:
        assert found.get_timestamps() == packets.get_timestamps()
    np.testing.assert_array_equal(array(made[-1]), expected)
    assert len(bsf.flush()) == 0  # nothing waits in it


def test_closing_while_it_is_used(clip):
    for _ in range(20):
        demuxer = Demuxer(clip)

        def read(demuxer=demuxer):
            try:
                assert len(demuxer.demux_video()) == 50
            except ValueError as error:
                assert "closed" in str(error)

        at_once(read, demuxer.close)


def test_many_loads_at_once(clip):
    expected = np.asarray(load_video(clip))
    with ThreadPoolExecutor(4) as pool:
        for array in pool.map(lambda _: np.asarray(load_video(clip.read_bytes())), range(12)):
            np.testing.assert_array_equal(array, expected)


def test_nothing_is_kept(clip):
    """Memory does not grow with the number of files."""

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(20):
        load_video(clip)
    before = resident()
    for _ in range(200):
        load_video(clip)
    assert resident() - before < 8 << 20
