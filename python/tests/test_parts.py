"""parts= of the ops that decode: samples of several kinds of media, each part by its own op."""

from __future__ import annotations

import io
import re
import wave

import numpy as np
import pytest
from PIL import Image

import stoker
from av import make, needs_ffmpeg
from shards import write as tar
from stoker import PipelineBuilder, ops, source

FILES = {"image": "jpg", "feat": "npy", "sound": "wav"}
N = 10


def jpeg(i: int, size=(40, 30)) -> bytes:
    out = io.BytesIO()
    ramp = np.add.outer(np.arange(size[1]) * 3, np.arange(size[0]) * 2) + 10 * i
    Image.fromarray(np.repeat((ramp % 256).astype(np.uint8)[..., None], 3, 2)).save(out, "PNG" if i < 0 else "JPEG", quality=95)
    return out.getvalue()


def npy(i: int) -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(6, dtype=np.float32).reshape(2, 3) + i)
    return out.getvalue()


def sine(i: int, seconds=0.5) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((np.sin(np.arange(round(8000 * seconds)) * 0.05 * (i + 1)) * 20000).astype("<i2").tobytes())
    return out.getvalue()


def members(n=N):
    for i in range(n):
        yield f"{i:03}.jpg", jpeg(i)
        yield f"{i:03}.npy", npy(i)
        yield f"{i:03}.wav", sine(i)
        yield f"{i:03}.cls", str(i % 3).encode()


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    return tar(tmp_path_factory.mktemp("parts") / "a.tar", list(members()))


def build(src, *stages, n=4, threads=2, on_error="raise", **batch):
    builder = PipelineBuilder().add_source(src).pipe(ops.read(), on_error=on_error)
    for stage in stages:
        builder = builder.pipe(stage, on_error=on_error) if isinstance(stage, ops.Op) else builder.pipe(stage)
    return builder.batch(n, **batch).add_sink().build(num_threads=threads)


DECODERS = {
    "image": ops.decode_image(16, 12, quality="exact", parts="image"),
    "feat": ops.load_npy(parts=["feat"]),
    "sound": ops.decode_wav(0.25, parts=("sound",)),
}


@pytest.mark.parametrize("order", [("image", "feat", "sound"), ("sound", "image", "feat"), ("feat", "sound", "image")])
@pytest.mark.parametrize("threads", [1, 3])
def test_one_batch_of_pictures_arrays_sound_and_labels(shard, order, threads):
    src = source.Tar(shard, files=FILES, labels="cls")
    batches = list(build(src, *(DECODERS[name] for name in order), threads=threads))
    assert [len(b.id) for b in batches] == [4, 4, 2]
    images, sounds = alone(shard, "image"), alone(shard, "sound")
    at = 0
    for b in batches:
        assert sorted(b.fields()) == sorted([*FILES, "mask", "label", "id", "substituted"])
        k = slice(at, at + len(b.id))
        assert np.array_equal(b["image"], images[k]) and np.array_equal(b["sound"], sounds[k])
        assert np.array_equal(b["feat"], [np.arange(6, dtype=np.float32).reshape(2, 3) + i for i in range(k.start, k.stop)])
        assert np.asarray(b.label).tolist() == [i % 3 for i in range(k.start, k.stop)]
        assert np.asarray(b["mask"]).all() and np.asarray(b["mask"]).shape == (len(b.id), 2000)
        at = k.stop


def alone(shard, name):
    op = {"image": ops.decode_image(16, 12, quality="exact"), "sound": ops.decode_wav(0.25)}[name]
    return np.concatenate([np.asarray(b[name]) for b in build(source.Tar(shard, files={name: FILES[name]}), op)])


def test_a_picture_and_its_mask_beside_an_array(tmp_path):
    """Both get the same random crop and flip, whatever lies between them."""
    found = []
    for i in range(6):
        found += [(f"{i}.png", jpeg(-i - 1)), (f"{i}.npy", npy(i)), (f"{i}.seg.png", jpeg(-i - 1))]
    path = tar(tmp_path / "m.tar", found)
    crop = {"crop": "random_resized", "flip": 0.5, "quality": "exact"}
    src = source.Tar(path, files={"image": "png", "feat": "npy", "mask": "seg.png"}, seed=3)
    picture = ops.decode_image(16, 16, parts=["mask", "image"], nearest=["image", "mask"], gray=["mask"], **crop)
    (b,) = build(src, picture, ops.load_npy(parts="feat"), n=6)
    image, mask = np.asarray(b["image"]), np.asarray(b["mask"])
    assert image.shape == (6, 16, 16, 3) and mask.shape == (6, 16, 16, 1)
    assert np.array_equal(image[..., :1], mask) and len({m.tobytes() for m in mask}) == 6
    two = source.Tar(path, files={"image": "png", "mask": "seg.png"}, seed=3)
    (both,) = build(two, ops.decode_image(16, 16, nearest=["image", "mask"], gray=["mask"], **crop), n=6)
    assert np.array_equal(both["image"], image) and np.array_equal(both["mask"], mask)


def test_ops_for_arrays_come_behind_the_last_decoder(tmp_path):
    path = tar(tmp_path / "two.tar", [(f"{i}.{e}", jpeg(i)) for i in range(4) for e in ("a.jpg", "b.jpg")])
    src = source.Tar(path, files={"a": "a.jpg", "b": "b.jpg"})
    (b,) = build(src, ops.decode_image(8, 8, parts="a"), ops.decode_image(8, 8, parts="b"), ops.grayscale(1))
    assert np.array_equal(b["a"], b["b"])
    with pytest.raises(stoker.InvalidArgumentError, match="stage 'grayscale' gets samples whose part 'b' still holds bytes"):
        build(src, ops.decode_image(8, 8, parts="a"), ops.grayscale(1), ops.decode_image(8, 8, parts="b"))


