"""Sources made of other sources: merged, shuffled before each pass, repeated without end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from .. import _check

if TYPE_CHECKING:
    from . import IterableWithShuffle, SizedIterableWithShuffle

__all__ = ["MergeIterator", "embed_shuffle", "repeat_source"]

T = TypeVar("T")


class MergeIterator(Generic[T]):
    """One item from each of `iterables` in turn, or from one that is drawn by its weight.

    `weights`: how likely each is to give the next item, in any unit; None takes them in turn.
    Those of weight 0 are left out.  Ratios are exact, also between numbers of any size.
    `stop_after`: 0 goes on until all are exhausted, those that are leave the turn or the draw;
    n > 0 stops after n items, or when all are exhausted; -1 stops at the first that is found so.
    `seed` decides the draws; every pass draws alike.

    `iterables`, `weights` (floats, or None): what is merged, without those of weight 0.
    Iterators that a pass has made are closed at its end, those that were given are not.

    ValueError: no iterables, not one weight for each, weights that are negative, not finite or all
    0, stop_after below -1.  Passes are independent; a pass belongs to one thread at a time.
    """

    iterables: list[Iterable[T]]
    weights: list[float] | None

    def __init__(
        self,
        iterables: Sequence[Iterable[T]],
        *,
        weights: Sequence[float] | None = None,
        stop_after: int = 0,
        seed: int = 0,
    ) -> None:
        self.iterables = list(iterables)
        self.weights = None
        if not self.iterables:
            raise ValueError("iterables must not be empty")
        if weights is not None:
            given = _weights(weights, len(self.iterables))
            pairs = [pair for pair in zip(self.iterables, given, strict=True) if pair[1]]
            self.iterables = [source for source, _ in pairs]
            self.weights = [weight for _, weight in pairs]
        self.stop_after = _check.integer("stop_after", stop_after, -1)
        self.seed = _check.integer("seed", seed, 0)

    def __iter__(self) -> Iterator[T]:
        from contextlib import ExitStack
        from itertools import islice

        with ExitStack() as stack:
            live = []
            for source in self.iterables:
                live.append(iter(source))
                if live[-1] is not source and (close := getattr(live[-1], "close", None)):
                    stack.callback(close)
            items = self._in_turn(live) if self.weights is None else self._drawn(live, self.weights)
            yield from islice(items, self.stop_after if self.stop_after > 0 else None)

    def _in_turn(self, live: list[Iterator[T]]) -> Iterator[T]:
        while live:
            left = []
            for iterator in live:
                try:
                    item = next(iterator)
                except StopIteration:
                    if self.stop_after < 0:
                        return
                    continue
                yield item
                left.append(iterator)
            live = left

    def _drawn(self, live: list[Iterator[T]], weights: list[float]) -> Iterator[T]:
        from bisect import bisect_right
        from itertools import accumulate
        from random import Random

        rng = Random(self.seed)
        shares = _whole(weights)
        while live:
            ends = list(accumulate(shares))
            while True:
                i = bisect_right(ends, rng.randrange(ends[-1]))
                try:
                    item = next(live[i])
                except StopIteration:
                    break
                yield item
            if self.stop_after < 0:
                return
            del live[i], shares[i]


def _weights(weights: Sequence[float], count: int) -> list[float]:
    rule = "weights must not be negative, and their sum must be positive and finite"
    values = [float(weight) for weight in weights]
    if len(values) != count:
        raise ValueError(f"weights must be {count} numbers, one for each source, not {len(values)}")
    for i, value in enumerate(values):
        if not 0 <= value < float("inf"):
            raise ValueError(f"{rule}: weights[{i}] is {value}")
    if not any(values):
        raise ValueError(f"{rule}: all are 0")
    return values


def _whole(weights: list[float]) -> list[int]:
    """Integers of the same ratios: a float is an integer divided by a power of two."""
    from math import gcd

    ratios = [weight.as_integer_ratio() for weight in weights]
    common = max(below for _, below in ratios)
    shares = [above * (common // below) for above, below in ratios]
    divisor = gcd(*shares)
    return [share // divisor for share in shares]


class EmbedShuffle(Generic[T]):
    """What embed_shuffle() makes.  `src`: the source; `epoch`: the seed of its next shuffle."""

    src: IterableWithShuffle[T]
    epoch: int

    def __init__(self, src: IterableWithShuffle[T], shuffle_last: bool, epoch: int) -> None:
        if not callable(getattr(src, "shuffle", None)):
            raise TypeError(f"the source must have a method shuffle, unlike {type(src).__name__}")
        self.src = src
        self.shuffle_last = _check.flag("shuffle_last", shuffle_last)
        self.epoch = _check.integer("epoch", epoch, 0)

    def __iter__(self) -> Iterator[T]:
        if self.shuffle_last:
            return self._then_shuffle()
        self._shuffle()
        return iter(self.src)

    def _then_shuffle(self) -> Iterator[T]:
        try:
            yield from self.src
        finally:
            self._shuffle()

    def _shuffle(self) -> None:
        self.src.shuffle(seed=self.epoch)
        self.epoch += 1


class SizedEmbedShuffle(EmbedShuffle[T]):
    """The same for a source that knows its length."""

    src: SizedIterableWithShuffle[T]  # pyright: ignore[reportIncompatibleVariableOverride]

    def __len__(self) -> int:
        return len(self.src)


@overload
def embed_shuffle(
    src: SizedIterableWithShuffle[T], /, *, shuffle_last: bool = False, epoch: int = 0
) -> SizedEmbedShuffle[T]: ...
@overload
def embed_shuffle(
    src: IterableWithShuffle[T], /, *, shuffle_last: bool = False, epoch: int = 0
) -> EmbedShuffle[T]: ...
def embed_shuffle(
    src: IterableWithShuffle[T], /, *, shuffle_last: bool = False, epoch: int = 0
) -> EmbedShuffle[T]:
    """The source, with `src.shuffle(seed=epoch)` before each pass, then epoch + 1 and so on.

    `shuffle_last` shuffles when a pass that has begun ends, also when its iterator is dropped or
    closed half-way, so the first pass has the order that the source had; passes then should not
    overlap.

    The result has `.src`, `.epoch` and, if the source has it, the length.  It pickles if the source
    does.  TypeError: no shuffle().
    """
    made = SizedEmbedShuffle if hasattr(src, "__len__") else EmbedShuffle
    return made(src, shuffle_last, epoch)


class RepeatSource(Iterator[T]):
    """What repeat_source() makes.  `src`: the source; `epoch`: that of the first pass."""

    src: Iterable[T]
    epoch: int

    def __init__(self, src: Iterable[T], epoch: int) -> None:
        self.src = src
        self.epoch = _check.integer("epoch", epoch, 0)
        self._pass: Iterator[T] | None = None
        self._number = 0  # of the epoch of that pass

    def __next__(self) -> T:
        if self._pass is None:
            self._begin(self.epoch)
        try:
            return next(self._pass)  # type: ignore[arg-type]  # _begin() has set it
        except StopIteration:
            self._begin(self._number + 1)
        return next(self._pass)  # type: ignore[arg-type]  # an empty pass is the end

    def _begin(self, epoch: int) -> None:
        shuffle: Callable[..., object] | None = getattr(self.src, "shuffle", None)
        if shuffle is not None:
            shuffle(seed=epoch)
        self._pass = iter(self.src)
        self._number = epoch

    def __getstate__(self) -> dict[str, object]:
        if self._pass is not None:
            raise TypeError("cannot pickle a repeated source whose iteration has begun")
        return self.__dict__


def repeat_source(src: Iterable[T], /, epoch: int = 0) -> RepeatSource[T]:
    """An iterator over pass after pass of `src`, without end.

    Before each pass comes `src.shuffle(seed=epoch)`, if the source has it, with epoch, epoch + 1
    and so on.  A pass without an item is the end: of an empty source, or of one that can be
    iterated only once.

    The result has `.src` and `.epoch`, as they were given; it pickles, if the source does, until its first item was
    asked for (TypeError).  It belongs to one thread at a time.
    """
    return RepeatSource(src, epoch)
