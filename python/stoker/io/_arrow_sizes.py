"""What compressed Arrow IPC claims to stand for, which pyarrow would ask the system for, before pyarrow reads it.

The messages (https://arrow.apache.org/docs/format/Columnar.html, Message.fbs, File.fbs) are flatbuffers: tables whose
fields are found through a list of offsets.  What is broken in them pyarrow says when its turn comes, but for batches:
what does not tell its size is not unpacked.
"""

from __future__ import annotations

import struct

from ..errors import LimitError, MalformedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FileSizes", "StreamSizes"]

_CONTINUES = 0xFFFFFFFF  # in front of the size of a message, since Arrow 0.15
_DICTIONARY, _BATCH = 2, 3  # MessageHeader
_V5 = 4  # MetadataVersion; before it, the codec has this key in custom_metadata
_CODEC = b"ARROW:experimental_compression"
_TAIL = 10  # bytes behind the footer of a file: its size, and "ARROW1"


class _Table:
    """A table of a flatbuffer; struct.error: it is not whole."""

    __slots__ = ("_at", "_data", "_offsets", "_size")

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._offsets = at - _read("<i", data, at)
        self._size = _read("<H", data, self._offsets)

    def _place(self, field: int) -> int:
        entry = 4 + 2 * field
        offset = _read("<H", self._data, self._offsets + entry) if entry + 2 <= self._size else 0
        return self._at + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        place = self._place(field)
        return _read(form, self._data, place) if place else 0

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        return _Table(self._data, place + _read("<I", self._data, place)) if place else None

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        place = self._place(field)
        if not place:
            return []
        place += _read("<I", self._data, place)
        end = place + 4 + _read("<I", self._data, place) * struct.calcsize(form)
        if end > len(self._data):
            raise struct.error
        return list(struct.iter_unpack(form, self._data[place + 4 : end]))


def _read(form: str, data: bytes, at: int) -> int:
    if at < 0:
        raise struct.error
    number: int = struct.unpack_from(form, data, at)[0]
    return number


class _Sizes:
    """`opened`: a file of pyarrow's that seeks; it is left where it was."""

    def __init__(self, opened: Any, name: str, limit: float) -> None:
        self._opened, self._name, self._limit = opened, name, limit
        self._size: int = opened.size()
        self._dictionaries: dict[int, int] = {}  # bytes, by their ids

    def _at(self, offset: int, size: int) -> bytes:
        if not 0 <= offset <= self._size - size or size < 0:
            raise struct.error
        self._opened.seek(offset)
        return bytes(self._opened.read(size))

    def _message(self, offset: int, length: int | None = None) -> tuple[int, int]:
        """Checks it: the kind of its header, and where its body ends.  `length`: where the body begins."""
        first, size = struct.unpack("<Ii", self._at(offset, 8))
        body = offset + 8 + size if first == _CONTINUES else offset + 4 + first
        data = self._at(offset + 8, size) if first == _CONTINUES else self._at(offset + 4, first)
        message = _Table(data, _read("<I", data, 0))
        kind = message.number(1, "<B")
        if length is not None:
            body = offset + length
        if kind in (_DICTIONARY, _BATCH):
            try:
                self._content(message, kind, body, message.number(0, "<h") < _V5 and _CODEC in data)
            except struct.error:
                raise MalformedError(f"{self._name}: a batch does not tell how large it is when unpacked") from None
        return kind, body + message.number(3, "<q")

    def _content(self, message: _Table, kind: int, body: int, packed: bool) -> None:
        batch, total, what = message.table(2), 0, "a batch"
        key = None
        if batch and kind == _DICTIONARY:
            key, what = batch.number(0, "<q"), "dictionaries"
            if not batch.number(2, "<B"):  # not a part that is added
                self._dictionaries.pop(key, None)
            total = sum(self._dictionaries.values())
            batch = batch.table(1)
        if not batch or not (packed or batch.table(3)):
            return
        before = total
        for offset, length in batch.structs(2, "<qq"):
            if length > 0:
                if offset < 0 or length < 8:
                    raise struct.error
                total += max(0, _read("<q", self._at(body + offset, 8), 0))  # -1: this one is not
                self._check(total, what)
        if key is not None:
            self._dictionaries[key] = self._dictionaries.get(key, 0) + total - before

    def _check(self, size: int, what: str) -> None:
        if size > self._limit:
            raise LimitError(
                f"{self._name}: {what} of {size} bytes when unpacked, max_uncompressed_bytes is {self._limit}"
            )


class StreamSizes(_Sizes):
    """Of a stream, whose next message begins where the file is."""

    def check(self) -> None:
        """LimitError: what is read for the next batch is too large.  MalformedError: that cannot be told."""
        here = at = self._opened.tell()
        try:
            kind = _DICTIONARY
            while kind == _DICTIONARY:
                kind, at = self._message(at)
        except struct.error:
            pass
        finally:
            self._opened.seek(here)


class FileSizes(_Sizes):
    """Of a file, with a list of batches at its end."""

    def __init__(self, opened: Any, name: str, limit: float) -> None:
        super().__init__(opened, name, limit)
        self._batches: list[tuple[int, ...]] = []
        self._others: list[tuple[int, ...]] = []
        try:
            size = _read("<i", self._at(self._size - _TAIL, 4), 0)
            data = self._at(self._size - _TAIL - size, size)
            footer = _Table(data, _read("<I", data, 0))
            self._others, self._batches = footer.structs(2, "<qi4xq"), footer.structs(3, "<qi4xq")
        except struct.error:
            pass

    def check(self, number: int) -> None:
        """LimitError: what is read for that batch is too large.  MalformedError: that cannot be told."""
        here = self._opened.tell()
        try:
            while self._others:  # pyarrow reads them all before the first batch
                self._message(*self._others.pop(0)[:2])
            self._message(*self._batches[number][:2])
        except (struct.error, IndexError):
            pass
        finally:
            self._opened.seek(here)
