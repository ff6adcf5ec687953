"""`bayplan explain` for a fleet: one binding, every cluster, every rule, the workloads in the way."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bayplan.errors import InputError

if TYPE_CHECKING:
    from bayplan.explaining.explanation import Explanation
    from bayplan.model.workloads import Workload
    from bayplan.reading.fleet import Fleet
    from bayplan.rules.rule import Rule

ANY = "pod"  # what a bare name is read as: in a fleet it may be of any kind
_OF_BINDINGS = ("resourcebinding", "rb", "clusterresourcebinding", "crb")


def find(
    kind: str, name: str, fleet: Fleet, included: Callable[[Workload], bool], *, alone: bool
) -> tuple[Explanation, str]:
    """The explanation of what is asked about and where it is now; raises InputError if it is nowhere or not alone."""
    from bayplan.explaining import explanation
    from bayplan.rules import profiles

    rules = profiles.fleet_rules()
    placed = {key: record.shares for key, record in fleet.index.records.items()}
    known = {w.key: w for w in (*(r.workload for r in fleet.index.records.values()), *fleet.pending)}
    fitting = [w for w in known.values() if included(w) and is_meant(kind, name, w)]
    _check_one(kind, name, fitting, list(known.values()))
    workload = fitting[0]
    if not alone:
        _place_those_before(workload, fleet, rules)
    current = ", ".join(f"{target}:{n}" if n else target for target, n in placed.get(workload.key, ()))
    return explanation.explain_binding(workload, fleet.index, rules), current


def is_meant(kind: str, name: str, workload: Workload) -> bool:
    """Whether the binding is asked about: by its own name, or by its template's."""
    binding = workload.binding
    if binding is None or workload.terminating:
        return False
    if kind in _OF_BINDINGS:
        return workload.name == name
    plural = binding.kind.lower().removesuffix("s")
    return (kind == plural and binding.name == name) or (kind == ANY and name in (binding.name, workload.name))


def _place_those_before(workload: Workload, fleet: Fleet, rules: Sequence[Rule]) -> None:
    from bayplan.placing import place_bindings

    keys = [one.key for one in fleet.pending]
    if workload.key in keys:
        for _ in place_bindings.place_all(fleet.pending[: keys.index(workload.key)], fleet.index, rules):
            pass


def _check_one(kind: str, name: str, fitting: Sequence[Workload], known: Sequence[Workload]) -> None:
    asked = name if kind == ANY else f"{kind}/{name}"
    if not fitting:
        names = {f"{w.binding.kind.lower()}/{w.binding.name}" for w in known if w.binding}
        near = difflib.get_close_matches(asked, names, n=3)
        advice = f", did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"no binding of {asked} is in the input or would be made from it{advice}")
    if len({w.namespace for w in fitting}) > 1:
        listed = ", ".join(sorted(w.namespace for w in fitting))
        raise InputError(f"{asked} is in several namespaces ({listed}): say which with -n")
    if len(fitting) > 1:
        listed = ", ".join(sorted(w.name for w in fitting))
        raise InputError(f"{asked} may be any of the bindings {listed}: give the kind too")
