"""Kubernetes quantities as exact integers, rounded up as the scheduler does. The only resource it knows is cpu."""

from __future__ import annotations

import re
from fractions import Fraction

from bayplan.caching import memoised
from bayplan.errors import InputError

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_SCALE = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{suffix: Fraction(1024**power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
MAX_VALUE = 2**63 - 1
# Larger ones do not fit into 64 bits, or differ from a rounded one by nothing, and would take too long to compute.
MAX_EXPONENT = 100
MAX_DIGITS = 200
_MAX_SHOWN_LENGTH = 60


class QuantityError(InputError, ValueError):
    """The text is not a quantity."""


@memoised(65536)
def parse(text: str | float) -> Fraction:
    """The exact amount; raises QuantityError if the text is not a quantity."""
    found = _FORM.fullmatch(_written(text))
    if found is None:
        raise QuantityError(f"expected a quantity such as 500m, 2 or 1.5Gi, got {_shown(text)}")
    digits, exponent, suffix = found.groups()
    if len(digits) > MAX_DIGITS or (exponent and (len(exponent) > MAX_DIGITS or abs(int(exponent[1:])) > MAX_EXPONENT)):
        raise QuantityError(f"expected a quantity of at most 64 bits, got {_shown(text)}")
    scale = Fraction(10) ** int(exponent[1:]) if exponent else _SCALE[suffix or ""]
    return Fraction(digits) * scale


def _written(text: str | float) -> str:
    """The text; Python writes no integers of thousands of digits, and no form matches those."""
    is_long = isinstance(text, int) and text.bit_length() > MAX_DIGITS * 4
    return "" if is_long else str(text)


def _shown(text: str | float) -> str:
    shown = repr(text) if isinstance(text, str) else _written(text) or "a larger number"
    return shown if len(shown) <= _MAX_SHOWN_LENGTH else f"{shown[:_MAX_SHOWN_LENGTH]}…"


def capped(value: int) -> int:
    """The value, or the nearest one of 64 bits."""
    return max(-MAX_VALUE, min(value, MAX_VALUE))


def units(text: str | float) -> int:
    """Whole units, rounded up and capped at 64 bits, as `Quantity.Value()`."""
    return capped(-int(-parse(text) // 1))


def milli(text: str | float) -> int:
    """Thousandths, rounded up and capped at 64 bits, as `Quantity.MilliValue()`."""
    return capped(-int(-parse(text) * 1000 // 1))


def amount(resource: str, text: str | float) -> int:
    """The amount as the scheduler counts it: cpu in thousandths, everything else in whole units, capped at 64 bits."""
    return capped(rounded(resource, parse(text)))


def rounded(resource: str, exact: Fraction) -> int:
    """An exact amount as the scheduler counts it, rounded up, of any size."""
    return -(-exact.numerator * (1000 if resource == "cpu" else 1) // exact.denominator)


def show(resource: str, value: int) -> str:
    """An amount in the usual notation."""
    if resource == "cpu":
        return f"{value}m" if value % 1000 else str(value // 1000)
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        scale = int(_SCALE[suffix])
        if value and value % scale == 0:
            return f"{value // scale}{suffix}"
    if value >= 1024**2 and resource != "pods" and "/" not in resource:
        return f"{value / 1024**2:.1f}Mi"
    return str(value)


def exact(resource: str, value: int) -> str:
    """An amount in the usual notation if that does not round it."""
    shown = show(resource, value)
    return shown if amount(resource, shown) == value else str(value)


def canonical(value: Fraction, *, binary: bool = False) -> str:
    """
    The amount as an API server writes it (apimachinery: `Quantity.CanonicalizeBytes`): rounded up to a billionth.

    With `binary`, in the suffixes of bytes, rounded up to whole ones; below 1,024 those are decimal ones too.
    """
    if binary and abs(value) >= 1024:
        scales = [(suffix, scale) for suffix, scale in _SCALE.items() if suffix.endswith("i")]
        least = "", Fraction(1)
    else:
        scales = [(suffix, scale) for suffix, scale in _SCALE.items() if suffix and not suffix.endswith("i")]
        scales, least = [*scales[:3], ("", Fraction(1)), *scales[3:]], ("n", _SCALE["n"])
    whole = -int(-value / least[1] // 1) * least[1]
    fitting = [(suffix, scale) for suffix, scale in scales if whole % scale == 0]
    suffix, scale = fitting[-1] if whole and fitting else ("", Fraction(1))
    return f"{int(whole / scale)}{suffix}"
