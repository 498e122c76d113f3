"""Items as bytes on a pipe, with what is large in a shared arena.

A frame is a head, a table, a pickle of protocol 5, and buffers:

    | kind, epoch, counts, span | place, n, sort ... | pickle | buffer | buffer ...

The table names each buffer outside the pickle: in the arena (place), or behind the pickle (place -1).
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from collections.abc import Callable
from pickle import PickleBuffer
from struct import Struct

from ._arena import flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from ._arena import Reader, Writer

__all__ = ["END", "ERROR", "HEAD", "ITEM", "READY", "Decoder", "Encoder", "Frame"]

READY, ITEM, END, ERROR = range(4)

HEAD: Final = Struct("<BB2xIIQQ")  # kind, whether there is a unit, epoch, entries, bytes of pickle, span
ENTRY: Final = Struct("<qQB7x")  # place, n, sort
_BUFFER, _BYTES, _BYTEARRAY = range(3)  # sorts: a buffer of the pickle, an object of its own

# bytes: smaller ones are cheaper inside the pickle than a system call or an entry on either side
_OFFLOAD: Final = 4096


class Frame:
    """What arrived."""

    __slots__ = ("kind", "epoch", "span", "entries", "pickled", "inline")

    def __init__(
        self,
        kind: int,
        epoch: int,
        span: int | None,
        entries: list[tuple[int, int, int]],
        pickled: memoryview,
        inline: list[bytearray],
    ) -> None:
        self.kind = kind
        self.epoch = epoch
        self.span = span
        self.entries = entries
        self.pickled = pickled
        self.inline = inline


class Encoder:
    """The worker's side.  Threads: one."""

    def __init__(self, writer: Writer | None = None) -> None:
        self._writer = writer
        self._reducers: dict[type, Callable[[Any], Any]] = {}
        self._known = (False, False)  # whether NumPy and torch are among the reducers

    def encode(self, kind: int, epoch: int, item: object) -> list[Any]:
        """The parts of a frame.  What pickle raises is raised; BufferError: the arena has no room."""
        known = ("numpy" in sys.modules, "torch" in sys.modules)
        if known != self._known or not self._reducers:
            self._reducers, self._known = _reducers(), known
        out = io.BytesIO()
        placed = _Placed(self._writer)
        make = _Pickler if self._writer is None else _OffloadingPickler
        try:
            make(out, placed, self._reducers).dump(item)
            span = placed.commit()
        except BaseException:
            placed.abort()
            raise
        pickled = out.getbuffer()
        head = HEAD.pack(kind, span is not None, epoch, len(placed.entries), len(pickled), span or 0)
        table = b"".join(ENTRY.pack(*entry) for entry in placed.entries)
        return [head, table, pickled, *placed.inline]


class _Placed:
    """Where the buffers of one frame went."""

    def __init__(self, writer: Writer | None) -> None:
        self.entries: list[tuple[int, int, int]] = []
        self.inline: list[memoryview] = []
        self._writer = writer
        self._open = False

    def add(self, data: memoryview, sort: int) -> int:
        place = -1
        if self._writer is None:
            self.inline.append(data)
        else:
            if not self._open:
                self._writer.begin_unit()
                self._open = True
            place, _ = self._writer.write_binary(data)
        self.entries.append((place, len(data), sort))
        return len(self.entries) - 1

    def buffer(self, data: PickleBuffer) -> bool:
        """The pickler's question: does it stay inside?"""
        view = flat(data)
        if len(view) < _OFFLOAD:
            return True
        self.add(view, _BUFFER)
        return False

    def commit(self) -> int | None:
        if not self._open:
            return None
        assert self._writer is not None
        self._open = False
        return self._writer.commit_unit()

    def abort(self) -> None:
        if self._open and self._writer is not None:
            self._writer.abort_unit()


class _Pickler(pickle.Pickler):
    """Arrays and tensors go out of band; what pickle refuses only for their sake does not fail."""

    def __init__(self, out: io.BytesIO, placed: _Placed, reducers: dict[type, Callable[[Any], Any]]) -> None:
        super().__init__(out, 5, buffer_callback=placed.buffer)
        self.dispatch_table = reducers


