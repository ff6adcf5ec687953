"""A majority of etcd survives the loss of any one host or zone, by design and as things are now; its number is odd."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.checks import components
from bayplan.auditing.layout import ETCD, HOST, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, OPEN, Check, Facts, Outcome, layout_text, state_of


def _run(level: str) -> Callable[[Facts], Outcome]:
    def run(facts: Facts) -> Outcome:
        absent = components.unknown(facts, ETCD)
        if absent is not None:
            return absent
        found = facts.spread(facts.layout.nodes_of(ETCD), level)
        design = found.judge(spread.quorum)
        now = _now(facts, level)
        sick = tuple(member.node for member in facts.layout.members[ETCD] if not member.healthy)
        holds = design if not sick or design is False else now
        message = f"etcd: {layout_text(found)}"
        if holds is False:
            message = f"{message}; losing one {level} can take the majority"
        if sick:
            message = f"{message}; now {len(sick)} of {found.n} unhealthy, by design {_word(design)}"
        single = [name for names in found.nodes_by_domain.values() if len(names) > (found.n - 1) // 2 for name in names]
        names = (*found.unknown, *sick) if holds is None else (*single, *sick)
        fix = f"spread etcd so that no {level} holds more than {(found.n - 1) // 2} of {found.n}"
        if found.n < 3:
            fix = "run three members of etcd at least"
        evidence = facts.layout.component_evidence[ETCD]
        return Outcome(state_of(holds), message, tuple(dict.fromkeys(names)), evidence, "" if holds else fix)

    return run


def _word(holds: bool | None) -> str:
    return {True: "safe", False: "unsafe", None: "not known"}[holds]


def _now(facts: Facts, level: str) -> bool | None:
    """Whether the healthy members that are left are a majority of all members, whichever domain is lost."""
    members = facts.layout.members[ETCD]
    healthy = [facts.known[member.node] for member in members if member.healthy and member.node in facts.known]
    need = len(members) // 2 + 1
    return facts.spread(healthy, level).judge(lambda n, fullest: n - fullest >= need)


def _odd(facts: Facts) -> Outcome:
    absent = components.unknown(facts, ETCD)
    if absent is not None:
        return absent
    n = len(facts.layout.members[ETCD])
    evidence = facts.layout.component_evidence[ETCD]
    if n % 2:
        return Outcome(HOLDS, f"{n} member{'s'[: n != 1]} of etcd", (), evidence)
    return Outcome(BROKEN, f"{n} members of etcd survive no more losses than {max(n - 1, 0)} would", (), evidence)


def _each(level: str) -> Callable[[Facts], Outcome]:
    """Every component keeps one healthy instance whichever domain is lost."""

    def run(facts: Facts) -> Outcome:
        weak: list[str] = []
        unsure: list[str] = []
        evidence = ""
        for component, members in facts.layout.members.items():
            healthy = [facts.known[m.node] for m in members if m.healthy and m.node in facts.known]
            holds = facts.spread(healthy, level).judge(spread.separate)
            evidence = facts.layout.component_evidence[component]
            if not holds:
                (unsure if holds is None else weak).append(component)
        if not facts.layout.members:
            return components.unknown(facts, ETCD) or Outcome(OPEN, "no component is known")
        if weak:
            return Outcome(BROKEN, f"one {level} can take all of {', '.join(weak)}", (), evidence)
        if unsure:
            return Outcome(OPEN, f"one {level} may hold all of {', '.join(unsure)}", (), evidence)
        return Outcome(HOLDS, f"no single {level} holds all of a component", (), evidence)

    return run


CHECKS = (
    *(
        Check(f"fd-quorum-etcd-{level}", f"A majority of etcd survives any one {level}", "etcd quorum", _run(level))
        for level in (HOST, ZONE)
    ),
    Check("fd-odd-etcd", "An odd number of etcd members", "etcd quorum", _odd),
    *(
        Check(f"fd-n1-component-{level}", f"Every component survives any one {level}", "N-1", _each(level))
        for level in (HOST, ZONE)
    ),
)
