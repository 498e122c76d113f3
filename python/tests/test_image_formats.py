"""ops.decode_image of AVIF, BMP, GIF and TIFF files, which FFmpeg decodes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image

import stoker
from av import needs_ffmpeg
from stoker import PipelineBuilder, PipelineFailure, ops, source
from support import build, picture

LOSSLESS = {
    "bmp": lambda im, f: im.save(f, "BMP"),
    "tif": lambda im, f: im.save(f, "TIFF", compression="tiff_lzw"),
    "tiff": lambda im, f: im.convert("RGBA").save(f, "TIFF"),
    "gif": lambda im, f: im.quantize(64).save(f, "GIF", save_all=True, append_images=[picture(99, 20, 20)]),
}


def write(folder, ending, seeds=range(6)):
    """Pictures of an ending, and the same pixels as PNG."""
    mine, png = [], []
    for seed in seeds:
        image = picture(seed, 90 + 7 * seed, 120 - 5 * seed)
        mine.append(folder / f"{seed}.{ending}")
        png.append(folder / f"{seed}.png")
        LOSSLESS[ending](image, mine[-1])
        with Image.open(mine[-1]) as saved:
            saved.convert("RGB").save(png[-1])
    return mine, png


def batch_of(paths, **options):
    (batch,) = build(source.List(paths, shuffle=True, seed=3), batch=len(paths), **options)
    return np.asarray(batch.image)


@needs_ffmpeg
@pytest.mark.parametrize("ending", LOSSLESS)
@pytest.mark.parametrize("quality", ["fast", "exact"])
def test_the_same_as_of_a_png(tmp_path, ending, quality):
    """Crops, sizes, flips and grays: all that follows the decoding is the same."""
    mine, png = write(tmp_path, ending)
    for options in ({"size": 40}, {"size": 33, "crop": "center", "flip": 0.0}, {"size": 24, "color": "gray"}):
        assert np.array_equal(batch_of(mine, quality=quality, **options), batch_of(png, quality=quality, **options))


@needs_ffmpeg
def test_avif(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    image = picture(0, 100, 80)
    image.save(tmp_path / "a.avif", quality=95, subsampling="4:4:4", exif=exif)
    (batch,) = build(source.List([tmp_path / "a.avif"]), batch=1, size=50, crop=None, flip=0.0, quality="exact")
    want = image.transpose(Image.Transpose.ROTATE_270).resize((50, 50), Image.Resampling.BILINEAR)
    error = np.asarray(batch.image)[0].astype(float) - np.asarray(want)
    assert 10 * np.log10(255**2 / (error**2).mean()) > 38


@needs_ffmpeg
def test_folders_archives_and_wrong_names(tmp_path):
    (tmp_path / "in").mkdir()
    data = {}
    for name, kind in {"a.avif": "AVIF", "b.BMP": "BMP", "c.gif": "GIF", "d.tif": "TIFF", "e.jpg": "BMP"}.items():
        file = io.BytesIO()
        picture(1, 40, 40).save(file, kind)
        (tmp_path / "in" / name).write_bytes(file.getvalue())
        data[name] = file.getvalue()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, value in data.items():
            info = tarfile.TarInfo(name.lower())
            info.size = len(value)
            archive.addfile(info, io.BytesIO(value))
    found = [batch for src in (source.Directory(tmp_path / "in"), source.Tar(tmp_path / "a.tar")) for batch in build(src)]
    assert [len(batch) for batch in found] == [5, 5]
    assert np.asarray(found[0].image).shape == (5, 32, 32, 3)


def failure_of(path, **options):
    with pytest.raises(PipelineFailure) as caught:
        list(build(source.List([path]), **options))
    (error,) = caught.value.exceptions
    assert path.name in str(error)
    return error


@pytest.mark.parametrize("ending", LOSSLESS)
def test_limits_come_before_decoding(tmp_path, ending):
    (path,), _ = write(tmp_path, ending, [1])
    assert isinstance(failure_of(path, max_pixels=97 * 115 - 1), stoker.LimitError)
    assert isinstance(failure_of(path, max_side=114), stoker.LimitError)


@needs_ffmpeg
@pytest.mark.parametrize("ending", LOSSLESS)
def test_damage_is_named_and_counted(tmp_path, ending):
    paths, _ = write(tmp_path, ending, range(4))
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[: len(whole) // 2])
    assert isinstance(failure_of(paths[1]), stoker.CorruptError)
    pipeline = build(source.List(paths), decode={"on_error": "skip"})
    (batch,) = pipeline
    (failed,) = pipeline.failures()
    assert (len(batch), failed.stage, failed.id) == (3, "decode_image", 1)


def test_without_ffmpeg(tmp_path):
    """JPEG and PNG go on; what needs FFmpeg says how to get it, and that only when it comes."""
    picture(0, 20, 20).save(tmp_path / "a.png")
    picture(0, 20, 20).save(tmp_path / "b.gif")
    code = """
