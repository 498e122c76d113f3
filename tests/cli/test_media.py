"""stoker info of what FFmpeg opens."""

import json
import os
import shutil
import subprocess

import pytest

FFMPEG = shutil.which("ffmpeg")
needs_ffmpeg = pytest.mark.skipif(
    not (FFMPEG and os.environ.get("STOKER_AV_MODULE")), reason="there is no ffmpeg command, or no module for FFmpeg"
)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Two seconds of video with a key frame in each, and of sound."""
    path = tmp_path_factory.mktemp("media") / "clip.mp4"
    inputs = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=2", "-f", "lavfi", "-i", "sine=440:r=44100:d=2"]
    codecs = ["-c:v", "libx264", "-g", "25", "-pix_fmt", "yuv420p", "-c:a", "aac", "-ac", "2"]
    marks = ["-metadata:s:a:0", "language=deu"]
    subprocess.run([FFMPEG, "-v", "error", *inputs, *codecs, *marks, path], check=True, timeout=100)
    return path


@needs_ffmpeg
def test_streams(stoker, clip):
    done = stoker("info", "--json", clip)
    assert done.returncode == 0, done.stdout
    (found,) = json.loads(done.stdout)
    video, audio = found["streams"]
    assert "mp4" in found["format"] and found["num_streams"] == 2 and found["decodes"]
    assert found["seconds"] == pytest.approx(2, abs=0.1)
    assert found["bytes"] == clip.stat().st_size
    assert (video["kind"], video["codec"], video["pix_fmt"]) == ("video", "h264", "yuv420p")
    assert (video["width"], video["height"], video["frame_rate"]) == (64, 48, 25)
    assert (video["packets"], video["key_frames"], video["seconds"], video["start"]) == (50, 2, 2, 0)
    assert (audio["kind"], audio["codec"], audio["language"]) == ("audio", "aac", "deu")
    assert (audio["sample_rate"], audio["channels"], audio["sample_fmt"]) == (44100, 2, "fltp")
    assert video["packet_bytes"] + audio["packet_bytes"] < clip.stat().st_size


@needs_ffmpeg
def test_a_line_each(stoker, clip, tmp_path):
    image = tmp_path / "image.ppm"
    subprocess.run([FFMPEG, "-v", "error", "-i", clip, "-frames:v", "1", image], check=True, timeout=100)
    done = stoker("info", clip, image)
    assert done.returncode == 0, done.stdout
    first, video, audio, second, pixels = done.stdout.splitlines()
    assert first.startswith(f"{clip}: mov,mp4") and first.endswith(" bytes: can be read") and ", 2 streams, " in first
    assert video.startswith("  0: video, h264, 64x48, yuv420p, 25 frames/s") and video.endswith("50 packets, 2 key frames")
    assert audio.startswith("  1: audio, aac, 44100 Hz, 2 channels, fltp, deu") and audio.endswith(" packets")
    assert second.endswith("can be read") and pixels.startswith("  0: video, ppm, 64x48")


@needs_ffmpeg
def test_broken_media(stoker, clip, tmp_path):
    data = clip.read_bytes()
    (tmp_path / "cut.mp4").write_bytes(data[: len(data) // 2])  # what says where things are is at the end
    (tmp_path / "noise.mkv").write_bytes(bytes(range(7)) * 1000)
    flac = tmp_path / "cut.flac"
    subprocess.run([FFMPEG, "-v", "error", "-i", clip, "-vn", flac], check=True, timeout=100)
    done = stoker("info", tmp_path / "cut.mp4", tmp_path / "noise.mkv", flac)
    assert done.returncode == 1
    cut, noise, whole, stream = done.stdout.splitlines()
    assert "does not decode: Failed to open the input" in cut
    assert "does not decode: " in noise
    assert whole.endswith("can be read") and "audio, flac, 44100 Hz" in stream


@needs_ffmpeg
@pytest.mark.parametrize("ending", ["mp4", "mkv", "flac", "avi", "mp3"])
def test_media_that_end_early(stoker, clip, tmp_path, ending):
    path = tmp_path / f"cut.{ending}"
    more = {"mp4": ["-movflags", "faststart"], "flac": ["-vn"], "mp3": ["-vn"]}.get(ending, [])
    subprocess.run([FFMPEG, "-v", "error", "-i", clip, *more, path], check=True, timeout=100)
    assert stoker("info", path).returncode == 0
    whole = json.loads(stoker("info", "--json", path).stdout)[0]
    assert whole["decodes"] and whole["error"] is None
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    done = stoker("info", path)
    assert done.returncode == 1
    first, *streams = done.stdout.splitlines()
    assert f" {path.stat().st_size} bytes: ends early: the last packet of stream 0 " in first
    assert len(streams) == whole["num_streams"]
    (found,) = json.loads(stoker("info", "--json", path).stdout)
    assert not found["decodes"] and found["error"].startswith("ends early: ")
    assert found["streams"][0]["packets"] < whole["streams"][0]["packets"]


@needs_ffmpeg
def test_playlists_open_nothing(stoker, tmp_path):
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n/etc/passwd\n#EXT-X-ENDLIST\n")
    done = stoker("info", tmp_path / "list.m3u8")
    assert done.returncode == 1
    assert "does not decode: " in done.stdout and "root:" not in done.stdout


def test_without_ffmpeg_it_says_what_is_missing(stoker, tmp_path):
    (tmp_path / "clip.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(100))
    done = stoker("info", tmp_path / "clip.mp4", env={**os.environ, "STOKER_AV_MODULE": "/nonexistent.so"})
    assert done.returncode == 1
    assert "does not decode: " in done.stdout and "STOKER_AV_MODULE: /nonexistent.so" in done.stdout


@needs_ffmpeg
def test_bench_of_video(stoker, clip, tmp_path):
    for i in range(6):
        folder = tmp_path / "videos" / f"class{i % 2}" / "deeper"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(clip, folder / f"{i}.MP4")
        (folder / "notes.txt").write_text("words")
    options = ["--size", 32, "--frames", 4, "--stride", 3, "--epochs", 2]
    done = stoker("bench", tmp_path / "videos", "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["kind"], found["images"], found["classes"], found["failed"]) == ("video", 12, 2, 0)
    assert found["batches"] == 2  # each epoch's own, of at most eight
    assert "decode_video" in [stage["name"] for stage in found["stages"]]
    text = stoker("bench", tmp_path / "videos", *options).stdout
    assert "12 clips in " in text and "clips/s      " in text and "CPU ms/clip  " in text
    assert "decode_video" in stoker("plan", tmp_path / "videos", *options).stdout


@needs_ffmpeg
def test_bench_of_sound(stoker, clip, tmp_path):
    for name in ("a.flac", "b.wav", "c.mp3"):
        subprocess.run([FFMPEG, "-v", "error", "-i", clip, "-vn", tmp_path / name], check=True, timeout=100)
    (tmp_path / "d.wav").write_bytes(b"RIFF")
    options = ["--seconds", 1, "--rate", 8000, "--on-error", "skip"]
    found = json.loads(stoker("bench", tmp_path, "--json", *options).stdout)
    assert (found["kind"], found["images"], found["failed"]) == ("audio", 3, 1)
    done = stoker("bench", tmp_path, "--seconds", 1)
    assert done.returncode == 1 and "d.wav" in done.stderr


@needs_ffmpeg
def test_sheets_show_images(stoker, clip, tmp_path):
    done = stoker("sheet", clip.parent, tmp_path / "sheet.png")
    assert done.returncode == 2 and "a sheet shows images" in done.stderr


def test_bench_without_ffmpeg(stoker, tmp_path):
    (tmp_path / "clip.mp4").write_bytes(b"x")
    done = stoker("bench", tmp_path, env={**os.environ, "STOKER_AV_MODULE": "/nonexistent.so"})
    assert done.returncode == 3 and "STOKER_AV_MODULE: /nonexistent.so" in done.stderr
