"""`bayplan rebalance`: the fewest moves that give soft rules more of what they ask. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bayplan.cli import commands, loading, options, outcomes
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.enforcing.rebalancing import Limits, Rebalancing
    from bayplan.enforcing.soft_rules import Shares
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload
    from bayplan.reading.cluster import Cluster
    from bayplan.reading.fleet import Fleet
    from bayplan.rules.rule import Rule


@commands.command(
    "rebalance",
    summary="Plan the fewest moves that give soft rules more of what they ask.",
    examples=(
        "bayplan rebalance -f cluster.json",
        "bayplan rebalance -f cluster.json --max-moves 2 -n shop",
        "bayplan rebalance -f fleet/ -o json",
    ),
    details=(
        "After a node or a cluster has come back, nothing moves by itself. A move evicts a pod and lets the scheduler "
        "place it again, so the plan says where it will go. Points are the weights of preferred terms; a pod too many "
        "under a soft spread constraint, a soft taint, and in a fleet a group or tier further down count 100 each. "
        "PodDisruptionBudgets in the input hold. Exit code 0 if nothing can be gained, 1 if something can."
    ),
    groups=(options.SOURCES, options.SCOPE, options.DECIDING, options.CONSOLE),
    params=(
        commands.Option(
            "--max-moves",
            type=click.IntRange(min=1),
            default=5,
            show_default=True,
            metavar="N",
            help="The disruption budget: how many workloads may be moved.",
        ),
        options.output("table", "wide", "json", "yaml", "name"),
        options.EXIT_ZERO,
    ),
)
def rebalance(
    *,
    max_moves: int,
    output: str,
    exit_zero: bool,
    sources: options.Sources,
    scope: options.Scope,
    deciding: options.Deciding,
    console: Console,
) -> int:
    """Write the plan: 1 if there is something to gain."""
    selector, rules = scope.parsed_selector(), options.configured_rules()
    found = loading.load(sources, scope, deciding, console)
    from bayplan.enforcing.rebalancing import Limits
    from bayplan.reading.fleet import Fleet
    from bayplan.writing import rebalance_report

    def movable(workload: Workload) -> bool:
        alone = isinstance(found, Fleet) and workload.key in found.left_alone
        return not alone and scope.includes(workload, selector)

    if isinstance(found, Fleet):
        plan = _of_fleet(found, Limits(most_moves=max_moves, movable=movable))
    else:
        plan = _of_pods(found, rules, Limits(most_moves=max_moves, movable=movable, budgets=found.budgets))
    console.answer(_written(plan, found.index, output, console.table_width))
    console.note(rebalance_report.summary(plan))
    return outcomes.of(not plan.moves, exit_zero=exit_zero)


def _of_pods(cluster: Cluster, rules: Sequence[Rule], limits: Limits) -> Rebalancing:
    from bayplan import placing
    from bayplan.enforcing import rebalancing
    from bayplan.enforcing.soft_rules import PodWishes

    index = cluster.index
    wishes = PodWishes(index, rules)

    def again(workload: Workload) -> Shares:
        index.remove(workload.key)
        target = placing.place(workload, index, rules).target
        return ((target, 1),) if target else ()

    found = rebalancing.plan(index, again, wishes, limits)
    wishes.release()
    return found


def _of_fleet(fleet: Fleet, limits: Limits) -> Rebalancing:
    from bayplan import failing_back, placing_fleet
    from bayplan.enforcing import rebalancing
    from bayplan.enforcing.soft_rules import FleetWishes
    from bayplan.rules import fleet_profile

    index, rules = fleet.index, fleet_profile.rules()

    def again(workload: Workload) -> Shares:
        placement = placing_fleet.place(failing_back.anew(workload), index, rules)
        return placement.shares if placement.placed else ()

    return rebalancing.plan(index, again, FleetWishes(index), limits)


def _written(plan: Rebalancing, index: PlacementIndex, output: str, width: int | None) -> str:
    from bayplan.writing import rebalance_report, tables, versioned

    if output in ("json", "yaml"):
        return versioned.written(rebalance_report.document(plan), output)
    workloads = {key: record.workload for key, record in index.records.items()}
    if output == "name":
        return rebalance_report.names(plan, workloads)
    if not plan.moves:
        return ""
    return tables.rendered(rebalance_report.table(plan, workloads, wide=output == "wide"), width)
