"""
Timestamps as API servers write them (RFC 3339), as comparable nanoseconds of 64 bits. Uses no clock.

API servers accept any offset and write UTC, so a year may have five digits or be negative: 9999-12-31T23:59:59-12:00 is
written as 10000-01-01T11:59:59Z. Times that 64 bits do not hold, before 1678 or after 2262, are the first and the last.
"""

from __future__ import annotations

import re

from bayplan.caching import memoised
from bayplan.errors import Fault, InputError

_WRITTEN = re.compile(
    r"(-?\d{4,9}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
# What API servers write on every pod; nearly all times are of this form, and it proves that they exist.
_is_ordinary = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII
).fullmatch
_DAY = 24 * 60 * 60
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
LAST = 2**63 - 2  # the index has a larger number for pods without a start time
FIRST = -LAST
_TWO_DIGITS = {f"{number:02}": number for number in range(60)}
_MAX_SHOWN_LENGTH = 40


class TimestampError(InputError, ValueError):
    """The text is not a timestamp."""


def nanoseconds(written: str) -> int:
    """Nanoseconds since 1970, from `FIRST` to `LAST`; raises TimestampError if it is not a timestamp."""
    if len(written) == 20 and written[10] == "T" and written[13] == written[16] == ":" and written[19] == "Z":
        # The only form that API servers write, on every pod.
        two_digits = _TWO_DIGITS.get
        hour, minute, second = two_digits(written[11:13]), two_digits(written[14:16]), two_digits(written[17:19])
        if hour is not None and hour < 24 and minute is not None and second is not None:
            return _bounded((_midnight(written[:10]) + (hour * 60 + minute) * 60 + second) * 10**9)
    return _parsed(written)


def checked(written: str, path: str) -> str:
    """A timestamp that is read later, as it is written; raises TimestampError with the path if it is none."""
    if _is_ordinary(written):
        return written
    try:
        nanoseconds(written)
    except TimestampError as error:
        raise TimestampError(Fault(str(error), path=path)) from None
    return written


def _parsed(written: str) -> int:
    found = _WRITTEN.fullmatch(written)
    if found is None:
        raise TimestampError(f"expected a time such as 2026-01-05T04:07:00Z, got {written[:_MAX_SHOWN_LENGTH]!r}")
    day, hour, minute, second, fraction, sign, ahead_hours, ahead_minutes = found.groups()
    if int(hour) >= 24 or minute not in _TWO_DIGITS or second not in _TWO_DIGITS:
        raise TimestampError(f"expected a time that exists, got {written[:_MAX_SHOWN_LENGTH]!r}")
    seconds = _midnight(day) + (int(hour) * 60 + int(minute)) * 60 + int(second)
    if sign is not None:
        seconds -= (1 if sign == "+" else -1) * (int(ahead_hours) * 60 + int(ahead_minutes)) * 60
    return _bounded(seconds * 10**9 + int((fraction or "").ljust(9, "0")))


def _bounded(exact: int) -> int:
    return exact if FIRST <= exact <= LAST else max(FIRST, min(exact, LAST))


@memoised(4096)
def _midnight(written: str) -> int:
    """The start of a day written as 2026-01-05, in seconds since 1970."""
    try:
        year, month, day = map(int, written.rsplit("-", 2))
    except ValueError:
        raise TimestampError(f"expected a day such as 2026-01-05, got {written[:_MAX_SHOWN_LENGTH]!r}") from None
    if not (1 <= month <= 12 and 1 <= day <= 31):
        raise TimestampError(f"expected a day that exists, got {written[:_MAX_SHOWN_LENGTH]!r}")
    leap = month > 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    before = year - 1
    whole_years = before * 365 + before // 4 - before // 100 + before // 400 - 719162
    return (whole_years + _DAYS_BEFORE_MONTH[month - 1] + leap + day - 1) * _DAY
