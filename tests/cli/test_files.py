"""stoker info and stoker sheet."""

import gzip
import json
import os
import shutil
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest
from conftest import picture
from PIL import Image


def test_info_says_what_files_are(stoker, tmp_path):
    image = picture(60, 40, 3)
    exif = Image.Exif()
    exif[0x112] = 6
    image.save(tmp_path / "turned.jpg", exif=exif)
    image.save(tmp_path / "steps.jpg", progressive=True)
    image.convert("RGBA").save(tmp_path / "alpha.png")
    image.save(tmp_path / "really-webp.jpg", "WEBP")
    image.convert("L").save(tmp_path / "grey.png")
    names = sorted(tmp_path.iterdir())
    done = stoker("info", "--json", *names)
    assert done.returncode == 0, done.stderr
    found = {entry["file"].rsplit("/", 1)[1]: entry for entry in json.loads(done.stdout)}
    assert all(e["decodes"] and e["error"] is None and (e["width"], e["height"]) == (60, 40) for e in found.values())
    formats = {name: entry["format"] for name, entry in found.items()}
    assert formats == {
        "turned.jpg": "JPEG", "steps.jpg": "JPEG", "alpha.png": "PNG", "really-webp.jpg": "WebP", "grey.png": "PNG"
    }  # fmt: skip
    assert found["turned.jpg"]["orientation"] == 6 and found["steps.jpg"]["orientation"] == 1
    assert found["steps.jpg"]["progressive"] and not found["turned.jpg"]["progressive"]
    assert (found["alpha.png"]["channels"], found["grey.png"]["channels"]) == (4, 1)
    assert found["grey.png"]["bytes"] == (tmp_path / "grey.png").stat().st_size


