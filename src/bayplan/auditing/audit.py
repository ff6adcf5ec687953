"""The audit: every check of a profile on a layout, weighed. Reads no files and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.auditing import checks, legacy, profiles, staging
from bayplan.auditing.layout import Layout
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, OPEN, CheckOutcome, Facts
from bayplan.auditing.profiles import FAIL, FAIL_IF_SHOWN, INFO, AuditProfile
from bayplan.auditing.staging import RedundancyStage
from bayplan.auditing.survival import Survival
from bayplan.auditing.workload_groups import Workloads

PASS, FAILED, WARN, UNDECIDED, NA = "PASS", "FAIL", "WARN", "UNDECIDED", "N/A"
STAGE_ID = "stage"


class Result(msgspec.Struct, frozen=True):
    """One check's verdict. `required` ones decide the whole; `gates` says whether this one stands in the way."""

    id: str
    title: str
    source: str
    verdict: str
    required: bool
    weight: str
    message: str
    nodes: tuple[str, ...] = ()
    evidence: str = ""
    fix: str = ""
    workloads: tuple[str, ...] = ()

    @property
    def gates(self) -> bool:
        """Whether the cluster does not pass because of it."""
        return self.required and self.verdict in (FAILED, UNDECIDED)


class Audit(msgspec.Struct, frozen=True):
    """All verdicts of a profile; no stage where the profile knows none."""

    profile: AuditProfile
    layout: Layout
    results: tuple[Result, ...]
    stage: RedundancyStage | None
    survival: Survival | None = None
    workloads: Workloads | None = None

    def passed(self, *, allow_undecided: bool = False) -> bool:
        """Whether every required check is PASS or N/A; undecided ones may be let through."""
        return not any(r.gates and not (allow_undecided and r.verdict == UNDECIDED) for r in self.results)


def audit(
    layout: Layout,
    profile: AuditProfile,
    *,
    required_stages: Sequence[tuple[str, str]] = (),
    workloads: Workloads | None = None,
    survival: Survival | None = None,
) -> Audit:
    """Judge the layout; `required_stages` are (sense, stage)."""
    if profile.name in profiles.LEGACY:
        found = legacy.judge(layout, profile.name.partition("=")[2])
        result = _result(legacy.ID, "Upstream's node distribution check", "upstream script", FAIL, found)
        return Audit(profile, layout, (result,), None)
    facts = Facts(layout, workloads, survival)
    results = [
        _result(check.id, check.title, check.source, profile.weights[check.id], check.run(facts))
        for check in checks.ALL.values()
        if check.id in profile.weights
    ]
    stage = staging.stage_of(facts)
    for sense, name in required_stages:
        found = staging.required(facts, name, sense)
        results.append(_result(STAGE_ID, f"Control plane {sense} at stage {name}", "SCS-0213, stages", FAIL, found))
    if not required_stages:
        found = CheckOutcome(NOT_APPLICABLE, f"none is required; the control plane is {stage}")
        results.append(_result(STAGE_ID, "Stage reached", "SCS-0213, stages", INFO, found))
    return Audit(profile, layout, tuple(results), stage, survival, workloads)


def _result(check_id: str, title: str, source: str, weight: str, found: CheckOutcome) -> Result:
    broken = FAILED if weight in (FAIL, FAIL_IF_SHOWN) else WARN
    # What only counts if it is shown asks for nothing as long as it is not.
    required = weight == FAIL or (weight == FAIL_IF_SHOWN and found.state != OPEN)
    verdicts = {HOLDS: PASS, BROKEN: broken, OPEN: UNDECIDED, NOT_APPLICABLE: NA}
    return Result(
        id=check_id,
        title=title,
        source=source,
        verdict=verdicts[found.state],
        required=required,
        weight=weight,
        message=found.message,
        nodes=found.nodes,
        evidence=found.evidence,
        fix=found.fix,
        workloads=found.workloads,
    )
