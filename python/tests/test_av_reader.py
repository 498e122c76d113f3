"""VideoReader: clips of a video by the numbers of their frames, as decoding everything gives them."""

from __future__ import annotations

import gc
import io
import random
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

import stoker
from stoker.io import (
    CPUBuffer,
    VideoPlan,
    VideoReader,
    convert_frames,
    decode_config,
    decode_packets,
    demux_config,
    demux_video,
    sample_decode_video,
)

from av import VIDEOS, decodable, ffmpeg, make, needs_ffmpeg, tone
from support import resident
from test_av_sample import MORE

pytestmark = needs_ffmpeg

EVERY = {**VIDEOS, **MORE}
UNTOLD = ("no_times.h264", "no_times.m4v", "mpeg4.avi")  # times do not tell which packet a frame is
CLIP = 48 * 64 * 3  # bytes of a frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reader")


@pytest.fixture(scope="module")
def clip(folder):
    return make(folder / "clip.mp4", *VIDEOS["h264.mp4"])


@pytest.fixture(scope="module")
def long(folder):
    """250 frames with key frames 50 apart."""
    return make(folder / "long.mp4", "-c:v", "libx264", "-bf", "2", "-g", "50", "-keyint_min", "50",
                "-sc_threshold", "0", "-pix_fmt", "yuv420p", seconds=10)  # fmt: skip


def decoded(path, **options):
    return np.asarray(convert_frames(decode_packets(demux_video(path), **options)))


