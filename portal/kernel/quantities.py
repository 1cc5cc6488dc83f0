"""Kubernetes quantities: the API server's own grammar, read exactly (contract D2, C28).

``number [suffix]``: a number such as ``+1``, ``-0.5``, ``.5``, ``1.`` and a suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei,
or an exponent ``e3``, ``E-3``, ``e+3``. What is finer than a billionth is rounded up, away from zero, as the server does.
"""

from __future__ import annotations

import re
from fractions import Fraction

LARGEST = 2**63 - 1

_NUMBER = r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
_SUFFIX = r"(?P<suffix>[numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+)"
_QUANTITY = re.compile(_NUMBER + _SUFFIX)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = 10**9
_EXPONENT_MAX = 40
_LENGTH_MAX = 64


class QuantityError(ValueError):
    """The text is no quantity; the message says which rule it breaks."""


def parse(text: str) -> Fraction:
    """The exact value of ``text`` (cores, bytes, devices: whatever it counts), in multiples of a billionth.

    QuantityError for what the API server refuses, for a sign or suffix without any digit (which it reads as 0), and for a
    magnitude above 2^63-1, beyond which its own answers differ.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(
            f"{text[:_LENGTH_MAX]!r} is no quantity: write a number with an optional suffix, such as 4, 500m, 1.5Gi or 1e3."
        )
    digits, places = match["whole"] + (match["part"] or ""), len(match["part"] or "")
    number = Fraction(int(digits), 10**places)
    if number:
        number = _rounded_up(_scaled(number, match["suffix"], text))
    if number > LARGEST:
        raise QuantityError(f"{text} is too large: at most 2^63-1.")
    return -number if match["sign"] == "-" else number


def same(first: object, second: object) -> bool:
    """Whether two values mean the same quantity: ``"1000M"`` and ``"1G"``, ``"0.5"`` and ``"500m"``, 8 and ``"8"`` (C28).

    Values that are no quantities are the same only when they are equal.
    """
    if first == second:
        return True
    try:
        return parse(_text(first)) == parse(_text(second))
    except QuantityError:
        return False


def _text(value: object) -> str:
    """Manifests may carry plain numbers where the API server answers with text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(f"{value!r} is no quantity")
    return value if isinstance(value, str) else repr(value)


def _scaled(number: Fraction, suffix: str, text: str) -> Fraction:
    if suffix in _BINARY:
        return number * int(2 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return _by_power_of_ten(number, _DECIMAL[suffix])
    exponent = int(suffix[1:])
    if exponent > _EXPONENT_MAX:
        raise QuantityError(f"{text} is too large: at most 2^63-1.")
    # Far below a billionth only the rounding remains: the exact power need not be built.
    return _by_power_of_ten(number, max(exponent, -_LENGTH_MAX - 2 * _EXPONENT_MAX))


def _by_power_of_ten(number: Fraction, power: int) -> Fraction:
    ten: int = 10 ** abs(power)
    return number * ten if power >= 0 else number / ten


def _rounded_up(number: Fraction) -> Fraction:
    """To the next billionth: who wants some of a resource gets some."""
    return Fraction(-(-number * _NANO // 1), _NANO)
