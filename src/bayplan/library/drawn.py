"""The pictures of reports: what each answer draws of the state that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bayplan.writing import tables
from bayplan.writing.drawings import DrawnItem, DrawnTarget, Picture, domains_of

if TYPE_CHECKING:
    from bayplan.auditing.audit import Audit
    from bayplan.enforcing.preview import EnforcementPreview
    from bayplan.enforcing.rebalancing import Rebalancing
    from bayplan.explaining.explanation import Explanation, TargetVerdict
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.targets import Target
    from bayplan.model.workloads import Workload, WorkloadKey
    from bayplan.placing.place_bindings import BindingPlacement, Shares
    from bayplan.placing.place_pods import PodPlacement

_APP_KEYS = ("app.kubernetes.io/name", "app", "k8s-app")
_MAX_PEERS = 50  # of a violation


def _group(workload: Workload) -> str:
    """What a workload is part of: its app, else its controller."""
    binding = workload.binding
    if binding is not None:
        return f"{binding.kind}/{binding.name}"
    named = next((workload.labels[key] for key in _APP_KEYS if key in workload.labels), "")
    return named or ("" if workload.controller is None else workload.controller.name)


def domains(targets: Sequence[Target]) -> list[tuple[str, ...]]:
    """The domains of each target: region and zone of nodes, provider and region of clusters."""
    if not any(one.cluster is not None for one in targets):
        return domains_of([one.labels for one in targets])
    facts = [one.cluster for one in targets]
    used = [name for name in ("provider", "region") if any(getattr(one, name, "") for one in facts)]
    return [tuple(getattr(one, name, "") or f"no {name}" for name in used) for one in facts]


def _sorted_targets(index: PlacementIndex, names: Iterable[str] | None = None) -> list[Target]:
    known = index.slots.by_name
    wanted = known if names is None else set(names) & known.keys()
    return [index.slots.at(known[name]) for name in sorted(wanted)]


def of_placement(index: PlacementIndex, placements: Sequence[PodPlacement]) -> Picture:
    """Every node with its pods in the end, and what is pending."""
    placed = {one.workload.key for one in placements if one.target}
    items: dict[str, list[DrawnItem]] = {}
    for key, record in index.records.items():
        one = DrawnItem(key, _group(record.workload), "moved" if key in placed else "")
        items.setdefault(record.shares[0][0], []).append(one)
    waiting = [
        DrawnItem(one.workload.key, _group(one.workload)) for one in placements if not one.target and not one.lost
    ]
    targets = _sorted_targets(index)
    return Picture(
        "The nodes with their pods once everything is placed",
        tuple(
            DrawnTarget(one.name, path, "", "cordoned" if one.unschedulable else "", tuple(items.get(one.name, ())))
            for one, path in zip(targets, domains(targets), strict=True)
        ),
        tuple(waiting),
        marks=(("moved", "placed by this plan"),) if placed else (),
    )


def of_fleet_placement(
    targets: Sequence[Target], shares: Mapping[WorkloadKey, Shares], placements: Sequence[BindingPlacement]
) -> Picture:
    """Every cluster with the bindings on it and their replicas in the end, and what is pending."""
    placed = {one.workload.key: one.workload for one in placements if one.placed}
    items: dict[str, list[DrawnItem]] = {}
    for key, clusters in shares.items():
        group = _group(placed[key]) if key in placed else ""
        for name, replicas in clusters:
            counted = f"{key}: {tables.counted(replicas, 'replica')}" if replicas else key
            items.setdefault(name, []).append(DrawnItem(counted, group, "moved" if key in placed else ""))
    waiting = tuple(DrawnItem(one.workload.key, _group(one.workload)) for one in placements if not one.placed)
    return Picture(
        "The clusters with their workloads once everything is placed",
        _with_items(targets, items),
        waiting,
        noun="cluster",
        marks=(("moved", "placed by this plan"),) if placed else (),
    )


def of_explanation(found: Explanation, targets: Sequence[Target]) -> Picture:
    """Every target with its verdict."""
    verdicts = {one.name: one for one in found.targets}
    known = [one for one in targets if one.name in verdicts]
    return Picture(
        f"The verdict on every {found.noun}",
        tuple(
            DrawnTarget(one.name, path, _mark(verdicts[one.name]), _note(verdicts[one.name]))
            for one, path in zip(known, domains(known), strict=True)
        ),
        noun=found.noun,
        marks=(("chosen", "chosen"), ("", "fits"), ("rejected", "rejected, with the rules that do")),
    )


def _mark(verdict: TargetVerdict) -> str:
    return "chosen" if verdict.chosen else "" if verdict.fits else "rejected"


def _note(verdict: TargetVerdict) -> str:
    if not verdict.fits:
        return ", ".join(dict.fromkeys(one.rule for one in verdict.failures))
    return f"{verdict.share} replicas" if verdict.share else f"score {verdict.score}"


def of_violations(preview: EnforcementPreview, index: PlacementIndex) -> Picture:
    """The targets with workloads of violations: owners in red, and the peers that they name."""
    concerned: dict[str, str] = {}
    for verdict in preview.verdicts:
        for peer in verdict.violation.peers[:_MAX_PEERS]:
            concerned.setdefault(peer, "")
        concerned[verdict.violation.owner] = "violated"
    items: dict[str, list[DrawnItem]] = {}
    for key, mark in concerned.items():
        record = index.records.get(key)  # type: ignore[call-overload]
        for name, _ in () if record is None else record.shares:
            items.setdefault(name, []).append(DrawnItem(key, _group(record.workload), mark))
    targets = _sorted_targets(index, items)
    noun = "cluster" if preview.of_fleet else "node"
    return Picture(
        f"The {noun}s with workloads of violations",
        _with_items(targets, items),
        noun=noun,
        marks=(("violated", "its rule is violated"),) if items else (),
    )


def of_moves(plan: Rebalancing, index: PlacementIndex) -> Picture:
    """The targets that workloads leave and those that they go to, with an arrow for each move."""
    items: dict[str, list[DrawnItem]] = {}
    arrows = []
    for move in plan.moves:
        group = _group(index.records[move.workload].workload)
        before, after = dict(move.before), dict(move.after)
        for name in before.keys() - after.keys():
            items.setdefault(name, []).append(DrawnItem(move.workload, group, "left"))
        for name in after.keys() - before.keys():
            items.setdefault(name, []).append(DrawnItem(move.workload, group, "moved"))
        pairs = zip(sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys()), strict=False)
        arrows += [(start, end, move.workload) for start, end in pairs]
    targets = _sorted_targets(index, items)
    marks = (("left", "leaves"), ("moved", "comes")) if items else ()
    return Picture("The moves", _with_items(targets, items), arrows=tuple(arrows), marks=marks)


def _with_items(targets: Sequence[Target], items: Mapping[str, Sequence[DrawnItem]]) -> tuple[DrawnTarget, ...]:
    paths = domains(targets)
    return tuple(
        DrawnTarget(one.name, path, items=tuple(items.get(one.name, ())))
        for one, path in zip(targets, paths, strict=True)
    )


def of_audit(audit: Audit) -> Picture:
    """The nodes of an audit in the domains that they have, the machine innermost, with their components."""
    from bayplan.auditing.audit import FAILED, UNDECIDED, WARN

    layout = audit.layout
    open_results = [one for one in audit.results if one.verdict in (FAILED, WARN, UNDECIDED) and not one.accepted]
    concerned = {node for one in open_results for node in one.nodes}
    levels = [one for one in reversed(layout.levels) if any(node.domains.get(one) for node in layout.nodes)]
    targets = []
    for node in sorted(layout.nodes, key=lambda one: one.name):
        path = tuple(f"{level} {node.domains.get(level) or 'unknown'}" for level in levels)
        role = ", ".join(node.roles) or "worker"
        items = tuple(DrawnItem(f"{one} on {node.name}", one) for one in node.components or ())
        targets.append(DrawnTarget(node.name, path, "rejected" if node.name in concerned else "", role, items))
    marks = (("rejected", "concerned by a check that did not pass"),) if concerned else ()
    return Picture("The layout of machines, zones and regions", tuple(targets), marks=marks)
