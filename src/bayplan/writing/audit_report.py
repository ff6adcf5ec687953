"""An audit for people (tables, Markdown) and for programs (JSON). Knows nothing of how verdicts come about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bayplan.auditing.audit import (
    FAILED,
    NA,
    PASS,
    STAGE_ID,
    UNDECIDED,
    WARN,
    Audit,
    RedundancyStage,
    Result,
    StageRange,
)
from bayplan.auditing.layout import HOST, LEVELS, RACK, REGION, ZONE, AuditNode, Layout
from bayplan.auditing.repairing.repair_proposal import Repair
from bayplan.auditing.workload_groups import by_namespace
from bayplan.writing import repair_report, survival_report, untrusted, versioned
from bayplan.writing.tables import Table

KIND = "AuditReport"
UNKNOWN = "?"
VERDICTS = (PASS, FAILED, WARN, UNDECIDED, NA)
_MOST_ROWS = 40
_STYLES = {FAILED: "red", WARN: "yellow", UNDECIDED: "magenta"}


def checks_table(audit: Audit, *, with_idle: bool = False) -> Table:
    """One row per check; those that do not apply only if they are wanted."""
    shown = [r for r in audit.results if with_idle or r.verdict != NA or r.id == STAGE_ID]
    rows = [(r.verdict, r.id, r.evidence or "-", told(r)) for r in shown]
    return Table(("VERDICT", "CHECK", "EVIDENCE", "FINDING"), rows, [_STYLES.get(r.verdict, "") for r in shown])


def told(result: Result) -> str:
    """The finding, and on which nodes where something is to be done."""
    if result.verdict not in (FAILED, WARN, UNDECIDED) or not result.nodes:
        return result.message
    shown = ", ".join(result.nodes[:5])
    more = f" and {len(result.nodes) - 5} more" if len(result.nodes) > 5 else ""
    return f"{result.message} ({shown}{more})"


def matrix(layout: Layout) -> Table:
    """Who stands where: a row per host with the control plane by name and workers by number."""
    rows: dict[tuple[str, ...], list[AuditNode]] = {}
    levels = [level for level in (REGION, ZONE, RACK, HOST) if level != RACK or any(n.at(RACK) for n in layout.nodes)]
    hosts = {member.node for members in layout.members.values() for member in members}
    # Of a hosting cluster only the nodes matter that hold a part of the control plane.
    for node in (*layout.nodes, *(node for node in layout.external if node.name in hosts)):
        rows.setdefault(tuple(node.at(level) or UNKNOWN for level in levels), []).append(node)
    ordered = sorted(rows.items())
    if len(ordered) > _MOST_ROWS:
        ordered = [(place, nodes) for place, nodes in ordered if any(not node.is_worker for node in nodes)]
    etcd = {member.node for member in layout.members.get("etcd", ())}
    drawn = [(*place, *_cells(nodes, etcd)) for place, nodes in ordered]
    return Table((*(level.upper() for level in levels), "CONTROL PLANE", "ETCD", "WORKERS"), drawn)


def _cells(nodes: Iterable[AuditNode], etcd: set[str]) -> tuple[str, str, str]:
    control = sorted(node.name for node in nodes if node.is_control_plane)
    members = sorted(node.name for node in nodes if node.name in etcd)
    n_workers = sum(node.is_worker for node in nodes)
    told_members = str(len(members)) if members == control else ", ".join(members)
    return (", ".join(control) or "-", told_members if members else "-", str(n_workers or "-"))


def summary(audit: Audit, *, passed: bool) -> str:
    """The whole in one sentence."""
    counts = Counter(result.verdict for result in audit.results)
    numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    stage = f"; the control plane is {audit.stage}" if audit.stage else ""
    return f"{audit.profile.name}: {'passed' if passed else 'not passed'} ({numbers}){stage}"


def document(audit: Audit, *, passed: bool, notes: Sequence[str] = (), repair: Repair | None = None) -> dict[str, Any]:
    """The report as a versioned `AuditReport`; docs/reference/audit-report.schema.json is its schema."""
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
    }
    if repair is not None:
        content["repair"] = repair_report.document(repair, audit)
    return versioned.document(KIND, content)


def _stage(stage: RedundancyStage) -> dict[str, Any]:
    return {"distributed": _reached(stage.distributed), "lossSafe": _reached(stage.loss_safe)}


def _reached(reached: StageRange) -> dict[str, str]:
    return {"atLeast": reached.at_least, "atMost": reached.at_most}


def _check(result: Result) -> dict[str, Any]:
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


def markdown(audit: Audit, *, passed: bool, repair: Repair | None = None) -> str:
    """For a step summary or a comment: the sentence, the layout, the checks, losses, what to do."""
    parts = [f"## Audit {_escaped(summary(audit, passed=passed))}", _rows(matrix(audit.layout))]
    rows = [(r.verdict, f"`{r.id}`", told(r), r.source) for r in audit.results if r.verdict != NA]
    parts.append(_rows(Table(("Verdict", "Check", "Finding", "Source"), rows)))
    todo = [f"- `{r.id}`: {_escaped(r.fix)}" for r in audit.results if r.fix and r.verdict in (FAILED, WARN, UNDECIDED)]
    if todo:
        parts.append("\n".join(["### What to do", "", *todo]))
    if audit.survival is not None and audit.survival.levels:
        parts += ["### What a loss takes with it", _rows(survival_report.levels_table(audit.survival))]
        worst = survival_report.events_table(audit.survival)
        parts += [_rows(worst)] if worst.rows else []
    if repair is not None:
        fenced = repair_report.text(repair, audit).replace("```", "~~~").strip()
        parts.append(f"### Repair\n\n```\n{fenced}\n```")
    return "\n\n".join(parts) + "\n"


def _rows(table: Table) -> str:
    lines = [table.columns, ["---"] * len(table.columns), *([_escaped(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """On one line, with nothing that ends a cell or starts markup of its own."""
    return untrusted.clean(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
