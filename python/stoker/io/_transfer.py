"""Tensors of PyTorch to a GPU and back, on streams of their own."""

from __future__ import annotations

import os
import sys
import threading
from typing import TypeVar

from .._check import integer
from ..errors import NotInstalledError, UnsupportedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any

    import torch

__all__ = ["transfer_tensor", "transfer_tensor_d2h", "transfer_tensor_h2d"]

T = TypeVar("T")


class _Mine(threading.local):
    """Of each thread: its streams, and the batches whose memory copies may still be read from."""

    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}
        self.kept: deque[Any] | None = None

    def stream(self, device: Any) -> Any:
        if device.index not in self.streams:
            self.streams[device.index] = _torch().cuda.Stream(device)
        return self.streams[device.index]

    def keep(self, batch: object, most: int) -> None:
        from collections import deque

        if self.kept is None or self.kept.maxlen != most:
            self.kept = deque(self.kept or (), maxlen=most)
        self.kept.append(batch)


_mine = _Mine()


def _each(value: Any, move: Callable[[Any], Any]) -> Any:
    """`value` with each tensor in its lists, tuples, dicts and dataclasses moved; what has none stays itself."""
    if hasattr(value, "data_ptr") and hasattr(value, "device"):
        return move(value)
    if isinstance(value, dict):
        made: Any = {key: _each(one, move) for key, one in value.items()}
        if all(made[key] is one for key, one in value.items()):
            return value
        return made if type(value) is dict else _like(value, made)
    if isinstance(value, (list, tuple)):
        items = [_each(one, move) for one in value]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        if hasattr(value, "_fields"):  # a named tuple
            return type(value)(*items)
        return type(value)(items)
    if hasattr(type(value), "__dataclass_fields__"):
        from dataclasses import fields, replace

        old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        new = {name: _each(one, move) for name, one in old.items()}
        return value if all(new[name] is old[name] for name in old) else replace(value, **new)
    return value


def _like(value: Any, items: dict[Any, Any]) -> Any:
    """A mapping of another class: a shallow copy, with other values."""
    import copy

    made = copy.copy(value)
    made.update(items)
    return made


def _rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise NotInstalledError("transfer_tensor_h2d needs PyTorch: pip install torch") from error
    return torch


def transfer_tensor_h2d(batch: T, /, *, num_caches: int = 4) -> T:
    """Moves the tensors of a batch to the GPU of this process, `cuda:LOCAL_RANK` (by default 0).

    They are pinned and copied on a stream of the calling thread's own, which has ended when the call returns.
    batch: a tensor, or lists, tuples, dicts and dataclasses of them; other values pass.
    num_caches: batches that are kept alive, so that PyTorch does not give their memory away too early.
    Errors: `UnsupportedError`, a RuntimeError: there is no such GPU; `NotInstalledError`: there is no PyTorch.
    """
    most = integer("num_caches", num_caches, 0)
    torch = _torch()
    count, rank = torch.cuda.device_count(), _rank()
    if rank >= count:
        raise UnsupportedError(
            f"transfer_tensor_h2d needs the GPU cuda:{rank} (LOCAL_RANK), and PyTorch sees {count}: without one leave "
            "the transfer out; with one check LOCAL_RANK, CUDA_VISIBLE_DEVICES and torch.cuda.is_available()"
        )
    device = torch.device("cuda", rank)
    stream = _mine.stream(device)

    def move(tensor: Any) -> Any:
        if tensor.device.type == "cpu" and not tensor.is_pinned():
            tensor = tensor.pin_memory()
        return tensor.to(device, non_blocking=True)

    with torch.cuda.stream(stream):
        moved: T = _each(batch, move)
    stream.synchronize()
    _mine.keep(moved, most)
    return moved


def transfer_tensor(batch: T, /, *, num_caches: int = 4) -> T:
    """The former name of `transfer_tensor_h2d`."""
    import warnings

    warnings.warn(
        "transfer_tensor is deprecated; use transfer_tensor_h2d instead.", FutureWarning, stacklevel=2
    )
    return transfer_tensor_h2d(batch, num_caches=num_caches)


def _gpu(device: torch.device | str | None) -> Any:
    """The CUDA device that is meant, with its index."""
    import torch

    wanted = torch.device("cuda", _rank()) if device is None else torch.device(device)
    if wanted.type != "cuda":
        raise ValueError(f"device must be a CUDA device, not {wanted}")
    index = torch.cuda.current_device() if wanted.index is None else wanted.index
    if index >= torch.cuda.device_count():
        raise UnsupportedError(
            f"there is no GPU cuda:{index}: PyTorch sees {torch.cuda.device_count()} (check LOCAL_RANK)"
        )
    return torch.device("cuda", index)


def transfer_tensor_d2h(
    batch: T,
    /,
    *,
    device: torch.device | str | None = None,
    stream: torch.cuda.Stream | None = None,
    producer_event: torch.cuda.Event | None = None,
) -> T:
    """Moves the tensors of a batch that are on a GPU to pinned memory of the CPU.

    batch: a tensor, or lists, tuples, dicts and dataclasses of them; tensors elsewhere and other values pass.  With
        nothing to move, or without CUDA, the same object comes back.
    device: the GPU, by default `cuda:LOCAL_RANK` (0).
    stream: where to copy, by default a stream of the calling thread's own; it has ended when the call returns.
    producer_event: what the stream waits for first, by default one that is recorded on the caller's current stream:
        record it before the batch is handed to another thread.
    Errors: ValueError: `stream` without `device`, or of another one; a device that is no CUDA device.
        `UnsupportedError`, a RuntimeError: there is no GPU of that number.
    """
    if stream is not None and device is None:
        raise ValueError("device must be provided when stream is not None")
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return batch
    gpu = _gpu(device)
    if stream is not None and stream.device != gpu:
        raise ValueError(f"stream must be one of {gpu}, not of {stream.device}")
    if _each(batch, lambda tensor: None if tensor.device == gpu else tensor) is batch:
        return batch
    own: Any = _mine.stream(gpu) if stream is None else stream
    event = torch.cuda.current_stream(gpu).record_event() if producer_event is None else producer_event

    def move(tensor: Any) -> Any:
        if tensor.device != gpu:
            return tensor
        out = torch.empty_like(tensor, device="cpu", pin_memory=True)
        return out.copy_(tensor.detach(), non_blocking=True)

    own.wait_event(event)
    with torch.cuda.stream(own):
        moved: T = _each(batch, move)
    own.synchronize()
    return moved
