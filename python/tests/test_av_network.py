"""Demuxers and muxers over HTTP and TCP, to servers on 127.0.0.1 that behave and that do not."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import stoker
from stoker.io import Demuxer, InputNotFoundError, Muxer, convert_frames, decode_packets, demux_config, demux_video

from av import VIDEOS, make, needs, needs_ffmpeg
from network import deaf, free_port, receiving, sending, serving
from support import Alarm, alarm, ok, pass_time, until

pytestmark = needs_ffmpeg

TCP = demux_config(protocols=["tcp"], timeout=60)
HTTP = demux_config(protocols=["http", "tcp"], timeout=60)
CLIPS = {
    "clip.ts": ["-c:v", "mpeg2video", "-g", "10"],
    "begin.mp4": ["-c:v", "mpeg4", "-g", "10", "-movflags", "faststart"],
    "end.mp4": ["-c:v", "mpeg4", "-g", "10"],
    "clip.mkv": ["-c:v", "mpeg4", "-g", "10"],
}


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    return {name: make(folder / name, *options) for name, options in CLIPS.items()}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Packets of 11 MB together: more than a connection holds that nobody reads from."""
    return demux_video(make(tmp_path_factory.mktemp("raw") / "raw.nut", *VIDEOS["raw.nut"], size="320x240"))


def pictures(packets):
    return np.asarray(convert_frames(decode_packets(packets, strict=True)))


# --- reading ---


@pytest.mark.parametrize("name", CLIPS)
def test_http(clips, name):
    path = clips[name]
    with serving(path.read_bytes()) as files, Demuxer(files.address(name), demux_config=HTTP) as demuxer:
        assert np.array_equal(pictures(demuxer.demux_video()), pictures(demux_video(path)))
        window = ("1.6", "1.8")
        assert np.array_equal(pictures(demuxer.demux_video(window)), pictures(demux_video(path, timestamp=window)))
        assert all(files.asked)


@pytest.mark.parametrize("name", ["clip.ts", "begin.mp4", "clip.mkv"])
def test_http_without_ranges(clips, name):
    path = clips[name]
    with serving(path.read_bytes(), ranges=False) as files:
        assert np.array_equal(pictures(demux_video(files.address(name), demux_config=HTTP)), pictures(demux_video(path)))
        assert len(files.asked) == 1
        with Demuxer(files.address(name), demux_config=HTTP) as demuxer:
            demuxer.demux_video()
            with pytest.raises(stoker.UnsupportedError, match="cannot go back"):
                demuxer.demux_video()


def test_an_index_at_the_end_without_ranges(clips):
    path = clips["end.mp4"]
    with serving(path.read_bytes() + bytes(1 << 17), ranges=False) as files:
        try:
            found = pictures(demux_video(files.address("end.mp4"), demux_config=HTTP))
        except stoker.Error as error:
            assert str(error)
        else:  # all of it was near enough
            assert np.array_equal(found, pictures(demux_video(path)))


def test_what_a_server_answers(clips):
    with serving(clips["clip.ts"].read_bytes()) as files:
        with pytest.raises(InputNotFoundError, match="404") as raised:
            Demuxer(files.address("none"), demux_config=HTTP)
        assert raised.value.key == files.address("none")
        with pytest.raises(stoker.IOError, match="403"):
            Demuxer(files.address("secret"), demux_config=HTTP)
    for scheme in "http", "tcp":
        with pytest.raises(stoker.IOError, match="Connection refused"):
            Demuxer(f"{scheme}://127.0.0.1:{free_port()}/x.ts", demux_config=HTTP)


@pytest.mark.parametrize("name", CLIPS)
def test_a_connection_that_breaks_is_no_end(clips, name):
    data = clips[name].read_bytes()
    for most in len(data) // 2, len(data) - 100:
        with serving(data, most=most) as files, pytest.raises(stoker.Error):
            decode_packets(demux_video(files.address(name), demux_config=HTTP), strict=True)


def test_protocols_that_are_not_named(clips):
    with serving(clips["clip.ts"].read_bytes()) as files:
        for protocols in ["tcp"], ["http"], ["file"]:
            with pytest.raises(stoker.Error):
                demux_video(files.address("clip.ts"), demux_config=demux_config(protocols=protocols))
        assert not files.asked


def test_tcp(clips):
    path = clips["clip.ts"]
    with sending(path.read_bytes()) as address:
        assert np.array_equal(pictures(demux_video(address, demux_config=TCP)), pictures(demux_video(path)))


