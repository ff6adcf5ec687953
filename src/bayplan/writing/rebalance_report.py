"""A plan of moves in every form that `rebalance` prints. Knows nothing of how it was found."""

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
from bayplan.enforcing.rebalancing import Rebalancing, WorkloadMove
from bayplan.enforcing.soft_rules import Shares
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table


def written(plan: Rebalancing, index: PlacementIndex, output: str, width: int | None) -> str:
    """The plan in the form asked for; `width` is that of a drawn table."""
    if output in ("json", "yaml"):
        return versioned.written(document(plan), output)
    workloads = {key: record.workload for key, record in index.records.items()}
    if output == "name":
        return names(plan, workloads)
    return tables.rendered(table(plan, workloads, wide=output == "wide"), width) if plan.moves else ""


def table(plan: Rebalancing, workloads: dict[WorkloadKey, Workload], *, wide: bool = False) -> Table:
    """One row per move, in the order in which to make them."""
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
    return Table(("NAMESPACE", "NAME", *middle, "FROM", "TO", "GAIN", "OF WHICH"), rows)


def shown(shares: Shares) -> str:
    """A node by its name, clusters with their replicas."""
    if len(shares) == 1 and shares[0][1] <= 1:
        return shares[0][0]
    return ", ".join(f"{name}:{replicas}" if replicas else name for name, replicas in sorted(shares))


def summary(plan: Rebalancing) -> str:
    """What the plan gains, and how sure it is that there is no better one."""
    n_moves = len(plan.moves)
    if not n_moves:
        sure = "no moves" if plan.exact else "no single move"
        return f"{sure} within the limits would gain anything"
    gained = f"{n_moves} {'move gains' if n_moves == 1 else 'moves gain'} {plan.gain} points"
    if plan.exact:
        return f"{gained}; no moves within the limits gain more, and no fewer gain as much"
    return f"{gained}, each the best at its turn; with so much to try, others may gain more"


def names(plan: Rebalancing, workloads: dict[WorkloadKey, Workload]) -> str:
    """Each workload to move as `kind/name`, one a line, in order."""
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


# RF merged from writing.moves_report: What happens while `rebalance --apply` moves pods, and what came of it, in
# words and for machines.


def event_line(event: MoveEvent) -> str:
    """One sentence for a person who watches."""
    match event:
        case Evicting(move, number, planned):
            gain, whither = sum(move.gain.values()), shown(move.after)
            whence = shown(move.before)
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
            return _move_completed(event)


def _move_completed(made: MoveCompleted) -> str:
    came = made.replacement.new
    if came is None or not came.target:
        return f"{made.move.workload} was evicted; {made.replacement.missing}"
    elsewhere = "" if made.as_planned else f", not on {shown(made.move.after)} as planned"
    ending = "" if made.replacement.gone else f"; {made.replacement.missing}"
    return f"{made.move.workload} was replaced by {came.key} on {came.target}{elsewhere}: {made.gain:+} points{ending}"


def applied_summary(outcome: MovesOutcome) -> str:
    """What was reached of what was planned, and why it ended if not by itself."""
    n_planned, n_made = len(outcome.plan.moves), len(outcome.made)
    noun = "move" if n_planned == 1 else "moves"
    counted = f"{n_made} of {n_planned} {noun} made, {outcome.gain} of {outcome.plan.gain} points gained"
    dropped = f"{counted}; {len(outcome.dropped)} dropped" if outcome.dropped else counted
    if outcome.interrupted:
        return f"interrupted: {dropped}"
    return f"stopped: {dropped}; {outcome.stopped}" if outcome.stopped else dropped


def applied_document(outcome: MovesOutcome) -> dict[str, Any]:
    """The plan as a `RebalancePlan`, with `applied`: what became of it."""
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
    came = made.replacement.new
    return {
        "workload": made.move.workload,
        "from": shown(made.move.before),
        "replacement": "" if came is None else came.key,
        "to": made.target,
        "asPlanned": made.as_planned,
        "gain": made.gain,
        "missing": made.replacement.missing,
    }
