"""NodeAffinity: nodeSelector, required and preferred node affinity, and what the scheduler's configuration adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.mapping import selectors
from bayplan.model.node_selectors import (
    GT,
    NAME_FIELD,
    NodeAffinity,
    NodeRequirement,
    NodeTerm,
    PreferredNodeTerm,
    parse_integer,
)
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, Scores, StatusCode
from bayplan.model.workloads import DAEMON_SET, Workload
from bayplan.rules.arguments import Arguments
from bayplan.rules.remedies import Alternatives
from bayplan.rules.rule import MAX_SCORE, Failure, LiftedBy, Raw, Rule, Scaling
from bayplan.validating import affinity as affinity_fields
from bayplan.validating.fields import Cause, Field
from bayplan.wire.pods import WireNodeAffinity
from bayplan.wire.scheduler_config import NodeAffinityArgs

NOT_MATCHED = Reason("node-affinity", "node(s) didn't match Pod's node affinity/selector", StatusCode.UNRESOLVABLE)
NOT_ENFORCED = Reason(
    "scheduler-node-affinity", "node(s) didn't match scheduler-enforced node affinity", StatusCode.UNRESOLVABLE
)
CONFLICT = Reason("node-affinity-conflict", "pod affinity terms conflict", StatusCode.UNRESOLVABLE)


class NodeAffinityArguments(Arguments, frozen=True):
    """NodeAffinityArgs: a node affinity that every pod has in addition to its own."""

    written_type = NodeAffinityArgs
    added: NodeAffinity | None = None

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        added = written["addedAffinity"]
        found: list[Cause] = []
        for term in added[affinity_fields.REQUIRED]["nodeSelectorTerms"].items():
            found += affinity_fields.validate_node_selector_term(term)
        for item in added[affinity_fields.PREFERRED].items():
            found += affinity_fields.validate_node_selector_term(item["preference"])
        return found

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        added = written.get("addedAffinity")
        return cls(selectors.node_affinity_of(msgspec.convert(added, WireNodeAffinity))) if added else cls()


class NodeAffinityState(msgspec.Struct, frozen=True):
    """`names` are the only nodes that the required terms allow by name; None if a term allows nodes by label."""

    affinity: NodeAffinity
    names: frozenset[str] | None


class NodeAffinityRule(Rule[NodeAffinity, NodeAffinityState]):
    name = "NodeAffinity"
    id = "node-affinity"
    extends = ("preFilter", "filter", "preScore", "score")
    lifted_by = LiftedBy.TARGET
    default_weight = 2
    arguments_type = NodeAffinityArguments
    arguments: NodeAffinityArguments
    reasons_by_code = (NOT_MATCHED, NOT_ENFORCED)
    follows_workloads = False
    reads_template_only = True
    scaling = Scaling.BY_EXTREMES
    documented = (
        DocumentedReason(
            NOT_MATCHED,
            means=(
                "The node's labels do not match the pod's nodeSelector, or match no term of its required node affinity."
            ),
            to_do=(
                "Compare the node's labels (kubectl get node NODE --show-labels) with the pod's nodeSelector and node "
                "affinity. Terms are ORed; the expressions within a term are ANDed."
            ),
        ),
        DocumentedReason(
            NOT_ENFORCED,
            means=(
                "The scheduler configuration adds a node affinity to every pod (addedAffinity), and the node does not "
                "match it."
            ),
            to_do="Label the node to match addedAffinity, or use another scheduler profile for this pod.",
        ),
        DocumentedReason(
            CONFLICT,
            means="The pod's required node affinity selects nodes by metadata.name in a way that no node can match.",
            to_do=(
                "Correct the matchFields of the pod's node affinity: all of them within one term must name the same "
                "node."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> NodeAffinity | None:
        del index
        affinity = workload.needs.node_affinity
        if self.arguments.added or affinity.selector or affinity.required is not None or affinity.preferred:
            return affinity
        return None

    def prepare(self, part: NodeAffinity, index: PlacementIndex) -> NodeAffinityState:
        del index
        return NodeAffinityState(part, _named_nodes(part.required))

    def pre_filter(self, state: NodeAffinityState, index: PlacementIndex) -> Reason | frozenset[str] | None:
        del index
        if state.names is None:
            return None
        return frozenset(state.names) or CONFLICT

    def reject(self, state: NodeAffinityState, index: PlacementIndex, at: At) -> Codes | None:
        affinity, added = state.affinity, self.arguments.added.required if self.arguments.added else None
        if not affinity.selector and affinity.required is None and added is None:
            return None
        codes = np.where(matching(affinity, index, at), 0, 1)
        if added is not None:
            codes[~matching_terms(added, index, at)] = 2
        return codes

    def score(self, state: NodeAffinityState, index: PlacementIndex, at: At) -> Scores | None:
        preferred: Sequence[PreferredNodeTerm] = state.affinity.preferred or ()
        added = self.arguments.added
        if added and added.preferred:
            preferred = (*added.preferred, *preferred)
        if not preferred:
            return None
        raw = np.zeros(len(index.slots.alive[at]), np.int64)
        for one in preferred:
            if one.weight and (one.term.expressions or one.term.fields):
                raw += one.weight * _term(one.term, index, at)
        return raw

    def scaled(self, raw: Raw, lowest: int, highest: int) -> Raw:
        """The share of the highest (kube-scheduler: DefaultNormalizeScore)."""
        del lowest
        return raw * MAX_SCORE // highest if highest else raw

    def evidence(self, state: NodeAffinityState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        target, affinity = index.slots.at(slot), state.affinity
        failures = [
            Failure(self.id, NOT_MATCHED.text, term=f"nodeSelector {key}={value}", detail=_has(key, target.labels))
            for key, value in affinity.selector
            if target.labels.get(key) != value
        ]
        if affinity.required is not None and not any(t.matches(target.name, target.labels) for t in affinity.required):
            failures += [
                Failure(self.id, NOT_MATCHED.text, term=str(term), detail=_missing(term, target.name, target.labels))
                for term in affinity.required
            ] or [Failure(self.id, NOT_MATCHED.text, detail="no node selector term is given, so no node matches")]
        added = self.arguments.added.required if self.arguments.added else None
        if added is not None and not any(t.matches(target.name, target.labels) for t in added):
            detail = "addedAffinity of the scheduler's configuration"
            failures.append(Failure(self.id, NOT_ENFORCED.text, detail=detail))
        return failures

    def remedies(
        self, state: NodeAffinityState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Alternatives]:
        from bayplan.rules import node_affinity_remedies  # only explanations need it

        is_daemon = workload.controller is not None and workload.controller.kind == DAEMON_SET
        return node_affinity_remedies.alternatives(state.affinity, slot, index, is_daemon=is_daemon)


def matching(affinity: NodeAffinity, index: PlacementIndex, at: At = ALL) -> Mask:
    """Which targets meet the node selector and the required terms; all if there are none."""
    mask = np.ones(len(index.slots.alive[at]), np.bool_)
    for key, value in affinity.selector:
        mask &= _requirement(NodeRequirement(key, "In", (value,)), index, at)
    if affinity.required is not None:
        mask &= matching_terms(affinity.required, index, at)
    return mask


def matching_terms(terms: Sequence[NodeTerm], index: PlacementIndex, at: At = ALL) -> Mask:
    """Which targets meet at least one of the terms."""
    # Terms are OR-ed, so an empty list of terms matches no node rather than every node.
    mask = np.zeros(len(index.slots.alive[at]), np.bool_)
    for term in terms:
        if term.expressions or term.fields:
            mask |= _term(term, index, at)
    return mask


def _term(term: NodeTerm, index: PlacementIndex, at: At) -> Mask:
    """Which targets meet every requirement of the term."""
    mask = np.ones(len(index.slots.alive[at]), np.bool_)
    for requirement in term.expressions:
        mask &= _requirement(requirement, index, at)
    for requirement in term.fields:
        named = np.zeros(index.slots.capacity, np.bool_)
        if requirement.key == NAME_FIELD:
            named[[index.slots.by_name[name] for name in requirement.values if name in index.slots.by_name]] = True
            if requirement.operator == "NotIn":
                named = ~named
        mask &= named[at]
    return mask


def _requirement(requirement: NodeRequirement, index: PlacementIndex, at: At) -> Mask:
    """Which targets have a label value that meets the requirement."""
    column, operator = index.column(requirement.key), requirement.operator
    if operator in ("Exists", "DoesNotExist"):
        present = column.present(at)
        return present if operator == "Exists" else ~present
    if operator in ("In", "NotIn"):
        by_value = np.zeros(column.n_domains, np.int64)
        by_value[[column.by_value[value] for value in requirement.values if value in column.by_value]] = 1
        if operator == "NotIn":
            by_value = 1 - by_value
        return column.gather(by_value, at) > 0
    bound = parse_integer(requirement.values[0]) if len(requirement.values) == 1 else None
    if bound is None:
        return np.zeros(len(column.of_slot[at]), np.bool_)
    numbers, is_number = column.as_numbers()
    compared = numbers > bound if operator == GT else numbers < bound
    return column.gather((compared & is_number).astype(np.int64), at) > 0


def _named_nodes(terms: tuple[NodeTerm, ...] | None) -> frozenset[str] | None:
    """The nodes that terms pin the pod to by name; None unless every term does."""
    if not terms:
        return None
    union: set[str] = set()
    for term in terms:
        pinned = [set(f.values) for f in term.fields if f.key == NAME_FIELD and f.operator == "In"]
        if not pinned:
            return None
        union |= set.intersection(*pinned)
    return frozenset(union)


def _has(key: str, labels: dict[str, str]) -> str:
    return f"the node has {key}={labels[key]}" if key in labels else f"the node has no label {key}"


def _missing(term: NodeTerm, name: str, labels: dict[str, str]) -> str:
    """The first requirement of the term that the node does not meet."""
    for requirement in term.expressions:
        if not requirement.matches(labels.get(requirement.key)):
            return f"{requirement} does not hold: {_has(requirement.key, labels)}"
    for requirement in term.fields:
        if not requirement.matches(name):
            return f"{requirement} does not hold: the node is {name}"
    return "an empty term matches no node"
