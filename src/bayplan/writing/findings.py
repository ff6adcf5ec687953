"""What `validate` found, for people and for machines. Knows nothing of the rules that were broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.writing import untrusted, versioned
from bayplan.writing.tables import Table

ERROR, WARNING = "error", "warning"


class Finding(msgspec.Struct, frozen=True):
    """One thing wrong, with its place; `reason` is the API server's word for it, if it would have one."""

    fault: Fault
    reason: str = ""
    severity: str = ERROR


class Report(msgspec.Struct, frozen=True):
    """Everything found, and how much was looked at."""

    findings: Sequence[Finding]
    n_objects: int
    n_files: int

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == ERROR]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == WARNING]


def table(report: Report) -> Table:
    """One row per error."""
    rows = [(place(f.fault), f.fault.subject, f.fault.path, f.fault.message) for f in report.errors]
    return Table(("FILE", "OBJECT", "FIELD", "PROBLEM"), rows)


def place(fault: Fault) -> str:
    """`file:line`, as editors and compilers write it."""
    return f"{fault.file}:{fault.line}" if fault.line else fault.file


def summary(report: Report) -> str:
    """How much is valid, in one sentence."""
    looked_at = f"{_counted(report.n_objects, 'object')} in {_counted(report.n_files, 'file')}"
    if not report.errors:
        return f"{looked_at}: all valid"
    return f"{looked_at}: {_counted(len(report.errors), 'error')}"


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def document(report: Report) -> dict[str, Any]:
    """The report as a versioned `ValidationReport`."""
    content = {
        "valid": not report.errors,
        "summary": {
            "objects": report.n_objects,
            "files": report.n_files,
            "errors": len(report.errors),
            "warnings": len(report.warnings),
        },
        "findings": [_item(finding) for finding in report.findings],
    }
    return versioned.document("ValidationReport", content)


def _item(finding: Finding) -> dict[str, Any]:
    fault = finding.fault
    return {
        "severity": finding.severity,
        "reason": finding.reason,
        "file": fault.file,
        "line": fault.line,
        "object": fault.subject,
        "field": fault.path,
        "message": fault.message,
    }


def sarif(report: Report, version: str) -> dict[str, Any]:
    """The report in SARIF 2.1.0, which code hosts show beside the changed lines."""
    ids = sorted({_rule_id(finding) for finding in report.findings})
    driver = {"name": "bayplan", "version": version, "rules": [{"id": rule_id} for rule_id in ids]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in report.findings]}],
    }


def _rule_id(finding: Finding) -> str:
    return finding.reason or "Unreadable"


def _result(finding: Finding) -> dict[str, Any]:
    fault = finding.fault
    physical = {"artifactLocation": {"uri": fault.file}, "region": {"startLine": max(fault.line, 1)}}
    message = untrusted.clean(": ".join(part for part in (fault.subject, fault.path, fault.message) if part))
    return {
        "ruleId": _rule_id(finding),
        "level": finding.severity,
        "message": {"text": message},
        "locations": [{"physicalLocation": physical}],
    }
