"""`bayplan rebalance`: the fewest moves that give soft rules more of what they ask. Moves nothing unless told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, loading, options, outcomes, rebalance_applying
from bayplan.cli.console import Console
from bayplan.cli.rebalance_applying import APPLYING, Applying, ApplyRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.enforcing.rebalancing import DisruptionLimits, Rebalancing
    from bayplan.enforcing.soft_rules import Shares
    from bayplan.live.pod_moves import PodMoves
    from bayplan.model.workloads import Workload
    from bayplan.reading.fleet import Fleet
    from bayplan.rules.rule import Rule


@commands.command(
    "rebalance",
    summary="Plan the fewest moves that give soft rules more of what they ask, and make them if told to.",
    examples=(
        "bayplan rebalance -f cluster.json",
        "bayplan rebalance -f cluster.json --max-moves 2 -n shop",
        "bayplan rebalance -f fleet/ -o json",
        "bayplan rebalance --context prod -n shop --apply",
    ),
    details=(
        "After a node or a cluster has come back, nothing moves by itself. A move evicts a pod and lets the scheduler "
        "place it again, so the plan says where it will go. Points are the weights of preferred terms; a pod too many "
        "under a soft spread constraint, a soft taint, and in a fleet a group or tier further down count 100 each. "
        "PodDisruptionBudgets hold. With --apply, every move waits for the replacement of the last one to have a node, "
        "and is planned anew; pods without a controller stay, as nobody would make them again; an interrupt ends it "
        "between two moves. Exit code 0 if nothing is left to gain, 1 if something is."
    ),
    groups=(options.SOURCES, options.SCOPE, options.DECIDING, APPLYING, options.CONSOLE),
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
    applying: Applying,
    console: Console,
) -> int:
    """Write the plan, and carry it out if told to: 1 if something is left to gain."""
    applying.check(sources, output)
    selector, rules = scope.parsed_selector(), options.configured_rules()

    def movable(workload: Workload) -> bool:
        return scope.includes(workload, selector)

    def look(to: Console) -> PodMoves | Fleet:
        return _look(sources, scope, deciding, rules, to)

    if applying.apply:
        asked = ApplyRequest(max_moves, movable, output, exit_zero)
        return rebalance_applying.carry_out(asked, applying, look, sources.cluster, console)
    found = look(console)
    from bayplan.enforcing.rebalancing import DisruptionLimits
    from bayplan.live.pod_moves import PodMoves
    from bayplan.writing import rebalance_report

    if isinstance(found, PodMoves):
        plan = found.plan(DisruptionLimits(max_moves=max_moves, movable=movable, budgets=found.budgets))
        index = found.cluster.index
    else:
        plan, index = _of_fleet(found, DisruptionLimits(max_moves=max_moves, movable=movable)), found.index
    console.answer(rebalance_report.written(plan, index, output, console.table_width))
    console.note(rebalance_report.summary(plan))
    return outcomes.of(not plan.moves, exit_zero=exit_zero)


def _look(
    sources: options.Sources, scope: options.Scope, deciding: options.Deciding, rules: Sequence[Rule], console: Console
) -> PodMoves | Fleet:
    """The cluster as it is now, or the fleet."""
    from bayplan.live.pod_moves import OwnedPods, PodMoves
    from bayplan.reading.fleet import Fleet

    pods = OwnedPods()
    found = loading.load(sources, scope, deciding, console, pods=pods)
    return found if isinstance(found, Fleet) else PodMoves(found, pods.controllers, rules)


def _of_fleet(fleet: Fleet, limits: DisruptionLimits) -> Rebalancing:
    from bayplan.assigning import failback
    from bayplan.enforcing import rebalancing
    from bayplan.enforcing.soft_rules import FleetPreferences
    from bayplan.placing import place_bindings
    from bayplan.rules import profiles

    index, rules = fleet.index, profiles.fleet_rules()

    def movable(workload: Workload) -> bool:
        return workload.key not in fleet.not_scheduled and limits.movable(workload)

    def again(workload: Workload) -> Shares:
        placement = place_bindings.place(failback.as_unplaced(workload), index, rules)
        return placement.shares if placement.placed else ()

    return rebalancing.plan_moves(
        index, again, FleetPreferences(index), msgspec.structs.replace(limits, movable=movable)
    )
