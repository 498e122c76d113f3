"""Which indices are this rank's: all ranks together have each draw at most once."""

from __future__ import annotations

from collections.abc import Iterator

from .. import _check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def _share(draws: int, what: str, rank: int, world_size: int, drop_last: bool) -> range:
    """Places among the draws that are this rank's."""
    world_size = _check.positive("world_size", world_size)
    rank = _check.integer("rank", rank, -(2**63))
    if not 0 <= rank < world_size:
        raise ValueError(f"rank must be within the range [0, {world_size}), not {rank}")
    if _check.flag("ddp_drop_last_distributed_round", drop_last):
        if draws < world_size:
            raise ValueError(
                f"{what} must be at least world_size ({world_size}), not {draws}: every rank would "
                "be empty; ddp_drop_last_distributed_round=False keeps the incomplete round"
            )
        draws -= draws % world_size
    return range(rank, draws, world_size)


class DistributedDeterministicSampler:
    """Indices rank, rank + world_size, rank + 2 * world_size... below `n`, the same in every epoch.

    `ddp_drop_last_distributed_round`: True drops the last n % world_size indices, so that all ranks
    have equally many; False keeps them, so that lengths differ by at most one.

    ValueError: n or world_size not above 0, rank outside [0, world_size), n below world_size
    although the last round is dropped.  Any thread; iterators are independent.
    """

    def __init__(
        self,
        n: int,
        /,
        *,
        rank: int,
        world_size: int,
        ddp_drop_last_distributed_round: bool = True,
    ) -> None:
        n = _check.positive("n", n)
        self._indices = _share(n, "n", rank, world_size, ddp_drop_last_distributed_round)

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __repr__(self) -> str:
        return f"DistributedDeterministicSampler({self._indices})"


class DistributedRandomSampler:
    """Random indices below `n`, as np.int64: each rank draws the same sequence and takes its share.

    `num_draws`: how many all ranks draw together in an epoch (None: n).
    `weights`: how likely each index is, in any unit; draws are then with replacement, otherwise an
    index is drawn at most once.
    `seed`: decides the sequence together with the other arguments; see shuffle().
    `ddp_drop_last_distributed_round`: as in DistributedDeterministicSampler, with the draws for n; the
    incomplete round is not drawn, so that without weights the whole sequence is another than with False.

    Every pass takes time and memory for all draws (8 bytes each, 8 more for each weight), which are
    given back, but for the rank's share, before its first index.

    ValueError: as DistributedDeterministicSampler, with the draws for n; num_draws above n without
    weights; weights of another number than n, negative, not finite, or whose sum is not positive
    and finite; a negative seed.  ModuleNotFoundError: no NumPy.  Any thread; iterators are
    independent; random generators of other libraries are neither used nor changed.
    """

    def __init__(
        self,
        n: int,
        /,
        *,
        rank: int,
        world_size: int,
        num_draws: int | None = None,
        weights: ArrayLike | None = None,
        seed: int = 0,
        ddp_drop_last_distributed_round: bool = True,
    ) -> None:
        self._n = _check.positive("n", n)
        self._draws = self._n if num_draws is None else _check.positive("num_draws", num_draws)
        what = "n" if num_draws is None else "num_draws"
        self._indices = _share(
            self._draws, what, rank, world_size, ddp_drop_last_distributed_round
        )
        if weights is None and self._draws > self._n:
            raise ValueError(
                f"num_draws must be at most n ({self._n}) without weights, not {self._draws}: an "
                "index is drawn once at most"
            )
        _numpy()
        self._p = None if weights is None else _probabilities(weights, self._n)
        self.shuffle(seed)

    def shuffle(self, seed: int) -> None:
        """Sets the seed of passes that begin later; without it every pass has the same order."""
        self._seed = _check.integer("seed", seed, 0)

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[np.int64]:
        rng = _numpy().random.default_rng(self._seed)
        drawn = rng.choice(self._n, size=self._indices.stop, replace=self._p is not None, p=self._p)
        mine = drawn[self._indices.start : self._indices.stop : self._indices.step]
        return iter(mine.copy())

    def __repr__(self) -> str:
        weighted = ", weighted" if self._p is not None else ""
        return (
            f"DistributedRandomSampler({len(self)} of {self._draws} draws from {self._n}{weighted}, "
            f"rank={self._indices.start}, world_size={self._indices.step}, seed={self._seed})"
        )


def _numpy() -> Any:
    try:
        import numpy
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "DistributedRandomSampler needs NumPy: pip install numpy", name=error.name
        ) from error
    return numpy


def _probabilities(weights: ArrayLike, n: int) -> NDArray[np.float64]:
    numpy = _numpy()
    values: NDArray[np.float64] = numpy.array(weights, dtype=numpy.float64)
    if values.shape != (n,):
        raise ValueError(f"weights must be {n} numbers, one for each index, not {values.shape}")
    if not numpy.isfinite(values).all() or (values < 0).any():
        raise ValueError("weights must be finite and not negative")
    with numpy.errstate(over="ignore"):
        total = float(values.sum())
    if not 0 < total < float("inf"):
        raise ValueError(f"the sum of weights must be positive and finite, not {total}")
    return values / total
