"""Lines of text, and JSON, one document a line."""

from __future__ import annotations

import json

from .. import _check, _stoker
from ..errors import LimitError, MalformedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike
    from typing import Any

    from typing_extensions import Buffer

    from ._tar import Readable

__all__ = ["iter_jsonl", "iter_lines"]

_BOM = b"\xef\xbb\xbf"
_MOST = 16 * 2**20


def iter_lines(
    src: Buffer | Readable | str | PathLike[str] | PathLike[bytes],
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    max_line_bytes: int | None = None,
    max_uncompressed_bytes: int | None = None,
    max_ratio: int | None = None,
) -> Iterator[str]:
    """The lines of a text, without their ends, which are "\\n" or "\\r\\n".

    `src`: bytes (anything with the buffer protocol), a path, or a file that is open for reading bytes, pipes
    too.  gzip and zstd are recognised by content and unpacked on the way.
    `encoding`, `errors`: as in str.decode; of encodings in which "\\n" is one byte.  A byte order mark of UTF-8
    at the beginning is dropped.
    `max_line_bytes`: of one line (None: 16 MiB).
    `max_uncompressed_bytes`, `max_ratio`: as in iter_tarfile.

    Raises MalformedError (a ValueError) for what the encoding does not have and LimitError for a line that is
    too long, both with the file's name and the line's number; CorruptError; IOError.
    """
    _check_encoding(encoding)
    most = _MOST if max_line_bytes is None else max_line_bytes
    _check.integer("max_line_bytes", most, 1)
    blocks = _stoker.stream(src, max_uncompressed_bytes=max_uncompressed_bytes, max_ratio=max_ratio)
    return _decoded(blocks, blocks.name or "line", encoding, errors, most)


def iter_jsonl(
    src: Buffer | Readable | str | PathLike[str] | PathLike[bytes],
    *,
    loads: Callable[[str], Any] = json.loads,
    max_line_bytes: int | None = None,
    max_uncompressed_bytes: int | None = None,
    max_ratio: int | None = None,
) -> Iterator[Any]:
    """The documents of JSON lines: UTF-8, one on each line; lines of nothing but blanks are left out.

    `loads`: what reads one (json.loads).  The others are those of iter_lines.

    Raises MalformedError (a ValueError) for what is no JSON, with the file's name and the line's number; its
    __cause__ is what `loads` raised.
    """
    most = _MOST if max_line_bytes is None else max_line_bytes
    _check.integer("max_line_bytes", most, 1)
    blocks = _stoker.stream(src, max_uncompressed_bytes=max_uncompressed_bytes, max_ratio=max_ratio)
    name = blocks.name or "line"
    return _documents(_decoded(blocks, name, "utf-8", "strict", most), name, loads)


def _check_encoding(encoding: str) -> None:
    try:
        single = "\n".encode(encoding) == b"\n"
    except LookupError as error:
        raise ValueError(f"encoding: {error}") from None
    if not single:
        raise ValueError(f"encoding: in {encoding!r} the end of a line is no single byte")


def _place(name: str, number: int) -> str:
    return f"{name}:{number}" if name != "line" else f"line {number}"


def _split(blocks: _stoker.Stream, name: str, most: int) -> Iterator[list[bytes]]:
    """Whole lines, some at a time; what is behind the last end of a line is one, unless it is nothing."""
    rest: list[bytes] = []  # the beginning of a line, in pieces
    held = number = 0
    for block in blocks:
        lines = block.split(b"\n")
        held += len(lines[0])
        if held > most or max(map(len, lines)) > most:
            long = 0 if held > most else next(i for i, line in enumerate(lines) if len(line) > most)
            raise LimitError(f"{_place(name, number + long + 1)}: over {most} bytes in a line (max_line_bytes)")
        rest.append(lines[0])
        if len(lines) == 1:
            continue
        lines[0] = b"".join(rest)
        rest = [lines.pop()]
        held = len(rest[0])
        number += len(lines)
        yield lines
    last = b"".join(rest)
    if last:
        yield [last]


def _decoded(blocks: _stoker.Stream, name: str, encoding: str, errors: str, most: int) -> Iterator[str]:
    number = 0
    try:
        for lines in _split(blocks, name, most):
            if number == 0 and lines[0].startswith(_BOM) and encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
                lines[0] = lines[0][len(_BOM) :]
            for line in lines:
                number += 1
                if line[-1:] == b"\r":
                    line = line[:-1]
                try:
                    text = line.decode(encoding, errors)
                except UnicodeDecodeError as error:
                    raise MalformedError(f"{_place(name, number)}: {error}") from error
                yield text
    finally:
        blocks.close()


def _documents(lines: Iterator[str], name: str, loads: Callable[[str], Any]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            document = loads(line)
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"{_place(name, number)}: {error}") from error
        yield document
