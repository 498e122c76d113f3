"""Quantiles of a stream, without keeping it.

The P2 algorithm (R. Jain and I. Chlamtac, Communications of the ACM 28(10), 1985): five markers, which move
along a parabola through their neighbours towards where the quantile must be.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Durations", "Quantile"]

_BURST = 256  # durations that wait to be counted: large enough to amortise the call, 8 kB at most


class Quantile:
    """An estimate of one quantile of all values that were added.  One thread at a time."""

    __slots__ = ("_heights", "_positions", "_steps", "count", "p")

    def __init__(self, p: float) -> None:
        """`p`: between 0 and 1."""
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, not {p}")
        self.p = p
        self.count = 0
        self._heights: list[float] = []  # of the markers: least, between, the quantile, between, greatest
        self._positions = [1, 2, 3, 4, 5]  # how many values are at or below each marker
        self._steps = (0.0, p / 2, p, (1 + p) / 2, 1.0)  # how far each should move with a value

    def add(self, value: float) -> None:
        self.extend((value,))

    def extend(self, values: Iterable[float]) -> None:
        q, n = self._heights, self._positions
        _, step1, step2, step3, _ = self._steps
        count = self.count
        for value in values:
            if count < 5:
                q.append(value)
                q.sort()
                count += 1
                continue
            if value < q[2]:
                n[2] += 1
                n[3] += 1
                if value < q[1]:
                    n[1] += 1
                    if value < q[0]:
                        q[0] = value
            elif value < q[3]:
                n[3] += 1
            elif value > q[4]:
                q[4] = value
            n[4] += 1
            if not -1 < 1 + count * step1 - n[1] < 1:
                self._shift(1, 1 + count * step1)
            if not -1 < 1 + count * step2 - n[2] < 1:
                self._shift(2, 1 + count * step2)
            if not -1 < 1 + count * step3 - n[3] < 1:
                self._shift(3, 1 + count * step3)
            count += 1
        self.count = count

    def _shift(self, i: int, wanted: float) -> None:
        """Moves a marker by one towards the position that is wanted, if no other is there."""
        q, n = self._heights, self._positions
        below, above = n[i] - n[i - 1], n[i + 1] - n[i]
        by = 1 if wanted > n[i] else -1
        if (above if by > 0 else below) <= 1:
            return
        slopes = (below + by) * (q[i + 1] - q[i]) / above + (above - by) * (q[i] - q[i - 1]) / below
        height = q[i] + by * slopes / (below + above)
        if not q[i - 1] < height < q[i + 1]:  # the order of the markers holds on a line
            height = q[i] + by * (q[i + by] - q[i]) / (n[i + by] - n[i])
        q[i] = height
        n[i] += by

    @property
    def value(self) -> float:
        """The estimate; exact (interpolated between values) for up to five values, 0 for none."""
        q = self._heights
        if self.count > 5:
            return q[2]
        if not q:
            return 0.0
        place = self.p * (self.count - 1)
        low = int(place)
        high = min(low + 1, self.count - 1)
        return q[low] + (place - low) * (q[high] - q[low])


class _Summary:
    __slots__ = ("count", "p90", "p99", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.p90 = Quantile(0.9)
        self.p99 = Quantile(0.99)

    def extend(self, values: list[float]) -> None:
        self.count += len(values)
        self.sum += sum(values)
        self.p90.extend(values)
        self.p99.extend(values)

    def figures(self) -> tuple[float, float, float]:
        mean = self.sum / self.count if self.count else 0.0
        return mean, self.p90.value, self.p99.value


class Durations:
    """Mean, 90th and 99th percentile of durations: of all, and of those since they were last taken.

    One thread at a time.
    """

    __slots__ = ("_all", "_recent", "_waiting")

    def __init__(self, intervals: bool) -> None:
        """`intervals`: whether take() will be called."""
        self._all = _Summary()
        self._recent = _Summary() if intervals else None
        self._waiting: list[float] = []

    def add(self, seconds: float) -> None:
        self._waiting.append(seconds)
        if len(self._waiting) >= _BURST:
            self._fold()

    def _fold(self) -> None:
        values, self._waiting = self._waiting, []
        self._all.extend(values)
        if self._recent is not None:
            self._recent.extend(values)

    def total(self) -> tuple[float, float, float]:
        """Mean, p90, p99 of all."""
        self._fold()
        return self._all.figures()

    def take(self) -> tuple[float, float, float]:
        """Mean, p90, p99 since the last call."""
        if self._recent is None:
            raise RuntimeError("made without intervals")
        self._fold()
        recent, self._recent = self._recent, _Summary()
        return recent.figures()
