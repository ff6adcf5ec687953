"""
An audit in the formats of other tools: JUnit, SARIF, Prometheus, and the result lines and report of SCS.

It does not know the checks.
"""

from __future__ import annotations

import hashlib
import urllib.parse
import xml.sax.saxutils
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from bayplan.auditing.audit import FAILED, NA, PASS, UNDECIDED, WARN, Audit, CheckResult
from bayplan.auditing.profiles import FAIL, FAIL_IF_SHOWN, PROFILES
from bayplan.writing import survival_report, tables
from bayplan.writing.audit_report import VERDICTS, finding
from bayplan.writing.provenance import Provenance

Place = tuple[str, int]

DNF = "DNF"
WHOLE_STANDARD = "node-distribution-check"  # the name of the testcase in the scope file of SCS
_LEVELS = {FAILED: "error", WARN: "warning"}
_STANDARD = "scs-0214"
_MAX_LOCATIONS = 20


class JunitSuite(msgspec.Struct, frozen=True):
    """The lines of one suite, and its numbers of tests, failures and skipped tests."""

    lines: tuple[str, ...]
    n_tests: int
    n_failed: int
    n_skipped: int


def junit(suites: Sequence[JunitSuite]) -> str:
    """A document of suites."""
    numbers = _numbers(
        sum(one.n_tests for one in suites), sum(one.n_failed for one in suites), sum(one.n_skipped for one in suites)
    )
    lines = [line for one in suites for line in one.lines]
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {numbers}>"]
    return "\n".join([*head, *lines, "</testsuites>"]) + "\n"


def suite(name: str, testcases: Sequence[str], n_failed: int) -> JunitSuite:
    """A suite of testcases, of which none is skipped."""
    numbers = _numbers(len(testcases), n_failed, 0)
    lines = [f"  <testsuite name={_quoted(name)} {numbers}>", *testcases, "  </testsuite>"]
    return JunitSuite(tuple(lines), len(testcases), n_failed, 0)


def testcase(name: str, classname: str, failure: str) -> str:
    """A testcase, which has failed if there is a message."""
    head = f"    <testcase name={_quoted(name)} classname={_quoted(classname)}"
    return f"{head}>\n      <failure message={_quoted(failure)}/>\n    </testcase>" if failure else f"{head}/>"


def junit_suite(
    audit: Audit, *, allow_undecided: bool, provenance: Provenance | None = None, cluster: str = ""
) -> JunitSuite:
    """
    One suite, one testcase per check. A check is a failure if the audit does not pass because of it.

    A check that does not apply is skipped, with the reason; so is an undecided check, unless it is required.
    """
    found = [_junit_element(result, allow_undecided=allow_undecided) for result in audit.results]
    n_failed, n_skipped = found.count("failure"), found.count("skipped")
    name = _quoted(f"bayplan audit {audit.profile.name}" + (f" of {cluster}" if cluster else ""))
    lines = [
        f"  <testsuite name={name} {_numbers(len(audit.results), n_failed, n_skipped)}>",
        *_properties(audit, provenance),
    ]
    for result, element in zip(audit.results, found, strict=True):
        lines += _testcase(result, element, audit.profile.name)
    return JunitSuite((*lines, "  </testsuite>"), len(audit.results), n_failed, n_skipped)


def _numbers(n_tests: int, n_failed: int, n_skipped: int) -> str:
    return f'tests="{n_tests}" failures="{n_failed}" errors="0" skipped="{n_skipped}"'


def _properties(audit: Audit, provenance: Provenance | None) -> list[str]:
    """What each loss affects, and what the report was made from; JUnit has no testcase for that."""
    found = survival_report.summaries(audit.survival) if audit.survival else []
    named = [(f"loss of a {one.level}", survival_report.sentence(one)) for one in found]
    if provenance is not None:
        facts = {"date": provenance.date, "version": provenance.version, "standard": provenance.standard}
        named += [*facts.items(), *((f"input {one.name}", one.sha256 or "live") for one in provenance.inputs)]
    inner = [f"      <property name={_quoted(name)} value={_quoted(value)}/>" for name, value in named]
    return ["    <properties>", *inner, "    </properties>"] if inner else []


def _junit_element(result: CheckResult, *, allow_undecided: bool) -> str:
    if result.accepted:
        return "skipped"
    if result.verdict == FAILED or (result.gates and not allow_undecided):
        return "failure"
    return "skipped" if result.verdict in (UNDECIDED, NA) else "system-out"


def _testcase(result: CheckResult, element: str, profile: str) -> list[str]:
    verdict = f"{UNDECIDED}: " if result.verdict == UNDECIDED else ""
    accepted = f"accepted through {result.accepted_until}: {result.accepted}; " if result.accepted else ""
    message = _quoted(accepted + verdict + finding(result))
    inner = {
        "failure": f"      <failure message={message}>{_text(result.fix)}</failure>",
        "skipped": f"      <skipped message={message}/>",
    }.get(element, f"      <system-out>{_text(f'{result.verdict}: {finding(result)}')}</system-out>")
    head = f"    <testcase name={_quoted(result.id)} classname={_quoted(profile)}>"
    return [head, inner, "    </testcase>"]


