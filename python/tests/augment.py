"""What tests of augmentation share: pictures, and how results are compared."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from mixed import begin, results
from support import picture


def noise(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def photo(seed=0, width=60, height=40):
    return np.asarray(picture(seed, width, height))


def apply(op, *arrays, threads=2):
    """What the op makes of each, in one batch."""
    (batch,) = results(begin(arrays).pipe(op).batch(len(arrays)), threads)
    return np.asarray(batch.image)


def close(got, want, tolerance=1):
    """`want` in real numbers: pixels are within the tolerance, of 255."""
    assert got.dtype == np.uint8 and got.shape == want.shape
    worst = np.abs(got - np.clip(want, 0, 255)).max()
    assert worst <= tolerance, worst


def uniform(values, low, high):
    """Kolmogorov and Smirnov: more than 1.95 / sqrt(n) apart is once in a thousand."""
    u = np.sort((np.asarray(values) - low) / (high - low))
    n = len(u)
    assert -0.01 < u[0] and u[-1] < 1.01
    assert np.abs(u - (np.arange(n) + 0.5) / n).max() < 1.95 / np.sqrt(n) + 0.01  # of rounding


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Files whose pixels are known, and masks of three classes."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for i in range(24):
        Image.fromarray(photo(i, 48, 36)).save(root / f"i{i:02}.png")
        Image.fromarray(rng.integers(0, 3, (36, 48), np.uint8) * 100).save(root / f"m{i:02}.png")
    return sorted(root.glob("i*.png")), sorted(root.glob("m*.png"))
