"""`bayplan place`: where everything that waits would go. Never writes to a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli import commands, loading, options, outcomes, place_fleet
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.explaining.explanation import Explanation
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_pods import PodPlacement, RulesOf
    from bayplan.writing.placements import Fill

MAX = "max"


class ReplicasType(click.ParamType[int | str]):
    """A number of replicas, or `max` for as many as fit."""

    name = "N|max"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The number, or `max`."""
        if value == MAX:
            return MAX
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"expected a whole number above 0 or {MAX}, got {value!r}", param, ctx)
        return int(value)


class PodPlan(msgspec.Struct):
    """The placements in order, and the explanation of those that fit nowhere if it was asked for, by workload."""

    placements: list[PodPlacement]
    explanations: dict[str, Explanation]


@commands.command(
    "place",
    summary="Show where everything that waits would go, one after another.",
    examples=(
        "bayplan place -f cluster.yaml -f app.yaml",
        "kubectl get nodes,pods,services,deployments -A -o json | bayplan place -f - -f new.yaml -o wide",
        "bayplan place -f cluster.json -f web.yaml --replicas max",
        "bayplan place -f cluster.json --explain -o html --output-file plan.html",
        "bayplan place -f fleet/ -f shop.yaml",
    ),
    details=(
        "Pods without a node and those that controllers would still make are placed by priority, then age, then name. "
        "Where the input has Karmada's Cluster objects, workloads go to clusters by their policies instead. "
        "Nothing is written to any cluster. Exit code 0 if everything was placed, 1 if something fits nowhere."
    ),
    groups=(options.SOURCES, options.SCOPE, options.DECIDING, options.CONSOLE),
    params=(
        commands.Option("--explain", is_flag=True, help="Say for every node why not, and what would help."),
        commands.Option(
            "--replicas", type=ReplicasType(), help="How many more of each waiting workload fit, on its own."
        ),
        options.output("table", "wide", "json", "yaml", "name", "html"),
        options.EXIT_ZERO,
    ),
)
def place(
    *,
    explain: bool,
    replicas: int | str | None,
    output: str,
    exit_zero: bool,
    sources: options.Sources,
    scope: options.Scope,
    deciding: options.Deciding,
    console: Console,
) -> int:
    """Write the plan: 1 if something fits nowhere."""
    if explain and replicas is not None:
        raise click.UsageError("--replicas only counts: ask for --explain without it")
    selector, rules_of = scope.parsed_selector(), options.configured_rules_of()
    found = loading.load(sources, scope, deciding, console)
    pending = [workload for workload in found.pending if scope.includes(workload, selector)]
    if not pending:
        console.note("nothing waits for a place")
    from bayplan.reading.fleet import Fleet

    if isinstance(found, Fleet):
        if replicas is not None:
            raise click.UsageError("--replicas counts pods on nodes; in a fleet, change the replicas of the template")
        answer = place_fleet.answer(pending, found.index, output, explains=explain, console=console)
        return outcomes.of(answer, exit_zero=exit_zero)
    if replicas is not None:
        most = None if replicas == MAX else int(replicas)
        fills = fill(pending, found.index, rules_of, most)
        console.answer(_fills_as(output, fills, console.table_width))
        return outcomes.of(all(f.enough for f in fills), exit_zero=exit_zero)
    plan = plan_of(pending, found.index, rules_of, explains=explain, console=console)
    console.answer(_plan_as(output, plan, console.table_width))
    n_placed = sum(bool(p.target) for p in plan.placements)
    console.note(f"{n_placed} of {len(plan.placements)} placed")
    return outcomes.of(n_placed == len(plan.placements), exit_zero=exit_zero)


def plan_of(
    pending: Sequence[Workload], index: PlacementIndex, rules_of: RulesOf, *, explains: bool, console: Console
) -> PodPlan:
    """Place one after another; what fits nowhere is explained before the next one changes the index."""
    from bayplan.explaining import explanation
    from bayplan.placing import place_pods

    plan = PodPlan([], {})
    known: dict[Any, Explanation] = {}
    with console.progress() as line:
        for placement in place_pods.place_all(pending, index, rules_of):
            plan.placements.append(placement)
            line.show(lambda: f"placing: {len(plan.placements)} of {len(pending)}")
            if placement.target or not explains:
                continue
            # Replicas that fail alike have one explanation between them.
            workload = placement.workload
            alike = (workload.namespace, workload.needs, tuple(sorted(workload.labels.items())), placement.message)
            if alike not in known:
                known[alike] = explanation.explain(workload, index, rules_of(workload))
            plan.explanations[workload.key] = known[alike]
    return plan


def fill(pending: Sequence[Workload], index: PlacementIndex, rules_of: RulesOf, most: int | None) -> list[Fill]:
    """How many of each kind of waiting workload fit if nothing else were placed; replicas of one kind count once."""
    from bayplan.placing import place_pods
    from bayplan.writing.placements import Fill

    kinds = {(workload.namespace, workload.needs): workload for workload in reversed(pending)}
    return [
        Fill(workload.key, place_pods.how_many_more(workload, index, rules_of(workload), most), most)
        for workload in reversed(kinds.values())
    ]


def _plan_as(output: str, plan: PodPlan, width: int | None) -> str:
    from bayplan.writing import explanations, html_report, placements, tables, versioned

    if output == "name":
        return placements.names(plan.placements)
    if output in ("json", "yaml"):
        contents = {key: explanations.content(found) for key, found in plan.explanations.items()}
        return versioned.written(placements.document(plan.placements, contents), output)
    texts = _texts(plan, explanations.text)
    if output == "html":
        return html_report.page(plan.placements, texts)
    table = tables.rendered(placements.table(plan.placements, wide=output == "wide"), width)
    return table + "".join(f"\n{key}: {text}" for key, text in texts.items())


def _texts(plan: PodPlan, text: Callable[[Explanation], str]) -> dict[str, str]:
    """Each explanation once, under the first workload that it is of."""
    first: dict[str, str] = {}
    for found in plan.explanations.values():
        if found.workload not in first:
            first[found.workload] = text(found)
    return first


def _fills_as(output: str, fills: Sequence[Fill], width: int | None) -> str:
    from bayplan.writing import html_report, placements, tables, versioned

    if output == "name":
        return placements.fill_names(fills)
    if output in ("json", "yaml"):
        return versioned.written(placements.fill_document(fills), output)
    table = placements.fill_table(fills)
    return html_report.rows_page("How many more fit", table) if output == "html" else tables.rendered(table, width)
