"""Broken rules in every form that `violations` prints. Knows nothing of how they were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings
from bayplan.enforcing.preview import EnforcementOutcome, EnforcementPreview, EnforcementVerdict
from bayplan.enforcing.violations import Violation
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

_GOES, _STAYS = "yellow", "red"  # what will be mended, and what will not
_MOST = 3  # names in a cell


def table(rehearsal: EnforcementPreview, settings: EnforcementSettings | None, *, wide: bool = False) -> Table:
    """One row per broken rule; without settings, of a fleet, where nobody acts on it."""
    middle = ("PRIORITY", "CLUSTER" if settings is None else "NODE", "TERM") if wide else ()
    columns = ("NAMESPACE", "NAME", *middle, "RULE", "DOMAIN", "BROKEN BY", "WOULD GO", "AFTER", "WHY")
    rows = [_row(verdict, rehearsal, settings, wide=wide) for verdict in rehearsal.verdicts]
    styles = [_GOES if any(not o.spared for o in v.outcomes) else _STAYS for v in rehearsal.verdicts]
    return Table(columns, rows, styles)


def _row(
    verdict: EnforcementVerdict, rehearsal: EnforcementPreview, settings: EnforcementSettings | None, *, wide: bool
) -> tuple[str, ...]:
    violation = verdict.violation
    namespace, _, name = violation.owner.partition("/")
    middle = (str(rehearsal.priority_of(violation.owner)), violation.target, violation.term) if wide else ()
    going = [outcome for outcome in verdict.outcomes if not outcome.spared]
    return (
        namespace,
        name,
        *middle,
        rule(violation),
        violation.domain or f"no {violation.topology_key}",
        _broken_by(violation),
        _listed([outcome.victim for outcome in going]) or "nobody",
        seconds(settings.grace(violation.rule_type)) if going and settings else "-",
        "; ".join(dict.fromkeys(map(_why, verdict.outcomes))) or "-",
    )


def rule(violation: Violation) -> str:
    """What is asked, in few words."""
    if violation.rule_type is RuleType.AFFINITY:
        return f"near {violation.shown}"
    if violation.rule_type is RuleType.GROUP_AFFINITY:
        return f"with all of {violation.shown}"
    return f"at most {violation.limit} of {violation.shown}" if violation.limit else f"apart from {violation.shown}"


def _broken_by(violation: Violation) -> str:
    if violation.rule_type is RuleType.ANTI_AFFINITY:
        return _listed(violation.peers)
    return f"only elsewhere: {_listed(violation.peers)}" if violation.peers else "nobody there"


def _why(outcome: EnforcementOutcome) -> str:
    return f"{outcome.victim} is spared: {outcome.spared}" if outcome.spared else outcome.why


def _listed(names: Sequence[WorkloadKey]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def seconds(time: float) -> str:
    """A time as kubectl writes durations: 90 is `1m30s`."""
    minutes, rest = divmod(time, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{amount:g}{unit}" for amount, unit in parts if amount) or "0s"


def names(rehearsal: EnforcementPreview, workloads: dict[WorkloadKey, Workload]) -> str:
    """Each owner of a broken rule as `kind/name`, one a line."""
    owners = dict.fromkeys(verdict.violation.owner for verdict in rehearsal.verdicts)
    return tables.name_lines(workloads[owner] for owner in owners)


def document(rehearsal: EnforcementPreview, settings: EnforcementSettings | None) -> dict[str, Any]:
    """A versioned `ViolationList`."""
    outcomes = {outcome.victim: outcome for verdict in rehearsal.verdicts for outcome in verdict.outcomes}
    summary = {
        "violations": len(rehearsal.verdicts),
        "wouldGo": sum(not outcome.spared for outcome in outcomes.values()),
        "spared": sum(bool(outcome.spared) for outcome in outcomes.values()),
        "exact": rehearsal.exact,
    }
    return versioned.document(
        "ViolationList", {"summary": summary, "items": [_item(v, settings) for v in rehearsal.verdicts]}
    )


def _item(verdict: EnforcementVerdict, settings: EnforcementSettings | None) -> dict[str, Any]:
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
        "graceSeconds": settings.grace(violation.rule_type) if settings else None,
        "victims": [{"name": o.victim, "why": o.why, "spared": o.spared} for o in verdict.outcomes],
    }
