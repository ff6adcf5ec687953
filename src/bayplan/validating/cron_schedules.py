"""
The schedule and time zone of a CronJob: whether they can be parsed. When the CronJob runs is not known here.

Mirrors `ParseStandard` of github.com/robfig/cron/v3 and `validateScheduleFormat` and `validateTimeZone` in
pkg/apis/batch/validation. Whether a time zone exists is known if Python finds a time zone database on this machine.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import msgspec

from bayplan.validating import go_text
from bayplan.validating.fields import Cause, Field

ZONE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_MAX_DIGITS = 19  # of a number in Go
_DURATION = re.compile(r"[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
EMPTY_ZONE = "timeZone must be nil or non-empty string"
LOCAL_ZONE = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class _Bounds(msgspec.Struct, frozen=True):
    least: int
    most: int
    names: Mapping[str, int] = {}


_FIELDS = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class _ScheduleError(Exception):
    """The text is no schedule."""


def validate_schedule(schedule: Field) -> list[Cause]:
    """The causes for rejecting a schedule, which is required."""
    text = schedule.text()
    if not text:
        return [schedule.required()]
    found: list[Cause] = []
    try:
        _parse(text)
    except _ScheduleError as error:
        found.append(schedule.invalid(str(error)))
    if "TZ" in text:
        found.append(schedule.invalid(ZONE))
    return found


def validate_time_zone(zone: Field) -> list[Cause]:
    """The causes for rejecting a time zone, which may be absent."""
    name = zone.text()
    if not zone.present:
        return []
    if not name:
        return [zone.invalid(EMPTY_ZONE)]
    unknown = zone.invalid(f"unknown time zone {name}")
    parts = name.split("/")
    if any(one in (".", "..") or one.startswith("-") or not _ZONE_PART.fullmatch(one) for one in parts):
        return [unknown]
    found = [zone.invalid(LOCAL_ZONE)] if name.lower() == "local" else []
    return found if name == "Local" or _is_zone(name) else [*found, unknown]


@functools.cache
def _is_zone(name: str) -> bool:
    """Whether the time zone exists; also true if this machine has no database to find it in."""
    import zoneinfo  # few files have a time zone in them

    known = zoneinfo.available_timezones()
    return not known or name in known


def _parse(text: str) -> None:
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if text.startswith("@"):
        _check_descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise _ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, field.split(",")):
            _check_range(expression, bounds)


def _check_descriptor(text: str) -> None:
    if text.startswith(_EVERY):
        duration = text.removeprefix(_EVERY)
        if not _DURATION.fullmatch(duration):
            shown = go_text.quoted(duration)
            raise _ScheduleError(f"failed to parse duration {text}: time: invalid duration {shown}")
    elif text not in DESCRIPTORS:
        raise _ScheduleError(f"unrecognized descriptor: {text}")


def _check_range(expression: str, bounds: _Bounds) -> None:
    """Check `number`, `number-number` or a star, optionally followed by `/number`."""
    span, *steps = expression.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        start, end = bounds.least, bounds.most
    else:
        numbers = [_number(end, bounds) for end in ends[:2]]
        if len(ends) > 2:
            raise _ScheduleError(f"too many hyphens: {expression}")
        start, end = numbers[0], numbers[-1]
    step = _integer(steps[0]) if steps else 1
    if len(steps) > 1:
        raise _ScheduleError(f"too many slashes: {expression}")
    if steps and len(ends) == 1:
        end = bounds.most
    if start < bounds.least:
        raise _ScheduleError(f"beginning of range ({start}) below minimum ({bounds.least}): {expression}")
    if end > bounds.most:
        raise _ScheduleError(f"end of range ({end}) above maximum ({bounds.most}): {expression}")
    if start > end:
        raise _ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if not step:
        raise _ScheduleError(f"step of range should be a positive number: {expression}")


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        shown = go_text.quoted(text)
        raise _ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {shown}: invalid syntax")
    if len(text.lstrip("+-0")) > _MAX_DIGITS or not -(2**63) <= int(text) < 2**63:
        shown = go_text.quoted(text)
        raise _ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {shown}: value out of range")
    if int(text) < 0:
        raise _ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
