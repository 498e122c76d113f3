"""Packets: where they come from, windows, parts, bytes and copies of them."""

from __future__ import annotations

import array
import gc
import io
import os
import pickle
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import stoker
from stoker.io import (
    BSF,
    AudioPackets,
    Demuxer,
    ImagePackets,
    VideoPackets,
    apply_bsf,
    demux_audio,
    demux_config,
    demux_image,
    demux_video,
)

from av import ffmpeg, make, needs_ffmpeg
from support import ok

pytestmark = needs_ffmpeg

X264 = ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """50 frames, key frames every 10, B-frames; a tone."""
    return make(tmp_path_factory.mktemp("av") / "clip.mp4", *X264, "-c:a", "aac", audio=True)


class Plain:
    """read() and nothing else."""

    def __init__(self, data):
        self.file = io.BytesIO(data)

    def read(self, n):
        return self.file.read(min(n, 1000))


@pytest.mark.parametrize(
    "kind",
    [str, os.fsencode, lambda p: p, "bytes", "bytearray", "view", "array", "numpy", "file", "bytesio"],
)
def test_sources(clip, kind):
    data = clip.read_bytes()
    if callable(kind):
        source = kind(clip)
        if isinstance(source, bytes):
            source = data
    else:
        source = {
            "bytes": lambda: data,
            "bytearray": lambda: bytearray(data),
            "view": lambda: memoryview(data),
            "array": lambda: array.array("B", data),
            "numpy": lambda: np.frombuffer(data, np.uint8),
            "file": lambda: clip.open("rb"),
            "bytesio": lambda: io.BytesIO(data),
        }[kind]()
    packets = demux_video(source)
    assert len(packets) == 50
    assert packets.get_timestamps() == pytest.approx([i / 25 for i in range(50)])
    if hasattr(source, "close"):
        source.close()


def test_a_reader_that_cannot_seek(tmp_path):
    path = make(tmp_path / "clip.ts", *X264)
    assert len(demux_video(Plain(path.read_bytes()))) == 50
    with Demuxer(Plain(path.read_bytes())) as demuxer:
        assert len(demuxer.demux_video()) == 50
        with pytest.raises(stoker.UnsupportedError, match="cannot go back"):
            demuxer.demux_video()


def test_a_reader_that_begins_in_the_middle(clip):
    file = io.BytesIO(b"something else" + clip.read_bytes())
    file.seek(14)
    assert len(demux_video(file)) == 50


def test_what_read_raises_is_raised(clip):
    class Bad(Plain):
        def read(self, n):
            if self.file.tell() > 3000:
                raise ZeroDivisionError("gone")
            return super().read(n)

    with pytest.raises(ZeroDivisionError, match="gone"):
        demux_video(Bad(clip.read_bytes()))


@pytest.mark.parametrize("given", [None, "text", 3, b"x" * 10**7])
def test_what_read_gives_is_checked(given):
    class Bad:
        def read(self, n):
            return given

    with pytest.raises((TypeError, ValueError)):
        demux_video(Bad())


def test_a_pipe(clip):
    data = make(clip.with_suffix(".ts"), *X264).read_bytes()
    reader, writer = os.pipe()

    def write():
        with os.fdopen(writer, "wb") as out:
            out.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    assert len(demux_video(f"/dev/fd/{reader}")) == 50
    thread.join()
    os.close(reader)


def test_a_pipe_that_says_nothing_ends_by_its_time_limit():
    reader, writer = os.pipe()
    with pytest.raises(stoker.TimeoutError, match="timeout"):
        demux_video(f"/dev/fd/{reader}", demux_config=demux_config(timeout=0.05))
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    "data", [np.zeros((4, 4), np.uint8), np.zeros(8, np.uint8)[::2], np.zeros(8, np.float32), np.zeros(3, "M8[s]")]
)
def test_byte_buffers_are_one_dimensional(data):
    with pytest.raises(ValueError, match="Expected a one-dimensional, C-contiguous byte buffer."):
        demux_video(data)


