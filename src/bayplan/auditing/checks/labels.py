"""Checks of the labels that say where a node is: present, current, consistent and informative."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.catalogue import DEFAULT_ZONE, HOST_KEY, KEYS, REGION_KEY, ZONE_KEY
from bayplan.auditing.layout import DECLARED, HOST, INFERRED, OBSERVED, REGION, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, OPEN, AuditFacts, Check, CheckOutcome

# scs-0214-labels-zone, scs-0214-labels-region, lbl-host-present: every node carries a label for its zone, its region
# and its host.


def _present(level: str, key: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        # A host that is inferred from the provider needs no label.
        missing = tuple(
            node.name
            for node in facts.layout.nodes
            if level not in node.keys and not (level == HOST and node.evidence.get(HOST) == INFERRED)
        )
        if not missing:
            return CheckOutcome(HOLDS, f"all {len(facts.layout.nodes)} nodes have a {level} label", (), DECLARED)
        message = f"{len(missing)} of {len(facts.layout.nodes)} nodes have no {level} label"
        return CheckOutcome(BROKEN, message, missing, DECLARED, f"set {key} on them")

    return run


PRESENT = (
    Check("scs-0214-labels-zone", "Every node has a zone label", "SCS-0214-v2, MUST", _present(ZONE, ZONE_KEY)),
    Check("scs-0214-labels-region", "Every node has a region label", "SCS-0214-v2, MUST", _present(REGION, REGION_KEY)),
    Check(
        "lbl-host-present",
        "Every node has a host label",
        "SCS-0214-v2 draft, MUST; SCS-0213, should",
        _present(HOST, HOST_KEY),
    ),
)


# scs-0214-labels-current: labels agree with every second source: pods bound earlier, storage, Machines, an inventory.
# Obfuscated labels agree with an inventory if the same nodes share a domain by both.


def _current(facts: AuditFacts) -> CheckOutcome:
    wrong: dict[str, list[str]] = {}
    n_compared = 0
    for node in facts.layout.nodes:
        for source, level, value in node.other_sources:
            key = node.keys.get(level)
            if key is None:
                continue
            n_compared += 1
            if node.labels[key] != value:
                wrong.setdefault(node.name, []).append(f"{level} {node.labels[key]}, {source} says {value}")
    texts = [f"{node}: {', '.join(found)}" for node, found in wrong.items()]
    names = dict.fromkeys(wrong)
    for grouping in facts.layout.groupings:
        n_compared += len(grouping.pairs)
        for apart, text in grouping.conflicts():
            names.update(dict.fromkeys(apart))
            texts.append(text)
    if texts:
        fix = "set the labels again: they are not refreshed automatically"
        return CheckOutcome(BROKEN, "; ".join(texts), tuple(names), OBSERVED, fix)
    if not n_compared:
        message = "no second source to compare labels with; a stale one would not show"
        return CheckOutcome(OPEN, message, fix="give pods, Machines or an inventory too")
    values = f"{n_compared} value{'s'[: n_compared != 1]}"
    return CheckOutcome(HOLDS, f"labels agree with {values} of other sources", (), OBSERVED)


CURRENT = (Check("scs-0214-labels-current", "Labels are current", "SCS-0214-v2, MUST", _current),)


# lbl-host-one-zone, lbl-zone-one-region: a host is in one zone, a zone in one region.


def _one_parent(level: str, above: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        nodes: dict[str, list[str]] = {}
        parents: dict[str, set[str]] = {}
        for node in facts.layout.nodes:
            here, parent = node.at(level), node.at(above)
            if here and parent:
                nodes.setdefault(here, []).append(node.name)
                parents.setdefault(here, set()).add(parent)
        several = {here: sorted(found) for here, found in parents.items() if len(found) > 1}
        if several:
            message = "; ".join(f"{level} {here} is in {', '.join(found)}" for here, found in several.items())
            names = tuple(name for here in several for name in nodes[here])
            return CheckOutcome(BROKEN, message, names, DECLARED, "correct the labels: one of them is wrong")
        if not parents:
            return CheckOutcome(NOT_APPLICABLE, f"no node has both a {level} and a {above}")
        return CheckOutcome(HOLDS, f"every {level} is in one {above}", (), DECLARED)

    return run


ONE_PARENT = (
    Check("lbl-host-one-zone", "A host is in one zone", "KEP-1659", _one_parent(HOST, ZONE)),
    Check("lbl-zone-one-region", "A zone is in one region", "KEP-1659", _one_parent(ZONE, REGION)),
)


# lbl-host-vacuous: host labels name the physical machine, not the node itself.


def _host_names_machine(facts: AuditFacts) -> CheckOutcome:
    labelled = [node for node in facts.layout.nodes if HOST in node.keys]
    vacuous = tuple(node.name for node in labelled if node.vacuous)
    if not labelled:
        return CheckOutcome(NOT_APPLICABLE, "no node has a host label")
    if vacuous:
        message = f"the host label of {len(vacuous)} nodes names the node itself and proves nothing"
        return CheckOutcome(BROKEN, message, vacuous, DECLARED, "set it to the id of the hypervisor")
    return CheckOutcome(HOLDS, "host labels differ from the nodes' own names and ids", (), DECLARED)


HOST_VACUOUS = (
    Check("lbl-host-vacuous", "Host labels name the physical machine", "SCS-0214-v2 draft", _host_names_machine),
)


# lbl-mixed-keys: one label key names the host, on all nodes.


def _one_host_key(facts: AuditFacts) -> CheckOutcome:
    used: dict[str, int] = {}
    disagreeing = []
    labelled = [node for node in facts.layout.nodes if HOST in node.keys]
    for node in labelled:
        present = {key: node.labels[key] for key in {node.keys[HOST], *KEYS[HOST]} if node.labels.get(key)}
        for key in present:
            used[key] = used.get(key, 0) + 1
        if len(set(present.values())) > 1:
            disagreeing.append(node.name)
    if not used:
        return CheckOutcome(NOT_APPLICABLE, "no node has a host label")
    keys = ", ".join(sorted(used))
    if disagreeing:
        return CheckOutcome(BROKEN, f"{keys} disagree", tuple(disagreeing), DECLARED)
    if max(used.values()) < len(labelled):
        return CheckOutcome(BROKEN, f"no one of {keys} is on all nodes", (), DECLARED, "use one key on all nodes")
    return CheckOutcome(HOLDS, f"hosts are labelled by {keys}", (), DECLARED)


MIXED_KEYS = (Check("lbl-mixed-keys", "One host label everywhere", "label catalogue", _one_host_key),)


# lbl-zone-uninformative: a single zone that has the provider's default name carries no information.


def _zone_informative(facts: AuditFacts) -> CheckOutcome:
    zones = {node.at(ZONE) for node in facts.layout.nodes} - {None}
    if not zones:
        return CheckOutcome(NOT_APPLICABLE, "no node has a zone label")
    if zones == {DEFAULT_ZONE}:
        message = f"the only zone is {DEFAULT_ZONE}, the default of OpenStack, which carries no information"
        return CheckOutcome(BROKEN, message, (), DECLARED)
    return CheckOutcome(HOLDS, f"{len(zones)} zone{'s'[: len(zones) != 1]}", (), DECLARED)


ZONE_UNINFORMATIVE = (
    Check("lbl-zone-uninformative", "Zone labels are informative", "label catalogue", _zone_informative),
)
