"""Where the workloads of a fleet are once they are placed, what moves, and whether the answer is yes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bayplan.library import arguments
from bayplan.library.answers import DOCUMENT_FORMATS, Answer, Values, frozen
from bayplan.library.explanation import Explanation, explanation_of, without_revisions

if TYPE_CHECKING:
    from bayplan.explaining.explanation import Explanation as Explained
    from bayplan.library.inputs import Show
    from bayplan.model.targets import Target
    from bayplan.model.workloads import Workload, WorkloadKey
    from bayplan.placing.fleet_changes import BindingChange
    from bayplan.placing.place_bindings import Shares
    from bayplan.reading.fleet import LoadedFleet
    from bayplan.wire.fleets import ResourceBinding
    from bayplan.writing.chosen_output import Arrangement
    from bayplan.writing.fleet_placements import ScaledStep

_MAX_NAMES_SHOWN = 3
_BINDINGS = "bindings"


class PlannedBinding(msgspec.Struct, frozen=True):
    """
    Where one workload of a fleet is in the end.

    `clusters` and `previous` have the replicas by cluster, 0 where replicas are not divided. `policy` is its name,
    `affinity` the affinity group that was chosen. A workload that is not `placed` has a `reason` and a `message`.
    """

    namespace: str
    kind: str
    name: str
    binding: str
    replicas: int
    clusters: Mapping[str, int]
    previous: Mapping[str, int]
    placed: bool
    unchanged: bool
    of_change: bool
    policy: str
    affinity: str
    reason: str
    message: str
    unmet_spread_constraints: tuple[str, ...]


class FleetPlan(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `Fleet.place`: where every workload that waited is in the end.

    `bindings` has them by NAMESPACE/NAME of the binding in the order of placement. `notes` say what was read, created
    and left out, `summary` counts what is what. `unselected` are workloads of the change that no policy selects.
    """

    bindings: Mapping[str, PlannedBinding]
    notes: tuple[str, ...]
    summary: tuple[str, ...]
    unselected: tuple[str, ...]
    _changes: Sequence[BindingChange]
    _shown: Sequence[BindingChange]
    _explained: Mapping[str, Explained]
    _all_bindings: Mapping[WorkloadKey, ResourceBinding]
    _was: Mapping[WorkloadKey, Shares]
    _running: Mapping[WorkloadKey, Workload]
    _n_not_judged: int
    _targets: tuple[Target, ...] = ()
    _shares: Mapping[WorkloadKey, Shares] = {}
    _formats = (
        "table", "wide", *DOCUMENT_FORMATS, "name", "html", _BINDINGS, "csv", "jsonpath=", "custom-columns="
    )  # fmt: skip

    def __iter__(self) -> Iterator[PlannedBinding]:
        return iter(self.bindings.values())

    def __len__(self) -> int:
        return len(self.bindings)

    @property
    def ok(self) -> bool:
        """Whether everything of the change is placed; the exit code is 0 then."""
        return self.passes()

    def passes(
        self, *, gate: Literal["change", "all"] = "change", strict: bool = False, allow_unselected: bool = False
    ) -> bool:
        """Whether the answer is yes, as --gate, --strict and --allow-unselected ask for it."""
        arguments.check_choice("gate", gate, ("change", "all"))
        from bayplan.writing import fleet_placements

        of_change, others = fleet_placements.counts(self._changes)
        n_bad = of_change.n_all - of_change.n_placed
        if gate != "change":
            n_bad += others.n_all - others.n_placed
        is_unselected = bool(self.unselected) and not allow_unselected
        return not n_bad and not is_unselected and not (strict and self._n_not_judged)

    @property
    def unschedulable(self) -> tuple[PlannedBinding, ...]:
        """The workloads that no clusters take."""
        return tuple(one for one in self if not one.placed)

    @property
    def explanations(self) -> Mapping[str, Explanation]:
        """With `explain`, an explanation for each workload that is unschedulable."""
        return frozen({key: explanation_of(found) for key, found in self._explained.items()})

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import explanations, fleet_placements

        contents = {key: explanations.content(found) for key, found in self._explained.items()}
        return fleet_placements.document(self._changes, contents)

    def _bindings_after(self) -> Iterator[ResourceBinding]:
        """All bindings of the fleet as they will be, with the labels of their templates."""
        from bayplan.placing import fleet_changes

        placed = {change.placement.workload.key: change.placement for change in self._changes}
        for key, binding in self._all_bindings.items():
            after = fleet_changes.scheduled(binding, placed[key]) if key in placed else binding
            after = fleet_changes.with_report(after, self._was.get(key, ()))
            workload = placed[key].workload if key in placed else self._running.get(key)
            yield after if workload is None else fleet_changes.with_labels(after, workload)

    def moved(self) -> tuple[PlannedBinding, ...]:
        """The workloads that are not where they were."""
        return tuple(one for one in self if not one.unchanged)

    def with_unchanged(self) -> FleetPlan:
        """The same plan, whose tables and names also have what stays where it is."""
        return msgspec.structs.replace(self, _shown=self._changes)

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        from bayplan.writing import chosen_output, fleet_placements, tables

        if output == _BINDINGS:
            return fleet_placements.binding_list(self._bindings_after())
        if output == "name":
            return tables.name_lines(change.placement.workload for change in self._shown)
        shown, texts = self._shown, dict[str, str]()
        if self._explained:
            from bayplan.writing import explanations

            texts = {key: explanations.text(found) for key, found in self._explained.items()}
        table = fleet_placements.table(shown, wide=output == "wide")
        if output == "html":
            from bayplan.library import drawn as pictures
            from bayplan.writing import html_report

            picture = pictures.of_fleet_placement(self._targets, self._shares, [one.placement for one in self._changes])
            return html_report.rows_page("Placement plan", table, texts, picture)
        drawn = chosen_output.table(table, width, output, arrangement) if shown else ""
        if output == chosen_output.CSV:
            return drawn
        return drawn + "".join(f"\n{key}: {text}" for key, text in texts.items())

    def _summary(self) -> str:
        return ", ".join(self.summary) + ("" if self.ok else "; not ok")