def test_other_sources_are_refused():
    with pytest.raises(TypeError, match="src must be"):
        demux_video(3)
    with pytest.raises(ValueError, match="null"):
        demux_video("a\0b")


def test_what_is_not_there(tmp_path, clip):
    with pytest.raises(RuntimeError, match="Failed to open the input") as error:
        demux_video(tmp_path / "none.mp4")
    assert isinstance(error.value, FileNotFoundError)
    assert isinstance(error.value, stoker.NotFoundError)
    with pytest.raises(stoker.InvalidArgumentError, match="directory"):
        demux_video(tmp_path)
    silent = make(tmp_path / "silent.mp4", *X264)
    with pytest.raises(stoker.NotFoundError, match="no audio stream"):
        demux_audio(silent)
    with Demuxer(silent) as demuxer:
        assert not demuxer.has_audio()
        assert demuxer.audio_stream_index == -1
        with pytest.raises(stoker.NotFoundError):
            _ = demuxer.audio_codec


def test_codecs(clip):
    with Demuxer(clip) as demuxer:
        video, audio, image = demuxer.video_codec, demuxer.audio_codec, demuxer.image_codec
    assert (video.name, video.width, video.height, video.pix_fmt) == ("h264", 64, 48, "yuv420p")
    assert (video.frame_rate, video.time_base, video.sample_aspect_ratio) == ((25, 1), (1, 12800), (1, 1))
    assert (audio.name, audio.sample_rate, audio.num_channels) == ("aac", 44100, 1)
    assert (audio.sample_fmt, audio.channel_layout) == ("fltp", "mono")
    assert (image.name, image.width) == ("h264", 64)
    assert [type(c).__name__ for c in (video, audio, image)] == ["VideoCodec", "AudioCodec", "ImageCodec"]
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(video)
    with pytest.raises(TypeError):
        type(video)()


@pytest.mark.parametrize(
    "window", [(0.5, 1), ("1/2", 1.0), (Decimal("0.5"), Fraction(1)), (0.48000001, 0.99999), (0.5, "0.96000001")]
)
def test_windows(clip, window):
    packets = demux_video(clip, timestamp=window)
    assert len(packets) == 12
    assert packets.get_timestamps() == pytest.approx([i / 25 for i in range(13, 25)])
    assert packets.timestamp == (float(Fraction(window[0])), float(Fraction(window[1])))
    raw = packets.get_timestamps(raw=True)
    assert raw[0] == pytest.approx(0.4)  # its key frame
    assert raw != sorted(raw)
    assert set(packets.get_timestamps()) <= set(raw)


def test_a_window_includes_its_start_and_not_its_end(clip):
    assert len(demux_video(clip, timestamp=("13/25", "14/25"))) == 1
    assert len(demux_video(clip, timestamp=(Fraction(13, 25) + Fraction(1, 10**9), "14/25"))) == 0
    assert len(demux_video(clip, timestamp=("13/25", Fraction(14, 25) + Fraction(1, 10**9)))) == 2


@pytest.mark.parametrize("window", [(5, 6), (-3, -2), (10**12, 10**13)])
def test_windows_beyond_the_stream(clip, window):
    packets = demux_video(clip, timestamp=window)
    assert len(packets) == 0
    assert packets.get_timestamps() == []


def test_a_window_of_everything(clip):
    assert len(demux_video(clip, timestamp=(-(10**12), 10**12))) == 50
    assert demux_video(clip).timestamp is None


def test_audio_windows(clip):
    packets = demux_audio(clip, timestamp=(0.5, 1))
    assert isinstance(packets, AudioPackets)
    assert (packets.sample_rate, packets.num_channels) == (44100, 1)
    assert len(packets) == 22
    assert not hasattr(packets, "get_timestamps")


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "avi", "mov", "webm", "flv"])
def test_windows_in_other_containers(tmp_path, suffix):
    codec = ["-c:v", "libvpx", "-g", "10"] if suffix == "webm" else X264
    if suffix == "avi":
        codec = ["-c:v", "mpeg4", "-g", "10"]
    path = make(tmp_path / f"clip.{suffix}", *codec)
    every = demux_video(path).get_timestamps()
    assert len(every) == 50
    with Demuxer(path) as demuxer:
        for start, end in [(0.9, 1.3), (0.1, 0.2), (1.9, 9), (0, 0.5), (0.41, 0.42)]:
            window = (every[0] + start - 1e-6, every[0] + end - 1e-6)
            expected = [t for t in every if window[0] <= t < window[1]]
            assert demuxer.demux_video(window).get_timestamps() == expected