def test_info_prints_a_line_a_file(stoker, tmp_path):
    picture(60, 40, 3).save(tmp_path / "a.jpg")
    whole = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "b.jpg").write_bytes(whole[: -len(whole) // 10])
    (tmp_path / "c.jpg").write_text("words")
    done = stoker("info", *(tmp_path / f"{name}.jpg" for name in "abcd"))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert "JPEG 60x40" in lines[0] and lines[0].endswith(": decodes")
    assert "JPEG 60x40" in lines[1] and "does not decode: " in lines[1], "a header alone is not enough"
    assert "does not decode: " in lines[2]
    assert "cannot be read: " in lines[3] and "No such file" in lines[3]


def test_info_of_what_is_no_picture(stoker, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3), "<f4"))
    with wave.open(str(tmp_path / "b.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(4 * 4000))
    for ending in ("tar", "zip"):
        shutil.make_archive(str(tmp_path / "c"), ending, tmp_path, "b.wav")
    names = [tmp_path / name for name in ("a.npy", "b.wav", "c.tar", "c.zip")]
    done = stoker("info", "--json", *names)
    assert done.returncode == 0, done.stdout
    npy, wav, tar, zip = json.loads(done.stdout)
    assert (npy["format"], npy["dtype"], npy["shape"], npy["decodes"]) == ("npy", "<f4", [2, 3], True)
    assert (wav["channels"], wav["bits"], wav["sample_rate"], wav["seconds"]) == (2, 16, 8000, 0.5)
    assert tar["files"] == zip["files"] == 1
    assert tar["file_bytes"] == zip["file_bytes"] == names[1].stat().st_size
    for name in names:
        name.write_bytes(name.read_bytes()[: -30 if name.suffix == ".zip" else 150])
    names[2].write_bytes(b"")
    done = stoker("info", *names)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "npy <f4 (2, 3), C order" in lines[0]
    assert all("is broken: " in lines[i] for i in (0, 1, 3)) and "does not decode" in lines[2]


def packed(path, how):
    """`path` with the name of the packing added."""
    command = {"gz": ["gzip", "-c"], "zst": ["zstd", "-q", "-c"]}[how]
    out = path.with_name(f"{path.name}.{how}")
    out.write_bytes(subprocess.run([*command, path], capture_output=True, check=True).stdout)
    return out


@pytest.mark.parametrize(("how", "name"), [("gz", "gzip"), ("zst", "zstd")])
def test_info_of_what_is_packed(stoker, tmp_path, how, name):
    data = os.urandom(30_000)
    for member in ("a", "b"):
        (tmp_path / "in" / member).mkdir(parents=True)
        (tmp_path / "in" / member / "noise").write_bytes(data)
    (tmp_path / "lines").write_bytes(data[:1000])
    archive = packed(Path(shutil.make_archive(str(tmp_path / "c"), "tar", tmp_path / "in")), how)
    lines = packed(tmp_path / "lines", how)
    done = stoker("info", "--json", archive, lines)
    assert done.returncode == 0, done.stdout
    tar, plain = json.loads(done.stdout)
    assert (tar["format"], tar["compression"], tar["files"], tar["file_bytes"]) == ("tar", name, 2, 60_000)
    assert (plain["format"], plain["unpacked_bytes"], plain["decodes"]) == (name, 1000, True)
    assert json.loads(stoker("info", "--json", tmp_path / "c.tar").stdout)[0]["compression"] is None
    text = stoker("info", archive, lines).stdout.splitlines()
    assert text[0] == f"{archive}: tar in {name}, 2 files of 60000 bytes, {archive.stat().st_size} bytes: can be read"
    assert f": {name}, 1000 bytes unpacked, " in text[1]
    for path in (archive, lines):
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    done = stoker("info", archive, lines)
    assert done.returncode == 1 and done.stdout.count(": is broken: ") == 2, done.stdout


def test_info_unpacks_no_bombs(stoker, tmp_path):
    with gzip.open(tmp_path / "bomb.gz", "wb", 9) as file:
        for _ in range(70):
            file.write(bytes(1 << 20))
    done = stoker("info", tmp_path / "bomb.gz")
    assert done.returncode == 1 and ": cannot be read: " in done.stdout and "max_ratio" in done.stdout, done.stdout


def test_sheet_shows_a_batch(stoker, photos, tmp_path):
    out = tmp_path / "sheet.png"
    done = stoker("sheet", photos, out, "--size", 20, "--columns", 6, "--rows", 9, "--crop", "none", "--no-shuffle")
    assert done.returncode == 0, done.stderr
    assert "20 images" in done.stdout
    with Image.open(out) as image:
        assert image.format == "PNG" and image.mode == "RGB"
        sheet = np.asarray(image).astype(int)
    assert sheet.shape == (4 * 24 + 4, 6 * 24 + 4, 3), "four rows are enough for 20 images"
    for i, path in enumerate(sorted(photos.glob("*/*.jpg"))):
        y, x = 4 + i // 6 * 24, 4 + i % 6 * 24
        shown = sheet[y : y + 20, x : x + 20]
        with Image.open(path) as image:
            wanted = np.asarray(image.resize((20, 20), Image.Resampling.BILINEAR)).astype(int)
        assert abs(shown - wanted).mean() < 4, path
    assert (sheet[:4] == sheet[0, 0]).all() and (sheet[-20:, -20:] == sheet[0, 0]).all()


def test_sheet_is_the_same_for_a_seed(stoker, photos, tmp_path):
    def draw(name, *options):
        assert stoker("sheet", photos, tmp_path / name, "--size", 16, *options).returncode == 0
        return (tmp_path / name).read_bytes()

    first = draw("a.png", "--seed", 5, "--threads", 1)
    assert first == draw("b.png", "--seed", 5, "--threads", 4)
    assert first != draw("c.png", "--seed", 6)


def test_sheet_leaves_out_what_fails(stoker, broken, tmp_path):
    done = stoker("sheet", broken, tmp_path / "sheet.png", "--size", 16)
    assert done.returncode == 0
    assert "8 images" in done.stdout
    assert done.stderr.count("left out: ") == 2 and "x1.jpg" in done.stderr


def test_sheet_of_nothing(stoker, tmp_path):
    done = stoker("sheet", tmp_path, tmp_path / "sheet.png")
    assert done.returncode == 1
    assert done.stderr and not (tmp_path / "sheet.png").exists()


def test_sheet_is_png_only(stoker, photos, tmp_path):
    done = stoker("sheet", photos, tmp_path / "sheet.jpg", "--size", 16)
    assert done.returncode == 2
    assert "sheet.jpg" in done.stderr and ".png" in done.stderr
    assert not list(tmp_path.glob("sheet*"))


def test_sheet_where_nothing_can_be_written(stoker, photos, tmp_path):
    done = stoker("sheet", photos, tmp_path / "no" / "sheet.png", "--size", 16)
    assert done.returncode == 3
    assert "sheet.png" in done.stderr


def test_sheet_too_large(stoker, photos, tmp_path):
    done = stoker("sheet", photos, tmp_path / "s.png", "--size", 4096, "--columns", 20, "--rows", 1, "--threads", 1)
    assert done.returncode == 2
    assert "65500" in done.stderr and not (tmp_path / "s.png").exists()


def test_info_of_images_that_ffmpeg_decodes(stoker, tmp_path):
    """What the header says needs no FFmpeg."""
    image = picture(60, 40, 3)
    for ending in ("avif", "bmp", "gif", "tif"):
        image.save(tmp_path / f"a.{ending}")
    missing = {**os.environ, "STOKER_AV_MODULE": "/nonexistent.so"}
    for env in [missing] + [dict(os.environ)] * bool(os.environ.get("STOKER_AV_MODULE")):
        done = stoker("info", "--json", *sorted(tmp_path.iterdir()), env=env)
        found = json.loads(done.stdout)
        assert [e["format"] for e in found] == ["AVIF", "BMP", "GIF", "TIFF"]
        assert all((e["width"], e["height"], e["orientation"]) == (60, 40, 1) for e in found)
        assert [e["decodes"] for e in found] == [env is not missing] * 4
        assert all(e["decodes"] or "/nonexistent.so" in e["error"] for e in found)
