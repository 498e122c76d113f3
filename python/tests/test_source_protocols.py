"""The protocols of sources in Python."""

from __future__ import annotations

import typed_source
from stoker.source import (
    DistributedDeterministicSampler,
    DistributedRandomSampler,
    IterableWithShuffle,
    SizedIterable,
    SizedIterableWithShuffle,
)


class Shuffled:
    def __iter__(self):
        return iter([1])

    def shuffle(self, seed):
        pass


class SizedShuffled(Shuffled):
    def __len__(self):
        return 1


def test_protocols_look_at_the_methods():
    cases = {
        Shuffled: (False, True, False),
        SizedShuffled: (True, True, True),
        list: (True, False, False),
        object: (False, False, False),
    }
    for made, want in cases.items():
        protocols = (SizedIterable, IterableWithShuffle, SizedIterableWithShuffle)
        assert tuple(isinstance(made(), p) for p in protocols) == want


def test_protocols_of_the_samplers():
    plain = DistributedDeterministicSampler(4, rank=0, world_size=1)
    drawn = DistributedRandomSampler(4, rank=0, world_size=1)
    assert isinstance(plain, SizedIterable) and not isinstance(plain, IterableWithShuffle)
    assert isinstance(drawn, SizedIterableWithShuffle)


def test_protocols_can_be_subclassed_and_subscripted():
    class Own(SizedIterableWithShuffle[int]):
        def __iter__(self):
            return iter([1])

        def __len__(self):
            return 1

        def shuffle(self, seed):
            pass

    assert isinstance(Own(), IterableWithShuffle) and list(Own()) == [1]


def test_types_are_what_they_say(tmp_path):
    picture = tmp_path / "val/n01440764/ILSVRC2012_val_00000293.JPEG"
    picture.parent.mkdir(parents=True)
    picture.touch()
    typed_source.run(tmp_path)