def _text(text: str) -> str:
    return xml.sax.saxutils.escape(tables.printable(text))


def _quoted(text: str) -> str:
    return xml.sax.saxutils.quoteattr(tables.printable(text))


def sarif(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """SARIF 2.1.0."""
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": list(runs)}


def sarif_run(
    audit: Audit, line_by_node: Mapping[str, Place], file: str, provenance: Provenance, *, cluster: str = ""
) -> dict[str, Any]:
    """A run: a rule per check, and a result for each check that is not PASS or N/A, located at its nodes."""
    shown = [result for result in audit.results if result.verdict not in (PASS, NA)]
    rules = {result.id: _rule(result) for result in audit.results}
    driver = {"name": "bayplan", "version": provenance.version, "rules": list(rules.values())}
    artifacts = [
        {"location": {"uri": urllib.parse.quote(one.name)}, "hashes": {"sha-256": one.sha256}}
        for one in provenance.inputs
        if one.sha256
    ]
    return {
        "tool": {"driver": driver},
        **({"automationDetails": {"id": f"bayplan-audit/{tables.printable(cluster)}"}} if cluster else {}),
        "artifacts": artifacts,
        "results": [_sarif_result(result, list(rules), line_by_node, file) for result in shown],
        "properties": _bag(audit, provenance),
    }


def _bag(audit: Audit, provenance: Provenance) -> dict[str, Any]:
    """Properties that SARIF has no field for: the profile, the standard and date, and what each loss affects."""
    found = survival_report.summaries(audit.survival) if audit.survival else []
    return {
        "profile": audit.profile.name,
        "standard": provenance.standard,
        "date": provenance.date,
        "losses": {one.level: tables.printable(survival_report.sentence(one)) for one in found},
    }


def _rule(result: CheckResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "shortDescription": {"text": result.title},
        "fullDescription": {"text": f"{result.title} ({result.source})"},
        "defaultConfiguration": {"level": "error" if result.required else "warning"},
    }


def _sarif_result(
    result: CheckResult, rule_ids: list[str], line_by_node: Mapping[str, Place], file: str
) -> dict[str, Any]:
    level = _LEVELS.get(result.verdict, "warning" if result.required else "note")
    verdict = "" if result.verdict != UNDECIDED else "undecided: "
    suppressed = {"suppressions": [{"kind": "external", "justification": tables.printable(result.accepted)}]}
    mark = hashlib.sha256(f"{result.id} {' '.join(sorted(result.nodes))}".encode()).hexdigest()
    return {
        "ruleId": result.id,
        "ruleIndex": rule_ids.index(result.id),
        "level": level,
        "message": {"text": tables.printable(verdict + finding(result) + (f"; {result.fix}" if result.fix else ""))},
        "locations": [_location(name, line_by_node.get(name, (file, 1))) for name in result.nodes[:_MAX_LOCATIONS]]
        or [_location("", (file, 1))],
        "partialFingerprints": {"bayplanAudit/v1": mark[:32]},
        **(suppressed if result.accepted else {}),
    }


def _location(node: str, place: Place) -> dict[str, Any]:
    name, line = place
    region = {"startLine": max(line, 1)}
    found: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": urllib.parse.quote(name)}, "region": region}
    }
    if node:
        found["logicalLocations"] = [{"fullyQualifiedName": f"Node/{tables.printable(node)}", "kind": "resource"}]
    return found


def scs(audit: Audit, *, allow_undecided: bool, provenance: Provenance | None = None) -> str:
    """
    `testcase-id: PASS|FAIL|DNF` for every check, and for the whole standard if the profile is SCS-0214.

    A recommendation that is not met is a WARNING line. A check that does not apply has no line. What each loss affects
    is an INFO line, and so is what the report was made from. An accepted finding stays what it is.
    """
    found = survival_report.summaries(audit.survival) if audit.survival else []
    lines = [f"INFO: {tables.printable(survival_report.sentence(one))}" for one in found]
    lines += [f"INFO: {tables.printable(line)}" for line in (provenance.lines() if provenance is not None else ())]
    for result in audit.results:
        if result.verdict == WARN:
            lines.append(f"WARNING: {result.id}: {tables.printable(finding(result))}")
        elif result.verdict != NA:
            lines.append(f"{result.id}: {DNF if result.verdict == UNDECIDED else result.verdict}")
    if audit.profile.name.startswith(_STANDARD):
        lines.append(f"{WHOLE_STANDARD}: {_whole_verdict(audit, allow_undecided=allow_undecided)}")
    return "".join(f"{line}\n" for line in lines)


def scs_results(audit: Audit, *, allow_undecided: bool) -> dict[str, str]:
    """PASS, FAIL or DNF by testcase, read from the lines of `scs`."""
    lines = scs(audit, allow_undecided=allow_undecided).splitlines()
    found = (line.rpartition(": ") for line in lines if not line.startswith(("INFO: ", "WARNING: ")))
    return {name: verdict for name, _, verdict in found}