def place(
    includes: Callable[[Workload], bool], fleet: LoadedFleet, notes: tuple[str, ...], *, explains: bool, show: Show
) -> FleetPlan:
    """Place one after another; an unschedulable binding is explained before the next one changes the index."""
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.explaining import explanation
    from bayplan.placing import fleet_fixes, place_bindings
    from bayplan.placing.fleet_changes import Origins
    from bayplan.rules import fleet_profile

    pending = [one for one in fleet.pending if includes(one)]
    engine = FleetEngine(fleet.index, fleet_profile.fleet_rules())
    origins = Origins(fleet.was, fleet.policies, fleet.change)
    changes: list[BindingChange] = []
    explained: dict[str, Explained] = {}
    for placement in place_bindings.place_all(pending, engine):
        changes.append(origins.change_of(placement, fleet.index))
        show(lambda: f"placing: {len(changes)} of {len(pending)}")
        if explains and not placement.placed:
            workload = placement.workload
            found = explanation.explain_binding(workload, engine)
            found = msgspec.structs.replace(found, fixes=fleet_fixes.find(workload, engine))
            explained[workload.key] = without_revisions(found)
    changes += [origins.abandoned(workload, why) for workload, why in fleet.abandoned if includes(workload)]
    if not changes:
        notes = (*notes, "there is nothing to place")
    return _plan_of(changes, explained, fleet, notes)


def _plan_of(
    changes: Sequence[BindingChange], explained: Mapping[str, Explained], fleet: LoadedFleet, notes: tuple[str, ...]
) -> FleetPlan:
    from bayplan.assigning.candidates import LabelsNotKnown

    unknown = [one for one in changes if not one.of_change and one.placement.reason == LabelsNotKnown.reason]
    n_not_judged = fleet.n_not_judged + len(unknown)
    return FleetPlan(
        bindings=Values({one.placement.workload.key: one for one in changes}, planned),
        notes=notes,
        summary=tuple(_counts(changes, fleet, n_not_judged)),
        unselected=tuple(fleet.unselected),
        _changes=changes,
        _shown=[one for one in changes if not one.is_unchanged],
        _explained=explained,
        _all_bindings=dict(fleet.bindings),
        _was=fleet.was,
        _running={key: record.workload for key, record in fleet.index.records.items()},
        _n_not_judged=n_not_judged,
        _targets=tuple(fleet.index.slots.at(slot) for _, slot in sorted(fleet.index.slots.by_name.items())),
        _shares={key: record.shares for key, record in fleet.index.records.items()},
    )


