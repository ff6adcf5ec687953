"""A plan of moves in every form that `rebalance` prints. Knows nothing of how it was found."""

from __future__ import annotations

from typing import Any

from bayplan.enforcing.rebalancing import Rebalancing, WorkloadMove
from bayplan.enforcing.soft_rules import Shares
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.writing import subjects, tables, versioned
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
    return subjects.lines(workloads[move.workload] for move in plan.moves)


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