import sys, stoker
from stoker import PipelineBuilder, ops, source
p = PipelineBuilder().add_source(source.Directory(sys.argv[1])).pipe(ops.read())
p = p.pipe(ops.decode_image(8, 8), on_error="skip").batch(2).add_sink().build(num_threads=1, max_failures=-1)
print([len(batch) for batch in p])
print(p.failures()[0])
"""
    env = {**os.environ, "STOKER_AV_MODULE": "58"}
    line = [sys.executable, "-c", code, str(tmp_path)]
    out = subprocess.run(line, env=env, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert out[0] == "[1]" and "GIF: " in out[1] and "stoker-av-58.so" in out[1]


@needs_ffmpeg
def test_masks_and_whole_images(tmp_path):
    mask = Image.fromarray(np.arange(30 * 20, dtype=np.uint8).reshape(20, 30) // 50)
    mask.save(tmp_path / "mask.tif")
    mask.convert("RGB").save(tmp_path / "image.bmp")
    src = source.List(image=[tmp_path / "image.bmp"], mask=[tmp_path / "mask.tif"])
    pipeline = PipelineBuilder().add_source(src).pipe(ops.read()).pipe(ops.decode_image(gray=["mask"]))
    (batch,) = pipeline.batch(1).add_sink().build(num_threads=1)
    assert np.array_equal(np.asarray(batch.mask)[0, :, :, 0], np.asarray(mask))
    assert np.array_equal(np.asarray(batch.image)[0], np.asarray(mask.convert("RGB")))


SMALL = {
    "a.avif": lambda im, f: im.save(f, "AVIF", quality=60),
    "rgb.bmp": lambda im, f: im.save(f, "BMP"),
    "a.gif": lambda im, f: im.quantize(8).save(f, "GIF"),
    "lzw.tif": lambda im, f: im.save(f, "TIFF", compression="tiff_lzw"),
    "deflate.tif": lambda im, f: im.save(f, "TIFF", compression="tiff_adobe_deflate"),
    "packbits.tif": lambda im, f: im.save(f, "TIFF", compression="packbits"),
}


def decode_each(folder, files):
    """What becomes of each: pixels, or None."""
    for i, data in enumerate(files):
        (folder / f"{i:05}.bin").write_bytes(data)
    src = source.Directory(folder, pattern="*.bin")
    builder = PipelineBuilder().add_source(src).pipe(ops.read())
    builder.pipe(ops.decode_image(16, 16, crop=None, quality="exact"), on_error="skip")
    pipeline = builder.batch(1, keep_empty=True).add_sink().build(num_threads=2, max_failures=-1)
    found = [None] * len(files)
    for batch in pipeline:
        for i, image in zip(np.asarray(batch.id).tolist(), np.asarray(batch.image), strict=True):
            found[i] = image.copy()
    return found


@needs_ffmpeg
@pytest.mark.parametrize("kind", SMALL)
def test_cut_at_every_length(tmp_path, kind):
    """An error, or, where what was cut off is no part of the picture, the picture."""
    file = io.BytesIO()
    SMALL[kind](picture(5, 17, 9), file)
    whole = file.getvalue()
    found = decode_each(tmp_path, [whole[:cut] for cut in range(len(whole) + 1)])
    good = [image for image in found if image is not None]
    assert len(good) < 30 and all(np.array_equal(image, found[-1]) for image in good)


@needs_ffmpeg
@pytest.mark.parametrize("kind", SMALL)
def test_damaged_anywhere(tmp_path, kind):
    file = io.BytesIO()
    SMALL[kind](picture(5, 17, 9), file)
    whole = file.getvalue()
    found = decode_each(tmp_path, [whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in range(len(whole))])
    assert sum(image is None for image in found) > 5
