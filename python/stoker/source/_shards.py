"""Sources over archives: shards whose members are samples."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping

from .. import _stoker
from ._native import _RESERVED, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

__all__ = ["Tar", "Zip"]

_PICTURES: Final = "jpg|jpeg|jpe|png|webp|avif|bmp|gif|tif|tiff"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)")


class _Shards(Source):
    """What the kinds of archives have in common."""

    _kind: Literal["tar", "zip"]

    def __init__(
        self,
        shards: Path | Iterable[Path],
        *,
        files: str | Mapping[str, str] = _PICTURES,
        labels: str | None = None,
        columns: Mapping[str, str | tuple[str, type]] | None = None,
        samples_per_shard: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        epochs: int | None = 1,
    ) -> None:
        self.shards = _paths(shards)
        files = {"image": files} if isinstance(files, str) else dict(files)
        self._files = {name: _ending(name, ending) for name, ending in files.items()}
        self._columns = {name: _column(name, what) for name, what in (columns or {}).items()}
        if labels is not None:
            if "label" in self._columns:
                raise ValueError("labels and the column label are the same: give one of them")
            self._columns["label"] = (_ending("labels", labels), False)
        for name in (*self._files, *self._columns):
            if name in _RESERVED:
                raise ValueError(f"{name} is the name of a field that every batch has")
        if samples_per_shard is not None and samples_per_shard < 1:
            raise ValueError(f"samples_per_shard must be 1 or more, not {samples_per_shard}")
        self.samples_per_shard = samples_per_shard
        self._set_order(shuffle, seed, rank, world_size, epochs)
        self._handle(False)  # finds what does not fit together

    def _make(self, epochs: int) -> _stoker.Source:
        return _stoker.shards_source(
            kind=self._kind,
            paths=list(self.shards),
            files=[(name.encode(), ending.encode()) for name, ending in self._files.items()],
            columns=[
                (name.encode(), ending.encode(), text)
                for name, (ending, text) in self._columns.items()
            ],
            samples_per_shard=self.samples_per_shard or 0,
            order=self._order(epochs),
        )

    def _parts(self) -> tuple[str, ...]:
        return tuple(self._files)

    def __repr__(self) -> str:
        names = ", ".join([*self._files, *self._columns])
        return f"{type(self).__name__}({len(self.shards)} shards of {names}, {self._order_repr()})"


class Tar(_Shards):
    """Members of tar archives, which are not compressed.

        Tar("train-{000..146}.tar", labels="cls")               batch.image, batch.label
        Tar(paths, files={"image": "jpg|png", "mask": "seg.png"}, columns={"caption": "txt"})

    Members of one folder of the archive whose names are equal up to the first dot are one sample, as in
    WebDataset: 0001.jpg, 0001.cls and 0001.txt.  They follow each other.  Members that no option asks for
    are left alone.

    `shards`: a path or several, in this order; in a text {000..146} and {a,b} stand for several, and
    where it has *, ? or [ it is a pattern of the shell, whose files are sorted by name.
    `files`: the ending of the member to read, several with | between; a mapping gives a sample several
    parts, with one geometry, as those of List.  An ending is what follows the name's first dot; where no
    member of the sample has it there, what follows the last: "png" takes 1.mask.png only without a 1.png.
    `labels`: the ending of a member that is a whole number: batch.label, int64.
    `columns`: texts of small members (64 KiB at most), by field; (ending, int) is a whole number.
    `samples_per_shard`: how many samples a whole shard has: what a shard that cannot be opened counts as.
    The order's options are as in Directory.

    Only headers are read at first, in the background, by several threads.  Samples are read from their
    places, so a shuffle is exact, over all shards, and ranks share samples, not shards.  batch.key is the
    path of the shard, a slash and the member's name.  A sample that lacks something fails when it is read.
    A shard that cannot be opened counts as `samples_per_shard` samples that fail, in its place, under the
    policy (on_error, max_failures) of the stage that reads them.  None: as many as the other shards have on
    average; until all are listed, nothing behind it can be read.  One that is broken from some byte on
    counts as `samples_per_shard` less those before that byte, None: as one sample.
    These are places like all others: a shuffle spreads them, and each rank counts those that fall to it.
    """

    _kind = "tar"


class Zip(_Shards):
    """Entries of zip archives, stored or deflated, with their checksums.

    All options and meanings are those of Tar, but the entries of a sample need not follow each other: all
    pictures may come before all labels.  Samples have the order of their first entries in the archives'
    directories.  An entry that cannot be read, as it is encrypted say, fails alone.
    """

    _kind = "zip"


def _ending(name: str, ending: object) -> str:
    if not isinstance(ending, str):
        raise TypeError(f"{name}: the ending must be a str, not {type(ending).__name__}")
    parts = ending.split("|")
    if not all(parts):
        raise ValueError(f"{name}: an ending must not be empty")
    return "|".join(part.removeprefix(".") for part in parts)


def _column(name: str, what: object) -> tuple[str, bool]:
    """Its ending, and whether it is text."""
    kind: object = str
    if isinstance(what, tuple) and len(what) == 2:
        what, kind = what
    if kind not in (str, int):
        raise ValueError(f"columns: {name} must be an ending, (ending, str) or (ending, int)")
    return _ending(f"columns: {name}", what), kind is str


def _paths(shards: Path | Iterable[Path]) -> tuple[bytes, ...]:
    if isinstance(shards, (str, bytes, os.PathLike)):
        shards = [shards]
    found: list[bytes] = []
    for shard in shards:
        if isinstance(shard, str):
            for text in _expand(shard):
                found += _match(text)
        else:
            found.append(os.fsencode(shard))
    if not found:
        raise ValueError("shards must not be empty")
    return tuple(found)


def _match(text: str) -> list[bytes]:
    if not glob.has_magic(text):
        return [os.fsencode(text)]
    names = sorted(os.fsencode(name) for name in glob.glob(text))
    if not names:
        raise FileNotFoundError(f"no shard is called {text!r}: check the path and the pattern")
    return names


def _expand(text: str) -> list[str]:
    """Braces of the shell: {a,b} and {000..146}, of which zeros keep the width."""
    for match in _BRACES.finditer(text):
        span = _RANGE.fullmatch(match[1])
        if span:
            low, high, width = int(span[1]), int(span[2]), len(span[1])
            if high < low or high - low >= 10**6:
                raise ValueError(f"shards: {{{match[1]}}} must go up, over at most a million")
            inside = [f"{number:0{width}}" for number in range(low, high + 1)]
        elif "," in match[1]:
            inside = match[1].split(",")
        else:
            continue
        rests = _expand(text[match.end() :])
        return [text[: match.start()] + middle + rest for middle in inside for rest in rests]
    return [text]
