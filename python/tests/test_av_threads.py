"""Objects shared between threads: results are the same, or an error says that one is in use."""

from __future__ import annotations

import io
import re
import subprocess
import sys
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
    demux_config,
    demux_video,
    load_video,
)

from av import make, needs_ffmpeg
from support import WATCHDOG_S, at_once, resident

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


class Piecewise:
    """A file of a few kilobytes at a time."""

    def __init__(self, data):
        self.file = io.BytesIO(data)

    def read(self, n):
        return self.file.read(min(n, 4096))


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


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    """A transport stream of video, in which more streams begin one after the other, and how many there are."""
    folder, data = tmp_path_factory.mktemp("growing"), b""
    for i in range(8):
        options = ["-c:v", "mpeg2video", "-mpegts_start_pid", 0x100 + 4 * i, "-output_ts_offset", i / 5]
        data += make(folder / "part.ts", *options, seconds=0.2 if i else 2, audio=i > 3).read_bytes()
    return data, 12


SHORT_PROBE = {"format": "mpegts", "format_options": {"probesize": "20000", "analyzeduration": "100000"}}


def test_streams_that_appear_while_others_ask(growing):
    data, count = growing
    config = demux_config(**SHORT_PROBE)
    current = [Demuxer(Piecewise(data), demux_config=config)]
    reading = threading.Event()
    reading.set()
    seen = set()

    def ask():
        while reading.is_set():
            demuxer = current[0]
            seen.update([demuxer.audio_stream_index, demuxer.video_stream_index])

    def read():
        try:
            for _ in range(30):
                current[0] = Demuxer(Piecewise(data), demux_config=config)
                for _ in current[0].streaming_demux(0, num_packets=100):
                    pass
        finally:
            reading.clear()

    at_once(ask, ask, ask, read)
    assert seen <= set(range(-1, count))
    with pytest.raises(stoker.NotFoundError, match=f"stream {count}, of {count}"):
        next(current[0].streaming_demux(count, num_packets=1))


def test_streams_are_those_of_the_last_call(growing):
    data, _ = growing
    file = Piecewise(data)
    demuxer = Demuxer(file, demux_config=demux_config(**SHORT_PROBE))
    told, read = [], file.read

    def ask(n):
        told.append(demuxer.has_audio())
        return read(n)

    file.read = ask
    demuxer.demux_video()
    assert told and not any(told)
    assert demuxer.has_audio()


def test_streams_are_told_while_another_thread_reads(slow):
    with Demuxer(slow) as demuxer, ThreadPoolExecutor(1) as pool:
        slow.slow = True
        first = pool.submit(demuxer.demux_video)
        assert slow.inside.wait(WATCHDOG_S)
        assert (demuxer.has_audio(), demuxer.audio_stream_index, demuxer.video_stream_index) == (False, -1, 0)
        slow.slow = False
        slow.leave.set()
        assert len(first.result()) == 50


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


@pytest.mark.figures
def test_nothing_is_kept(clip):
    """Memory does not grow with the number of files."""
    for _ in range(20):
        load_video(clip)
    before = resident()
    for _ in range(200):
        load_video(clip)
    assert resident() - before < 8 << 20


SAYS = """
import sys
from stoker.io import *
from stoker.io import utils
path, threads, loud, streamed = sys.argv[1], *map(int, sys.argv[2:])
if loud:
    utils.set_ffmpeg_log_level(16)
config = decode_config(decoder_options={"threads": str(threads)})
try:
    if streamed:
        with Demuxer(path) as demuxer:
            decoder = Decoder(demuxer.video_codec, decode_config=config, strict=True)
            for packets in demuxer.streaming_demux(num_packets=1):
                list(decoder.streaming_decode_packets(packets))
            list(decoder.flush())
    else:
        decode_packets(demux_video(path), decode_config=config, strict=True)
except stoker.CorruptError as error:
    print(error)
"""


@pytest.mark.parametrize("streamed", [0, 1])
@pytest.mark.parametrize("threads", [1, 4])
def test_what_a_decoder_says_is_in_the_error_alone(tmp_path, threads, streamed):
    """Its threads say it, perhaps while no call runs."""
    path = make(tmp_path / "broken.mov", "-c:v", "png", seconds=0.4)
    data = bytearray(path.read_bytes())
    start = [i for i in range(len(data)) if data[i : i + 8] == b"\x89PNG\r\n\x1a\n"][5]
    data[start : start + 30] = bytes(30)
    path.write_bytes(data)
    for loud in (0, 1):
        line = [sys.executable, "-c", f"import stoker\n{SAYS}", path, *map(str, (threads, loud, streamed))]
        done = subprocess.run(line, capture_output=True, text=True, timeout=100, check=True)
        assert re.search(r"packet \d cannot be decoded: .*\(\[png\] Invalid PNG signature", done.stdout)
        assert ("Invalid PNG signature" in done.stderr) == bool(loud)
        assert loud or not done.stderr
