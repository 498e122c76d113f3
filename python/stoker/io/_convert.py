"""Frames as arrays, and arrays for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from .. import _stoker
from .._check import flag, integer
from .._stoker import CPUBuffer
from ..errors import NotInstalledError, UnsupportedError
from ._frames import Frames

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "ArrayInterface",
    "CPUBuffer",
    "CPUStorage",
    "CUDAArrayInterface",
    "convert_array",
    "convert_frames",
    "cpu_storage",
    "to_jax",
    "to_numba",
    "to_numpy",
    "to_torch",
]


@runtime_checkable
class ArrayInterface(Protocol):
    """What has NumPy's `__array_interface__`, as a `CPUBuffer`."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


@runtime_checkable
class CUDAArrayInterface(Protocol):
    """What has Numba's `__cuda_array_interface__`: an array in the memory of a GPU."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class CPUStorage:
    """Memory that `convert_frames` writes into, as often as wanted; each time what is there is overwritten.

    It is an array of uint8 itself, to `to_numpy` and the others.
    """

    __slots__ = ("_memory",)

    def __init__(self, size: int) -> None:
        self._memory = _stoker.av_storage(integer("size", size, 0, 2**62))

    @property
    def size(self) -> int:
        """Bytes."""
        return self._memory.nbytes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._memory.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._memory.__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._memory.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._memory.__dlpack_device__()

    def __repr__(self) -> str:
        return f"CPUStorage({self.size})"


# Memory of the caller's to write into.
StorageType: TypeAlias = "CPUStorage | Buffer"


def cpu_storage(size: int, pin_memory: bool = False) -> CPUStorage:
    """Memory of `size` bytes.

    pin_memory: locked for transfers to a GPU; it needs one, else `UnsupportedError`, a RuntimeError.
    """
    if flag("pin_memory", pin_memory):
        raise UnsupportedError(
            "pin_memory=True needs an NVIDIA GPU and CUDA, which is not built in: leave it out, and let "
            "stoker.io.to_torch(buffer).pin_memory() pin arrays"
        )
    return CPUStorage(size)


def convert_frames(frames: Frames | Sequence[Frames], storage: StorageType | None = None) -> CPUBuffer:
    """Frames, which are consumed unless it fails, as one contiguous array in the memory of the CPU.

    Audio is (channels, time) if its format is planar ("fltp"), and (time, channels) if not; an image is (height,
    width, components), (planes, height, width) or, where planes differ in size ("yuv420p", "nv12"), (1, rows,
    width); video has one more extent, the frames, in front, and so has a list of frames objects, which must agree in
    shape and format.  Elements are those of the format: uint8, uint16 for more than 8 bits, float32...

    storage: the array is written into it, from its first byte on, and shares its memory: what `cpu_storage` gives,
        or any C-contiguous object with a writable buffer of at least that many bytes, as a NumPy array, a slot of
        one (`batch[i]`), a memoryview or `tensor.numpy()`.
    Errors: `InvalidArgumentError`: no frames, or they differ; `UnsupportedError`: a format that is no array;
        TypeError: a storage that has no buffer, or a read-only one; ValueError: a storage that is too small, or not
        contiguous.
    """
    single = isinstance(frames, Frames)
    several: list[Any] = [frames] if single else list(frames)  # type: ignore[arg-type]
    for one in several:
        if not isinstance(one, Frames):
            raise TypeError(f"expected frames, not {type(one).__name__}")
    memory = _memory(storage)
    taken: list[tuple[Frames, _stoker.AvHandle]] = []
    try:
        for one in several:
            taken.append((one, one._take()))
        return _stoker.av_convert(tuple(handle for _, handle in taken), not single, memory)
    except BaseException:
        for one, handle in taken:
            one._give_back(handle)
        raise


def _memory(storage: StorageType | None) -> CPUBuffer | memoryview | None:
    if storage is None:
        return None
    if isinstance(storage, CPUStorage):
        return storage._memory
    try:
        view = memoryview(storage)
    except TypeError:
        kind = type(storage).__name__
        raise TypeError(f"storage must be made by cpu_storage(), or have a writable buffer, not {kind}") from None
    if view.readonly:
        raise TypeError(f"storage can't be written to: the buffer of {type(storage).__name__} is read-only")
    if not view.c_contiguous:
        raise ValueError("storage must be C-contiguous")
    return view


def convert_array(vals: Any, storage: StorageType | None = None) -> CPUBuffer:
    """A copy of an array, contiguous, as the buffer that frames are converted to.

    vals: an array (the buffer protocol, DLPack, `__array_interface__`) of whole numbers, floats or bools, of any
        strides; or lists of numbers.
    storage: as of `convert_frames`.
    Errors: TypeError: elements of another kind; ValueError: the storage is too small.
    """
    memory = _memory(storage)
    if isinstance(vals, (list, tuple)):
        import numpy

        vals = numpy.asarray(vals)
    return _stoker.av_array(vals, memory)


def _on_gpu(buffer: Any) -> bool:
    return hasattr(buffer, "__cuda_array_interface__") and not hasattr(buffer, "__array_interface__")


def to_numpy(buffer: ArrayInterface) -> Any:
    """The buffer as a NumPy array that shares its memory.  TypeError: it is in the memory of a GPU."""
    import numpy

    if _on_gpu(buffer):
        raise TypeError("NumPy has no arrays in the memory of a GPU: to_torch(buffer).cpu().numpy() copies one")
    return numpy.asarray(buffer)


def to_torch(buffer: ArrayInterface | CUDAArrayInterface) -> Any:
    """The buffer as a PyTorch tensor that shares its memory.  `NotInstalledError`: there is no PyTorch."""
    try:
        import torch
        from torch.utils.dlpack import from_dlpack
    except ImportError as error:
        raise NotInstalledError("to_torch needs PyTorch: pip install torch") from error
    if not hasattr(buffer, "__dlpack__"):
        return torch.as_tensor(buffer)
    return from_dlpack(buffer)


def to_numba(buffer: ArrayInterface | CUDAArrayInterface) -> Any:
    """What Numba's functions take: a NumPy array, or of a GPU's memory a device array; both share the memory.

    `NotInstalledError`: an array on a GPU, and there is no Numba.
    """
    if not _on_gpu(buffer):
        return to_numpy(buffer)  # type: ignore[arg-type]
    try:
        from numba import cuda  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise NotInstalledError("to_numba needs Numba for arrays on a GPU: pip install numba-cuda") from error
    return cuda.as_cuda_array(buffer)


def to_jax(buffer: ArrayInterface) -> Any:
    """The buffer as an array of JAX, which shares its memory where JAX can.  `NotInstalledError`: there is no JAX."""
    try:
        from jax import dlpack, numpy  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise NotInstalledError("to_jax needs JAX: pip install jax") from error
    if hasattr(buffer, "__dlpack__"):
        return dlpack.from_dlpack(buffer)
    return numpy.asarray(to_numpy(buffer))
