"""Workers span zones; in a single zone, hosts."""

from __future__ import annotations

from bayplan.auditing import spread
from bayplan.auditing.layout import HOST, ZONE
from bayplan.auditing.outcomes import NOT_APPLICABLE, Check, CheckOutcome, Facts, layout_text, state_of
from bayplan.auditing.spread import DomainSpread


def _run(facts: Facts) -> CheckOutcome:
    nodes = facts.layout.workers
    if len(nodes) < 2:
        return CheckOutcome(NOT_APPLICABLE, f"{len(nodes)} worker{'s'[: len(nodes) != 1]}: nothing to spread")
    found = facts.spread(nodes, ZONE)
    holds = found.judge(spread.separate)
    if holds is False:
        found = facts.spread(nodes, HOST)
        holds = found.judge(spread.separate)
    names = () if holds else found.unknown or tuple(node.name for node in nodes)
    return CheckOutcome(state_of(holds), f"workers: {layout_text(found)}{_skew(found)}", names, found.evidence)


def _skew(found: DomainSpread) -> str:
    """How uneven it is, where every domain is known: the difference between the fullest and the emptiest in use."""
    if found.unknown or len(found.counts) < 2 or found.counts[0] == found.counts[-1]:
        return ""
    share = round(100 * found.counts[0] / found.n)
    return f", skew {found.counts[0] - found.counts[-1]}, {share} % on the fullest"


CHECKS = (Check("scs-0214-worker-spread", "Workers over several zones or hosts", "SCS-0214-v2, RECOMMENDED", _run),)
