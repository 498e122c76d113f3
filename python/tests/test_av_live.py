"""stoker.io.LiveReader: streams of the ffmpeg command over pipes, UDP, TCP and RTSP."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import av
import numpy as np
import pytest
from av import needs_ffmpeg
from support import ok, pass_time, until

import stoker
from stoker import ops
from stoker.io import LiveReader, convert_frames, decode_config, get_video_filter_desc, to_numpy

pytestmark = needs_ffmpeg

H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "5", "-pix_fmt", "yuv420p"]
SIZE = "64x48"


@contextlib.contextmanager
def sender(*out: object, stdout=subprocess.DEVNULL, source: object = None, seconds: float | None = 60, codec=H264):
    """The ffmpeg command, as it sends a test picture at 25 frames a second until it is stopped."""
    given = ["-i", source] if source else ["-re", "-f", "lavfi", "-i", f"testsrc2=s={SIZE}:r=25:d={seconds}"]
    line = [av.COMMAND, "-nostdin", "-v", "error", *map(str, given), *codec, *map(str, out)]
    with subprocess.Popen(line, stdout=stdout, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def free_port(kind=socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def arrays(live: LiveReader) -> list[np.ndarray]:
    return [to_numpy(convert_frames(frame)) for frame in live]


def balanced(live: LiveReader) -> stoker.io.LiveStats:
    stats = live.stats()
    assert stats.received == stats.delivered + stats.dropped + stats.waiting
    return stats


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> Path:
    return av.make(tmp_path_factory.mktemp("live") / "clip.ts", *H264, size=SIZE)


@pytest.fixture
def fifo(tmp_path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def reading() -> int:
    """Threads of live input, and those of FFmpeg's that they made."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it ended
            names.append((task / "comm").read_text().strip())
    return names.count("stoker-live")


@contextlib.contextmanager
def nothing_left():
    """No thread and no descriptor that was not there before."""
    before = os.listdir("/proc/self/fd")
    yield
    assert os.listdir("/proc/self/fd") == before
    until(lambda: not reading())  # a thread that was joined is listed a moment longer


def test_pipe_of_a_command_gives_every_frame(clip) -> None:
    with nothing_left(), sender("-f", "mpegts", "-", source=clip, codec=["-c", "copy"], stdout=subprocess.PIPE) as process:
        with LiveReader(process.stdout, low_latency=False, queue=2, timeout=60) as live:
            got = arrays(live)
            assert next(live, None) is None
        assert np.array_equal(got, av.pixels(clip))
        stats = balanced(live)
    assert (stats.received, stats.dropped, stats.waiting, stats.failed) == (50, 0, 0, 0)
    assert 0 <= stats.latency_p50 <= stats.latency_p90 <= stats.latency_p99 <= stats.latency_max


@pytest.mark.parametrize("codec", ["h264.ts", "h264_long.mp4", "mpeg4.avi", "mpeg2_open.mpg", "vp8.webm", "mjpeg.avi"])
def test_low_latency_gives_the_same_pictures(codec, tmp_path) -> None:
    source = av.make(tmp_path / codec, *av.VIDEOS[codec])
    with LiveReader(source, queue=1000) as live:
        got = arrays(live)
    want = av.pixels(source)
    assert len(got) == len(want) and np.array_equal(got, want)


@pytest.mark.parametrize("by", ["path", "descriptor"])
def test_fifo(by, fifo, clip) -> None:
    opened = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if by == "descriptor" else None
    with LiveReader(fifo if opened is None else opened, low_latency=False, timeout=60) as live:
        with sender("-y", "-f", "nut", fifo, source=clip, codec=["-c", "copy"]):
            assert len(arrays(live)) == 50
    if opened is not None:
        os.close(opened)  # it stayed open


def test_slow_reader_gets_the_newest(clip) -> None:
    with LiveReader(clip, queue=4) as live:
        until(lambda: balanced(live).received == 50)
        times = [frame.pts for frame in live]
    assert times == pytest.approx(av_times(clip)[-4:])
    stats = balanced(live)
    assert (stats.delivered, stats.dropped, stats.waiting) == (4, 46, 0)


def av_times(path: Path) -> list[float]:
    with stoker.io.Demuxer(path) as demuxer:
        return stoker.io.decode_packets(demuxer.demux_video()).get_timestamps()


def test_nothing_is_lost_without_low_latency(clip) -> None:
    with LiveReader(clip, low_latency=False, queue=1) as live:
        assert [frame.pts for frame in live] == pytest.approx(av_times(clip))
        assert balanced(live).dropped == 0


