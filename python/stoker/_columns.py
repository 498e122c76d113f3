"""Columns of a list source: whatever people keep labels in, as strings or as a C array."""

from __future__ import annotations

import os
from collections.abc import Mapping, MappingView, Sequence, Set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from typing import Any

    from typing_extensions import Buffer


def paths(name: str, values: Any) -> list[bytes]:
    """Paths as the file system has them."""
    if isinstance(values, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a list of paths, not one path")
    _check_order(name, values)
    if hasattr(values, "tolist"):
        values = values.tolist()
    encoded = []
    for i, path in enumerate(values):
        try:
            encoded.append(os.fsencode(path))
        except TypeError:
            raise TypeError(f"{name}[{i}] must be a path, not {type(path).__name__}") from None
    return encoded


def convert(name: str, values: Any) -> list[bytes] | Buffer:
    """One value for each sample: a list of bytes for strings, an array for anything else."""
    if isinstance(values, (str, bytes)) or values is None:
        raise TypeError(f"{name} must be a sequence with one value for each sample")
    _check_order(name, values)
    view = _view(values)
    if view is not None:
        return view
    if hasattr(values, "tolist"):  # strings or objects of NumPy
        values = values.tolist()
    elif not isinstance(values, Sequence):
        values = list(values)
    if values and all(isinstance(value, (str, bytes)) for value in values):
        return [os.fsencode(value) for value in values]
    return _numbers(name, [_plain(value) for value in values])


def pack(column: list[bytes] | Buffer) -> list[bytes] | tuple[str, tuple[int, ...], bytes]:
    """A column as pickle takes it."""
    if isinstance(column, list):
        return column
    view = memoryview(column)
    return view.format.lstrip("@=<"), tuple(view.shape or ()), view.tobytes()


def unpack(packed: list[bytes] | tuple[str, tuple[int, ...], bytes]) -> list[bytes] | Buffer:
    return packed if isinstance(packed, list) else _array_of(*packed)


def _array_of(code: str, shape: tuple[int, ...], data: bytes) -> memoryview:
    if code == "e":  # float16, which a memoryview cannot become
        import numpy

        array: Any = numpy.ndarray(shape, code, data)
        return memoryview(array)
    view: memoryview = memoryview(data).cast(code)  # type: ignore[call-overload]
    if len(shape) > 1:
        view = view.cast("B").cast(code, shape=shape)  # type: ignore[call-overload]
    return view


def _check_order(name: str, values: Any) -> None:
    """A set has an order of its own, and a dict has values of its own; views of a dict have its order."""
    if isinstance(values, (Mapping, Set)) and not isinstance(values, MappingView):
        raise TypeError(f"{name} must be a sequence in the order of the samples, not a {type(values).__name__}")


def _view(values: Any) -> memoryview | None:
    """A contiguous view of an array with elements that C knows, or None."""
    if hasattr(values, "__array__") and not _is_buffer(values):
        values = values.__array__()
    if not _is_buffer(values):
        return None
    view = memoryview(values)
    if view.format.lstrip("@=<") not in tuple("?bBhHiIlLqQnNefd"):
        return None
    if view.c_contiguous:
        return view
    return _array_of(view.format[-1], tuple(view.shape or ()), view.tobytes())


def _is_buffer(values: Any) -> bool:
    try:
        memoryview(values)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def _plain(value: Any) -> Any:
    """Numbers and lists of Python's own, for one value."""
    return value.tolist() if hasattr(value, "tolist") else value


def _numbers(name: str, values: list[Any]) -> memoryview:
    shape: list[int] = []
    flat: list[Any] = values
    shape.append(len(values))
    while flat and isinstance(flat[0], (list, tuple)):
        inner = len(flat[0])
        if any(not isinstance(value, (list, tuple)) or len(value) != inner for value in flat):
            raise ValueError(f"{name}: all values must have the same shape")
        shape.append(inner)
        flat = [x for value in flat for x in value]

    code = "l" if all(isinstance(value, int) for value in flat) else "d"
    if not values:
        return memoryview(_array(name, code, values))
    if not flat:
        raise ValueError(f"{name}: values must not be empty")
    if all(isinstance(value, bool) for value in flat):
        data, code = memoryview(bytes(flat)), "?"
    else:
        data = memoryview(_array(name, code, flat)).cast("B")
    return data.cast(code, shape=shape)  # type: ignore[call-overload,no-any-return]


def _array(name: str, code: str, flat: list[Any]) -> array[Any]:
    from array import array

    try:
        return array(code, flat)
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in flat}))
        raise TypeError(f"{name} must be all numbers or all strings, not {kinds}") from None
    except OverflowError:
        raise ValueError(f"{name}: a number does not fit into 64 bits") from None