def _whole_verdict(audit: Audit, *, allow_undecided: bool) -> str:
    """The verdict on the standard; checks that --require adds do not count."""
    weights = PROFILES[audit.profile.name].weights
    gating = {r.verdict for r in audit.results if r.gates and weights.get(r.id) in (FAIL, FAIL_IF_SHOWN)}
    if FAILED in gating:
        return FAILED
    return DNF if UNDECIDED in gating and not allow_undecided else PASS


# Name → help text and labels.
GAUGES = {
    "bayplan_audit_passed": ("Whether every required check of the profile is PASS or N/A.", ("profile",)),
    "bayplan_audit_check": (
        "1 for the verdict of the check, 0 for the other verdicts.",
        ("profile", "check", "verdict"),
    ),
    "bayplan_audit_tolerance": (
        "How many domains of the level may fail before the control plane does.",
        ("level",),
    ),
    "bayplan_audit_weak_workloads": (
        "Groups of replicas that one failure of the level leaves with too few replicas.",
        ("level",),
    ),
    "bayplan_audit_stranded_pods": ("Pods that do not fit anywhere after the worst failure of the level.", ("level",)),
}

Sample = tuple[str, Mapping[str, str], int]


def gauge_samples(audit: Audit, *, passed: bool) -> Iterator[Sample]:
    """Every sample: the name of its gauge, labels and value."""
    profile = {"profile": audit.profile.name}
    yield "bayplan_audit_passed", profile, int(passed)
    for result in audit.results:
        for verdict in VERDICTS:
            labels = {**profile, "check": result.id, "verdict": verdict}
            yield "bayplan_audit_check", labels, int(result.verdict == verdict)
    for one in survival_report.summaries(audit.survival) if audit.survival else ():
        values = {
            "bayplan_audit_tolerance": one.tolerance,
            "bayplan_audit_weak_workloads": one.weak_workloads,
            "bayplan_audit_stranded_pods": one.stranded,
        }
        for name, value in values.items():
            if value is not None:
                yield name, {"level": one.level}, value


def prometheus(samples: Iterable[Sample], comments: Sequence[str]) -> str:
    """All samples in the text format of Prometheus, after some comments."""
    lines = list(comments)
    by_name: dict[str, list[str]] = {}
    for name, labels, value in samples:
        inner = ",".join(f'{key}="{_label_value(word)}"' for key, word in labels.items())
        by_name.setdefault(name, []).append(f"{name}{{{inner}}} {value}")
    for name, found in by_name.items():
        lines += [f"# HELP {name} {GAUGES[name][0]}", f"# TYPE {name} gauge", *found]
    return "".join(f"{line}\n" for line in lines)


def _label_value(word: str) -> str:
    return tables.printable(word).replace("\\", "\\\\").replace('"', '\\"')


# The report mirrors `create_report` of Tests/scs-compliance-check.py in SovereignCloudStack/standards.
# The certificate scope of the standard, from Tests/scs-compatible-kaas.yaml.
SCOPE = {
    "uuid": "1fffebe6-fd4b-44d3-a36c-fc58b4bb0180",
    "name": "SCS-compatible KaaS",
    "url": "https://raw.githubusercontent.com/SovereignCloudStack/standards/main/Tests/scs-compatible-kaas.yaml",
}
_VALUES = {"PASS": 1, "DNF": 0, "FAIL": -1}
_SIGNALS = ("info", "warning", "error", "critical")


class ScsRun(msgspec.Struct, frozen=True, kw_only=True):
    """What only the caller knows: the audited cluster, the time and command of the audit, and ids for the report."""

    subject: str
    checked_at: datetime
    argv: Sequence[str]
    exit_code: int
    run_id: str
    invocation_id: str


def scs_report(lines: Sequence[str], results: Mapping[str, str], run: ScsRun) -> dict[str, Any]:
    """The report of one invocation: its lines, and 1, 0 or -1 for PASS, DNF or FAIL."""
    invocation = {
        "id": run.invocation_id,
        "cmd": " ".join(["bayplan", *run.argv]),
        "results": {name: _VALUES[verdict] for name, verdict in results.items()},
        "rc": run.exit_code,
        "stdout": list(lines),
        "stderr": [],
        **{signal: sum(line.lower().startswith(signal) for line in lines) for signal in _SIGNALS},
    }
    return {
        "spec": dict(SCOPE),
        "checked_at": run.checked_at,
        "reference_date": run.checked_at.date(),
        "subject": run.subject,
        "run": {
            "uuid": run.run_id,
            "argv": list(run.argv),
            "assignment": {},
            "sections": None,
            "forced_version": None,
            "forced_tests": None,
            "invocations": {run.invocation_id: invocation},
        },
    }


def scs_report_text(content: Mapping[str, Any]) -> str:
    """The report as YAML, as the runner writes it: dates as dates, keys in the given order."""
    import yaml

    written: str = yaml.safe_dump(
        content, default_flow_style=False, sort_keys=False, explicit_start=True, allow_unicode=False, width=120
    )
    return written
