"""Every role that a node has, another node has too."""

from __future__ import annotations

from bayplan.auditing.layout import DECLARED
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, CheckOutcome, Facts

_PREFIX = "node-role.kubernetes.io/"


def _run(facts: Facts) -> CheckOutcome:
    holders: dict[str, list[str]] = {}
    for node in facts.layout.nodes:
        for key in node.labels:
            if key.startswith(_PREFIX):
                holders.setdefault(key.removeprefix(_PREFIX), []).append(node.name)
    alone = {role: names[0] for role, names in sorted(holders.items()) if len(names) == 1}
    if alone:
        message = "; ".join(f"only {name} is {role}" for role, name in alone.items())
        return CheckOutcome(
            BROKEN, message, tuple(dict.fromkeys(alone.values())), DECLARED, "add a second node of each role"
        )
    if not holders:
        return CheckOutcome(NOT_APPLICABLE, "no node has a role label")
    return CheckOutcome(HOLDS, f"{', '.join(sorted(holders))}: two nodes each or more", (), DECLARED)


CHECKS = (Check("bsi-every-role-twice", "Several nodes of every role", "BSI APP.4.4.A19", _run),)
