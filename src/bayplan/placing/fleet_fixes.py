"""
The smallest changes that make a binding fit, each tried by scheduling it again before it is proposed.

A proposal is one change: of the placement, of a cluster's capacity, or of the replicas. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from bayplan import schedule_binding
from bayplan.assigning import estimating, group_failover
from bayplan.assigning.candidates import LabelsNotKnown
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.explaining.fixes import MAX_FIXES, Fix
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import AFFINITY_GROUP, ANTI_AFFINITY_GROUP, Binding
from bayplan.model.labels import HARD_EFFECTS, Toleration, tolerated
from bayplan.model.placements import DESIGN, OVERFLOW, PLAIN, ClusterAffinity, Placement
from bayplan.model.workloads import Workload
from bayplan.placing import placement_revisions, scaling
from bayplan.placing.placement_revisions import Revisions
from bayplan.rules import cluster_affinity

MAX_TRIED_CHANGES = 60
MAX_CLUSTERS_TRIED = 10
_Change = tuple[str, Workload, Revisions]


def find(workload: Workload, engine: FleetEngine) -> list[Fix]:
    """Changes after each of which the binding is placed; none if it is placed already, or if labels are not known."""
    with group_failover.without_workload(workload, engine.index):
        decision = schedule_binding.schedule(workload, engine)
        if decision.placed or workload.unplaceable or decision.reason == LabelsNotKnown.reason:
            return []
        found: list[Fix] = []
        for text, changed, revisions in islice(_changes(workload, engine.index), MAX_TRIED_CHANGES):
            after = schedule_binding.schedule(changed, engine)
            if after.placed and len(found) < MAX_FIXES:
                found.append(Fix(text, [name for name, _ in after.shares], revisions=revisions))
        if len(found) < MAX_FIXES:
            found += _with_other_replicas(workload, engine)
    return found[:MAX_FIXES]


def _changes(workload: Workload, index: PlacementIndex) -> Iterator[_Change]:
    """The workload with one change each, what the change is, and the same in manifests."""
    binding = workload.binding
    assert binding is not None
    yield from _without_terms(workload, binding)
    placement = binding.placement
    for text, changed, revisions in (
        *_tolerating(placement, index),
        *_with_other_spread(placement, index),
        *_with_more_clusters(placement, index),
        *_with_more_tiers(placement, index),
    ):
        changed_binding = msgspec.structs.replace(binding, placement=changed)
        yield text, msgspec.structs.replace(workload, binding=changed_binding), revisions


def _without_terms(workload: Workload, binding: Binding) -> Iterator[_Change]:
    affinity = workload.needs.affinity
    for role in ("required", "anti_required"):
        terms = getattr(affinity, role)
        for term in terms:
            others = tuple(one for one in terms if one is not term)
            needs = msgspec.structs.replace(
                workload.needs, affinity=msgspec.structs.replace(affinity, **{role: others})
            )
            changed = msgspec.structs.replace(workload, needs=needs)
            yield f"drop the term placement.{term.path}", changed, placement_revisions.without_term(term.path)
    for label, field, name in (
        (AFFINITY_GROUP, "affinity_group", "affinity"),
        (ANTI_AFFINITY_GROUP, "anti_affinity_group", "antiAffinity"),
    ):
        group = workload.labels.get(label)
        if group:
            labels = {key: value for key, value in workload.labels.items() if key != label}
            alone = msgspec.structs.replace(binding, **{field: ""})
            text = f"drop placement.workloadAffinity.{name}, which groups it by {group}"
            changed = msgspec.structs.replace(workload, labels=labels, binding=alone)
            yield text, changed, placement_revisions.without_group(name)


def _tolerating(placement: Placement, index: PlacementIndex) -> Iterator[tuple[str, Placement, Revisions]]:
    taints = {taint: None for slot in index.slots.by_name.values() for taint in index.slots.at(slot).taints}
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not tolerated(taint, placement.tolerations):
            toleration = Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)
            tolerations = (*placement.tolerations, toleration)
            text = f"tolerate {taint} in placement.clusterTolerations"
            changed = msgspec.structs.replace(placement, tolerations=tolerations)
            yield text, changed, placement_revisions.with_toleration(toleration)


def _with_other_spread(placement: Placement, index: PlacementIndex) -> Iterator[tuple[str, Placement, Revisions]]:
    """More or fewer groups, the nearest number first."""
    for place, one in enumerate(placement.spread):
        what = one.field or one.label
        more = range(one.max_groups + 1, len(index.slots) + 1) if one.max_groups else ()
        fewer = range(one.min_groups - 1, 0, -1)
        for field, verb, name, numbers in (
            ("max_groups", "raise", "maxGroups", more),
            ("min_groups", "lower", "minGroups", fewer),
        ):
            for number in islice(numbers, MAX_CLUSTERS_TRIED):
                spread = list(placement.spread)
                spread[place] = msgspec.structs.replace(one, **{field: number})
                changed = msgspec.structs.replace(placement, spread=tuple(spread))
                revisions = placement_revisions.with_spread(place, name, number)
                yield f"{verb} {name} of {what} to {number}", changed, revisions


def _with_more_clusters(placement: Placement, index: PlacementIndex) -> Iterator[tuple[str, Placement, Revisions]]:
    """Each cluster that a list of names lacks, added to the first list of a group."""
    for place, group in enumerate(placement.groups):
        first, listed = group.tiers[0], {name for tier in group.tiers for name in tier.names}
        for name in islice((one for one in sorted(index.slots.by_name) if one not in listed), MAX_CLUSTERS_TRIED):
            if not first.names:
                break
            tiers = (msgspec.structs.replace(first, names=(*first.names, name)), *group.tiers[1:])
            groups = list(placement.groups)
            groups[place] = msgspec.structs.replace(group, tiers=tiers)
            whose = f" of group {group.name}" if group.name else ""
            changed = msgspec.structs.replace(placement, groups=tuple(groups))
            yield f"add {name} to clusterNames{whose}", changed, placement_revisions.with_cluster(place, name)


def _with_more_tiers(placement: Placement, index: PlacementIndex) -> Iterator[tuple[str, Placement, Revisions]]:
    """Each cluster that a group selects in none of its tiers as a further one; lists of names get it in the list."""
    forms = {group.form for group in placement.groups}
    for place, group in enumerate(placement.groups):
        if (group.tiers[0].names and group.form == PLAIN) or (group.form == PLAIN and DESIGN in forms):
            continue
        tiers = cluster_affinity.tier_by_target(group.tiers, index)
        outside = [
            name for name, slot in sorted(index.slots.by_name.items()) if tiers[slot] == cluster_affinity.NO_TIER
        ]
        for name in outside[:MAX_CLUSTERS_TRIED]:
            groups = list(placement.groups)
            groups[place] = msgspec.structs.replace(
                group,
                name=group.name or (placement_revisions.PREFERRED_TIER if group.form == PLAIN else ""),
                tiers=(*group.tiers, ClusterAffinity(names=(name,))),
                form=OVERFLOW if group.form == PLAIN else group.form,
                first_only=group.form != DESIGN and not index.semantics.first_tier_alone,
            )
            whose = f" of group {group.name}" if group.name else ""
            changed = msgspec.structs.replace(placement, groups=tuple(groups))
            yield f"add {name} as a further tier{whose}", changed, placement_revisions.with_tier(place, name)


def _with_other_replicas(workload: Workload, engine: FleetEngine) -> Iterator[Fix]:
    """Fewer replicas, or room for those that are missing on one of the clusters."""
    binding, index = workload.binding, engine.index
    assert binding is not None
    most = scaling.most_replicas(workload, engine).replicas if binding.is_divisible else None
    if not most or most >= binding.replicas:
        return
    after = schedule_binding.schedule(scaling.with_replicas(workload, most), engine)
    yield Fix(
        f"lower the replicas from {binding.replicas} to {most}",
        [name for name, _ in after.shares],
        revisions=placement_revisions.with_replicas(binding.kind, most),
    )
    missing = binding.replicas - most
    requests = (binding.demand.requests if binding.demand else None) or ()
    for name, slot in islice(sorted(index.slots.by_name.items()), MAX_CLUSTERS_TRIED):
        target = index.slots.at(slot)
        if target.cluster is None or target.cluster.grades is not None:
            continue
        with index.tentatively():
            larger = estimating.with_load(target.cluster, [(requests, -missing)])
            index.update_target(msgspec.structs.replace(target, cluster=larger))
            decision = schedule_binding.schedule(workload, engine)
        if decision.placed:
            text = f"make room for {missing} more {'replica' if missing == 1 else 'replicas'} on {name}"
            yield Fix(text, [one for one, _ in decision.shares])
