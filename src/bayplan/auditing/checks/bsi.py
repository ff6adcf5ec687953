"""Checks of BSI IT-Grundschutz, requirement APP.4.4.A19: high availability of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.layout import DECLARED, ZONE, AuditNode
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    NO_PODS,
    NOT_APPLICABLE,
    OPEN,
    AuditFacts,
    Check,
    CheckOutcome,
    hidden,
    layout_text,
    workloads_text,
)

SOURCE = "BSI APP.4.4.A19"
INFRA_LABEL = "node-role.kubernetes.io/infra"
_ROLE_PREFIX = "node-role.kubernetes.io/"

# bsi-cp-three-nodes: there are at least three control-plane nodes.


def _three_nodes(facts: AuditFacts) -> CheckOutcome:
    names = tuple(node.name for node in facts.layout.control_plane)
    if not names:
        return hidden()
    return CheckOutcome(HOLDS if len(names) >= 3 else BROKEN, f"{len(names)} control-plane nodes", names, DECLARED)


THREE_NODES = (Check("bsi-cp-three-nodes", "Three control-plane nodes", SOURCE, _three_nodes),)


# bsi-cp-three-zones, bsi-worker-two-zones, bsi-infra-two-zones: the nodes of each role span so many zones.


def _at_least(
    n_zones: int, what: str, choose: Callable[[AuditFacts], list[AuditNode]]
) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        nodes = choose(facts)
        if not nodes:
            return CheckOutcome(NOT_APPLICABLE, f"no {what}") if what != "control-plane nodes" else hidden()
        found = facts.spread(nodes, ZONE)
        state = HOLDS if found.fewest >= n_zones else BROKEN if found.most < n_zones else OPEN
        return CheckOutcome(state, f"{what}: {layout_text(found)}", found.unknown, found.evidence)

    return run


def _infra(facts: AuditFacts) -> list[AuditNode]:
    """By the label that OpenShift and others set on nodes for routers, registries and monitoring."""
    return [node for node in facts.layout.nodes if INFRA_LABEL in node.labels]


ZONES = (
    Check(
        "bsi-cp-three-zones",
        "Control plane over three zones",
        SOURCE,
        _at_least(3, "control-plane nodes", lambda facts: list(facts.layout.control_plane)),
    ),
    Check(
        "bsi-worker-two-zones",
        "Workers over two zones",
        SOURCE,
        _at_least(2, "workers", lambda facts: list(facts.layout.workers)),
    ),
    Check(
        "bsi-infra-two-zones",
        "Infrastructure nodes over two zones",
        SOURCE,
        _at_least(2, "infrastructure nodes", _infra),
    ),
)


# bsi-every-role-twice: every node role is held by at least two nodes.


def _every_role_twice(facts: AuditFacts) -> CheckOutcome:
    nodes_by_role: dict[str, list[str]] = {}
    for node in facts.layout.nodes:
        for key in node.labels:
            if key.startswith(_ROLE_PREFIX):
                nodes_by_role.setdefault(key.removeprefix(_ROLE_PREFIX), []).append(node.name)
    single = {role: names[0] for role, names in sorted(nodes_by_role.items()) if len(names) == 1}
    if single:
        message = "; ".join(f"only {name} is {role}" for role, name in single.items())
        fix = "add a second node of each role"
        return CheckOutcome(BROKEN, message, tuple(dict.fromkeys(single.values())), DECLARED, fix)
    if not nodes_by_role:
        return CheckOutcome(NOT_APPLICABLE, "no node has a role label")
    return CheckOutcome(HOLDS, f"{', '.join(sorted(nodes_by_role))}: two nodes each or more", (), DECLARED)


EVERY_ROLE_TWICE = (Check("bsi-every-role-twice", "Several nodes of every role", SOURCE, _every_role_twice),)


# bsi-stanza-KIND: Deployments and StatefulSets of several replicas have anti-affinity or spread constraints.


def _stanza(kind: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        if facts.workloads is None:
            return NO_PODS
        unspread = tuple(name for name in facts.workloads.unspread if name.startswith(f"{kind} "))
        if not unspread:
            return CheckOutcome(HOLDS, f"every {kind} of several replicas asks to be spread", (), DECLARED)
        message = f"neither anti-affinity nor spread constraints in {workloads_text(unspread)}"
        fix = "add a stanza; --repair writes it"
        return CheckOutcome(BROKEN, message, (), DECLARED, fix, workloads=unspread)

    return run


STANZA = tuple(
    Check(f"bsi-stanza-{kind.lower()}", f"Every {kind} asks to be spread", SOURCE, _stanza(kind))
    for kind in ("Deployment", "StatefulSet")
)
