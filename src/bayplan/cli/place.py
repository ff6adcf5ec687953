"""`bayplan place`: where pending pods would be placed, or in a fleet pending bindings. It never writes to a cluster."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli import commands, loading, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.cli.what_if_options import WHAT_IF, WhatIfOptions

if TYPE_CHECKING:
    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.controllers.desired_state import ObjectKey
    from bayplan.engine.engine import EngineOf
    from bayplan.explaining.explanation import Explanation
    from bayplan.explaining.fixes import EvictionPolicy
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_cluster import ClusterPlacement
    from bayplan.placing.place_pods import PodPlacement
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.writing.chosen_output import Arrangement
    from bayplan.writing.placements import FillResult

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


class PodPlan(msgspec.Struct):
    """Where everything is in the end and, if requested, an explanation by workload for what is unschedulable."""

    found: ClusterPlacement
    explanations: dict[str, Explanation] = {}
    explained: dict[Hashable, Explanation] = {}  # by what equal pods have in common


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
        options.output(
            "table",
            "wide",
            "json",
            "yaml",
            "name",
            "html",
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
    rollout: str,
    output: str,
    gate: str,
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
    is_included, engines = scope.predicate(), options.configured_engines()
    found = loading.load(sources, scope, decisions, console, assumed_load=hpa, what_if=what_if)
    displaced = getattr(found, "displaced", {})  # is placed, in scope or not
    pending = [workload for workload in found.pending if workload.key in displaced or is_included(workload)]
    from bayplan.reading.cluster import LoadedCluster

    scales_running = not isinstance(found, LoadedCluster) and (replicas is not None or bool(scale))
    if not pending and not getattr(found, "rollouts", ()) and not what_if.drain and not scales_running:
        console.note("there is nothing to place")
    if not isinstance(found, LoadedCluster):
        from bayplan.cli import place_fleet

        if scales_running:
            chosen = place_fleet.scaled_workloads(found, is_included)
            fits = place_fleet.scale(chosen, found, scale or replicas or MAX, output, console, arrangement=arrangement)
            return commands.exit_code(fits, exit_zero=exit_zero)
        found.pending = pending
        asked = place_fleet.FleetRequest(
            explain,
            output,
            gate,
            strict=strict,
            shows_unchanged=show_unchanged,
            allows_unselected=allow_unselected,
            arrangement=arrangement,
        )
        return commands.exit_code(place_fleet.place(found, asked, console), exit_zero=exit_zero)
    if scale:
        raise click.UsageError("--scale is for fleets: the input has no Cluster objects")
    if output == BINDINGS:
        raise click.UsageError("-o bindings is for fleets: the input has no Cluster objects")
    if replicas is not None:
        fills = fill(pending, engines(found.index), None if replicas == MAX else int(replicas))
        console.answer(_fills_as(output, fills, console.table_width, arrangement))
        return commands.exit_code(all(one.enough for one in fills), exit_zero=exit_zero)
    n_left_out = (
        _leave_out(found, pending, scope, console) if len(pending) < len(found.pending) or found.rollouts else 0
    )
    settings = PlanSettings(explain, not no_preemption, rollout == STEPS)
    plan = plan_pods(found, engines(found.index), settings, console)
    change = plan.found.change
    placed = (one.workload for one in plan.found.placements)
    loading.warn_of_ineffective_rules((one for one in placed if change is None or one.key in change), found, console)
    console.answer(_plan_as(output, plan, found.not_judged_objects, console.table_width, arrangement))
    gated = found.change is not None and gate == options.CHANGE
    passes = _passes(plan.found, found, console, strict=strict, gated=gated)
    return commands.exit_code(passes and not (strict and n_left_out), exit_zero=exit_zero)


def _leave_out(cluster: LoadedCluster, pending: list[Workload], scope: options.ScopeOptions, console: Console) -> int:
    """Keep only these pods and the rollouts of the scope; how much of the change is not, which a note says."""
    includes = scope.includes()
    rollouts = [one for one in cluster.rollouts if includes(one.key.namespace, one.pod_labels)]
    n_pods = len({one.key for one in cluster.pending} & (cluster.change or set()) - {one.key for one in pending})
    n_rollouts = len(cluster.rollouts) - len(rollouts)
    cluster.pending, cluster.rollouts = pending, rollouts
    if n_pods or n_rollouts:
        counted = " and ".join(
            f"{n} {noun if n == 1 else f'{noun}s'}" for n, noun in ((n_pods, "pod"), (n_rollouts, "rollout")) if n
        )
        console.note(f"left out by --namespace or --selector: {counted} of the change; with --strict that is a no")
    return n_pods + n_rollouts


def _passes(answer: ClusterPlacement, cluster: LoadedCluster, console: Console, *, strict: bool, gated: bool) -> bool:
    """Whether the answer is yes: of the change if `gated`, else of everything. Notes count what is what."""
    from bayplan.placing.rollout_history import HELD_BACK, STUCK
    from bayplan.writing import placements, rollouts

    counted = placements.counts(answer)
    notes = (*counted.notes(len(cluster.not_judged_objects)), *rollouts.summaries(answer.rollouts))
    for note in notes:
        if note:
            console.note(note)
    ends = [one.result for one in answer.rollouts]
    n_bad = counted.change.n_bad if gated else counted.change.n_bad + counted.others.n_bad
    n_unknown = counted.n_not_judged + len(cluster.not_judged_objects) + cluster.n_set_aside
    n_unknown += cluster.n_unread + ends.count(HELD_BACK)
    return not n_bad and not answer.blocked and STUCK not in ends and not (strict and n_unknown)


class PlanSettings(msgspec.Struct, frozen=True):
    """`explains`: what is unschedulable is explained. `in_steps`: rollouts are stepped through."""

    explains: bool
    preempts: bool
    in_steps: bool


def plan_pods(cluster: LoadedCluster, engine_of: EngineOf, settings: PlanSettings, console: Console) -> PodPlan:
    """Place the pods as a scheduler would; those that fit nowhere in the end are explained."""
    from bayplan.placing import place_cluster
    from bayplan.placing.place_cluster import PlacingOptions

    with console.progress() as show:

        def progress(n_attempts: int, step: int) -> None:
            show(lambda: f"placing: {n_attempts} of {len(cluster.pending)}" + (f", step {step}" if step else ""))

        chosen = PlacingOptions(preempts=settings.preempts, in_steps=settings.in_steps, progress=progress)
        plan = PodPlan(place_cluster.place(cluster, engine_of, chosen))
        unplaced = [one for one in plan.found.placements if one.is_unschedulable] if settings.explains else []
        for placement in unplaced:
            _explain(placement, engine_of, plan, cluster.eviction_policy())
            show(lambda: f"explaining: {len(plan.explanations)} of {len(unplaced)}")
    return plan


def _explain(placement: PodPlacement, engine_of: EngineOf, plan: PodPlan, policy: EvictionPolicy) -> None:
    """Add an explanation, made once for equal pods, and shown once for the replicas of a controller."""
    from bayplan.engine import equivalence
    from bayplan.explaining import explanation

    workload, engine = placement.workload, engine_of(placement.workload)
    equal = equivalence.signature(workload, engine.index), workload.scheduler_name, placement.message
    if equal not in plan.explained:
        plan.explained[equal] = explanation.explain(workload, engine, policy=policy)
    # It is shown once for the replicas of a controller, and once for bare pods with the same labels.
    whose = equal, workload.controller or tuple(sorted(workload.labels.items()))
    if whose not in plan.explained:
        plan.explained[whose] = msgspec.structs.replace(plan.explained[equal], workload=workload.key)
    plan.explanations[workload.key] = plan.explained[whose]


def fill(pending: Sequence[Workload], engine_of: EngineOf, most: int | None) -> list[FillResult]:
    """How many replicas of each pending workload fit if nothing else is placed; equal replicas are one row."""
    from bayplan.placing import place_pods
    from bayplan.writing.placements import FillResult

    found = place_pods.how_many_more_of_each(pending, engine_of, most)
    return [FillResult(workload.key, capacity, most) for workload, capacity in found]


def _plan_as(
    output: str,
    plan: PodPlan,
    not_judged: Sequence[tuple[ObjectKey, str]],
    width: int | None,
    arrangement: Arrangement,
) -> str:
    from bayplan.writing import chosen_output, placements, rollouts, tables

    if output == "name":
        return tables.name_lines(placement.workload for placement in plan.found.placements)
    if chosen_output.is_document(output):
        contents = contents_of(plan.explanations) if plan.explanations else {}
        return chosen_output.document(placements.document(plan.found, contents, not_judged), output, arrangement)
    if output == chosen_output.CSV:
        return chosen_output.table(placements.table(plan.found.placements, wide=True), None, output, arrangement)
    # A shared explanation is printed once, under the workload that it was made for.
    distinct: dict[str, Explanation] = {found.workload: found for found in plan.explanations.values()}
    texts = texts_of(distinct) if distinct else {}
    if output == "html":
        from bayplan.writing import html_report

        return html_report.page(plan.found, texts)
    found = placements.tables_of(plan.found, wide=output == "wide")
    parts = [chosen_output.table(part, width, arrangement=arrangement) for part in found]
    if plan.found.blocked:
        from bayplan.writing import what_if

        parts.append(what_if.text(plan.found.blocked))
    parts.append(rollouts.text(plan.found.rollouts, width, wide=output == "wide").lstrip("\n"))
    return "\n".join(filter(None, parts)) + "".join(f"\n{key}: {text}" for key, text in texts.items())


def contents_of(explained: Mapping[str, Explanation]) -> dict[str, dict[str, Any]]:
    """The explanations as documents, by workload."""
    from bayplan.writing import explanations

    return {key: explanations.content(found) for key, found in explained.items()}


def texts_of(explained: Mapping[str, Explanation]) -> dict[str, str]:
    """The explanations as texts, by workload."""
    from bayplan.writing import explanations

    return {key: explanations.text(found) for key, found in explained.items()}


def _fills_as(output: str, fills: Sequence[FillResult], width: int | None, arrangement: Arrangement) -> str:
    from bayplan.writing import chosen_output, placements

    if output == "name":
        return placements.fill_names(fills)
    if chosen_output.is_document(output):
        return chosen_output.document(placements.fill_document(fills), output, arrangement)
    table = placements.fill_table(fills)
    if output == "html":
        from bayplan.writing import html_report

        return html_report.rows_page("How many more fit", table)
    return chosen_output.table(table, width, output, arrangement)
