"""Arrow IPC and Parquet, through the user's own pyarrow: Stoker does not depend on it."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from importlib import import_module

from .. import _check
from ..errors import (
    InvalidArgumentError,
    IOError,
    MalformedError,
    NotFoundError,
    NotInstalledError,
    UnsupportedFormatError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from typing import Any

    from typing_extensions import Buffer

    from ._tar import Readable

__all__ = ["iter_arrow", "iter_parquet"]

_MAGIC = b"ARROW1"


def iter_arrow(
    src: Buffer | Readable | str | PathLike[str],
    columns: Sequence[str] | None = None,
    batch_size: int | None = None,
) -> Iterator[Any]:
    """The record batches (pyarrow.RecordBatch) of an Arrow IPC file or stream, whichever it is.

    `src`: a path, which is mapped into memory; bytes, which are not copied; or a file that is open for reading.
    `columns`: only these, in this order; the others are not decoded (None: all).
    `batch_size`: rows of a batch at most, where the file has larger ones (None: as the file has them).

    Raises NotInstalledError (an ImportError) without pyarrow, InvalidArgumentError (a ValueError) for a column
    that is not there, NotFoundError and IOError for a path; with the words of pyarrow, MalformedError (a CorruptError
    and a ValueError) for what is broken, UnsupportedFormatError for what it cannot read.
    """
    pa, ipc = _pyarrow("pyarrow"), _pyarrow("pyarrow.ipc")
    _check_batch(batch_size)
    with _told(pa, src):
        opened = _opened(pa, src)
        options = None
        if columns is not None:
            names = _reader(ipc, opened, None).schema.names
            options = ipc.IpcReadOptions(included_fields=[_index(names, name) for name in columns])
            opened.seek(0)
        reader = _reader(ipc, opened, options)
    return _each(pa, src, _arrow_batches(reader, list(columns) if columns is not None else None, batch_size))


def iter_parquet(
    src: Buffer | Readable | str | PathLike[str],
    columns: Sequence[str] | None = None,
    batch_size: int | None = None,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Record batches (pyarrow.RecordBatch) of a Parquet file.

    `src`: a path, bytes, or a file that is open for reading and can seek.
    `columns`: only these, in the file's order; the others are not read (None: all).  Of nested ones "a.b", too.
    `batch_size`: rows of a batch at most (None: 65,536).
    `row_groups`: numbers of those that are read (None: all).

    Raises what iter_arrow does.
    """
    pa, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    _check_batch(batch_size)
    with _told(pa, src):
        file = parquet.ParquetFile(pa.BufferReader(src) if _is_bytes(src) else src)
    options: dict[str, Any] = {"batch_size": batch_size or 65536}
    if columns is not None:
        for name in columns:  # pyarrow would leave out those that it does not know
            _index([*file.schema_arrow.names, *_leaves(file)], name)
        options["columns"] = list(columns)
    if row_groups is not None:
        options["row_groups"] = list(row_groups)
    return _each(pa, src, file.iter_batches(**options))


@contextmanager
def _told(pa: Any, src: object) -> Iterator[None]:
    """What pyarrow raises as an exception of ours; what a file of the user's raises passes."""
    is_path = isinstance(src, str) or hasattr(src, "__fspath__")
    name = f"{src}" if is_path else "Arrow data"
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFormatError(f"{name}: {error}") from error
    except (pa.ArrowInvalid, pa.ArrowSerializationError) as error:
        raise MalformedError(f"{name}: {error}") from error
    except OSError as error:
        if error.errno is None and not (is_path and os.path.isdir(name)):  # pyarrow's, of a file that ends early
            raise MalformedError(f"{name}: {error}") from error
        if not is_path:
            raise
        raise (NotFoundError if isinstance(error, FileNotFoundError) else IOError)(f"{error}") from error


def _each(pa: Any, src: object, batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        with _told(pa, src):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _pyarrow(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise NotInstalledError(f"this needs pyarrow: pip install pyarrow ({error})") from error


def _check_batch(batch_size: int | None) -> None:
    if batch_size is not None:
        _check.integer("batch_size", batch_size, 1)


def _is_bytes(src: object) -> bool:
    try:
        memoryview(src).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _opened(pa: Any, src: Any) -> Any:
    """Something of pyarrow's that reads and seeks; a file that cannot seek is read whole."""
    if isinstance(src, (bytes, bytearray)) or _is_bytes(src):
        return pa.BufferReader(src)
    if hasattr(src, "read"):
        try:
            can_seek = src.seekable()
        except (AttributeError, io.UnsupportedOperation):
            can_seek = False
        return pa.PythonFile(src, "r") if can_seek else pa.BufferReader(src.read())
    return pa.memory_map(src if isinstance(src, str) else src.__fspath__(), "r")


def _reader(ipc: Any, opened: Any, options: Any) -> Any:
    magic = opened.read(len(_MAGIC))
    opened.seek(0)
    given = {} if options is None else {"options": options}
    return (ipc.open_file if bytes(magic) == _MAGIC else ipc.open_stream)(opened, **given)


def _index(names: list[str], name: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise InvalidArgumentError(f"columns: there is no {name!r}; there are {', '.join(names)}") from None


def _leaves(file: Any) -> list[str]:
    return [file.schema.column(i).path for i in range(len(file.schema))]


def _arrow_batches(reader: Any, columns: list[str] | None, batch_size: int | None) -> Iterator[Any]:
    whole = (
        (reader.get_batch(i) for i in range(reader.num_record_batches))
        if hasattr(reader, "num_record_batches")
        else iter(reader)
    )
    for batch in whole:
        if columns is not None and batch.schema.names != columns:
            batch = batch.select(columns)
        step = batch_size or max(1, batch.num_rows)
        for start in range(0, max(1, batch.num_rows), step):
            yield batch.slice(start, step) if step < batch.num_rows else batch
