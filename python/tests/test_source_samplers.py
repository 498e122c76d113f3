"""Samplers: each rank's share, checked against the definition."""

from __future__ import annotations

import math
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.source import DistributedDeterministicSampler, DistributedRandomSampler
from support import ok

SAMPLERS = [DistributedDeterministicSampler, DistributedRandomSampler]
NAN, INF = math.nan, math.inf


def ranks(sampler, n, world_size, **options):
    """What each rank gets in one epoch."""
    return [list(sampler(n, rank=rank, world_size=world_size, **options)) for rank in range(world_size)]


def dealt(shares):
    """The draws in the order in which they were dealt to the ranks."""
    rounds = max(map(len, shares))
    return [share[i] for i in range(rounds) for share in shares if i < len(share)]


@given(world_size=st.integers(1, 64), rounds=st.integers(1, 9), extra=st.integers(0, 63))
def test_deterministic_drops_the_incomplete_round(world_size, rounds, extra):
    n = world_size * rounds + extra % world_size
    shares = ranks(DistributedDeterministicSampler, n, world_size)
    total = n // world_size * world_size
    assert shares == [list(range(rank, total, world_size)) for rank in range(world_size)]
    assert {len(share) for share in shares} == {rounds}


@given(n=st.integers(1, 300), world_size=st.integers(1, 64))
def test_deterministic_keeps_the_incomplete_round(n, world_size):
    shares = ranks(
        DistributedDeterministicSampler, n, world_size, ddp_drop_last_distributed_round=False
    )
    assert shares == [list(range(rank, n, world_size)) for rank in range(world_size)]
    lengths = [len(share) for share in shares]
    assert max(lengths) - min(lengths) <= 1 and sum(lengths) == n


def test_deterministic_is_the_same_in_every_epoch():
    sampler = DistributedDeterministicSampler(10, rank=1, world_size=3)
    assert list(sampler) == list(sampler) == [1, 4, 7]
    assert all(type(i) is int for i in sampler)
    assert not hasattr(sampler, "shuffle")


