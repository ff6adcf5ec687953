"""Rules of pods that have no effect in a cluster: what is known of it, and the findings for each template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from bayplan.controllers.desired_state import ObjectKey
from bayplan.errors import Fault
from bayplan.model.terms import PeerTerm
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing.place_cluster import ClusterToPlace
from bayplan.rules.peer_constraints import classes_matching
from bayplan.validating import ineffective_rules
from bayplan.validating.ineffective_rules import KnownObjects

NOTHING_MADE: Mapping[WorkloadKey, ObjectKey] = {}


def findings(
    workloads: Iterable[Workload], cluster: ClusterToPlace, made_for: Mapping[WorkloadKey, ObjectKey] = NOTHING_MADE
) -> list[Fault]:
    """
    The findings for these workloads, once for the pods of one controller that have equal rules.

    `made_for` leads from pods that do not exist yet to the objects that they are created for, which are named then.
    """
    concerned = list(workloads)
    known, semantics = known_objects(cluster, concerned), cluster.index.semantics
    templates = {
        (one.needs.affinity, one.needs.spread, one.namespace, one.controller or one.key): one for one in concerned
    }
    found: dict[Fault, None] = {}
    for one in templates.values():
        maker, owner = made_for.get(one.key), one.controller
        subject = f"Pod {one.key}" if owner is None else f"{owner.kind} {one.namespace}/{owner.name}"
        subject = subject if maker is None else f"{maker.kind} {maker.namespace}/{maker.name}"
        for text in (
            *ineffective_rules.of_terms(one.needs.affinity, one.namespace, semantics, known),
            *ineffective_rules.of_constraints(one.needs.spread.constraints, known),
        ):
            path, _, message = text.partition(": ")
            found[Fault(message, subject=subject, path=path)] = None
    return list(found)


def known_objects(cluster: ClusterToPlace, concerned: Iterable[Workload] = ()) -> KnownObjects:
    """
    What the cluster has; the pods that wait for a node count as those that have one.

    So do the `concerned` ones: victims of preemption have lost theirs, and new pods of a rollout may have got none.
    """
    index = cluster.index
    keys = Counter(key for slot in index.slots.by_name.values() for key in index.slots.at(slot).labels)
    waiting = {(one.namespace, tuple(sorted(one.labels.items()))): one for one in (*cluster.pending, *concerned)}
    known: dict[PeerTerm, bool] = {}

    def selects(term: PeerTerm) -> bool:
        if term not in known:
            matches = index.peer_index.matches
            known[term] = any(matches(term, one.labels, one.namespace) for one in waiting.values()) or _placed(term)
        return known[term]

    def _placed(term: PeerTerm) -> bool:
        entry = index.peer_index.hold(term)
        found = any(one.n_members for one in classes_matching(term, index))
        index.peer_index.release(entry)
        return found

    return KnownObjects(len(index.slots.by_name), keys, cluster.has_namespaces, selects)
