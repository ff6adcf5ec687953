"""
The audit of a layout: every check of a profile with its verdict, and the stage that the control plane has reached.

Reads no files and writes nothing. The checks themselves are in `checks`, their weights in `profiles`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bayplan.auditing import checks, profiles, spread
from bayplan.auditing.catalogue import HOST_KEY, REGION_KEY, ZONE_KEY
from bayplan.auditing.layout import COMPONENTS, DECLARED, ETCD, HOST, RACK, REGION, STAGES, ZONE, Layout
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, OPEN, AuditFacts, CheckOutcome, hidden, state_of
from bayplan.auditing.profiles import FAIL, FAIL_IF_SHOWN, INFO, AuditProfile
from bayplan.auditing.survival import Survival
from bayplan.auditing.workload_groups import Workloads

PASS, FAILED, WARN, UNDECIDED, NA = "PASS", "FAIL", "WARN", "UNDECIDED", "N/A"
STAGE_ID, SCRIPT_CHECK_ID = "stage", "node-distribution-check"
NO_STAGE = "none"
DISTRIBUTED, LOSS_SAFE = "distributed", "loss-safe"
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"


class CheckResult(msgspec.Struct, frozen=True):
    """
    The verdict of one check. Only `required` checks decide whether the cluster passes.

    A finding that was `accepted`, for a reason and through a day, stays one, and the cluster passes all the same.
    """

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
    accepted: str = ""
    accepted_until: str = ""

    @property
    def gates(self) -> bool:
        """Whether the cluster does not meet the standard because of this check, accepted or not."""
        return self.required and self.verdict in (FAILED, UNDECIDED)


class StageRange(msgspec.Struct, frozen=True):
    """The largest stage that is certain, and the largest that is possible given the missing labels."""

    at_least: str
    at_most: str


class RedundancyStage(msgspec.Struct, frozen=True):
    """
    The stage of SCS-0213 that the control plane has reached, in two senses.

    `distributed`: the domains that it is distributed over. `loss_safe`: the domains of which it survives any one loss.
    Nothing is known of a `hidden` control plane.
    """

    distributed: StageRange
    loss_safe: StageRange
    hidden: bool = False

    def __str__(self) -> str:
        if self.hidden:
            return "of unknown stage: no part of it is visible"
        texts = (("distributed", "over", self.distributed), ("loss-safe", "for", self.loss_safe))
        return ", ".join(_stage_text(*text) for text in texts)


class Audit(msgspec.Struct, frozen=True):
    """All verdicts of a profile; `stage` is None where the profile has no stages."""

    profile: AuditProfile
    layout: Layout
    results: tuple[CheckResult, ...]
    stage: RedundancyStage | None
    survival: Survival | None = None
    workloads: Workloads | None = None

    def passed(self, *, allow_undecided: bool = False, fail_on_warning: bool = False) -> bool:
        """
        Whether every required check is PASS, N/A or accepted; with `allow_undecided`, or UNDECIDED.

        With `fail_on_warning`, no check may be WARN either, unless it is accepted.
        """
        return not any(
            (r.gates and not (allow_undecided and r.verdict == UNDECIDED)) or (fail_on_warning and r.verdict == WARN)
            for r in self.results
            if not r.accepted
        )


def run_audit(
    layout: Layout,
    profile: AuditProfile,
    *,
    required_stages: Sequence[tuple[str, str]] = (),
    workloads: Workloads | None = None,
    survival: Survival | None = None,
) -> Audit:
    """Run the checks of the profile on the layout; `required_stages` are (sense, stage)."""
    if profile.name in profiles.LEGACY:
        found = _judge_like_upstream_script(layout, profile.name.partition("=")[2])
        result = _result(SCRIPT_CHECK_ID, "Upstream's node distribution check", "upstream script", FAIL, found)
        return Audit(profile, layout, (result,), None)
    facts = AuditFacts(layout, workloads, survival)
    results = [
        _result(check.id, check.title, check.source, profile.weights[check.id], check.run(facts))
        for check in checks.ALL.values()
        if check.id in profile.weights
    ]
    stage = RedundancyStage(_stage_range(facts, DISTRIBUTED), _stage_range(facts, LOSS_SAFE), facts.hidden)
    for sense, name in required_stages:
        found = _required_stage_outcome(facts, stage, name, sense)
        results.append(_result(STAGE_ID, f"Control plane {sense} at stage {name}", "SCS-0213, stages", FAIL, found))
    if not required_stages:
        found = CheckOutcome(NOT_APPLICABLE, f"none is required; the control plane is {stage}")
        results.append(_result(STAGE_ID, "Stage reached", "SCS-0213, stages", INFO, found))
    return Audit(profile, layout, tuple(results), stage, survival, workloads)


def _result(check_id: str, title: str, source: str, weight: str, found: CheckOutcome) -> CheckResult:
    broken = FAILED if weight in (FAIL, FAIL_IF_SHOWN) else WARN
    # A check that fails only if shown is not required as long as it is undecided.
    required = weight == FAIL or (weight == FAIL_IF_SHOWN and found.state != OPEN)
    verdicts = {HOLDS: PASS, BROKEN: broken, OPEN: UNDECIDED, NOT_APPLICABLE: NA}
    return CheckResult(
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


# The retired upstream script


def _judge_like_upstream_script(layout: Layout, state: str) -> CheckOutcome:
    """
    The verdict of the retired upstream script, weaknesses included; `state` is `old` or `head`.

    Mirrors scs_0214_node_distribution_RETIRED/k8s_node_distribution_check.py of SovereignCloudStack/standards.
    """
    nodes, old = layout.nodes, state == "old"
    if len(nodes) < 2:
        return CheckOutcome(BROKEN, "fewer than two nodes", tuple(node.name for node in nodes), DECLARED)
    control = [node for node in nodes if _CONTROL_PLANE_LABEL in node.labels] or list(nodes)
    workers = [node for node in nodes if _CONTROL_PLANE_LABEL not in node.labels] if len(control) < len(nodes) else []
    keys = (REGION_KEY, ZONE_KEY, HOST_KEY) if old else (REGION_KEY, ZONE_KEY)
    missing = tuple(node.name for node in (*control, *workers) if any(key not in node.labels for key in keys))
    if missing:
        return CheckOutcome(BROKEN, "a label is missing", missing, DECLARED)
    # From large to small, the first label with two values decides: hosts are never compared once zones differ.
    if old and not any(len({node.labels[key] for node in control}) > 1 for key in keys):
        return CheckOutcome(BROKEN, "no label of the control plane varies", tuple(n.name for n in control), DECLARED)
    return CheckOutcome(HOLDS, "the script would have passed it", (), DECLARED)


# The stage reached


def _stage_range(facts: AuditFacts, sense: str) -> StageRange:
    """The stage in one sense; `none` where the control plane is not even distributed over machines."""
    certain = possible = NO_STAGE
    for stage in STAGES:
        holds = _reaches_stage(facts, stage, sense)
        certain = stage if holds else certain
        possible = possible if holds is False else stage
    return StageRange(certain, possible)


def _reaches_stage(facts: AuditFacts, stage: str, sense: str) -> bool | None:
    """Whether every component is distributed over, or survives the loss of any one of, the domains of the stage."""
    if stage == NO_STAGE:
        return True
    if facts.hidden or not facts.layout.members:
        return None
    answers = list(_component_answers(facts, STAGES[stage], sense))
    if False in answers:
        return False
    return None if None in answers or _is_contradicted(facts.layout, STAGES[stage]) else True


def _is_contradicted(layout: Layout, level: str) -> bool:
    """
    Whether a smaller domain is in two zones, or a zone in two regions: then one of these labels is wrong.

    So is one of the level that differs from what another source says.
    """
    parents: dict[tuple[str, str, str], str] = {}
    pairs = ((HOST, ZONE), (RACK, ZONE), (ZONE, REGION)) if level == ZONE else ((HOST, REGION), (ZONE, REGION))
    for node in layout.by_name().values() if level in (ZONE, REGION) else ():
        if any(at == level and node.at(level) not in (None, value) for _, at, value in node.other_sources):
            return True
        for below, above in pairs:
            domain, parent = node.at(below), node.at(above)
            if domain and parent and parents.setdefault((below, above, domain), parent) != parent:
                return True
    return False


def _component_answers(facts: AuditFacts, level: str, sense: str) -> Iterator[bool | None]:
    for component in COMPONENTS:
        if component not in facts.layout.members:
            yield None
            continue
        rule = spread.half
        if sense == LOSS_SAFE:
            rule = spread.quorum if component == ETCD else spread.separate
        yield facts.spread(facts.layout.nodes_of(component), level).judge(rule)


def _required_stage_outcome(facts: AuditFacts, reached: RedundancyStage, stage: str, sense: str) -> CheckOutcome:
    """Whether the required stage is reached."""
    if facts.hidden:
        return hidden()
    state = state_of(_reaches_stage(facts, stage, sense))
    words = {HOLDS: "is", BROKEN: "is not", OPEN: "may or may not be"}
    over = "distributed over" if sense == DISTRIBUTED else "loss-safe for"
    message = f"the control plane {words[state]} {over} {stage}; it is {reached}"
    names = tuple(node.name for node in facts.layout.control_plane)
    return CheckOutcome(state, message, names, next(iter(facts.layout.component_evidence.values()), ""))


def _stage_text(word: str, over: str, reached: StageRange) -> str:
    certain = f"not {word}" if reached.at_least == NO_STAGE else f"{word} {over} {reached.at_least}"
    return certain if reached.at_least == reached.at_most else f"{certain} (perhaps {over} {reached.at_most})"
