"""Fields of a batch: shared memory, its life, and how each protocol sees it."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from stoker import PipelineBuilder, ops, source
from support import build, torch_module


@pytest.fixture
def batch(photos):
    pipeline = build(source.Directory(photos, labels="dir"))
    with pipeline.auto_stop():
        return next(iter(pipeline))


def normalized(photos, dtype, layout="NHWC"):

    b = (
        PipelineBuilder()
        .add_source(source.Directory(photos, labels="dir"))
        .pipe(ops.read())
        .pipe(ops.decode_image(16, 16))
        .batch(4)
        .pipe(ops.normalize(0.5, 0.25, dtype=dtype, layout=layout))
        .add_sink()
    )
    pipeline = b.build(num_threads=1)
    with pipeline.auto_stop():
        return pipeline.get_item()


def test_what_a_batch_has(batch):
    assert (batch.size, len(batch), batch.epoch, batch.index) == (8, 8, 0, 0)
    assert {"image", "label", "id"} <= set(batch.fields())
    assert batch.image.shape == (8, 32, 32, 3) and batch.image.dtype == "uint8"
    assert batch.label.shape == (8,) and batch.label.dtype == "int64"
    assert batch.id.shape == (8,) and batch.id.dtype == "int64"
    assert batch.image.nbytes == 8 * 32 * 32 * 3 and batch.image.ndim == 4
    assert batch.substituted.dtype == "bool" and not np.asarray(batch.substituted).any()
    assert len(batch.key) == 8 and all(isinstance(key, str) for key in batch.key)
    assert repr(batch.image) == "Field((8, 32, 32, 3), uint8)"
    assert "size=8" in repr(batch) and "image" in repr(batch)
    assert bool(batch) and len(batch.image) == 8


def test_fields_by_name(batch):
    assert np.array_equal(np.asarray(batch["image"]), np.asarray(batch.image))
    assert batch["key"] == batch.key
    assert "image" in batch and "nothing" not in batch and 3 not in batch
    with pytest.raises(AttributeError, match="no field 'nothing'.*image"):
        batch.nothing
    for name in ("nothing", "with\0nul", "\udcff", 3):
        with pytest.raises(KeyError):
            batch[name]


def test_batches_and_fields_cannot_be_made_or_changed(batch):
    with pytest.raises(TypeError):
        type(batch)()
    with pytest.raises(TypeError):
        type(batch.image)()
    with pytest.raises(AttributeError):
        batch.size = 3
    with pytest.raises(AttributeError):
        batch.image.shape = (1,)
    with pytest.raises(TypeError):
        type(batch).extra = 1


def test_all_protocols_share_one_memory(batch):
    image = batch.image
    arrays = [
        np.asarray(image),
        np.asarray(memoryview(image)),
        np.from_dlpack(image),
        np.array(image, copy=False),
        np.lib.stride_tricks.as_strided(np.asarray(image)),
    ]
    addresses = {a.ctypes.data for a in arrays}
    assert addresses == {image.__array_interface__["data"][0]}
    arrays[0][0, 0, 0, 0] ^= 0xFF
    assert all(a[0, 0, 0, 0] == arrays[0][0, 0, 0, 0] for a in arrays)
    assert np.asarray(batch.image)[0, 0, 0, 0] == arrays[0][0, 0, 0, 0]


def test_memory_lives_as_long_as_its_users(photos):
    pipeline = build(source.Directory(photos))
    with pipeline.auto_stop():
        batch = next(iter(pipeline))
    image = batch.image
    want = bytes(memoryview(image))
    users = [np.asarray(image), np.from_dlpack(image), memoryview(image), image.__dlpack__()]
    del pipeline, batch, image
    gc.collect()
    assert all(np.asarray(user).tobytes() == want for user in users[:3])


def test_capsules_that_nobody_takes_are_given_back(batch):
    for _ in range(100):
        batch.image.__dlpack__()
        batch.image.__dlpack__(max_version=(1, 0))
        batch.image.__dlpack__(copy=True)


def test_memory_is_used_again_only_when_nobody_refers_to_it(photos):
    def addresses(keep):
        kept, seen = [], []
        pipeline = build(source.Directory(photos, epochs=20), batch=4, sink=1)
        for batch in pipeline:
            array = np.asarray(batch.image)
            seen.append(array.ctypes.data)
            if keep:
                kept.append((array, array.copy()))
        assert all(np.array_equal(array, copy) for array, copy in kept)
        return seen

    dropped, kept = addresses(False), addresses(True)
    assert len(dropped) == len(kept) == 240
    assert len(set(dropped)) < 40
    assert len(set(kept)) == 240


def test_buffer_protocol(batch):
    view = memoryview(batch.label)
    assert (view.format, view.itemsize, view.shape, view.readonly) == ("l", 8, (8,), False)
    assert view.tolist() == np.asarray(batch.label).tolist()
    image = memoryview(batch.image)
    assert image.contiguous and image.strides == (32 * 32 * 3, 32 * 3, 3, 1)
    assert batch.image.strides == image.strides
    assert bytes(batch.image) == image.tobytes()
    assert not batch.image.readonly


def test_array_interface(batch):
    interface = batch.image.__array_interface__
    assert interface["version"] == 3 and interface["typestr"] == "|u1"
    assert interface["shape"] == batch.image.shape and interface["data"][1] is False
    assert batch.label.__array_interface__["typestr"] == "<i8"


def test_dlpack_arguments(batch):
    image = batch.image
    assert image.__dlpack_device__() == (1, 0)
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    assert name(image.__dlpack__()) == b"dltensor"
    assert name(image.__dlpack__(max_version=(0, 8))) == b"dltensor"
    assert name(image.__dlpack__(max_version=(1, 0))) == b"dltensor_versioned"
    assert name(image.__dlpack__(dl_device=(1, 0), copy=False)) == b"dltensor"
    with pytest.raises(BufferError, match="CPU"):
        image.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="stream"):
        image.__dlpack__(stream=1)
    with pytest.raises(TypeError):
        image.__dlpack__(None)
    for bad in ({"max_version": 1}, {"dl_device": "cpu"}):
        with pytest.raises(TypeError):
            image.__dlpack__(**bad)


def test_dlpack_copies_when_asked(batch):
    shared = np.asarray(batch.image)
    copied = np.from_dlpack(batch.image, copy=True)
    assert np.array_equal(shared, copied) and not np.shares_memory(shared, copied)
    copied[:] = 7
    assert not np.array_equal(shared, copied)


def test_dlpack_sees_every_kind_of_element(photos, paths):
    n = len(paths)
    columns = {
        name: np.arange(n).astype(name)
        for name in (
            "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
            "float16", "float32", "float64",
        )
    }  # fmt: skip
    pipeline = build(source.List(paths, **{f"x_{k}": v for k, v in columns.items()}), batch=n)
    (batch,) = pipeline
    for name, values in columns.items():
        field = batch[f"x_{name}"]
        assert field.dtype == name
        for array in (np.from_dlpack(field), np.asarray(field), np.asarray(memoryview(field))):
            assert array.dtype == values.dtype and np.array_equal(array, values)


def test_bfloat16_has_dlpack_only(photos):
    image = normalized(photos, "bfloat16").image
    assert image.dtype == "bfloat16" and image.nbytes == 4 * 16 * 16 * 3 * 2
    assert image.__dlpack__() is not None
    with pytest.raises(BufferError, match="torch.from_dlpack"):
        memoryview(image)
    with pytest.raises(AttributeError, match="torch.from_dlpack"):
        image.__array_interface__
    with pytest.raises(TypeError, match="torch.from_dlpack"):
        np.asarray(image)


def test_float16_and_layout(photos):
    half = normalized(photos, "float16")
    full = normalized(photos, "float32", "NCHW")
    assert memoryview(half.image).format == "e"
    a, b = np.asarray(half.image), np.asarray(full.image)
    assert a.dtype == np.float16 and b.dtype == np.float32
    assert b.shape == (4, 3, 16, 16)
    assert np.allclose(a.transpose(0, 3, 1, 2), b, atol=2e-3)


def test_torch_shares_memory(photos, batch):
    torch = torch_module()
    tensor = torch.from_dlpack(batch.image)
    assert tensor.shape == batch.image.shape and tensor.dtype == torch.uint8
    assert tensor.data_ptr() == np.asarray(batch.image).ctypes.data
    half = torch.from_dlpack(normalized(photos, "bfloat16").image)
    full = torch.from_dlpack(normalized(photos, "float32").image)
    assert half.dtype == torch.bfloat16
    assert torch.allclose(half.float(), full, atol=2e-2)


def test_array_method(batch):
    assert np.array_equal(batch.image.__array__(), np.asarray(batch.image))
    assert batch.image.__array__(np.float32).dtype == np.float32
    assert not np.shares_memory(batch.image.__array__(copy=True), np.asarray(batch.image))
