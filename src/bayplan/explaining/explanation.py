"""Why a workload is placed where it is: every target, every rule that rejects it, and what would make it fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bayplan import schedule_binding, schedule_pod
from bayplan.assigning import group_failover
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.engine import Engine
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import fit_error
from bayplan.explaining import group_wait as group_waits
from bayplan.explaining.fixes import ANY_EVICTION, EvictionPolicy, Fix, find_fixes
from bayplan.explaining.group_wait import GroupWait
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.rule import Failure
from bayplan.rules.workload_terms import LABELS_UNKNOWN
from bayplan.schedule_binding import FleetDecision

NODE, CLUSTER = "node", "cluster"
NOT_CREATED = "No fix is searched for: the API server does not create the pod as it is."
GATED = "Nothing else keeps it from these nodes: it is scheduled once its scheduling gates are removed."


class TargetVerdict(msgspec.Struct, frozen=True):
    """
    The verdict of all rules on one target.

    Only a cluster has a tier, available replicas, and a share: the replicas that it gets, None if it is not chosen.
    """

    name: str
    fits: bool
    chosen: bool = False
    score: int = 0
    scores: dict[str, int] = {}
    failures: list[Failure] = []
    tier: int | None = None
    available: int | None = None
    share: int | None = None


_NO_REPLICAS = "no cluster, as it has 0 replicas"


class Explanation(msgspec.Struct, frozen=True):
    """
    `target` is where the workload is placed; if it fits nowhere, it is empty and `message` is the scheduler's message.

    For a binding `target` lists the clusters. `group` is the affinity group that the verdicts are for; `failed` are the
    groups tried before it, or all of them if none succeeded, each with its message. `not_tried` are the groups before
    the one observed last, with which scheduling continues. `victims` are the pods that it would preempt on `nominated`,
    where it would run then. `searched`: fixes were searched for, so that without any none was found. `group_wait` says
    why the group of a pod waits; then the verdicts and fixes are for the member that it names, beside the others.
    `advice` is a sentence in place of fixes.
    """

    workload: WorkloadKey
    target: str
    message: str
    targets: list[TargetVerdict]
    fixes: list[Fix]
    group: str = ""
    failed: list[tuple[str, str]] = []
    noun: str = NODE
    nominated: str = ""
    victims: tuple[WorkloadKey, ...] = ()
    not_tried: tuple[str, ...] = ()
    searched: bool = False
    group_wait: GroupWait | None = None
    advice: str = ""

    @property
    def revised_workload(self) -> WorkloadKey:
        """The workload that the fixes are for."""
        failing = None if self.group_wait is None else self.group_wait.failing
        return self.workload if failing is None else failing.key


def explain(
    workload: Workload, engine: Engine, *, with_fixes: bool = True, policy: EvictionPolicy = ANY_EVICTION
) -> Explanation:
    """
    The decision for one workload with all its reasons. `policy` says which pods a fix may move.

    A workload that is placed already is explained as if it were not placed, so it does not conflict with itself.
    """
    index = engine.index
    with index.without(workload.key):
        decision = schedule_pod.schedule(workload, engine)
        targets = [
            _node_verdict(decision, workload, name, slot, index) for name, slot in sorted(index.slots.by_name.items())
        ]
        message = "" if decision.placed else fit_error.sentence(decision.verdicts, index)
        target = index.slots.at(decision.slot).name if decision.placed else ""
        searched = with_fixes and not decision.placed and bool(targets)
        found = find_fixes(workload, engine, policy) if searched else []
    return Explanation(workload.key, target, message, targets, found, searched=searched)


def explain_member(
    key: WorkloadKey, wait: GroupWait, engine: Engine, *, policy: EvictionPolicy = ANY_EVICTION
) -> Explanation:
    """Why a pod waits with its group: what keeps the first member that does not fit beside the others from fitting."""
    message = group_waits.sentence(wait)
    if wait.failing is None:
        return Explanation(key, "", message, [], [], group_wait=wait)
    with engine.index.tentatively():
        for pod, node in wait.beside:
            schedule_pod.assume(engine.index, pod, engine.index.slots.by_name[node])
        found = explain(wait.failing, engine, policy=policy)
    return msgspec.structs.replace(found, workload=key, target="", message=message, group_wait=wait)


def as_seen(
    explanation: Explanation, reader: str, names: PeerNames, is_pod: Callable[[WorkloadKey], bool]
) -> Explanation:
    """The explanation with workloads of other namespaces named as a reader in this namespace sees them."""

    def text(written: str) -> str:
        return names.in_text(written, reader, is_pod)

    def failure(one: Failure) -> Failure:
        peers = tuple(dict.fromkeys(names.name(peer, reader) for peer in one.peers))
        return msgspec.structs.replace(one, reason=text(one.reason), detail=text(one.detail), peers=peers)

    targets = [
        msgspec.structs.replace(verdict, failures=[failure(one) for one in verdict.failures])
        for verdict in explanation.targets
    ]
    fixes = [
        Fix(
            text(fix.change),
            fix.fits_on,
            tuple((WorkloadKey(names.name(key, reader)), node) for key, node in fix.moved),
        )
        for fix in explanation.fixes
    ]
    unique = [fix for position, fix in enumerate(fixes) if fix not in fixes[:position]]
    failed = [(group, text(message)) for group, message in explanation.failed]
    return msgspec.structs.replace(
        explanation, message=text(explanation.message), targets=targets, fixes=unique, failed=failed
    )


def explain_binding(workload: Workload, engine: FleetEngine) -> Explanation:
    """The decision for a binding with all its reasons; one that is placed is explained as if it were not."""
    binding, index = workload.binding, engine.index
    assert binding is not None
    with group_failover.without_workload(workload, index):
        decision = schedule_binding.schedule(workload, engine)
        names = [group.name for group in binding.placement.groups]
        start = names.index(binding.observed) if binding.observed in names else 0
        failed = list(zip(names[start:], decision.errors, strict=False))
        # The verdicts are for the group that succeeded, else for the first that was tried.
        explained = names.index(decision.observed) if decision.placed and decision.observed in names else start
        group = binding.placement.groups[explained] if names else binding.group
        trying = msgspec.structs.replace(workload, binding=msgspec.structs.replace(binding, group=group))
        verdicts = _cluster_verdicts(decision, trying, engine)
    message = "" if decision.placed else "; ".join(decision.errors)
    not_tried = tuple(names[:start])
    clusters = listed_clusters(decision.shares)
    if decision.placed and not clusters:
        clusters = _NO_REPLICAS
    return Explanation(workload.key, clusters, message, verdicts, [], group.name, failed, CLUSTER, not_tried=not_tried)


def listed_clusters(shares: Sequence[tuple[str, int]]) -> str:
    """Clusters with their replicas, or the node of a pod."""
    return ", ".join(f"{name}:{replicas}" if replicas else name for name, replicas in shares)


def _cluster_verdicts(decision: FleetDecision, workload: Workload, engine: FleetEngine) -> list[TargetVerdict]:
    failures = cluster_failures(decision, workload, engine)
    ranked = {candidate.name: candidate for candidate in decision.ranked}
    for slot in () if decision.in_doubt is None else np.flatnonzero(decision.in_doubt):
        doubtful = engine.index.slots.at(int(slot)).name
        ranked.pop(doubtful, None)
        failures[doubtful] = [Failure(LABELS_UNKNOWN.id, decision.errors[-1])]  # what peers reject is not certain
    shares = dict(decision.shares)
    found = []
    for name in sorted(failures):
        candidate = ranked.get(name)
        if candidate is None:
            found.append(TargetVerdict(name, False, failures=failures[name]))
            continue
        found.append(
            TargetVerdict(
                name,
                True,
                name in shares,
                candidate.score,
                tier=candidate.tier,
                available=candidate.available,
                share=shares.get(name),
            )
        )
    return found


def cluster_failures(decision: FleetDecision, workload: Workload, engine: FleetEngine) -> dict[str, list[Failure]]:
    """Every failure of each cluster by name, as for the decision; empty if no affinity group was tried."""
    if decision.verdicts is None:
        return {}
    index = engine.index
    with group_failover.with_leaving_peers(workload, index):
        # Marking peers as leaving again may give them other counters than those that the verdicts were read from.
        results = tuple(
            msgspec.structs.replace(one, evaluation=engine.evaluations.get(one.rule, one.evaluation.part))
            for one in decision.verdicts.results
        )
        verdicts = msgspec.structs.replace(decision.verdicts, results=results)
        return {name: failures_at(verdicts, workload, slot, index) for name, slot in index.slots.by_name.items()}


def _node_verdict(
    decision: schedule_pod.Decision, workload: Workload, name: str, slot: int, index: PlacementIndex
) -> TargetVerdict:
    verdicts, ranking = decision.verdicts, decision.ranking
    if verdicts.feasible[slot] and ranking is not None:
        scores = {rule: int(weighted[slot]) for rule, weighted in ranking.by_rule.items()}
        return TargetVerdict(name, True, slot == decision.slot, int(ranking.totals[slot]), scores)
    return TargetVerdict(name, False, failures=failures_at(verdicts, workload, slot, index))


def failures_at(verdicts: Verdicts, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
    """Every failure of a target: all rules that reject it, not only the first."""
    found = []
    if verdicts.pre_filter_rejection is not None:
        rule, reason = verdicts.pre_filter_rejection
        found.append(
            Failure(
                rule.id if rule is not None else reason.id, reason.text, detail="rejected before any node was evaluated"
            )
        )
    for one in verdicts.results:
        rejected = one.rejected()
        if rejected is not None and rejected[slot]:
            found.extend(one.evidence(workload, slot, index))
    if not found and verdicts.excluded is not None and verdicts.excluded[slot]:
        found.append(Failure(verdicts.excluded_by[0].id, verdicts.exclusion, detail="pinned to others"))
    return found
