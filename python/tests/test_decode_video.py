"""stoker.ops.decode_video: clips in the native lane, compared with decoding everything."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import stoker
from av import ffmpeg, make, needs_ffmpeg, pixels
from stoker import PipelineBuilder, ops, source
from stoker.io import load_video
from support import failing

pytestmark = needs_ffmpeg

X265 = ["-c:v", "libx265", "-tag:v", "hvc1", "-x265-params"]
VIDEOS = {
    "h264.mp4": ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"],
    "h264_open.mkv": ["-c:v", "libx264", "-bf", "3", "-g", "12", "-x264-params", "open-gop=1", "-pix_fmt", "yuv420p"],
    "h264.ts": ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"],
    "h264.h264": ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p"],
    "hevc_open.mp4": [*X265, "log-level=0:keyint=10:open-gop=1:bframes=3"],
    "h264_refresh.ts": ["-c:v", "libx264", "-x264-params", "intra-refresh=1:keyint=8:bframes=0", "-pix_fmt", "yuv420p"],
    "mpeg4.avi": ["-c:v", "mpeg4", "-g", "10", "-bf", "2"],
    "mpeg2_open.mpg": ["-c:v", "mpeg2video", "-g", "10", "-bf", "2"],
    "vp8.webm": ["-c:v", "libvpx", "-g", "10"],
    "vp8_hidden.webm": ["-c:v", "libvpx", "-auto-alt-ref", "1", "-lag-in-frames", "16", "-g", "20"],
    "vp9.webm": ["-c:v", "libvpx-vp9", "-g", "10"],
    "mjpeg.avi": ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"],
    "ffv1.mkv": ["-c:v", "ffv1", "-pix_fmt", "yuv444p"],
    "gif.gif": ["-r", "25"],
}
FRAMES = 50
SCALE = "scale=w=32:h=24:flags=bilinear,format=pix_fmts=rgb24"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("video")
    return {name: make(folder / name, *args) for name, args in VIDEOS.items()}


def run(src, op, n=100, on_error="raise", threads=2):
    builder = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(op, on_error=on_error)
    pipeline = builder.batch(n).add_sink(1).build(num_threads=threads)
    return list(pipeline), pipeline


def clips(paths, op, **options):
    (batch,), _ = run(source.List(video=paths, files=["video"], **options), op)
    return np.asarray(batch["video"])


def whole(path, filters=SCALE):
    return np.asarray(load_video(path, filter_desc=filters))


@pytest.mark.parametrize("name", VIDEOS)
@pytest.mark.parametrize(("frames", "stride"), [(1, 1), (5, 1), (4, 7), (2, 30)])
def test_clips_are_picked_from_all_frames(files, name, frames, stride):
    all_frames = whole(files[name])
    total = len(all_frames)
    span = (frames - 1) * stride + 1
    for where, start in (("start", 0), ("middle", (total - span) // 2)):
        got = clips([files[name]] * 2, ops.decode_video(frames, stride=stride, size=(24, 32), where=where))
        want = all_frames[start : start + span : stride]
        assert got.shape == (2, frames, 24, 32, 3) and got.dtype == np.uint8
        assert np.array_equal(got[0], want) and np.array_equal(got[1], want)


@pytest.mark.parametrize("name", VIDEOS)
def test_random_clips(files, name):
    all_frames = whole(files[name])
    n, span = 12, 3 * 4 + 1
    got = clips([files[name]] * n, ops.decode_video(4, stride=4, size=(24, 32), where="random"), seed=1)
    starts = set()
    for clip in got:
        fits = [s for s in range(len(all_frames) - span + 1) if np.array_equal(all_frames[s : s + span : 4], clip)]
        assert fits  # frames may look alike
        starts.add(fits[0])
    assert len(starts) > n // 2 and max(starts) > 20


@pytest.mark.parametrize("name", VIDEOS)
@pytest.mark.parametrize("frames", [1, 7, 25, 120])
def test_frames_spread_over_the_file(files, name, frames):
    all_frames = whole(files[name])
    total = len(all_frames)
    got = clips([files[name]], ops.decode_video(frames, size=(24, 32), where="all"))
    index = [(2 * i + 1) * total // (2 * frames) for i in range(frames)]
    assert np.array_equal(got[0], all_frames[index])


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """1100 frames, each with B-frames around it and another after the next key frame."""
    args = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "3", "-g", "24", "-x264-params", "open-gop=1:b-adapt=0", "-pix_fmt", "yuv420p"]
    return make(tmp_path_factory.mktemp("long") / "long.mp4", *args, seconds=44)


@pytest.mark.parametrize("frames", [100, 101, 1024])
@pytest.mark.parametrize("way", ["into the batch", "width", "gray", "crop"])
def test_many_frames_spread_over_the_file(long, frames, way):
    """As the ffmpeg command has them, and as many as may be asked for."""
    picture = {"size": (24, 36 if way == "width" else 32), "color": "gray" if way == "gray" else "rgb"}
    if way == "crop":
        picture |= {"crop": "center", "resize": 40}
    height, width = picture["size"]
    scaled = "53:h=40" if way == "crop" else f"{width}:h={height}"
    cut = f",crop={width}:{height}:10:8" if way == "crop" else ""
    every = pixels(
        long, "-vf", f"scale=w={scaled}:flags=bilinear,format={'gray' if way == 'gray' else 'rgb24'}{cut}",
        pix_fmt="gray" if way == "gray" else "rgb24", shape=(height, width, 1 if way == "gray" else 3),
    )  # fmt: skip
    assert len(every) == 1100
    got = clips([long], ops.decode_video(frames, where="all", **picture))[0]
    index = [(2 * i + 1) * 1100 // (2 * frames) for i in range(frames)]
    assert len(set(index)) == frames and np.array_equal(got, every[index])


@pytest.mark.parametrize("size", [(24, 32), (24, 36)])
@pytest.mark.parametrize("stride", [1, 2, 7, 53])
def test_strides_through_open_groups(long, stride, size):
    every = pixels(long, "-vf", f"scale=w={size[1]}:h={size[0]}:flags=bilinear,format=rgb24", shape=(*size, 3))
    for frames in (1, 2, 9, 20):
        first = (1100 - ((frames - 1) * stride + 1)) // 2
        got = clips([long], ops.decode_video(frames, stride=stride, size=size, where="middle"))[0]
        assert np.array_equal(got, every[first :: stride][:frames])


@pytest.mark.parametrize("name", ["h264.mp4", "h264_open.mkv", "hevc_open.mp4", "h264.ts", "vp8_hidden.webm", "mpeg2_open.mpg"])
def test_clips_that_begin_where_it_is_known(files, long, name):
    """No more of the file is read than they need, with what is shown before the next key frame and comes behind it."""
    for path in (files[name], long):
        every = whole(path)
        for frames in (1, 9, 10, 11, 12, 13, 24):
            got = clips([path], ops.decode_video(frames, stride=2, size=(24, 32)))[0]
            assert np.array_equal(got, every[: 2 * frames : 2])
        fields = {"first": [path] * 5, "second": [path] * 5}  # the second begins where the first does
        src = source.List(**fields, files=list(fields), seed=4)
        (batch,), _ = run(src, ops.decode_video(5, stride=3, size=(24, 32), where="random"))
        first, second = (np.asarray(batch[field]) for field in fields)
        assert np.array_equal(first, second) and len({clip.tobytes() for clip in first}) > 1


@pytest.mark.parametrize("size", [(24, 32), (24, 36)])
def test_frames_that_are_dropped_are_those_before_them(tmp_path, size):
    """The packets of a recording that begins in an open group say more frames than there are."""
    path = make(tmp_path / "whole.ts", "-c:v", "mpeg2video", "-bf", "2", "-g", "10")
    cut = tmp_path / "cut.ts"
    cut.write_bytes(path.read_bytes()[ffmpeg_packets(path)[10][0] :])
    there = whole(cut, f"scale=w={size[1]}:h={size[0]}:flags=bilinear,format=pix_fmts=rgb24")
    assert len(there) == 38
    for frames, index in ((None, [0, 0, *range(38)]), (10, [max(4 * i, 0) for i in range(10)])):
        got = clips([cut], ops.decode_video(frames, size=size, where="all"))[0]
        assert np.array_equal(got, there[index])
    with_others = clips([cut], ops.decode_video(8, stride=2, size=size, where="middle"))[0]
    assert np.array_equal(with_others, there[10:26:2])


def test_sizes(files):
    path = files["h264.mp4"]
    assert np.array_equal(clips([path], ops.decode_video(3))[0], whole(path, "format=pix_fmts=rgb24")[:3])
    assert clips([path], ops.decode_video(3, size=20)).shape == (1, 3, 20, 20, 3)
    gray = clips([path], ops.decode_video(3, size=(24, 32), color="gray"))
    want = whole(path, "scale=w=32:h=24:flags=bilinear,format=pix_fmts=gray")[:3]
    assert gray.shape == (1, 3, 24, 32, 1) and np.array_equal(gray[0], want.reshape(3, 24, 32, 1))
    for ours, theirs in (("bicubic", "bicubic"), ("lanczos", "lanczos"), ("box", "area"), ("nearest", "neighbor")):
        got = clips([path], ops.decode_video(3, size=(24, 32), filter=ours))
        assert np.array_equal(got[0], whole(path, f"scale=w=32:h=24:flags={theirs},format=pix_fmts=rgb24")[:3])


@pytest.mark.parametrize("name", VIDEOS)
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_clips_that_libswscale_writes_into_the_batch(files, name, filter):
    """Rows of 16, 32, 48... pixels need no filters of FFmpeg's, but are what those give."""
    for height, width, flip in ((24, 48, False), (37, 112, True), (48, 64, True)):
        text = f"null,scale=w={width}:h={height}:flags={filter},format=pix_fmts=rgb24{',hflip' if flip else ''}"
        everything = whole(files[name], text)
        size = {"size": (height, width), "filter": filter, "flip": float(flip)}
        total = len(everything)
        for op, index in (
            (ops.decode_video(5, stride=3, where="middle", **size), range((total - 13) // 2, total, 3)[:5]),
            (ops.decode_video(7, where="all", **size), [(2 * i + 1) * total // 14 for i in range(7)]),
            (ops.decode_video(4, stride=total - 1, short="repeat", **size), [0, *[total - 1] * 3]),
            (ops.decode_video(None, stride=2, **size), range(0, total, 2)),
        ):
            got = clips([files[name]] * 3, op)
            assert all(np.array_equal(clip, everything[index]) for clip in got)


def test_center_crop(files):
    path = files["h264.mp4"]
    got = clips([path], ops.decode_video(3, size=(21, 23), crop="center", resize=36))
    want = whole(path, "scale=w=48:h=36:flags=bilinear,format=pix_fmts=rgb24")[:3, 8:29, 12:35]
    assert np.array_equal(got[0], want)


def test_random_crop_and_flip_are_the_same_for_all_frames(tmp_path):
    still = tmp_path / "still.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.04", "-vf", "loop=9:1", "-c:v", "ffv1", "-pix_fmt", "yuv444p", still)
    op = ops.decode_video(5, size=16, crop="random_resized", flip=0.5, scale=(0.2, 0.6))
    got = clips([still] * 8, op, seed=2)
    for clip in got:
        assert all(np.array_equal(clip[0], frame) for frame in clip)
    assert len({clip.tobytes() for clip in got}) == 8
    plain, mirrored = (clips([still] * 4, ops.decode_video(2, size=(24, 32), flip=p)) for p in (0.0, 1.0))
    assert np.array_equal(plain, mirrored[:, :, :, ::-1])


def test_crops_of_more_than_eight_bits_keep_their_colours(tmp_path):
    """The filter crop, if it is exact, begins in the middle of a sample of chroma where x is odd."""
    still = tmp_path / "still.mkv"
    ffmpeg("-f", "lavfi", "-i", "color=0x20c040:s=65x49:r=25:d=0.2", "-c:v", "ffv1", "-pix_fmt", "yuv420p10le", still)
    got = clips([still] * 16, ops.decode_video(2, size=16, crop="random_resized", scale=(0.2, 0.6)), seed=3)
    assert np.abs(got.astype(int) - [0x20, 0xC0, 0x40]).max() <= 4


def test_random_clips_are_keyed(files):
    n = 10
    op = ops.decode_video(3, stride=2, size=16, crop="random_resized", where="random", flip=0.5)

    def all_of(threads, **options):
        batches, _ = run(source.List([files["h264.mp4"]] * n, **options), op, n, threads=threads)
        return [np.asarray(b.image)[np.argsort(np.asarray(b.id))] for b in batches]

    one, two = all_of(1, seed=3, epochs=2)
    again = all_of(2, seed=3, epochs=2, shuffle=True)
    assert np.array_equal(one, again[0]) and np.array_equal(two, again[1])
    assert not np.array_equal(one, two)
    assert not np.array_equal(one, all_of(1, seed=4)[0])


def test_short_files(tmp_path, files):
    short = make(tmp_path / "short.mp4", "-c:v", "libx264", seconds=0.2)  # 5 frames
    paths = [short, files["h264.mp4"]]
    (batch,), pipeline = run(source.List(paths), ops.decode_video(3, stride=4, size=16), on_error="skip")
    assert np.asarray(batch.id).tolist() == [1]
    (failure,) = pipeline.failures()
    assert "5 frames, but a clip of 3 at a stride of 4 needs 9 from frame 0 on" in str(failure)
    assert failure.key == str(short) and failure.stage == "decode_video"
    for where in ("start", "middle", "random"):
        got = clips([short], ops.decode_video(4, stride=3, size=(24, 32), short="repeat", where=where))
        assert np.array_equal(got[0], whole(short)[[0, 3, 3, 3]])


def broken(path, packets):
    """A copy in which none of these packets can be decoded."""
    data = bytearray(path.read_bytes())
    places = ffmpeg_packets(path)
    for position, size in (places[i] for i in packets):
        data[position + 30 : position + size] = bytes(b ^ 0x5A for b in data[position + 30 : position + size])
    copy = path.with_name(f"broken_{path.name}")
    copy.write_bytes(data)
    return copy


def test_only_what_a_clip_needs_is_decoded(tmp_path):
    """Nothing up to the second key frame can be decoded; clips elsewhere do not mind."""
    path = make(tmp_path / "x.mkv", "-c:v", "libx264", "-bf", "0", "-g", "10", "-x264-params", "scenecut=0")
    want = whole(path)
    bad = broken(path, range(10))
    got = clips([bad], ops.decode_video(16, size=(24, 32), where="middle"))
    assert np.array_equal(got[0], want[17:33])
    found, _ = run(source.List([bad]), ops.decode_video(5, size=(24, 32)), on_error="skip")
    assert not found or not np.array_equal(np.asarray(found[0].image)[0], want[:5])


@pytest.mark.parametrize("picture", [{"size": (24, 32)}, {"size": (24, 36)}, {"size": 24, "crop": "center", "resize": 30}])
@pytest.mark.parametrize("frames", [0, 3])
def test_only_what_spread_frames_need_is_decoded(tmp_path, frames, picture):
    """The groups of pictures between theirs cannot be decoded."""
    path = make(tmp_path / "x.mkv", "-c:v", "libx264", "-bf", str(frames), "-g", "10", "-x264-params", "scenecut=0", "-pix_fmt", "yuv420p", seconds=4)
    for op in (ops.decode_video(4, where="all", **picture), ops.decode_video(4, stride=25, where="middle", **picture)):
        bad = broken(path, [i for i in range(100) if i // 10 not in {1, 3, 6, 8}])
        want = clips([path], op)
        assert np.array_equal(clips([bad], op), want)
        found, _ = run(source.List([broken(path, range(30, 40))]), op, on_error="skip")
        assert not found or not np.array_equal(np.asarray(found[0].image), want)


def ffmpeg_packets(path):
    """(position, size) of the video packets, by their times."""
    import subprocess

    command = ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pos,size", "-of", "csv=p=0", str(path)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return [(int(pos), int(size)) for size, pos in (line.strip(",").split(",")[:2] for line in out.split())]


def test_parts_of_a_sample_get_the_same_frames(tmp_path, files):
    gray = make(tmp_path / "gray.mkv", "-vf", "negate", "-c:v", "ffv1", "-pix_fmt", "yuv444p")
    src = source.List(video=[files["ffv1.mkv"]] * 4, other=[gray] * 4, files=["video", "other"])
    (batch,), _ = run(src, ops.decode_video(3, size=16, crop="random_resized", where="random", flip=0.5))
    a, b = np.asarray(batch["video"]).astype(int), np.asarray(batch["other"]).astype(int)
    assert a.shape == b.shape == (4, 3, 16, 16, 3)
    assert np.abs(a + b - 255).mean() < 8  # within rounding: the one is the other's negative
    small = make(tmp_path / "small.mkv", "-c:v", "ffv1", size="32x32")
    with failing("32 x 32 pixels, but the sample's first part has 64 x 48"):
        run(source.List(video=[gray], other=[small], files=["video", "other"]), ops.decode_video(3, size=16))


def test_what_cannot_be_decoded_is_named_and_counted(tmp_path, files):
    sound = tmp_path / "sound.mp3"
    ffmpeg("-f", "lavfi", "-i", "sine=440:d=1", sound)
    noise = tmp_path / "noise.mp4"
    noise.write_bytes(b"no video at all" * 100)
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(files["h264.mp4"].read_bytes()[:3000])
    paths = [sound, noise, cut, files["h264.mp4"]]
    (batch,), pipeline = run(source.List(paths), ops.decode_video(4, size=16), on_error="skip")
    assert np.asarray(batch.id).tolist() == [3]
    failures = pipeline.failures()
    assert [f.key for f in failures] == [str(p) for p in paths[:3]]
    assert all(f.stage == "decode_video" and isinstance(f, stoker.Error) for f in failures)
    assert "there is no video stream" in str(failures[0])


def test_augmented_clips(files):
    builder = PipelineBuilder().add_source(source.List([files["h264.mp4"]] * 2)).pipe(ops.read())
    builder.pipe(ops.decode_video(4, size=16)).pipe(ops.pad(2)).batch(2).pipe(ops.normalize(dtype="float16"))
    (batch,) = builder.add_sink(1).build(num_threads=2)
    assert np.asarray(batch.image).shape == (2, 4, 20, 20, 3)


def test_limits(files):
    path = files["h264.mp4"]
    with failing("64 x 48 pixels: the limit is 3071"):
        run(source.List([path]), ops.decode_video(2, size=16, max_pixels=64 * 48 - 1))
    with failing("50 frames of 64 x 48: the limit is 1000 bytes"):
        run(source.List([path]), ops.decode_video(None, max_bytes=1000))


def test_no_more_is_decoded_than_a_clip_may_have(tmp_path):
    """Frames that become larger than what the file says at its beginning."""
    parts = [
        ffmpeg("-f", "lavfi", "-i", f"color=black:s={size}:d=1", "-c:v", "libx264", "-f", "h264", "-")
        for size in ("64x48", "640x480")
    ]
    path = tmp_path / "grows.h264"
    path.write_bytes(b"".join(parts))
    clip = 50 * 64 * 48 * 3
    with failing("the frames change their size"):
        run(source.List([path]), ops.decode_video(None))
    with failing(f"too many frames at once: the limit is {clip} bytes, max_bytes"):
        run(source.List([path]), ops.decode_video(None, max_bytes=clip))


def test_arguments():
    for bad in (
        {"frames": 0},
        {"frames": 1025},
        {"frames": None, "where": "random"},
        {"stride": 0},
        {"stride": 2, "where": "all"},
        {"size": 0},
        {"size": (1, 2, 3)},
        {"crop": "center"},
        {"size": 8, "crop": "left"},
        {"short": "drop"},
        {"filter": "cubic"},
        {"size": 224, "crop": "center", "resize": 100},
    ):
        with pytest.raises(ValueError):
            ops.decode_video(**bad)
    op = ops.decode_video(8, stride=2, size=224, where="random")
    assert pickle.loads(pickle.dumps(op)) == op
    assert repr(op) == "decode_video(frames=8, stride=2, size=(224, 224), where='random')"


def test_no_damage_does_more_than_fail_a_sample(tmp_path):
    rng = np.random.default_rng(7)
    paths = []
    for name in ("h264.mp4", "vp9.webm", "mpeg4.avi", "h264.ts"):
        data = make(tmp_path / name, *VIDEOS[name], seconds=0.6).read_bytes()
        for i in range(40):
            damaged = np.frombuffer(data, np.uint8)[: len(data) * i // 20 if i < 20 else len(data)].copy()
            if i >= 20:
                at = rng.integers(0, len(data) if i % 2 else 600, int(rng.choice([1, 3, 30])))
                damaged[at] ^= rng.integers(1, 256, len(at), np.uint8)
            paths.append(tmp_path / f"{i:02}.{name}")
            paths[-1].write_bytes(damaged.tobytes())
    for op in (ops.decode_video(4, stride=2, size=16, where="random"), ops.decode_video(6, size=16, where="all")):
        found, pipeline = run(source.List(paths), op, 1000, "skip")
        assert len(np.asarray(found[0].id)) + pipeline.stats()["failed"] == len(paths)
        assert 40 < pipeline.stats()["failed"] < 120
