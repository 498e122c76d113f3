"""Types of what sources yield: read by the type checker, run by test_source_protocols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np

from stoker import source
from stoker.pipeline import cache_iterator
from stoker.source.imagenet import ImageNet, get_mappings, get_names, parse_wnid
from stoker.source.local_directory import LocalDirectory
from stoker.source.utils import MergeIterator, embed_shuffle, repeat_source


class Words:
    def __iter__(self) -> Iterator[str]:
        return iter(["a", "b"])

    def shuffle(self, seed: int) -> None:
        pass


def run(root: Path) -> None:
    """`root` has a folder "val" with one picture of a tench."""
    plain = source.DistributedDeterministicSampler(4, rank=0, world_size=2)
    drawn = source.DistributedRandomSampler(4, rank=0, world_size=2)
    files = LocalDirectory(root, "val/*/*.JPEG")
    pictures = ImageNet(root)
    assert_type(next(iter(plain)), int)
    assert_type(next(iter(drawn)), np.int64)
    assert_type(next(iter(files)), Path)
    assert_type(next(iter(pictures)), tuple[Path, int])
    assert_type(get_mappings(), dict[str, int])
    assert_type(get_names(), dict[int, tuple[str, ...]])
    assert_type(parse_wnid("n01440764"), str)

    sized: source.SizedIterable[int] = plain
    shuffled: source.IterableWithShuffle[str] = Words()
    both: list[source.SizedIterableWithShuffle[object]] = [drawn, files, pictures]
    assert len(sized) == 2 and len(both) == 3

    assert_type(next(iter(embed_shuffle(shuffled))), str)
    assert_type(len(embed_shuffle(drawn)), int)
    assert_type(embed_shuffle(drawn).src, source.SizedIterableWithShuffle[np.int64])
    assert_type(next(repeat_source(files)), Path)
    assert_type(next(iter(MergeIterator([plain, plain], weights=[1, 2]))), int)
    assert_type(next(cache_iterator(Words(), 1)), str)