def test_tcp_that_listens(clips):
    path, port = clips["clip.ts"], free_port()

    def connect():
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", port))
            pass_time(0.01)

    def send():
        with connect() as connection:
            connection.sendall(path.read_bytes())

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(send)
        got = demux_video(f"tcp://127.0.0.1:{port}?listen", demux_config=TCP)
        done.result()
    assert np.array_equal(pictures(got), pictures(demux_video(path)))


# --- servers that stop answering ---


@contextlib.contextmanager
def silent(kind, data, part):
    """An address that sends a part and never ends; `kind`: the protocol."""
    if kind == "http":
        with serving(data, ranges=False, most=part, silent=True) as files:
            yield files.address("clip.ts")
    else:
        with sending(data[:part], end=False) as address:
            yield address


@pytest.mark.parametrize("part", [0, 20_000])
@pytest.mark.parametrize("kind", ["http", "tcp"])
def test_silence_has_a_time_limit(clips, kind, part):
    config = demux_config("mpegts", {"probesize": "8000"}, protocols=["http", "tcp"], timeout=0.25)
    with silent(kind, clips["clip.ts"].read_bytes(), part) as address:
        with pytest.raises(stoker.TimeoutError, match="0.25 s, the timeout"):
            demux_video(address, demux_config=config)


def read_on(demuxer):
    for _ in demuxer.streaming_demux(num_packets=1):
        pass


@pytest.mark.parametrize("how", ["signal", "cancel"])
@pytest.mark.parametrize("kind", ["http", "tcp"])
def test_silence_can_be_ended(clips, kind, how):
    config = demux_config("mpegts", {"probesize": "8000"}, protocols=["http", "tcp"], timeout=None)
    with silent(kind, clips["clip.ts"].read_bytes(), 20_000) as address, Demuxer(address, demux_config=config) as demuxer:
        if how == "signal":
            with pytest.raises(Alarm), alarm():
                read_on(demuxer)
        else:
            with ThreadPoolExecutor(1) as pool:
                reading = pool.submit(read_on, demuxer)
                demuxer.cancel()
                with pytest.raises(stoker.CancelledError):
                    reading.result(60)


# --- writing ---


def muxer_to(address, packets, **options):
    muxer = Muxer(address, format="nut", protocols=["tcp", "http"], **options)
    muxer.add_remux_stream(packets.codec)
    return muxer.open()


def test_muxer_over_tcp(raw):
    with receiving() as (address, all_of_it):
        with muxer_to(address, raw) as muxer:
            muxer.write(0, raw)
        got = all_of_it()
    assert np.array_equal(pictures(demux_video(got)), pictures(raw.clone()))


def test_muxer_over_http(raw):
    with serving() as files:
        with muxer_to(files.address("x.nut"), raw) as muxer:
            muxer.write(0, raw)
        assert files.over.wait(60)
        assert np.array_equal(pictures(demux_video(files.received)), pictures(raw.clone()))


def test_muxer_that_is_refused(raw):
    with pytest.raises(stoker.IOError, match="Connection refused") as raised:
        muxer_to(f"tcp://127.0.0.1:{free_port()}", raw)
    assert isinstance(raised.value, ConnectionRefusedError) or raised.value.errno


def test_a_receiver_that_goes_away(raw):
    with deaf() as (address, waiting):
        muxer = muxer_to(address, raw)
        waiting()
    with pytest.raises(stoker.IOError):  # the connection was reset
        muxer.write(0, raw)
    with contextlib.suppress(stoker.IOError):
        muxer.close()


def test_a_signal_ends_writing(raw):
    with deaf() as (address, _), muxer_to(address, raw, timeout=None) as muxer:
        with pytest.raises(Alarm), alarm():
            muxer.write(0, raw)
        for call in muxer.flush, lambda: muxer.write(0, raw):
            with pytest.raises(stoker.CancelledError, match="nothing can follow what was cut short"):
                call()


