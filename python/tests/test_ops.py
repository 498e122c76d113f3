"""Ops: arguments, and what they make of pictures compared with Pillow."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from stoker import PipelineBuilder, ops, source
from support import build, jpeg, picture

FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "nearest": Image.Resampling.NEAREST,
}


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"width": 0, "height": 4}, ValueError, "width"),
        ({"width": 4, "height": -4}, ValueError, "height"),
        ({"width": 4}, ValueError, "together"),
        ({"width": 4.0, "height": 4}, TypeError, "width"),
        ({"width": 10**6, "height": 4}, ValueError, "width"),
        ({"width": 4, "height": 4, "crop": "left"}, ValueError, "crop"),
        ({"crop": "center"}, ValueError, "crop"),
        ({"filter": "cubic"}, ValueError, "filter"),
        ({"filter": 3}, TypeError, "filter"),
        ({"quality": "best"}, ValueError, "quality"),
        ({"color": "cmyk"}, ValueError, "color"),
        ({"flip": 1.5}, ValueError, "flip"),
        ({"flip": "yes"}, TypeError, "flip"),
        ({"flip": float("nan")}, ValueError, "flip"),
        ({"scale": (0.5, 0.1)}, ValueError, "scale"),
        ({"scale": (0.5, 1.1)}, ValueError, "scale"),
        ({"scale": 0.5}, TypeError, "scale"),
        ({"ratio": (0, 1)}, ValueError, "ratio"),
        ({"ratio": ("a", 1)}, TypeError, "ratio"),
        ({"resize": 0}, ValueError, "resize"),
        ({"orientation": 1}, TypeError, "orientation"),
        ({"nearest": "mask"}, TypeError, "nearest"),
        ({"max_pixels": 0}, ValueError, "max_pixels"),
        ({"max_side": 0}, ValueError, "max_side"),
    ],
)
def test_decode_image_names_the_bad_argument(options, error, text):
    with pytest.raises(error, match=text):
        ops.decode_image(**options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"mean": "a"}, ValueError, "mean"),
        ({"mean": [1, 2], "std": [1, 2, 3]}, ValueError, "mean has 2"),
        ({"std": 0}, ValueError, "std"),
        ({"std": [1, 0, 1]}, ValueError, "std"),
        ({"mean": [1] * 5}, ValueError, "mean"),
        ({"mean": [None]}, TypeError, "mean"),
        ({"scale": 0}, ValueError, "scale"),
        ({"scale": float("inf")}, ValueError, "scale"),
        ({"dtype": "int8"}, ValueError, "dtype"),
        ({"layout": "HWC"}, ValueError, "layout"),
        ({"field": ""}, TypeError, "field"),
    ],
)
def test_normalize_names_the_bad_argument(options, error, text):
    with pytest.raises(error, match=text):
        ops.normalize(**options)


def test_ops_are_values():
    a, b = ops.decode_image(224, 224, flip=0.5), ops.decode_image(224, 224, flip=0.5)
    assert a == b and hash(a) == hash(b) and a != ops.decode_image(224, 224)
    assert "flip=0.5" in repr(a)
    with pytest.raises(AttributeError):
        a.flip = 1.0
    assert ops.normalize([0.5], np.float32(2)) == ops.normalize(0.5, 2.0)
    with pytest.raises(ValueError, match="max_bytes"):
        ops.read(max_bytes=0)


def test_parts_that_the_source_has_not(paths):
    with pytest.raises(ValueError, match="no part 'depth'"):
        build(source.List(paths), nearest=["depth"])


def decode_all(files, **options):
    """The decoded pictures, one batch."""
    options = {"crop": None, "flip": 0.0, "size": 48, **options}
    (batch,) = build(source.List(files), batch=len(files), **options)
    return np.asarray(batch.image)


def expected(file, size, resample):
    """The whole picture resized, as Pillow does it."""
    return np.asarray(Image.open(file).convert("RGB").resize((size, size), resample))


def psnr(a, b):
    error = np.mean((a.astype(np.float64) - b) ** 2)
    return 99.0 if error == 0 else 10 * np.log10(255**2 / error)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("size", [24, 48, 250])
def test_exact_quality_equals_pillow(paths, name, size):
    files = paths[:8]
    got = decode_all(files, size=size, filter=name, quality="exact")
    for image, file in zip(got, files, strict=True):
        want = expected(file, size, FILTERS[name])
        assert np.abs(image.astype(int) - want).max() <= 1, (name, size, file)


def patchwork(seed):
    """Patches of 7 pixels: hard for filters that hardly overlap."""
    tile = np.kron(np.random.default_rng(seed).normal(0, 30, (69, 92, 1)), np.ones((7, 7, 1)))[:480, :640]
    return Image.fromarray(np.clip(np.asarray(picture(seed, 640, 480)) + tile, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("name", [name for name in FILTERS if name != "nearest"])
@pytest.mark.parametrize("size", [24, 48, 96])
def test_fast_quality_is_close(tmp_path, size, name):
    files = []
    for seed in range(6):
        files.append(tmp_path / f"{seed}.jpg")
        files[-1].write_bytes(jpeg(patchwork(seed) if seed % 2 else picture(seed, 640, 480)))
    got = decode_all(files, size=size, filter=name, quality="fast")
    for image, file in zip(got, files, strict=True):
        assert psnr(image, expected(file, size, FILTERS[name])) >= 38


def test_center_crop_equals_pillow(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(picture(1, 300, 200)))
    got = decode_all([path], crop="center", size=96, resize=128, quality="exact")[0]
    whole = Image.open(path).resize((192, 128), FILTERS["bilinear"])
    want = np.asarray(whole.crop((48, 16, 144, 112)))
    assert np.abs(got.astype(int) - want).max() <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(tmp_path, orientation):
    from PIL import ImageOps

    path = tmp_path / "a.jpg"
    exif = Image.Exif()
    exif[0x0112] = orientation
    path.write_bytes(jpeg(picture(2, 120, 80), exif=exif.tobytes()))
    got = decode_all([path], quality="exact")[0]
    want = np.asarray(ImageOps.exif_transpose(Image.open(path)).resize((48, 48), FILTERS["bilinear"]))
    assert np.abs(got.astype(int) - want).max() <= 1
    plain = decode_all([path], quality="exact", orientation=False)[0]
    assert np.abs(plain.astype(int) - expected(path, 48, FILTERS["bilinear"])).max() <= 1


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_comes_before_resampling(tmp_path, orientation, name):
    """Ties, rounding, what overshoots: as Pillow decides them, who turns, resizes, and flips then."""
    from PIL import ImageOps

    rng = np.random.default_rng(orientation)
    exif = Image.Exif()
    exif[0x0112] = orientation
    for stored, size in [((5, 4), (2, 2)), ((10, 8), (4, 4)), ((7, 2), (2, 5)), ((2, 12), (5, 5)), ((6, 31), (3, 9))]:
        path = tmp_path / "a.png"
        pixels = rng.integers(0, 2, (stored[1], stored[0], 3), np.uint8) * np.uint8(255)
        Image.fromarray(pixels).save(path, exif=exif.tobytes())
        upright = ImageOps.exif_transpose(Image.open(path))
        for width, height in {size, size[::-1]}:
            want = np.asarray(upright.resize((width, height), FILTERS[name])).astype(int)
            for flip in (0.0, 1.0):
                decode = ops.decode_image(width, height, filter=name, quality="exact", flip=flip)
                builder = PipelineBuilder().add_source(source.List([path])).pipe(ops.read()).pipe(decode)
                (batch,) = builder.batch(1).add_sink(1).build(num_threads=1)
                got = np.asarray(batch.image)[0].astype(int)
                assert np.abs(got - (want[:, ::-1] if flip else want)).max() <= 1, (stored, width, height, flip)
        if name in ("nearest", "box"):  # which decode at full size whatever the quality
            got = decode_all([path], filter=name, size=4, quality="fast")[0].astype(int)
            assert np.abs(got - np.asarray(upright.resize((4, 4), FILTERS[name]))).max() <= 1


KINDS = {
    "progressive.jpg": lambda im, f: im.save(f, "JPEG", progressive=True),
    "grey.jpg": lambda im, f: im.convert("L").save(f, "JPEG"),
    "444.jpg": lambda im, f: im.save(f, "JPEG", subsampling=0),
    "restart.jpg": lambda im, f: im.save(f, "JPEG", restart_marker_rows=1),
    "rgb.png": lambda im, f: im.save(f, "PNG"),
    "grey.png": lambda im, f: im.convert("L").save(f, "PNG"),
    "palette.png": lambda im, f: im.quantize(64).save(f, "PNG"),
    "lossless.webp": lambda im, f: im.save(f, "WEBP", lossless=True),
    "misnamed.jpg": lambda im, f: im.save(f, "PNG"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_pictures(tmp_path, kind):
    path = tmp_path / kind
    KINDS[kind](picture(3, 150, 110), path)
    got = decode_all([path], quality="exact")[0]
    assert np.abs(got.astype(int) - expected(path, 48, FILTERS["bilinear"])).max() <= 1


def test_lossy_webp_is_close(tmp_path):
    path = tmp_path / "a.webp"
    picture(3, 150, 110).save(path, "WEBP", quality=90)
    got = decode_all([path], quality="exact")[0]
    assert psnr(got, expected(path, 48, FILTERS["bilinear"])) >= 38


def test_cmyk(tmp_path):
    path = tmp_path / "a.jpg"
    picture(3, 150, 110).convert("CMYK").save(path, "JPEG")
    got = decode_all([path], quality="exact")[0]
    assert psnr(got, expected(path, 48, FILTERS["bilinear"])) >= 38


def test_grey_output(paths):
    got = decode_all(paths[:4], quality="exact", color="gray")
    assert got.shape == (4, 48, 48, 1)
    want = Image.open(paths[0])
    want.draft("L", want.size)  # the file's own luminance
    want = np.asarray(want.convert("L").resize((48, 48), FILTERS["bilinear"]))
    assert np.abs(got[0, :, :, 0].astype(int) - want).max() <= 2


def test_size_kept(tmp_path):
    files = [tmp_path / f"{i}.jpg" for i in range(3)]
    for i, file in enumerate(files):
        file.write_bytes(jpeg(picture(i, 70, 50)))
    (batch,) = build(source.List(files), size=None, crop=None, flip=0.0, quality="exact", batch=3)
    assert batch.image.shape == (3, 50, 70, 3)
    for image, file in zip(np.asarray(batch.image), files, strict=True):
        assert np.abs(image.astype(int) - np.asarray(Image.open(file))).max() <= 1


def test_flip(paths):
    plain = decode_all(paths[:6], quality="exact", flip=0.0)
    flipped = decode_all(paths[:6], quality="exact", flip=1.0)
    assert np.abs(plain[:, :, ::-1].astype(int) - flipped).max() <= 1
    some = decode_all(paths, quality="exact", flip=0.5)
    whole = decode_all(paths, quality="exact", flip=0.0)
    share = np.mean([not np.array_equal(a, b) for a, b in zip(some, whole, strict=True)])
    assert 0.2 < share < 0.8


def test_random_crops_differ_by_epoch_and_seed(paths):
    def crops(**order):
        return [np.asarray(b.image).copy() for b in build(source.List(paths[:8], **order), flip=0.0)]

    first, second = crops(epochs=2)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, crops()[0])
    assert not np.array_equal(first, crops(seed=1)[0])


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("scale", [255.0, 1.0])
def test_normalize(paths, layout, scale):
    from stoker import PipelineBuilder

    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

    def run(*last):
        b = PipelineBuilder().add_source(source.List(paths[:8])).pipe(ops.read())
        b.pipe(ops.decode_image(40, 24)).batch(8)
        for op in last:
            b.pipe(op)
        (batch,) = b.add_sink().build(num_threads=2)
        return np.asarray(batch.image)

    raw = run()
    got = run(ops.normalize(mean, std, scale=scale, layout=layout))
    want = (raw.astype(np.float64) / scale - mean) / std
    if layout == "NCHW":
        want = want.transpose(0, 3, 1, 2)
    assert got.dtype == np.float32 and got.shape == want.shape
    assert np.allclose(got, want, rtol=1e-5, atol=1e-5)


def test_masks_get_the_geometry_of_their_image(tmp_path):
    images, masks = [], []
    for i in range(4):
        base = np.zeros((120, 160, 3), np.uint8)
        base[20 + 10 * i : 70, 30:110] = 255
        images.append(tmp_path / f"i{i}.png")
        masks.append(tmp_path / f"m{i}.png")
        Image.fromarray(base).save(images[-1])
        Image.fromarray(np.where(base[:, :, 0] > 0, 200, 13).astype(np.uint8)).save(masks[-1])
    src = source.List(image=images, mask=masks)
    (batch,) = build(src, size=64, batch=4, gray=["mask"], scale=(0.3, 1.0), quality="exact")
    image, mask = np.asarray(batch.image), np.asarray(batch.mask)
    assert image.shape == (4, 64, 64, 3) and mask.shape == (4, 64, 64, 1)
    assert set(np.unique(mask)) <= {13, 200}  # nearest: no value in between
    agree = np.mean((image[..., 0] > 127) == (mask[..., 0] == 200))
    assert agree > 0.97
    assert batch.key == [str(p) for p in images]


def test_decoding_one_image():
    from stoker import _stoker

    options = ops.decode_image(30, 20)._options(0, 0)
    data = jpeg(picture(1, 90, 60))
    field = _stoker.decode_image(data, 0, **options)
    assert field.shape == (20, 30, 3)
    want = Image.open(io.BytesIO(data)).resize((30, 20), FILTERS["bilinear"])
    assert psnr(np.asarray(field), np.asarray(want)) >= 38
    with pytest.raises(RuntimeError):
        _stoker.decode_image(b"nonsense", 0, **options)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_normalize_takes_clips(tmp_path, layout):
    clips = np.random.default_rng(3).integers(0, 256, (4, 5, 6, 7, 3), np.uint8)
    paths = [tmp_path / f"{i}.npy" for i in range(4)]
    for path, clip in zip(paths, clips, strict=True):
        np.save(path, clip)
    builder = PipelineBuilder().add_source(source.List(paths)).pipe(ops.read()).pipe(ops.load_npy()).batch(4)
    builder.pipe(ops.normalize((0.4, 0.5, 0.6), (0.1, 0.2, 0.3), layout=layout))
    (batch,) = builder.add_sink(1).build(num_threads=2)
    want = (clips / 255 - [0.4, 0.5, 0.6]) / [0.1, 0.2, 0.3]
    if layout == "NCHW":
        want = want.transpose(0, 1, 4, 2, 3)
    got = np.asarray(batch.image)
    assert got.shape == want.shape and np.abs(got - want).max() < 1e-4
