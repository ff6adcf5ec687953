"""
Quotas that count objects, such as `count/deployments.apps`: where they leave too few for what a change creates.

Which of the objects an API server would refuse depends on their order, so only the namespaces are named. What quotas
count of pods and claims is charged in `resource_quotas`.
"""

from __future__ import annotations

from collections import Counter

from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.model import quantities
from bayplan.wire import kinds
from bayplan.wire.admission import ResourceQuota
from bayplan.wire.kinds import ApiKind

_MADE_BY = {"Deployment": "ReplicaSet", "CronJob": "Job"}  # their pods belong to an object that is created too
_NAMED_ALONE = ("replicationcontrollers", "resourcequotas", "services")  # pods and claims are not counted here
TOO_FEW = "quota {} leaves too few {} for the change: requested: {}, used: {}, limited: {}"


def exhausted(state: DesiredState) -> dict[str, str]:
    """By namespace, what may keep the change from creating its objects."""
    if state.change is None or not any(quota.spec.hard for quota in state.resource_quotas):
        return {}
    read = [row for row in kinds.KINDS.values() if row.wire_type is not None and not row.is_karmada]
    rows = {name: row for row in read for name in _resources(row)}
    needed = _needed(state)
    found: dict[str, str] = {}
    for quota in state.resource_quotas:
        namespace, hard = quota.metadata.namespace, quota.spec.hard or {}
        for name in sorted(hard.keys() & rows.keys()):
            n_more = needed[namespace, rows[name].kind]
            used = _used(quota, name, rows[name], state) if n_more else 0
            if n_more and used + n_more > quantities.units(hard[name]):
                found[namespace] = TOO_FEW.format(quota.metadata.name, name, n_more, used, hard[name])
    return found


def _needed(state: DesiredState) -> Counter[tuple[str, str]]:
    """How many objects are created, by namespace and kind."""
    found: Counter[tuple[str, str]] = Counter()
    for key in state.change or ():
        made = _MADE_BY.get(key.kind)
        created = [key.kind] if key not in state.replaced else []
        if made and (created or key in state.rolled_out or key.kind == "CronJob"):
            created.append(made)
        found.update((key.namespace, kind) for kind in created)
    return found


def _used(quota: ResourceQuota, name: str, row: ApiKind, state: DesiredState) -> int:
    reported = (quota.status.used or {}).get(name)
    if reported is not None:
        return quantities.units(reported)
    metas = (one.metadata for one in state.list_of(row))
    listed = [ObjectKey(row.kind, meta.namespace, meta.name) for meta in metas]
    return sum(key.namespace == quota.metadata.namespace and not state.is_created(key) for key in listed)


def _resources(row: ApiKind) -> tuple[str, ...]:
    """The names that quotas have for a kind: those of the core group also have one without `count/`."""
    if row.group:
        return (f"count/{row.plural}.{row.group}",)
    return (f"count/{row.plural}", *((row.plural,) if row.plural in _NAMED_ALONE else ()))
