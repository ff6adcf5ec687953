"""Why a group that was not placed waits: domain by domain, how many of its members fit, and why the next does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from bayplan.explaining import fit_error
from bayplan.explaining.group_wait import DomainAttempt, GroupWait
from bayplan.grouping import pending_groups
from bayplan.grouping.attempts import Attempts, n_lacking
from bayplan.grouping.pending_groups import PendingGroup
from bayplan.grouping.problem import Answer, GroupProblem, ProvenImpossible, Undecided
from bayplan.grouping.units import Unit
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload

MAX_DOMAINS = 200  # that are tried; the others are left out of the explanation
MAX_QUESTIONS = 1_000_000  # in effect none: each member is tried once or twice in each domain


def why(group: PendingGroup, problem: GroupProblem, answer: Answer | None) -> GroupWait:
    """Why the members that are pending are not placed; `answer` is what the search found, if there was one."""
    found = _beginning(group, problem, answer)
    return found if found.problem else _with_attempts(found, group, problem, _domains(group, problem))


def briefly(group: PendingGroup, problem: GroupProblem, answer: Answer | None) -> GroupWait:
    """The same for the domain with most places alone, which takes one attempt to place each member."""
    found = _beginning(group, problem, answer)
    if found.problem or not group.pods:
        return found
    room, best = Attempts(problem, MAX_QUESTIONS).room(Unit(group.pods)), None
    for name, mask in _domains(group, problem):
        order = n_lacking(room, mask), name
        if best is None or order < best[0]:
            best = order, [(name, mask)]
    return found if best is None else _with_attempts(found, group, problem, best[1])


def _beginning(group: PendingGroup, problem: GroupProblem, answer: Answer | None) -> GroupWait:
    """What is known without an attempt."""
    n_members = group.n_placed + len(group.pods) + len(group.held_back)
    return GroupWait(
        group=group.key,
        min_members=group.min_members,
        n_members=n_members,
        n_placed=group.n_placed,
        problem=group.problem or pending_groups.missing_key(group, problem.index),
        undecided=answer.reason if isinstance(answer, Undecided) else "",
        conflict=tuple(one.detail or one.rule for one in answer.conflict)
        if isinstance(answer, ProvenImpossible)
        else (),
    )


def _with_attempts(
    wait: GroupWait, group: PendingGroup, problem: GroupProblem, domains: Iterable[tuple[str, Mask]]
) -> GroupWait:
    attempts: list[DomainAttempt] = []
    best: tuple[DomainAttempt, Workload | None, tuple[tuple[Workload, str], ...]] | None = None
    for name, mask in domains:
        found = _attempt(name, mask, group, problem)
        attempts.append(found[0])
        if best is None or found[0].n_fitting > best[0].n_fitting:
            best = found
    if best is None:
        return wait
    attempts.sort(key=lambda one: (one is not best[0], -one.n_fitting, one.domain))
    return GroupWait(
        group=wait.group,
        min_members=wait.min_members,
        n_members=wait.n_members,
        n_placed=wait.n_placed,
        attempts=tuple(attempts),
        failing=best[1],
        beside=best[2],
        undecided=wait.undecided,
        conflict=wait.conflict,
    )


def _domains(group: PendingGroup, problem: GroupProblem) -> list[tuple[str, Mask]]:
    """The first domains of the required key, with the targets in each; the whole cluster without a key."""
    index = problem.index
    if not group.topology_key:
        return [("", index.slots.alive)] if len(index.slots) else []
    column = index.column(group.topology_key)
    found = []
    for value, domain in sorted(column.by_value.items(), key=lambda item: str(item[0]))[:MAX_DOMAINS]:
        mask = np.zeros(index.slots.capacity, np.bool_)
        mask[column.slots_in(domain)] = True
        found.append((f"{group.topology_key}={value}", mask))
    return found


def _attempt(
    name: str, mask: Mask, group: PendingGroup, problem: GroupProblem
) -> tuple[DomainAttempt, Workload | None, tuple[tuple[Workload, str], ...]]:
    """Place as many members as possible in a domain, one by one; nothing stays placed."""
    with problem.index.tentatively():
        attempts = Attempts(problem, MAX_QUESTIONS)
        attempts.packs = True
        waiting = list(group.pods)
        failed: Workload | None = None
        for pod in group.pods:
            deferred: list[Workload] = []
            if attempts.place_pod(pod, mask, deferred) and not deferred:
                waiting.remove(pod)
            else:
                attempts.take(deferred)
                failed = failed or pod
        n_fitting = group.n_placed + len(attempts.slot_of)
        beside = tuple(
            (attempts.workloads[key], problem.index.slots.at(slot).name) for key, slot in attempts.slot_of.items()
        )
        if failed is None:
            return DomainAttempt(name, n_fitting), None, beside
        verdicts = attempts.feasible(failed)
        if verdicts.pre_filter_rejection is not None or not name:
            message = fit_error.sentence(verdicts, problem.index)
        else:
            tally = Counter[str]()
            slots = np.flatnonzero(mask)
            for slot in slots.tolist():
                tally.update(reason.text for reason in fit_error.reasons_at(verdicts, slot)[1])
            counted = ", ".join(sorted(f"{n} {text}" for text, n in tally.items()))
            message = f"0/{len(slots)} nodes there are available: {counted}."
        return DomainAttempt(name, n_fitting, failed.key, message), failed, beside
