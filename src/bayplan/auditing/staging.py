"""
The stage a control plane has reached, in two senses: over what it is distributed, and the loss of what it survives.

Knows nothing of profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from bayplan.auditing import spread
from bayplan.auditing.layout import COMPONENTS, ETCD, STAGES
from bayplan.auditing.outcomes import BROKEN, HIDDEN, HOLDS, OPEN, CheckOutcome, Facts, state_of

NONE = "none"
DISTRIBUTED, LOSS_SAFE = "distributed", "loss-safe"


class Reached(msgspec.Struct, frozen=True):
    """The largest stage that is certain, and the largest that missing labels leave possible."""

    at_least: str
    at_most: str


class RedundancyStage(msgspec.Struct, frozen=True):
    distributed: Reached
    loss_safe: Reached

    def __str__(self) -> str:
        return f"{_told('distributed', 'over', self.distributed)}, {_told('loss-safe', 'for', self.loss_safe)}"


def _told(word: str, over: str, reached: Reached) -> str:
    sure = f"not {word}" if reached.at_least == NONE else f"{word} {over} {reached.at_least}"
    return sure if reached.at_least == reached.at_most else f"{sure} (perhaps {over} {reached.at_most})"


def stage_of(facts: Facts) -> RedundancyStage:
    """Both stages; `none` where not even machines are reached."""
    return RedundancyStage(_reached(facts, DISTRIBUTED), _reached(facts, LOSS_SAFE))


def _reached(facts: Facts, sense: str) -> Reached:
    sure = possible = NONE
    for stage in STAGES:
        holds = holds_at(facts, stage, sense)
        sure = stage if holds else sure
        possible = possible if holds is False else stage
    return Reached(sure, possible)


def holds_at(facts: Facts, stage: str, sense: str) -> bool | None:
    """Whether every component is distributed over, or survives the loss of any one of, the domains of the stage."""
    if stage == NONE:
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


def required(facts: Facts, stage: str, sense: str) -> CheckOutcome:
    """Whether the stage that is asked for is reached."""
    if facts.hidden:
        return CheckOutcome(OPEN, HIDDEN)
    state = state_of(holds_at(facts, stage, sense))
    words = {HOLDS: "is", BROKEN: "is not", OPEN: "may or may not be"}
    over = "distributed over" if sense == DISTRIBUTED else "loss-safe for"
    message = f"the control plane {words[state]} {over} {stage}; it is {stage_of(facts)}"
    names = tuple(node.name for node in facts.layout.control_plane)
    return CheckOutcome(state, message, names, _evidence(facts))


def _evidence(facts: Facts) -> str:
    return next(iter(facts.layout.component_evidence.values()), "")