def test_udp() -> None:
    port = free_port(socket.SOCK_DGRAM)
    with nothing_left():
        with LiveReader(f"udp://127.0.0.1:{port}", filter_desc=get_video_filter_desc(scale_width=32, scale_height=24), timeout=60) as live:
            with sender("-f", "mpegts", f"udp://127.0.0.1:{port}?pkt_size=1316"):
                for frame, _ in zip(live, range(10), strict=False):
                    assert to_numpy(convert_frames(frame)).shape == (24, 32, 3)
                assert balanced(live).delivered >= 10
    balanced(live)


@pytest.mark.parametrize("by", ["pipe", "udp"])
def test_a_reader_that_is_slower_than_the_sender(by) -> None:
    """Taken every 0.2 s of 25 frames a second, which may come late and at once, until that has shown."""
    pause, taken = 0.2, 5
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        if by == "pipe":
            src = stack.enter_context(sender("-f", "mpegts", "-", stdout=subprocess.PIPE)).stdout
        else:
            src = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
        live = stack.enter_context(LiveReader(src, queue=8, timeout=60))
        if by == "udp":
            stack.enter_context(sender("-f", "mpegts", f"{src}?pkt_size=1316"))
        times = []
        for frame in live:
            times.append(frame.pts)
            pass_time(pause)
            stats = balanced(live)
            skipped = max(np.diff(times), default=0) > 1.5 / 25  # newer ones came, over what was dropped
            if len(times) >= taken and stats.dropped and skipped and stats.latency_max >= 1000 * pause:
                break
        else:
            raise AssertionError(f"it was never slower: {stats}")
        took = time.monotonic() - began
    stats = balanced(live)
    assert stats.delivered == len(times) and stats.waiting == 0
    assert by == "udp" or (stats.failed == 0 and (np.diff(times) > 0).all())  # datagrams may get lost
    assert 0 <= stats.latency_p50 <= stats.latency_p90 <= stats.latency_p99 <= stats.latency_max
    assert stats.latency_max < 1000 * took and took >= len(times) * pause


def test_silence_of_a_sender_that_stopped(clip) -> None:
    data, at = clip.read_bytes(), 0
    port = free_port(socket.SOCK_DGRAM)
    with LiveReader(f"udp://127.0.0.1:{port}", timeout=2) as live, socket.socket(type=socket.SOCK_DGRAM) as out:
        while not live.stats().received:
            assert live.stats().silence < 60
            out.sendto(data[at : at + 1316], ("127.0.0.1", port))
            at = (at + 1316) % len(data)
            pass_time(0.001)
        next(live)
        with pytest.raises(stoker.TimeoutError, match="nothing came for 2 s.*sender"):
            for _ in live:
                pass
        with pytest.raises(TimeoutError, match="wait longer"):
            next(live)
        assert live.stats().silence > 0


def test_nobody_ever_sends(fifo) -> None:
    for src in fifo, f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", f"tcp://127.0.0.1:{free_port()}?listen":
        with nothing_left(), LiveReader(src, timeout=0.1) as live:
            with pytest.raises(stoker.TimeoutError, match=r"nothing came for 0.1 s"):
                next(live)
            assert math.isnan(live.stats().latency_p50) and live.stats().received == 0


