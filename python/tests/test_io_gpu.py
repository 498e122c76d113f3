"""What needs a GPU: the names are there, and say what is missing; tensors move through PyTorch."""

from __future__ import annotations

import array
import sys
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import stoker
import stoker.io
from stoker.io import CPUBuffer, convert_array, cpu_storage, to_jax, to_numba, to_numpy, to_torch

from support import ok, torch_module

MISSING = {
    "cuda_config": lambda f: f(0, stream=2),
    "CUDABuffer": lambda f: f(),
    "CUDAConfig": lambda f: f(),
    "NvDecDecoder": lambda f: f(),
    "transfer_buffer": lambda f: f(None, device_config=None),
    "transfer_buffer_cpu": lambda f: f(None),
    "decode_packets_nvdec": lambda f: f(None, device_config=None, pix_fmt="bgr"),
    "nvdec_decoder": lambda f: f(None, None, scale_width=4),
    "streaming_load_video_nvdec": lambda f: f(b"", None, num_frames=3),
    "load_image_batch_nvjpeg": lambda f: f([b""], device_config=None, width=3, height=3),
    "decode_image_nvjpeg": lambda f: f(b""),
    "nv12_to_rgb": lambda f: f(None, device_config=None, coeff=1),
    "nv12_to_bgr": lambda f: f(None, device_config=None, sync=True),
}


@pytest.mark.parametrize("name", MISSING)
def test_names_say_what_is_missing(name):
    with pytest.raises(RuntimeError, match=f"^{name} needs an NVIDIA GPU and CUDA, which is not built in") as caught:
        MISSING[name](getattr(stoker.io, name))
    assert isinstance(caught.value, stoker.UnsupportedError)


@pytest.mark.parametrize("name", ["load_audio", "load_video", "load_image", "load_image_batch"])
def test_loaders_take_no_device(name):
    more = {"width": 1, "height": 1} if name == "load_image_batch" else {}
    with pytest.raises(stoker.UnsupportedError, match="^device_config needs an NVIDIA GPU.*leave it out"):
        getattr(stoker.io, name)(b"x", device_config=object(), **more)


def test_pinned_storage():
    with pytest.raises(RuntimeError, match="pin_memory=True needs an NVIDIA GPU") as caught:
        cpu_storage(10, pin_memory=True)
    assert isinstance(caught.value, stoker.UnsupportedError)


# --- arrays ---


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6).reshape(2, 3),
        np.arange(6).reshape(2, 3).T,
        np.arange(24, dtype=np.uint16)[::-2],
        np.zeros((2, 0), np.float32),
        np.float64([1.5, 2.5]),
        np.array([True, False]),
        np.array(7),
        [1, 2, 3],
        ((1.5, 2), (3, 4)),
        array.array("h", [1, 2]),
        bytearray(b"abc"),
    ],
    ids=["int64", "transposed", "backwards", "empty", "float64", "bool", "no extent", "list", "tuples", "array", "bytes"],
)
def test_convert_array(values):
    made = convert_array(values)
    want = np.asarray(memoryview(values) if isinstance(values, bytearray) else values)
    assert isinstance(made, CPUBuffer)
    assert to_numpy(made).dtype == want.dtype
    assert np.array_equal(to_numpy(made), want)
    assert not np.shares_memory(to_numpy(made), want)


