"""Archives, member by member."""

from __future__ import annotations

from .. import _stoker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from typing import Protocol, TypeVar, overload

    from typing_extensions import Buffer

    T_co = TypeVar("T_co", covariant=True)

    class Members(Iterator[tuple[str, T_co]], Protocol[T_co]):
        """What iter_tarfile gives."""

        def close(self) -> None: ...

    class Readable(Protocol):
        """A file that is open for reading bytes."""

        def read(self, size: int, /) -> bytes: ...


__all__ = ["iter_tarfile"]

if TYPE_CHECKING:

    @overload
    def iter_tarfile(
        src: Buffer,
        *,
        max_uncompressed_bytes: int | None = None,
        max_ratio: int | None = None,
        max_member_bytes: int | None = None,
        max_header_bytes: int | None = None,
        strict: bool = True,
        timeout: float | None = None,
    ) -> Members[memoryview]: ...
    @overload
    def iter_tarfile(
        src: Readable | str | PathLike[str] | PathLike[bytes],
        *,
        max_uncompressed_bytes: int | None = None,
        max_ratio: int | None = None,
        max_member_bytes: int | None = None,
        max_header_bytes: int | None = None,
        strict: bool = True,
        timeout: float | None = None,
    ) -> Members[bytes]: ...


def iter_tarfile(
    src: Buffer | Readable | str | PathLike[str] | PathLike[bytes],
    *,
    max_uncompressed_bytes: int | None = None,
    max_ratio: int | None = None,
    max_member_bytes: int | None = None,
    max_header_bytes: int | None = None,
    strict: bool = True,
    timeout: float | None = None,
) -> Members[memoryview | bytes]:
    """(name, data) of each regular file in a tar archive, in order.

    `src`: the archive's bytes (anything with the buffer protocol), whose members are memoryviews of it,
    without a copy, writable only if it is; or a path or a file that is open for reading, pipes too, whose
    members are bytes.  Archives compressed with gzip or zstd are recognised by their content and unpacked on the
    way; their members are bytes, also of those in memory.

    ustar, pax, GNU tar and V7 archives.  Names are what the archive says, "../" and all, undecodable bytes
    as surrogate escapes; nothing is written anywhere.  A pipe that is given by its path, and what is compressed,
    is read to its end: who writes is not cut off, and checksums are verified.  Folders, links and devices are left out.

    `max_uncompressed_bytes`: that a compressed archive may unpack to (None: 64 GiB).
    `max_ratio`: unpacked over packed bytes, from 64 MiB on (None: 500).
    `max_member_bytes`: of one member that is not a view (None: 1 GiB).
    `max_header_bytes`: of names and pax records of one member (None: 1 MiB).
    `strict`: an archive must end with a block of zeros; without one it may have been cut.
    `timeout`: seconds that a read of a pipe may wait for bytes (None: any).

    The iterator may be shared by threads: each member goes to one of them.  Its close() lets go of the file; what
    waits for a pipe on another thread ends with CancelledError.  That, and `timeout`, is for pipes by their path, and
    for what open(), os.fdopen() and subprocess.PIPE give; read() of other objects cannot be interrupted.

    Raises CorruptError for a broken or truncated archive, with the offset; UnsupportedError for sparse files,
    by name, and for what is no archive; LimitError; IOError; TimeoutError; CancelledError.
    """
    return _stoker.tar(
        src,
        max_uncompressed_bytes=max_uncompressed_bytes,
        max_ratio=max_ratio,
        max_member_bytes=max_member_bytes,
        max_header_bytes=max_header_bytes,
        strict=strict,
        timeout=timeout,
    )
