"""
Whether binding a pod to a node would break a rule that must hold during execution, its own or that of a pod there.

The design has the kubelet check this; here it is checked at admission. As in the design, only rules over single nodes
are reviewed, so only the pods of one node are read; violations over larger domains are found by `tracking`. A node is
identified by its hostname label: without it, no pod conflicts and no pod meets an affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bayplan.enforcing import execution_rules
from bayplan.enforcing.execution_rules import ExecutionRule, MatchingSet, RuleType
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.terms import HOSTNAME, PeerTerm
from bayplan.model.workloads import Workload, WorkloadKey

MAX_PEERS_NAMED = 3


class BrokenRule(msgspec.Struct, frozen=True):
    """
    The rule that would be broken, its owner, and the conflicting peers; none where an affinity has no peer.

    `workload` is the pod that would break it.
    """

    workload: Workload
    owner: WorkloadKey
    node: str
    path: str
    shown: str
    peers: tuple[WorkloadKey, ...]

    def text(self, names: PeerNames) -> str:
        """The rule as the owner of the pod sees it."""
        reader = self.workload.namespace
        owner = names.name(self.owner, reader)
        if owner != self.owner:  # not even what it selects is shown
            return f"a rule of {owner} on {self.node} rejects this pod"
        rule = f"{self.path} of {owner}"
        if not self.peers:
            return f"{rule} requires {self.shown} on its node, and {self.node} has none"
        shown = names.listed(self.peers[:MAX_PEERS_NAMED], reader) + (" …" if len(self.peers) > MAX_PEERS_NAMED else "")
        return f"{rule} rejects {self.shown} on its node, and {self.node} has {shown}"


def broken_rules(
    workload: Workload, node: str, index: PlacementIndex, assumed: Sequence[tuple[Workload, str]] = ()
) -> list[BrokenRule]:
    """
    The rules that the pod would break on this node; none if the node is not known.

    `assumed` are pods that are not in the index yet, each with its node.
    """
    slot = index.slots.by_name.get(node)
    if slot is None:
        return []
    assumed = [(other, where) for other, where in assumed if other.key != workload.key]
    hostnames = index.column(HOSTNAME)
    slots = [int(one) for domain in hostnames.domains(slot) for one in hostnames.slots_in(domain)]
    present = (index.records[key].workload for one in slots for key in index.workloads_on(one) if key != workload.key)
    others = [*present, *(other for other, where in assumed if index.slots.by_name.get(where) in slots)]
    return [*_own_rules(workload, node, others, assumed, index), *_rules_of_others(workload, node, others, index)]


def _own_rules(
    workload: Workload,
    node: str,
    others: Sequence[Workload],
    assumed: Sequence[tuple[Workload, str]],
    index: PlacementIndex,
) -> Iterator[BrokenRule]:
    for rule in _hostname_rules(workload, index):
        peers = tuple(other.key for other in others if _matches(rule.term, other, index))
        if rule.rule_type is RuleType.ANTI_AFFINITY:
            if len(peers) > rule.limit:
                yield BrokenRule(workload, workload.key, node, rule.path, rule.shown, peers)
        elif not peers and not _is_lone_member(rule, workload, assumed, index):
            yield BrokenRule(workload, workload.key, node, rule.path, rule.shown, ())


def _rules_of_others(
    workload: Workload, node: str, others: Sequence[Workload], index: PlacementIndex
) -> Iterator[BrokenRule]:
    for owner in others:
        for rule in _hostname_rules(owner, index):
            if rule.rule_type is not RuleType.ANTI_AFFINITY or not _matches(rule.term, workload, index):
                continue
            matching = [other for other in others if other is not owner and _matches(rule.term, other, index)]
            if len(matching) + 1 > rule.limit and not _is_violated(rule, owner, others, index):
                yield BrokenRule(workload, owner.key, node, rule.path, rule.shown, (workload.key,))


def _is_violated(rule: ExecutionRule, owner: Workload, others: Sequence[Workload], index: PlacementIndex) -> bool:
    """Whether a rule does not reject because it is violated already; as for filters, terminating pods count."""
    if not index.semantics.neighbours_reject_when_satisfied:
        return False
    term = msgspec.structs.replace(rule.term, counts_terminating=True)
    return sum(other is not owner and _matches(term, other, index) for other in others) > rule.limit


def _hostname_rules(workload: Workload, index: PlacementIndex) -> Iterable[ExecutionRule]:
    # An affinity over several keys may be met by a pod on another node.
    return (rule for rule in execution_rules.execution_rules_of(workload, index.semantics) if rule.keys == (HOSTNAME,))


def _matches(term: PeerTerm, workload: Workload, index: PlacementIndex) -> bool:
    return index.peer_index.matches(term, workload.labels, workload.namespace, terminating=workload.terminating)


def _is_lone_member(
    rule: ExecutionRule, workload: Workload, assumed: Sequence[tuple[Workload, str]], index: PlacementIndex
) -> bool:
    """Whether the pod is the only member of a set that its affinity matches."""

    def has_no_other_member(matching_set: MatchingSet) -> bool:
        arriving = (o for o, where in assumed if where in index.slots.by_name and _matches(matching_set.term, o, index))
        return next(arriving, None) is None and not _has_members(matching_set, workload, index)

    return any(
        all(_matches(matching_set.term, workload, index) and has_no_other_member(matching_set) for matching_set in sets)
        for sets in rule.lone_member_sets
    )


def _has_members(matching_set: MatchingSet, workload: Workload, index: PlacementIndex) -> bool:
    entry = index.peer_index.hold(matching_set.term)  # classes distinguish only labels of terms that are held
    try:
        return any(
            _has_other_member(cls, matching_set, workload, index)
            for cls in index.peer_index.classes.candidates(entry.term)
        )
    finally:
        index.peer_index.release(entry)


def _has_other_member(cls: WorkloadClass, matching_set: MatchingSet, workload: Workload, index: PlacementIndex) -> bool:
    if not index.peer_index.class_matches(matching_set.term, cls):
        return False
    columns = [index.column(key) for key in matching_set.keys]
    return any(
        here != {workload.key} and (not columns or any(column.domains(slot) for column in columns))
        for slot, here in cls.members.items()
    )
