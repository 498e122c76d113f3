"""Quantiles of a stream, against those of the whole."""

from __future__ import annotations

import random

import numpy as np
import pytest

from stoker.pipeline._quantile import Durations, Quantile

DISTRIBUTIONS = {
    "uniform": lambda rng: rng.random(),
    "normal": lambda rng: rng.gauss(5, 1),
    "exponential": lambda rng: rng.expovariate(3),
    "two heaps": lambda rng: rng.gauss(1, 0.1) if rng.random() < 0.5 else rng.gauss(9, 0.1),
    "few values": lambda rng: float(rng.randrange(10)),
}


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_is_near_the_exact_one(name, p):
    """By rank: the share of values below the estimate is near p."""
    rng = random.Random(f"{name} {p}")
    values = np.array([DISTRIBUTIONS[name](rng) for _ in range(6000)])
    estimate = Quantile(p)
    estimate.extend(values.tolist())
    assert estimate.count == len(values)
    # A step of a discrete distribution spans many ranks: one of them is near.
    slack = 0.015 if name != "few values" else 0.1
    low, high = np.mean(values < estimate.value), np.mean(values <= estimate.value)
    assert low - slack <= p <= high + slack


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_sorted_values(order):
    values = [float(i) for i in range(5000)]
    if order == "descending":
        values.reverse()
    estimate = Quantile(0.9)
    for value in values:
        estimate.add(value)
    assert estimate.value == pytest.approx(4500, rel=0.02)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("p", [0.25, 0.5, 0.9, 0.99])
def test_few_values_are_exact(count, p):
    values = [3.0, 1.0, 9.0, 4.0, 7.0][:count]
    estimate = Quantile(p)
    estimate.extend(values)
    assert estimate.value == pytest.approx(np.quantile(values, p))


def test_the_example_of_the_paper():
    """The 20 observations of section 2.3 for the median, and where its table ends."""
    values = [0.02, 0.15, 0.74, 3.39, 0.83, 22.37, 10.15, 15.43, 38.62, 15.92]
    values += [34.60, 10.28, 1.47, 0.40, 0.05, 11.39, 0.27, 0.42, 0.09, 11.37]
    estimate = Quantile(0.5)
    estimate.extend(values)
    assert estimate.value == pytest.approx(4.44, abs=0.005)


def test_no_values_and_equal_values():
    assert Quantile(0.5).value == 0
    estimate = Quantile(0.5)
    estimate.extend([2.5] * 1000)
    assert estimate.value == 2.5


@pytest.mark.parametrize("p", [0, 1, -1, 2, float("nan")])
def test_p_is_checked(p):
    with pytest.raises(ValueError):
        Quantile(p)


def test_durations():
    rng = random.Random(1)
    values = [rng.random() for _ in range(5000)]
    durations = Durations(intervals=True)
    assert durations.total() == durations.take() == (0, 0, 0)
    for value in values[:3000]:
        durations.add(value)
    mean, p90, p99 = durations.take()
    assert mean == pytest.approx(np.mean(values[:3000]))
    assert p90 == pytest.approx(0.9, abs=0.02) and p99 == pytest.approx(0.99, abs=0.01)
    for value in values[3000:]:
        durations.add(1 + value)
    mean, p90, p99 = durations.take()
    assert mean == pytest.approx(1 + np.mean(values[3000:])) and p90 == pytest.approx(1.9, abs=0.02)
    assert durations.take() == (0, 0, 0)
    assert durations.total()[0] == pytest.approx(np.mean(values) + 0.4)
