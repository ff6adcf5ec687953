"""`bayplan place` for a fleet: what moves where if the change is applied, and whether the answer is yes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import options
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.explaining.explanation import Explanation
    from bayplan.model.workloads import Workload
    from bayplan.placing.fleet_changes import BindingChange
    from bayplan.reading.fleet import Fleet
    from bayplan.wire.fleets import ResourceBinding
    from bayplan.writing.chosen_output import Arrangement
    from bayplan.writing.fleet_placements import ScaledStep

_MAX_NAMES_SHOWN = 3


class FleetRequest(msgspec.Struct, frozen=True):
    """What is asked of a fleet, and how it is shown."""

    explains: bool
    output: str
    gate: str
    strict: bool
    shows_unchanged: bool
    allows_unselected: bool
    arrangement: Arrangement


class FleetPlan(msgspec.Struct):
    """What happens to each pending binding and, if requested, an explanation by workload for what is unschedulable."""

    changes: list[BindingChange]
    explanations: dict[str, Explanation]


def place(fleet: Fleet, asked: FleetRequest, console: Console) -> bool:
    """Write what moves; returns whether the answer is yes."""
    plan = _plan(fleet, explains=asked.explains, console=console)
    console.answer(_as(asked, plan, fleet, console.table_width))
    return _passes(plan, fleet, asked, console)


def scaled_workloads(fleet: Fleet, is_included: Callable[[Workload], bool]) -> list[Workload]:
    """The bindings in scope whose replicas are divided or copied, pending or not, by name."""
    running = {key: record.workload for key, record in fleet.index.records.items() if not record.workload.terminating}
    known = {**running, **{one.key: one for one in fleet.pending}}
    chosen = [
        one for one in known.values() if is_included(one) and one.binding is not None and one.binding.is_divisible
    ]
    return sorted(chosen, key=lambda one: one.key)


def scale(
    workloads: list[Workload],
    fleet: Fleet,
    steps: tuple[int, ...] | int | str,
    output: str,
    console: Console,
    *,
    arrangement: Arrangement,
) -> bool:
    """Write where the workloads are after each step, or with as many replicas as fit; whether all are placed."""
    from bayplan.writing import chosen_output, fleet_placements

    if output in ("name", "html", "bindings"):
        raise click.UsageError(f"-o {output} is not available with --scale and --replicas in a fleet")
    if not workloads:
        console.note("no workload in scope has replicas")
    found = list(_steps_of(workloads, fleet, (steps,) if isinstance(steps, int) else steps))
    if chosen_output.is_document(output):
        console.answer(chosen_output.document(fleet_placements.scaled_document(found), output, arrangement))
    else:
        table = fleet_placements.scaled_table(found)
        console.answer(chosen_output.table(table, console.table_width, output, arrangement) if found else "")
    return bool(found) and all(one.change.placement.placed for one in found)


def _steps_of(workloads: list[Workload], fleet: Fleet, steps: tuple[int, ...] | str) -> Iterator[ScaledStep]:
    """Each step of each workload; `steps` is a text for as many replicas as fit."""
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.placing import scaling
    from bayplan.placing.fleet_changes import Origins
    from bayplan.rules import profiles
    from bayplan.writing.fleet_placements import ScaledStep

    engine = FleetEngine(fleet.index, profiles.fleet_rules())
    origins = Origins(fleet.was, fleet.policies)
    for workload in workloads:
        limit = scaling.most_replicas(workload, engine) if isinstance(steps, str) else None
        if limit is not None and limit.replicas is None:
            yield ScaledStep(origins.unplaced(workload), "no cluster limits the replicas")
            continue
        numbers = (limit.replicas or 1,) if limit is not None else tuple(map(int, steps))
        was = origins.was.get(workload.key, ())
        for placement in scaling.scale(workload, engine, numbers):
            change = msgspec.structs.replace(origins.change_of(placement, fleet.index), was=was)
            yield ScaledStep(change, "" if limit is None else limit.message)
            was = placement.shares


def _plan(fleet: Fleet, *, explains: bool, console: Console) -> FleetPlan:
    """Place one after another; an unschedulable binding is explained before the next one changes the index."""
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.explaining import explanation
    from bayplan.placing import fleet_fixes, place_bindings
    from bayplan.placing.fleet_changes import Origins
    from bayplan.rules import profiles

    engine = FleetEngine(fleet.index, profiles.fleet_rules())
    origins = Origins(fleet.was, fleet.policies, fleet.change)
    plan = FleetPlan([], {})
    with console.progress() as show:
        for placement in place_bindings.place_all(fleet.pending, engine):
            plan.changes.append(origins.change_of(placement, fleet.index))
            show(lambda: f"placing: {len(plan.changes)} of {len(fleet.pending)}")
            if explains and not placement.placed:
                workload = placement.workload
                explained = explanation.explain_binding(workload, engine)
                fixes = fleet_fixes.find(workload, engine)
                plan.explanations[workload.key] = msgspec.structs.replace(explained, fixes=fixes)
    return plan


def _as(asked: FleetRequest, plan: FleetPlan, fleet: Fleet, width: int | None) -> str:
    from bayplan.cli import place as pods
    from bayplan.writing import chosen_output, fleet_placements, tables

    if asked.output == pods.BINDINGS:
        return fleet_placements.binding_list(_bindings_after(plan, fleet))
    if chosen_output.is_document(asked.output):
        contents = pods.contents_of(plan.explanations) if plan.explanations else {}
        return chosen_output.document(
            fleet_placements.document(plan.changes, contents), asked.output, asked.arrangement
        )
    shown = [change for change in plan.changes if asked.shows_unchanged or not change.is_unchanged]
    if asked.output == "name":
        return tables.name_lines(change.placement.workload for change in shown)
    texts = pods.texts_of(plan.explanations) if plan.explanations else {}
    table = fleet_placements.table(shown, wide=asked.output == "wide")
    if asked.output == "html":
        from bayplan.writing import html_report

        return html_report.rows_page("Placement plan", table, texts)
    drawn = chosen_output.table(table, width, asked.output, asked.arrangement) if shown else ""
    if asked.output == chosen_output.CSV:
        return drawn
    return drawn + "".join(f"\n{key}: {text}" for key, text in texts.items())


def _bindings_after(plan: FleetPlan, fleet: Fleet) -> Iterator[ResourceBinding]:
    """All bindings of the fleet as they will be, with the labels of their templates."""
    from bayplan.placing import fleet_changes

    placed = {change.placement.workload.key: change.placement for change in plan.changes}
    for key, binding in fleet.bindings.items():
        record = fleet.index.records.get(key)
        after = fleet_changes.scheduled(binding, placed[key]) if key in placed else binding
        workload = placed[key].workload if key in placed else None if record is None else record.workload
        yield after if workload is None else fleet_changes.with_labels(after, workload)


def _passes(plan: FleetPlan, fleet: Fleet, asked: FleetRequest, console: Console) -> bool:
    """Whether the answer is yes: of the change if there is one, else of everything. Notes count what is what."""
    from bayplan.assigning.candidates import LabelsNotKnown
    from bayplan.writing import fleet_placements, tables

    of_change, others = fleet_placements.counts(plan.changes)
    if fleet.change is None:
        console.note(of_change.note(""))
    else:
        console.note(of_change.note(" of the change") if of_change.n_all else "the change concerns no binding")
        if others.n_all:
            console.note(others.note(" of the other bindings"))
    if fleet.unselected:
        names = tables.listed(sorted(fleet.unselected), _MAX_NAMES_SHOWN)
        console.note(f"no policy selects {names}; with --allow-unselected that is no reason for exit code 1")
    unknown = [one for one in plan.changes if not one.of_change and one.placement.reason == LabelsNotKnown.reason]
    n_not_judged = fleet.n_not_judged + len(unknown)
    if n_not_judged:
        console.note(f"not judged: {tables.counted(n_not_judged, 'object')}; with --strict that is a no")
    n_bad = of_change.n_all - of_change.n_placed
    if asked.gate != options.CHANGE:
        n_bad += others.n_all - others.n_placed
    is_unselected = bool(fleet.unselected) and not asked.allows_unselected
    return not n_bad and not is_unselected and not (asked.strict and n_not_judged)
