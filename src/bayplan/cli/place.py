"""`bayplan place`: where pending pods would be placed, or in a fleet pending bindings. It never writes to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from bayplan.cli import commands, loading, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.cli.what_if_options import WHAT_IF, WhatIfOptions

if TYPE_CHECKING:
    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.library.cluster import Cluster
    from bayplan.library.fleet import Fleet
    from bayplan.library.fleet_plan import FleetPlan, FleetScaling
    from bayplan.library.plan import Plan, Room
    from bayplan.writing.chosen_output import Arrangement

MAX = "max"
STEPS, FINAL = "steps", "final"
FLEETS = "Fleets"
BINDINGS = "bindings"


class ReplicaCount(click.ParamType[int | str]):
    """A number of replicas, or `max` for as many as fit."""

    name = "N|max"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The number, or `max`."""
        if value == MAX:
            return MAX
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"expected a whole number above 0 or {MAX}, got {value!r}", param, ctx)
        return int(value)


class ReplicaSteps(click.ParamType[tuple[int, ...]]):
    """Numbers of replicas, one after another."""

    name = "N,N,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The numbers."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isdecimal() and int(part) < 2**31 for part in parts):
            self.fail(f"expected whole numbers such as 3,30,3, got {value!r}", param, ctx)
        return tuple(map(int, parts))


