"""ImageNet (ILSVRC 2012): its 1000 classes, and its folders as a source in Python.

A class is a noun of WordNet, named by its WordNet ID ("n01440764").  Classes are numbered from 0 in
the order of these, as most published models number them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .. import _check
from .local_directory import folder, matches, shuffled

__all__ = ["ImageNet", "get_mappings", "get_names", "parse_wnid"]

_WNID = re.compile(r"(?<![0-9A-Za-z])n[0-9]{8}(?![0-9A-Za-z])")
_DATA = "imagenet_classes.txt"


def get_mappings() -> dict[str, int]:
    """The number of each WordNet ID.

        get_mappings()["n01440764"]    # 0
    """
    return {wnid: number for number, (wnid, _) in enumerate(_classes())}


def get_names() -> dict[int, tuple[str, ...]]:
    """The names of each number: WordNet's synonyms.

        get_names()[0]    # ("tench", "Tinca tinca")

    Names are not unique: two classes are called "crane", and two "maillot".
    """
    return {number: names for number, (_, names) in enumerate(_classes())}


def _classes() -> Iterator[tuple[str, tuple[str, ...]]]:
    from pkgutil import get_data

    data = get_data("stoker.source", _DATA)
    if data is None:
        raise FileNotFoundError(f"{_DATA}: not installed with the package")
    for line in data.decode("ascii").splitlines():
        if not line.startswith("#"):
            wnid, _, synonyms = line.partition(" ")
            yield wnid, tuple(synonyms.split(", "))


def parse_wnid(s: str | os.PathLike[str]) -> str:
    """The WordNet ID in a name or path, "n" and eight digits: the last, if there are several.

        parse_wnid("train/n01440764/n01440764_10026.JPEG")                # "n01440764"
        parse_wnid("val/n01440764/ILSVRC2012_val_00000293.JPEG")          # "n01440764"
        parse_wnid("val/ILSVRC2012_val_00000293_n01440764.JPEG")          # "n01440764"

    ValueError: there is none.
    """
    text = os.fspath(s)
    found: list[str] = _WNID.findall(text)
    if not found:
        raise ValueError(f"{text!r} has no WordNet ID, an n and eight digits")
    return found[-1]


class ImageNet(Iterable[tuple[Path, int]]):
    """Pictures of `root`/`split` with the number of their class: (Path, int), ordered by name.

    The folder has a folder for each class, named by its WordNet ID, or pictures with the WordNet ID
    in their own names; pictures are named *.JPEG.  It is listed when the items or their number are
    first asked for, and once only.

    NotADirectoryError: there is no such folder.  ValueError, when it is listed: a picture without a
    WordNet ID, as in the validation set before it is sorted into folders, or with one that is none
    of the 1000.  Pickles.  Any thread; iterators are independent.
    """

    def __init__(self, root: str | os.PathLike[str], split: str = "val") -> None:
        self.root = folder(Path(root) / split)
        self._items: list[tuple[str, int]] | None = None
        self._seed: int | None = None

    def shuffle(self, seed: int) -> None:
        """Decides the order of passes that begin later; it depends on the names and the seed only."""
        self._seed = _check.integer("seed", seed, 0)

    def _listing(self) -> list[tuple[str, int]]:
        if self._items is None:
            classes = get_mappings()
            paths = matches(self.root, "*/*.JPEG") | matches(self.root, "*.JPEG")
            self._items = [(path, self._class(path, classes)) for path in sorted(paths)]
        return self._items

    def _class(self, path: str, classes: dict[str, int]) -> int:
        try:
            return classes[parse_wnid(os.path.relpath(path, self.root))]
        except KeyError as error:
            raise ValueError(f"{path}: {error} is no class of ImageNet") from None
        except ValueError:
            raise ValueError(
                f"{path}: no WordNet ID; pictures belong in folders named by the WordNet ID"
            ) from None

    def __len__(self) -> int:
        return len(self._listing())

    def __iter__(self) -> Iterator[tuple[Path, int]]:
        return ((Path(path), number) for path, number in shuffled(self._listing(), self._seed))

    def __repr__(self) -> str:
        return f"ImageNet({str(self.root.parent)!r}, split={self.root.name!r})"
