"""Host labels name the machine, not the node, by one key and everywhere; a default zone says nothing."""

from __future__ import annotations

from bayplan.auditing.catalogue import DEFAULT_ZONE, KEYS
from bayplan.auditing.layout import DECLARED, HOST, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, Facts, Outcome


def _vacuous(facts: Facts) -> Outcome:
    labelled = [node for node in facts.layout.nodes if HOST in node.keys]
    empty = tuple(node.name for node in labelled if node.vacuous)
    if not labelled:
        return Outcome(NOT_APPLICABLE, "no node has a host label")
    if empty:
        message = f"the host label of {len(empty)} nodes names the node itself and proves nothing"
        return Outcome(BROKEN, message, empty, DECLARED, "set it to the id of the hypervisor")
    return Outcome(HOLDS, "host labels differ from the nodes' own names and ids", (), DECLARED)


def _mixed(facts: Facts) -> Outcome:
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
        return Outcome(NOT_APPLICABLE, "no node has a host label")
    keys = ", ".join(sorted(used))
    if disagreeing:
        return Outcome(BROKEN, f"{keys} disagree", tuple(disagreeing), DECLARED)
    if max(used.values()) < len(labelled):
        return Outcome(BROKEN, f"no one of {keys} is on all nodes", (), DECLARED, "use one key on all nodes")
    return Outcome(HOLDS, f"hosts are labelled by {keys}", (), DECLARED)


def _uninformative(facts: Facts) -> Outcome:
    zones = {node.at(ZONE) for node in facts.layout.nodes} - {None}
    if not zones:
        return Outcome(NOT_APPLICABLE, "no node has a zone label")
    if zones == {DEFAULT_ZONE}:
        message = f"the only zone is {DEFAULT_ZONE}, the default of OpenStack: it tells nothing"
        return Outcome(BROKEN, message, (), DECLARED)
    return Outcome(HOLDS, f"{len(zones)} zone{'s'[: len(zones) != 1]}", (), DECLARED)


CHECKS = (
    Check("lbl-host-vacuous", "Host labels name the physical machine", "SCS-0214-v2 draft", _vacuous),
    Check("lbl-mixed-keys", "One host label everywhere", "label catalogue", _mixed),
    Check("lbl-zone-uninformative", "Zones tell something", "label catalogue", _uninformative),
)