def test_convert_array_of_tensors_and_buffers():
    torch = torch_module()
    once = convert_array(torch.arange(6).reshape(2, 3))
    assert np.array_equal(to_numpy(convert_array(once)), [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(TypeError, match="bfloat16"):
        convert_array(torch.zeros(3, dtype=torch.bfloat16))


def test_convert_array_into_storage():
    storage = cpu_storage(100)
    made = to_numpy(convert_array(np.arange(3), storage))
    assert list(made) == [0, 1, 2]
    convert_array([5, 6, 7], storage)
    assert list(made) == [5, 6, 7]
    with pytest.raises(ValueError, match="the storage has 100 bytes, and the array has 240"):
        convert_array(np.arange(30), storage)
    mine = bytearray(100)
    assert list(to_numpy(convert_array([1], mine))) == [1] and mine[0] == 1
    with pytest.raises(TypeError, match="cpu_storage"):
        convert_array([1], object())
    with pytest.raises(TypeError, match="read-only"):
        convert_array([1], bytes(10))
    with pytest.raises(ValueError, match="aligned to int64"):
        convert_array([1], memoryview(mine)[1:])


@pytest.mark.parametrize("values", ["text", 3, None, np.array([object()]), np.array(["a"]), np.zeros(2, complex)])
def test_convert_array_of_what_is_none(values):
    with pytest.raises(TypeError):
        convert_array(values)


class OnGpu:
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (0, False), "version": 3}


def test_protocols():
    made = convert_array([1, 2])
    assert isinstance(made, stoker.io.ArrayInterface)
    assert isinstance(np.zeros(3), stoker.io.ArrayInterface)
    assert not isinstance(made, stoker.io.CUDAArrayInterface)
    assert isinstance(OnGpu(), stoker.io.CUDAArrayInterface)
    assert not isinstance([1], stoker.io.ArrayInterface)


def test_numpy_takes_no_array_of_a_gpu():
    with pytest.raises(TypeError, match="GPU"):
        to_numpy(OnGpu())  # type: ignore[arg-type]


def test_numba_takes_arrays_as_they_are():
    made = convert_array([1, 2])
    seen = to_numba(made)
    seen[0] = 9
    assert list(to_numpy(made)) == [9, 2]


def hidden(monkeypatch, *names):
    """As if these packages were not installed."""
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def test_packages_that_are_missing(monkeypatch):
    hidden(monkeypatch, "jax", "numba", "torch", "torch.utils.dlpack")
    made = convert_array([1, 2])
    for use, package in ((lambda: to_jax(made), "jax"), (lambda: to_numba(OnGpu()), "numba-cuda"), (lambda: to_torch(made), "torch")):
        with pytest.raises(ImportError, match=f"pip install {package}$") as caught:
            use()
        assert isinstance(caught.value, stoker.NotInstalledError)
    with pytest.raises(stoker.NotInstalledError, match="pip install torch"):
        stoker.io.transfer_tensor_h2d([1])


def test_jax(monkeypatch):
    """Through the two functions of JAX that it needs, which NumPy has, too."""
    jax = SimpleNamespace(dlpack=SimpleNamespace(from_dlpack=np.from_dlpack), numpy=np)
    monkeypatch.setitem(sys.modules, "jax", jax)
    made = convert_array(np.float32([1, 2]))
    assert np.shares_memory(to_jax(made), to_numpy(made))
    old = SimpleNamespace(__array_interface__=made.__array_interface__)
    assert to_jax(old).tolist() == [1, 2]


def test_torch_shares_the_memory():
    torch = torch_module()
    made = convert_array(np.float32([1, 2]))
    tensor = to_torch(made)
    tensor[0] = 5
    assert tensor.dtype == torch.float32
    assert to_numpy(made)[0] == 5


# --- tensors ---


@pytest.fixture
def no_gpu():
    torch = torch_module()
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    return torch


def test_to_a_gpu_that_is_not_there(no_gpu, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "3")
    with pytest.raises(RuntimeError, match="needs the GPU cuda:3 .LOCAL_RANK., and PyTorch sees 0") as caught:
        stoker.io.transfer_tensor_h2d([no_gpu.zeros(2)])
    assert isinstance(caught.value, stoker.UnsupportedError)
    with pytest.raises(ValueError, match="num_caches"):
        stoker.io.transfer_tensor_h2d([], num_caches=-1)


def test_the_old_name_warns(no_gpu):
    text = "^transfer_tensor is deprecated; use transfer_tensor_h2d instead.$"
    with pytest.warns(FutureWarning, match=text) as warned, pytest.raises(RuntimeError, match="GPU"):
        stoker.io.transfer_tensor([no_gpu.zeros(2)], num_caches=2)
    assert warned[0].filename == __file__


def test_without_cuda_the_same_object_comes_back(no_gpu):
    batch = [no_gpu.zeros(2), {"a": no_gpu.ones(1)}]
    assert stoker.io.transfer_tensor_d2h(batch) is batch
    assert stoker.io.transfer_tensor_d2h(batch, device="cuda:7") is batch
    with pytest.raises(ValueError, match="device must be provided when stream is not None"):
        stoker.io.transfer_tensor_d2h(batch, stream=object())  # type: ignore[arg-type]


def test_nothing_is_imported_for_a_batch_without_tensors():
    ok(
        """
        import stoker.io
        batch = [1, "a"]
        assert stoker.io.transfer_tensor_d2h(batch) is batch
        assert "torch" not in sys.modules
        """
    )


Point = namedtuple("Point", "x y")


@dataclass
class Sample:
    image: object
    label: int


class FakeTensor:
    """As much of a tensor as a transfer uses."""

    def __init__(self, where, steps=()):
        self.device, self.steps = where, list(steps)

    def data_ptr(self):
        raise AssertionError

    def is_pinned(self):
        return "pin" in self.steps

    def pin_memory(self):
        return FakeTensor(self.device, [*self.steps, "pin"])

    def to(self, device, non_blocking):
        assert non_blocking
        return FakeTensor(device, [*self.steps, "to"])

    def detach(self):
        return self

    def copy_(self, other, non_blocking):
        assert non_blocking
        self.steps += [*other.steps, "copy"]
        return self


class FakeDevice:
    def __init__(self, kind, index=None):
        kind, _, number = str(kind).partition(":")
        self.type, self.index = kind, int(number) if number else index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __str__(self):
        return f"{self.type}:{self.index}"


class FakeCuda:
    """torch.cuda with two GPUs, which says what was done."""

    def __init__(self):
        self.done = []

    def is_available(self):
        return True

    def device_count(self):
        return 2

    def current_device(self):
        return 0

    def Stream(self, device):
        return FakeStream(self, device)

    def current_stream(self, device):
        return FakeStream(self, device, "current")

    def stream(self, stream):
        from contextlib import nullcontext

        self.done.append(("in", stream))
        return nullcontext()


class FakeStream:
    def __init__(self, cuda, device, name="own"):
        self.cuda, self.device, self.name = cuda, device, name
        self.thread = threading.get_ident()

    def record_event(self):
        self.cuda.done.append(("record", self.name))
        return "event"

    def wait_event(self, event):
        self.cuda.done.append(("wait", event))

    def synchronize(self):
        self.cuda.done.append(("synchronize", self.name))


class FakeTorch:
    def __init__(self):
        self.cuda, self.device = FakeCuda(), FakeDevice

    def empty_like(self, tensor, device, pin_memory):
        assert pin_memory
        return FakeTensor(FakeDevice(device), ["empty"])


@pytest.fixture
def fake(monkeypatch):
    """PyTorch on a machine with two GPUs."""
    import sys

    from stoker.io import _transfer

    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(_transfer, "_mine", _transfer._Mine())
    return torch


def test_to_a_gpu(fake, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    cpu = FakeDevice("cpu")
    batch = {
        "list": [FakeTensor(cpu), 3],
        "point": Point(FakeTensor(cpu), "text"),
        "sample": Sample(FakeTensor(cpu, ["pin"]), 4),
        "ordered": OrderedDict(a=FakeTensor(cpu)),
        "same": (1, [2]),
    }
    moved = stoker.io.transfer_tensor_h2d(batch)
    tensors = [moved["list"][0], moved["point"].x, moved["sample"].image, moved["ordered"]["a"]]
    assert all(str(t.device) == "cuda:1" and t.steps == ["pin", "to"] for t in tensors)
    assert moved["list"][1] == 3 and moved["point"].y == "text" and moved["sample"].label == 4
    assert type(moved["ordered"]) is OrderedDict
    assert moved["same"] is batch["same"]
    assert batch["list"][0].steps == []
    (inside, stream), (last, name) = fake.cuda.done
    assert (inside, last, name) == ("in", "synchronize", "own")
    stoker.io.transfer_tensor_h2d(batch)
    assert fake.cuda.done[2][1] is stream  # of the thread, kept


def test_batches_are_kept(fake):
    from stoker.io import _transfer

    moved = [stoker.io.transfer_tensor_h2d([FakeTensor(FakeDevice("cpu"))], num_caches=2) for _ in range(3)]
    assert list(_transfer._mine.kept) == moved[1:]


def test_from_a_gpu(fake):
    here, there = FakeTensor(FakeDevice("cpu")), FakeTensor(FakeDevice("cuda", 1))
    batch = [FakeTensor(FakeDevice("cuda", 0)), here, there, 5]
    moved = stoker.io.transfer_tensor_d2h(batch)
    assert moved[0].steps == ["empty", "copy"]
    assert str(moved[0].device).startswith("cpu")
    assert moved[1:] == [here, there, 5]
    assert [what for what, _ in fake.cuda.done] == ["record", "wait", "in", "synchronize"]
    assert fake.cuda.done[:2] == [("record", "current"), ("wait", "event")]


def test_from_a_gpu_on_a_stream_of_the_callers(fake):
    gpu = FakeDevice("cuda", 1)
    stream = FakeStream(fake.cuda, gpu, "given")
    moved = stoker.io.transfer_tensor_d2h(
        [FakeTensor(gpu)], device="cuda:1", stream=stream, producer_event="mine"
    )
    assert moved[0].steps == ["empty", "copy"]
    assert fake.cuda.done == [("wait", "mine"), ("in", stream), ("synchronize", "given")]


def test_nothing_on_the_gpu_is_the_same_object(fake):
    batch = [FakeTensor(FakeDevice("cpu")), 1]
    assert stoker.io.transfer_tensor_d2h(batch) is batch
    assert fake.cuda.done == []


def test_devices_and_streams_that_are_wrong(fake):
    batch = [FakeTensor(FakeDevice("cuda", 0))]
    with pytest.raises(ValueError, match="must be a CUDA device, not cpu"):
        stoker.io.transfer_tensor_d2h(batch, device="cpu")
    with pytest.raises(ValueError, match="stream must be one of cuda:0, not of cuda:1"):
        stoker.io.transfer_tensor_d2h(
            batch, device="cuda:0", stream=FakeStream(fake.cuda, FakeDevice("cuda", 1))
        )
    with pytest.raises(RuntimeError, match="there is no GPU cuda:2: PyTorch sees 2"):
        stoker.io.transfer_tensor_d2h(batch, device="cuda:2")