def _counts(changes: Sequence[BindingChange], fleet: LoadedFleet, n_not_judged: int) -> Iterator[str]:
    """Lines that count what is what."""
    from bayplan.writing import fleet_placements, tables

    of_change, others = fleet_placements.counts(changes)
    if fleet.change is None:
        yield of_change.note("")
    else:
        yield of_change.note(" of the change") if of_change.n_all else "the change concerns no binding"
        if others.n_all:
            yield others.note(" of the other bindings")
    if fleet.unselected:
        names = tables.listed(sorted(fleet.unselected), _MAX_NAMES_SHOWN)
        yield f"no policy selects {names}; with --allow-unselected that is no reason for exit code 1"
    if n_not_judged:
        yield f"not judged: {tables.counted(n_not_judged, 'object')}; with --strict that is a no"


def planned(change: BindingChange) -> PlannedBinding:
    """The value of one change."""
    placement, binding = change.placement, change.placement.workload.binding
    assert binding is not None
    return PlannedBinding(
        namespace=placement.workload.namespace,
        kind=binding.kind,
        name=binding.name,
        binding=placement.workload.name,
        replicas=binding.replicas,
        clusters=frozen(dict(placement.shares)),
        previous=frozen(dict(change.was)),
        placed=placement.placed,
        unchanged=change.is_unchanged,
        of_change=change.of_change,
        policy="" if change.policy is None else change.policy.name,
        affinity=placement.group,
        reason=placement.reason,
        message=placement.message,
        unmet_spread_constraints=tuple(change.unmet),
    )


class FleetScaling(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `Fleet.scale`: each workload in scope with each number of replicas, as a binding that is planned.

    `limits` say of each step why there are not more replicas; empty where a number was asked for.
    """

    steps: tuple[PlannedBinding, ...]
    limits: tuple[str, ...]
    notes: tuple[str, ...]
    _steps: Sequence[ScaledStep]
    _formats = ("table", "wide", *DOCUMENT_FORMATS, "csv", "jsonpath=", "custom-columns=")

    def __iter__(self) -> Iterator[PlannedBinding]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def ok(self) -> bool:
        """Whether all steps are placed."""
        return bool(self.steps) and all(one.placed for one in self.steps)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import fleet_placements

        return fleet_placements.scaled_document(self._steps)

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        from bayplan.writing import chosen_output, fleet_placements

        table = fleet_placements.scaled_table(self._steps)
        return chosen_output.table(table, width, output, arrangement) if self._steps else ""

    def _summary(self) -> str:
        return f"{len(self.steps)} steps" + ("" if self.ok else "; not ok")


def scale(
    fleet: LoadedFleet,
    is_included: Callable[[Workload], bool],
    replicas: Sequence[int] | None,
    notes: tuple[str, ...],
) -> FleetScaling:
    """Where each workload in scope is after each step, or with as many replicas as fit if they are None."""
    running = {key: record.workload for key, record in fleet.index.records.items() if not record.workload.terminating}
    known = {**running, **{one.key: one for one in fleet.pending}}
    chosen = [
        one for one in known.values() if is_included(one) and one.binding is not None and one.binding.is_divisible
    ]
    if not chosen:
        notes = (*notes, "no workload in scope has replicas")
    steps = list(_steps_of(sorted(chosen, key=lambda one: one.key), fleet, replicas))
    return FleetScaling(tuple(planned(one.change) for one in steps), tuple(one.limit for one in steps), notes, steps)


def _steps_of(
    workloads: Sequence[Workload], fleet: LoadedFleet, replicas: Sequence[int] | None
) -> Iterator[ScaledStep]:
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.placing import scaling
    from bayplan.placing.fleet_changes import Origins
    from bayplan.rules import fleet_profile
    from bayplan.writing.fleet_placements import ScaledStep

    engine = FleetEngine(fleet.index, fleet_profile.fleet_rules())
    origins = Origins(fleet.was, fleet.policies)
    for workload in workloads:
        limit = scaling.most_replicas(workload, engine) if replicas is None else None
        if limit is not None and limit.replicas is None:
            yield ScaledStep(origins.unplaced(workload), "no cluster limits the replicas")
            continue
        numbers = (limit.replicas or 1,) if limit is not None else tuple(replicas or ())
        was = origins.was.get(workload.key, ())
        for placement in scaling.scale(workload, engine, numbers):
            change = msgspec.structs.replace(origins.change_of(placement, fleet.index), was=was)
            yield ScaledStep(change, "" if limit is None else limit.message)
            was = placement.shares
