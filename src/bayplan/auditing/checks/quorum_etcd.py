"""A majority of etcd survives the loss of any one host or zone, by design and as things are now."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import ETCD, HOST, ZONE
from bayplan.auditing.outcomes import Check, CheckOutcome, Facts, layout_text, state_of, unknown_members

_WORDS = {True: "safe", False: "unsafe", None: "not known"}


def _run(level: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        absent = unknown_members(facts, ETCD)
        if absent is not None:
            return absent
        found = facts.spread(facts.layout.nodes_of(ETCD), level)
        design = found.judge(spread.quorum)
        sick = tuple(member.node for member in facts.layout.members[ETCD] if not member.healthy)
        holds = design if not sick or design is False else _now(facts, level)
        message = f"etcd: {layout_text(found)}"
        if holds is False:
            message = f"{message}; losing one {level} can take the majority"
        if sick:
            message = f"{message}; now {len(sick)} of {found.n} unhealthy, by design {_WORDS[design]}"
        single = [name for names in found.nodes_by_domain.values() if len(names) > (found.n - 1) // 2 for name in names]
        names = (*found.unknown, *sick) if holds is None else (*single, *sick)
        fix = f"spread etcd so that no {level} holds more than {(found.n - 1) // 2} of {found.n}"
        if found.n < 3:
            fix = "run three members of etcd at least"
        evidence = facts.layout.component_evidence[ETCD]
        return CheckOutcome(state_of(holds), message, tuple(dict.fromkeys(names)), evidence, "" if holds else fix)

    return run


def _now(facts: Facts, level: str) -> bool | None:
    """Whether the healthy members that are left are a majority of all members, whichever domain is lost."""
    members = facts.layout.members[ETCD]
    healthy = [facts.known[member.node] for member in members if member.healthy and member.node in facts.known]
    need = len(members) // 2 + 1
    return facts.spread(healthy, level).judge(lambda n, fullest: n - fullest >= need)


CHECKS = tuple(
    Check(f"fd-quorum-etcd-{level}", f"A majority of etcd survives any one {level}", "etcd quorum", _run(level))
    for level in (HOST, ZONE)
)
