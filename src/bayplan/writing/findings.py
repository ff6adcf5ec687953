"""What `validate` found, for people and for machines. Knows nothing of the rules that were broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

ERROR, WARNING = "error", "warning"
UNREADABLE, MALFORMED, UNKNOWN_FIELD, WARNED = "Unreadable", "Malformed", "UnknownField", "Warning"
# What each word means; the others are an API server's.
_MEANINGS = {
    UNREADABLE: "The file cannot be read",
    MALFORMED: "Not an object of its kind: a value of the wrong type, an unknown kind, or an object given twice",
    UNKNOWN_FIELD: "No such field in this kind of object",
    WARNED: "Admitted, but likely not meant",
    "FieldValueInvalid": "The value breaks a rule of the API server or of the guard",
    "FieldValueRequired": "The field must be set",
    "FieldValueForbidden": "The field must not be set like this",
    "FieldValueDuplicate": "The value stands elsewhere already",
    "FieldValueNotSupported": "The value is none of those there are",
    "FieldValueTooLong": "The value takes too much room",
    "FieldValueTooMany": "The list has too many items",
    "FieldValueNotFound": "Nothing has this name",
    "FieldValueTypeInvalid": "The value is of another type than the field",
}


class ValidationFinding(msgspec.Struct, frozen=True):
    """One thing wrong, with its place; `reason` is the API server's word for it, or ours if it has none."""

    fault: Fault
    reason: str = MALFORMED
    severity: str = ERROR


class ValidationReport(msgspec.Struct, frozen=True):
    """Everything found, and how much was looked at; `unchecked` counts the objects that were not, by kind."""

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
        """Whether every file could be read: otherwise nobody knows what was not looked at."""
        return all(finding.reason != UNREADABLE for finding in self.findings)


def table(report: ValidationReport) -> Table:
    """One row per error."""
    rows = [(place(f.fault), f.fault.subject, f.fault.path, f.fault.message) for f in report.errors]
    return Table(("FILE", "OBJECT", "FIELD", "PROBLEM"), rows)


def place(fault: Fault) -> str:
    """`file:line`, as editors and compilers write it."""
    return f"{fault.file}:{fault.line}" if fault.line else fault.file


def summary(report: ValidationReport) -> str:
    """How much is valid, in one sentence, and in another what nobody checked."""
    looked_at = f"{_counted(report.n_objects, 'object')} in {_counted(report.n_files, 'file')}"
    if report.errors:
        verdict = _counted(len(report.errors), "error")
    else:
        verdict = "all valid" if report.n_objects else "nothing was checked"
    return "\n".join([f"{looked_at}: {verdict}", *_not_checked(report.unchecked)])


def _not_checked(kinds: Mapping[str, int]) -> list[str]:
    if not kinds:
        return []
    listed = ", ".join(f"{tables.printable(kind)} {n}" for kind, n in sorted(kinds.items()))
    n_objects = sum(kinds.values())
    noun = "1 object of another kind was" if n_objects == 1 else f"{n_objects} objects of other kinds were"
    return [f"{noun} not checked: {listed}"]


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


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
    """The report in SARIF 2.1.0, which code hosts show beside the changed lines."""
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
