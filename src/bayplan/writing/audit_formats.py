"""An audit in the forms that other tools read: JUnit, SARIF and the result lines of SCS. Knows no check."""

from __future__ import annotations

import hashlib
import urllib.parse
import xml.sax.saxutils
from collections.abc import Mapping
from typing import Any

from bayplan.auditing.audit import FAILED, NA, PASS, UNDECIDED, WARN, Audit, Result
from bayplan.auditing.profiles import FAIL, FAIL_IF_SHOWN, PROFILES
from bayplan.writing import survival_report, untrusted
from bayplan.writing.audit_report import told

Place = tuple[str, int]

DNF = "DNF"
WHOLE = "node-distribution-check"  # as the scope file of SCS calls the testcase
_LEVELS = {FAILED: "error", WARN: "warning"}
_STANDARD = "scs-0214"
_SHOWN = 20


def junit(audit: Audit, *, allow_undecided: bool) -> str:
    """
    A suite per profile, a testcase per check: a failure where the cluster does not pass because of it.

    What does not apply is skipped, with the reason; so is what is undecided, unless it is required.
    """
    found = [_junit_element(result, allow_undecided=allow_undecided) for result in audit.results]
    n_failed, n_skipped = found.count("failure"), found.count("skipped")
    numbers = f'tests="{len(audit.results)}" failures="{n_failed}" errors="0" skipped="{n_skipped}"'
    name = _quoted(f"bayplan audit {audit.profile.name}")
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {numbers}>",
        f"  <testsuite name={name} {numbers}>",
        *_properties(audit),
    ]
    for result, element in zip(audit.results, found, strict=True):
        lines += _testcase(result, element, audit.profile.name)
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _properties(audit: Audit) -> list[str]:
    """What each loss takes with it: numbers that no testcase has room for."""
    found = survival_report.summaries(audit.survival) if audit.survival else []
    inner = [
        f"      <property name={_quoted(f'loss of a {one.level}')} value={_quoted(survival_report.sentence(one))}/>"
        for one in found
    ]
    return ["    <properties>", *inner, "    </properties>"] if inner else []


def _junit_element(result: Result, *, allow_undecided: bool) -> str:
    if result.verdict == FAILED or (result.gates and not allow_undecided):
        return "failure"
    return "skipped" if result.verdict in (UNDECIDED, NA) else "system-out"


def _testcase(result: Result, element: str, profile: str) -> list[str]:
    verdict = f"{UNDECIDED}: " if result.verdict == UNDECIDED else ""
    message = _quoted(verdict + told(result))
    inner = {
        "failure": f"      <failure message={message}>{_text(result.fix)}</failure>",
        "skipped": f"      <skipped message={message}/>",
    }.get(element, f"      <system-out>{_text(f'{result.verdict}: {told(result)}')}</system-out>")
    head = f"    <testcase name={_quoted(result.id)} classname={_quoted(profile)}>"
    return [head, inner, "    </testcase>"]


def _text(text: str) -> str:
    return xml.sax.saxutils.escape(untrusted.clean(text))


def _quoted(text: str) -> str:
    return xml.sax.saxutils.quoteattr(untrusted.clean(text))


def sarif(audit: Audit, version: str, line_by_node: Mapping[str, Place], file: str) -> dict[str, Any]:
    """SARIF 2.1.0: a rule per check, a result for each that is not PASS or N/A, at the nodes it is about."""
    shown = [result for result in audit.results if result.verdict not in (PASS, NA)]
    rules = {result.id: _rule(result) for result in audit.results}
    driver = {"name": "bayplan", "version": version, "rules": list(rules.values())}
    results = [_sarif_result(result, list(rules), line_by_node, file) for result in shown]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results, "properties": _bag(audit)}],
    }


def _bag(audit: Audit) -> dict[str, Any]:
    """What has no place of its own in SARIF: the profile, and what each loss takes."""
    found = survival_report.summaries(audit.survival) if audit.survival else []
    return {
        "profile": audit.profile.name,
        "losses": {one.level: untrusted.clean(survival_report.sentence(one)) for one in found},
    }


def _rule(result: Result) -> dict[str, Any]:
    return {
        "id": result.id,
        "shortDescription": {"text": result.title},
        "fullDescription": {"text": f"{result.title} ({result.source})"},
        "defaultConfiguration": {"level": "error" if result.required else "warning"},
    }


def _sarif_result(result: Result, rule_ids: list[str], line_by_node: Mapping[str, Place], file: str) -> dict[str, Any]:
    level = _LEVELS.get(result.verdict, "warning" if result.required else "note")
    verdict = "" if result.verdict != UNDECIDED else "undecided: "
    mark = hashlib.sha256(f"{result.id} {' '.join(sorted(result.nodes))}".encode()).hexdigest()
    return {
        "ruleId": result.id,
        "ruleIndex": rule_ids.index(result.id),
        "level": level,
        "message": {"text": untrusted.clean(verdict + told(result) + (f"; {result.fix}" if result.fix else ""))},
        "locations": [_location(name, line_by_node.get(name, (file, 1))) for name in result.nodes[:_SHOWN]]
        or [_location("", (file, 1))],
        "partialFingerprints": {"bayplanAudit/v1": mark[:32]},
    }


def _location(node: str, place: Place) -> dict[str, Any]:
    name, line = place
    region = {"startLine": max(line, 1)}
    found: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": urllib.parse.quote(name)}, "region": region}
    }
    if node:
        found["logicalLocations"] = [{"fullyQualifiedName": f"Node/{untrusted.clean(node)}", "kind": "resource"}]
    return found


def scs(audit: Audit, *, allow_undecided: bool) -> str:
    """
    `testcase-id: PASS|FAIL|DNF` for every check, and for the whole if the profile is the standard's.

    Advice that is not followed is a warning. A check that does not apply has no line: there is nothing to prove. What
    losses take is told for information.
    """
    found = survival_report.summaries(audit.survival) if audit.survival else []
    lines = [f"INFO: {untrusted.clean(survival_report.sentence(one))}" for one in found]
    for result in audit.results:
        if result.verdict == WARN:
            lines.append(f"WARNING: {result.id}: {untrusted.clean(told(result))}")
        elif result.verdict != NA:
            lines.append(f"{result.id}: {_scs_verdict(result)}")
    if audit.profile.name.startswith(_STANDARD):
        lines.append(f"{WHOLE}: {_whole(audit, allow_undecided=allow_undecided)}")
    return "".join(f"{line}\n" for line in lines)


def scs_results(audit: Audit, *, allow_undecided: bool) -> dict[str, str]:
    """PASS, FAIL or DNF of every check that has a line of its own, and of the whole as the lines have it."""
    lines = scs(audit, allow_undecided=allow_undecided).splitlines()
    found = (line.rpartition(": ") for line in lines if not line.startswith(("INFO: ", "WARNING: ")))
    return {name: verdict for name, _, verdict in found}


def _scs_verdict(result: Result) -> str:
    return {UNDECIDED: DNF}.get(result.verdict, result.verdict)


def _whole(audit: Audit, *, allow_undecided: bool) -> str:
    """Of what the standard asks; what somebody requires beyond it is no part of that."""
    asked = PROFILES[audit.profile.name].weights
    gating = {r.verdict for r in audit.results if r.gates and asked.get(r.id) in (FAIL, FAIL_IF_SHOWN)}
    if FAILED in gating:
        return FAILED
    return DNF if UNDECIDED in gating and not allow_undecided else PASS
