"""Zip archives, in memory, by path, or in files that can seek."""

from __future__ import annotations

from .. import _stoker
from ..errors import (
    CorruptError,
    Error,
    InvalidArgumentError,
    LimitError,
    MalformedError,
    UnsupportedError,
    UnsupportedFormatError,
)
from ._input import FileInput, PathInput, byte_view, is_file, is_path, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from typing_extensions import Buffer

    from ._input import SeekableFile

__all__ = ["CorruptArchiveError", "UnsupportedArchiveError", "iter_zipfile"]

MOST_RATIO = 1032  # what one byte of deflated data can stand for at most (RFC 1951)
_MOST = 2**63 - 1


class CorruptArchiveError(MalformedError):
    """No archive, or a damaged one: a RuntimeError, and a ValueError, too."""


class UnsupportedArchiveError(UnsupportedFormatError):
    """An archive, or an entry, of a kind that is not read: a RuntimeError, and a ValueError, too."""


class Entry:
    """What the directory of an archive says of an entry."""

    __slots__ = ("compressed", "kind", "name", "number", "size", "stored")

    def __init__(
        self, number: int, name: str, kind: str, stored: bool, compressed: int, size: int
    ) -> None:
        self.number = number
        self.name = name
        self.kind = kind  #: "file", "folder", "link" or "device"
        self.stored = stored
        self.compressed = compressed  #: bytes of its data
        self.size = size  #: bytes of what that stands for


class Archive:
    """The entries of an archive, and their bytes."""

    def __init__(
        self,
        src: Buffer | str | os.PathLike[str] | SeekableFile,
        *,
        max_ratio: int = MOST_RATIO,
        max_directory_bytes: int | None = None,
    ) -> None:
        for name, limit in (("max_ratio", max_ratio), ("max_directory_bytes", max_directory_bytes)):
            if limit is not None and limit < 1:
                raise InvalidArgumentError(f"{name} must be at least 1, not {limit}")
        limits = min(max_ratio, MOST_RATIO), min(max_directory_bytes or 0, _MOST)
        self._input: PathInput | FileInput | None = None
        if is_path(src):
            self._input = PathInput(src)  # type: ignore[arg-type]
        elif is_file(src):
            self._input = FileInput(src)  # type: ignore[arg-type]
        try:
            if self._input:
                self._zip = _stoker.zip_open(self._input.read, self._input.size, *limits)
            else:
                self._zip = _stoker.zip_open(byte_view(src), 0, *limits)  # type: ignore[arg-type]
            self.entries = [Entry(i, *entry) for i, entry in enumerate(self._zip.entries())]
        except Error as error:
            raise self._told(error) from None

    def check(self, entry: Entry) -> None:
        """Raises if the entry's data cannot be read: all that can be told without it."""
        try:
            self._zip.locate(entry.number)
        except Error as error:
            raise self._told(error) from None

    def read(self, entry: Entry) -> memoryview:
        """The entry's bytes, whose checksum is right: a view of the archive where they are there."""
        try:
            if not self._input:
                return memoryview(self._zip.unpack(entry.number))
            offset = self._zip.locate(entry.number)
            return memoryview(
                self._zip.unpack(entry.number, self._input.read(offset, entry.compressed))
            )
        except Error as error:
            raise self._told(error) from None

    def close(self) -> None:
        if self._input:
            self._input.close()

    def _told(self, error: Error) -> Error:
        """With the path, as one of the errors of archives."""
        if isinstance(error, CorruptError):
            error = CorruptArchiveError(str(error))
        elif isinstance(error, UnsupportedError):
            error = UnsupportedArchiveError(str(error))
        named(error, self._input.path if self._input else None)
        return error


def iter_zipfile(
    src: Buffer | str | os.PathLike[str] | SeekableFile,
    *,
    max_uncompressed_bytes: float = 2**30,
    max_ratio: int = MOST_RATIO,
    max_directory_bytes: int | None = None,
) -> Iterator[tuple[str, memoryview]]:
    """Yields ``(name, bytes)`` of each regular entry of a zip archive, in the order of its directory.

    Stored and deflated entries, ZIP64, data descriptors, bytes before the archive and behind it.  Folders,
    links and devices are left out; several entries may have one name, and come as often.  Names are
    what the archive says, ``../`` and ``/`` at their beginning included: nothing is written anywhere.

    Args:
        src: the archive: a buffer of bytes, a path, or a binary file that can seek, which stays open.
        max_uncompressed_bytes: of one deflated entry.
        max_ratio: bytes that one byte of deflated data may stand for; 1032 is the most that there can be.
        max_directory_bytes: of the list of all entries, which is read first (None: 1 GiB).

    Yields:
        The name (UTF-8, or code page 437 where the archive doesn't say), and a memoryview of the entry's
        bytes.  Stored entries of an archive in memory are views of it, and keep it alive; all others
        have memory of their own.

    Raises:
        CorruptArchiveError: (a RuntimeError and ValueError) at the call: no archive, a damaged one, entries that lie
            outside of it or overlap; when its turn comes: an entry that is damaged.
        UnsupportedArchiveError: (likewise) at the call: several disks; when its turn comes: an encrypted entry,
            another compression.
        LimitError: (a ValueError) at the call: the list of entries is over its limit; when its turn comes: an
            entry is.
        InvalidArgumentError: (a ValueError) a buffer of another kind, or a limit below 0.
        NotFoundError, IOError: (an OSError) the file can't be read.
    """
    check_limit(max_uncompressed_bytes)
    archive = Archive(src, max_ratio=max_ratio, max_directory_bytes=max_directory_bytes)
    return _entries(archive, max_uncompressed_bytes)


def check_limit(max_uncompressed_bytes: float) -> None:
    if not max_uncompressed_bytes >= 0:
        raise InvalidArgumentError(
            f"max_uncompressed_bytes must be at least 0, not {max_uncompressed_bytes}"
        )


def _entries(archive: Archive, limit: float) -> Iterator[tuple[str, memoryview]]:
    try:
        for entry in archive.entries:
            if entry.kind != "file":
                continue
            if not entry.stored and entry.size > limit:
                raise LimitError(
                    f"zip: {entry.name}: {entry.size} bytes, max_uncompressed_bytes is {limit}"
                )
            yield entry.name, archive.read(entry)
    finally:
        archive.close()
