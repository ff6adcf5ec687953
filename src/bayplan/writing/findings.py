"""The findings of `validate` as a table and a document. It does not know the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.validating import warning_ids
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

ERROR, WARNING = "error", "warning"
UNREADABLE, MALFORMED, UNKNOWN_FIELD, UNKNOWN_KIND = "Unreadable", "Malformed", "UnknownField", "UnknownKind"
# Id → description. The first four are Bayplan's, the last ones those of warnings, the others those of an API server.
MEANINGS = {
    UNREADABLE: "The file cannot be read",
    MALFORMED: "A value has the wrong type, the kind is misspelt, or the object is in the input twice",
    UNKNOWN_FIELD: "The kind has no such field",
    UNKNOWN_KIND: "The API server does not serve this version of the kind",
    "FieldValueInvalid": "The value violates a rule of the API server or of the guard",
    "FieldValueRequired": "The field must be set",
    "FieldValueForbidden": "The field must not have this value",
    "FieldValueDuplicate": "The value is a duplicate",
    "FieldValueNotSupported": "The value is not one of the supported values",
    "FieldValueTooLong": "The value is too long",
    "FieldValueTooMany": "The list has too many items",
    "FieldValueNotFound": "There is no object with this name",
    "FieldValueTypeInvalid": "The value does not have the type of the field",
    **warning_ids.DESCRIPTIONS,
    warning_ids.OTHER: "The object is admitted, but probably has a mistake",
}


class ValidationFinding(msgspec.Struct, frozen=True):
    """One fault; `reason` is its id: the cause that an API server reports, or one of the others above."""

    fault: Fault
    reason: str = MALFORMED
    severity: str = ERROR


class ValidationReport(msgspec.Struct, frozen=True):
    """
    All findings, and the number of checked objects and files.

    `unchecked` counts the other objects by kind, `skipped` the files that are not read by what they are, `n_ignored`
    the findings that are ignored by their ids. `fail_on` is the least severity that makes the answer a no.
    """

    findings: Sequence[ValidationFinding]
    n_objects: int
    n_files: int
    unchecked: Mapping[str, int] = {}
    skipped: Mapping[str, int] = {}
    n_ignored: int = 0
    fail_on: str = ERROR

    def is_failure(self, finding: ValidationFinding) -> bool:
        """Whether the finding makes the answer a no."""
        return finding.severity in (ERROR, self.fail_on)

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
    """One line with the number of objects and errors, and one each for what was not checked, read or reported."""
    checked = f"{tables.counted(report.n_objects, 'object')} in {tables.counted(report.n_files, 'file')}"
    warnings = tables.counted(len(report.warnings), "warning")
    if report.errors:
        verdict = tables.counted(len(report.errors), "error")
    elif report.warnings:  # which may fail the run
        verdict = f"no errors, {warnings}"
    else:
        verdict = "all valid" if report.n_objects else "nothing was checked"
    ignored = [f"{tables.counted(report.n_ignored, 'finding')} ignored"] if report.n_ignored else []
    return "\n".join([f"{checked}: {verdict}", *_unchecked(report.unchecked), *_skipped(report.skipped), *ignored])


def _skipped(files: Mapping[str, int]) -> list[str]:
    if not files:
        return []
    listed = ", ".join(f"{what} {n}" for what, n in sorted(files.items()))
    n_files = sum(files.values())
    return [f"{'1 file was' if n_files == 1 else f'{n_files} files were'} skipped: {listed}"]


def _unchecked(kinds: Mapping[str, int]) -> list[str]:
    if not kinds:
        return []
    listed = ", ".join(f"{tables.printable(kind)} {n}" for kind, n in sorted(kinds.items()))
    n_objects = sum(kinds.values())
    noun = "1 object of another kind was" if n_objects == 1 else f"{n_objects} objects of other kinds were"
    return [f"{noun} not checked: {listed}"]


def document(report: ValidationReport, kubernetes_version: str) -> dict[str, Any]:
    """The report as a versioned `ValidationReport`."""
    content = {
        "valid": not report.errors,
        "kubernetesVersion": kubernetes_version,
        "summary": {
            "objects": report.n_objects,
            "files": report.n_files,
            "errors": len(report.errors),
            "warnings": len(report.warnings),
            "unchecked": dict(sorted(report.unchecked.items())),
            "skipped": dict(sorted(report.skipped.items())),
            "ignored": report.n_ignored,
        },
        "findings": [_item(finding) for finding in report.findings],
    }
    return versioned.document("ValidationReport", content)


def _item(finding: ValidationFinding) -> dict[str, Any]:
    fault = finding.fault
    return {
        "severity": finding.severity,
        "id": finding.reason,
        "reason": finding.reason,
        "file": fault.file,
        "line": fault.line,
        "object": fault.subject,
        "field": fault.path,
        "message": fault.message,
    }
