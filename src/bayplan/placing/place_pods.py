"""Place many workloads one after another, each seeing those before it. Knows nothing of files or terminals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from bayplan import schedule_pod
from bayplan.engine import filtering
from bayplan.explaining import fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.terms import REGION, ZONE
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule

GATED = "Scheduling is blocked due to non-empty scheduling gates"
RulesOf = Callable[[Workload], Sequence[Rule]]  # a workload's scheduler may have rules of its own
ENDLESS = 1_000_000  # more replicas than any cluster holds: a workload that needs nothing fits for ever


class PodPlacement(msgspec.Struct, frozen=True):
    """Where one workload goes; `target` is empty if nowhere, and then `message` and `reasons` say why."""

    workload: Workload
    target: str = ""
    total: int = 0
    message: str = ""
    reasons: dict[str, int] = {}


class RemainingCapacity(msgspec.Struct, frozen=True):
    """How many more of a workload fit: where each goes, and what stops the next one (empty if nothing did)."""

    placed: list[str]
    message: str


def place_all(
    pending: Iterable[Workload],
    index: PlacementIndex,
    rules_of: RulesOf,
    on_step: Callable[[PodPlacement], None] | None = None,
) -> Iterator[PodPlacement]:
    """Decide and add to the index, in the order given."""
    for workload in pending:
        placement = place(workload, index, rules_of(workload))
        if on_step is not None:
            on_step(placement)
        yield placement


def place(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> PodPlacement:
    """Decide where one workload goes and, if it goes somewhere, put it there."""
    if workload.gates:
        return PodPlacement(workload, message=f"{GATED}: {', '.join(workload.gates)}")
    slot, total = schedule_pod.choose(workload, index, rules)
    if slot < 0:
        refusal = refusal_of(workload, index, rules)
        return PodPlacement(workload, message=refusal.message, reasons=refusal.reasons)
    target = index.slots.at(slot)
    index.add(bound(workload, target.labels), target.name)
    return PodPlacement(workload, target.name, total)


class FitFailure(msgspec.Struct, frozen=True):
    """Why a kind of workload fits nowhere, as of a position in the journal."""

    position: int
    message: str
    reasons: dict[str, int]


def refusal_of(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> FitFailure:
    """Counted once for all workloads of the kind that come before the next change."""
    equivalence_class = filtering.equivalence_class_of(rules, workload, index)
    known: FitFailure | None = equivalence_class.refusal
    if known is None or known.position != index.journal.end:
        verdicts = filtering.run(rules, workload, index)
        reasons = dict(fit_error.count(verdicts, index)) if verdicts.refusal is None else {}
        known = equivalence_class.refusal = FitFailure(index.journal.end, fit_error.sentence(verdicts, index), reasons)
    return known


def bound(workload: Workload, node_labels: dict[str, str]) -> Workload:
    """The workload as it is once bound: since Kubernetes 1.35 it carries its node's zone and region as labels."""
    copied = {key: node_labels[key] for key in (ZONE, REGION) if key in node_labels}
    if not copied:
        return workload
    return msgspec.structs.replace(workload, labels={**workload.labels, **copied})


def how_many_more(
    workload: Workload, index: PlacementIndex, rules: Sequence[Rule], most: int | None
) -> RemainingCapacity:
    """Place copies of the workload until one does not fit or `most` are placed; the index is left as it was."""
    placed: list[str] = []
    message = ""
    with index.tentatively():
        while len(placed) < (ENDLESS if most is None else most):
            copy = msgspec.structs.replace(workload, name=f"{workload.name}-copy-{len(placed)}", uid="")
            placement = place(copy, index, rules)
            if not placement.target:
                message = placement.message
                break
            placed.append(placement.target)
    return RemainingCapacity(placed, message)