class _OffloadingPickler(_Pickler):
    """bytes and bytearray as well, which pickle by itself never sends out of band."""

    def __init__(self, out: io.BytesIO, placed: _Placed, reducers: dict[type, Callable[[Any], Any]]) -> None:
        super().__init__(out, placed, reducers)
        self._placed = placed
        self._seen: dict[int, tuple[object, int]] = {}  # by id; the object, so that its id stays its own

    def persistent_id(self, obj: object) -> int | None:
        kind = type(obj)
        if (kind is not bytes and kind is not bytearray) or len(obj) < _OFFLOAD:  # type: ignore[arg-type]
            return None
        if id(obj) not in self._seen:
            entry = self._placed.add(memoryview(obj), _BYTES if kind is bytes else _BYTEARRAY)  # type: ignore[arg-type]
            self._seen[id(obj)] = obj, entry
        return self._seen[id(obj)][1]


class Decoder:
    """The parent's side.  Threads: one at a time."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader

    def decode(self, frame: Frame) -> Any:
        """The item; what unpickling it raises is raised."""
        views: list[Any] = []
        try:
            found = self._place(frame, views)
            buffers = [thing for thing, entry in zip(found, frame.entries) if entry[2] == _BUFFER]
            if len(buffers) == len(found):
                return pickle.loads(frame.pickled, buffers=buffers)
            return _Unpickler(frame.pickled, buffers, found).load()
        finally:
            self._end(frame, views)

    def discard(self, frame: Frame) -> None:
        """Gives back what an item has in the arena."""
        self._end(frame, [])

    def _end(self, frame: Frame, views: list[Any]) -> None:
        if frame.span is not None and self._reader is not None:
            self._reader.end_unit(frame.span, views)

    def _place(self, frame: Frame, views: list[Any]) -> list[Any]:
        found: list[Any] = []
        inline = iter(frame.inline)
        for place, n, sort in frame.entries:
            if place < 0:
                found.append(next(inline))
                continue
            assert self._reader is not None
            if self._reader.zero_copy:
                view = self._reader.read_binary(place, n)
                views.append(view)
                found.append(memoryview(view).toreadonly() if sort == _BYTES else view)
            elif sort == _BYTES:
                found.append(bytes(self._reader.read_binary(place, n)))
            else:
                found.append(_mutable(self._reader, place, n))
        return found


def _mutable(reader: Any, place: int, n: int) -> bytearray:
    read = getattr(reader, "read_mutable", None)
    return bytearray(reader.read_binary(place, n)) if read is None else read(place, n)


class _Unpickler(pickle.Unpickler):
    def __init__(self, pickled: memoryview, buffers: list[Any], found: list[Any]) -> None:
        super().__init__(io.BytesIO(pickled), buffers=buffers)
        self._found = found

    def persistent_load(self, index: Any) -> Any:
        return self._found[index]


# --- what is pickled otherwise than pickle does ---


def _reducers() -> dict[type, Callable[[Any], Any]]:
    table: dict[type, Callable[[Any], Any]] = {**copyreg.dispatch_table, memoryview: _reduce_view}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        table[numpy.ndarray] = _reduce_array
    if torch is not None:
        table[torch.Tensor] = _reduce_tensor
    return table


def _reduce_view(view: memoryview) -> tuple[Any, ...]:
    if not view.contiguous:
        return _restore_view, (view.tobytes(), view.format, view.shape)
    return _restore_view, (PickleBuffer(view), view.format, view.shape)


def _restore_view(data: Any, format: str, shape: tuple[int, ...]) -> memoryview:
    view = memoryview(data).cast("B")
    if format == "B" and len(shape) == 1:
        return view
    return view.cast(format, shape) if 0 not in shape else view.cast(format)  # type: ignore[call-overload,no-any-return]


def _reduce_array(array: Any) -> Any:
    """NumPy sends contiguous arrays out of band; the others it copies twice."""
    flags = array.flags
    if array.nbytes >= _OFFLOAD and not (flags.c_contiguous or flags.f_contiguous or array.dtype.hasobject):
        array = array.copy()
    return array.__reduce_ex__(5)


def _reduce_tensor(tensor: Any) -> Any:
    """As bytes, which are of every type that torch has; torch itself pickles tensors with three copies."""
    torch = sys.modules["torch"]
    plain = (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_quantized
        and (tensor.is_leaf or not tensor.requires_grad)
        and not tensor.__dict__
        and tensor.numel() * tensor.element_size() >= _OFFLOAD
    )
    if not plain:
        return tensor.__reduce_ex__(5)
    data = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()
    return _restore_tensor, (PickleBuffer(data), tensor.dtype, tuple(tensor.shape), tensor.requires_grad)


def _restore_tensor(data: Any, dtype: Any, shape: tuple[int, ...], requires_grad: bool) -> Any:
    import torch

    tensor = torch.frombuffer(data, dtype=dtype).reshape(shape)
    return tensor.requires_grad_() if requires_grad else tensor
