"""What waits for an input can be ended: by signals on the main thread, by cancel() from any."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

import stoker
from stoker.io import Demuxer, demux_config, demux_video

from av import make, needs_ffmpeg
from support import Alarm, alarm, ok, pass_time

pytestmark = needs_ffmpeg


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return make(tmp_path_factory.mktemp("interrupt") / "clip.ts", "-c:v", "mpeg2video", seconds=20)


@pytest.fixture
def fifo(tmp_path):
    """A pipe with a name, into which nobody writes."""
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_a_signal_ends_opening(fifo):
    with pytest.raises(Alarm), alarm():
        Demuxer(fifo, demux_config=demux_config(timeout=None))


def test_a_signal_ends_connecting_and_reading_by_protocols():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Alarm), alarm():
            demux_video(address, demux_config=demux_config(protocols=["tcp"], timeout=None))


@contextmanager
def half_read(fifo, clip):
    """A demuxer whose input stops in the middle; the event says that it did."""
    data = clip.read_bytes()
    stopped, over = threading.Event(), threading.Event()
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # without one the pipe cannot be opened to be written to
    out = os.open(fifo, os.O_WRONLY)

    def write():
        with suppress(BrokenPipeError), open(out, "wb", buffering=0) as end:
            end.write(data[: len(data) * 3 // 4])
            stopped.set()
            over.wait()

    writer = threading.Thread(target=write)
    writer.start()
    config = demux_config("mpegts", {"probesize": "50000"}, timeout=None)
    try:
        with Demuxer(fifo, demux_config=config) as demuxer:
            os.close(reader)
            yield demuxer, stopped
    finally:
        over.set()
        writer.join()


def test_a_signal_ends_reading(fifo, clip):
    with half_read(fifo, clip) as (demuxer, _), pytest.raises(Alarm), alarm():
        demuxer.demux_video()


def test_a_signal_ends_streaming(fifo, clip):
    with half_read(fifo, clip) as (demuxer, _), pytest.raises(Alarm), alarm(0.2):
        for _ in demuxer.streaming_demux(num_packets=1):
            pass


def test_cancel_ends_reading(fifo, clip):
    with half_read(fifo, clip) as (demuxer, stopped):

        def cancel():
            stopped.wait()
            pass_time(0.05)
            demuxer.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(stoker.CancelledError):
            demuxer.demux_video()
        thread.join()


def test_ctrl_c(fifo):
    code = """
        import os, signal, sys, threading
        from stoker.io import Demuxer, LiveReader
        for reader in Demuxer, lambda path: next(LiveReader(path, timeout=None)):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                reader(sys.argv[1])
            except KeyboardInterrupt:
                print("interrupted")
    """
    assert ok(code, fifo) == "interrupted\n" * 2
