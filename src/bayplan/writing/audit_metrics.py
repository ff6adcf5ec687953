"""An audit as gauges in the text format of Prometheus. Knows nothing of how they are served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.auditing.audit import Audit
from bayplan.writing import survival_report, untrusted
from bayplan.writing.audit_report import VERDICTS

# By name: what it says, and its labels.
GAUGES = {
    "bayplan_audit_passed": ("Whether every required check of the profile is PASS or N/A.", ("profile",)),
    "bayplan_audit_check": (
        "1 for the verdict that the check has, 0 for the others.",
        ("profile", "check", "verdict"),
    ),
    "bayplan_audit_tolerance": (
        "How many domains of the level may fail with the control plane still standing.",
        ("level",),
    ),
    "bayplan_audit_weak_workloads": (
        "Groups of replicas that one failure of the level leaves with too little.",
        ("level",),
    ),
    "bayplan_audit_stranded_pods": ("Pods that find no room after the worst failure of the level.", ("level",)),
}

Sample = tuple[str, Mapping[str, str], int]


def samples(audit: Audit, *, passed: bool) -> Iterator[Sample]:
    """Every gauge: its name, labels and value."""
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


def text(audit: Audit, *, passed: bool) -> str:
    """All gauges with their explanations, as a scrape would give them."""
    lines: list[str] = []
    by_name: dict[str, list[str]] = {}
    for name, labels, value in samples(audit, passed=passed):
        inner = ",".join(f'{key}="{_escaped(word)}"' for key, word in labels.items())
        by_name.setdefault(name, []).append(f"{name}{{{inner}}} {value}")
    for name, found in by_name.items():
        lines += [f"# HELP {name} {GAUGES[name][0]}", f"# TYPE {name} gauge", *found]
    return "".join(f"{line}\n" for line in lines)


def _escaped(word: str) -> str:
    return untrusted.clean(word).replace("\\", "\\\\").replace('"', '\\"')
