"""Arrays of frames: shapes and bytes of every format, compared with the ffmpeg command."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import stoker
from stoker.io import (
    ArrayInterface,
    CPUBuffer,
    convert_frames,
    cpu_storage,
    decode_packets,
    demux_audio,
    demux_image,
    demux_video,
    get_audio_filter_desc,
    get_video_filter_desc,
    load_audio,
    load_image,
    load_image_batch,
    load_video,
    to_numpy,
    to_torch,
)

from av import ffmpeg, make, needs_ffmpeg, pixels, samples, tone
from support import torch_module

pytestmark = needs_ffmpeg

H, W = 48, 64
SHAPES = {
    "gray": (H, W, 1),
    "gray8": (H, W, 1),
    "rgb24": (H, W, 3),
    "bgr24": (H, W, 3),
    "rgba": (H, W, 4),
    "bgra": (H, W, 4),
    "argb": (H, W, 4),
    "0rgb": (H, W, 4),
    "ya8": (H, W, 2),
    "yuyv422": (H, W, 2),
    "yuv444p": (3, H, W),
    "yuvj444p": (3, H, W),
    "yuva444p": (4, H, W),
    "gbrp": (3, H, W),
    "gbrap": (4, H, W),
    "yuv420p": (1, H * 3 // 2, W),
    "yuvj420p": (1, H * 3 // 2, W),
    "yuv422p": (1, H * 2, W),
    "yuvj422p": (1, H * 2, W),
    "yuva420p": (1, H * 5 // 2, W),
    "nv12": (1, H * 3 // 2, W),
    "nv21": (1, H * 3 // 2, W),
    "nv24": (1, H * 3, W),
    "yuv411p": (1, H * 3 // 2, W),
}
WIDE = {
    "gray16le": (1, H, W),
    "gray16be": (1, H, W),
    "gray10le": (1, H, W),
    "rgb48le": (H, W, 3),
    "rgba64le": (H, W, 4),
    "yuv420p10le": (1, H * 3 // 2, W),
    "yuv422p10le": (1, H * 2, W),
    "yuv444p10le": (3, H, W),
    "yuv444p16be": (3, H, W),
    "p010le": (1, H * 3 // 2, W),
    "gbrp10le": (3, H, W),
}
FLOAT = {"grayf32le": (1, H, W), "gbrpf32le": (3, H, W)}
FORMATS = [
    *((f, np.uint8, s) for f, s in SHAPES.items()),
    *((f, np.uint16, s) for f, s in WIDE.items()),
    *((f, np.float32, s) for f, s in FLOAT.items()),
]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return make(
        tmp_path_factory.mktemp("convert") / "clip.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p", seconds=0.4
    )


@pytest.fixture(scope="module")
def wav(tmp_path_factory):
    return tone(tmp_path_factory.mktemp("convert") / "tone.wav", "-c:a", "pcm_s16le", seconds=0.5)


@pytest.mark.parametrize(("pix_fmt", "dtype", "shape"), FORMATS, ids=[f[0] for f in FORMATS])
def test_pixels(clip, pix_fmt, dtype, shape):
    desc = f"format=pix_fmts={pix_fmt}"
    expected = pixels(clip, "-vf", desc, pix_fmt=pix_fmt, dtype=dtype, shape=shape)
    buffer = convert_frames(decode_packets(demux_video(clip), desc))
    assert (buffer.shape, buffer.dtype) == ((10, *shape), np.dtype(dtype).name)
    np.testing.assert_array_equal(np.asarray(buffer), expected)
    one = convert_frames(decode_packets(demux_image(clip), desc))
    np.testing.assert_array_equal(np.asarray(one), expected[0])


@pytest.mark.parametrize("pix_fmt", ["pal8", "monow", "rgb565le", "rgb444le", "rgb8", "x2rgb10le", "bayer_rggb8"])
def test_pixels_that_are_no_array(clip, pix_fmt):
    try:
        frames = decode_packets(demux_video(clip), f"format=pix_fmts={pix_fmt}")
    except stoker.InvalidArgumentError:
        return  # swscale does not write it
    with pytest.raises(stoker.UnsupportedError, match="format=pix_fmts"):
        convert_frames(frames)


@pytest.mark.parametrize("size", ["33x21", "32x21", "33x20"])
def test_odd_sizes(tmp_path, size):
    path = tmp_path / "odd.mkv"
    source = f"testsrc=s={size}:r=25:d=0.2"
    ffmpeg("-f", "lavfi", "-i", source, "-c:v", "ffv1", "-pix_fmt", "yuv420p", path)
    width, height = map(int, size.split("x"))
    assert load_video(path).shape == (5, height, width, 3)
    chroma = ((width + 1) // 2) * ((height + 1) // 2) * 2
    if chroma % width:
        with pytest.raises(stoker.UnsupportedError, match="even sizes"):
            load_video(path, filter_desc=None)
    else:
        assert load_video(path, filter_desc=None).shape == (5, 1, height + chroma // width, width)


@pytest.mark.parametrize(
    ("fmt", "dtype", "kind"),
    [("u8", "u1", "u8"), ("s16", "<i2", "s16le"), ("s32", "<i4", "s32le"), ("flt", "<f4", "f32le"), ("dbl", "<f8", "f64le")],
)
@pytest.mark.parametrize("planar", ["", "p"])
def test_samples(wav, fmt, dtype, kind, planar):
    desc = f"aformat=sample_fmts={fmt}{planar}"
    expected = samples(wav, "-af", desc, kind=kind, dtype=dtype)
    found = np.asarray(convert_frames(decode_packets(demux_audio(wav), desc)))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, expected.T if planar else expected)


@pytest.mark.parametrize("planar", ["", "p"])
def test_samples_of_64_bits(wav, planar):
    found = np.asarray(convert_frames(decode_packets(demux_audio(wav), f"aformat=sample_fmts=s64{planar}")))
    expected = samples(wav, kind="s16le", dtype="<i2").astype(np.int64) << 48
    np.testing.assert_array_equal(found, expected.T if planar else expected)


def test_lists(clip):
    packets = demux_video(clip)
    frames = [decode_packets(packets.clone()) for _ in range(3)]
    batch = np.asarray(convert_frames(frames))
    assert batch.shape == (3, 10, H, W, 3)
    assert (batch[0] == batch[2]).all()
    assert np.asarray(convert_frames([decode_packets(packets.clone())])).shape == (1, 10, H, W, 3)
    for other in ("scale=32:32,format=rgb24", "format=bgr24", "trim=end_frame=3,format=rgb24"):
        pair = [decode_packets(packets.clone()), decode_packets(packets.clone(), other)]
        with pytest.raises(stoker.InvalidArgumentError, match="differ"):
            convert_frames(pair)
    with pytest.raises(ValueError, match="no frames"):
        convert_frames([])
    with pytest.raises(ValueError, match="no frames"):
        convert_frames(decode_packets(demux_video(clip, timestamp=(50, 60))))
    with pytest.raises(TypeError):
        convert_frames(packets)  # type: ignore[arg-type]


def test_storage(clip):
    every = np.asarray(load_video(clip))
    storage = cpu_storage(every.nbytes + 100)
    first = to_numpy(convert_frames(decode_packets(demux_video(clip)), storage))
    second = to_numpy(convert_frames(decode_packets(demux_video(clip)), storage))
    assert first.ctypes.data == second.ctypes.data
    np.testing.assert_array_equal(first, every)
    del storage
    gc.collect()
    np.testing.assert_array_equal(first, every)
    with pytest.raises(ValueError, match="the storage has 10 bytes"):
        convert_frames(decode_packets(demux_video(clip)), cpu_storage(10))
    with pytest.raises(RuntimeError, match="CUDA"):
        cpu_storage(10, pin_memory=True)
    with pytest.raises(ValueError, match="the storage has 10 bytes"):
        convert_frames(decode_packets(demux_video(clip)), bytearray(10))


def test_storage_is_an_array(clip):
    storage = cpu_storage(2**16)
    assert isinstance(storage, ArrayInterface)
    view = to_numpy(storage)
    assert (view.shape, view.dtype, view.flags.writeable) == ((2**16,), np.uint8, True)
    assert storage.__array_interface__ == {**view.__array_interface__, "strides": None}
    image = to_numpy(convert_frames(decode_packets(demux_image(clip)), storage))
    assert image.ctypes.data == view.ctypes.data
    np.testing.assert_array_equal(view[: image.nbytes], image.reshape(-1))
    np.testing.assert_array_equal(np.from_dlpack(storage), view)
    del storage
    gc.collect()
    np.testing.assert_array_equal(view[: image.nbytes], image.reshape(-1))


def test_storage_is_a_tensor():
    torch_module()
    storage = cpu_storage(10)
    assert to_torch(storage).data_ptr() == to_numpy(storage).ctypes.data


def test_frames_are_still_there_where_it_fails(clip):
    frames = decode_packets(demux_video(clip))
    expected = np.asarray(convert_frames(frames.clone()))
    other = decode_packets(demux_video(clip), "scale=w=32:h=24")
    for fails, error in (
        (lambda: convert_frames(frames, cpu_storage(10)), ValueError),
        (lambda: convert_frames([frames, other]), stoker.InvalidArgumentError),
        (lambda: convert_frames([other, frames, frames]), TypeError),  # consumed by the one before
    ):
        with pytest.raises(error):
            fails()
        assert len(frames) == len(other) == len(expected)
    np.testing.assert_array_equal(np.asarray(convert_frames(frames)), expected)
    with pytest.raises(TypeError, match="consumed"):
        convert_frames([other, frames])
    assert len(other) == len(expected)


FORMATS = "rgb24 bgr24 rgba gray yuv420p yuv444p nv12 yuv420p10le p010le gbrp gbrpf32le gray16le rgb48le yuyv422".split()


@pytest.mark.parametrize("pix_fmt", FORMATS)
def test_storage_of_the_caller(clip, pix_fmt):
    """A slot of a batch, whatever the format: what is beside it stays."""

    def frames():
        return decode_packets(demux_video(clip), filter_desc=get_video_filter_desc(pix_fmt=pix_fmt))

    want = np.asarray(convert_frames(frames()))
    batch = np.full((3, *want.shape), 7, want.dtype)
    made = to_numpy(convert_frames(frames(), batch[1]))
    assert made.ctypes.data == batch[1].ctypes.data
    np.testing.assert_array_equal(batch[1], want)
    assert (batch[0] == 7).all() and (batch[2] == 7).all()
    raw = bytearray(want.nbytes + 8)
    buffer = convert_frames(frames(), raw)
    with pytest.raises(BufferError):
        raw.append(0)  # it is in use
    np.testing.assert_array_equal(to_numpy(buffer), want)
    del buffer
    raw.append(0)
    assert raw[:-9] == want.tobytes()


@pytest.mark.parametrize("sample_fmt", ["u8", "s16p", "s32", "fltp", "dbl"])
def test_storage_for_sound(wav, sample_fmt):
    def frames():
        return decode_packets(demux_audio(wav), filter_desc=get_audio_filter_desc(sample_fmt=sample_fmt))

    want = np.asarray(convert_frames(frames()))
    batch = np.zeros((2, *want.shape), want.dtype)
    convert_frames(frames(), batch[1])
    np.testing.assert_array_equal(batch[1], want)
    assert not batch[0].any()


def test_storage_that_cannot_be_used(clip):
    frames = decode_packets(demux_video(clip))
    read_only = np.zeros(10, np.uint8)
    read_only.flags.writeable = False
    for storage, error, words in [
        (bytes(10), TypeError, "read-only"),
        (read_only, TypeError, "read-only"),
        (object(), TypeError, "writable buffer, not object"),
        (np.zeros((8, 8), np.uint8)[:, ::2], ValueError, "contiguous"),
        (np.zeros(0, np.uint8), ValueError, "the storage has 0 bytes"),
    ]:
        with pytest.raises(error, match=words):
            convert_frames(frames.clone(), storage)
    deep = decode_packets(demux_video(clip), filter_desc=get_video_filter_desc(pix_fmt="gray16le"))
    with pytest.raises(ValueError, match="not aligned to uint16"):
        convert_frames(deep, memoryview(bytearray(1 << 24))[1:])


def test_the_array_interface_is_that_of_numpy(clip):
    buffer = load_video(clip)
    view = np.asarray(buffer)
    assert buffer.__array_interface__ == view.__array_interface__
    assert buffer.__array_interface__ is not buffer.__array_interface__
    fields = buffer.__array_interface__
    fields.clear()
    assert buffer.__array_interface__


def test_an_array_adds_one_reference(clip):
    buffer = load_video(clip)
    before = sys.getrefcount(buffer)
    view = np.asarray(buffer)
    assert sys.getrefcount(buffer) == before + 1
    view[0, 0, 0, 0] = 77
    assert np.asarray(buffer)[0, 0, 0, 0] == 77
    del view
    assert sys.getrefcount(buffer) == before


def test_protocols(clip):
    buffer = load_video(clip)
    assert isinstance(buffer, CPUBuffer)
    assert memoryview(buffer).shape == buffer.shape == (10, H, W, 3)
    assert np.shares_memory(np.from_dlpack(buffer), np.asarray(buffer))
    assert repr(buffer) == "CPUBuffer((10, 48, 64, 3), uint8)"
    view = to_numpy(buffer)
    expected = view.copy()
    del buffer
    gc.collect()
    np.testing.assert_array_equal(view, expected)


def test_torch(clip):
    torch = torch_module()
    buffer = load_video(clip)
    tensor = to_torch(buffer)
    assert tensor.dtype == torch.uint8
    assert np.shares_memory(tensor.numpy(), np.asarray(buffer))


def test_load(clip, wav, tmp_path):
    np.testing.assert_array_equal(np.asarray(load_video(clip)), pixels(clip))
    np.testing.assert_array_equal(np.asarray(load_video(clip.read_bytes(), ("0.2", 0.3))), pixels(clip)[5:8])
    np.testing.assert_array_equal(np.asarray(load_audio(wav)), samples(wav).T)
    np.testing.assert_array_equal(np.asarray(load_image(clip)), pixels(clip)[0])
    with pytest.raises(TypeError):
        load_video(clip, nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(RuntimeError, match="CUDA"):
        load_video(clip, device_config=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "tiff", "webp", "gif"])
def test_images(tmp_path, suffix):
    path = tmp_path / f"image.{suffix}"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48", "-frames:v", 1, path)
    image = load_image(path)
    np.testing.assert_array_equal(np.asarray(image), pixels(path)[0])
    np.testing.assert_array_equal(np.asarray(load_image(path.read_bytes())), np.asarray(image))


def test_image_batch(tmp_path):
    paths = []
    for i in range(9):
        paths.append(tmp_path / f"{i}.png")
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=s={40 + 8 * i}x48:d=9", "-ss", i, "-frames:v", 1, paths[-1])
    batch = np.asarray(load_image_batch(paths, width=32, height=24))
    assert batch.shape == (9, 24, 32, 3)
    for i, path in enumerate(paths):
        alone = np.asarray(load_image_batch([path], width=32, height=24))
        np.testing.assert_array_equal(batch[i], alone[0])
    bad = tmp_path / "bad.png"
    bad.write_bytes(paths[0].read_bytes()[:60])
    with pytest.raises(stoker.Error):
        load_image_batch([*paths, bad], width=32, height=24)
    some = load_image_batch([bad, *paths], width=32, height=24, strict=False)
    np.testing.assert_array_equal(np.asarray(some), batch)
    with pytest.raises(stoker.Error):
        load_image_batch([bad], width=32, height=24, strict=False)
    with pytest.raises(ValueError, match="srcs"):
        load_image_batch([], width=32, height=24)
    for several in ((path for path in paths), tuple(paths), np.array([str(path) for path in paths])):
        np.testing.assert_array_equal(np.asarray(load_image_batch(several, width=32, height=24)), batch)
    for one in (paths[0], str(paths[0]), paths[0].read_bytes(), bytearray(paths[0].read_bytes()), 1):
        with pytest.raises(TypeError):
            load_image_batch(one, width=32, height=24)
    with pytest.raises(TypeError, match="srcs must be several sources"):
        load_image_batch(str(paths[0]), width=32, height=24)
    storage = cpu_storage(batch.nbytes)
    np.testing.assert_array_equal(
        np.asarray(load_image_batch(paths, width=32, height=24, storage=storage)), batch
    )
