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
    LimitError,
    MalformedError,
    NotFoundError,
    NotInstalledError,
    OutOfMemoryError,
    UnsupportedFormatError,
)
from ._arrow_sizes import FileSizes, StreamSizes
from ._zip import check_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from typing import Any

    from typing_extensions import Buffer

    from ._tar import Readable

__all__ = ["iter_arrow", "iter_parquet"]

_MAGIC = b"ARROW1"
_MOST = 2**32  # bytes of a batch: 64 KiB a row where there are 65,536


def iter_arrow(
    src: Buffer | Readable | str | PathLike[str],
    columns: Sequence[str] | None = None,
    batch_size: int | None = None,
    *,
    validate: bool = True,
    max_uncompressed_bytes: float = _MOST,
) -> Iterator[Any]:
    """The record batches (pyarrow.RecordBatch) of an Arrow IPC file or stream, whichever it is.

    `src`: a path, which is mapped into memory; bytes, which are not copied; or a file that is open for reading.
    `columns`: only these, in this order; the others are not decoded (None: all).
    `batch_size`: rows of a batch at most, where the file has larger ones (None: as the file has them).
    `validate`: offsets, indices and texts of each batch are checked.  Without it a broken file gives batches that
    read memory which is not theirs: only for files of one's own.
    `max_uncompressed_bytes`: that all columns of one compressed batch, and all dictionaries together, stand for.

    Raises NotInstalledError (an ImportError) without pyarrow, InvalidArgumentError (a ValueError) for a column
    that is not there, NotFoundError and IOError for a path, LimitError; with the words of pyarrow, MalformedError (a
    CorruptError and a ValueError) for what is broken, UnsupportedFormatError for what it cannot read,
    OutOfMemoryError.
    """
    pa, ipc = _pyarrow("pyarrow"), _pyarrow("pyarrow.ipc")
    _check_options(batch_size, max_uncompressed_bytes)
    whole = _check.flag("validate", validate)
    with _told(pa, src):
        opened = _opened(pa, src)
        options = None
        if columns is not None:
            names = _reader(ipc, opened, None).schema.names
            options = ipc.IpcReadOptions(included_fields=[_index(names, name) for name in columns])
            opened.seek(0)
        reader = _reader(ipc, opened, options)
        batches = _read(reader, opened, _name(src), max_uncompressed_bytes)
    return _each(pa, src, _pieces(batches, None if columns is None else list(columns), batch_size, whole))


def iter_parquet(
    src: Buffer | Readable | str | PathLike[str],
    columns: Sequence[str] | None = None,
    batch_size: int | None = None,
    row_groups: Sequence[int] | None = None,
    *,
    validate: bool = True,
    max_uncompressed_bytes: float = _MOST,
) -> Iterator[Any]:
    """Record batches (pyarrow.RecordBatch) of a Parquet file.

    `src`: a path, bytes, or a file that is open for reading and can seek.
    `columns`: only these, in the file's order; the others are not read (None: all).  Of nested ones "a.b", too.
    `batch_size`: rows of a batch at most (None: 65,536).
    `row_groups`: numbers of those that are read (None: all).
    `validate`: offsets, indices and texts of each batch are checked.
    `max_uncompressed_bytes`: of one batch, once it is decoded: of larger rows ask for fewer.

    Raises what iter_arrow does; InvalidArgumentError also for a row group that is not there.
    """
    pa, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    _check_options(batch_size, max_uncompressed_bytes)
    whole = _check.flag("validate", validate)
    with _told(pa, src):
        file = parquet.ParquetFile(pa.BufferReader(src) if _is_bytes(src) else src)
    options: dict[str, Any] = {"batch_size": batch_size or 65536}
    if columns is not None:
        for name in columns:  # pyarrow would leave out those that it does not know
            _index([*file.schema_arrow.names, *_leaves(file)], name)
        options["columns"] = list(columns)
    if row_groups is not None:
        options["row_groups"] = [_group(file.num_row_groups, number) for number in row_groups]
    batches = _within(file.iter_batches(**options), _name(src), max_uncompressed_bytes)
    return _each(pa, src, _pieces(batches, None, None, whole))


@contextmanager
def _told(pa: Any, src: object) -> Iterator[None]:
    """What pyarrow raises as an exception of ours; what a file of the user's raises passes."""
    is_path, name = _is_path(src), _name(src)
    try:
        yield
    except pa.ArrowMemoryError as error:
        raise OutOfMemoryError(f"{name}: {error}") from error
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFormatError(f"{name}: {error}") from error
    except pa.ArrowCancelled:
        raise
    except (pa.ArrowException, UnicodeDecodeError) as error:
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


def _is_path(src: object) -> bool:
    return isinstance(src, str) or hasattr(src, "__fspath__")


def _name(src: object) -> str:
    return f"{src}" if _is_path(src) else "Arrow data"


def _check_options(batch_size: int | None, limit: float) -> None:
    if batch_size is not None:
        _check.integer("batch_size", batch_size, 1)
    check_limit(limit)


def _group(groups: int, number: int) -> int:
    if number not in range(groups):
        raise InvalidArgumentError(f"row_groups: there is no {number!r}; there are {groups}, from 0 on")
    return int(number)


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
    reader = (ipc.open_file if bytes(magic) == _MAGIC else ipc.open_stream)(opened, **given)
    reader.schema.names  # UnicodeDecodeError: here, and not where a column is used
    return reader


def _index(names: list[str], name: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise InvalidArgumentError(f"columns: there is no {name!r}; there are {', '.join(names)}") from None


def _leaves(file: Any) -> list[str]:
    return [file.schema.column(i).path for i in range(len(file.schema))]


def _read(reader: Any, opened: Any, name: str, limit: float) -> Iterator[Any]:
    """The batches as they are, each after a look at what it stands for."""
    if not hasattr(reader, "num_record_batches"):
        stream = StreamSizes(opened, name, limit)
        while True:
            stream.check()
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            yield batch
    file = FileSizes(opened, name, limit)
    for i in range(reader.num_record_batches):
        file.check(i)
        yield reader.get_batch(i)


def _within(batches: Iterator[Any], name: str, limit: float) -> Iterator[Any]:
    for batch in batches:
        if batch.nbytes > limit:
            raise LimitError(
                f"{name}: a batch of {batch.num_rows} rows has {batch.nbytes} bytes, max_uncompressed_bytes is "
                f"{limit}: ask for a smaller batch_size, or raise it"
            )
        yield batch


def _pieces(batches: Iterator[Any], columns: list[str] | None, batch_size: int | None, validate: bool) -> Iterator[Any]:
    for batch in batches:
        if columns is not None and batch.schema.names != columns:
            batch = batch.select(columns)
        if validate:
            batch.validate(full=True)
        step = batch_size or max(1, batch.num_rows)
        for start in range(0, max(1, batch.num_rows), step):
            yield batch.slice(start, step) if step < batch.num_rows else batch