def clips_of(n, seed):
    """Random clips: runs, strides, backwards, the same frame twice."""
    draw = random.Random(seed)
    clips = []
    for _ in range(8):
        stride, length = draw.randint(1, 3), draw.randint(1, 7)
        first = draw.randrange(n - stride * (length - 1))
        clips.append([first + stride * k for k in range(length)])
    return [*clips, [n - 1], [n - 1, 0], [n // 2] * 2, [5, 3, 4], [0, 1, 2]]


@pytest.mark.parametrize("name", decodable(EVERY))
def test_clips_of_a_video(folder, name):
    path = make(folder / name, *EVERY[name])
    every = decoded(path)
    with VideoReader(path) as reader:
        assert len(reader) >= len(every) >= 50
        for i in range(3, 50, 4):
            np.testing.assert_array_equal(reader.get_frames_at([i]), every[[i]])
            np.testing.assert_array_equal(reader.get_frames_at([i - 2]), every[[i - 2]])
        for seed in range(3):
            clips = clips_of(len(every), seed)
            for indices in clips:
                np.testing.assert_array_equal(reader.get_frames_at(indices), every[indices])
            for max_bytes in (1, 6 * CLIP, 1 << 30):
                got = list(reader.plan(clips, max_bytes=max_bytes))
                assert len(got) == len(clips)
                for found, indices in zip(got, clips, strict=True):
                    np.testing.assert_array_equal(found, every[indices])
                assert reader.stats()["kept_bytes"] == 0


@pytest.mark.parametrize("name", decodable(EVERY))
def test_from_end_to_end(folder, name):
    """Clip after clip each frame is decoded once, and nothing is sought."""
    path = folder / name
    if not path.exists():
        make(path, *EVERY[name])
    every = decoded(path)
    clips = [list(range(i, i + 10)) for i in range(0, 50, 10)]
    with VideoReader(path) as reader:
        got = [np.asarray(reader.get_frames_at(indices)) for indices in clips]
        np.testing.assert_array_equal(np.concatenate(got), every[:50])
        stats = reader.stats()
        assert stats["num_converted"] == 50
        told = name not in ("refresh.ts", "h264_fields.mkv")
        assert not told or (stats["num_decoded"] <= len(every) and stats["num_seeks"] <= 1), stats


def test_what_is_there(clip):
    with VideoReader(clip) as reader:
        assert len(reader) == 50
        assert reader.get_timestamps() == pytest.approx([i / 25 for i in range(50)])
        assert reader.get_key_frames() == [0, 10, 20, 30, 40]
        assert reader.codec.name == "h264"
        frames = reader.get_frames_at([3, 4])
        assert isinstance(frames, CPUBuffer)
        assert (frames.shape, frames.dtype) == ((2, 48, 64, 3), "uint8")


def test_sources(clip):
    every = decoded(clip)
    data = clip.read_bytes()
    for src in (str(clip), data, memoryview(data), np.frombuffer(data, np.uint8), io.BytesIO(data)):
        with VideoReader(src) as reader:
            np.testing.assert_array_equal(reader.get_frames_at([44, 7]), every[[44, 7]])
    with open(clip, "rb") as file, VideoReader(file) as reader:
        np.testing.assert_array_equal(list(reader.plan([[30], [20]])), every[[[30], [20]]])


class Pipe(io.RawIOBase):
    def __init__(self, data):
        self.rest = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, to):
        return self.rest.readinto(to)


def test_what_cannot_seek(folder):
    path = make(folder / "pipe.ts", *VIDEOS["h264.ts"])
    with pytest.raises(stoker.UnsupportedError, match="cannot go back"):
        VideoReader(Pipe(path.read_bytes()))


# --- how much is decoded


def test_an_unplanned_clip_is_decoded_from_the_key_frame_before_it(long):
    with VideoReader(long) as reader:
        for first in (30, 230, 130, 80):
            before = reader.stats()
            reader.get_frames_at(range(first, first + 5))
            after = reader.stats()
            assert after["num_decoded"] - before["num_decoded"] <= first % 50 + 5
            assert after["num_seeks"] - before["num_seeks"] <= 1
            assert after["num_converted"] - before["num_converted"] == 5


def test_a_clip_that_lies_ahead_is_decoded_from_where_the_decoder_is(long):
    with VideoReader(long) as reader:
        reader.get_frames_at(range(100, 105))
        seeks = reader.stats()["num_seeks"]
        for first in (105, 110, 125, 144):
            before = reader.stats()["num_decoded"]
            reader.get_frames_at(range(first, first + 5))
            assert reader.stats()["num_decoded"] - before <= 20
        assert reader.stats()["num_decoded"] <= 50
        reader.get_frames_at([160])  # of the next group: on through the file
        assert reader.stats()["num_seeks"] == seeks
        assert reader.stats()["num_decoded"] <= 50 + 11


def test_frames_that_nobody_wants_are_left_out_where_no_other_needs_them(long):
    with VideoReader(long) as reader:
        reader.get_frames_at([48])
        assert 5 < reader.stats()["num_decoded"] < 40


def test_a_plan_decodes_each_group_once(long):
    every = decoded(long)
    clips = [range(120, 126), range(30, 36), range(102, 108), range(140, 146), range(10, 16), range(240, 246), range(35, 38)]
    with VideoReader(long) as reader:
        for found, indices in zip(reader.plan(clips), clips, strict=True):
            np.testing.assert_array_equal(found, every[indices])
        stats = reader.stats()
        assert stats["num_decoded"] <= 46 + 38 + 46
        assert stats["num_converted"] == len({i for indices in clips for i in indices})
        assert stats["num_seeks"] <= 3
    with VideoReader(long) as reader:
        for indices in clips:
            reader.get_frames_at(indices)
        assert reader.stats()["num_decoded"] > stats["num_decoded"]


def test_a_plan_that_ends_anywhere_in_a_group_decodes_no_other(long):
    """The last frame of a group is decoded before those that are shown before it."""
    every = decoded(long)
    for last in range(80, 101):
        with VideoReader(long) as reader:
            plan = reader.plan([[last - 1, last], [230], [10]])
            for indices in ([last - 1, last], [230], [10]):
                np.testing.assert_array_equal(next(plan), every[indices])
            assert reader.stats()["num_decoded"] <= 52 + 31 + 11


def test_a_plan_keeps_no_more_than_it_may(long):
    every = decoded(long)
    draw = random.Random(3)
    clips = [range(first, first + 4) for first in draw.sample(range(246), 60)]
    decoded_by = []
    for max_clips in (1, 4, 16, 60):
        with VideoReader(long) as reader:
            most = 0
            for found, indices in zip(reader.plan(clips, max_bytes=max_clips * 4 * CLIP), clips, strict=True):
                np.testing.assert_array_equal(found, every[indices])
                most = max(most, reader.stats()["kept_bytes"])
            assert most <= max_clips * 4 * CLIP
            decoded_by.append(reader.stats()["num_decoded"])
    assert decoded_by == sorted(decoded_by, reverse=True)
    assert decoded_by[-1] <= 250 < decoded_by[0]


def test_plans_and_requests_side_by_side(long):
    every = decoded(long)
    with VideoReader(long) as reader:
        one = reader.plan([[200], [100], [201]])
        other = reader.plan([[3, 2], [202]])
        np.testing.assert_array_equal(next(one), every[[200]])
        np.testing.assert_array_equal(next(other), every[[3, 2]])
        np.testing.assert_array_equal(reader.get_frames_at([99]), every[[99]])
        np.testing.assert_array_equal([next(one), next(one)], every[[[100], [201]]])
        np.testing.assert_array_equal(next(other), every[[202]])
        for plan in (one, other, reader.plan([])):
            assert isinstance(plan, VideoPlan)
            assert list(plan) == []


def test_a_plan_that_was_left_keeps_nothing(long):
    with VideoReader(long) as reader:
        plan = reader.plan([[10, 240], [11], [12]])
        next(plan)
        assert reader.stats()["kept_bytes"] == 2 * CLIP
        del plan
        gc.collect()
        assert reader.stats()["kept_bytes"] == 0


# --- times, filters, errors


def test_times(clip):
    every = decoded(clip)
    with VideoReader(clip) as reader:
        wanted = [Fraction(7, 25), "0.279", 1.5, 99]
        np.testing.assert_array_equal(reader.get_frames_played_at(wanted), every[[7, 6, 37, 49]])
        with pytest.raises(IndexError, match="before the first frame"):
            reader.get_frames_played_at([-0.01])
        with pytest.raises(ValueError, match="none"):
            reader.get_frames_played_at([])


def test_no_times(folder):
    path = make(folder / "untimed.h264", *EVERY["no_times.h264"])
    with VideoReader(path) as reader:
        assert all(t != t for t in reader.get_timestamps())
        with pytest.raises(stoker.InvalidArgumentError, match="does not say when"):
            reader.get_frames_played_at([0])


def test_filters_and_decoders(clip):
    options = {"filter_desc": "scale=w=32:h=-2,hflip,format=rgba"}
    config = decode_config(decoder_options={"threads": "2"})
    with VideoReader(clip, decode_config=config, **options) as reader:
        np.testing.assert_array_equal(reader.get_frames_at([40, 3, 41]), decoded(clip, **options)[[40, 3, 41]])
    with VideoReader(clip, filter_desc=None) as reader:
        np.testing.assert_array_equal(reader.get_frames_at([9]), decoded(clip, filter_desc=None)[[9]])
    for desc in ("select=0", "fps=50", "tile=1x2"):
        with VideoReader(clip, filter_desc=desc) as reader, pytest.raises(stoker.InvalidArgumentError, match=r"made [02] frames of one"):
            reader.get_frames_at(range(4))
    with VideoReader(clip, filter_desc="nosuch") as reader, pytest.raises(stoker.InvalidArgumentError, match="nosuch"):
        reader.get_frames_at([4])
    with pytest.raises(stoker.UnsupportedError, match="nosuch"):
        VideoReader(clip, decode_config=decode_config(decoder="nosuch"))


def test_sizes_that_change(folder):
    parts = [make(folder / f"{size}.ts", *VIDEOS["h264.ts"], size=size, seconds=0.4) for size in ("64x48", "80x60")]
    both = folder / "both.ts"
    both.write_bytes(b"".join(part.read_bytes() for part in parts))
    with VideoReader(both) as reader:
        plan = reader.plan([[0, 1], [5, 15], [15, 16]])
        assert next(plan).shape == (2, 48, 64, 3)
        with pytest.raises(stoker.InvalidArgumentError, match="differ in size"):
            next(plan)
        assert next(plan).shape == (2, 60, 80, 3)
    with VideoReader(both, filter_desc="scale=w=32:h=24,format=rgb24") as reader:
        assert reader.get_frames_at(range(20)).shape == (20, 24, 32, 3)


def test_a_frame_that_does_not_come_is_one_that_cannot_be_decoded(long, folder):
    lost = folder / "lost.mkv"
    ffmpeg("-i", long, "-c", "copy", "-bsf:v", "noise=drop=eq(key\\,1)*gt(n\\,0)", lost)
    with VideoReader(lost) as reader:
        n = len(reader)
        with pytest.raises(stoker.CorruptError, match=f"of {n} frames did|could not be decoded"):
            reader.get_frames_at(range(n))
    with pytest.raises(stoker.CorruptError, match="did|could not be decoded"):
        sample_decode_video(demux_video(lost), list(range(n)))


def test_arguments(clip, folder):
    with VideoReader(clip) as reader:
        for wrong, error, text in (
            ([], ValueError, "there are none"),
            ([50], IndexError, "there is no frame 50, of 50"),
            ([-1], IndexError, "there is no frame -1, of 50"),
            ([2**70], IndexError, "of 50"),
            ([0.5], TypeError, "float"),
        ):
            with pytest.raises(error, match=text):
                reader.get_frames_at(wrong)
            with pytest.raises(error, match=text):
                reader.plan([[3], wrong])
        with pytest.raises(ValueError, match="max_bytes"):
            reader.plan([[1]], max_bytes=0)
        np.testing.assert_array_equal(reader.get_frames_at(np.array([1, 40])), decoded(clip)[[1, 40]])
    with pytest.raises(TypeError, match="filter_desc"):
        VideoReader(clip, filter_desc=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="decode_config"):
        VideoReader(clip, decode_config="h264")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        VideoReader(folder / "nosuch.mp4")
    with pytest.raises(stoker.NotFoundError, match="no video stream"):
        VideoReader(tone(folder / "short.wav", seconds=0.1))


def broken(folder, bad):
    """A video of ten pictures, of which some are damaged."""
    path = make(folder / f"broken{'_'.join(map(str, bad))}.mov", "-c:v", "png", seconds=0.4)
    data = bytearray(path.read_bytes())
    starts = [i for i in range(len(data)) if data[i : i + 8] == b"\x89PNG\r\n\x1a\n"]
    for i in bad:
        data[starts[i] : starts[i] + 30] = bytes(30)
    path.write_bytes(data)
    return path


def test_frames_that_are_damaged(folder, caplog):
    path = broken(folder, (2, 5))
    good = decoded(path)
    with VideoReader(path) as reader:
        plan = reader.plan([[0, 3], [5], [4, 9]])
        np.testing.assert_array_equal(next(plan), good[[0, 2]])
        with pytest.raises(stoker.CorruptError, match="frame 5 could not be decoded: packet"):
            next(plan)
        np.testing.assert_array_equal(next(plan), good[[3, 7]])
        assert list(plan) == []
        assert reader.stats()["num_failed"] > 0
    assert "could not be decoded and were left out" in caplog.text
    with VideoReader(path, strict=True) as reader:
        np.testing.assert_array_equal(reader.get_frames_at([8, 9]), good[[6, 7]])
        with pytest.raises(stoker.CorruptError, match="packet 2 cannot be decoded"):
            reader.get_frames_at([4, 5])


@pytest.mark.parametrize("name", ["h264.mp4", "h264.ts", "mpeg4.avi"])
def test_a_file_that_was_cut(folder, name):
    path = make(folder / f"whole_{name}", "-movflags", "faststart", *VIDEOS[name]) if name == "h264.mp4" else make(folder / f"whole_{name}", *VIDEOS[name])
    data = path.read_bytes()
    cut = data[: len(data) * 2 // 3]
    every = decoded(cut)
    with VideoReader(cut) as reader:
        assert 20 < len(every) <= len(reader) < 50
        n = len(every) - 3
        np.testing.assert_array_equal(reader.get_frames_at(range(0, n, 3)), every[0:n:3])
        np.testing.assert_array_equal(reader.get_frames_at([n - 1, 2]), every[[n - 1, 2]])


def test_a_reader_that_was_closed(clip):
    reader = VideoReader(clip)
    plan = reader.plan([[1], [2]])
    frames = next(plan)
    reader.close()
    reader.close()
    for call in (lambda: next(plan), lambda: reader.get_frames_at([0]), lambda: reader.plan([[0]]), reader.stats):
        with pytest.raises(ValueError, match="was closed"):
            call()
    del reader, plan
    gc.collect()
    np.testing.assert_array_equal(frames, decoded(clip)[[1]])


def test_cancel(clip):
    with VideoReader(clip) as reader:
        reader.cancel()
        with pytest.raises(stoker.CancelledError):
            reader.get_frames_at([33])


# --- threads


class Slow(io.BytesIO):
    """Waits in read() while it is told to."""

    def __init__(self, data):
        super().__init__(data)
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def read(self, n=-1):
        self.inside.set()
        assert self.go_on.wait(60)
        return super().read(n)


def test_one_thread_at_a_time(clip):
    every = decoded(clip)
    file = Slow(clip.read_bytes())
    reader = VideoReader(file, demux_config=demux_config(buffer_size=256))
    file.go_on.clear()
    file.inside.clear()
    got = []
    thread = threading.Thread(target=lambda: got.append(reader.get_frames_at([49])))
    thread.start()
    assert file.inside.wait(60)
    plan = reader.plan([[1]])
    for call in (lambda: next(plan), lambda: reader.get_frames_at([0])):
        with pytest.raises(stoker.BusyError, match="one thread at a time"):
            call()
    assert reader.stats()["num_failed"] == 0
    file.go_on.set()
    thread.join()
    np.testing.assert_array_equal(got, [every[[49]]])
    np.testing.assert_array_equal(next(plan), every[[1]])  # it was not lost


def test_readers_on_many_threads(long):
    every = decoded(long)

    def work(seed):
        clips = clips_of(250, seed)
        with VideoReader(long) as reader:
            for found, indices in zip(reader.plan(clips), clips, strict=True):
                np.testing.assert_array_equal(found, every[indices])
        done.append(seed)

    done: list[int] = []
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 1, 2, 3]


@pytest.mark.figures
def test_memory_of_a_long_video(folder):
    """The index of 20,000 frames, and one clip after the other."""
    path = folder / "long_colour.mp4"
    ffmpeg("-f", "lavfi", "-i", "color=s=32x32:r=25:d=800", "-c:v", "mpeg4", "-g", "250", path)
    before = resident()
    with VideoReader(path) as reader:
        assert len(reader) == 20_000
        for clip in reader.plan([range(i, i + 16) for i in range(0, 19_900, 16)]):
            assert clip.shape == (16, 32, 32, 3)
        assert reader.stats()["num_decoded"] < 20_000
        assert resident() - before < 32 << 20
