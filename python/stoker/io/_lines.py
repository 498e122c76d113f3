"""Lines of text, and JSON, one document a line."""

from __future__ import annotations

import json
from codecs import lookup
from collections.abc import Iterator
from typing import TypeVar

from .. import _check, _stoker
from ..errors import LimitError, MalformedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from os import PathLike
    from typing import Any

    from typing_extensions import Buffer

    from ._tar import Readable

__all__ = ["iter_jsonl", "iter_lines"]

_BOM = b"\xef\xbb\xbf"
_MOST = 16 * 2**20


T = TypeVar("T")


class Lines(Iterator[T]):
    """What iter_lines and iter_jsonl give."""

    __slots__ = ("__weakref__", "_blocks", "_each")

    def __init__(self, blocks: _stoker.Stream, each: Generator[T, None, None]) -> None:
        self._blocks, self._each = blocks, each

    def __iter__(self) -> Iterator[T]:
        return self._each  # which costs no call of Python's for each line

    def __next__(self) -> T:
        return next(self._each)

    def close(self) -> None:
        """Ends the iteration and lets go of the file; what waits for a pipe on another thread: CancelledError."""
        self._blocks.close()
        try:
            self._each.close()
        except ValueError:  # that thread is about to end it
            pass


def iter_lines(
    src: Buffer | Readable | str | PathLike[str] | PathLike[bytes],
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    max_line_bytes: int | None = None,
    max_uncompressed_bytes: int | None = None,
    max_ratio: int | None = None,
    timeout: float | None = None,
) -> Lines[str]:
    """The lines of a text, without their ends, which are "\\n" or "\\r\\n".

    `src`: bytes (anything with the buffer protocol), a path, or a file that is open for reading bytes, pipes
    too.  gzip and zstd are recognised by content and unpacked on the way.
    `encoding`, `errors`: as in str.decode; of encodings in which "\\n" is one byte.  A byte order mark of UTF-8
    at the beginning is dropped.
    `max_line_bytes`: of one line (None: 16 MiB).
    `max_uncompressed_bytes`, `max_ratio`, `timeout`: as in iter_tarfile.

    Its close() lets go of the file, as that of iter_tarfile.

    Raises MalformedError (a ValueError) for what the encoding does not have and LimitError for a line that is
    too long, both with the file's name and the line's number; CorruptError; IOError; TimeoutError; CancelledError.
    """
    _check_encoding(encoding)
    most = _MOST if max_line_bytes is None else max_line_bytes
    _check.integer("max_line_bytes", most, 1)
    blocks = _stoker.stream(src, max_uncompressed_bytes=max_uncompressed_bytes, max_ratio=max_ratio, timeout=timeout)
    return Lines(blocks, _each(_texts(blocks, blocks.name or "line", encoding, errors, most)))


def iter_jsonl(
    src: Buffer | Readable | str | PathLike[str] | PathLike[bytes],
    *,
    loads: Callable[[str], Any] = json.loads,
    max_line_bytes: int | None = None,
    max_uncompressed_bytes: int | None = None,
    max_ratio: int | None = None,
    timeout: float | None = None,
) -> Lines[Any]:
    """The documents of JSON lines: UTF-8, one on each line; lines of nothing but blanks are left out.

    `loads`: what reads one (json.loads).  The others are those of iter_lines.

    Raises MalformedError (a ValueError) for what is no JSON, with the file's name and the line's number; its
    __cause__ is what `loads` raised.
    """
    most = _MOST if max_line_bytes is None else max_line_bytes
    _check.integer("max_line_bytes", most, 1)
    blocks = _stoker.stream(src, max_uncompressed_bytes=max_uncompressed_bytes, max_ratio=max_ratio, timeout=timeout)
    name = blocks.name or "line"
    return Lines(blocks, _documents(_texts(blocks, name, "utf-8", "strict", most), name, loads))


def _check_encoding(encoding: str) -> None:
    try:
        single = "\n".encode(encoding) == b"\n"
    except LookupError as error:
        raise ValueError(f"encoding: {error}") from None
    if not single:
        raise ValueError(f"encoding: in {encoding!r} the end of a line is no single byte")


def _place(name: str, number: int) -> str:
    return f"{name}:{number}" if name != "line" else f"line {number}"


class _Count:
    """Lines that were given."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


def _chunks(blocks: _stoker.Stream, name: str, most: int, before: _Count) -> Iterator[bytes]:
    """Whole lines, some at a time, without the end of the last; `before` counts those that were used.

    What is behind the last end of a line is one, unless it is nothing.
    """
    rest: list[bytes] = []  # the beginning of a line, in pieces
    held = 0
    for block in blocks:
        cut = block.rfind(b"\n")
        end = block.find(b"\n") if cut >= 0 else len(block)
        if held + end > most:
            raise _too_long(name, before.n + 1, most)
        if cut < 0:
            rest.append(block)
            held += len(block)
            continue
        rest.append(block[:cut])
        chunk = b"".join(rest)
        if len(chunk) > most:
            for i, line in enumerate(chunk.split(b"\n")):
                if len(line) > most:
                    raise _too_long(name, before.n + i + 1, most)
        yield chunk
        rest = [block[cut + 1 :]]
        held = len(rest[0])
    if held > most:
        raise _too_long(name, before.n + 1, most)
    if held:
        yield b"".join(rest)


def _too_long(name: str, number: int, most: int) -> LimitError:
    return LimitError(f"{_place(name, number)}: over {most} bytes in a line (max_line_bytes)")


def _line_by_line(chunk: bytes, before: int, name: str, encoding: str, errors: str) -> Iterator[list[str]]:
    for number, line in enumerate(chunk.split(b"\n"), before + 1):
        try:
            yield [line.decode(encoding, errors)]
        except UnicodeDecodeError as error:
            raise MalformedError(f"{_place(name, number)}: {error}") from error


def _texts(blocks: _stoker.Stream, name: str, encoding: str, errors: str, most: int) -> Iterator[list[str]]:
    """Lines, some at a time."""
    plain = lookup(encoding).name in ("utf-8", "ascii", "iso8859-1")  # an error does not reach the next line
    before = _Count()
    try:
        for chunk in _chunks(blocks, name, most, before):
            if before.n == 0 and chunk.startswith(_BOM) and lookup(encoding).name == "utf-8":
                chunk = chunk[len(_BOM) :]
            try:
                parts = iter((chunk.decode(encoding, errors).split("\n"),)) if plain else None
            except UnicodeDecodeError:
                parts = None
            for lines in parts or _line_by_line(chunk, before.n, name, encoding, errors):
                before.n += len(lines)
                yield [line[:-1] if line[-1:] == "\r" else line for line in lines] if b"\r" in chunk else lines
    finally:
        blocks.close()


def _each(texts: Iterator[list[str]]) -> Generator[str, None, None]:
    for lines in texts:
        yield from lines


def _documents(texts: Iterator[list[str]], name: str, loads: Callable[[str], Any]) -> Generator[Any, None, None]:
    number = 0
    for lines in texts:
        for line in lines:
            number += 1
            if not line or line.isspace():
                continue
            try:
                document = loads(line)
            except (ValueError, RecursionError) as error:
                raise MalformedError(f"{_place(name, number)}: {error}") from error
            yield document