def test_one_demuxer_many_reads(clip):
    with Demuxer(clip) as demuxer:
        assert len(demuxer.demux_video()) == 50
        assert len(demuxer.demux_audio()) == 88
        assert len(demuxer.demux_video((1, 2))) == 25
        assert len(demuxer.demux_video()) == 50
        assert isinstance(demuxer.demux_image(), ImagePackets)


def test_a_closed_demuxer(clip):
    with Demuxer(clip) as demuxer:
        pass
    with pytest.raises(ValueError, match="closed"):
        demuxer.demux_video()
    demuxer.close()


def test_a_cancelled_demuxer(clip):
    with Demuxer(clip) as demuxer:
        demuxer.cancel()
        with pytest.raises(stoker.CancelledError):
            demuxer.demux_video()


def test_a_reader_that_ends_while_it_is_waited_for():
    reader, writer = os.pipe()
    opened = threading.Event()
    os.write(writer, b"\x47" + bytes(187))

    class Slow:
        def read(self, n):
            opened.set()
            return os.read(reader, n)

    errors = []

    def run():
        try:
            demux_video(Slow())
        except stoker.Error as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    opened.wait()
    os.close(writer)
    thread.join()
    os.close(reader)
    assert len(errors) == 1


def test_streaming_one(clip):
    with Demuxer(clip) as demuxer:
        parts = list(demuxer.streaming_demux(num_packets=20))
    assert [len(part) for part in parts] == [20, 20, 10]
    assert all(isinstance(part, VideoPackets) and part.codec is None for part in parts)
    times = [t for part in parts for t in part.get_timestamps(raw=True)]
    assert sorted(times) == pytest.approx([i / 25 for i in range(50)])


def test_streaming_several(clip):
    with Demuxer(clip) as demuxer:
        parts = list(demuxer.streaming_demux([0, 1], duration=0.5))
    assert all(isinstance(part, dict) for part in parts)
    assert sum(len(part[0]) for part in parts if 0 in part) == 50
    assert sum(len(part[1]) for part in parts if 1 in part) == 88
    assert 4 <= len(parts) <= 5


def test_streaming_needs_a_limit(clip):
    with Demuxer(clip) as demuxer:
        with pytest.raises(ValueError, match="duration or num_packets"):
            demuxer.streaming_demux()
        with pytest.raises(stoker.NotFoundError, match="no stream 7"):
            next(demuxer.streaming_demux(7, num_packets=1))
        with pytest.raises(ValueError, match="at least one"):
            demuxer.streaming_demux([], num_packets=1)


def test_streams_of_text_are_no_packets(clip, tmp_path):
    text, path = tmp_path / "text.srt", tmp_path / "text.mkv"
    text.write_text("1\n00:00:00,000 --> 00:00:01,000\nHello\n")
    ffmpeg("-i", clip, "-i", text, "-map", "0:v", "-map", "1", "-c:v", "copy", path)
    with Demuxer(path) as demuxer:
        with pytest.raises(stoker.NotFoundError, match="stream 1 is neither audio nor video"):
            next(demuxer.streaming_demux([0, 1], num_packets=1))
        assert len(next(demuxer.streaming_demux([0], num_packets=7))[0]) == 7


@pytest.mark.parametrize("window", [None, (0.5, 1)])
def test_pickle(clip, window):
    for packets in (demux_video(clip, timestamp=window), demux_audio(clip, timestamp=window), demux_image(clip)):
        again = pickle.loads(pickle.dumps(packets))
        assert type(again) is type(packets)
        assert again.serialize() == packets.serialize()
        assert repr(again) == repr(packets)
        assert repr(again.codec) == repr(packets.codec)


