"""The output of `violations` in every format. It does not know how violations are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.preview import EnforcementOutcome, EnforcementPreview, EnforcementVerdict
from bayplan.enforcing.violations import Violation
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

_ENFORCED_STYLE, _REMAINING_STYLE = "yellow", "red"  # an eviction ends the violation, or it remains
_MAX_NAMES_SHOWN = 3  # in a cell
NOT_ENFORCED = "not required during execution"


def table(preview: EnforcementPreview, *, wide: bool = False) -> Table:
    """One row per violation."""
    middle = ("PRIORITY", "CLUSTER" if preview.of_fleet else "NODE", "TERM") if wide else ()
    columns = ("NAMESPACE", "NAME", *middle, "RULE", "DOMAIN", "VIOLATED BY", "EVICTED", "AFTER", "WHY")
    rows = [_row(verdict, preview, wide=wide) for verdict in preview.verdicts]
    styles = [_ENFORCED_STYLE if v.evicted else _REMAINING_STYLE for v in preview.verdicts]
    return Table(columns, rows, styles)


def _row(verdict: EnforcementVerdict, preview: EnforcementPreview, *, wide: bool) -> tuple[str, ...]:
    violation = verdict.violation
    namespace, _, name = violation.owner.partition("/")
    middle = (str(preview.priority_of(violation.owner)), violation.target, violation.term) if wide else ()
    evicted = [_victim(outcome) for outcome in verdict.evicted]
    return (
        namespace,
        name,
        *middle,
        rule(violation),
        violation.domain or f"no {violation.topology_key}",
        _violated_by(violation),
        tables.listed(evicted, _MAX_NAMES_SHOWN) or "none",
        duration(preview.settings.grace(violation.rule_type)) if evicted else "-",
        "; ".join(_reasons(verdict.outcomes) if violation.enforced else _suggestion(verdict)) or "-",
    )


def rule(violation: Violation) -> str:
    """The rule in a few words."""
    if violation.rule_type is RuleType.AFFINITY:
        return f"affinity to {violation.shown}"
    if violation.rule_type is RuleType.GROUP_AFFINITY:
        return f"affinity to all of {violation.shown}"
    return (
        f"at most {violation.limit} other of {violation.shown}"
        if violation.limit
        else f"anti-affinity to {violation.shown}"
    )


def _violated_by(violation: Violation) -> str:
    if violation.rule_type is RuleType.ANTI_AFFINITY:
        return tables.listed(violation.peers, _MAX_NAMES_SHOWN)
    return (
        f"peers only in other domains: {tables.listed(violation.peers, _MAX_NAMES_SHOWN)}"
        if violation.peers
        else "no peer"
    )


def _victim(outcome: EnforcementOutcome) -> str:
    return f"{outcome.victim} from {outcome.cluster}" if outcome.cluster else outcome.victim


def _suggestion(verdict: EnforcementVerdict) -> list[str]:
    """What would resolve the violation of a rule that holds only while workloads are scheduled."""
    moved = tables.listed([outcome.victim for outcome in verdict.outcomes], _MAX_NAMES_SHOWN)
    return [NOT_ENFORCED, *([f"without {moved} it would be met"] if moved else [])]


def _reasons(outcomes: Sequence[EnforcementOutcome]) -> list[str]:
    """Why pods are evicted, and why others are not; each reason once."""
    spared: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.spared:
            spared.setdefault(outcome.spared, []).append(_victim(outcome))
    evicted = dict.fromkeys(outcome.why for outcome in outcomes if not outcome.spared)
    kept = (
        f"{tables.listed(names, _MAX_NAMES_SHOWN)} {'is' if len(names) == 1 else 'are'} not evicted: {why}"
        for why, names in spared.items()
    )
    return [*evicted, *kept]


def duration(seconds: float) -> str:
    """A duration in kubectl's notation: 90 is `1m30s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{amount:g}{unit}" for amount, unit in parts if amount) or "0s"


def names(preview: EnforcementPreview, workloads: dict[WorkloadKey, Workload]) -> str:
    """Each owner of a violated rule as `kind/name`, one per line."""
    owners = dict.fromkeys(verdict.violation.owner for verdict in preview.verdicts)
    return tables.name_lines(workloads[owner] for owner in owners)


def document(preview: EnforcementPreview) -> dict[str, Any]:
    """A versioned `ViolationList`."""
    evicted = {_victim(outcome) for verdict in preview.verdicts for outcome in verdict.evicted}
    spared = {_victim(outcome) for verdict in preview.verdicts for outcome in verdict.outcomes if outcome.spared}
    summary = {
        "violations": len(preview.verdicts),
        "wouldGo": len(evicted),
        "spared": len(spared - evicted),
        "exact": preview.exact,
    }
    return versioned.document(
        "ViolationList", {"summary": summary, "items": [_item(v, preview) for v in preview.verdicts]}
    )


def _item(verdict: EnforcementVerdict, preview: EnforcementPreview) -> dict[str, Any]:
    violation = verdict.violation
    return {
        "owner": violation.owner,
        "target": violation.target,
        "rule": violation.rule_type.value,
        "term": violation.term,
        "selector": violation.shown,
        "topologyKey": violation.topology_key,
        "domain": violation.domain,
        "limit": violation.limit,
        "peers": list(violation.peers),
        "graceSeconds": preview.settings.grace(violation.rule_type) if violation.enforced else None,
        "victims": [
            {"name": o.victim, "why": o.why, "spared": o.spared, **({"cluster": o.cluster} if o.cluster else {})}
            for o in verdict.outcomes
        ],
    }
