"""Where samples come from, and in which order: descriptions, for PipelineBuilder.add_source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from .. import _check, _columns, _stoker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

__all__ = ["Directory", "List", "Source"]

_AHEAD = 64  # samples that an iterator's run makes ahead
_STOP_S = 6.0  # as a pipeline waits at its end
_RESERVED = ("id", "key", "substituted")  # fields that every batch has


class Source:
    """Where samples come from.  May be used in many pipelines, also at once."""

    shuffle: bool
    seed: int
    rank: int
    world_size: int
    epochs: int | None

    def _set_order(
        self, shuffle: bool, seed: int, rank: int, world_size: int, epochs: int | None
    ) -> None:
        self.shuffle = _check.flag("shuffle", shuffle)
        self.seed = _check.integer("seed", seed, 0, 2**64 - 1)
        self.world_size = _check.integer("world_size", world_size, 1, 2**31 - 1)
        self.rank = _check.integer("rank", rank, 0)
        if self.rank >= self.world_size:
            raise ValueError(
                f"rank must be below world_size: within the range [0, {self.world_size}), "
                f"not {self.rank}"
            )
        self.epochs = None if epochs is None else _check.integer("epochs", epochs, 1, 2**62)
        self._handles: dict[bool, _stoker.Source] = {}

    def _order(self, epochs: int) -> tuple[bool, int, int, int, int]:
        """As the extension takes it."""
        return self.shuffle, self.seed, self.rank, self.world_size, epochs

    def _order_repr(self) -> str:
        text = f"shuffle={self.shuffle}, seed={self.seed}"
        if self.world_size > 1:
            text += f", rank={self.rank}, world_size={self.world_size}"
        return f"{text}, epochs={self.epochs}"

    def _handle(self, continuous: bool) -> _stoker.Source:
        """The source of the C library, made once: pipelines share its listing."""
        if continuous and self.epochs not in (1, None):
            raise ValueError(
                "epochs: with continuous=True each `for` is one epoch, without end; "
                "leave epochs out"
            )
        endless = continuous or self.epochs is None
        if endless not in self._handles:
            made = self._make(-1 if endless else (self.epochs or 1))
            return self._handles.setdefault(endless, made)  # another thread may have been faster
        return self._handles[endless]

    def _make(self, epochs: int) -> _stoker.Source:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to this process: a source that was pickled lists its samples anew."""
        return {**self.__dict__, "_handles": {}}

    def __iter__(self) -> Iterator[_stoker.Sample]:
        """Samples with `data` the path, in the source's order; closing the iterator ends the listing
        unless a pipeline needs it."""
        plan = _stoker.plan()
        plan.source(self._handle(False))
        plan.sink(_AHEAD)
        run = plan.start(1, False)
        try:
            while True:
                result = run.next(None, None)
                if result is _stoker.END:
                    return
                yield result
        finally:
            run.stop(_STOP_S)

    def _parts(self) -> tuple[str, ...]:
        """Names of a sample's files."""
        return ("image",)

    def count(self) -> int:
        """The number of samples, on all ranks together; waits until that is known."""
        return self._handle(False).count()

    def memory(self) -> int:
        """Bytes that the listing holds, names included."""
        return self._handle(False).memory()