def test_deserialize_with_and_without_a_copy(clip):
    packets = demux_video(clip)
    data = bytearray(packets.serialize())
    copied, view = VideoPackets.deserialize(data), VideoPackets.deserialize_view(data)
    with pytest.raises(BufferError):
        data.append(0)  # the view keeps it
    assert copied.get_timestamps() == view.get_timestamps() == packets.get_timestamps()
    del view
    gc.collect()
    VideoPackets.deserialize(b"" or packets.serialize())  # gives the domain a chance to drain
    data.append(0)
    with pytest.raises(stoker.CorruptError):
        VideoPackets.deserialize(data)
    with pytest.raises(TypeError, match="AudioPackets"):
        AudioPackets.deserialize(packets.serialize())


def test_damaged_packets(clip):
    data = demux_video(clip, timestamp=(0, "1/25")).serialize()
    for n in range(len(data)):
        with pytest.raises(stoker.CorruptError):
            VideoPackets.deserialize(data[:n])
    for i in range(0, min(len(data), 1200)):
        damaged = bytearray(data)
        damaged[i] ^= 0xFF
        try:
            packets = VideoPackets.deserialize(damaged)
        except (stoker.CorruptError, TypeError):
            continue
        len(packets), packets.get_timestamps(raw=True), repr(packets)


def test_another_process(clip):
    data = demux_video(clip, timestamp=(0.5, 1)).serialize()
    text = ok(
        """
        import pickle, stoker.io
        packets = pickle.loads(bytes.fromhex(sys.argv[1]))
        print(len(packets), stoker.io.convert_frames(stoker.io.decode_packets(packets)).shape)
        """,
        pickle.dumps(VideoPackets.deserialize(data)).hex(),
    )
    assert text == "12 (12, 48, 64, 3)\n"


def test_clone_and_lifetime(clip):
    data = clip.read_bytes()
    packets = demux_video(data)
    assert f"Bytes: {np.frombuffer(data, np.uint8).ctypes.data:#x}" in str(packets)
    clone = packets.clone()
    del packets, data
    gc.collect()
    assert len(clone) == 50


def test_bitstream_filters(clip):
    packets = demux_video(clip)
    once = apply_bsf(packets, "h264_mp4toannexb")
    assert len(once) == 50
    assert once.codec.name == "h264"
    assert once.serialize() != packets.serialize()
    assert demux_video(clip, bsf="h264_mp4toannexb").get_timestamps() == packets.get_timestamps()
    with Demuxer(clip) as demuxer:
        bsf = BSF(demuxer.video_codec, "h264_mp4toannexb")
        parts = [bsf.filter(part) for part in demuxer.streaming_demux(num_packets=20)] + [bsf.flush()]
    assert sum(len(part) for part in parts) == 50
    assert all(part.codec is None for part in parts)
    with pytest.raises(stoker.InvalidArgumentError, match="nosuch"):
        apply_bsf(packets, "nosuch")
    with pytest.raises(TypeError):
        BSF("h264", "null")  # type: ignore[arg-type]


def test_options(clip):
    with pytest.raises(stoker.InvalidArgumentError, match="no option 'nosuch'"):
        demux_video(clip, demux_config=demux_config(format_options={"nosuch": "1"}))
    with pytest.raises(stoker.UnsupportedError, match="no demuxer 'nosuch'"):
        demux_video(clip, demux_config=demux_config(format="nosuch"))
    assert len(demux_video(clip, demux_config=demux_config("mov", {"ignore_editlist": "1"}, 100))) == 50
    with pytest.raises(stoker.LimitError, match="max_bytes"):
        demux_video(clip, demux_config=demux_config(max_bytes=100))
    with pytest.raises(TypeError, match="nonsense"):
        demux_video(clip, nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="protocols"):
        demux_config(protocols="file")
    assert demux_config() == demux_config(buffer_size=8096)
