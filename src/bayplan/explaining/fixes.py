"""
The smallest changes that make a workload fit, each applied and checked on the index before it is proposed.

For each distinct combination of failures, a plan is one remedy per failure; plans are tried from the smallest on. What
must go has to be able to go: pods that a fix moves are evicted as far as budgets allow, and fit on other nodes then.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import new_nodes, shortages
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import TargetName
from bayplan.model.workloads import Workload, WorkloadKey, queue_order
from bayplan.rules.remedies import ITSELF, MAX_CHANGES_PER_FIX, OTHERS, Alternatives, Remedy, Revise, Revision

MAX_FIXES = 8
MAX_TRIED_PLANS = 120  # of one size
MAX_TARGETS_WITH_REMEDIES = 40  # those that the fewest rules reject
MAX_MODEL_NODES = 3  # that a new node is modelled on
MAX_PLANS_PER_TARGET = 32
MAX_TRIED_PLACES = 4  # nodes on which the workload is put to see where moved pods go then


class Fix(msgspec.Struct, frozen=True):
    """
    What to change, and where the workload fits after the change.

    `moved` are the pods that go elsewhere, with the nodes on which they fit then. `revisions` are the changes of
    manifests; None for what no manifest is known of.
    """

    change: str
    fits_on: list[str]
    moved: tuple[tuple[WorkloadKey, str], ...] = ()
    revisions: tuple[Revision, ...] | None = None


class Proposal(msgspec.Struct, frozen=True):
    """A fix with the remedies that apply it."""

    fix: Fix
    remedies: tuple[Remedy, ...]


def _as_it_is(placed: PlacedWorkload) -> Workload:
    return msgspec.structs.replace(placed.workload, requested_target="", nominated_target="")


def _as_edited(_: Workload, edited: Workload, __: Sequence[Revise]) -> Workload:
    return edited


class EvictionPolicy(msgspec.Struct, frozen=True):
    """
    Which pods can be evicted together, and how a pod is when its controller recreates it.

    `revised` is the workload as it is created once the manifest that it is created from has been revised; it is also
    handed the workload as edited, for one without a manifest. None if it is not created then, or is as it was: what the
    API server or the controller adds is in no manifest.
    """

    allows: Callable[[Sequence[Workload]], bool] = lambda _: True
    recreated: Callable[[PlacedWorkload], Workload] = _as_it_is
    revised: Callable[[Workload, Workload, Sequence[Revise]], Workload | None] = _as_edited


ANY_EVICTION = EvictionPolicy()


def find_fixes(workload: Workload, engine: Engine, policy: EvictionPolicy = ANY_EVICTION) -> list[Fix]:
    """The fixes without the remedies that apply them."""
    return [proposal.fix for proposal in find_proposals(workload, engine, policy)]


def find_proposals(workload: Workload, engine: Engine, policy: EvictionPolicy = ANY_EVICTION) -> list[Proposal]:
    """Checked fixes of the fewest changes that help; none loosens more than another one."""
    verdicts = filtering.run(workload, engine)
    if verdicts.pre_filter_rejection is not None:
        return []  # a missing claim or an unreadable rule: no change of the index resolves that
    slots = _closest_targets(verdicts, engine.index)
    added = [one for slot in slots[:MAX_MODEL_NODES] for one in _new_nodes(slot, workload, verdicts, engine.index)]
    plans = {*(frozenset((one,)) for one in added), *_plans(slots, verdicts, workload, engine.index)}
    found = _helpful((plan for plan in plans if len(plan) == 1), workload, engine, policy)
    if found:
        return found
    plans.update(_plans_with_new_node(added, workload, engine))
    for size in range(2, MAX_CHANGES_PER_FIX + 1):
        found = _helpful((plan for plan in plans if len(plan) == size), workload, engine, policy)
        if found:
            break
    return found


def _helpful(
    plans: Iterable[frozenset[Remedy]], workload: Workload, engine: Engine, policy: EvictionPolicy
) -> list[Proposal]:
    """The plans after which the workload fits, those of least effort first."""
    found: list[Proposal] = []
    for plan in itertools.islice(sorted(plans, key=_effort), MAX_TRIED_PLANS):
        if len(found) == MAX_FIXES:
            break
        if any(_is_at_most(known.remedies, plan) for known in found):
            continue
        fix = _tried(tuple(sorted(plan, key=lambda remedy: remedy.text)), workload, engine, policy)
        if fix is not None:
            found.append(fix)
    return found


def _is_at_most(known: Iterable[Remedy], plan: Iterable[Remedy]) -> bool:
    """Whether a known fix changes no more than the plan."""
    return all(any(one.is_at_most(other) for other in plan) for one in known)


def _effort(plan: frozenset[Remedy]) -> tuple[int, int, list[str]]:
    """A sort key: less effort first, then less of it."""
    return sum(one.effort for one in plan), sum(one.size for one in plan), sorted(one.text for one in plan)


def _tried(remedies: tuple[Remedy, ...], workload: Workload, engine: Engine, policy: EvictionPolicy) -> Proposal | None:
    """The proposal, if the workload fits after it and all pods that it moves fit too."""
    index = engine.index
    moving = [index.records[key] for key in dict.fromkeys(key for one in remedies for key in one.moves)]
    if moving and not policy.allows([one.workload for one in moving]):
        return None
    displaced = sorted(map(policy.recreated, moving), key=queue_order)
    revisions = tuple(revision for remedy in remedies for revision in remedy.revisions)
    with index.tentatively():
        changed = apply_remedies(remedies, workload, index)
        names = _feasible_names(changed, engine)
        own = [one.revise for one in revisions if one.is_of_workload and one.revise is not None]
        if names and own:
            created = policy.revised(workload, changed, own)
            if created is None:
                return None
            changed, names = created, _feasible_names(created, engine)
        moved = _moved(changed, names, displaced, engine)
    if moved is None:
        return None
    text = " and ".join(remedy.text for remedy in remedies)
    return Proposal(Fix(text, names, moved, revisions), remedies)


def _moved(
    workload: Workload, names: Sequence[str], displaced: Sequence[Workload], engine: Engine
) -> tuple[tuple[WorkloadKey, str], ...] | None:
    """Where the displaced pods fit once the workload is placed on one of these nodes; None if there is no such node."""
    index = engine.index
    for name in names[:MAX_TRIED_PLACES]:
        placed: list[tuple[WorkloadKey, str]] = []
        with index.tentatively():
            index.add(workload, name)
            for one in displaced:
                feasible = _feasible_names(one, engine)
                if not feasible:
                    break
                index.add(one, feasible[0])
                placed.append((one.key, feasible[0]))
        if len(placed) == len(displaced):
            return tuple(placed)
    return None


def _feasible_names(workload: Workload, engine: Engine) -> list[str]:
    feasible = filtering.run(workload, engine).feasible
    return sorted(engine.index.slots.at(int(slot)).name for slot in np.flatnonzero(feasible))


def apply_remedies(changes: Iterable[Remedy], workload: Workload, index: PlacementIndex) -> Workload:
    """Apply changes to the index; returns the changed workload."""
    for change in changes:
        workload = change.edit(workload, index)
    return workload


def _new_nodes(slot: int, workload: Workload, verdicts: Verdicts, index: PlacementIndex) -> Iterator[Remedy]:
    return new_nodes.node_like(slot, workload, shortages.counted_requests(workload, verdicts), index)


def _plans(
    slots: Iterable[int], verdicts: Verdicts, workload: Workload, index: PlacementIndex
) -> Iterator[frozenset[Remedy]]:
    """Sets of remedies: one for each failure of a target."""
    for slot in slots:
        by_failure = _alternatives(verdicts, workload, slot, index)
        if by_failure is None or not 0 < len(by_failure) <= MAX_CHANGES_PER_FIX:
            continue
        for chosen in itertools.islice(itertools.product(*by_failure), MAX_PLANS_PER_TARGET):
            yield frozenset(chosen)


def _plans_with_new_node(added: Iterable[Remedy], workload: Workload, engine: Engine) -> Iterator[frozenset[Remedy]]:
    """A new node, and one remedy for each of its failures that a change of the workload or of other pods lifts."""
    index = engine.index
    for one in added:
        with index.tentatively():
            changed = one.edit(workload, index)
            slot = index.slots.by_name[TargetName(one.revisions[0].node)]
            verdicts = filtering.run(changed, engine)
            by_failure = _alternatives(verdicts, changed, slot, index) or []
            usable = [[alt for alt in each if alt.effort in (ITSELF, OTHERS)] for each in by_failure]
        if 0 < len(usable) < MAX_CHANGES_PER_FIX and all(usable):
            for chosen in itertools.islice(itertools.product(*usable), MAX_PLANS_PER_TARGET):
                yield frozenset((one, *chosen))


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
