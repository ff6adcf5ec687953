"""Checks of etcd: its quorum, and the number of its members."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import ETCD, HOST, ZONE
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    AuditFacts,
    Check,
    CheckOutcome,
    layout_text,
    state_of,
    unknown_members,
)

# fd-quorum-etcd-LEVEL: a majority of etcd survives the loss of any one host or zone, both with all members healthy
# and with those that are healthy now.

_SAFETY_TEXTS = {True: "safe", False: "unsafe", None: "not known"}


def _quorum(level: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        unknown = unknown_members(facts, ETCD)
        if unknown is not None:
            return unknown
        found = facts.spread(facts.layout.nodes_of(ETCD), level)
        by_design = found.judge(spread.quorum)
        unhealthy = tuple(member.node for member in facts.layout.members[ETCD] if not member.healthy)
        holds = by_design if not unhealthy or by_design is False else _quorum_now(facts, level)
        message = f"etcd: {layout_text(found)}"
        if holds is False:
            message = f"{message}; losing one {level} can take the majority"
        if unhealthy:
            message = f"{message}; now {len(unhealthy)} of {found.n} unhealthy, by design {_SAFETY_TEXTS[by_design]}"
        single = [name for names in found.nodes_by_domain.values() if len(names) > (found.n - 1) // 2 for name in names]
        names = (*found.unknown, *unhealthy) if holds is None else (*single, *unhealthy)
        fix = f"spread etcd so that no {level} holds more than {(found.n - 1) // 2} of {found.n}"
        if found.n < 3:
            fix = "run three members of etcd at least"
        evidence = facts.layout.component_evidence[ETCD]
        return CheckOutcome(state_of(holds), message, tuple(dict.fromkeys(names)), evidence, "" if holds else fix)

    return run


def _quorum_now(facts: AuditFacts, level: str) -> bool | None:
    """Whether the remaining healthy members are a majority of all members, whichever domain is lost."""
    members = facts.layout.members[ETCD]
    healthy = [facts.known[member.node] for member in members if member.healthy and member.node in facts.known]
    need = len(members) // 2 + 1
    return facts.spread(healthy, level).judge(lambda n, fullest: n - fullest >= need)


QUORUM = tuple(
    Check(f"fd-quorum-etcd-{level}", f"A majority of etcd survives any one {level}", "etcd quorum", _quorum(level))
    for level in (HOST, ZONE)
)


# fd-odd-etcd: the number of etcd members is odd, because an additional even member tolerates no further loss.


def _odd(facts: AuditFacts) -> CheckOutcome:
    unknown = unknown_members(facts, ETCD)
    if unknown is not None:
        return unknown
    n = len(facts.layout.members[ETCD])
    evidence = facts.layout.component_evidence[ETCD]
    if n % 2:
        return CheckOutcome(HOLDS, f"{n} member{'s'[: n != 1]} of etcd", (), evidence)
    return CheckOutcome(BROKEN, f"{n} members of etcd survive no more losses than {max(n - 1, 0)} would", (), evidence)


ODD = (Check("fd-odd-etcd", "An odd number of etcd members", "etcd quorum", _odd),)
