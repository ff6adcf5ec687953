"""Timestamps are compared as Go compares them, in any notation."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model import timestamps

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_timestamp_form_of_an_api_server(moment):
    whole = moment.replace(microsecond=0)
    written = whole.isoformat().replace("+00:00", "Z")
    exact = (whole - EPOCH) // timedelta(seconds=1) * 10**9
    assert timestamps.nanoseconds(written) == max(timestamps.FIRST, min(exact, timestamps.LAST))


@pytest.mark.parametrize("written, expected", [
    ("2262-04-11T23:47:16Z", 9_223_372_036 * 10**9),
    ("2262-04-12T00:00:00Z", timestamps.LAST),
    ("9999-12-31T23:59:59-12:00", timestamps.LAST),
    ("10000-01-01T11:59:59Z", timestamps.LAST),  # as API servers write the line above
    ("1600-01-01T00:00:00Z", timestamps.FIRST),
    ("0000-01-01T00:00:00+14:00", timestamps.FIRST),
    ("-0001-12-31T10:00:00Z", timestamps.FIRST),  # as API servers write the line above
])  # fmt: skip
def test_times_out_of_range_are_the_first_and_the_last(written, expected):
    assert timestamps.nanoseconds(written) == expected
    assert np.int64(expected) < np.iinfo(np.int64).max  # which is the start of a pod that has not started


@pytest.mark.parametrize("one, other", [
    ("2026-01-05T04:07:00Z", "2026-01-05T06:07:00+02:00"),
    ("2026-01-05T04:07:00Z", "2026-01-04T22:37:00-05:30"),
    ("2026-01-05T04:07:00Z", "2026-01-05t04:07:00.000000000z"),
])  # fmt: skip
def test_different_texts_of_the_same_time(one, other):
    assert timestamps.nanoseconds(one) == timestamps.nanoseconds(other)


def test_fractions_of_a_second():
    whole = timestamps.nanoseconds("2026-01-05T04:07:00Z")
    assert timestamps.nanoseconds("2026-01-05T04:07:00.5Z") == whole + 5 * 10**8
    assert timestamps.nanoseconds("2026-01-05T04:07:00.0000000019Z") == whole + 1


@pytest.mark.parametrize(
    "written",
    [
        "",
        "yesterday",
        "2026-01-05",
        "2026-01-05T04:07:00",
        "2026-13-05T04:07:00Z",
        "2026-01-00T04:07:00Z",
        "2026-01-05T24:07:00Z",
        "2026-01-05T04:60:00Z",
        "2026-01-05T04:07:99Z",
        "2026+01-05T04:07:00Z",
        "2026-01-05T+4:07:00Z",
    ],
)
def test_an_invalid_timestamp_is_rejected(written):
    with pytest.raises(ValueError, match="expected a"):
        timestamps.nanoseconds(written)


ALMOST = st.from_regex(r"[0-9 +]{3,5}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]Z?\n?", fullmatch=True)


@given(ALMOST)
def test_a_time_is_accepted_if_and_only_if_it_can_be_read(written):
    try:
        timestamps.nanoseconds(written)
    except timestamps.TimestampError:
        with pytest.raises(timestamps.TimestampError):
            timestamps.checked(written, "status.startTime")
    else:
        assert timestamps.checked(written, "status.startTime") == written