@commands.command(
    "place",
    summary=SUMMARIES["place"],
    examples=(
        "bayplan place --state cluster.json -f app.yaml",
        "kubectl get nodes,namespaces,pods,deployments,replicasets -A -o json | bayplan place --state - -f new.yaml",
        "bayplan place --context prod -f web.yaml --replicas max",
        "bayplan place -f cluster.json --explain -o html --output-file plan.html",
        "bayplan place --state cluster.json --lose topology.kubernetes.io/zone=a",
        "bayplan place --state cluster.json --drain node/worker-1 --add-node like=worker-1",
        "bayplan place -f fleet/ -f shop.yaml",
    ),
    details=(
        "Pods without a node, and pods that controllers in the input would create, are tried by priority, then age, "
        "then name, and again when a later placement lets them fit. A pod of higher priority preempts others; those "
        "that a controller creates again are placed too. If the input has Karmada Cluster objects, workloads are "
        "placed on clusters by their propagation policies instead. Nothing is written to a cluster. With --state or "
        "--context, -f is what is about to be applied on it, merged as kubectl apply does. Exit code 0 if everything "
        "of the change was placed, 1 if a workload is unschedulable or lost."
    ),
    groups=(options.INPUT, options.SCOPE, options.DECISIONS, WHAT_IF, options.ARRANGEMENT, options.CONSOLE),
    params=(
        commands.Option(
            "--explain",
            is_flag=True,
            help="Explain for each unschedulable workload why every node is rejected and which changes would help.",
        ),
        commands.Option(
            "--replicas",
            type=ReplicaCount(),
            help="Show how many more replicas of each pending workload fit, without the other pending workloads. In a "
            "fleet: where each workload in scope would be with N replicas, or with as many as fit.",
        ),
        commands.Option(
            "--scale",
            type=ReplicaSteps(),
            heading=FLEETS,
            help="Show where each workload in scope would be with these numbers of replicas one after another, such "
            "as 3,30,3.",
        ),
        options.NO_PREEMPTION,
        commands.Option(
            "--rollout",
            type=click.Choice([STEPS, FINAL]),
            default=STEPS,
            show_default=True,
            help="How updates are judged. steps: as their controllers roll them out, step by step. final: whether the "
            "end fits, once all old pods are gone.",
        ),
        commands.Option(
            "--group-by",
            type=click.Choice(["owner"]),
            help="owner: the pending pods of each controller are a group, of which all are placed or none. Pods that "
            "name a group of their own stay in it.",
        ),
        commands.Option(
            "--optimize",
            is_flag=True,
            help="Place as many pods as can be, by priority, instead of one after the other, and print how many more a "
            "better plan could place at most. No pod preempts others. Needs the extra optimize.",
        ),
        commands.Option(
            "--moves",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            help="With --optimize: let up to N running pods move to make room, in an order in which no hard rule is "
            "broken and no PodDisruptionBudget exceeded on the way.",
        ),
        options.output(
            "table",
            "wide",
            "json",
            "yaml",
            "name",
            options.HTML,
            "bindings",
            options.CSV,
            options.JSONPATH,
            options.CUSTOM_COLUMNS,
        ),
        options.GATE,
        options.STRICT,
        options.EXIT_ZERO,
        commands.Option(
            "--show-unchanged",
            is_flag=True,
            heading=FLEETS,
            help="Show also the bindings that stay where they are, instead of counting them.",
        ),
        commands.Option(
            "--allow-unselected",
            is_flag=True,
            heading=FLEETS,
            help="Exit with code 0 even if no policy selects a workload of -f.",
        ),
        options.HPA,
    ),
)
def place(
    *,
    explain: bool,
    replicas: int | str | None,
    scale: tuple[int, ...] | None,
    no_preemption: bool,
    rollout: Literal["steps", "final"],
    group_by: Literal["owner"] | None,
    optimize: bool,
    moves: int,
    output: str,
    gate: Literal["change", "all"],
    strict: bool,
    exit_zero: bool,
    show_unchanged: bool,
    allow_unselected: bool,
    hpa: AssumedLoad,
    sources: options.InputOptions,
    scope: options.ScopeOptions,
    decisions: options.DecisionOptions,
    what_if: WhatIfOptions,
    arrangement: Arrangement,
    console: Console,
) -> int:
    """Write the plan; exit code 1 if a workload is unschedulable."""
    if explain and output == BINDINGS:
        raise click.UsageError("-o bindings has no place for explanations: use --explain without it")
    if replicas is not None and scale:
        raise click.UsageError("--replicas and --scale both say how many replicas: give one of them")
    if explain and (replicas is not None or scale):
        option = "--scale" if scale else "--replicas"
        raise click.UsageError(f"{option} only counts: use --explain without it")
    if what_if.drain and replicas is not None:
        raise click.UsageError("--replicas places nothing that --drain evicts: use --cordon or --lose")
    if moves and not optimize:
        raise click.UsageError("--moves is for the best plan: use it with --optimize")
    if optimize and (replicas is not None or scale):
        raise click.UsageError("--replicas and --scale only count: use --optimize without them")
    found = loading.load(sources, scope, decisions, console, assumed_load=hpa, what_if=what_if)
    from bayplan.library.fleet import Fleet

    answer: Plan | Room | FleetPlan | FleetScaling
    with loading.in_progress(found, console) as state:
        if replicas is not None or scale:
            answer = _counted(state, replicas, scale, output)
            passes = answer.ok
        elif isinstance(state, Fleet):
            if optimize:
                raise click.UsageError("--optimize is for pods: the input has Cluster objects")
            changes = state.place(explain=explain)
            answer = changes.with_unchanged() if show_unchanged else changes
            passes = changes.passes(gate=gate, strict=strict, allow_unselected=allow_unselected)
        elif output == BINDINGS:
            raise click.UsageError("-o bindings is for fleets: the input has no Cluster objects")
        else:
            answer = state.place(
                preempt=not no_preemption,
                rollouts=rollout,
                explain=explain,
                group_by=group_by or "",
                optimize=optimize,
                moves=moves,
            )
            passes = answer.passes(gate=gate, strict=strict)
    for note in answer.notes[len(found.notes) :]:  # those of the input are printed
        console.note(note)
    loading.warn(getattr(answer, "warnings", ()), console)
    width, headers, sort_by = console.table_width, arrangement.headers, arrangement.sort_by
    text = answer.to_text(output, width=width, headers=headers, sort_by=sort_by)
    console.answer(loading.signed(text, sources) if output == options.HTML else text)
    for line in getattr(answer, "summary", ()):
        console.note(line)
    return commands.exit_code(passes, exit_zero=exit_zero)


def _counted(
    state: Cluster | Fleet, replicas: int | str | None, scale: tuple[int, ...] | None, output: str
) -> Room | FleetScaling:
    """How many more replicas fit or, in a fleet, where each number of replicas would be."""
    from bayplan.library.fleet import Fleet

    limit = None if replicas is None or replicas == MAX else int(replicas)
    if isinstance(state, Fleet):
        if output in ("name", "html", BINDINGS):
            raise click.UsageError(f"-o {output} is not available with --scale and --replicas in a fleet")
        steps = scale or (() if limit is None else (limit,))
        return state.scale(*steps) if steps else state.scale_to_most()
    if scale:
        raise click.UsageError("--scale is for fleets: the input has no Cluster objects")
    if output == BINDINGS:
        raise click.UsageError("-o bindings is for fleets: the input has no Cluster objects")
    return state.how_many_more(limit)
