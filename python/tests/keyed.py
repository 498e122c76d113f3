"""What ops draw at random, from its documents (stoker/item.h, src/base/rng.h), for tests that do what an op should."""

from __future__ import annotations

import math

_WORD, _LONG = 2**32, 2**64


def philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon and others, SC 2011)."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 % _WORD, p0 >> 32 ^ c3 ^ k1, p0 % _WORD
        k0, k1 = (k0 + 0x9E3779B9) % _WORD, (k1 + 0xBB67AE85) % _WORD
    return c0, c1, c2, c3


def mix(x: int) -> int:
    """The finaliser of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) % _LONG
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % _LONG
    x = (x ^ x >> 27) * 0x94D049BB133111EB % _LONG
    return x ^ x >> 31


def words(op: str, seed: int, item: int, block: int, epoch: int = 0) -> tuple[int, int, int, int]:
    """Four words for an item of the first op of that name in a pipeline."""
    stage = 0xCBF29CE484222325
    for byte in op.encode():
        stage = (stage ^ byte) * 0x100000001B3 % _LONG
    mixed = mix(seed ^ mix(mix(stage) ^ mix(0)))
    return philox((mixed % _WORD, mixed >> 32), (item % _WORD, item >> 32, epoch, block))


def units(*args, **options) -> list[float]:
    """The same as numbers from 0 to 1."""
    return [word / _WORD for word in words(*args, **options)]


def random_resized_box(op, seed, item, width, height, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)) -> tuple[int, int, int, int]:
    """torchvision's RandomResizedCrop.get_params, with a block of words for each of its ten tries: x, y, width, height."""
    for block in range(10):
        area, shape, down, right = units(op, seed, item, block)
        area = width * height * (scale[0] + (scale[1] - scale[0]) * area)
        shape = math.exp(math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * shape)
        w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < w <= width and 0 < h <= height:
            return int(right * (width - w + 1)), int(down * (height - h + 1)), w, h
    raise AssertionError("none of ten boxes fits")


def flips(op, seed, item, probability) -> bool:
    return units(op, seed, item, 10)[0] < probability
