"""The output of `rebalance` in every format: the plan, the events of --apply, and their outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayplan.enforcing.move_execution import (
    EvictionRejected,
    EvictionStarted,
    MoveCompleted,
    MoveDropped,
    MoveEvent,
    MovesOutcome,
    MoveWaiting,
)
from bayplan.enforcing.rebalancing import Rebalancing, WorkloadMove
from bayplan.enforcing.soft_rules import Shares
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table


def written(plan: Rebalancing, workloads: Mapping[WorkloadKey, Workload], output: str, width: int | None) -> str:
    """The plan in an output format; `width` is that of a drawn table, `workloads` are at least those that move."""
    if output in ("json", "yaml"):
        return versioned.written(document(plan), output)
    if output == "name":
        return names(plan, workloads)
    return tables.rendered(table(plan, workloads, wide=output == "wide"), width) if plan.moves else ""


def table(plan: Rebalancing, workloads: Mapping[WorkloadKey, Workload], *, wide: bool = False) -> Table:
    """One row per move, in order."""
    middle = ("PRIORITY",) if wide else ()
    rows = [
        (
            *move.workload.partition("/")[::2],
            *((str(workloads[move.workload].priority),) if wide else ()),
            shown(move.before),
            shown(move.after),
            f"{sum(move.gain.values()):+}",
            ", ".join(f"{rule} {points:+}" for rule, points in move.gain.items() if points) or "-",
        )
        for move in plan.moves
    ]
    return Table(("NAMESPACE", "NAME", *middle, "FROM", "TO", "GAIN", "BY RULE"), rows)


def shown(shares: Shares) -> str:
    """The name of a node, or clusters with their replicas."""
    if len(shares) == 1 and shares[0][1] <= 1:
        return shares[0][0]
    return ", ".join(f"{name}:{replicas}" if replicas else name for name, replicas in sorted(shares))


def summary(plan: Rebalancing) -> str:
    """What the plan gains, and whether it is optimal."""
    n_moves = len(plan.moves)
    if not n_moves:
        moves = "no moves" if plan.exact else "no single move"
        return f"{moves} within the limits would gain anything"
    gained = f"{n_moves} {'move gains' if n_moves == 1 else 'moves gain'} {plan.gain} points"
    if plan.exact:
        return f"{gained}; no plan within the limits gains more, or as much with fewer moves"
    return f"{gained}; each move is the best at its step, and another plan may gain more"


def names(plan: Rebalancing, workloads: Mapping[WorkloadKey, Workload]) -> str:
    """Each workload to move as `kind/name`, one per line, in order."""
    return tables.name_lines(workloads[move.workload] for move in plan.moves)


def document(plan: Rebalancing) -> dict[str, Any]:
    """A versioned `RebalancePlan`."""
    content = {
        "summary": {
            "moves": len(plan.moves),
            "gain": plan.gain,
            "gainByRule": plan.gain_by_rule,
            "exact": plan.exact,
            "tried": plan.n_tried,
        },
        "items": [_item(move) for move in plan.moves],
    }
    return versioned.document("RebalancePlan", content)


def _item(move: WorkloadMove) -> dict[str, Any]:
    return {
        "workload": move.workload,
        "from": _targets(move.before),
        "to": _targets(move.after),
        "gain": sum(move.gain.values()),
        "gainByRule": dict(move.gain),
    }


def _targets(shares: Shares) -> list[dict[str, Any]]:
    return [{"name": name, "replicas": replicas} for name, replicas in shares]


def event_line(event: MoveEvent) -> str:
    """One sentence about an event of --apply."""
    match event:
        case EvictionStarted(move, number, planned):
            gain, source, target = sum(move.gain.values()), shown(move.before), shown(move.after)
            return f"move {number} of {planned}: evicting {move.workload} from {source} to {target}, {gain:+} points"
        case EvictionRejected(workload, why):
            return f"{workload} is not evicted now: {why}"
        case MoveWaiting(why, seconds):
            return f"{why}; trying again in {seconds:.0f} s"
        case MoveDropped(workload, why):
            return f"{workload} is not moved: {why}"
        case MoveCompleted():
            return _move_completed(event)


def _move_completed(made: MoveCompleted) -> str:
    new = made.replacement.new
    if new is None or not new.target:
        return f"{made.move.workload} was evicted; {made.replacement.missing}"
    elsewhere = "" if made.as_planned else f", not on {shown(made.move.after)} as planned"
    ending = "" if made.replacement.gone else f"; {made.replacement.missing}"
    return f"{made.move.workload} was replaced by {new.key} on {new.target}{elsewhere}: {made.gain:+} points{ending}"


def applied_summary(outcome: MovesOutcome) -> str:
    """How much of the plan was made, and why it stopped if it is incomplete."""
    n_planned, n_made = len(outcome.plan.moves), len(outcome.made)
    noun = "move" if n_planned == 1 else "moves"
    counted = f"{n_made} of {n_planned} {noun} made, {outcome.gain} of {outcome.plan.gain} points gained"
    dropped = f"{counted}; {len(outcome.dropped)} dropped" if outcome.dropped else counted
    if outcome.interrupted:
        return f"interrupted: {dropped}"
    return f"stopped: {dropped}; {outcome.stopped}" if outcome.stopped else dropped


def applied_document(outcome: MovesOutcome) -> dict[str, Any]:
    """The plan as a `RebalancePlan`, with its outcome in `applied`."""
    applied = {
        "summary": {
            "moves": len(outcome.made),
            "gain": outcome.gain,
            "complete": outcome.is_complete and not outcome.interrupted,
            "interrupted": outcome.interrupted,
            "stopped": outcome.stopped,
        },
        "made": [_completed_item(made) for made in outcome.made],
        "dropped": [{"workload": dropped.workload, "why": dropped.why} for dropped in outcome.dropped],
        "left": list(outcome.left),
    }
    return {**document(outcome.plan), "applied": applied}


def _completed_item(made: MoveCompleted) -> dict[str, Any]:
    new = made.replacement.new
    return {
        "workload": made.move.workload,
        "from": shown(made.move.before),
        "replacement": "" if new is None else new.key,
        "to": made.target,
        "asPlanned": made.as_planned,
        "gain": made.gain,
        "missing": made.replacement.missing,
    }
