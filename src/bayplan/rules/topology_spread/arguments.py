"""PodTopologySpreadArgs: the constraints of pods that have none of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from bayplan.mapping import pods
from bayplan.model.terms import HOSTNAME, ZONE
from bayplan.model.workloads import SpreadConstraint
from bayplan.rules.arguments import Arguments
from bayplan.validating import go_text, names
from bayplan.validating.fields import Cause, Field
from bayplan.validating.pods import UNSATISFIABLE_ACTIONS
from bayplan.wire.pods import TopologySpreadConstraint
from bayplan.wire.scheduler_config import PodTopologySpreadArgs

SYSTEM_DEFAULTS = (
    SpreadConstraint(3, HOSTNAME, hard=False, selector=None),
    SpreadConstraint(5, ZONE, hard=False, selector=None),
)
SYSTEM, LIST = "System", "List"
DEFAULTING_TYPES = (SYSTEM, LIST)


class TopologySpreadArguments(Arguments, frozen=True):
    """`system`: the defaults are kube-scheduler's own, with which nodes that lack a key are scored too."""

    written_type = PodTopologySpreadArgs
    defaults: tuple[SpreadConstraint, ...] = SYSTEM_DEFAULTS
    system: bool = True

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        constraints = written["defaultConstraints"].items()
        found = _validate_defaulting(written["defaultingType"], constraints)
        seen: set[tuple[str, str]] = set()
        for constraint in constraints:
            found += _validate_constraint(constraint)
            kind = constraint["topologyKey"].text(), constraint["whenUnsatisfiable"].text()
            if kind in seen:
                found.append(constraint.duplicate(go_text.quoted("{" + ", ".join(kind) + "}")))
            seen.add(kind)
        return found

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        if (written.get("defaultingType") or SYSTEM) == SYSTEM:
            return cls()
        constraints = msgspec.convert(written.get("defaultConstraints") or [], list[TopologySpreadConstraint])
        return cls(tuple(pods.spread_constraint(constraint, {}) for constraint in constraints), system=False)


def _validate_defaulting(field: Field, constraints: list[Field]) -> list[Cause]:
    if field.text() not in ("", *DEFAULTING_TYPES):
        return [field.unsupported(DEFAULTING_TYPES)]
    if constraints and field.text() != LIST:
        shown = go_text.as_json(field.text() or SYSTEM)
        return [field.invalid("when .defaultConstraints are not empty", shown)]
    return []


def _validate_constraint(constraint: Field) -> list[Cause]:
    skew, key, action = constraint["maxSkew"], constraint["topologyKey"], constraint["whenUnsatisfiable"]
    found: list[Cause] = []
    if skew.number() <= 0:
        found.append(skew.invalid_number("not in valid range (0, inf)"))
    found += key.check_text(names.label_key) if key.text() else [key.required("can not be empty")]
    if not action.text():
        found.append(action.required("can not be empty"))
    elif action.text() not in UNSATISFIABLE_ACTIONS:
        found.append(action.unsupported(UNSATISFIABLE_ACTIONS))
    if constraint["labelSelector"].present:
        detail = "constraint must not define a selector, as they deduced for each pod"
        found.append(constraint["labelSelector"].forbidden(detail))
    return found
