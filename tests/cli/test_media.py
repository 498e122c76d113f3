"""stoker info of what FFmpeg opens."""

import json
import os
import shutil
import struct
import subprocess
import wave

import pytest
from conftest import picture

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
def test_videos_that_are_to_be_turned(stoker, tmp_path):
    """The display matrix of a track's header (ISO 14496-12, 8.3.2) as EXIF's orientation, and in words."""
    path = tmp_path / "phone.mp4"
    source = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.4", "-c:v", "mpeg4"]
    subprocess.run([FFMPEG, "-v", "error", *source, path], check=True, timeout=100)
    data = path.read_bytes()
    at = data.index(b"tkhd") + 44
    for matrix, orientation, words in (((0, 1, -1, 0), 6, ", 64x48, yuv420p, rotated 90, 25"), ((-1, 0, 0, 1), 2, ", mirrored, "), ((1, 0, 0, 1), 1, ", yuv420p, 25")):
        a, b, c, d = (value << 16 for value in matrix)
        path.write_bytes(data[:at] + struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30) + data[at + 36 :])
        done = stoker("info", path)
        assert done.returncode == 0 and words in done.stdout
        (found,) = json.loads(stoker("info", "--json", path).stdout)
        assert found["streams"][0]["orientation"] == orientation


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
    neither = "does not decode: it is no image, sound, video, array, table or archive that can be opened: Failed to open the input: "
    assert neither in cut and neither in noise
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
    (tmp_path / "words.txt").write_text("no picture\n")
    files = [tmp_path / "clip.mp4", tmp_path / "words.txt"]
    done = stoker("info", *files, env={**os.environ, "STOKER_AV_MODULE": "/nonexistent.so"})
    assert done.returncode == 1
    for file, line in zip(files, done.stdout.splitlines(), strict=True):
        assert line.startswith(f"{file}: does not decode: it is no image, array, table or archive that Stoker knows, and FFmpeg")
        assert "does not load: STOKER_AV_MODULE: /nonexistent.so" in line


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


@pytest.fixture(scope="module")
def sounds(clip):
    """The clip's sound in three formats, by ending."""
    paths = {ending: clip.with_suffix(f".{ending}") for ending in ("flac", "wav", "mp3")}
    for path in paths.values():
        subprocess.run([FFMPEG, "-v", "error", "-i", clip, "-vn", path], check=True, timeout=100)
    return paths


def shard(path, members):
    """An archive, by the ending of `path`, of files by their names in it."""
    folder = path.parent / f"of-{path.name}"
    for name, file in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / name)
    shutil.make_archive(str(path.with_suffix("")), path.suffix[1:], folder)
    shutil.rmtree(folder)
    return path


def loaded(done):
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    [decoder] = [stage["name"] for stage in found["stages"] if stage["name"].startswith("decode")]
    return found["kind"], decoder, found["images"]


@needs_ffmpeg
@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_bench_of_shards_of_video(stoker, clip, tmp_path, ending):
    words = tmp_path / "words"
    words.write_text("{}")
    for k in range(2):
        members = {f"{k}{i}.{e}": clip if e == "MP4" else words for i in range(3) for e in ("MP4", "json")}
        shard(tmp_path / f"{k}.{ending}", members)
    words.unlink()
    options = ["--json", "--size", 32, "--frames", 4]
    assert loaded(stoker("bench", tmp_path / f"0.{ending}", *options)) == ("video", "decode_video", 3)
    assert loaded(stoker("bench", tmp_path, *options)) == ("video", "decode_video", 6)
    assert "decode_video" in stoker("plan", tmp_path).stdout


@needs_ffmpeg
@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_bench_of_shards_of_sound(stoker, sounds, tmp_path, ending):
    shard(tmp_path / f"a.{ending}", {"x/0.flac": sounds["flac"], "x/1.wav": sounds["wav"]})
    shard(tmp_path / f"b.{ending}", {"2.mp3": sounds["mp3"]})
    options = ["--json", "--seconds", 1, "--rate", 8000]
    assert loaded(stoker("bench", tmp_path / f"a.{ending}", *options)) == ("audio", "decode_audio", 2)
    assert loaded(stoker("bench", tmp_path, *options)) == ("audio", "decode_audio", 3)


@needs_ffmpeg
def test_a_shard_that_cannot_be_read_decides_nothing(stoker, clip, tmp_path):
    (tmp_path / "a.tar").write_text("no archive")
    shard(tmp_path / "b.tar", {"0.mp4": clip})
    done = stoker("bench", tmp_path, "--json", "--size", 32, "--on-error", "skip")
    found = json.loads(done.stdout)
    assert (found["kind"], found["images"], found["failed"]) == ("video", 1, 1)
    assert "a.tar" in found["failures"][0]["key"]


@needs_ffmpeg
def test_what_most_files_are_decides(stoker, clip, tmp_path):
    options = ["--json", "--size", 32, "--frames", 4, "--seconds", 1]
    shutil.copy(clip, tmp_path / "1.mp4")
    picture(20, 20, 1).save(tmp_path / "thumb.png")
    assert loaded(stoker("bench", tmp_path, *options)) == ("image", "decode_image", 1)
    for kind in ("video", "image", "audio"):  # sound: no file has an ending of it
        done = stoker("bench", tmp_path, *options, "--kind", kind)
        assert json.loads(done.stdout)["kind"] == kind and done.returncode == (kind == "audio")
    shutil.copy(clip, tmp_path / "2.m4v")
    assert loaded(stoker("bench", tmp_path, *options)) == ("video", "decode_video", 2)
    assert stoker("sheet", tmp_path, tmp_path / "sheet.png").returncode == 0, "a sheet shows images"


@needs_ffmpeg
def test_files_below_folders_count(stoker, clip, tmp_path):
    picture(20, 20, 1).save(tmp_path / "logo.png")
    for name in ("a/1.wmv", "a/2.flv", "b/3.3gp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(clip, tmp_path / name)
    done = stoker("bench", tmp_path, "--json", "--size", 32)
    assert loaded(done) == ("video", "decode_video", 3) and json.loads(done.stdout)["classes"] == 2
    assert stoker("bench", tmp_path, "--json", "--kind", "image", "--size", 32).stdout.count('"images": 1,') == 1


def write_wav(path, rate):
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, rate, 0, "NONE", ""))
        file.writeframes(bytes(4 * rate * 2))


def test_wav_needs_no_ffmpeg(stoker, tmp_path):
    without = {"env": {**os.environ, "STOKER_AV_MODULE": "/nonexistent.so"}}
    for name in ("a", "b"):
        write_wav(tmp_path / f"{name}.wav", 11025)
    options = ["--json", "--seconds", 1]
    assert loaded(stoker("bench", tmp_path, *options, **without)) == ("audio", "decode_wav", 2)
    (tmp_path / "shards").mkdir()
    archive = shard(tmp_path / "shards/s.tar", {"0.wav": tmp_path / "a.wav"})
    assert loaded(stoker("bench", archive, *options, **without)) == ("audio", "decode_wav", 1)
    (tmp_path / "c.flac").write_bytes(b"")
    done = stoker("bench", tmp_path, *options, **without)
    assert done.returncode == 3 and "STOKER_AV_MODULE: /nonexistent.so" in done.stderr
