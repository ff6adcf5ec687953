"""Why a workload goes where it goes: every target, every rule against it, and what would help."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan import schedule_binding, schedule_pod
from bayplan.assigning import group_failover
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import fit_error
from bayplan.explaining.fixes import Fix, find_fixes
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.rule import Failure, Rule
from bayplan.schedule_binding import FleetDecision

NODE, CLUSTER = "node", "cluster"


class TargetVerdict(msgspec.Struct, frozen=True):
    """
    What all rules say of one target.

    Only a cluster has a tier, room for so many replicas, and a share: the replicas it gets, None if it is not chosen.
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


class Explanation(msgspec.Struct, frozen=True):
    """
    `target` is where the workload goes, empty if nowhere; `message` is then the scheduler's sentence.

    A binding goes to several clusters, which `target` lists. `group` is the cluster group that the verdicts are of;
    `failed` are the groups before it that had no place, or all of them, each with its sentence.
    """

    workload: WorkloadKey
    target: str
    message: str
    targets: list[TargetVerdict]
    fixes: list[Fix]
    group: str = ""
    failed: list[tuple[str, str]] = []
    noun: str = NODE


def explain(
    workload: Workload, index: PlacementIndex, rules: Sequence[Rule], *, with_fixes: bool = True
) -> Explanation:
    """
    The decision for one workload with all its reasons.

    A workload that is placed already is explained as if it were to be placed anew, not standing in its own way.
    """
    with index.without(workload.key):
        decision = schedule_pod.schedule(workload, index, rules)
        targets = [
            _verdict(decision, workload, name, slot, index) for name, slot in sorted(index.slots.by_name.items())
        ]
        message = "" if decision.placed else fit_error.sentence(decision.verdicts, index)
        target = index.slots.at(decision.slot).name if decision.placed else ""
        found = find_fixes(workload, index, rules) if with_fixes and not decision.placed else []
    return Explanation(workload.key, target, message, targets, found)


def explain_binding(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> Explanation:
    """The decision for a binding with all its reasons; one that is placed is explained as if it came anew."""
    binding = workload.binding
    assert binding is not None
    with group_failover.without_workload(workload, index):
        decision = schedule_binding.schedule(workload, index, rules)
        names = [group.name for group in binding.placement.groups]
        start = names.index(binding.observed) if binding.observed in names else 0
        failed = list(zip(names[start:], decision.errors, strict=False))
        # The verdicts are of the group that had room, else of the first that was tried.
        judged = names.index(decision.observed) if decision.placed and decision.observed in names else start
        group = binding.placement.groups[judged] if names else binding.group
        trying = msgspec.structs.replace(workload, binding=msgspec.structs.replace(binding, group=group))
        verdicts = _cluster_verdicts(decision, trying, index)
    where = ", ".join(f"{name}:{replicas}" if replicas else name for name, replicas in decision.shares)
    message = "" if decision.placed else "; ".join(decision.errors)
    return Explanation(workload.key, where, message, verdicts, [], group.name, failed, CLUSTER)


def _cluster_verdicts(decision: FleetDecision, workload: Workload, index: PlacementIndex) -> list[TargetVerdict]:
    failures = cluster_failures(decision, workload, index)
    ranked = {candidate.name: candidate for candidate in decision.ranked}
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


def cluster_failures(decision: FleetDecision, workload: Workload, index: PlacementIndex) -> dict[str, list[Failure]]:
    """Everything against each cluster by name, as the workload was judged; nothing at all if no group was tried."""
    if decision.verdicts is None:
        return {}
    with group_failover.with_leaving_peers(workload, index):
        # Setting peers aside again may give them other counters than those that the verdicts were read from.
        judged = tuple(
            msgspec.structs.replace(one, evaluation=index.evaluations.get(one.rule, one.evaluation.key[1], index))
            for one in decision.verdicts.results
        )
        verdicts = msgspec.structs.replace(decision.verdicts, results=judged)
        return {name: failures_at(verdicts, workload, slot, index) for name, slot in index.slots.by_name.items()}


def _verdict(
    decision: schedule_pod.Decision, workload: Workload, name: str, slot: int, index: PlacementIndex
) -> TargetVerdict:
    verdicts, ranking = decision.verdicts, decision.ranking
    if verdicts.feasible[slot] and ranking is not None:
        scores = {rule: int(weighted[slot]) for rule, weighted in ranking.by_rule.items()}
        return TargetVerdict(name, True, slot == decision.slot, int(ranking.totals[slot]), scores)
    return TargetVerdict(name, False, failures=failures_at(verdicts, workload, slot, index))


def failures_at(verdicts: Verdicts, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
    """Everything against a target: all rules that fail there, not only the first."""
    found = []
    if verdicts.refusal is not None:
        rule, reason = verdicts.refusal
        found.append(Failure(rule.id, reason.text, detail="refused before any node was looked at"))
    for one in verdicts.results:
        refused = one.rejected()
        if refused is not None and refused[slot]:
            found.extend(one.rule.evidence(one.state, workload, slot, index))
    if not found and verdicts.excluded is not None and verdicts.excluded[slot]:
        names = " ".join(sorted(verdicts.excluded_by))
        found.append(Failure("node-affinity", f"node(s) didn't satisfy plugin(s) [{names}]", detail="pinned to others"))
    return found
