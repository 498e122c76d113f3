"""Bad files and folders: each gives a clear error, or is counted; never a hang or garbage."""

from __future__ import annotations

import os
import shutil
import struct
import zlib

import numpy as np
import pytest

import stoker
from stoker import PipelineFailure, source
from support import build, jpeg, ok, picture, script


def big_jpeg() -> bytes:
    data = bytearray(jpeg(picture(0, 64, 64)))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", 65535, 65535)
    return bytes(data)


def png_bomb() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 6, 0, 0, 0)
    body = zlib.compress(bytes(1 << 20), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


BAD = {
    "zero bytes": (lambda f: f.write_bytes(b""), "decode_image"),
    "one byte": (lambda f: f.write_bytes(b"\xff"), "decode_image"),
    "truncated header": (lambda f: f.write_bytes(jpeg(picture(0, 64, 64))[:100]), "decode_image"),
    "truncated": (lambda f: f.write_bytes(jpeg(picture(0, 200, 200))[:-3000]), "decode_image"),
    "not a picture": (lambda f: f.write_text("hello " * 100), "decode_image"),
    "65535 x 65535": (lambda f: f.write_bytes(big_jpeg()), "decode_image"),
    "PNG bomb": (lambda f: f.write_bytes(png_bomb()), "decode_image"),
    "directory": (lambda f: f.mkdir(), "read"),
    "FIFO": (lambda f: os.mkfifo(f), "read"),
    "missing": (lambda f: None, "read"),
    "dangling link": (lambda f: f.symlink_to("nowhere"), "read"),
    "device": (lambda f: f.symlink_to("/dev/zero"), "read"),
}


@pytest.fixture(params=BAD)
def bad(request, tmp_path):
    path = tmp_path / "bad.jpg"
    make, stage = BAD[request.param]
    make(path)
    return path, stage


@pytest.fixture
def mixed(bad, paths):
    return [*paths[:5], bad[0], *paths[5:10]]


def test_raise_names_the_file(bad, mixed):
    pipeline = build(source.List(mixed), batch=2)
    with pytest.raises(PipelineFailure) as caught:
        list(pipeline)
    (error,) = caught.value.exceptions
    assert isinstance(error, stoker.Error) and "bad.jpg" in str(error)
    assert (error.stage, error.id, error.key) == (bad[1], 5, str(bad[0]))
    assert len(str(error)) > len(str(bad[0])) + 10  # and says why


def test_skip_counts_it(bad, mixed):
    skip = {"on_error": "skip"}
    pipeline = build(source.List(mixed), batch=11, crop=None, flip=0.0, read=skip, decode=skip)
    (batch,) = pipeline
    assert len(batch) == 10
    (failure,) = pipeline.failures()
    assert failure.id == 5 and failure.stage == bad[1]
    del mixed[5]
    (want,) = build(source.List(mixed), batch=11, crop=None, flip=0.0)
    assert np.array_equal(np.asarray(want.image), np.asarray(batch.image))


def test_each_cause_has_its_class(tmp_path):
    def error_of(make, **options):
        path = tmp_path / "x.jpg"
        make(path)
        with pytest.raises(PipelineFailure) as caught:
            list(build(source.List([path]), **options))
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        return type(caught.value.exceptions[0])

    assert error_of(BAD["missing"][0]) is stoker.NotFoundError
    assert error_of(BAD["not a picture"][0]) is stoker.UnsupportedError
    assert error_of(BAD["truncated"][0]) is stoker.CorruptError
    assert error_of(BAD["65535 x 65535"][0]) is stoker.LimitError
    assert error_of(BAD["PNG bomb"][0]) is stoker.LimitError

    def good(path):
        path.write_bytes(jpeg(picture(0, 100, 100)))

    assert error_of(good, max_pixels=5000) is stoker.LimitError
    assert error_of(good, max_side=99) is stoker.LimitError


def test_file_size_limit(tmp_path):
    from stoker import PipelineBuilder, ops

    path = tmp_path / "x.jpg"
    path.write_bytes(jpeg(picture(0, 100, 100)))
    pipeline = (
        PipelineBuilder().add_source(source.List([path])).pipe(ops.read(max_bytes=100)).add_sink().build(num_threads=1)
    )
    with pytest.raises(PipelineFailure) as caught:
        list(pipeline)
    assert isinstance(caught.value.exceptions[0], stoker.LimitError)


@pytest.mark.parametrize("kind", ["jpg", "png", "webp"])
def test_truncated_at_many_lengths(tmp_path, kind):
    whole = tmp_path / f"whole.{kind}"
    picture(4, 40, 30).save(whole)
    data = whole.read_bytes()
    files = []
    for n in range(0, len(data), max(1, len(data) // 150)):
        files.append(tmp_path / f"{n}.{kind}")
        files[-1].write_bytes(data[:n])
    files.append(whole)
    pipeline = build(
        source.List(files), batch=len(files), crop=None, flip=0.0, decode={"on_error": "skip"}
    )
    (batch,) = pipeline
    (want,) = build(source.List([whole]), batch=1, crop=None, flip=0.0)
    images = np.asarray(batch.image)
    assert batch.key[-1] == str(whole)
    # What survives is complete: the tail that is missing holds no pixels.
    assert all(np.array_equal(image, np.asarray(want.image)[0]) for image in images)
    failed = {s["name"]: s["failed"] for s in pipeline.stats()["stages"]}["decode_image"]
    assert failed == len(files) - len(batch) and failed > 0.9 * len(files) - 5


@pytest.mark.parametrize("options", [{}, {"labels": "dir"}, {"epochs": None}, {"shuffle": True}])
def test_empty_folder(tmp_path, options):
    src = source.Directory(tmp_path, **options)
    with pytest.raises(PipelineFailure) as caught:
        list(build(src))
    (error,) = caught.value.exceptions
    assert isinstance(error, ValueError) and str(tmp_path) in str(error) and "no files" in str(error)
    assert (error.stage, error.id, error.key) == ("source", None, None)
    with pytest.raises(stoker.InvalidArgumentError, match="no files"):
        src.count()


def test_nothing_that_fits_the_pattern(photos):
    with pytest.raises(PipelineFailure) as caught:
        list(build(source.Directory(photos, pattern="*.tif")))
    assert "*.tif" in str(caught.value.exceptions[0])


def test_empty_list():
    with pytest.raises(ValueError, match="no samples"):
        source.List([])


def test_one_file(paths):
    (batch,) = build(source.List(paths[:1]))
    assert len(batch) == 1


@pytest.mark.parametrize("what", ["missing", "file"])
def test_folder_that_cannot_be_listed(tmp_path, what):
    path = tmp_path / "folder"
    if what == "file":
        path.write_text("x")
    src = source.Directory(path)
    for use in (lambda: list(build(src)), build(src).start, src.count):
        with pytest.raises(stoker.Error) as caught:
            use()
        assert isinstance(caught.value, OSError) and str(path) in str(caught.value)
        assert caught.value.errno in (2, 20)


def test_folder_without_permission(tmp_path):
    path = tmp_path / "folder"
    path.mkdir(mode=0)
    code = """
        import sys, stoker
        from stoker import source
        try:
            source.Directory(sys.argv[1]).count()
        except stoker.Error as error:
            assert isinstance(error, PermissionError) or error.errno == 13, repr(error)
            assert sys.argv[1] in str(error)
            print("refused")
        """
    # root reads everything, unless it gives that up
    drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = script(code, path, before=drop)
    assert done.stdout.strip() == "refused", done.stderr


def test_file_that_disappears_after_the_listing(photos, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(photos, root)
    src = source.Directory(root)
    assert src.count() == 48
    (root / "c1" / "04.jpg").unlink()
    with pytest.raises(PipelineFailure) as caught:
        list(build(src))
    (error,) = caught.value.exceptions
    assert isinstance(error, FileNotFoundError) and error.id == 20 and "04.jpg" in str(error)
    assert error.errno == 2
    assert sum(len(b) for b in build(src, read={"on_error": "skip"})) == 47


def test_link_loops(photos, tmp_path):
    (tmp_path / "a").mkdir()
    shutil.copy(next(photos.glob("*/*.jpg")), tmp_path / "a" / "x.jpg")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    total = sum(len(b) for b in build(source.Directory(tmp_path)))
    assert total >= 1
    assert sum(len(b) for b in build(source.Directory(tmp_path, follow_links=False))) == 1


def test_names_that_are_not_utf8(photos, tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(folder)
    good = next(photos.glob("*/*.jpg")).read_bytes()
    for name, data in ((b"\xe9.jpg", good), (b"\xf0bad.jpg", b"bad")):
        with open(folder + b"/" + name, "wb") as file:
            file.write(data)
    src = source.Directory(tmp_path, labels="dir")
    assert [os.fsencode(name) for name in src.classes()] == [b"\xff\xfe"]
    (batch,) = build(src, decode={"on_error": "skip"})
    assert os.fsencode(batch.key[0]) == folder + b"/\xe9.jpg"
    with pytest.raises(PipelineFailure) as caught:
        list(build(src))
    (error,) = caught.value.exceptions
    assert "bad.jpg" in str(error) and str(error).encode()  # can be printed
    (batch,) = build(source.List([batch.key[0]]))
    assert len(batch) == 1


@pytest.mark.failpoints
def test_disk_errors(photos):
    ok(
        """
        import stoker
        from stoker import source
        from support import build
        try:
            list(build(source.Directory(sys.argv[1])))
        except stoker.PipelineFailure as failure:
            (error,) = failure.exceptions
            assert isinstance(error, OSError) and error.errno == 5, error
            assert ".jpg" in str(error) and error.stage == "read"
        else:
            sys.exit("nothing failed")
        pipeline = build(source.Directory(sys.argv[1]), read={"on_error": "skip"})
        assert list(pipeline) == [] and len(pipeline.failures()) == 10
        """,
        photos,
        STK_FAILPOINTS="read.pread=EIO",
    )
