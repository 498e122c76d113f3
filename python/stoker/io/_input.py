"""Where bytes come from: memory, a path, a file that can seek."""

from __future__ import annotations

import os
import stat

from .. import _stoker
from ..errors import InvalidArgumentError, IOError, NotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from typing_extensions import Buffer

    class SeekableFile(Protocol):
        """A binary file that can seek."""

        def seek(self, offset: int, whence: int = 0, /) -> int: ...
        def read(self, size: int = -1, /) -> bytes: ...

    BytesLike = Buffer
    Path = str | os.PathLike[str]


def is_path(source: object) -> bool:
    return isinstance(source, (str, os.PathLike))


def is_file(source: object) -> bool:
    return hasattr(source, "seek") and hasattr(source, "read")


def byte_view(data: BytesLike) -> memoryview:
    """The bytes of any object that has them, without a copy.

    Raises: TypeError: it has none.  InvalidArgumentError (a ValueError): they are elements of more
    than a byte, in several dimensions, or not one after the other.
    """
    view = memoryview(data)
    if view.ndim != 1 or view.format not in ("B", "b", "c") or not view.c_contiguous:
        raise InvalidArgumentError("Expected a one-dimensional, C-contiguous byte buffer.")
    return view


class PathInput:
    """A regular file: `read(offset, size)` from any thread."""

    def __init__(self, path: Path) -> None:
        self._fd = -1
        self.path = os.fspath(path)
        try:
            # A FIFO without a writer would make a blocking open wait for ever.
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            status = os.fstat(self._fd)
        except OSError as error:
            raise _failed(error, self.path) from None
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgumentError(f"{self.path}: not a regular file", key=self.path)
        self.size = status.st_size

    def read(self, offset: int, size: int) -> memoryview:
        """Exactly that many bytes, in writable memory of their own."""
        view = memoryview(_stoker.memory(size))
        got = 0
        while got < size:
            try:
                n = os.preadv(self._fd, [view[got:]], offset + got)
            except OSError as error:
                raise _failed(error, self.path) from None
            if n == 0:
                raise IOError(f"{self.path}: shrank while it was read", key=self.path)
            got += n
        return view

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class FileInput:
    """A file object that can seek, whose owner closes it: for one thread at a time."""

    path = None

    def __init__(self, file: SeekableFile) -> None:
        self._file = file
        self.size = file.seek(0, os.SEEK_END)

    def read(self, offset: int, size: int) -> memoryview:
        """Exactly that many bytes, in memory of their own."""
        self._file.seek(offset)
        parts = []
        while size > 0 and (part := self._file.read(size)):
            parts.append(part)
            size -= len(part)
        if size:
            raise IOError("the file ended while it was read")
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        pass


def _failed(error: OSError, path: str) -> Exception:
    missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
    kind = NotFoundError if missing else IOError
    return kind(f"{path}: {error.strerror}", key=path, errno=error.errno)


def named(error: Any, path: str | None) -> None:
    """Puts the path before an error's text, if there is one."""
    if path is not None and not str(error).startswith(path):
        error.key = path
        error.args = (f"{path}: {error}", *error.args[1:])
