"""Times as exact rationals: what users write them as, and what the C library compares."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Time: TypeAlias = "float | Decimal | str | Fraction | int"
    Window: TypeAlias = "tuple[Time, Time]"

FAR = 2**31  # s: as far as a window can reach; and no time base has a denominator above


def exact(name: str, value: object) -> Fraction:
    """Seconds as they were written: 0.1 is the nearest double, "0.1" and "1/10" are a tenth."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str, Fraction)):
        raise TypeError(f"{name} must be float, Decimal, str, Fraction or int, not {type(value).__name__}")
    if isinstance(value, (float, Decimal)) and not isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name}: {value!r} is not a number of seconds") from None


def window(value: object) -> tuple[Fraction, Fraction] | None:
    """A window [start, end), or None for all."""
    if value is None:
        return None
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"a window is a pair (start, end) of times, not {value!r}")
    start, end = exact("start", value[0]), exact("end", value[1])
    if start >= end:
        raise ValueError(f"the window [{value[0]}, {value[1]}) ends before it starts, or is empty")
    return start, end


def four(span: tuple[Fraction, Fraction]) -> tuple[int, int, int, int]:
    """A window as numbers of 64 bits that cut every stream at the same place."""
    start, end = up(span[0]), up(span[1])
    return start.numerator, start.denominator, end.numerator, end.denominator


def up(time: Fraction) -> Fraction:
    """The smallest fraction of numbers below 2^62 that is not before `time`.

    A time in a stream is a multiple of its time base, so it is at `time` or later exactly if it is
    at that fraction or later.
    """
    if abs(time) >= FAR:
        return Fraction(max(-FAR, min(FAR, ceil(time))))
    dense = 2**62 // (floor(abs(time)) + 1)  # the largest denominator: 2^31 at least
    if time.denominator <= dense:
        return time
    # Neighbours of `time` among those fractions, one on each side, by its continued fraction.
    p0, q0, p1, q1 = 0, 1, 1, 0
    n, d = time.numerator, time.denominator
    while (q2 := q0 + (a := n // d) * q1) <= dense:
        p0, q0, p1, q1 = p1, q1, p0 + a * p1, q2
        n, d = d, n - a * d
    k = (dense - q0) // q1
    return max(Fraction(p0 + k * p1, q0 + k * q1), Fraction(p1, q1))
