"""A demuxer opens its input and nothing else."""

from __future__ import annotations

import ctypes
import os
import socket
from contextlib import contextmanager

import pytest

import stoker
from stoker.io import demux_config, demux_video

from av import make, needs_ffmpeg

pytestmark = needs_ffmpeg

SEGMENT = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{}\n#EXT-X-ENDLIST\n"
MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{}\n"
KEY = '#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-KEY:METHOD=AES-128,URI="{}"\n#EXTINF:10,\n{}\n#EXT-X-ENDLIST\n'
CONCAT = "ffconcat version 1.0\nfile '{}'\n"
SDP = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {} RTP/AVP 96\na=rtpmap:96 H264/90000\n"


@pytest.fixture
def listener():
    """A server that nobody shall connect to."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


def targets(tmp_path, listener):
    clip = make(tmp_path / "clip.ts", "-c:v", "mpeg4")
    (tmp_path / "secret.ts").symlink_to("/etc/passwd")
    port = listener.getsockname()[1]
    return ["/etc/passwd", "secret.ts", "file:///etc/passwd", str(clip), "clip.ts", f"http://127.0.0.1:{port}/x.ts", f"tcp://127.0.0.1:{port}"]


@contextmanager
def unopened(*paths):
    """None of these files is opened in the block, by anybody."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert fd >= 0
    try:
        for path in paths:
            assert libc.inotify_add_watch(fd, os.fsencode(path), 0x20) >= 0  # IN_OPEN
        yield
        with pytest.raises(BlockingIOError):
            os.read(fd, 4096)
    finally:
        os.close(fd)


def test_that_opening_would_be_seen(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(pytest.fail.Exception), unopened(path):
        path.read_text()


@pytest.mark.parametrize(("name", "text"), [("a.m3u8", SEGMENT), ("a.m3u8", MASTER), ("a.m3u8", KEY), ("a.ffconcat", CONCAT)])
@pytest.mark.parametrize("from_memory", [False, True])
def test_playlists(tmp_path, listener, name, text, from_memory, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret.ts"
    for target in targets(tmp_path, listener):
        path = tmp_path / name
        path.write_text(text.replace("{}", target))
        source = path.read_bytes() if from_memory else path
        with unopened(secret, tmp_path / "clip.ts"), pytest.raises(RuntimeError) as error:
            demux_video(source)
        assert isinstance(error.value, stoker.Error)


@pytest.mark.parametrize("format", ["hls", "concat", "sdp", "rtsp", "dash"])
def test_formats_that_name_others(tmp_path, listener, format):
    port = listener.getsockname()[1]
    for text in (SEGMENT, CONCAT, SDP):
        data = text.replace("{}", str(port) if text is SDP else "/etc/passwd").encode()
        with pytest.raises(stoker.Error):
            demux_video(data, demux_config=demux_config(format=format, timeout=5))


def test_addresses_are_not_inputs(listener):
    with pytest.raises(stoker.NotFoundError, match="Failed to open the input.*protocols"):
        demux_video(f"http://127.0.0.1:{listener.getsockname()[1]}/x.mp4")


def test_the_error_says_what_was_not_opened(tmp_path):
    path = tmp_path / "a.m3u8"
    path.write_text(SEGMENT.format("/etc/secret.ts"))
    with pytest.raises(stoker.UnsupportedError, match=r"/etc/secret.ts.*protocols"):
        demux_video(path)


def test_a_name_is_for_messages_only(tmp_path):
    path = make(tmp_path / "clip.ts", "-c:v", "mpeg2video")
    config = demux_config(protocols=["file"])
    assert len(demux_video(path, demux_config=config, name="elsewhere.ts")) == 50
    with pytest.raises(stoker.Error, match="elsewhere.ts"):
        demux_video(tmp_path / "none.ts", demux_config=config, name="elsewhere.ts")


def test_with_protocols(tmp_path):
    clip = make(tmp_path / "clip.ts", "-c:v", "mpeg4")
    path = tmp_path / "a.m3u8"
    path.write_text(SEGMENT.format(clip.name))
    assert len(demux_video(path, demux_config=demux_config(protocols=["file"]))) == 50
    with pytest.raises(stoker.Error):
        demux_video(path, demux_config=demux_config(protocols=["http", "tcp"]))


def test_a_name_with_a_pattern_is_a_name(tmp_path):
    for i in range(3):
        make(tmp_path / f"img{i}.png", "-frames:v", "1")
    os.rename(tmp_path / "img0.png", tmp_path / "img%d.png")
    assert len(demux_video(tmp_path / "img%d.png")) == 1
