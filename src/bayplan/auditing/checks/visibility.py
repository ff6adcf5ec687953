"""The control plane can be seen, and labels and running components say the same of who belongs to it."""

from __future__ import annotations

from bayplan.auditing.layout import INFERRED, OBSERVED
from bayplan.auditing.outcomes import BROKEN, HIDDEN, HOLDS, NOT_APPLICABLE, OPEN, Check, Facts, Outcome


def _hidden(facts: Facts) -> Outcome:
    if facts.hidden:
        return Outcome(OPEN, HIDDEN)
    names = tuple(node.name for node in facts.layout.control_plane)
    observed = OBSERVED in facts.layout.component_evidence.values()
    return Outcome(HOLDS, f"{len(names)} control-plane nodes", names, OBSERVED if observed else INFERRED)


def _mismatch(facts: Facts) -> Outcome:
    if OBSERVED not in facts.layout.component_evidence.values():
        return Outcome(NOT_APPLICABLE, "no component was seen running")
    seen = {
        member.node
        for component, members in facts.layout.members.items()
        if component != "etcd" and facts.layout.component_evidence[component] == OBSERVED
        for member in members
    }
    labelled = {node.name for node in facts.layout.nodes if node.role_labels}
    if labelled == seen:
        return Outcome(HOLDS, "role labels and running components agree", (), OBSERVED)
    texts = [f"{name} has the role but runs no component" for name in sorted(labelled - seen)]
    texts += [f"{name} runs a component without the role" for name in sorted(seen - labelled)]
    return Outcome(BROKEN, "; ".join(texts), tuple(sorted(labelled ^ seen)), OBSERVED)


CHECKS = (
    Check("cp-hidden", "The control plane is visible", "SCS-0214-v2", _hidden),
    Check("cp-role-mismatch", "Role labels match running components", "node roles", _mismatch),
)
