"""
Topology spread constraints. Mirrors `validateTopologySpreadConstraints` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import causes, go_text, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
ACTIONS = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
POLICIES = ("Honor", "Ignore")
NOT_POSITIVE = "must be greater than zero"


def causes_of(constraints: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    """What is wrong with the constraints; `pod_labels` is None for a template."""
    found: list[Cause] = []
    items = constraints.items()
    for position, constraint in enumerate(items):
        found += _numbers_and_names(constraint)
        found += _repeated(constraint, items[position + 1 :])
        found += _min_domains(constraint)
        found += _policies(constraint)
        merged = selectors.merged(constraint, pod_labels)
        found += selectors.label_keys(constraint, merged)
        found += selectors.selector(merged)
    return found


def _numbers_and_names(constraint: Field) -> list[Cause]:
    found: list[Cause] = []
    skew, key, action = constraint["maxSkew"], constraint["topologyKey"], constraint["whenUnsatisfiable"]
    if skew.number() <= 0:
        found.append(causes.invalid(skew.path, str(skew.number()), NOT_POSITIVE))
    if not key.text():  # whether it is a label key is not looked at here, unlike in affinity terms
        found.append(causes.required(key.path, "can not be empty"))
    if action.text() not in ACTIONS:
        found.append(causes.unsupported(action.path, go_text.as_json(action.text()), ACTIONS))
    return found


def _repeated(constraint: Field, later: list[Field]) -> list[Cause]:
    """The constraint, if a later one has the same topology and action."""
    if _kind(constraint) not in [_kind(other) for other in later]:
        return []
    path = constraint["{topologyKey, whenUnsatisfiable}"].path
    return [causes.duplicate(path, go_text.quoted("{" + ", ".join(_kind(constraint)) + "}"))]


def _kind(constraint: Field) -> tuple[str, str]:
    return constraint["topologyKey"].text(), constraint["whenUnsatisfiable"].text()


def _min_domains(constraint: Field) -> list[Cause]:
    field, action = constraint["minDomains"], constraint["whenUnsatisfiable"].text()
    found: list[Cause] = []
    if not field.present:
        return found
    if field.number() <= 0:
        found.append(causes.invalid(field.path, str(field.number()), NOT_POSITIVE))
    if action != DO_NOT_SCHEDULE:
        detail = f"can only use minDomains if whenUnsatisfiable={DO_NOT_SCHEDULE}, not {action}"
        found.append(causes.invalid(field.path, str(field.number()), detail))
    return found


def _policies(constraint: Field) -> list[Cause]:
    return [
        causes.unsupported(field.path, go_text.as_json(field.text()), POLICIES)
        for field in (constraint["nodeAffinityPolicy"], constraint["nodeTaintsPolicy"])
        if field.present and field.text() not in POLICIES
    ]
