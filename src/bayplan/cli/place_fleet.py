"""`bayplan place` for a fleet: where every binding that waits would go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.explaining.explanation import Explanation
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_bindings import BindingPlacement


class FleetPlan(msgspec.Struct):
    """The placements in order, and the explanation of those that fit nowhere if it was asked for, by workload."""

    placements: list[BindingPlacement]
    explanations: dict[str, Explanation]


def answer(
    pending: Sequence[Workload], index: PlacementIndex, output: str, *, explains: bool, console: Console
) -> bool:
    """Write the plan; whether everything was placed."""
    plan = plan_of(pending, index, explains=explains, console=console)
    console.answer(_plan_as(output, plan, console.table_width))
    n_placed = sum(placement.placed for placement in plan.placements)
    console.note(f"{n_placed} of {len(plan.placements)} placed")
    return n_placed == len(plan.placements)


def plan_of(pending: Sequence[Workload], index: PlacementIndex, *, explains: bool, console: Console) -> FleetPlan:
    """Place one after another; what fits nowhere is explained before the next one changes the index."""
    from bayplan.explaining import explanation
    from bayplan.placing import place_bindings
    from bayplan.rules import profiles

    rules = profiles.fleet_rules()
    plan = FleetPlan([], {})
    with console.progress() as line:
        for placement in place_bindings.place_all(pending, index, rules):
            plan.placements.append(placement)
            line.show(lambda: f"placing: {len(plan.placements)} of {len(pending)}")
            if explains and not placement.placed:
                workload = placement.workload
                plan.explanations[workload.key] = explanation.explain_binding(workload, index, rules)
    return plan


def _plan_as(output: str, plan: FleetPlan, width: int | None) -> str:
    from bayplan.writing import explanations, fleet_placements, html_report, tables, versioned

    if output == "name":
        return fleet_placements.names(plan.placements)
    if output in ("json", "yaml"):
        contents = {key: explanations.content(found) for key, found in plan.explanations.items()}
        return versioned.written(fleet_placements.document(plan.placements, contents), output)
    texts = {key: explanations.text(found) for key, found in plan.explanations.items()}
    table = fleet_placements.table(plan.placements, wide=output == "wide")
    if output == "html":
        return html_report.rows_page("Placement plan", table, texts)
    return tables.rendered(table, width) + "".join(f"\n{key}: {text}" for key, text in texts.items())
