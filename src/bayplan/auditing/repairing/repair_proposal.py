"""
The repair of an audit: moves of control-plane nodes, judged by the same audit, and stanzas for workloads.

A proposal only; nothing is carried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from bayplan.auditing import audit as auditing
from bayplan.auditing import stanzas
from bayplan.auditing.audit import LOSS_SAFE, NO_STAGE, Audit
from bayplan.auditing.layout import HOST, STAGES, ZONE, Layout
from bayplan.auditing.repairing import plan_search, plans
from bayplan.auditing.repairing.plans import HALF, LOSS, RepairPlan, SpreadDemand
from bayplan.auditing.stanzas import Stanza
from bayplan.auditing.survivability import NODE
from bayplan.auditing.survival import Rescheduling, Survival
from bayplan.auditing.workload_groups import ReplicaGroup, Workloads

MAX_STANZAS = 50
_HOSTNAME = "kubernetes.io/hostname"


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """
    A plan for the control plane with the audit of the layout it leads to, and stanzas for workloads.

    `stanzas_left` is how many more workloads need one. `unlabelled` are workloads that cannot be spread, because the
    nodes have no label with their domain.
    """

    plan: RepairPlan
    after: Audit
    stanzas: tuple[Stanza, ...] = ()
    stanzas_left: int = 0
    unlabelled: tuple[str, ...] = ()


def propose_repair(
    found: Audit,
    *,
    required_stages: Sequence[tuple[str, str]] = (),
    workloads: Workloads | None = None,
    rescheduling: Rescheduling | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> Repair:
    """The changes with which the required checks pass, and stanzas that spread weak workloads."""
    layout = found.layout
    asked = plans.demands_of(one.id for one in found.results if one.required)
    asked = list(dict.fromkeys([*asked, *_demands_of_stages(required_stages)]))
    keep = frozenset(node.name for node in layout.by_name().values() if node.holds)
    plan = plan_search.plan_repair(layout, asked, keep=keep)
    after = auditing.run_audit(
        plans.layout_after(layout, plan),
        found.profile,
        required_stages=required_stages,
        workloads=workloads,
        survival=found.survival,  # workloads are not affected: the plan moves none of them
    )
    if rescheduling is None or workloads is None or found.survival is None:
        return Repair(plan=plan, after=after)
    unspread = list(_unspread_workloads(layout, found.survival, workloads))
    found_stanzas, unlabelled = [], []
    for done, (one, key) in enumerate(unspread[:MAX_STANZAS]):
        stanza = stanzas.find_stanza(one, key, rescheduling.engine, rescheduling.spread_context) if key else None
        if stanza is not None:
            found_stanzas.append(stanza)
        elif not key:
            unlabelled.append(one.group.name)
        if on_step is not None:
            on_step(done + 1, min(len(unspread), MAX_STANZAS))
    return Repair(
        plan=plan,
        after=after,
        stanzas=tuple(found_stanzas),
        stanzas_left=max(0, len(unspread) - MAX_STANZAS),
        unlabelled=tuple(unlabelled),
    )


def _demands_of_stages(required: Sequence[tuple[str, str]]) -> Iterator[SpreadDemand]:
    for sense, stage in required:
        if stage != NO_STAGE:
            yield SpreadDemand(STAGES[stage], LOSS if sense == LOSS_SAFE else HALF)


def _unspread_workloads(layout: Layout, survival: Survival, workloads: Workloads) -> Iterator[tuple[ReplicaGroup, str]]:
    """
    The workloads of several replicas that one failure may take, each with the label to spread it by.

    The largest level with several domains is used: a workload that is spread over zones is spread over machines too.
    """
    levels = [level for level in (ZONE, HOST, NODE) if (at := survival.at(level)) is not None and len(at.events) > 1]
    weak: dict[str, str] = {}
    for level in levels:
        at = survival.at(level)
        for found in at.workloads.tolerances if at is not None and at.workloads is not None else ():
            if not found.at_most:
                weak.setdefault(found.group, level)
    for one in workloads.owners:
        if len(one.group.members) > max(1, one.group.need) and one.group.name in weak:
            yield one, _key(layout, weak[one.group.name])


def _key(layout: Layout, level: str) -> str:
    """The label key of the level that all workers use; empty if they have none in common."""
    if level == NODE:
        return _HOSTNAME
    nodes = layout.workers or layout.nodes
    key, n = Counter(node.keys.get(level, "") for node in nodes).most_common(1)[0]
    return key if n == len(nodes) else ""
