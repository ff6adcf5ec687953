"""What the loss of each failure domain affects, as tables and as JSON. It does not know how losses are simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bayplan.auditing.survivability import Blast, GroupTolerance, LevelReport
from bayplan.auditing.survival import Aftermath, LevelSurvival, Survival
from bayplan.auditing.workload_groups import Workloads, by_namespace
from bayplan.auditing.workload_loss import Loss, StrandedPod, missing_text
from bayplan.explaining.shortages import Amounts
from bayplan.model import quantities
from bayplan.writing import tables
from bayplan.writing.tables import Table

_MAX_EVENTS_SHOWN = 10
_MAX_NAMES_SHOWN = 3


class LevelSummary(msgspec.Struct, frozen=True):
    """The numbers of one level; None where they are unknown."""

    level: str
    n_domains: int
    tolerance: int | None
    at_most: int | None
    by_design: int | None
    single_points: tuple[str, ...]
    weak_workloads: int | None
    n_workloads: int | None
    displaced: int | None
    stranded: int | None
    worst: str


def summaries(survival: Survival) -> list[LevelSummary]:
    """One summary per level, the smallest level first."""
    return [_summary(one) for one in survival.levels]


def _summary(one: LevelSurvival) -> LevelSummary:
    control, replicated = one.control_plane, _replicated(one.workloads)
    worst = max(one.losses.values(), key=lambda loss: (len(loss.stranded), loss.n_displaced), default=None)
    return LevelSummary(
        level=one.level,
        n_domains=len(one.events),
        tolerance=control.tolerance if control.tolerances else None,
        at_most=control.at_most if control.tolerances else None,
        by_design=one.by_design if control.tolerances else None,
        single_points=control.single_points,
        weak_workloads=None if replicated is None else sum(not tolerance.at_most for tolerance in replicated),
        n_workloads=None if replicated is None else len(replicated),
        displaced=None if worst is None else max(loss.n_displaced for loss in one.losses.values()),
        stranded=None if worst is None else len(worst.stranded),
        worst=worst.event.domain if worst is not None and worst.stranded else "",
    )


def _replicated(report: LevelReport | None) -> list[GroupTolerance] | None:
    """The groups with more than one replica; a single replica never survives a loss."""
    return None if report is None else [tolerance for tolerance in report.tolerances if tolerance.n > 1]


def levels_table(survival: Survival) -> Table:
    """One row per level: what the control plane tolerates, the workloads at risk, displaced pods that do not fit."""
    rows = []
    for one in summaries(survival):
        stranded = "-" if one.stranded is None else str(one.stranded) + (f" ({one.worst})" if one.worst else "")
        rows.append((
            one.level,
            str(one.n_domains),
            _tolerated(one) or "-",
            tables.listed(one.single_points, _MAX_NAMES_SHOWN) or "-",
            "-" if one.weak_workloads is None else f"{one.weak_workloads} of {one.n_workloads}",
            "-" if one.displaced is None else str(one.displaced),
            stranded,
        ))  # fmt: skip
    columns = ("LOSS OF A", "DOMAINS", "TOLERATED", "SINGLE POINTS", "GROUPS AT RISK", "DISPLACED", "UNSCHEDULABLE")
    return Table(columns, rows)


def _tolerated(one: LevelSummary) -> str:
    """`1`, `0 to 1` where labels are missing, and the value with all nodes ready if it differs; empty if unknown."""
    if one.tolerance is None:
        return ""
    span = str(one.tolerance) if one.tolerance == one.at_most else f"{one.tolerance} to {one.at_most}"
    return span if one.by_design == one.tolerance else f"{span}, {one.by_design} by design"


def events_table(survival: Survival) -> Table:
    """The worst losses: those that leave groups with too few replicas, or pods that do not fit."""
    distinct: dict[frozenset[str], Aftermath] = {}
    for one in survival.levels:
        for after in one.aftermaths()[:_MAX_EVENTS_SHOWN]:
            distinct.setdefault(after.event.nodes, after)  # several domains can have the same nodes
    found = sorted((after for after in distinct.values() if after.hurts), key=Aftermath.severity)
    return Table(
        ("LOST", "CONTROL PLANE", "WORKLOADS", "DISPLACED", "UNSCHEDULABLE", "MISSING"),
        [(f"{after.event.level} {after.event.domain}", *_cells(after)) for after in found[:_MAX_EVENTS_SHOWN]],
    )


def _cells(after: Aftermath) -> tuple[str, str, str, str, str]:
    loss = after.loss
    missing = next((text for one in loss.stranded if (text := missing_text(one))), "") if loss else ""
    if loss and loss.stranded and not missing:
        missing = loss.stranded[0].message
    return (
        _affected(after.control_plane),
        "-" if after.workloads is None else _affected(after.workloads),
        str(loss.n_displaced) if loss else "-",
        str(len(loss.stranded)) if loss else "-",
        missing or "-",
    )


def _affected(blast: Blast) -> str:
    parts = [(len(blast.down), "down"), (len(blast.below_need), "below need"), (len(blast.degraded), "degraded")]
    return ", ".join(f"{n} {word}" for n, word in parts if n) or "unaffected"


def sentence(one: LevelSummary) -> str:
    """The level in one sentence, for formats without tables."""
    parts = []
    if one.tolerance is not None:
        points = f" (single points {tables.listed(one.single_points, _MAX_NAMES_SHOWN)})" if one.single_points else ""
        parts.append(f"the control plane tolerates {_tolerated(one)}{points}")
    if one.weak_workloads is not None:
        parts.append(f"{one.weak_workloads} of {one.n_workloads} groups of replicas are at risk")
    if one.stranded is not None:
        parts.append(f"up to {one.displaced} pods are displaced, up to {one.stranded} of them do not fit")
    number = f"one of {one.n_domains}" if one.n_domains else "no domain known"
    return f"loss of a {one.level} ({number}): {'; '.join(parts) or 'no known effect'}"


def document(survival: Survival, workloads: Workloads | None) -> dict[str, Any]:
    """The survivability part of the `AuditReport`."""
    owner_of = {key: one.group.name for one in (workloads.owners if workloads else ()) for key in one.keys}
    return {
        "rescheduled": survival.rescheduled,
        "note": survival.note or None,
        "levels": [_level(one, owner_of) for one in survival.levels],
        "riskGroups": [
            {"group": group, "events": [{"level": event.level, "domain": event.domain} for event in events]}
            for group, events in survival.risks
        ],
    }


def _level(one: LevelSurvival, owner_of: Mapping[Any, str]) -> dict[str, Any]:
    control = one.control_plane
    return {
        "level": one.level,
        "named": one.named,
        "domains": len(one.events),
        "controlPlane": {
            "tolerance": control.tolerance if control.tolerances else None,
            "atMost": control.at_most if control.tolerances else None,
            "byDesign": one.by_design if control.tolerances else None,
            "singlePoints": list(control.single_points),
            "vector": list(control.vector),
            "groups": [_group_tolerance(tolerance) for tolerance in control.tolerances],
        },
        "workloads": None if one.workloads is None else _workloads(one.workloads),
        "events": [_event(after, owner_of) for after in one.aftermaths()],
    }


def _group_tolerance(tolerance: GroupTolerance) -> dict[str, Any]:
    return {
        "name": tolerance.group,
        "members": tolerance.n,
        "need": tolerance.need,
        "tolerance": tolerance.tolerance,
        "atMost": tolerance.at_most,
        "singlePoints": list(tolerance.single_points),
        "unknown": list(tolerance.unknown),
    }


def _workloads(report: LevelReport) -> dict[str, Any]:
    """The groups that one loss may leave with too few replicas, by namespace."""
    replicated = _replicated(report) or []
    weak = {tolerance.group: tolerance for tolerance in replicated if not tolerance.tolerance}
    return {
        "groups": len(replicated),
        "weak": {
            namespace: [_group_tolerance(weak[name]) for name in names]
            for namespace, names in by_namespace(weak).items()
        },
    }


def _event(after: Aftermath, owner_of: Mapping[Any, str]) -> dict[str, Any]:
    return {
        "domain": after.event.domain,
        "nodes": sorted(after.event.nodes),
        "controlPlane": _blast(after.control_plane),
        "workloads": None if after.workloads is None else _blast(after.workloads),
        "rescheduling": None if after.loss is None else _loss(after.loss, owner_of),
    }


def _blast(blast: Blast) -> dict[str, Any]:
    return {
        "down": list(blast.down),
        "belowNeed": list(blast.below_need),
        "degraded": len(blast.degraded),
        "untouched": blast.untouched,
    }


def _loss(loss: Loss, owner_of: Mapping[Any, str]) -> dict[str, Any]:
    return {
        "displaced": loss.n_displaced,
        "placed": len(loss.placed),
        "lostWithNode": len(loss.gone),
        "stranded": _stranded(loss.stranded, owner_of),
        "shortage": _amounts(loss.shortage),
        "broken": list(loss.broken),
        "stillBroken": list(loss.still_broken),
    }


def _stranded(stranded: Iterable[StrandedPod], owner_of: Mapping[Any, str]) -> list[dict[str, Any]]:
    """One entry for the replicas of a workload that do not fit for the same reason."""
    alike: dict[tuple[str, str, str, Amounts], list[StrandedPod]] = {}
    for one in stranded:
        owner = owner_of.get(one.key, f"Pod {one.key}")
        alike.setdefault((owner, one.message, one.nearest, one.missing), []).append(one)
    return [
        {
            "workload": owner,
            "pods": [one.key for one in ones],
            "message": message,
            "nearest": nearest or None,
            "missing": _amounts(missing),
            "fixes": [fix.change for one in ones for fix in one.fixes],
        }
        for (owner, message, nearest, missing), ones in alike.items()
    ]


def _amounts(amounts: Amounts) -> dict[str, str]:
    return {resource: quantities.show(resource, amount) for resource, amount in amounts}
