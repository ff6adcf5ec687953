"""The reports of one or several clusters as one text of each format. `audit_report` has what one report contains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.auditing.audit import FAILED, UNDECIDED, WARN, Audit
from bayplan.auditing.repairing.repair_proposal import Repair
from bayplan.writing import audit_formats, audit_report, survival_report, tables, versioned
from bayplan.writing.drawings import Picture
from bayplan.writing.provenance import Provenance
from bayplan.writing.tables import Table

LIST_KIND = "AuditReportList"


class ClusterReport(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of one cluster, and what a report has besides its verdicts. The only cluster may have no name."""

    cluster: str
    audit: Audit
    passed: bool
    allow_undecided: bool
    notes: Sequence[str]
    places: Mapping[str, tuple[str, int]]
    provenance: Provenance
    repair: Repair | None = None


def text(reports: Sequence[ClusterReport], *, with_inapplicable: bool, width: int | None) -> str:
    """For people: the tables of each cluster, then a row for each."""
    parts = []
    for report in reports:
        heading = f"Cluster {tables.printable(report.cluster)}\n\n" if report.cluster else ""
        parts.append(heading + _text_of_one(report, with_inapplicable=with_inapplicable, width=width))
    if len(reports) > 1:
        parts.append(tables.rendered(overview(reports), width))
    return "\n".join(parts)


def _text_of_one(report: ClusterReport, *, with_inapplicable: bool, width: int | None) -> str:
    audit = report.audit
    drawn = [audit_report.matrix(audit.layout), audit_report.checks_table(audit, with_inapplicable=with_inapplicable)]
    if audit.survival is not None and audit.survival.levels:
        drawn += [survival_report.levels_table(audit.survival), survival_report.events_table(audit.survival)]
    texts = [tables.rendered(table, width) for table in drawn if table.rows]
    texts += [todo] if (todo := audit_report.todo_text(audit)) else []
    texts.append(f"{audit_report.summary(audit, passed=report.passed)}\n")
    if report.repair is not None:
        texts.append(audit_report.repair_text(report.repair, audit))
    texts.append("".join(f"{tables.printable(line)}\n" for line in report.provenance.lines()))
    return "\n".join(texts)


def overview(reports: Sequence[ClusterReport]) -> Table:
    """One row per cluster."""
    rows = []
    for report in reports:
        verdicts = [result.verdict for result in report.audit.results]
        counts = [str(verdicts.count(verdict)) for verdict in (FAILED, WARN, UNDECIDED)]
        stage = str(report.audit.stage) if report.audit.stage else "-"
        rows.append((report.cluster, "passed" if report.passed else "not passed", *counts, stage))
    return Table(("CLUSTER", "RESULT", FAILED, WARN, UNDECIDED, "STAGE"), rows)


def content(reports: Sequence[ClusterReport]) -> dict[str, Any]:
    """An AuditReport, or an AuditReportList of several, each with the name of its cluster."""
    items = [
        audit_report.document(
            report.audit, passed=report.passed, notes=report.notes, repair=report.repair, provenance=report.provenance
        )
        for report in reports
    ]
    named = [
        {**item, "cluster": report.cluster} if report.cluster else item
        for item, report in zip(items, reports, strict=True)
    ]
    if len(named) == 1:
        return named[0]
    passed = all(report.passed for report in reports)
    return versioned.document(LIST_KIND, {"passed": passed, "items": named})


def markdown(reports: Sequence[ClusterReport]) -> str:
    parts = []
    if len(reports) > 1:
        parts.append(f"# Audit of {len(reports)} clusters\n\n{audit_report.markdown_table(overview(reports))}\n")
    parts += [
        audit_report.markdown(
            report.audit,
            passed=report.passed,
            repair=report.repair,
            provenance=report.provenance,
            cluster=report.cluster,
        )
        for report in reports
    ]
    return "\n".join(parts)


def html_page(reports: Sequence[ClusterReport], pictures: Sequence[Picture]) -> str:
    """For an auditor: for each cluster the result, the layout as a picture and a table, verdicts, evidence, inputs."""
    from bayplan.writing import html_report

    parts: list[tuple[str, Table | str | Picture]] = []
    for report, picture in zip(reports, pictures, strict=True):
        audit, named = report.audit, f"{report.cluster}: " if report.cluster else ""
        parts += [
            (f"{named}Result", audit_report.summary(audit, passed=report.passed)),
            (f"{named}Layout", picture),
            (f"{named}Domains", audit_report.matrix(audit.layout)),
            (f"{named}Checks", audit_report.checks_table(audit, with_inapplicable=True)),
        ]
        if audit.survival is not None and audit.survival.levels:
            parts.append((f"{named}What each loss affects", survival_report.levels_table(audit.survival)))
            worst = survival_report.events_table(audit.survival)
            parts += [(f"{named}Worst losses", worst)] if worst.rows else []
        parts += [(f"{named}To do", todo)] if (todo := audit_report.todo_text(audit)) else []
        parts += [(f"{named}Notes", "\n".join(report.notes))] if report.notes else []
        if report.repair is not None:
            parts.append((f"{named}Repair", audit_report.repair_text(report.repair, audit)))
        parts.append((f"{named}Audited", "\n".join(report.provenance.lines())))
    if len(reports) > 1:
        parts.insert(0, ("Overview", overview(reports)))
    return html_report.sections_page("Audit", parts)


def junit(reports: Sequence[ClusterReport]) -> str:
    """One suite per cluster."""
    return audit_formats.junit([
        audit_formats.junit_suite(
            report.audit, allow_undecided=report.allow_undecided, provenance=report.provenance, cluster=report.cluster
        )
        for report in reports
    ])  # fmt: skip


def sarif(reports: Sequence[ClusterReport]) -> str:
    """One run per cluster."""
    runs = []
    for report in reports:
        file = next((name for name, _ in report.places.values()), "")
        runs.append(
            audit_formats.sarif_run(report.audit, report.places, file, report.provenance, cluster=report.cluster)
        )
    return versioned.as_json(audit_formats.sarif(runs))


def scs(report: ClusterReport) -> str:
    return audit_formats.scs(report.audit, allow_undecided=report.allow_undecided, provenance=report.provenance)


def prometheus(reports: Sequence[ClusterReport]) -> str:
    """All gauges, with the label `cluster` where clusters have names; what the reports are made from is in comments."""
    lines = [f"# {tables.printable(line)}" for report in reports for line in report.provenance.lines()]
    samples = [
        (name, {"cluster": report.cluster, **labels} if report.cluster else labels, value)
        for report in reports
        for name, labels, value in audit_formats.gauge_samples(report.audit, passed=report.passed)
    ]
    return audit_formats.prometheus(samples, lines)
