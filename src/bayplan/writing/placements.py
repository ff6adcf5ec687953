"""The answer of `place` for pods, in every output format. It does not know how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.placing.place_pods import PodPlacement, RemainingCapacity
from bayplan.writing import rollouts, tables, versioned
from bayplan.writing.tables import Table

if TYPE_CHECKING:
    from bayplan.controllers.desired_state import ObjectKey
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_cluster import ClusterPlacement

_UNSCHEDULABLE_STYLE = "red"
_MAX_NAMES_SHOWN = 3


class PlacementCounts(msgspec.Struct):
    """How many pods are placed; `n_not_judged` are neither placed nor unplaced, and `n_preempted` are counted twice."""

    n_placed: int = 0
    n_unplaced: int = 0
    n_not_judged: int = 0
    n_refused: int = 0
    n_preempted: int = 0
    n_lost: int = 0

    def add(self, placement: PodPlacement) -> None:
        """Count one pod."""
        self.n_placed += bool(placement.target)
        self.n_not_judged += bool(placement.not_judged)
        self.n_unplaced += not placement.target and not placement.not_judged
        self.n_refused += placement.refused
        self.n_preempted += bool(placement.preemptor)
        self.n_lost += placement.lost

    @property
    def n_bad(self) -> int:
        """The pods for which the answer is no."""
        return self.n_unplaced


class AnswerCounts(msgspec.Struct):
    """The pods of the change, and the others; everything is of the change if there is none."""

    change: PlacementCounts = msgspec.field(default_factory=PlacementCounts)
    others: PlacementCounts = msgspec.field(default_factory=PlacementCounts)
    has_change: bool = False

    @property
    def n_not_judged(self) -> int:
        return self.change.n_not_judged + self.others.n_not_judged

    def notes(self, n_not_judged_objects: int) -> Iterator[str]:
        """A line for the change and one for the others, and what was not judged."""
        yield self._note(self.change, " of the change" if self.has_change else "")
        n_others = self.others.n_placed + self.others.n_unplaced + self.others.n_not_judged
        if self.has_change and n_others:
            yield self._note(self.others, " of what was pending before")
        n_unknown = self.n_not_judged + n_not_judged_objects
        if n_unknown:
            parts = [tables.counted(self.n_not_judged, "pod")] if self.n_not_judged else []
            if n_not_judged_objects:
                parts.append(f"the pods of {tables.counted(n_not_judged_objects, 'object')}")
            yield f"not judged: {' and '.join(parts)}; with --strict that is a no"

    def _note(self, counts: PlacementCounts, whose: str) -> str:
        n_all = counts.n_placed + counts.n_unplaced + counts.n_not_judged
        if whose and not n_all:
            return f"there is nothing to place{whose}"
        text = f"{counts.n_placed} of {n_all} placed{whose}"
        further = [(counts.n_refused, "refused"), (counts.n_preempted, "preempted"), (counts.n_lost, "lost")]
        return ", ".join([text, *(f"{n} {what}" for n, what in further if n)])


def counts(answer: ClusterPlacement) -> AnswerCounts:
    """Everything counted, the change apart from the rest."""
    found = AnswerCounts(has_change=answer.change is not None)
    for placement in answer.placements:
        is_of_change = answer.change is None or placement.workload.key in answer.change
        (found.change if is_of_change else found.others).add(placement)
    return found


def tables_of(answer: ClusterPlacement, *, wide: bool = False) -> Iterator[Table]:
    """The table of the change, and if there is one, a second one of what was pending before and still is."""
    if answer.change is None:
        yield table(answer.placements, wide=wide)
        return
    of_change = [one for one in answer.placements if one.workload.key in answer.change]
    others = [one for one in answer.placements if one.workload.key not in answer.change]
    if of_change or not others:
        yield table(of_change, wide=wide)
    if others:
        yield table(others, wide=wide, heading="PENDING BEFORE")


def table(placements: Sequence[PodPlacement], *, wide: bool = False, heading: str = "NAME") -> Table:
    """One row per pod, in the order of placement."""
    rows = []
    for placement in placements:
        workload, target = placement.workload, placement.target
        middle = (owner_of(workload), str(workload.priority), str(placement.total) if target else "") if wide else ()
        rows.append((workload.namespace, workload.name, target, *middle, message_of(placement) or "-"))
    middle = ("OWNER", "PRIORITY", "SCORE") if wide else ()
    styles = ["" if placement.target else _UNSCHEDULABLE_STYLE for placement in placements]
    return Table(("NAMESPACE", heading, "NODE", *middle, "MESSAGE"), rows, styles)


def owner_of(workload: Workload) -> str:
    """The controller of a pod as `kind/name`, empty for a bare pod."""
    controller = workload.controller
    return f"{controller.kind.lower()}/{controller.name}" if controller is not None else ""


def message_of(placement: PodPlacement) -> str:
    """Why a pod is pending, and what preemption has to do with its placement."""
    parts = []
    if placement.preemptor:
        lost = "; no controller creates it again" if placement.lost else ""
        parts.append(f"preempted from {placement.preempted_from} by {placement.preemptor}{lost}")
    elif placement.displaced_from and placement.target:
        parts.append(f"moved from {placement.displaced_from}")
    if placement.victims:
        names = tables.listed(placement.victims, _MAX_NAMES_SHOWN)
        parts.append(f"would preempt {names} on {placement.target or 'its nominated node'}")
    return ": ".join(part for part in (*parts, placement.message) if part)


def document(
    answer: ClusterPlacement,
    explanations: dict[str, dict[str, Any]],
    not_judged: Sequence[tuple[ObjectKey, str]] = (),
) -> dict[str, Any]:
    """
    The answer as a versioned `PlacementList`; an item holds the explanation of its workload, if there is one.

    `not_judged` are objects that make pods in a way that cannot be read, with the reason.
    """
    counted = counts(answer)
    both = (counted.change, counted.others)
    summary = {
        "placed": sum(one.n_placed for one in both),
        "unplaced": sum(one.n_unplaced for one in both),
        "notJudged": counted.n_not_judged,
    }
    items = [_item(p, explanations.get(p.workload.key)) for p in answer.placements]
    if answer.change is not None:
        for item, placement in zip(items, answer.placements, strict=True):
            item["ofChange"] = placement.workload.key in answer.change
    content: dict[str, Any] = {"summary": summary, "items": items}
    if answer.rollouts:
        content["rollouts"] = rollouts.documents(answer.rollouts)
    if not_judged:
        content["notJudgedObjects"] = [{**key._asdict(), "reason": reason} for key, reason in not_judged]
    if answer.optimisation is not None:
        from bayplan.writing import optimisation

        content["optimization"] = optimisation.document(answer.optimisation)
    if answer.blocked:
        from bayplan.writing import what_if

        content["blockedEvictions"] = what_if.documents(answer.blocked)
    return versioned.document("PlacementList", content)


def _item(placement: PodPlacement, explanation: dict[str, Any] | None) -> dict[str, Any]:
    workload = placement.workload
    item: dict[str, Any] = {
        "namespace": workload.namespace,
        "name": workload.name,
        "owner": owner_of(workload),
        "target": placement.target,
        "priority": workload.priority,
        "score": placement.total if placement.target else None,
        "message": placement.message,
        "reasons": placement.reasons,
    }
    if placement.refused:
        item["refused"] = True
    if placement.not_judged:
        item["notJudged"] = placement.not_judged
    if placement.victims:
        item["victims"] = list(placement.victims)
    if placement.displaced_from:
        item |= {"displacedFrom": placement.displaced_from, "lost": placement.lost}
    if placement.preemptor:
        item |= {"preemptedBy": placement.preemptor, "preemptedFrom": placement.preempted_from, "lost": placement.lost}
    return item if explanation is None else {**item, "explanation": explanation}


class FillResult(msgspec.Struct, frozen=True):
    """How many replicas of one workload fit; `asked` is the requested number, None for as many as possible."""

    workload: str
    capacity: RemainingCapacity
    asked: int | None = None

    @property
    def enough(self) -> bool:
        """Whether the requested number fits, or at least one replica if none was requested."""
        return len(self.capacity.placed) >= (1 if self.asked is None else self.asked)


def fill_table(fills: Sequence[FillResult]) -> Table:
    """One row per workload: how many replicas fit, on how many nodes, and why the next one does not."""
    rows = []
    for one in fills:
        asked = "" if one.asked is None else f"/{one.asked}"
        n_nodes = len(set(one.capacity.placed))
        rows.append((one.workload, f"{len(one.capacity.placed)}{asked}", str(n_nodes), one.capacity.message or "-"))
    styles = ["" if one.enough else _UNSCHEDULABLE_STYLE for one in fills]
    return Table(("WORKLOAD", "FIT", "NODES", "WHY NOT MORE"), rows, styles)


def fill_names(fills: Sequence[FillResult]) -> str:
    """The node of each replica, one per line."""
    return "".join(f"node/{tables.printable(target)}\n" for one in fills for target in one.capacity.placed)


def fill_document(fills: Sequence[FillResult]) -> dict[str, Any]:
    """How many more replicas fit, as a versioned `RoomList`."""
    items = [
        {
            "workload": one.workload,
            "asked": one.asked,
            "fit": len(one.capacity.placed),
            "targets": list(one.capacity.placed),
            "message": one.capacity.message,
        }
        for one in fills
    ]
    return versioned.document("RoomList", {"items": items})
