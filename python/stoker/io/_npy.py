"""NumPy files, in memory or by path."""

from __future__ import annotations

from .. import _stoker
from ..errors import Error, UnsupportedError
from ._input import PathInput, is_path, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    import numpy
    import numpy.typing
    from typing_extensions import Buffer

__all__ = ["load_npy"]


def load_npy(
    data: Buffer | str | os.PathLike[str], *, copy: bool = False
) -> numpy.typing.NDArray[Any]:
    """The array of a NumPy file (``.npy``, format 1.0 to 3.0).

    The array is a view of ``data``, which it keeps alive: read-only where ``data`` is (``bytes``), in place
    and writable where it is not (a ``bytearray`` cannot be resized while a view of it lives).  The file
    at a path is read into memory of its own, which is writable.

    Args:
        data: the file's bytes (any one-dimensional contiguous buffer of bytes), or its path.
        copy: the array owns its memory, and is writable.

    Returns:
        An array of the file's shape and element type: numbers of both byte orders, ``bool``, ``complex``,
        ``datetime64`` and ``timedelta64`` with their unit, ``S``, ``U`` and ``V`` of fixed length.  In Fortran's order
        where the file is.  Bytes behind the array are left alone.

    Raises:
        CorruptError: (a RuntimeError) not a NumPy file, a broken header, fewer bytes than elements.
        UnsupportedError: (a RuntimeError) an array of objects, a structured or unknown dtype: nothing is
            unpickled or evaluated.
        InvalidArgumentError: (a ValueError) a buffer of another kind.
        NotFoundError, IOError: (an OSError) the file can't be read.
    """
    if not is_path(data):
        return array_of(data, copy)  # type: ignore[arg-type]
    file = PathInput(data)  # type: ignore[arg-type]
    try:
        return array_of(file.read(0, file.size), copy)
    except Error as error:
        named(error, file.path)
        raise
    finally:
        file.close()


_ndarray: Any = None  # NumPy's, from the first array on
_dtypes: dict[str, numpy.dtype[Any]] = {}  # by their spelling: cheaper than numpy.dtype()
_MOST_DTYPES = 64


def _dtype_of(descr: str) -> numpy.dtype[Any]:
    import numpy

    global _ndarray
    _ndarray = numpy.ndarray
    try:
        dtype: numpy.dtype[Any] = numpy.dtype(descr)
    except (TypeError, ValueError):
        raise UnsupportedError(f"NPY: unknown dtype '{descr}'") from None
    if len(_dtypes) < _MOST_DTYPES:
        _dtypes[descr] = dtype
    return dtype


def array_of(data: Buffer, copy: bool = False) -> numpy.typing.NDArray[Any]:
    """The array of the NumPy file that is in `data`, over its memory."""
    descr, shape, order, offset, held = _stoker.npy_header(data)
    dtype = _dtypes.get(descr)
    if dtype is None:
        dtype = _dtype_of(descr)
    array: numpy.typing.NDArray[Any] = _ndarray(shape, dtype, held, offset, None, order)
    return array.copy(order="K") if copy else array