@contextlib.contextmanager
def accepting(send):
    """An address of TCP; `send(connection)` is what answers there."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                send(connection)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        thread.join(60)


def test_tcp(clip) -> None:
    def send(connection: socket.socket) -> None:
        with sender("-f", "mpegts", "-", source=clip, codec=["-c", "copy"], stdout=connection.fileno()) as process:
            process.wait(60)

    with accepting(send) as address, LiveReader(address, low_latency=False, timeout=60) as live:
        assert np.array_equal(arrays(live), av.pixels(clip))


def test_rtsp() -> None:
    port = free_port()
    options = {"rtsp_flags": "listen", "listen_timeout": "60"}  # FFmpeg 8.1 refuses its own default of the latter
    with nothing_left(), LiveReader(f"rtsp://127.0.0.1:{port}/live", format_options=options, timeout=60) as live:
        frames = []
        while not frames:  # until it listens, the sender is refused
            with sender("-f", "rtsp", "-rtsp_transport", "tcp", f"rtsp://127.0.0.1:{port}/live") as process:
                while not frames and process.poll() is None:
                    assert live.stats().silence < 60
                    if live.stats().received:
                        frames = [next(live), next(live)]
                    pass_time(0.01)
        assert (frames[0].width, frames[0].height) == (64, 48)


def test_audio(tmp_path) -> None:
    sound = av.tone(tmp_path / "tone.mka", "-c:a", "flac")
    with sender("-f", "matroska", "-", source=sound, codec=["-c", "copy"], stdout=subprocess.PIPE) as process:
        with LiveReader(process.stdout, media="audio", low_latency=False, timeout=60) as live:
            got = np.concatenate([to_numpy(convert_frames(frame)) for frame in live], axis=1)
    assert got.shape[0] == 2 and np.allclose(got.T, av.samples(sound), atol=1e-6)


@pytest.mark.parametrize("waiting", ["opening", "reading"])
def test_close_from_another_thread(waiting, fifo, clip) -> None:
    with nothing_left():
        live = LiveReader(fifo, timeout=None)
        out = os.open(fifo, os.O_WRONLY)
        if waiting == "reading":
            os.write(out, clip.read_bytes()[:20000])
            next(live)
        thread = threading.Thread(target=list, args=(live,))
        thread.start()
        live.close()
        thread.join(60)
        assert not thread.is_alive() and list(live) == []
        live.close()
        balanced(live)
        with pytest.raises(BrokenPipeError), open(out, "wb", buffering=0) as end:
            end.write(b"anybody?")


def test_close_while_the_queue_is_full(clip) -> None:
    with nothing_left():
        with LiveReader(clip, low_latency=False, queue=1) as live:
            next(live)
        assert balanced(live).waiting == 0


def test_forgotten_readers_end(fifo, clip) -> None:
    with nothing_left():
        for src in clip, fifo:
            live = LiveReader(src)
            del live


def test_the_interpreter_ends_with_a_reader_that_waits(fifo) -> None:
    assert ok("from stoker.io import LiveReader; live = LiveReader(sys.argv[1], timeout=None)", fifo) == ""


def test_signals_are_handled_while_it_waits(fifo) -> None:
    class Stop(Exception):
        pass

    def stop(number: int, frame: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with LiveReader(fifo, timeout=None) as live, pytest.raises(Stop):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            next(live)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_while_it_waits(fifo) -> None:
    with LiveReader(fifo, timeout=None) as live:
        thread = threading.Thread(target=next, args=(live, None))
        thread.start()  # would keep the interpreter to itself
        assert live.stats().received == 0
    thread.join(60)
    assert not thread.is_alive()


def test_rubbish_says_what_ffmpeg_says() -> None:
    read, write = os.pipe()
    os.write(write, np.random.default_rng(0).integers(0, 256, 60000, np.uint8).tobytes())
    os.close(write)
    with LiveReader(read, format="matroska") as live:
        for _ in range(2):
            with pytest.raises(stoker.DecodeError, match="descriptor.*Invalid data found"):
                next(live)
    os.close(read)


def test_stream_that_is_cut(clip) -> None:
    read, write = os.pipe()
    os.write(write, clip.read_bytes()[:30000])
    os.close(write)
    with LiveReader(read, low_latency=False) as live:
        assert 0 < len(list(live)) < 50
    os.close(read)


def test_packets_that_cannot_be_decoded_are_counted(tmp_path) -> None:
    source = av.make(tmp_path / "clip.nut", "-c:v", "png")
    data = source.read_bytes()
    at = -1
    for _ in range(20):
        at = data.index(b"IDAT", at + 1)
    source.write_bytes(data[: at + 20] + b"\xff" * 30 + data[at + 50 :])
    with LiveReader(source, queue=100) as live:
        assert len(list(live)) == 49
    assert live.stats().failed == 1


def test_a_stream_that_is_joined_in_the_middle(clip) -> None:
    data = clip.read_bytes()
    starts = [at for at in range(0, len(data), 188) if data[at + 1 : at + 3] == b"\x41\x00"]
    assert len(starts) == 50
    read, write = os.pipe()
    os.write(write, data[starts[2] :][:60000])  # its key frame was the first one
    os.close(write)
    with LiveReader(read, queue=100) as live:
        assert 0 < len(list(live)) <= 45
    os.close(read)


def test_connection_refused() -> None:
    with LiveReader(f"tcp://127.0.0.1:{free_port()}") as live:
        with pytest.raises(stoker.IOError, match="Connection refused"):
            next(live)


def test_a_playlist_from_an_address_opens_nothing(clip) -> None:
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{clip}\n#EXT-X-ENDLIST\n"
    concat = f"ffconcat version 1.0\nfile {clip}\n"
    sdp = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 33\n"
    for text, format in (playlist, None), (playlist, "hls"), (concat, "concat"), (sdp, None):
        with accepting(lambda connection, text=text: connection.sendall(text.encode())) as address:
            with LiveReader(address, format=format) as live, pytest.raises(stoker.Error) as raised:
                next(live)
        assert not isinstance(raised.value, stoker.TimeoutError)
        assert live.stats().received == 0


def test_what_is_wrong(tmp_path, clip) -> None:
    with pytest.raises(stoker.io.InputNotFoundError):
        LiveReader(tmp_path / "none")
    with pytest.raises(stoker.UnsupportedError, match=r"protocols=\[\.\.\.\]"):
        LiveReader("gopher://host/x")
    with pytest.raises(stoker.UnsupportedError, match="no demuxer 'nonesuch'"):
        LiveReader(clip, format="nonesuch")
    for wrong in 1.5, True, None, b"bytes":
        with pytest.raises(TypeError):
            LiveReader(wrong)
    for options in {"queue": 0}, {"timeout": 0}, {"media": "subtitles"}, {"src": -1}, {"src": "a\0b"}:
        with pytest.raises(ValueError):
            LiveReader(**{"src": clip, **options})
    for options in {"protocols": "tcp"}, {"decode_config": 1}, {"low_latency": 1}, {"filter_desc": 3}:
        with pytest.raises(TypeError):
            LiveReader(clip, **options)
    with LiveReader(clip, media="audio") as live, pytest.raises(stoker.io.InputNotFoundError, match="no audio stream, of 1"):
        next(live)
    with LiveReader(clip, format_options={"no_such": "1"}) as live, pytest.raises(stoker.InvalidArgumentError, match="no_such"):
        next(live)
    with LiveReader(clip, filter_desc="nonesuch") as live, pytest.raises(stoker.InvalidArgumentError, match="nonesuch"):
        next(live)
    with LiveReader(clip, decode_config=decode_config("nonesuch")) as live, pytest.raises(stoker.UnsupportedError):
        next(live)


def test_passwords_are_not_in_names(clip) -> None:
    with LiveReader(f"tcp://me:secret@127.0.0.1:{free_port()}/x@y") as live, pytest.raises(stoker.Error) as raised:
        assert repr(live).endswith("/x@y')")
        next(live)
    assert "secret" not in repr(live)
    assert "secret" not in str(raised.value)
    with pytest.raises(stoker.UnsupportedError, match="gopher://host/x: which protocols") as raised:
        LiveReader("gopher://me:secret@host/x")
    assert "secret" not in str(raised.value)


@contextlib.contextmanager
def silent_pipeline(src):
    """A pipeline whose source waits, and will for ever."""
    live = LiveReader(src, timeout=None)
    pipeline = stoker.PipelineBuilder().add_source(live).pipe(convert_frames).add_sink(1).build(num_threads=1)
    pipeline.start()
    until(lambda: any(thread.name.startswith("stoker-source") for thread in threading.enumerate()))
    yield pipeline


def test_a_pipeline_with_a_silent_source_stops(fifo) -> None:
    with nothing_left(), silent_pipeline(fifo) as pipeline:
        pipeline.stop()
        until(lambda: not reading())  # which is not waited for where nobody has begun to iterate


def test_a_forgotten_pipeline_with_a_silent_source_ends(fifo) -> None:
    with silent_pipeline(fifo) as pipeline:
        del pipeline
    gc.collect()
    until(lambda: not reading())


def test_the_interpreter_ends_with_a_silent_pipeline(fifo) -> None:
    code = """
        import stoker
        from stoker.io import LiveReader
        pipeline = stoker.PipelineBuilder().add_source(LiveReader(sys.argv[1], timeout=None)).add_sink(1).build(num_threads=1)
        pipeline.start()
    """
    assert ok(code, fifo) == ""


def test_a_source_of_a_pipeline(clip) -> None:
    with LiveReader(clip, low_latency=False) as live:
        pipeline = stoker.PipelineBuilder().add_source(live).pipe(convert_frames).batch(10).add_sink(1).build(num_threads=1)
        with pipeline.auto_stop():
            got = [np.array(batch.image) for batch in pipeline]
    assert [len(images) for images in got] == [10] * 5
    assert np.array_equal(np.concatenate(got), av.pixels(clip))


def test_native_ops_take_its_frames(clip) -> None:
    want = av.pixels(clip)
    luma = (want @ np.array([0.2989, 0.587, 0.114])).astype(int)
    with LiveReader(clip, low_latency=False) as live:
        builder = stoker.PipelineBuilder().add_source(live).pipe(ops.grayscale(1)).batch(10).pipe(ops.normalize(0, 1, layout="NCHW"))
        got = [np.asarray(batch.image) for batch in builder.add_sink(1).build(num_threads=1)]
    assert [a.shape for a in got] == [(10, 3, 48, 64)] * 5 and np.abs(np.concatenate(got)[:, 0] * 255 - luma).max() < 1.01
    with LiveReader(clip, low_latency=False) as live:  # batches, too
        (batch,) = stoker.PipelineBuilder().add_source(live).batch(50).add_sink(1).build(num_threads=1)
        assert np.array_equal(batch.image, want)


def test_frames_are_arrays_by_dlpack(clip) -> None:
    with LiveReader(clip, low_latency=False) as live:
        frame = next(live)
    first = np.from_dlpack(frame)
    assert first.shape == (48, 64, 3) and np.array_equal(first, np.from_dlpack(frame))
    want = to_numpy(convert_frames(frame))  # not consumed until this
    assert np.array_equal(first, want)
    with pytest.raises(TypeError, match="ImageFrames"):
        np.from_dlpack(frame)
