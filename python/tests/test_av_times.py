"""Windows: exact, in whatever they are written."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.io import get_audio_filter_desc, get_video_filter_desc
from stoker.io._times import exact, four, up, window


@pytest.mark.parametrize("value", [0.5, "0.5", "1/2", Decimal("0.5"), Fraction(1, 2), "5e-1"])
def test_a_half(value):
    assert exact("start", value) == Fraction(1, 2)


def test_doubles_are_what_they_are():
    assert exact("start", 0.1) != exact("start", "0.1") == Fraction(1, 10)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, Decimal("NaN"), "x", "1/0", "", "nan"])
def test_no_numbers(value):
    with pytest.raises(ValueError, match="start"):
        exact("start", value)


@pytest.mark.parametrize("value", [None, True, b"1", [1]])
def test_other_types(value):
    with pytest.raises(TypeError, match="start"):
        exact("start", value)


@pytest.mark.parametrize("value", [(1, 1), (2, 1), ("0.1", Decimal("0.1"))])
def test_windows_without_anything_in_them(value):
    with pytest.raises(ValueError, match="window"):
        window(value)


@pytest.mark.parametrize("value", [1, (1,), (1, 2, 3), "ab"])
def test_windows_are_pairs(value):
    with pytest.raises(TypeError):
        window(value)


def read(text):
    """As FFmpeg does (av_parse_time): a sign, digits, and a point with at most six."""
    found = re.fullmatch(r"(-?)(\d+)\.(\d{1,6})", text)
    assert found, text
    return Fraction(f"{found[1]}{found[2]}.{found[3]}")


@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(-1, 1).map(lambda x: x * 10**-6),
        st.fractions(),
        st.integers(),
    )
)
def test_filters_read_every_time(time):
    for name, describe in (("trim", get_video_filter_desc), ("atrim", get_audio_filter_desc)):
        text = describe(timestamp=(time, math.inf)).split(",")[0]
        begin = f"{name}=start="
        assert text.startswith(begin)
        assert abs(read(text[len(begin) :]) - max(-(2**31), min(2**31, Fraction(time)))) <= Fraction(1, 2 * 10**6)


@pytest.mark.parametrize(
    ("time", "text"),
    [(5e-5, "0.00005"), (1e-7, "0.0"), (-1e-6, "-0.000001"), (1, "1.0"), (0.1, "0.1"), ("1/3", "0.333333"), (1e18, "2147483648.0")],
)
def test_texts_of_times(time, text):
    assert f"trim=start={text}," in get_video_filter_desc(timestamp=(time, math.inf))


times = st.one_of(
    st.floats(-1e12, 1e12), st.fractions(-(10**6), 10**6), st.floats(-1, 1).map(lambda x: x * 2**-40)
)


@given(times, st.integers(-(2**40), 2**40), st.integers(1, 2**31 - 1))
def test_rounding_up_moves_no_packet(time, ticks, base):
    time = Fraction(time)
    rounded = up(time)
    assert abs(rounded.numerator) <= 2**62
    assert rounded.denominator <= 2**62
    for k in (ticks, math.ceil(time * base), math.ceil(time * base) - 1):
        if abs(Fraction(k, base)) < 2**31:
            assert (Fraction(k, base) >= time) == (Fraction(k, base) >= rounded)


@given(st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-3))
def test_doubles_of_usual_size_stay_themselves(time):
    num, den, *_ = four((Fraction(time), Fraction(time) + 1))
    assert num / den == time
