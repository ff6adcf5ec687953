"""
The smallest changes that make a workload fit, each applied and checked on the index before it is proposed.

For each distinct combination of failures, a plan is one remedy per failure; plans are tried from the smallest on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import new_nodes
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload
from bayplan.rules.remedies import Alternatives, Remedy

MAX_FIXES = 8
MAX_TRIED_PLANS = 120
MAX_TARGETS_WITH_REMEDIES = 40  # those that the fewest rules reject
MAX_MODEL_NODES = 3  # that a new node is modelled on
MAX_CHANGES_PER_FIX = 4  # more would be a redesign of the workload
MAX_PLANS_PER_TARGET = 32


class Fix(msgspec.Struct, frozen=True):
    """What to change, and where the workload fits after the change."""

    change: str
    fits_on: list[str]


class Proposal(msgspec.Struct, frozen=True):
    """A fix with the remedies that apply it."""

    fix: Fix
    remedies: tuple[Remedy, ...]


def find_fixes(workload: Workload, engine: Engine) -> list[Fix]:
    """The fixes without the remedies that apply them."""
    return [proposal.fix for proposal in find_proposals(workload, engine)]


def find_proposals(workload: Workload, engine: Engine) -> list[Proposal]:
    """Checked fixes, fewest changes first; none contains a smaller one."""
    index, verdicts = engine.index, filtering.run(workload, engine)
    if verdicts.pre_filter_rejection is not None:
        return []  # a missing claim or an unreadable rule: no change of the index resolves that
    plans = sorted(set(_plans(verdicts, workload, index)), key=_effort)
    found: list[Proposal] = []
    for plan in itertools.islice(plans, MAX_TRIED_PLANS):
        if len(found) == MAX_FIXES:
            break
        if any(set(proposal.remedies) <= plan for proposal in found):
            continue
        ordered = tuple(sorted(plan, key=lambda remedy: remedy.text))
        with index.tentatively():
            changed = apply_remedies(ordered, workload, index)
            feasible = filtering.run(changed, engine).feasible
            names: list[str] = sorted(index.slots.at(int(slot)).name for slot in np.flatnonzero(feasible))
        if names:
            found.append(Proposal(Fix(" and ".join(remedy.text for remedy in ordered), names), ordered))
    return found


def _effort(plan: frozenset[Remedy]) -> tuple[int, int, list[str]]:
    """A sort key: fewer changes first, then less effort."""
    return len(plan), sum(remedy.effort for remedy in plan), sorted(remedy.text for remedy in plan)


def apply_remedies(changes: Iterable[Remedy], workload: Workload, index: PlacementIndex) -> Workload:
    """Apply changes to the index; returns the changed workload."""
    for change in changes:
        workload = change.edit(workload, index)
    return workload


def _plans(verdicts: Verdicts, workload: Workload, index: PlacementIndex) -> Iterator[frozenset[Remedy]]:
    """Sets of remedies: a new node, or one remedy for each failure of a target."""
    targets = _closest_targets(verdicts, index)
    for slot in targets[:MAX_MODEL_NODES]:
        yield from (frozenset((remedy,)) for remedy in new_nodes.node_like(slot, workload, index))
    for slot in targets:
        by_failure = _alternatives(verdicts, workload, slot, index)
        if by_failure is None or not 0 < len(by_failure) <= MAX_CHANGES_PER_FIX:
            continue
        for chosen in itertools.islice(itertools.product(*by_failure), MAX_PLANS_PER_TARGET):
            yield frozenset(chosen)


def _alternatives(
    verdicts: Verdicts, workload: Workload, slot: int, index: PlacementIndex
) -> list[Alternatives] | None:
    """One list of alternative remedies for each failure of a target; None if a failure has no remedy."""
    found: list[Alternatives] = []
    for one in verdicts.results:
        codes = one.evaluation.codes
        if codes is None or not one.rule.filters or not codes[slot]:
            continue
        alternatives = one.remedies(workload, slot, index)
        if not alternatives or not all(alternatives):
            return None
        found.extend(alternatives)
    return found


def _closest_targets(verdicts: Verdicts, index: PlacementIndex) -> list[int]:
    """The targets that the fewest rules reject, one for each combination of codes first."""
    codes = [one.evaluation.codes for one in verdicts.results if one.evaluation.codes is not None and one.rule.filters]
    rejected = np.flatnonzero(index.slots.alive & ~verdicts.feasible)
    if not codes or not len(rejected):
        return []
    table = np.stack(codes)[:, rejected]
    _, firsts = np.unique(table, axis=1, return_index=True)
    n_rejecting = (table != 0).sum(axis=0)
    is_first = np.zeros(len(rejected), np.bool_)
    is_first[firsts] = True
    names = np.array([index.slots.at(int(slot)).name for slot in rejected])
    order = np.lexsort((names, ~is_first, n_rejecting))
    return [int(slot) for slot in rejected[order][:MAX_TARGETS_WITH_REMEDIES]]
