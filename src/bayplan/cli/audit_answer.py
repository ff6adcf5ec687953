"""An audit in the form that was asked for. Knows nothing of how it came about."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import masking
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.auditing.audit import Audit
    from bayplan.auditing.repairing.repair_proposal import Repair


class ReportContext(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs into reports besides the verdicts."""

    passed: bool
    allow_undecided: bool
    subject: str
    exit_code: int
    notes: Sequence[str]
    places: Mapping[str, tuple[str, int]]


def written(result: Audit, output: str, context: ReportContext, console: Console, repair: Repair | None) -> str:
    """The answer as text."""
    import bayplan
    from bayplan.writing import audit_formats, audit_metrics, audit_report, versioned

    match output:
        case "junit":
            return audit_formats.junit(result, allow_undecided=context.allow_undecided)
        case "sarif":
            file = next(iter(context.places.values()))[0]
            return versioned.as_json(audit_formats.sarif(result, bayplan.__version__, context.places, file))
        case "markdown":
            return audit_report.markdown(result, passed=context.passed, repair=repair)
        case "scs":
            return audit_formats.scs(result, allow_undecided=context.allow_undecided)
        case "scs-report":
            return _scs_report(result, context)
        case "prometheus":
            return audit_metrics.text(result, passed=context.passed)
        case "table":
            return _tables(result, context, console, repair)
    document = audit_report.document(result, passed=context.passed, notes=context.notes, repair=repair)
    return versioned.written(document, output)


def _tables(result: Audit, context: ReportContext, console: Console, repair: Repair | None) -> str:
    from bayplan.writing import audit_report, repair_report, survival_report, tables

    drawn = [audit_report.matrix(result.layout), audit_report.checks_table(result, with_idle=console.verbosity > 0)]
    if result.survival is not None and result.survival.levels:
        drawn += [survival_report.levels_table(result.survival), survival_report.events_table(result.survival)]
    texts = [tables.rendered(table, console.table_width) for table in drawn if table.rows]
    texts.append(f"{audit_report.summary(result, passed=context.passed)}\n")
    if repair is not None:
        texts.append(repair_report.text(repair, result))
    return "\n".join(texts)


def _scs_report(result: Audit, context: ReportContext) -> str:
    from bayplan.writing import audit_formats, scs_report

    lines = audit_formats.scs(result, allow_undecided=context.allow_undecided).splitlines()
    results = audit_formats.scs_results(result, allow_undecided=context.allow_undecided)
    run = scs_report.ScsRun(
        subject=context.subject,
        checked_at=datetime.now(UTC).replace(microsecond=0, tzinfo=None),  # the runner's dates have no zone either
        argv=masking.arguments(click.get_current_context().command, sys.argv[1:]),  # the report is published
        exit_code=context.exit_code,
        run_id=str(uuid.uuid4()),
        invocation_id=str(uuid.uuid4()),
    )
    return scs_report.text(scs_report.report(lines, results, run))
