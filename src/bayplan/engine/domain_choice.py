"""
The best target for a workload by the effects of its rules on few domains, without arrays of all targets.

A workload whose equivalence class is new finds the targets in the order of its template. Its peers reject or score a
few domains of that order; nothing else of the order changes. It gives the same result as a ranking of the class, which
costs more to build and less to keep. Knows no rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.engine.evaluations import RuleResult
from bayplan.engine.node_order import DividedKeys, NodeOrder
from bayplan.engine.node_partitions import INFEASIBLE, TIE_BITS, NodeKeys
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, ALL
from bayplan.model.reasons import Mask
from bayplan.rules.rule import AnyRule, DomainEffects

MAX_PARTITIONS = 64  # the domains of all columns with few domains, combined
MAX_EXCEPTIONS = 256  # targets that differ from their partition
MAX_LEFT = 16  # targets that a rule leaves, up to which it is found out before scoring whether any is feasible


def best(order: NodeOrder, by_peers: Sequence[RuleResult], index: PlacementIndex) -> tuple[int, int] | None:
    """
    The slot of the best target and its total, (-1, 0) if none is feasible; None if a ranking is better suited.

    `by_peers` are the results of the rules that read more than the template.
    """
    effects = _rejections(by_peers)
    if effects is None or order.constant is None:
        return None
    if not _may_leave_any(effects, order):
        return -1, 0
    is_known, scoring = _add_scores(effects, by_peers, index)
    if not is_known:
        return None
    coarse = [one for one in effects if one.column.n_domains <= MAX_PARTITIONS]
    divided = order.divided_by([one.column for one in coarse])
    if len(divided.domains) > MAX_PARTITIONS:
        return None
    raw_by_partition = _raw_by_partition(divided, coarse)
    fine = [one for one in effects if one.column.n_domains > MAX_PARTITIONS]
    exceptions = _exceptions(fine, index.slots.alive)
    if exceptions is None:
        return None
    found = _candidates(divided.keys, raw_by_partition, *exceptions)
    if not found:
        return -1, 0
    raws = [raw for raw, _, _ in found]
    lowest, highest = min(raws), max(raws)

    def total_key(candidate: tuple[int, int, int]) -> int:
        raw, key, _ = candidate
        return key if scoring is None else key + (scoring.scaled(raw, lowest, highest) * scoring.weight << TIE_BITS)

    chosen = max(found, key=total_key)
    slot = divided.keys.slot_with(chosen[2], chosen[1])
    return slot, order.keys.total(total_key(chosen), slot) + order.constant


def _rejections(results: Sequence[RuleResult]) -> list[DomainEffects] | None:
    """What the rules reject by column; None if a rule has effects of another sort."""
    found: list[DomainEffects] = []
    for one in results:
        state = one.evaluation.state
        effects = one.rule.domain_effects(state) if one.rule.has_domain_effects(state) else None
        if effects is None:
            return None
        if one.rule.filters:
            found += effects
    return found


def _may_leave_any(effects: Sequence[DomainEffects], order: NodeOrder) -> bool:
    """Whether any target may be left to score; false only where a rule leaves few, and none of these is feasible."""
    only: set[int] | None = None
    for one in effects:
        if one.only is not None:
            slots = [one.column.slots_in(domain) for domain in one.only]
            if sum(map(len, slots)) <= MAX_LEFT:
                few = {slot for some in slots for slot in some.tolist()}
                only = few if only is None else only & few
    if only is None:
        return True
    key_at = order.keys.at
    return any(
        key_at[slot] != INFEASIBLE and not any(one.rejects(one.column.at[slot]) for one in effects) for slot in only
    )


def _add_scores(
    effects: list[DomainEffects], results: Sequence[RuleResult], index: PlacementIndex
) -> tuple[bool, AnyRule | None]:
    """
    Add the raw scores of the one rule that scores, which is the second value.

    The first value is false if a rule has scores of another sort, or several rules have.
    """
    scoring: AnyRule | None = None
    for one in results:
        if not one.rule.weight:
            continue
        scores = one.rule.domain_scores(one.evaluation.state, index)
        if scores is None:
            return False, None
        for column, raw in scores.items():
            if not raw:
                continue
            if scoring not in (None, one.rule):
                return False, None
            scoring = one.rule
            same = next((effect for effect in effects if effect.column is column), None)
            if same is None:
                effects.append(DomainEffects(column, raw=raw))
            else:
                same.raw = raw
    return True, scoring


def _raw_by_partition(divided: DividedKeys, effects: Sequence[DomainEffects]) -> dict[int, int]:
    """The raw score of each partition that has feasible targets and is not rejected."""
    found: dict[int, int] = {}
    best_at = divided.keys.best_at
    for partition, domains in enumerate(divided.domains):
        if best_at[partition] == INFEASIBLE:
            continue
        raw = 0
        for one, domain in zip(effects, domains, strict=True):
            if one.rejects(domain):
                break
            raw += one.raw.get(domain, 0)
        else:
            found[partition] = raw
    return found


def _exceptions(effects: Sequence[DomainEffects], alive: Mask) -> tuple[dict[int, int | None], bool] | None:
    """
    The targets of single domains, each with its raw score or None if it is rejected; None if there are many.

    The second value is whether all other targets are rejected.
    """
    raw_by_slot: dict[int, int | None] = {}
    only: set[int] | None = None
    for one in effects:
        if one.only is not None:
            if len(one.only) > MAX_EXCEPTIONS:
                return None
            left = {slot for domain in one.only for slot in one.column.slots_in(domain).tolist()}
            only = left if only is None else only & left
    for one in effects:
        column = one.column
        for domain in one.rejected | one.raw.keys():
            raw = None if one.rejects(domain) else one.raw.get(domain, 0)
            slots = column.slots_in(domain) if domain != ABSENT else np.flatnonzero(alive & ~column.present(ALL))
            for slot in slots.tolist():
                before = raw_by_slot.get(slot, 0)
                raw_by_slot[slot] = None if raw is None or before is None else before + raw
            if len(raw_by_slot) > MAX_EXCEPTIONS:
                return None
    if only is None:
        return raw_by_slot, False
    return {slot: raw_by_slot.get(slot, 0) for slot in only}, True


def _candidates(
    keys: NodeKeys, raw_by_partition: dict[int, int], exceptions: dict[int, int | None], are_all: bool
) -> list[tuple[int, int, int]]:
    """The best target of each raw score, as raw score, key and partition; none with this raw score has a better key."""
    found: list[tuple[int, int, int]] = []
    excluded: dict[int, list[int]] = {}
    for slot, raw in exceptions.items():
        partition, key = keys.at(slot)
        if partition in raw_by_partition:
            excluded.setdefault(partition, []).append(slot)
            if raw is not None and key != INFEASIBLE:
                found.append((raw_by_partition[partition] + raw, key, partition))
    if not are_all:
        for partition, raw in raw_by_partition.items():
            key = keys.best_except(partition, excluded.get(partition, ()))
            if key != INFEASIBLE:
                found.append((raw, key, partition))
    return found
