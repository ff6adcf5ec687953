"""Timestamps are compared as Go compares them, in any notation."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model import timestamps

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_timestamp_form_of_an_api_server(moment):
    whole = moment.replace(microsecond=0)
    written = whole.isoformat().replace("+00:00", "Z")
    assert timestamps.nanoseconds(written) == (whole - EPOCH) // timedelta(seconds=1) * 10**9


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