@contextlib.contextmanager
def calling(function):
    """A signal that comes every few hundredths of a second, with a handler that is this."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: function())
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_handler_closes_what_it_interrupts(raw, quiet):
    with deaf() as (address, waiting), muxer_to(address, raw, timeout=None) as muxer:

        def close():
            if waiting() > 1000:  # the write waits
                with contextlib.suppress(stoker.BusyError if quiet else ()):
                    muxer.close()

        with pytest.raises(stoker.CancelledError if quiet else stoker.BusyError), calling(close):
            muxer.write(0, raw)


@pytest.mark.parametrize("format", ["matroska", "mpegts"])
def test_close_after_cancel_raises_nothing(clips, format):
    packets = demux_video(clips["clip.ts"])
    with receiving() as (address, _):
        muxer = Muxer(address, format=format, protocols=["tcp"])
        muxer.add_remux_stream(packets.codec)
        with muxer.open():
            muxer.write(0, packets)
            muxer.cancel()


def test_ctrl_c_ends_writing(raw, tmp_path):
    path = make(tmp_path / "raw.nut", *VIDEOS["raw.nut"], size="320x240")
    code = """
        import os, signal, sys, threading
        from stoker.io import Muxer, demux_video
        packets = demux_video(sys.argv[1])
        muxer = Muxer(sys.argv[2], format="nut", protocols=["tcp"], timeout=None)
        muxer.add_remux_stream(packets.codec)
        try:
            with muxer.open():
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                muxer.write(0, packets)
        except KeyboardInterrupt:
            print("interrupted")
    """
    with deaf() as (address, _):
        assert ok(code, path, address) == "interrupted\n"


def test_a_signal_ends_writing_to_a_pipe(raw, tmp_path):
    os.mkfifo(tmp_path / "x.nut")
    reader = os.open(tmp_path / "x.nut", os.O_RDONLY | os.O_NONBLOCK)
    try:
        muxer = Muxer(tmp_path / "x.nut")
        muxer.add_remux_stream(raw.codec)
        with muxer.open(), pytest.raises(Alarm), alarm():
            muxer.write(0, raw)
    finally:
        os.close(reader)


def test_opening_a_pipe_survives_signals(raw, tmp_path):
    """Of handlers that raise nothing, until one does."""
    os.mkfifo(tmp_path / "x.nut")
    muxer = Muxer(tmp_path / "x.nut")
    muxer.add_remux_stream(raw.codec)
    rung = []

    def ring():
        rung.append(None)
        if len(rung) == 4:
            raise Alarm

    with pytest.raises(Alarm), calling(ring):
        muxer.open()


def test_each_signal_while_a_pipe_is_written_to_is_looked_at(raw, tmp_path):
    """Also the one that comes right after another; and a pipe has no time limit."""
    os.mkfifo(tmp_path / "x.nut")
    reader = os.open(tmp_path / "x.nut", os.O_RDONLY | os.O_NONBLOCK)
    rung = []

    def ring():
        rung.append(None)
        signal.setitimer(signal.ITIMER_REAL, 0.02 if len(rung) == 1 else 0)  # no third one follows
        if len(rung) == 2:
            raise Alarm

    try:
        muxer = Muxer(tmp_path / "x.nut", timeout=0)
        muxer.add_remux_stream(raw.codec)
        with muxer.open(), pytest.raises(Alarm), calling(ring):
            muxer.write(0, raw)
    finally:
        os.close(reader)


@needs("muxers", "tee")
def test_a_format_that_opens_addresses_itself(raw):
    with deaf() as (address, _):
        muxer = Muxer(f"[f=nut]{address}", format="tee", protocols=["file", "tcp"], timeout=0.25)
        muxer.add_remux_stream(raw.codec)
        with muxer.open(), pytest.raises(stoker.TimeoutError, match="0.25 s, the timeout"):
            muxer.write(0, raw)


@pytest.mark.parametrize(
    ("dst", "format", "options"),
    [
        pytest.param("x.nut", "fifo", {}, marks=needs("muxers", "fifo")),
        pytest.param("[f=nut:use_fifo=1]x.nut", "tee", {}, marks=needs("muxers", "tee")),
        pytest.param("[f=fifo]x.nut", "tee", {}, marks=needs("muxers", "tee")),
        pytest.param("x.nut", "tee", {"use_fifo": "1"}, marks=needs("muxers", "tee")),
    ],
)
def test_a_muxer_with_a_thread_of_its_own(raw, dst, format, options):
    with pytest.raises(stoker.UnsupportedError, match="thread of its own"):
        muxer = Muxer(dst, format=format, protocols=["file"])
        muxer.add_remux_stream(raw.codec)
        muxer.open(options)


def test_writing_has_a_time_limit(raw):
    with deaf() as (address, _), muxer_to(address, raw, timeout=0.25) as muxer:
        with pytest.raises(stoker.TimeoutError, match="cannot write.*0.25 s, the timeout"):
            muxer.write(0, raw)
    with pytest.raises(stoker.TimeoutError, match="Failed to open"):
        muxer_to(f"tcp://127.0.0.1:{free_port()}?listen", raw, timeout=0.1)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_another_thread_ends_writing(raw, how):
    with deaf() as (address, waiting), ThreadPoolExecutor(1) as pool:
        muxer = muxer_to(address, raw, timeout=None)
        writing = pool.submit(muxer.write, 0, raw)
        until(lambda: waiting() > 1000)
        getattr(muxer, how)()
        with pytest.raises(stoker.CancelledError):
            writing.result(60)
        muxer.close()
        with pytest.raises(stoker.CancelledError):
            muxer.write(0, raw)


def test_cancel_between_calls(raw, tmp_path):
    with receiving() as (address, _):
        muxer = muxer_to(address, raw)
        muxer.cancel()
        with pytest.raises(stoker.CancelledError):
            muxer.write(0, raw)
        muxer.close()
    path = tmp_path / "x.nut"  # a file is completed
    muxer = Muxer(path)
    muxer.add_remux_stream(raw.codec)
    with muxer.open():
        muxer.write(0, raw)
        muxer.cancel()
        with pytest.raises(stoker.CancelledError):
            muxer.write(0, raw)
    assert np.array_equal(pictures(demux_video(path)), pictures(raw.clone()))
    muxer = Muxer(path)
    muxer.add_remux_stream(raw.codec)
    muxer.cancel()
    with pytest.raises(stoker.CancelledError):
        muxer.open()


def test_a_forgotten_muxer_waits_for_nobody(raw):
    with deaf() as (address, _):
        muxer = muxer_to(address, raw, timeout=None)
        with pytest.warns(ResourceWarning, match="was not closed"):
            del muxer
            gc.collect()


# --- passwords ---


def test_a_password_is_used(clips):
    path = clips["clip.ts"]
    with serving(path.read_bytes(), user="me:secret") as files:
        got = demux_video(files.address("clip.ts", "me:secret"), demux_config=HTTP)
        assert len(got) == 50 and "secret" not in repr(got)
        with pytest.raises(stoker.IOError, match="401") as raised:
            demux_video(files.address("clip.ts", "me:hidden"), demux_config=HTTP)
        hides(raised.value)


def hides(error):
    texts = [str(error), repr(error), str(error.args), str(getattr(error, "key", "")), *getattr(error, "__notes__", [])]
    assert not any("hidden" in text for text in texts), texts


def test_passwords_are_in_no_error_of_demuxers(tmp_path):
    at = f"me:hidden@127.0.0.1:{free_port()}/x.ts"
    playlist = tmp_path / "a.m3u8"
    playlist.write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nhttp://{at}\n#EXT-X-ENDLIST\n")
    for src, config in [
        (f"http://{at}", HTTP),
        (f"http://{at}", TCP),
        (f"http://{at}", None),
        (f"tcp://{at}", TCP),
        (f"http://me:h@i:hidden@127.0.0.1:{free_port()}", HTTP),
        (f"http://{at}\0", HTTP),
        (f"gopher://{at}", HTTP),
        (playlist, None),
    ]:
        with pytest.raises((stoker.Error, ValueError)) as raised:
            Demuxer(src, demux_config=config)
        hides(raised.value)
        assert "127.0.0.1" in str(raised.value)
    with serving(b"x" * 100_000) as files, pytest.raises(stoker.Error) as raised:
        Demuxer(files.address("x", "me:hidden"), demux_config=HTTP)
    hides(raised.value)
    with silent("http", b"x" * 1000, 0) as address, pytest.raises(stoker.TimeoutError) as raised:
        Demuxer(address.replace("//", "//me:hidden@"), demux_config=demux_config(protocols=["http", "tcp"], timeout=0.1))
    hides(raised.value)


def test_passwords_are_in_no_error_of_muxers(raw):
    at = f"me:hidden@127.0.0.1:{free_port()}/x"
    for address in f"tcp://{at}", f"http://{at}", f"gopher://{at}":
        with pytest.raises(stoker.Error) as raised:
            muxer_to(address, raw)
        hides(raised.value)
        assert "127.0.0.1" in str(raised.value)
    with pytest.raises(stoker.InvalidArgumentError, match="no format") as raised:
        Muxer(f"tcp://{at}.nonsense", protocols=["tcp"])
    hides(raised.value)
    with pytest.raises(ValueError, match="null character") as raised:
        Muxer(f"tcp://{at}\0")
    hides(raised.value)
    with receiving() as (address, _), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        muxer = muxer_to(address.replace("//", "//me:hidden@"), raw)
        assert "hidden" not in repr(muxer)
        del muxer
        gc.collect()
    assert caught and not any("hidden" in str(warning.message) for warning in caught)
