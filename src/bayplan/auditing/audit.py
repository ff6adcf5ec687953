"""The audit: every check of a profile on a layout, weighed. Reads no files and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from bayplan.auditing import checks, profiles, spread
from bayplan.auditing.catalogue import HOST_KEY, REGION_KEY, ZONE_KEY
from bayplan.auditing.layout import COMPONENTS, DECLARED, ETCD, STAGES, AuditNode, Layout
from bayplan.auditing.outcomes import BROKEN, HIDDEN, HOLDS, NOT_APPLICABLE, OPEN, CheckOutcome, Facts, state_of
from bayplan.auditing.profiles import FAIL, FAIL_IF_SHOWN, INFO, AuditProfile
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
        found = judge_like_upstream_script(layout, profile.name.partition("=")[2])
        result = _result(SCRIPT_CHECK_ID, "Upstream's node distribution check", "upstream script", FAIL, found)
        return Audit(profile, layout, (result,), None)
    facts = Facts(layout, workloads, survival)
    results = [
        _result(check.id, check.title, check.source, profile.weights[check.id], check.run(facts))
        for check in checks.ALL.values()
        if check.id in profile.weights
    ]
    stage = stage_of(facts)
    for sense, name in required_stages:
        found = required_stage_outcome(facts, name, sense)
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


# RF merged from auditing.legacy: The verdict of the retired upstream script, in both of its states, weaknesses
# included. It mirrors scs_0214_node_distribution_RETIRED/k8s_node_distribution_check.py of
# SovereignCloudStack/standards.

SCRIPT_CHECK_ID = "node-distribution-check"
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"


def judge_like_upstream_script(layout: Layout, state: str) -> CheckOutcome:
    """What the script would have said of the nodes; `state` is `old` or `head`."""
    nodes, old = layout.nodes, state == "old"
    if len(nodes) < 2:
        return CheckOutcome(BROKEN, "fewer than two nodes", tuple(node.name for node in nodes), DECLARED)
    control = [node for node in nodes if _CONTROL_PLANE_LABEL in node.labels] or list(nodes)
    workers = [node for node in nodes if _CONTROL_PLANE_LABEL not in node.labels] if len(control) < len(nodes) else []
    keys = (REGION_KEY, ZONE_KEY, HOST_KEY) if old else (REGION_KEY, ZONE_KEY)
    missing = tuple(node.name for node in (*control, *workers) if any(key not in node.labels for key in keys))
    if missing:
        return CheckOutcome(BROKEN, "a label is missing", missing, DECLARED)
    if old and not _differ_in_a_label(control, keys):
        return CheckOutcome(BROKEN, "no label of the control plane varies", tuple(n.name for n in control), DECLARED)
    return CheckOutcome(HOLDS, "the script would have passed it", (), DECLARED)


def _differ_in_a_label(nodes: Sequence[AuditNode], keys: Sequence[str]) -> bool:
    """From large to small, the first label with two values settles it: hosts are never compared once zones differ."""
    return any(len({node.labels[key] for node in nodes}) > 1 for key in keys)


# RF merged from auditing.staging: The stage a control plane has reached, in two senses: over what it is distributed,
# and the loss of what it survives. Knows nothing of profiles.

NO_STAGE = "none"
DISTRIBUTED, LOSS_SAFE = "distributed", "loss-safe"


class StageRange(msgspec.Struct, frozen=True):
    """The largest stage that is certain, and the largest that missing labels leave possible."""

    at_least: str
    at_most: str


class RedundancyStage(msgspec.Struct, frozen=True):
    distributed: StageRange
    loss_safe: StageRange

    def __str__(self) -> str:
        return (
            f"{_stage_text('distributed', 'over', self.distributed)}, {_stage_text('loss-safe', 'for', self.loss_safe)}"
        )


def _stage_text(word: str, over: str, reached: StageRange) -> str:
    sure = f"not {word}" if reached.at_least == NO_STAGE else f"{word} {over} {reached.at_least}"
    return sure if reached.at_least == reached.at_most else f"{sure} (perhaps {over} {reached.at_most})"


def stage_of(facts: Facts) -> RedundancyStage:
    """Both stages; `none` where not even machines are reached."""
    return RedundancyStage(_stage_range(facts, DISTRIBUTED), _stage_range(facts, LOSS_SAFE))


def _stage_range(facts: Facts, sense: str) -> StageRange:
    sure = possible = NO_STAGE
    for stage in STAGES:
        holds = reaches_stage(facts, stage, sense)
        sure = stage if holds else sure
        possible = possible if holds is False else stage
    return StageRange(sure, possible)


def reaches_stage(facts: Facts, stage: str, sense: str) -> bool | None:
    """Whether every component is distributed over, or survives the loss of any one of, the domains of the stage."""
    if stage == NO_STAGE:
        return True
    if facts.hidden or not facts.layout.members:
        return None
    answers = list(_answers(facts, STAGES[stage], sense))
    return False if False in answers else None if None in answers else True


def _answers(facts: Facts, level: str, sense: str) -> Iterator[bool | None]:
    for component in COMPONENTS:
        if component not in facts.layout.members:
            yield None
            continue
        rule = spread.half
        if sense == LOSS_SAFE:
            rule = spread.quorum if component == ETCD else spread.separate
        yield _judged(facts, component, level, rule)


def _judged(facts: Facts, component: str, level: str, rule: Callable[[int, int], bool]) -> bool | None:
    return facts.spread(facts.layout.nodes_of(component), level).judge(rule)


def required_stage_outcome(facts: Facts, stage: str, sense: str) -> CheckOutcome:
    """Whether the stage that is asked for is reached."""
    if facts.hidden:
        return CheckOutcome(OPEN, HIDDEN)
    state = state_of(reaches_stage(facts, stage, sense))
    words = {HOLDS: "is", BROKEN: "is not", OPEN: "may or may not be"}
    over = "distributed over" if sense == DISTRIBUTED else "loss-safe for"
    message = f"the control plane {words[state]} {over} {stage}; it is {stage_of(facts)}"
    names = tuple(node.name for node in facts.layout.control_plane)
    return CheckOutcome(state, message, names, _evidence(facts))


def _evidence(facts: Facts) -> str:
    return next(iter(facts.layout.component_evidence.values()), "")
