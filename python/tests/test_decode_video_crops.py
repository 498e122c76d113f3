"""Random crops, flips and places of ops.decode_video: each clip is what the ffmpeg command makes of the same box."""

from __future__ import annotations

import numpy as np
import pytest

import keyed
from av import make, needs_ffmpeg, pixels
from stoker import PipelineBuilder, ops, source

pytestmark = needs_ffmpeg

WIDTH, HEIGHT, FRAMES, SEED = 66, 50, 25, 11
VIDEOS = {
    "h264.mp4": ["-c:v", "libx264", "-bf", "3", "-g", "10", "-pix_fmt", "yuv420p"],
    "deep.mp4": ["-c:v", "libx264", "-bf", "2", "-g", "10", "-pix_fmt", "yuv420p10le"],
    "full.mkv": ["-c:v", "ffv1", "-pix_fmt", "yuv444p"],
}
PICTURES = {
    "into the batch": {"size": (24, 32)},
    "by filters": {"size": (20, 18), "filter": "bicubic"},
    "gray": {"size": (24, 32), "color": "gray"},
    "narrow": {"size": (24, 16), "scale": (0.1, 0.3), "ratio": (0.4, 0.7)},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crops")
    return {name: make(folder / name, *args, size=f"{WIDTH}x{HEIGHT}", seconds=1) for name, args in VIDEOS.items()}


def clips(path, op, n):
    builder = PipelineBuilder().add_source(source.List([path] * n, seed=SEED)).pipe(ops.read()).pipe(op).batch(n).add_sink(1)
    (batch,) = builder.build(num_threads=2)
    return np.asarray(batch.image)[np.argsort(np.asarray(batch.id))]


def expected(path, picture, item, box, flip):
    """All frames."""
    x, y, w, h = box
    height, width = picture["size"]
    gray = picture.get("color") == "gray"
    pix_fmt = "gray" if gray else "rgb24"
    filters = f"crop=w={w}:h={h}:x={x}:y={y}:exact=1,scale=w={width}:h={height}:flags={picture.get('filter', 'bilinear')},format={pix_fmt}"
    return pixels(path, "-vf", filters + ",hflip" * flip, pix_fmt=pix_fmt, shape=(height, width, 1 if gray else 3))


@pytest.mark.parametrize("way", PICTURES)
@pytest.mark.parametrize("name", VIDEOS)
def test_random_crops_are_the_commands(files, name, way):
    """To the bit: FFmpeg's filters are the same."""
    n, picture = 8, PICTURES[way]
    drawn = {key: picture[key] for key in ("scale", "ratio") if key in picture}
    op = ops.decode_video(4, stride=3, crop="random_resized", flip=0.5, where="random", **picture)
    got = clips(files[name], op, n)
    seen = set()
    for item in range(n):
        x, y, w, h = keyed.random_resized_box("decode_video", SEED, item, WIDTH, HEIGHT, **drawn)
        flip = keyed.flips("decode_video", SEED, item, 0.5)
        start = keyed.words("decode_video", SEED, item, 16)[0] * (FRAMES - 9) >> 32
        if name == "deep.mp4":
            x -= x % 2  # where pixels share chroma of two bytes
        want = expected(files[name], picture, item, (x, y, w, h), flip)
        assert len(want) == FRAMES
        assert np.array_equal(got[item], want[start : start + 10 : 3]), (item, x, y, w, h, flip, start)
        seen.add((x, y, w, h, flip, start))
    assert len(seen) == n and len({one[4] for one in seen}) == 2
