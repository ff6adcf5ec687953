"""The findings of `validate` in the formats of other tools: SARIF, JUnit and Markdown. It does not know the checks."""

from __future__ import annotations

import urllib.parse
import xml.sax.saxutils
from collections.abc import Sequence
from typing import Any

from bayplan.writing import findings, tables


def sarif(report: findings.ValidationReport, version: str) -> dict[str, Any]:
    """The report in SARIF 2.1.0, which code hosts show next to the changed lines."""
    ids = sorted({finding.reason for finding in report.findings})
    rules = [{"id": rule_id, "shortDescription": {"text": findings.MEANINGS.get(rule_id, rule_id)}} for rule_id in ids]
    driver = {"name": "bayplan", "version": version, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in report.findings]}],
    }


def _result(finding: findings.ValidationFinding) -> dict[str, Any]:
    fault = finding.fault
    physical = {
        "artifactLocation": {"uri": urllib.parse.quote(fault.file)},
        "region": {"startLine": max(fault.line, 1)},
    }
    message = tables.printable(": ".join(part for part in (fault.subject, fault.path, fault.message) if part))
    return {
        "ruleId": finding.reason,
        "level": finding.severity,
        "message": {"text": message},
        "locations": [{"physicalLocation": physical}],
    }


def junit(report: findings.ValidationReport) -> str:
    """One suite, and a testcase for each object or file with findings; what makes the answer a no is a failure."""
    by_subject: dict[tuple[str, str], list[findings.ValidationFinding]] = {}
    for finding in report.findings:
        by_subject.setdefault((finding.fault.file, finding.fault.subject), []).append(finding)
    n_failed = sum(any(map(report.is_failure, found)) for found in by_subject.values())
    numbers = f'tests="{len(by_subject) + 1}" failures="{n_failed}" errors="0" skipped="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {numbers}>",
        f'  <testsuite name="bayplan validate" {numbers}>',
        '    <testcase name="summary" classname="bayplan validate">',
        f"      <system-out>{_text(findings.summary(report))}</system-out>",
        "    </testcase>",
    ]
    for (file, subject), found in by_subject.items():
        lines += [
            f"    <testcase name={_quoted(subject or file)} classname={_quoted(file)}>",
            *_elements(found, report),
        ]
        lines.append("    </testcase>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _elements(found: Sequence[findings.ValidationFinding], report: findings.ValidationReport) -> list[str]:
    """One failure with all that makes the answer a no (JUnit has one for a testcase), and one output with the rest."""
    failing: list[str] = []
    others: list[str] = []
    for one in found:
        line = f"{findings.location(one.fault)} {one.fault.path}: {one.fault.message} [{one.reason}]"
        (failing if report.is_failure(one) else others).append(line)
    elements = []
    if failing:
        counts = (
            (severity, sum(one.severity == severity for one in found)) for severity in (findings.ERROR, report.fail_on)
        )
        message = ", ".join(tables.counted(n, severity) for severity, n in dict(counts).items() if n)
        elements.append(f"      <failure message={_quoted(message)}>{_text(*failing)}</failure>")
    if others:
        elements.append(f"      <system-out>{_text(*others)}</system-out>")
    return elements


def markdown(report: findings.ValidationReport) -> str:
    """A table of all findings, for a comment on a change."""
    lines = [f"- {line}" for line in findings.summary(report).splitlines()]
    if report.findings:
        lines += ["", "| Severity | Place | Object | Field | Problem | Id |", "|---|---|---|---|---|---|"]
    for one in report.findings:
        fault = one.fault
        cells = (one.severity, findings.location(fault), fault.subject, fault.path, fault.message, one.reason)
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """The text without what Markdown or HTML would read as markup."""
    safe = xml.sax.saxutils.escape(tables.printable(text))
    return "".join(f"\\{char}" if char in "|`*_[]\\" else char for char in safe)


def _text(*lines: str) -> str:
    return xml.sax.saxutils.escape("\n".join(map(tables.printable_lines, lines)))


def _quoted(text: str) -> str:
    return xml.sax.saxutils.quoteattr(tables.printable(text))