def test_isolated(shard):
    src = source.Tar(shard, files=FILES, labels="cls")
    stages = ops.decode_wav(0.25, parts="sound", isolate=True), ops.load_npy(parts="feat"), ops.decode_image(16, 12, quality="exact", parts="image", isolate=True)
    (b,) = build(src, *stages, n=N)
    assert np.array_equal(b["image"], alone(shard, "image")) and np.array_equal(b["sound"], alone(shard, "sound"))
    assert np.asarray(b["feat"]).shape == (N, 2, 3) and np.asarray(b["mask"]).all()


@needs_ffmpeg
@pytest.mark.parametrize("isolate", [False, True])
def test_video_and_sound_beside_an_array(tmp_path, isolate):
    video = make(tmp_path / "a.mp4", "-c:v", "mpeg4").read_bytes()
    found = [(f"{i}.{ending}", data) for i in range(3) for ending, data in (("npy", npy(i)), ("mp4", video), ("wav", sine(i)))]
    src = source.Tar(tar(tmp_path / "av.tar", found), files={"feat": "npy", "clip": "mp4", "sound": "wav"}, seed=1)
    watch = ops.decode_video(4, size=16, where="random", parts="clip", isolate=isolate)
    listen = ops.decode_audio(0.25, channels=1, where="random", parts="sound", isolate=isolate)
    (b,) = build(src, watch, listen, ops.load_npy(parts="feat"))
    assert b["clip"].shape == (3, 4, 16, 16, 3) and b["sound"].shape == (3, 1, 2000) and b["feat"].shape == (3, 2, 3)
    (c,) = build(source.Tar(src.shards, files={"clip": "mp4"}, seed=1), ops.decode_video(4, size=16, where="random"))
    assert np.array_equal(b["clip"], c["clip"]) and np.asarray(b["mask"]).all()


def test_what_fails_is_skipped_and_substituted(tmp_path):
    found = [(name, b"broken" if name in ("001.npy", "003.jpg", "006.wav") else data) for name, data in members()]
    path = tar(tmp_path / "broken.tar", found)
    for on_error in ("skip", "substitute"):
        pipeline = build(source.Tar(path, files=FILES, labels="cls"), *DECODERS.values(), n=N, on_error=on_error)
        (b,) = pipeline
        ids = np.asarray(b.id).tolist()
        assert {1, 3, 6}.isdisjoint(ids) and len(ids) == (N if on_error == "substitute" else N - 3)
        assert np.array_equal(np.asarray(b["feat"])[:, 0, 0], ids) and np.asarray(b.label).tolist() == [i % 3 for i in ids]
        assert np.array_equal(b["image"], alone(tar(tmp_path / "good.tar", list(members())), "image")[ids])
        assert pipeline.stats()["failed"] >= 3


def test_an_empty_batch_has_the_fields_that_are_known(tmp_path):
    path = tar(tmp_path / "none.tar", [(name, b"x") for name, _ in members(2)])
    src = source.Tar(path, files=FILES)
    stages = DECODERS["image"], DECODERS["feat"], ops.decode_wav(0.25, sample_rate=8000, channels=1, parts="sound")
    (b,) = build(src, *stages, n=2, on_error="skip", keep_empty=True)
    shapes = {name: np.asarray(b[name]).shape for name in ("image", "sound", "mask")}
    assert shapes == {"image": (0, 12, 16, 3), "sound": (0, 1, 2000), "mask": (0, 2000)}


def test_the_plan_says_who_takes_what(shard):
    builder = PipelineBuilder().add_source(source.Tar(shard, files=FILES)).pipe(ops.read())
    for op in DECODERS.values():
        builder = builder.pipe(op)
    lines = str(builder.batch(4).add_sink().build(num_threads=1)).splitlines()
    for name, op in zip(FILES, ("decode_image", "load_npy", "decode_wav"), strict=True):
        (line,) = [line for line in lines if op in line]
        assert re.search(f", takes {name}(, adds mask)?$", line), line


def test_names_that_are_wrong_are_errors_of_build(shard):
    src = source.Tar(shard, files=FILES)
    for op in (ops.decode_image(parts="pic"), ops.load_npy(parts=["feat", "pic"]), ops.decode_wav(parts="pic")):
        with pytest.raises(ValueError, match=r"parts: the source has no part 'pic'; it has \['image', 'feat', 'sound'\]"):
            build(src, op)
    with pytest.raises(stoker.InvalidArgumentError, match="stage 'load_npy' takes the part 'image', which a stage before it has decoded"):
        build(src, ops.decode_image(8, 8, parts="image"), ops.load_npy())
    with pytest.raises(stoker.InvalidArgumentError, match="gets samples whose part 'feat' still holds bytes: decode all parts before it"):
        build(src, ops.decode_image(8, 8, parts=["image"]), ops.decode_wav(parts="sound"))
    with pytest.raises(stoker.InvalidArgumentError, match="part 'feat' still holds bytes"):
        build(src, ops.decode_image(8, 8, parts="image"), lambda sample: sample, ops.load_npy(parts=["feat", "sound"]))


def test_arguments():
    for wrong in ((), [""], [1], ""):
        with pytest.raises(ValueError, match="parts must be"):
            ops.load_npy(parts=wrong)
    assert ops.load_npy(parts="a") == ops.load_npy(parts=["a"]) != ops.load_npy()
    assert repr(ops.load_npy(parts="a")) == "load_npy(parts=('a',))"
    assert repr(ops.decode_wav(parts=("a", "b"))) == "decode_wav(seconds=None, where='all', parts=('a', 'b'))"
    assert "parts" not in repr(ops.decode_image())
