"""The findings of `validate` as a table, a document and SARIF. It does not know the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

ERROR, WARNING = "error", "warning"
UNREADABLE, MALFORMED, UNKNOWN_FIELD, WARNED = "Unreadable", "Malformed", "UnknownField", "Warning"
# Reason → description for SARIF. The first four are Bayplan's, the others those of an API server.
_MEANINGS = {
    UNREADABLE: "The file cannot be read",
    MALFORMED: "A value has the wrong type, the kind is unknown, or the object is in the input twice",
    UNKNOWN_FIELD: "The kind has no such field",
    WARNED: "The object is admitted, but probably has a mistake",
    "FieldValueInvalid": "The value violates a rule of the API server or of the guard",
    "FieldValueRequired": "The field must be set",
    "FieldValueForbidden": "The field must not have this value",
    "FieldValueDuplicate": "The value is a duplicate",
    "FieldValueNotSupported": "The value is not one of the supported values",
    "FieldValueTooLong": "The value is too long",
    "FieldValueTooMany": "The list has too many items",
    "FieldValueNotFound": "There is no object with this name",
    "FieldValueTypeInvalid": "The value does not have the type of the field",
}


class ValidationFinding(msgspec.Struct, frozen=True):
    """One fault; `reason` is the cause that an API server reports, or one of the four above."""

    fault: Fault
    reason: str = MALFORMED
    severity: str = ERROR


class ValidationReport(msgspec.Struct, frozen=True):
    """All findings, and the number of checked objects and files; `unchecked` counts the other objects by kind."""

    findings: Sequence[ValidationFinding]
    n_objects: int
    n_files: int
    unchecked: Mapping[str, int] = {}

    @property
    def errors(self) -> list[ValidationFinding]:
        return [finding for finding in self.findings if finding.severity == ERROR]

    @property
    def warnings(self) -> list[ValidationFinding]:
        return [finding for finding in self.findings if finding.severity == WARNING]

    @property
    def all_read(self) -> bool:
        """Whether every file could be read; otherwise the report is incomplete."""
        return all(finding.reason != UNREADABLE for finding in self.findings)


def table(report: ValidationReport) -> Table:
    """One row per error."""
    rows = [(location(f.fault), f.fault.subject, f.fault.path, f.fault.message) for f in report.errors]
    return Table(("FILE", "OBJECT", "FIELD", "PROBLEM"), rows)


def location(fault: Fault) -> str:
    """`file:line`, as compilers print it."""
    return f"{fault.file}:{fault.line}" if fault.line else fault.file


def summary(report: ValidationReport) -> str:
    """One line with the number of objects and errors, and one with the objects that were not checked, if any."""
    checked = f"{tables.counted(report.n_objects, 'object')} in {tables.counted(report.n_files, 'file')}"
    if report.errors:
        verdict = tables.counted(len(report.errors), "error")
    else:
        verdict = "all valid" if report.n_objects else "nothing was checked"
    return "\n".join([f"{checked}: {verdict}", *_unchecked(report.unchecked)])


def _unchecked(kinds: Mapping[str, int]) -> list[str]:
    if not kinds:
        return []
    listed = ", ".join(f"{tables.printable(kind)} {n}" for kind, n in sorted(kinds.items()))
    n_objects = sum(kinds.values())
    noun = "1 object of another kind was" if n_objects == 1 else f"{n_objects} objects of other kinds were"
    return [f"{noun} not checked: {listed}"]


def document(report: ValidationReport) -> dict[str, Any]:
    """The report as a versioned `ValidationReport`."""
    content = {
        "valid": not report.errors,
        "summary": {
            "objects": report.n_objects,
            "files": report.n_files,
            "errors": len(report.errors),
            "warnings": len(report.warnings),
            "unchecked": dict(sorted(report.unchecked.items())),
        },
        "findings": [_item(finding) for finding in report.findings],
    }
    return versioned.document("ValidationReport", content)


def _item(finding: ValidationFinding) -> dict[str, Any]:
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


def sarif(report: ValidationReport, version: str) -> dict[str, Any]:
    """The report in SARIF 2.1.0, which code hosts show next to the changed lines."""
    ids = sorted({finding.reason for finding in report.findings})
    rules = [{"id": rule_id, "shortDescription": {"text": _MEANINGS.get(rule_id, rule_id)}} for rule_id in ids]
    driver = {"name": "bayplan", "version": version, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in report.findings]}],
    }


def _result(finding: ValidationFinding) -> dict[str, Any]:
    fault = finding.fault
    physical = {"artifactLocation": {"uri": fault.file}, "region": {"startLine": max(fault.line, 1)}}
    message = tables.printable(": ".join(part for part in (fault.subject, fault.path, fault.message) if part))
    return {
        "ruleId": finding.reason,
        "level": finding.severity,
        "message": {"text": message},
        "locations": [{"physicalLocation": physical}],
    }
