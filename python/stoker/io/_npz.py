"""Archives of NumPy files."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import Error, InvalidArgumentError, LimitError
from ._input import named
from ._npy import array_of
from ._zip import Archive, check_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Any, Self

    import numpy.typing
    from typing_extensions import Buffer

    from ._zip import Entry

__all__ = ["NpzFile", "load_npz"]

_SUFFIX = ".npy"


class NpzFile(Mapping[str, "numpy.typing.NDArray[Any]"]):
    """The arrays of a NumPy archive by name; what `load_npz` gives.

    ``npz["x"]`` is the entry ``x``, or else ``x.npy``.  Iteration gives names without the suffix, in the order of
    the archive's directory, each once: of several entries with one name the last is meant, as in `zipfile`.
    Nothing is kept: each access reads the entry, checks its CRC-32 and makes an array.  May be used by
    several threads.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive: Archive | None = archive
        self._entries = {entry.name: entry for entry in archive.entries if entry.kind == "file"}
        plain = {name: name.removesuffix(_SUFFIX) for name in self._entries}
        self._names = {p if p not in self._entries else name: None for name, p in plain.items()}

    def __getitem__(self, name: str) -> numpy.typing.NDArray[Any]:
        entry = self._entries.get(name) or self._entries.get(f"{name}{_SUFFIX}")
        if entry is None:
            raise KeyError(name)
        if self._archive is None:
            raise InvalidArgumentError("the archive is closed")
        view = self._archive.read(entry)
        try:
            return array_of(view)
        except Error as error:
            named(error, f"npz: {entry.name}")
            raise

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or f"{name}{_SUFFIX}" in self._entries

    @property
    def files(self) -> list[str]:
        """The names, without the suffix."""
        return list(self._names)

    def close(self) -> None:
        """Lets go of the archive, and of its file; arrays that were made stay."""
        archive, self._archive = self._archive, None
        if archive:
            archive.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"NpzFile({', '.join(self._names)})"


def load_npz(
    data: Buffer | str | os.PathLike[str],
    *,
    max_uncompressed_bytes: float = 2**30,
    max_directory_bytes: int | None = None,
) -> NpzFile:
    """The arrays of a NumPy archive (``.npz``), stored or deflated, with ZIP64 where it is large.

    Arrays of stored entries are views of ``data``, as those of `load_npy`; those of deflated entries have
    writable memory of their own, as have all of an archive at a path, which stays open, and is read when
    an array is asked for.

    Args:
        data: the archive's bytes (any one-dimensional contiguous buffer of bytes), or its path.
        max_uncompressed_bytes: of all deflated entries together, by what the archive's directory says.
        max_directory_bytes: of that directory (None: 1 GiB).

    Returns:
        A mapping from names to arrays, each of which is read when it is asked for.

    Raises:
        CorruptArchiveError: (a RuntimeError and ValueError) no archive, a damaged one, entries that lie outside
            of it or overlap.
        UnsupportedArchiveError: (likewise) several disks, an encrypted entry, another compression.
        LimitError: (a ValueError) the deflated entries, or the directory, are larger than their limit.
        InvalidArgumentError: (a ValueError) a buffer of another kind, or a limit below 0.
        NotFoundError, IOError: (an OSError) the file can't be read.
        These at the call; on access: KeyError: no such name.  CorruptArchiveError: an entry is damaged.
        CorruptError, UnsupportedError: as `load_npy`.
    """
    check_limit(max_uncompressed_bytes)
    archive = Archive(data, max_directory_bytes=max_directory_bytes)
    try:
        _check(archive, max_uncompressed_bytes)
    except Error:
        archive.close()
        raise
    return NpzFile(archive)


def _check(archive: Archive, limit: float) -> None:
    total = 0
    for entry in archive.entries:
        if entry.kind == "file":
            archive.check(entry)
            total += 0 if entry.stored else entry.size
    if total > limit:
        raise LimitError(f"npz: {total} bytes when inflated, max_uncompressed_bytes is {limit}")
