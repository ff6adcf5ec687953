"""Place pods one after another, each on an index that contains those before it. Knows nothing of files or terminals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan import schedule_pod
from bayplan.engine import equivalence, filtering
from bayplan.engine.engine import Engine, EngineOf
from bayplan.engine.equivalence import FitFailure
from bayplan.explaining import fit_error
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.placeable import GATED

if TYPE_CHECKING:
    from bayplan.explaining.group_wait import GroupWait

# More than any node or cluster holds: a node may offer any number of places to workloads without needs.
MAX_REPLICAS_PER_NODE = 5_000
MAX_REPLICAS = 1_000_000


class PodPlacement(msgspec.Struct, frozen=True):
    """
    Where one workload is placed; `target` is empty if no target is feasible: see `message` and `reasons`.

    `victims` are the pods that it preempts for that. A victim names its `preemptor` and the node where it ran
    (`preempted_from`); it is `lost` if no controller creates it again. A pod is `refused` if an API server would not
    create it. `not_judged` says why it is not known whether the pod can be placed. `displaced_from` is the node that
    was lost, or that is drained. `group_wait` says why the group of an unplaced member waits.
    """

    workload: Workload
    target: str = ""
    total: int = 0
    message: str = ""
    reasons: dict[str, int] = {}
    victims: tuple[WorkloadKey, ...] = ()
    preemptor: str = ""
    preempted_from: str = ""
    lost: bool = False
    refused: bool = False
    not_judged: str = ""
    displaced_from: str = ""
    group_wait: GroupWait | None = None

    @property
    def is_unschedulable(self) -> bool:
        """Whether the pod exists, and no target is feasible for it."""
        return not (self.target or self.lost or self.refused or self.not_judged)


class RemainingCapacity(msgspec.Struct, frozen=True):
    """The targets of the copies that still fit, and the message of the first one that does not; empty if all fit."""

    placed: list[str]
    message: str


def place_all(pending: Iterable[Workload], engine_of: EngineOf) -> Iterator[PodPlacement]:
    """Place the workloads in the order given."""
    for workload in pending:
        yield place(workload, engine_of(workload))


def place(workload: Workload, engine: Engine, *, ranked: bool = True) -> PodPlacement:
    """Decide where one workload is placed and, if a target fits, add it to the index. `ranked` as in `choose`."""
    if workload.gates:
        return gated(workload)
    slot, total = schedule_pod.choose(workload, engine, ranked=ranked)
    if slot >= 0:
        return PodPlacement(workload, schedule_pod.assume(engine.index, workload, slot), total)
    failure = fit_failure_of(workload, engine)
    return PodPlacement(workload, message=failure.message, reasons=failure.reasons)


def gated(workload: Workload) -> PodPlacement:
    """The placement of a pod with scheduling gates: none."""
    return PodPlacement(workload, message=f"{GATED.text}: {', '.join(workload.gates)}")


def waiting_with_group(workload: Workload, wait: GroupWait) -> PodPlacement:
    """The placement of a member whose group waits: none."""
    from bayplan.explaining import group_wait  # few pods are in a group

    return PodPlacement(workload, message=group_wait.sentence(wait), group_wait=wait)


def fit_failure_of(workload: Workload, engine: Engine) -> FitFailure:
    """Why no target is feasible, computed once for all workloads of the class until the index changes."""
    index, equivalence_class = engine.index, engine.class_of(workload)
    known = equivalence_class.fit_failure
    if known is None or known.position != index.journal.end:
        verdicts = filtering.run(workload, engine, scored=False)
        reasons = dict(fit_error.count(verdicts, index)) if verdicts.pre_filter_rejection is None else {}
        known = equivalence_class.fit_failure = FitFailure(
            index.journal.end, fit_error.sentence(verdicts, index, counts=reasons), reasons
        )
    return known


def how_many_more_of_each(
    pending: Sequence[Workload], engine_of: EngineOf, most: int | None
) -> list[tuple[Workload, RemainingCapacity]]:
    """
    How many more of each workload fit if nothing else is placed, in the order given.

    The pods of one controller that no rule distinguishes are one workload, for which the first of them stands.
    Workloads that differ in nothing that decides how many fit are counted once.
    """
    # Before anything is placed: a term that comes into use makes rules distinguish more.
    first: dict[Hashable, tuple[Workload, Hashable]] = {}
    for workload in pending:
        equal = equivalence.signature(workload, engine_of(workload).index), workload.scheduler_name, workload.gates
        first.setdefault((workload.controller or workload.key, equal), (workload, equal))
    counted: dict[Hashable, RemainingCapacity] = {}
    for workload, equals in first.values():
        if equals not in counted:
            counted[equals] = how_many_more(workload, engine_of(workload), most)
    return [(workload, counted[equals]) for workload, equals in first.values()]


def how_many_more(workload: Workload, engine: Engine, most: int | None) -> RemainingCapacity:
    """Place copies of the workload until one does not fit or `most` are placed; the index is left as it was."""
    placed: list[str] = []
    limit = min(MAX_REPLICAS, MAX_REPLICAS_PER_NODE * max(1, len(engine.index.slots.by_name)))
    message = f"counted up to {limit}, more may fit" if most is None else ""
    with engine.index.tentatively():
        while len(placed) < (limit if most is None else most):
            copy = msgspec.structs.replace(workload, name=f"{workload.name}-copy-{len(placed)}", uid="")
            placement = place(copy, engine)
            if not placement.target:
                message = placement.message
                break
            placed.append(placement.target)
    return RemainingCapacity(placed, message)
