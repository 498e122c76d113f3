# SPDX-License-Identifier: BSD-2-Clause
"""Medians and their intervals: figures are compared pair by pair, never by two means."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A median and an interval that holds the true one with 95 % confidence (sign test).

    Fewer than six values cannot say that much: the interval is then their range.
    """

    median: float
    low: float
    high: float
    count: int

    def text(self, digits: int, scale: float = 1.0) -> str:
        m, lo, hi = (x * scale for x in (self.median, self.low, self.high))
        return f"{m:.{digits}f} [{lo:.{digits}f}, {hi:.{digits}f}]"


def rank_of_bound(count: int) -> int:
    """The largest k for which [k-th smallest, k-th largest] still has the confidence."""
    rank, tail = 0, 0.0
    while rank < count // 2:
        tail += comb(count, rank) / 2**count
        if 2 * tail > 1 - CONFIDENCE:
            break
        rank += 1
    return rank


def estimate(values: Sequence[float]) -> Estimate:
    if not values:
        raise ValueError("no values to estimate from")
    ordered = sorted(values)
    at = max(rank_of_bound(len(ordered)) - 1, 0)
    return Estimate(median(ordered), ordered[at], ordered[-1 - at], len(ordered))


def paired_ratio(values: Sequence[float], bases: Sequence[float]) -> Estimate:
    """values[i] / bases[i], where both were measured in round i."""
    return estimate([v / b for v, b in zip(values, bases, strict=True)])
