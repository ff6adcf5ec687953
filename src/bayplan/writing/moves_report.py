"""What happens while `rebalance --apply` moves pods, and what came of it, in words and for machines."""

from __future__ import annotations

from typing import Any

from bayplan.enforcing.move_execution import (
    Dropped,
    Evicting,
    MoveCompleted,
    MoveEvent,
    MovesOutcome,
    MoveWaiting,
    Refused,
)
from bayplan.writing import rebalance_report


def line(happening: MoveEvent) -> str:
    """One sentence for a person who watches."""
    match happening:
        case Evicting(move, number, planned):
            gain, whither = sum(move.gain.values()), rebalance_report.shown(move.after)
            whence = rebalance_report.shown(move.before)
            return (
                f"move {number} of {planned}: evicting {move.workload} from {whence}, "
                f"to go to {whither} for {gain:+} points"
            )
        case Refused(workload, why):
            return f"{workload} is not evicted now: {why}"
        case MoveWaiting(why, seconds):
            return f"{why}; looking again in {seconds:.0f} s"
        case Dropped(workload, why):
            return f"{workload} stays: {why}"
        case MoveCompleted():
            return _made(happening)


def _made(made: MoveCompleted) -> str:
    came = made.replacement.new
    if came is None or not came.target:
        return f"{made.move.workload} was evicted; {made.replacement.missing}"
    elsewhere = "" if made.as_planned else f", not on {rebalance_report.shown(made.move.after)} as planned"
    ending = "" if made.replacement.gone else f"; {made.replacement.missing}"
    return f"{made.move.workload} was replaced by {came.key} on {came.target}{elsewhere}: {made.gain:+} points{ending}"


def summary(outcome: MovesOutcome) -> str:
    """What was reached of what was planned, and why it ended if not by itself."""
    n_planned, n_made = len(outcome.plan.moves), len(outcome.made)
    noun = "move" if n_planned == 1 else "moves"
    counted = f"{n_made} of {n_planned} {noun} made, {outcome.gain} of {outcome.plan.gain} points gained"
    dropped = f"{counted}; {len(outcome.dropped)} dropped" if outcome.dropped else counted
    if outcome.interrupted:
        return f"interrupted: {dropped}"
    return f"stopped: {dropped}; {outcome.stopped}" if outcome.stopped else dropped


def document(outcome: MovesOutcome) -> dict[str, Any]:
    """The plan as a `RebalancePlan`, with `applied`: what became of it."""
    applied = {
        "summary": {
            "moves": len(outcome.made),
            "gain": outcome.gain,
            "complete": outcome.is_complete and not outcome.interrupted,
            "interrupted": outcome.interrupted,
            "stopped": outcome.stopped,
        },
        "made": [_item(made) for made in outcome.made],
        "dropped": [{"workload": dropped.workload, "why": dropped.why} for dropped in outcome.dropped],
        "left": list(outcome.left),
    }
    return {**rebalance_report.document(outcome.plan), "applied": applied}


def _item(made: MoveCompleted) -> dict[str, Any]:
    came = made.replacement.new
    return {
        "workload": made.move.workload,
        "from": rebalance_report.shown(made.move.before),
        "replacement": "" if came is None else came.key,
        "to": made.target,
        "asPlanned": made.as_planned,
        "gain": made.gain,
        "missing": made.replacement.missing,
    }
