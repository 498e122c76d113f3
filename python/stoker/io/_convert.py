"""Frames as arrays, and arrays for others."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _stoker
from .._check import flag, integer
from .._stoker import CPUBuffer
from ._frames import Frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CPUBuffer", "CPUStorage", "convert_frames", "cpu_storage", "to_numpy", "to_torch"]


class CPUStorage:
    """Memory that `convert_frames` writes into, as often as wanted; each time what is there is overwritten."""

    __slots__ = ("_memory",)

    def __init__(self, size: int) -> None:
        self._memory = _stoker.av_storage(integer("size", size, 0, 2**62))

    @property
    def size(self) -> int:
        """Bytes."""
        return self._memory.nbytes

    def __repr__(self) -> str:
        return f"CPUStorage({self.size})"


def cpu_storage(size: int, pin_memory: bool = False) -> CPUStorage:
    """Memory of `size` bytes.

    pin_memory: locked for transfers to a GPU; it needs one, else `RuntimeError`.
    """
    if flag("pin_memory", pin_memory):
        raise RuntimeError("pin_memory=True needs CUDA, which is not built in")
    return CPUStorage(size)


def convert_frames(frames: Frames | Sequence[Frames], storage: CPUStorage | None = None) -> CPUBuffer:
    """Frames, which are consumed, as one contiguous array in the memory of the CPU.

    Audio is (channels, time) if its format is planar ("fltp"), and (time, channels) if not; an image is (height,
    width, components), (planes, height, width) or, where planes differ in size ("yuv420p", "nv12"), (1, rows,
    width); video has one more extent, the frames, in front, and so has a list of frames objects, which must agree in
    shape and format.  Elements are those of the format: uint8, uint16 for more than 8 bits, float32...

    storage: the array is written into it, and shares its memory.
    Errors: `InvalidArgumentError`: no frames, or they differ; `UnsupportedError`: a format that is no array.
    """
    single = isinstance(frames, Frames)
    several: list[Any] = [frames] if single else list(frames)  # type: ignore[arg-type]
    for one in several:
        if not isinstance(one, Frames):
            raise TypeError(f"expected frames, not {type(one).__name__}")
    if storage is not None and not isinstance(storage, CPUStorage):
        raise TypeError(f"storage must be made by cpu_storage(), not {type(storage).__name__}")
    memory = None if storage is None else storage._memory
    handles = tuple(one._take() for one in several)
    return _stoker.av_convert(handles, not single, memory)


def to_numpy(buffer: Any) -> Any:
    """The buffer as a NumPy array that shares its memory."""
    import numpy

    return numpy.asarray(buffer)


def to_torch(buffer: Any) -> Any:
    """The buffer as a PyTorch tensor that shares its memory."""
    import torch
    from torch.utils.dlpack import from_dlpack

    if not hasattr(buffer, "__dlpack__"):
        return torch.as_tensor(buffer)
    return from_dlpack(buffer)
