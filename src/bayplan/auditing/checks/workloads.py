"""Checks of workloads: what the loss of any one domain of a level does to them, before and after rescheduling."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import LEVELS, OBSERVED
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    NO_PODS,
    NOT_APPLICABLE,
    OPEN,
    PLURALS,
    AuditFacts,
    Check,
    CheckOutcome,
    not_in_use,
    workloads_text,
)
from bayplan.auditing.workload_groups import BUDGET
from bayplan.auditing.workload_loss import Loss
from bayplan.explaining import shortages

# fd-n1-workloads-LEVEL: no group of at least two replicas is lost with one domain of the level.


def _n1_workloads(level: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        if facts.workloads is None:
            return NO_PODS
        unused = not_in_use(facts, level)
        if unused is not None:
            return unused
        weak: list[str] = []
        unsure: list[str] = []
        for one in facts.workloads.owners:
            members = [facts.known[m.node] for m in one.group.members if m.node in facts.known]
            if len(members) >= 2:
                holds = facts.spread(members, level).judge(spread.separate)
                if not holds:
                    (unsure if holds is None else weak).append(one.group.name)
        if weak:
            message = f"one {level} can take all replicas of {workloads_text(weak)}"
            fix = "spread them; --repair writes the stanza"
            return CheckOutcome(BROKEN, message, (), OBSERVED, fix, workloads=tuple(weak))
        if unsure:
            message = f"one {level} may hold all replicas of {workloads_text(unsure)}"
            return CheckOutcome(OPEN, message, (), OBSERVED, workloads=tuple(unsure))
        return CheckOutcome(HOLDS, f"no {level} holds all replicas of a workload of several replicas", (), OBSERVED)

    return run


N1_WORKLOADS = tuple(
    Check(f"fd-n1-workloads-{level}", f"Workloads survive any one {level}", "N-1", _n1_workloads(level))
    for level in LEVELS
)


# fd-need-workloads-LEVEL: disruption budgets and quorums of workloads hold after the loss of any one domain of the
# level.


def _need_workloads(level: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        if facts.workloads is None:
            return NO_PODS
        needing = [one.group.name for one in facts.workloads.all if one.source == BUDGET or one.group.need > 1]
        if not needing:
            return CheckOutcome(NOT_APPLICABLE, "no workload has a disruption budget or needs a majority")
        unused = not_in_use(facts, level)
        if unused is not None:
            return unused
        if facts.survival is None or level not in facts.survival.asked:
            return CheckOutcome(NOT_APPLICABLE, f"the loss of a {level} was not asked about")
        found = facts.survival.at(level)
        tolerances = found.workloads.tolerances if found is not None and found.workloads is not None else ()
        by_group = {one.group: one for one in tolerances}
        weak = [name for name in needing if name in by_group and not by_group[name].at_most]
        unsure = [name for name in needing if name not in by_group or not by_group[name].tolerance]
        if weak:
            message = f"one {level} can leave too few of {workloads_text(weak)}{_rescheduled_text(facts, level, weak)}"
            return CheckOutcome(BROKEN, message, (), OBSERVED, workloads=tuple(weak))
        if unsure:
            message = f"one {level} may leave too few of {workloads_text(unsure)}"
            return CheckOutcome(OPEN, message, (), OBSERVED, workloads=tuple(unsure))
        return CheckOutcome(HOLDS, f"budgets and majorities hold whichever {level} is lost", (), OBSERVED)

    return run


def _rescheduled_text(facts: AuditFacts, level: str, weak: list[str]) -> str:
    """How many of the weak workloads have enough replicas again once displaced pods are rescheduled."""
    assert facts.survival is not None
    found = facts.survival.at(level)
    if found is None or not facts.survival.rescheduled:
        return ""
    still_broken = {name for loss in found.losses.values() for name in loss.still_broken}
    n_repaired = sum(name not in still_broken for name in weak)
    return f"; rescheduling repairs {n_repaired} of them" if n_repaired else ""


NEED_WORKLOADS = tuple(
    Check(f"fd-need-workloads-{level}", f"Budgets and quorums survive any one {level}", "N-1", _need_workloads(level))
    for level in LEVELS
)


# fd-room-LEVEL: the pods that the loss of any one domain of the level displaces fit on the remaining nodes.


def _room(level: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        survival = facts.survival
        if facts.workloads is None or survival is None:
            return NO_PODS
        unused = not_in_use(facts, level)
        if unused is not None:
            return unused
        if not survival.rescheduled:
            return CheckOutcome(NOT_APPLICABLE, survival.note)
        if level not in survival.asked:
            return CheckOutcome(NOT_APPLICABLE, f"the loss of a {level} was not asked about")
        found = survival.at(level)
        losses = list(found.losses.values()) if found is not None else []
        stranding = sorted((loss for loss in losses if loss.stranded), key=lambda loss: -len(loss.stranded))
        if stranding:
            worst, n = stranding[0], len(stranding[0].stranded)
            message = f"losing {level} {worst.event.domain} leaves {n} pod{'s'[: n != 1]} unschedulable"
            others = f"; {len(stranding)} of {len(losses)} {PLURALS[level]} leave at least one"
            nodes = tuple(sorted(worst.event.nodes))
            return CheckOutcome(BROKEN, message + others, nodes, OBSERVED, _room_fix(worst))
        unlabelled = tuple(node.name for node in facts.layout.nodes if not node.at(level))
        if unlabelled:
            return CheckOutcome(OPEN, f"{len(unlabelled)} nodes have no known {level}", unlabelled, OBSERVED)
        if not losses:
            return CheckOutcome(NOT_APPLICABLE, f"all nodes are in one {level}: nothing would be left")
        n_displaced = max(loss.n_displaced for loss in losses)
        message = f"whichever {level} is lost, all its pods find room again, {n_displaced} at the most"
        return CheckOutcome(HOLDS, message, (), OBSERVED)

    return run


def _room_fix(worst: Loss) -> str:
    """What is missing: room for the pods that only lack resources, and what keeps the others out in any case."""
    texts = []
    if worst.shortage:
        texts.append(f"add room for {shortages.amounts_text(worst.shortage)}")
    kept_out = [one for one in worst.stranded if not one.missing]
    if kept_out:
        first = kept_out[0]
        n = len(kept_out)
        text = f"no room helps {n} pod{'s'[: n != 1]}, such as {first.key}: {first.message}"
        texts.append(f"{text} To try: {first.fixes[0].change}" if first.fixes else text)
    return "; ".join(texts)


ROOM = tuple(
    Check(f"fd-room-{level}", f"What any one {level} displaces finds room", "N-1 with rescheduling", _room(level))
    for level in LEVELS
)
