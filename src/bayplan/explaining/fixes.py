"""
The smallest changes that would let a workload fit, each tried on the engine itself before it is proposed.

For every kind of refused target, one remedy per thing in the way makes a plan; plans are tried from the smallest on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from bayplan.engine import filtering
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import peer_remedies, remedies
from bayplan.explaining.remedies import Alternatives, Remedy
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule

MOST_FIXES = 8
MOST_TRIES = 120
MOST_TARGETS = 40  # targets looked at: those with the fewest rules against them come first
MOST_MODELS = 3  # nodes that a new one is modelled on
MOST_CHANGES = 4  # in one fix; more is a redesign

BY_RULE: dict[str, Callable[[Any, Workload, int, PlacementIndex], list[Alternatives]]] = {
    "node-unschedulable": remedies.for_cordon,
    "node-name": remedies.for_name,
    "taint": remedies.for_taints,
    "node-affinity": remedies.for_node_affinity,
    "node-ports": remedies.for_ports,
    "resources": remedies.for_resources,
    "volume-restrictions": peer_remedies.for_claims,
    "topology-spread": peer_remedies.for_spread,
    "pod-affinity": peer_remedies.for_affinity,
}


class Fix(msgspec.Struct, frozen=True):
    """What to change, and where the workload then fits."""

    change: str
    fits_on: list[str]


class Proposal(msgspec.Struct, frozen=True):
    """A fix that can be carried out again."""

    fix: Fix
    remedies: tuple[Remedy, ...]


def find_fixes(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> list[Fix]:
    return [proposal.fix for proposal in find_proposals(workload, index, rules)]


def find_proposals(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> list[Proposal]:
    """Proven fixes, fewest changes first; none contains a smaller one."""
    verdicts = filtering.run(rules, workload, index)
    if verdicts.refusal is not None:
        return []  # a missing claim or an unreadable rule: nothing the index could stand in for
    plans = sorted(set(_plans(verdicts, workload, index)), key=_effort)
    found: list[Proposal] = []
    for plan in itertools.islice(plans, MOST_TRIES):
        if len(found) == MOST_FIXES:
            break
        if any(set(proposal.remedies) <= plan for proposal in found):
            continue
        proven = _proven(plan, workload, index, rules)
        if proven is not None:
            found.append(proven)
    return found


def _effort(plan: frozenset[Remedy]) -> tuple[int, int, list[str]]:
    return len(plan), sum(remedy.effort for remedy in plan), sorted(remedy.text for remedy in plan)


def apply_remedies(changes: Iterable[Remedy], workload: Workload, index: PlacementIndex) -> Workload:
    """Carry out changes on the index; returns the workload as it asks afterwards."""
    for change in changes:
        workload = change.edit(workload, index)
    return workload


def _proven(
    plan: frozenset[Remedy], workload: Workload, index: PlacementIndex, rules: Sequence[Rule]
) -> Proposal | None:
    ordered = tuple(sorted(plan, key=lambda remedy: remedy.text))
    with index.tentatively():
        changed = apply_remedies(ordered, workload, index)
        feasible = filtering.run(rules, changed, index).feasible
        names: list[str] = sorted(index.slots.at(int(slot)).name for slot in np.flatnonzero(feasible))
    if not names:
        return None
    return Proposal(Fix(" and ".join(remedy.text for remedy in ordered), names), ordered)


def _plans(verdicts: Verdicts, workload: Workload, index: PlacementIndex) -> Iterator[frozenset[Remedy]]:
    nearest = _nearest(verdicts, index)
    for slot in nearest[:MOST_MODELS]:
        yield from (frozenset((remedy,)) for remedy in remedies.node_like(slot, workload, index))
    for slot in nearest:
        in_the_way = _in_the_way(verdicts, workload, slot, index)
        if in_the_way is None or not 0 < len(in_the_way) <= MOST_CHANGES:
            continue
        for chosen in itertools.islice(itertools.product(*in_the_way), 32):
            yield frozenset(chosen)


def _in_the_way(verdicts: Verdicts, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives] | None:
    """One list of alternatives for each thing against a target; None if something has no remedy."""
    found: list[Alternatives] = []
    for one in verdicts.results:
        codes = one.evaluation.codes
        if codes is None or not one.rule.filters or not codes[slot]:
            continue
        known = BY_RULE.get(one.rule.id)
        alternatives = known(one.state, workload, slot, index) if known else []
        if not alternatives or not all(alternatives):
            return None
        found.extend(alternatives)
    return found


def _nearest(verdicts: Verdicts, index: PlacementIndex) -> list[int]:
    """The refused targets with the fewest rules against them, one for each combination of codes first."""
    codes = [one.evaluation.codes for one in verdicts.results if one.evaluation.codes is not None and one.rule.filters]
    refused = np.flatnonzero(index.slots.alive & ~verdicts.feasible)
    if not codes or not len(refused):
        return []
    table = np.stack(codes)[:, refused]
    _, firsts = np.unique(table, axis=1, return_index=True)
    n_against = (table != 0).sum(axis=0)
    is_first = np.zeros(len(refused), np.bool_)
    is_first[firsts] = True
    names = np.array([index.slots.at(int(slot)).name for slot in refused])
    order = np.lexsort((names, ~is_first, n_against))
    return [int(slot) for slot in refused[order][:MOST_TARGETS]]
