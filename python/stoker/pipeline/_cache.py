"""cache_iterator: how fast a program would be if its data cost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import _check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")


def cache_iterator(
    src: Iterable[T],
    num_caches: int,
    *,
    return_caches_after: int | None = None,
    stop_after: int | None = None,
    delete_src: bool = True,
) -> Iterator[T]:
    """Items of `src`, of which the first `num_caches` are kept and then given again and again.

    What a training loop gains when it reads from this instead of its loader is what a faster loader
    could give it.

    `return_caches_after`: so many items come from the source before the kept ones do (None:
    num_caches); or fewer, if the source ends.
    `stop_after`: so many items in all (None: no end).
    `delete_src`: lets go of the source when the kept items begin, so that it can end; False holds
    it until the iterator is gone.

    The same objects are given again: they must not be changed by who gets them.  An empty source is
    the end.  ValueError: a number that is not greater than zero.
    """
    count = _check.positive("num_caches", num_caches)
    after = count
    if return_caches_after is not None:
        after = _check.positive("return_caches_after", return_caches_after)
    if stop_after is not None:
        stop_after = _check.positive("stop_after", stop_after)
    return _items(src, count, after, stop_after, _check.flag("delete_src", delete_src))


def _items(
    src: Iterable[T], count: int, after: int, stop: int | None, delete_src: bool
) -> Iterator[T]:
    from itertools import cycle, islice

    caches: list[T] = []
    given = 0
    iterator = iter(src)
    item: T | None = None
    for item in islice(iterator, after if stop is None else min(after, stop)):
        if len(caches) < count:
            caches.append(item)
        given += 1
        yield item
    if not caches:
        return
    del item
    if delete_src:
        del src, iterator
    yield from islice(cycle(caches), None if stop is None else stop - given)
