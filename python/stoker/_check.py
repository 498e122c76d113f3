"""Checks of arguments, with errors that name the argument."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Any


def integer(name: str, value: object, low: int, high: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    number = int(value)
    if number < low or (high is not None and number > high):
        span = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {span}, not {number}")
    return number


def number(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    result = float(value)
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, not {result}")
    if not low <= result <= high:
        span = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} must be {span}, not {result:g}")
    return result


def pair(name: str, value: object) -> tuple[float, float]:
    """Two numbers above 0, the smaller first."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{name} must be a pair of numbers")
    first, second = number(f"{name}[0]", value[0]), number(f"{name}[1]", value[1])
    if not 0 < first <= second:
        raise ValueError(f"{name} must be two numbers above 0, the smaller first, not {value}")
    return first, second


def choice(name: str, value: object, choices: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if value not in choices:
        among = "one of " if len(choices) > 1 else ""
        raise ValueError(f"{name} must be {among}{', '.join(map(repr, choices))}, not {value!r}")
    return value


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def failure_limit(value: object) -> int | Fraction:
    """max_failures: a count is an int, negative for any; anything else is a rate."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"max_failures must be a number or a rate, not {type(value).__name__}")
    if isinstance(value, Integral):
        return max(int(value), -1)
    rate: Any = value
    if not 0 < rate <= 1:
        raise ValueError(f"max_failures: a rate must be in range (0, 1], not {rate}")
    return rate  # type: ignore[no-any-return]


def positive(name: str, value: object) -> int:
    number = integer(name, value, -(2**63))
    if number <= 0:
        raise ValueError(f"{name} must be greater than zero, not {number}")
    return number
