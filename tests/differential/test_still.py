"""Decoding AVIF, BMP, GIF and TIFF, through FFmpeg, against Pillow: the same pixels.

The program under test is decode_tool, as in test_decode.py; the module for FFmpeg is that of its build.
"""

import os
import pathlib
import shutil
import struct
import subprocess

import numpy as np
import pytest
from PIL import Image
from test_decode import decode, image, tool  # noqa: F401

BUILT = sorted(pathlib.Path(os.environ.get("STK_DECODE_TOOL", "/none/a/b/c")).parents[2].glob("src/av/stoker-av-*.so"))
pytestmark = pytest.mark.skipif(not BUILT, reason="there is no module for FFmpeg in this build")

SIZES = [(1, 1), (67, 45)]
CASES = {
    "bmp": ["1", "L", "P", "RGB", "RGBA"],
    "gif": ["1", "L", "P", "RGB", "RGBA"],
    "tif": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK", "YCbCr"],
}


@pytest.fixture(autouse=True)
def module(monkeypatch):
    if BUILT:
        monkeypatch.setenv("STOKER_AV_MODULE", str(BUILT[-1]))


def expected(img):
    if img.mode.startswith("I;16"):  # the upper byte, as of PNG
        return (np.asarray(img) >> 8).astype(np.uint8)[:, :, None].repeat(3, axis=2)
    return np.asarray(img.convert("RGB"))


def make(mode, size, seed=1):
    if mode in ("CMYK", "YCbCr"):
        return image(np.random.default_rng(seed), "RGB", *size).convert(mode)
    return image(np.random.default_rng(seed), mode, *size)


def check(tool, path, tolerance=0):
    got, orientation = decode(tool, path)
    with Image.open(path) as img:
        img.load()
        want = expected(img)
        assert orientation == img.getexif().get(0x0112, 1)
    assert got.shape == want.shape
    assert np.abs(got.astype(int) - want).max() <= tolerance
    height, width = got.shape[:2]
    x, y = width // 3, height // 4
    part, _ = decode(tool, path, x, y, width - x, (height - y + 1) // 2)
    assert (part == got[y : y + part.shape[0], x:]).all()
    gray, _ = decode(tool, path, "gray")
    assert (gray[:, :, 0] == np.asarray(Image.fromarray(got).convert("L"))).all()
    return got


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("ending", "mode"), [(e, m) for e, modes in CASES.items() for m in modes])
def test_modes(tool, tmp_path, ending, mode, size):
    path = tmp_path / f"a.{ending}"
    make(mode, size).save(path)
    check(tool, path, tolerance=1 if mode in ("CMYK", "YCbCr") else 0)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits", "group4", "group3"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_tiff_compressions(tool, tmp_path, mode, compression):
    if compression.startswith("group") and mode != "1":
        return  # made for one bit
    path = tmp_path / "a.tif"
    make(mode, (131, 77)).save(path, compression=compression, tiffinfo={278: 10})
    check(tool, path)


def write_tiff(path, order, tags, strips):
    """`tags`: numbers of 32 bits, one or several; the strips follow the directory."""
    tags = {**tags, 273: [0] * len(strips), 279: [len(strip) for strip in strips]}
    for _ in range(2):  # where the strips are is known after the first time
        entries, behind = b"", b""
        for tag, values in sorted(tags.items()):
            raw = struct.pack(f"{order}{len(values)}I", *values)
            at = struct.pack(order + "I", 14 + 12 * len(tags) + len(behind)) if len(raw) > 4 else raw
            entries += struct.pack(order + "HHI", tag, 4, len(values)) + at
            behind += raw if len(raw) > 4 else b""
        head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(tags))
        head += entries + bytes(4) + behind
        sizes = [0, *tags[279]]
        tags[273] = [len(head) + sum(sizes[: i + 1]) for i in range(len(strips))]
    path.write_bytes(head + b"".join(strips))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("channels", "planar"), [(1, False), (1, True), (3, False), (4, False), (3, True), (4, True)])
def test_tiff_of_16_bits(tool, tmp_path, planar, channels, order):
    pixels = np.random.default_rng(1).integers(0, 1 << 16, (32, 48, channels)).astype(order + "u2")
    tags = {256: [48], 257: [32], 258: [16] * channels, 259: [1], 262: [2 if channels > 1 else 1], 277: [channels]}
    tags |= {278: [32], 284: [2 if planar else 1]} | ({338: [2]} if channels == 4 else {})
    strips = [pixels[:, :, c].tobytes() for c in range(channels)] if planar else [pixels.tobytes()]
    write_tiff(tmp_path / "a.tif", order, tags, strips)
    want = np.broadcast_to((pixels[:, :, :3] >> 8).astype(np.uint8), (32, 48, 3))
    try:
        got, _ = decode(tool, tmp_path / "a.tif")
    except AssertionError as error:  # FFmpeg may know no planes of 16 bits
        assert planar and channels > 1 and "TIFF: " in str(error)
    else:
        assert (got == want).all()


