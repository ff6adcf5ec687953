"""
Spread constraints of a placement. Mirrors `ValidateSpreadConstraint` in Karmada's pkg/util/validation/validation.go.

Judges what was written: the field and the minimum that Karmada's mutating webhook fills in do not count here, as they
do not in the recorded answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import causes, go_structs
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import placements as wire

CLUSTER = "cluster"

FIELD_AND_LABEL = "spreadByLabel should not co-exist with spreadByField"
NEGATIVE_MIN = "minGroups lower than 0 is not allowed"
NEGATIVE_MAX = "maxGroups lower than 0 is not allowed"
MAX_BELOW_MIN = "maxGroups lower than minGroups is not allowed"
NO_CLUSTER = (
    "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"
)


def causes_of(constraints: Field) -> list[Cause]:
    """What is wrong with each constraint, and with all of them together."""
    found: list[Cause] = []
    for constraint in constraints.items():
        shown = go_structs.shown(constraint, wire.SpreadConstraint)
        found += [causes.invalid(constraint.path, shown, detail) for detail in _alone(constraint)]
    for detail in _together(constraints):
        found.append(causes.invalid(constraints.path, go_structs.listed(constraints, wire.SpreadConstraint), detail))
    return found


def _alone(constraint: Field) -> Iterator[str]:
    fewest, most = constraint["minGroups"].number(), constraint["maxGroups"].number()
    if constraint["spreadByField"].text() and constraint["spreadByLabel"].text():
        yield FIELD_AND_LABEL
    if fewest < 0:
        yield NEGATIVE_MIN
    if most < 0:
        yield NEGATIVE_MAX
    if 0 < most < fewest:
        yield MAX_BELOW_MIN


def _together(constraints: Field) -> Iterator[str]:
    by_field = [constraint["spreadByField"].text() for constraint in constraints.items()]
    used = dict.fromkeys(name for name in by_field if name)
    yield from (f"multiple {name} spread constraints are not allowed" for name in used if by_field.count(name) > 1)
    if used and CLUSTER not in used:
        yield NO_CLUSTER
