"""ops.decode_video of videos that their container says to turn: upright, as the ffmpeg command shows them."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest

import boxes
from av import ffmpeg, make, needs_ffmpeg, pixels
from stoker import PipelineBuilder, ops, source
from stoker.io import apply_bsf, demux_video, load_video
from support import failing

pytestmark = needs_ffmpeg

# The display matrix that makes x' = a x + c y, y' = b x + d y, for each orientation of EXIF.
MATRICES = {1: (1, 0, 0, 1), 2: (-1, 0, 0, 1), 3: (-1, 0, 0, -1), 4: (1, 0, 0, -1), 5: (0, 1, 1, 0), 6: (0, 1, -1, 0), 7: (0, -1, -1, 0), 8: (0, -1, 1, 0)}
# Filters that make what is stored of what is shown.
INVERSE = {1: "null", 2: "hflip", 3: "hflip,vflip", 4: "vflip", 5: "transpose=0", 6: "transpose=2", 7: "transpose=3", 8: "transpose=1"}
X264 = ["-c:v", "libx264", "-g", "10", "-bf", "2"]
LOSSLESS = ["-c:v", "libx264", "-qp", "0", "-pix_fmt", "yuv444p"]


def turn(path, orientation, angle=None):
    """A copy of the mp4 whose header has that matrix."""
    data = bytearray(path.read_bytes())
    (at,) = (at for kind, at, _ in boxes.mp4(bytes(data)) if kind == b"tkhd")
    a, b, c, d = MATRICES.get(orientation, (0, 0, 0, 0)) if angle is None else (np.cos(angle), np.sin(angle), -np.sin(angle), np.cos(angle))
    struct.pack_into(">9i", data, at + 48, *(int(v * 65536) for v in (a, b, 0, c, d, 0, 0, 0)), 1 << 30)
    copy = path.with_name(f"{path.stem}_{orientation}_{angle}.mp4")
    copy.write_bytes(data)
    return copy


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return make(tmp_path_factory.mktemp("turned") / "x.mp4", *X264, "-pix_fmt", "yuv420p", seconds=1)


def clips(path, op, n=1, **options):
    paths = path if isinstance(path, list) else [path]
    fields = [f"part{i}" for i in range(len(paths))]
    src = source.List(**{field: [one] * n for field, one in zip(fields, paths, strict=True)}, files=fields, **options)
    builder = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(op).batch(n).add_sink(1)
    (batch,) = builder.build(num_threads=1)
    found = [np.asarray(batch[field]) for field in fields]
    return found if isinstance(path, list) else found[0]


def shape(orientation, height=48, width=64):
    return (width, height, 3) if orientation >= 5 else (height, width, 3)


@pytest.mark.parametrize("orientation", MATRICES)
def test_upright_as_the_command_has_it(stored, orientation):
    path = turn(stored, orientation)
    want = pixels(path, shape=shape(orientation))
    got = clips(path, ops.decode_video(5, stride=3, where="middle"))[0]
    assert np.array_equal(got, want[6:19:3])
    assert np.array_equal(clips(path, ops.decode_video(None))[0], want)
    as_stored = load_video(path)
    assert as_stored.shape[1:] == (48, 64, 3)
    assert np.array_equal(clips(path, ops.decode_video(None, orientation=False))[0], as_stored)


@pytest.mark.parametrize("orientation", MATRICES)
@pytest.mark.parametrize("size", [(36, 26), (32, 48)])
def test_sizes_are_those_of_upright_pictures(tmp_path, orientation, size):
    """Within the rounding of rows and columns; chroma is as large as the picture, so that it lies where it was."""
    path = turn(make(tmp_path / "x.mp4", *LOSSLESS, seconds=0.4), orientation)
    scaled = f"scale=w={size[1]}:h={size[0]}:flags=bilinear,format="
    for color, pix_fmt, channels in (("rgb", "rgb24", 3), ("gray", "gray", 1)):
        want = pixels(path, "-vf", scaled + pix_fmt, pix_fmt=pix_fmt, shape=(*size, channels)).astype(int)
        got = clips(path, ops.decode_video(None, size=size, color=color))[0].astype(int)
        assert got.shape == want.shape and np.abs(got - want).max() <= 4


@pytest.mark.parametrize("orientation", MATRICES)
def test_crops_are_drawn_on_upright_pictures(tmp_path, orientation):
    """What is stored turned gives what is stored upright gives, within the rounding of rows and columns."""
    upright = make(tmp_path / "up.mp4", *LOSSLESS, size="60x44", seconds=0.4)
    ffmpeg("-i", upright, "-vf", INVERSE[orientation], *LOSSLESS, tmp_path / "down.mp4")
    path = turn(tmp_path / "down.mp4", orientation)
    for op in (
        ops.decode_video(2, size=(20, 16), crop="random_resized", flip=0.5, where="random"),
        ops.decode_video(3, size=(21, 24), crop="center", resize=30, flip=0.5),
        ops.decode_video(3, size=(30, 32), flip=0.5),
        ops.decode_video(3, flip=0.5),
    ):
        want, got = (clips(one, op, 12, seed=5).astype(int) for one in (upright, path))
        assert got.shape == want.shape and np.abs(got - want).max() <= 6
        if op.size is None:
            assert np.array_equal(got, want)
        a, b = clips([upright, path], op, 6, seed=6)  # parts of a sample get one crop
        assert np.abs(a.astype(int) - b).max() <= 6


def test_parts_are_compared_upright(stored):
    with failing("48 x 64 pixels, but the sample's first part has 64 x 48"):
        clips([stored, turn(stored, 6)], ops.decode_video(2, size=16))


@pytest.mark.parametrize("angle", [np.pi / 6, None])
def test_other_angles_are_left(stored, angle):
    """Nothing is cut off or filled in; None: numbers that are no turn at all."""
    path = turn(stored, 1, angle=angle) if angle else turn(stored, 0)
    assert demux_video(path).codec.orientation == 1
    assert np.array_equal(clips(path, ops.decode_video(None))[0], load_video(path))


@pytest.mark.parametrize("orientation", MATRICES)
def test_packets_keep_it(stored, orientation):
    packets = demux_video(turn(stored, orientation))
    assert packets.codec.orientation == orientation
    assert pickle.loads(pickle.dumps(packets)).codec.orientation == orientation
    assert apply_bsf(packets, "h264_mp4toannexb").codec.orientation == orientation