class Directory(Source):
    """Every file under `path` whose name matches.

    Order: names sorted byte-wise in each folder, depth first; names with a dot in front count like
    any other, so a hidden folder is a class.  The listing begins when a pipeline
    starts, in the background, and is shared by later ones.

    `labels`: "dir" makes batch.label the number of the first-level folder (see `classes`).
    `pattern`: shell patterns for names, one or several (None: the endings of pictures, any case).
    `recursive`: False takes only the folder's own files; `follow_links`: False leaves links out.
    `shuffle`, `seed`: a keyed permutation of each epoch; the seed is that of random ops, too.
    `rank`, `world_size`: this rank's share.
    `epochs`: how many in one `for`; None: endless, until two in a row give nothing, which is a
    failure (all was skipped, or `drop_last` left it out; of a pipeline with stages in Python only
    where this rank has no sample).
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        labels: Literal["dir"] | None = None,
        pattern: str | Sequence[str] | None = None,
        recursive: bool = True,
        follow_links: bool = True,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        epochs: int | None = 1,
    ) -> None:
        try:
            self.path = os.fsencode(path)
        except TypeError:
            raise TypeError(f"path must be a path, not {type(path).__name__}") from None
        if not self.path or b"\0" in self.path:
            raise ValueError("path must not be empty, nor have a NUL in it")
        if labels is not None:
            _check.choice("labels", labels, ("dir",))
        self.labels = labels
        self.pattern = _joined(pattern)
        if self.pattern == "":
            raise ValueError("pattern must not be empty")
        self.recursive = _check.flag("recursive", recursive)
        self.follow_links = _check.flag("follow_links", follow_links)
        self._set_order(shuffle, seed, rank, world_size, epochs)

    def _make(self, epochs: int) -> _stoker.Source:
        return _stoker.dir_source(
            path=self.path,
            labels=self.labels == "dir",
            pattern=self.pattern,
            flat=not self.recursive,
            no_follow=not self.follow_links,
            order=self._order(epochs),
        )

    def classes(self) -> list[str]:
        """What batch.label counts: names of the first-level folders; waits for these only."""
        return self._handle(False).classes()

    def __repr__(self) -> str:
        return f"Directory({os.fsdecode(self.path)!r}, labels={self.labels!r}, {self._order_repr()})"


def _joined(pattern: str | Iterable[str] | None) -> str | None:
    """As the C library takes patterns."""
    if isinstance(pattern, str) or pattern is None:
        return pattern
    if isinstance(pattern, (bytes, bytearray)) or not isinstance(pattern, Iterable):
        raise TypeError(f"pattern must be a str or a list of them, not {type(pattern).__name__}")
    patterns = list(pattern)
    for i, each in enumerate(patterns):
        if not isinstance(each, str):
            raise TypeError(f"pattern[{i}] must be a str, not {type(each).__name__}")
    return "|".join(patterns)


class List(Source):
    """A list of files, with whatever belongs to each.

        List(paths, labels)                       batch.image, batch.label
        List(paths, caption=[...], weight=[...])  batch["caption"], batch["weight"]
        List(image=[...], mask=[...])             several files a sample, decoded with one geometry

    `paths` is short for `image`.  `files` says which keywords are files rather than columns.
    Labels and columns are sequences or arrays of numbers, strings or arrays of one shape, in the order
    of the paths, and so no sets or dicts; none is called id, key or substituted, which every batch has,
    and with the files they are 62 at most.
    The order's options are as in Directory.
    """

    def __init__(
        self,
        paths: Iterable[str | bytes | os.PathLike[str]] | None = None,
        labels: Any = None,
        *,
        files: Sequence[str] = ("image", "mask"),
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        epochs: int | None = 1,
        **columns: Any,
    ) -> None:
        if paths is not None and "image" in columns:
            raise ValueError("paths and image are the same: give one of them")
        if isinstance(files, str):
            raise TypeError("files must be a list of names")
        if paths is not None:
            columns = {"image": paths, **columns}
        parts = {name: values for name, values in columns.items() if name in (*files, "image")}
        if not parts:
            raise ValueError("paths, or a keyword named in files, must be given")
        self._files = {name: _columns.paths(name, values) for name, values in parts.items()}
        self._columns = {
            name: _columns.convert(name, values)
            for name, values in columns.items()
            if name not in parts
        }
        for name in columns:
            if name in _RESERVED:
                raise ValueError(f"{name} is the name of a field that every batch has")
        if labels is not None:
            if "label" in self._columns:
                raise ValueError("labels and label are the same: give one of them")
            self._columns["label"] = _columns.convert("labels", labels)
        self._set_order(shuffle, seed, rank, world_size, epochs)
        self._size = len(next(iter(self._files.values())))
        self._handle(False)  # finds what does not fit together

    def _make(self, epochs: int) -> _stoker.Source:
        return _stoker.list_source(
            parts=[(name.encode(), paths) for name, paths in self._files.items()],
            columns=[(name.encode(), values) for name, values in self._columns.items()],
            order=self._order(epochs),
        )

    def _parts(self) -> tuple[str, ...]:
        return tuple(self._files)

    def __getstate__(self) -> dict[str, Any]:
        columns = {name: _columns.pack(values) for name, values in self._columns.items()}
        return {**super().__getstate__(), "_columns": columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        columns = {name: _columns.unpack(packed) for name, packed in state["_columns"].items()}
        self.__dict__.update(state, _columns=columns)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        names = ", ".join([*self._files, *self._columns])
        return f"List({self._size} samples of {names}, {self._order_repr()})"