@given(
    n=st.integers(1, 200),
    world_size=st.integers(1, 64),
    draws=st.none() | st.integers(1, 200),
    seed=st.integers(0, 2**64 - 1),
    drop=st.booleans(),
)
def test_ranks_are_disjoint_and_together_cover_the_draws(n, world_size, draws, seed, drop):
    draws = None if draws is None else min(draws, n)
    count = n if draws is None else draws
    if drop and count < world_size:
        return
    shares = ranks(
        DistributedRandomSampler,
        n,
        world_size,
        num_draws=draws,
        seed=seed,
        ddp_drop_last_distributed_round=drop,
    )
    want = count // world_size * world_size if drop else count
    together = dealt(shares)
    assert len(together) == len(set(together)) == want
    assert set(together) <= set(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= (0 if drop else 1)


@given(n=st.integers(1, 50), seed=st.integers(0, 99), draws=st.integers(1, 500))
def test_shares_are_slices_of_one_sequence(n, seed, draws):
    weights = np.arange(1, n + 1)
    options = {"num_draws": draws, "weights": weights, "seed": seed}
    alone = list(DistributedRandomSampler(n, rank=0, world_size=1, **options))
    assert len(alone) == draws
    shares = ranks(
        DistributedRandomSampler, n, 7, ddp_drop_last_distributed_round=False, **options
    )
    assert dealt(shares) == alone


@given(n=st.integers(1, 200), world_size=st.integers(1, 9), seed=st.integers(0, 99), drop=st.booleans())
def test_sequence_is_that_of_numpy_for_what_is_dealt(n, world_size, seed, drop):
    if drop and n < world_size:
        return
    size = n - n % world_size if drop else n
    want = np.random.default_rng(seed).choice(n, size=size, replace=False)
    shares = ranks(
        DistributedRandomSampler, n, world_size, seed=seed, ddp_drop_last_distributed_round=drop
    )
    assert shares == [list(want[rank::world_size]) for rank in range(world_size)]


@pytest.mark.parametrize("weights", [None, [1.0] * 20])
def test_random_yields_numpy_integers(weights):
    sampler = DistributedRandomSampler(20, rank=0, world_size=2, weights=weights)
    items = list(sampler)
    assert len(items) == len(sampler) == 10
    assert all(type(i) is np.int64 for i in items)


@pytest.mark.parametrize("weights", [None, list(range(100))])
def test_shuffle_sets_the_seed(weights):
    sampler = DistributedRandomSampler(100, rank=1, world_size=4, weights=weights, seed=5)
    first = list(sampler)
    assert list(sampler) == first
    running = iter(sampler)
    sampler.shuffle(6)
    assert list(running) == first
    other = list(sampler)
    assert other != first and list(sampler) == other
    sampler.shuffle(seed=5)
    assert list(sampler) == first
    same = DistributedRandomSampler(100, rank=1, world_size=4, weights=weights, seed=6)
    assert list(same) == other


def test_every_index_comes_to_every_place():
    """5000 orders of 5: a place has each index 1000 times, give or take 5 standard deviations."""
    sampler = DistributedRandomSampler(5, rank=0, world_size=1)
    counts = np.zeros((5, 5), int)
    for seed in range(5000):
        sampler.shuffle(seed)
        counts[range(5), list(sampler)] += 1
    assert abs(counts - 1000).max() < 5 * math.sqrt(5000 * 0.2 * 0.8)


def test_weights_decide_how_often():
    """In any unit; 0 is never drawn; 5 standard deviations."""
    draws, weights = 100_000, [0.0, 1e-3, 2e-3, 5e-3, 0.0]
    sampler = DistributedRandomSampler(5, rank=0, world_size=1, num_draws=draws, weights=weights)
    counts = np.bincount(list(sampler), minlength=5)
    for count, p in zip(counts, [0, 0.125, 0.25, 0.625, 0], strict=True):
        assert abs(count - draws * p) <= 5 * math.sqrt(draws * p * (1 - p))


def test_few_weighted_indices_for_many_ranks():
    shares = ranks(DistributedRandomSampler, 3, 64, num_draws=64, weights=[1, 1, 1])
    assert all(len(share) == 1 for share in shares) and set(dealt(shares)) == {0, 1, 2}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("n", "options", "text"),
    [
        (0, {}, "n must be greater than zero, not 0"),
        (-3, {}, "n must be greater than zero"),
        (8, {"world_size": 0}, "world_size must be greater than zero, not 0"),
        (8, {"world_size": -1}, "world_size must be greater than zero"),
        (8, {"rank": 2}, r"rank must be within the range \[0, 2\), not 2"),
        (8, {"rank": -1}, r"must be within the range \[0, 2\)"),
        (1, {}, r"n must be at least world_size \(2\), not 1"),
    ],
)
def test_what_both_refuse(sampler, n, options, text):
    with pytest.raises(ValueError, match=text):
        sampler(n, **{"rank": 0, "world_size": 2, **options})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_draws": 0}, "num_draws must be greater than zero"),
        ({"num_draws": 9}, r"num_draws must be at most n \(8\)"),
        ({"num_draws": 1}, r"num_draws must be at least world_size \(2\)"),
        ({"num_draws": 1, "weights": [1] * 8}, "num_draws must be at least world_size"),
        ({"weights": [1] * 7}, "8 numbers"),
        ({"weights": [[1] * 8]}, "8 numbers"),
        ({"weights": 1}, "8 numbers"),
        ({"weights": [-1] + [1] * 7}, "not negative"),
        ({"weights": [NAN] + [1] * 7}, "finite"),
        ({"weights": [INF] + [1] * 7}, "finite"),
        ({"weights": [0] * 8}, "must be positive and finite"),
        ({"weights": [1e308] * 8}, "must be positive and finite"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_random_refuses(options, text):
    with pytest.raises(ValueError, match=text):
        DistributedRandomSampler(8, rank=0, world_size=2, **options)


@pytest.mark.parametrize(
    "options", [{"rank": 0.0}, {"world_size": "2"}, {"rank": True}, {"ddp_drop_last_distributed_round": 1}]
)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_types(sampler, options):
    with pytest.raises(TypeError, match=next(iter(options))):
        sampler(8, **{"rank": 0, "world_size": 2, **options})


def test_a_seed_is_refused_before_it_is_taken():
    sampler = DistributedRandomSampler(8, rank=0, world_size=1, seed=3)
    before = list(sampler)
    for seed, error in ((-1, ValueError), (1.5, TypeError), (None, TypeError)):
        with pytest.raises(error, match="seed"):
            sampler.shuffle(seed)
    assert list(sampler) == before


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_numpy_integers_as_arguments(sampler):
    made = sampler(np.int32(9), rank=np.int64(1), world_size=np.uint8(2))
    assert sorted(made) == sorted(sampler(9, rank=1, world_size=2))


@pytest.mark.parametrize(
    "made",
    [
        DistributedDeterministicSampler(100, rank=3, world_size=7),
        DistributedRandomSampler(100, rank=3, world_size=7, seed=9),
        DistributedRandomSampler(100, rank=3, world_size=7, num_draws=400, weights=range(100)),
    ],
)
def test_pickling(made):
    again = pickle.loads(pickle.dumps(made))
    assert list(again) == list(made) and len(again) == len(made) and repr(again) == repr(made)


@pytest.mark.parametrize("weights", [None, range(1, 101)])
def test_global_generators_are_left_alone(weights):
    def draw():
        return list(DistributedRandomSampler(100, rank=0, world_size=2, weights=weights))

    want = draw()
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        states = random.getstate(), np.random.get_state()[1].tolist()
        assert draw() == want
        assert (random.getstate(), np.random.get_state()[1].tolist()) == states


def test_weights_are_copied():
    weights = np.ones(10)
    sampler = DistributedRandomSampler(10, rank=0, world_size=1, weights=weights)
    before = list(sampler)
    weights[1:] = 0
    assert list(sampler) == before and len(set(before)) > 1


def test_without_numpy():
    out = ok(
        """
        sys.modules["numpy"] = None
        from stoker.source import DistributedDeterministicSampler, DistributedRandomSampler
        print(*DistributedDeterministicSampler(5, rank=0, world_size=2))
        try:
            DistributedRandomSampler(5, rank=0, world_size=2)
        except ModuleNotFoundError as error:
            print(error, error.name)
        """
    )
    assert out == "0 2\nDistributedRandomSampler needs NumPy: pip install numpy numpy\n"
