"""An audit and its repair plan as tables, Markdown and JSON. It does not know how verdicts are reached."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from bayplan.auditing.audit import (
    FAILED,
    NA,
    PASS,
    STAGE_ID,
    UNDECIDED,
    WARN,
    Audit,
    CheckResult,
    RedundancyStage,
    StageRange,
)
from bayplan.auditing.layout import HOST, LEVELS, RACK, REGION, ZONE, AuditNode, Layout
from bayplan.auditing.repairing import instructions
from bayplan.auditing.repairing.plans import NodeMove
from bayplan.auditing.repairing.repair_proposal import Repair
from bayplan.auditing.stanzas import Stanza
from bayplan.auditing.workload_groups import by_namespace
from bayplan.writing import survival_report, tables, versioned
from bayplan.writing.provenance import Provenance
from bayplan.writing.tables import Table

KIND = "AuditReport"
UNKNOWN = "?"
VERDICTS = (PASS, FAILED, WARN, UNDECIDED, NA)
_MAX_MATRIX_ROWS = 40
_MAX_NAMED_NODES = 5
_MAX_CELL = 240  # characters; -o json has the whole text
_MARKUP = re.compile(r"[\\`*\[\]!|~]")
_STYLES = {FAILED: "red", WARN: "yellow", UNDECIDED: "magenta"}


def checks_table(audit: Audit, *, with_inapplicable: bool = False) -> Table:
    """One row per check; checks that do not apply are shown on request only."""
    shown = [r for r in audit.results if with_inapplicable or r.verdict != NA or r.id == STAGE_ID]
    rows = [
        (verdict_text(r), r.id, r.source, r.evidence or "-", tables.shortened(finding(r), _MAX_CELL)) for r in shown
    ]
    columns = ("VERDICT", "CHECK", "SOURCE", "EVIDENCE", "FINDING")
    return Table(columns, rows, [_STYLES.get(r.verdict, "") for r in shown])


def verdict_text(result: CheckResult) -> str:
    return f"{result.verdict} (accepted)" if result.accepted else result.verdict


def todo_text(audit: Audit) -> str:
    """What to do about each finding, and which findings were accepted, one line each; empty if there is nothing."""
    fixes = [
        f"  {r.id}: {tables.printable(tables.shortened(r.fix, _MAX_CELL))}" for r in _open_findings(audit) if r.fix
    ]
    accepted = [
        f"  {r.id}, through {r.accepted_until}: {tables.printable(r.accepted)}" for r in audit.results if r.accepted
    ]
    parts = [("What to do:", fixes), ("Accepted:", accepted)]
    return "\n".join("\n".join([title, *lines, ""]) for title, lines in parts if lines)


def _open_findings(audit: Audit) -> list[CheckResult]:
    return [r for r in audit.results if r.verdict in (FAILED, WARN, UNDECIDED) and not r.accepted]


def finding(result: CheckResult) -> str:
    """The message of a check, with the nodes that it concerns if the check did not pass."""
    if result.verdict not in (FAILED, WARN, UNDECIDED) or not result.nodes:
        return result.message
    return f"{result.message} ({tables.listed(result.nodes, _MAX_NAMED_NODES)})"


def matrix(layout: Layout) -> Table:
    """One row per host: the control-plane nodes by name, the workers by number."""
    rows: dict[tuple[str, ...], list[AuditNode]] = {}
    levels = [level for level in (REGION, ZONE, RACK, HOST) if level != RACK or any(n.at(RACK) for n in layout.nodes)]
    hosts = {member.node for members in layout.members.values() for member in members}
    # Of a hosting cluster only the nodes that run a part of the control plane are shown.
    for node in (*layout.nodes, *(node for node in layout.external if node.name in hosts)):
        rows.setdefault(tuple(node.at(level) or UNKNOWN for level in levels), []).append(node)
    ordered = sorted(rows.items())
    if len(ordered) > _MAX_MATRIX_ROWS:
        ordered = [(place, nodes) for place, nodes in ordered if any(not node.is_worker for node in nodes)]
    etcd = {member.node for member in layout.members.get("etcd", ())}
    drawn = [(*place, *_cells(nodes, etcd)) for place, nodes in ordered]
    return Table((*(level.upper() for level in levels), "CONTROL PLANE", "ETCD", "WORKERS"), drawn)


def _cells(nodes: Iterable[AuditNode], etcd: set[str]) -> tuple[str, str, str]:
    control = sorted(node.name for node in nodes if node.is_control_plane)
    members = sorted(node.name for node in nodes if node.name in etcd)
    n_workers = sum(node.is_worker for node in nodes)
    etcd_cell = str(len(members)) if members == control else ", ".join(members)
    return (", ".join(control) or "-", etcd_cell if members else "-", str(n_workers or "-"))


def summary(audit: Audit, *, passed: bool) -> str:
    """The result of the audit in one sentence."""
    counts = Counter(result.verdict for result in audit.results)
    numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    stage = f"; the control plane is {audit.stage}" if audit.stage else ""
    return f"{audit.profile.name}: {'passed' if passed else 'not passed'} ({numbers}){stage}"


def document(
    audit: Audit,
    *,
    passed: bool,
    notes: Sequence[str] = (),
    repair: Repair | None = None,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """The report as a versioned `AuditReport`; docs/reference/schemas/audit-report.schema.json is its schema."""
    counts = Counter(result.verdict for result in audit.results)
    content = {
        "profile": audit.profile.name,
        "passed": passed,
        "summary": {verdict: counts[verdict] for verdict in VERDICTS},
        "stage": _stage(audit.stage) if audit.stage else None,
        "checks": [_check(result) for result in audit.results],
        "layout": {
            "levels": list(LEVELS),
            "nodes": [_node(node) for node in audit.layout.nodes],
            "external": [_node(node) for node in audit.layout.external],
            "componentEvidence": dict(audit.layout.component_evidence),
        },
        "notes": list(notes),
        "survivability": survival_report.document(audit.survival, audit.workloads) if audit.survival else None,
        "provenance": provenance.document() if provenance is not None else None,
    }
    if repair is not None:
        content["repair"] = repair_document(repair, audit)
    return versioned.document(KIND, content)


def _stage(stage: RedundancyStage) -> dict[str, Any]:
    return {"distributed": _reached(stage.distributed), "lossSafe": _reached(stage.loss_safe)}


def _reached(reached: StageRange) -> dict[str, str]:
    return {"atLeast": reached.at_least, "atMost": reached.at_most}


def _check(result: CheckResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "title": result.title,
        "source": result.source,
        "verdict": result.verdict,
        "required": result.required,
        "message": result.message,
        "nodes": list(result.nodes),
        "workloads": by_namespace(result.workloads),
        "evidence": result.evidence or None,
        "fix": result.fix or None,
        "accepted": {"reason": result.accepted, "expires": result.accepted_until} if result.accepted else None,
    }


def _node(node: AuditNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "roles": list(node.roles),
        "ready": node.ready,
        "components": None if node.components is None else list(node.components),
        "domains": {level: node.at(level) for level in LEVELS},
        "evidence": dict(node.evidence),
    }


def markdown(
    audit: Audit,
    *,
    passed: bool,
    repair: Repair | None = None,
    provenance: Provenance | None = None,
    cluster: str = "",
) -> str:
    """For a CI step summary or a comment: the result, the layout, the checks, what to do, the losses, the inputs."""
    named = f" of {cluster}:" if cluster else ""
    parts = [
        f"## Audit{_escaped(named)} {_escaped(summary(audit, passed=passed))}",
        markdown_table(matrix(audit.layout)),
    ]
    rows = [(verdict_text(r), r.id, finding(r), r.source) for r in audit.results if r.verdict != NA]
    parts.append(markdown_table(Table(("Verdict", "Check", "Finding", "Source"), rows), code="Check"))
    todo = [f"- `{r.id}`: {_escaped(r.fix)}" for r in _open_findings(audit) if r.fix]
    if todo:
        parts.append("\n".join(["### What to do", "", *todo]))
    accepted = [f"- `{r.id}`, through {r.accepted_until}: {_escaped(r.accepted)}" for r in audit.results if r.accepted]
    if accepted:
        parts.append("\n".join(["### Accepted", "", *accepted]))
    if audit.survival is not None and audit.survival.levels:
        parts += ["### What each loss affects", markdown_table(survival_report.levels_table(audit.survival))]
        worst = survival_report.events_table(audit.survival)
        parts += [markdown_table(worst)] if worst.rows else []
    if repair is not None:
        fenced = repair_text(repair, audit).replace("```", "~~~").strip()
        parts.append(f"### Repair\n\n```\n{fenced}\n```")
    if provenance is not None:
        parts.append("\n".join(["### Made from", "", *(f"- {_escaped(line)}" for line in provenance.lines())]))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table, code: str = "") -> str:
    """A table; the cells of the column `code`, which are words of our own, are set as code."""
    rows = [
        [f"`{cell}`" if column == code else _escaped(cell) for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    lines = [table.columns, ["---"] * len(table.columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """The text on one line, without links, images and HTML: it may quote names that anybody chose."""
    safe = _MARKUP.sub(r"\\\g<0>", tables.printable(text)).replace("&", "&amp;").replace("<", "&lt;")
    # Renderers make a link of a bare address.
    return safe.replace("://", "&#58;//").replace("www.", "www&#46;")


def repair_text(repair: Repair, before: Audit) -> str:
    """The plan, how to carry it out, the result of the audit afterwards, and the patches for workloads."""
    plan, layout, after = repair.plan, before.layout, repair.after.layout
    parts = [("Repair plan", [*(instructions.summary(plan) or ["no node needs to move"]), *_outcome(repair, before)])]
    if plan.n_changes:
        parts.append(("With Cluster API", instructions.cluster_api(plan, layout, after)))
        parts.append(("With OpenStack", instructions.openstack(plan, layout, after)))
    workloads = [line for stanza in repair.stanzas for line in _patch_lines(stanza)]
    if repair.stanzas_left:
        workloads.append(f"# {repair.stanzas_left} more workloads need a patch: -o json lists them")
    if repair.unlabelled:
        names = ", ".join(repair.unlabelled)
        workloads.append(
            f"# the nodes have no label to spread these by; `bayplan audit labels` prints commands that set it: {names}"
        )
    if workloads:
        parts.append(("For workloads", workloads))
    blocks = ["\n".join([f"{title}:", *(f"  {tables.printable(line)}" for line in lines)]) for title, lines in parts]
    return "\n\n".join(blocks) + "\n"


def _outcome(repair: Repair, before: Audit) -> list[str]:
    """The result of the audit after the plan, and how many losses the control plane then tolerates."""
    gating = [result.id for result in repair.after.results if result.gates]
    if not repair.plan.n_changes:
        return [f"moving nodes does not fix {', '.join(gating)}"] if gating else []
    verdict = "passes" if not gating else f"does not pass yet: {', '.join(gating)}"
    tolerated = [
        f"losses of a {level} tolerated: {repair.plan.before.get(level, 0)} before, {n} after"
        for level, n in repair.plan.after.items()
    ]
    return [f"afterwards, {before.profile.name} {verdict}", *tolerated]


def _patch_lines(stanza: Stanza) -> list[str]:
    kind, _, path = stanza.group.partition(" ")
    namespace, _, name = path.partition("/")
    patch = msgspec.json.encode(stanza.patch).decode()
    words = ["kubectl", "-n", namespace, "patch", *instructions.kubectl_words(kind.lower(), name), "--patch", patch]
    if stanza.works:
        remark = f"# {stanza.group}: {stanza.kind} over {stanza.topology_key}, checked: every replica fits"
    else:
        left = f"{len(stanza.stranded)} replicas do not fit" if stanza.stranded else "a single point of failure remains"
        remark = f"# {stanza.group}: {stanza.kind} over {stanza.topology_key} is not enough here: {left}"
    return [remark, shlex.join(words)]


def repair_document(repair: Repair, before: Audit) -> dict[str, Any]:
    """The repair plan as a part of the `AuditReport`, with its text lines."""
    plan, layout, after = repair.plan, before.layout, repair.after.layout
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
        "clusterApi": instructions.cluster_api(plan, layout, after) if plan.n_changes else [],
        "openstack": instructions.openstack(plan, layout, after) if plan.n_changes else [],
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