@pytest.mark.parametrize("photometric", [0, 1])
@pytest.mark.parametrize("bits", [2, 4])
def test_tiff_of_few_bits(tool, tmp_path, bits, photometric):
    values = np.random.default_rng(1).integers(0, 1 << bits, (32, 48))
    per = 8 // bits
    packed = sum(values[:, i::per] << (8 - bits * (i + 1)) for i in range(per)).astype(np.uint8)
    tags = {256: [48], 257: [32], 258: [bits], 259: [1], 262: [photometric], 277: [1], 278: [32]}
    write_tiff(tmp_path / "a.tif", "<", tags, [packed.tobytes()])
    want = values * (255 // ((1 << bits) - 1))
    got, _ = decode(tool, tmp_path / "a.tif")
    assert (got == (want if photometric else 255 - want)[:, :, None]).all()


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="there is no ffmpeg command")
@pytest.mark.parametrize("pix_fmt", ["yuv420p10le", "yuv444p12le", "yuv422p", "yuv420p", "gbrp", "gray"])
def test_avif_as_the_command_decodes_it(tool, tmp_path, pix_fmt):
    path = tmp_path / "a.avif"
    ffmpeg = ["ffmpeg", "-nostdin", "-v", "error", "-y"]
    codec = ["-c:v", "libaom-av1", "-still-picture", "1", "-crf", "5", "-cpu-used", "8"]
    source = ["-f", "lavfi", "-i", "mandelbrot=s=64x48", "-frames:v", "1", "-pix_fmt", pix_fmt]
    subprocess.run([*ffmpeg, *source, *codec, path], check=True, timeout=100)
    scale = ["-sws_flags", "bilinear+accurate_rnd+full_chroma_int", "-pix_fmt", "rgb24", "-f", "rawvideo"]
    raw = subprocess.run([*ffmpeg, "-i", path, *scale, "-"], check=True, timeout=100, capture_output=True).stdout
    got, _ = decode(tool, path)
    assert (got == np.frombuffer(raw, np.uint8).reshape(48, 64, 3)).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["tif", "avif"])
def test_orientation(tool, tmp_path, ending, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{ending}"
    make("RGB", (40, 30)).save(path, exif=exif)
    assert decode(tool, path)[1] == orientation


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
@pytest.mark.parametrize("chroma", ["4:4:4", "4:0:0"])
def test_avif(tool, tmp_path, chroma, mode, size):
    path = tmp_path / "a.avif"
    for quality in (50, 100):
        make(mode, size).save(path, quality=quality, subsampling=chroma)
        check(tool, path, tolerance=1)


@pytest.mark.parametrize("chroma", ["4:2:0", "4:2:2"])
def test_avif_with_coarse_chroma(tool, tmp_path, chroma):
    """Chroma is interpolated in different ways, so the picture is a smooth one."""
    y, x = np.mgrid[0:90, 0:120]
    smooth = np.stack([x * 2, y * 2, 255 - x - y], axis=2).astype(np.uint8)
    path = tmp_path / "a.avif"
    Image.fromarray(smooth).save(path, quality=90, subsampling=chroma)
    check(tool, path, tolerance=4)


def test_bmp_of_16_bits(tool, tmp_path):
    """Five bits of each colour, written by hand: Pillow makes none."""
    width, height = 33, 5
    values = np.arange(width * height, dtype="<u2").reshape(height, width) * 197 & 0x7FFF
    rows = np.zeros((height, (width + 1) // 2 * 2), "<u2")
    rows[:, :width] = values[::-1]
    head = b"BM" + np.array([54 + rows.nbytes, 0, 54, 40, width, height], "<u4").tobytes()
    head += np.array([1, 16], "<u2").tobytes() + bytes(24)
    path = tmp_path / "a.bmp"
    path.write_bytes(head + rows.tobytes())
    check(tool, path)


def test_gif_shows_its_first_image(tool, tmp_path):
    """Transparent pixels keep their colour; what lies beside the image has that of the transparent one."""
    first, second = (make("P", (50, 40), seed) for seed in (1, 2))
    path = tmp_path / "a.gif"
    first.save(path, save_all=True, append_images=[second], transparency=3, interlace=1)
    got = check(tool, path)
    data = bytearray(path.read_bytes())
    data[6:10] = (70).to_bytes(2, "little") + (60).to_bytes(2, "little")  # a larger screen
    path.write_bytes(data)
    larger, _ = decode(tool, path)
    assert larger.shape == (60, 70, 3) and (larger[:40, :50] == got).all()
    fill = first.getpalette()[9:12]
    assert (larger[40:] == fill).all() and (larger[:, 50:] == fill).all()
