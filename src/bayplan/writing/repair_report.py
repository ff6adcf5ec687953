"""A repair for people (text) and for programs (JSON). Knows nothing of how it was found."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from bayplan.auditing.audit import Audit
from bayplan.auditing.repairing import instructions
from bayplan.auditing.repairing.plans import NodeMove
from bayplan.auditing.repairing.repair_proposal import Repair
from bayplan.auditing.stanzas import Stanza
from bayplan.writing import untrusted


def text(repair: Repair, before: Audit) -> str:
    """The plan, how to carry it out, what the audit would say then, and the patches for workloads."""
    plan, layout = repair.plan, before.layout
    parts = [("Repair plan", [*(instructions.summary(plan) or ["no node has to move"]), *_outcome(repair, before)])]
    if plan.n_changes:
        parts.append(("With Cluster API", instructions.cluster_api(plan, layout)))
        parts.append(("With OpenStack", instructions.openstack(plan, layout)))
    workloads = [line for stanza in repair.stanzas for line in _patch_lines(stanza)]
    if repair.stanzas_left:
        workloads.append(f"# {repair.stanzas_left} more workloads want one: see them in the JSON of the audit")
    if repair.unlabelled:
        names = ", ".join(repair.unlabelled)
        workloads.append(f"# the nodes carry no label to spread these by; `bayplan audit labels` writes it: {names}")
    if workloads:
        parts.append(("For workloads", workloads))
    blocks = ["\n".join([f"{title}:", *(f"  {untrusted.clean(line)}" for line in lines)]) for title, lines in parts]
    return "\n\n".join(blocks) + "\n"


def _outcome(repair: Repair, before: Audit) -> list[str]:
    """What the audit says of the planned state, and how many losses it survives."""
    gating = [result.id for result in repair.after.results if result.gates]
    if not repair.plan.n_changes:
        return [f"moving nodes does not mend {', '.join(gating)}"] if gating else []
    verdict = "passes" if not gating else f"does not pass yet: {', '.join(gating)}"
    tolerated = [
        f"losses of a {level} tolerated: {repair.plan.before.get(level, 0)} before, {n} after"
        for level, n in repair.plan.after.items()
    ]
    return [f"after it, {before.profile.name} {verdict}", *tolerated]


def _patch_lines(stanza: Stanza) -> list[str]:
    kind, _, path = stanza.group.partition(" ")
    namespace, _, name = path.partition("/")
    patch = msgspec.json.encode(stanza.patch).decode()
    words = ["kubectl", "-n", namespace, "patch", kind.lower(), name, "--patch", patch]
    if stanza.works:
        remark = f"# {stanza.group}: {stanza.kind} over {stanza.topology_key}, tried: every replica finds room"
    else:
        left = f"{len(stanza.stranded)} without a place" if stanza.stranded else "still a single point"
        remark = f"# {stanza.group}: {stanza.kind} over {stanza.topology_key} is not enough here: {left}"
    return [remark, shlex.join(words)]


def document(repair: Repair, before: Audit) -> dict[str, Any]:
    """Everything, for programs; the lines for people too."""
    plan, layout = repair.plan, before.layout
    return {
        "passes": repair.after.passed(),
        "remaining": [result.id for result in repair.after.results if result.gates],
        "exact": plan.exact,
        "safe": plan.safe,
        "starts": [{"component": component, "node": node} for component, node in plan.starts],
        "adds": [_move(move) for move in plan.adds],
        "moves": [_move(move) for move in plan.moves],
        "further": {level: n for level, n in plan.further.items() if n},
        "unknown": list(plan.unknown),
        "tolerance": {
            level: {"before": plan.before.get(level, 0), "after": after} for level, after in plan.after.items()
        },
        "steps": instructions.summary(plan),
        "clusterApi": instructions.cluster_api(plan, layout) if plan.n_changes else [],
        "openstack": instructions.openstack(plan, layout) if plan.n_changes else [],
        "patches": [_patch(stanza) for stanza in repair.stanzas],
        "patchesLeft": repair.stanzas_left,
        "unlabelled": list(repair.unlabelled),
    }


def _move(move: NodeMove) -> dict[str, Any]:
    return {
        "node": move.node,
        "from": dict(move.source),
        "to": dict(move.target),
        "new": list(move.new),
        "how": move.how,
        "components": list(move.components),
    }


def _patch(stanza: Stanza) -> dict[str, Any]:
    return {
        "workload": stanza.group,
        "kind": stanza.kind,
        "topologyKey": stanza.topology_key,
        "works": stanza.works,
        "singlePoints": list(stanza.single_points),
        "withoutPlace": [one.key for one in stanza.stranded],
        "patch": stanza.patch,
    }
