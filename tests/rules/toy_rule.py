"""
A rule that no table has, written as one in `src/bayplan/rules/` is: a template, and the subject of test_toy_rule.py.

Racks have licences, and a pod requests them as an extended resource. Nodes without the label of a rack are not limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec
import numpy as np

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, ALL, At, ValueColumn
from bayplan.model.reasons import Codes, DocumentedReason, Reason, Scores, StatusCode
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.arguments import Arguments
from bayplan.rules.evictions import Amounts, CapacityConstraint, EvictionEffect, Preemptor
from bayplan.rules.remedies import Alternatives, move_pods
from bayplan.rules.rule import MAX_SCORE, Failure, LiftedBy, Rule, SharedDomains, Touched
from bayplan.validating.fields import Cause, Field
from bayplan.wire.scheduler_config import WrittenArguments

LICENCE, RACK = "example.com/licence", "rack"
TOO_FEW = Reason("licences", "node(s) were in racks with too few licences left", StatusCode.UNSCHEDULABLE)


class RackLicencesArgs(WrittenArguments):  # of a rule in a table: in wire/scheduler_config.py
    licences_per_rack: int | None = None


class RackLicencesArguments(Arguments, frozen=True):
    """RackLicencesArgs: the number of licences in each rack."""

    written_type = RackLicencesArgs
    per_rack: int = 2

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        return written["licencesPerRack"].check_integer(0, MAX_SCORE, "not in valid range [0, 100]")

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        per_rack = written.get("licencesPerRack")
        return cls() if per_rack is None else cls(per_rack)


class RackLicencesState(msgspec.Struct, frozen=True):
    """How many licences the pod requests, the row of the index's capacity that counts them, and the racks."""

    requested: int
    row: int
    racks: ValueColumn


class RackLicences(Rule[int, RackLicencesState]):
    """A rack has licences for so many pods, and racks with more licences left are preferred."""

    name = "RackLicences"
    id = "rack-licences"
    default_weight = 5
    arguments_type = RackLicencesArguments
    arguments: RackLicencesArguments
    lifted_by = LiftedBy.PEERS
    reasons_by_code = (TOO_FEW,)
    documented = (DocumentedReason(TOO_FEW, means="Pods of the rack use its licences.", to_do="Buy more."),)

    def part(self, workload: Workload, index: PlacementIndex) -> int | None:
        """The number of licences; None for a pod that requests none."""
        del index
        return _licences_of(workload) or None

    def prepare(self, part: int, index: PlacementIndex) -> RackLicencesState:
        return RackLicencesState(part, index.capacity.row(LICENCE), index.column(RACK))

    def reject(self, state: RackLicencesState, index: PlacementIndex, at: At) -> Codes:
        lacking = state.racks.present(at) & (self._left(state, index, at) < state.requested)
        return lacking.astype(np.int64)

    def score(self, state: RackLicencesState, index: PlacementIndex, at: At) -> Scores:
        return np.maximum(self._left(state, index, at), 0)

    def touched(self, state: RackLicencesState, change: Change, index: PlacementIndex) -> Touched:
        del state, index
        if change.workload is None:
            return ALL
        return SharedDomains((RACK,), change.slots) if _licences_of(change.workload) else None

    def may_lift(self, state: RackLicencesState, rejected: Workload, change: Change, index: PlacementIndex) -> bool:
        del state, rejected, index
        returned = change.workload if change.type is ChangeType.WORKLOAD_REMOVED else None
        return returned is not None and _licences_of(returned) > 0

    def evidence(self, state: RackLicencesState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        rack, left = index.slots.at(slot).labels[RACK], int(self._left(state, index, np.array([slot]))[0])
        detail = f"requests {state.requested}, {max(left, 0)} of {self.arguments.per_rack} are left"
        users = _users(state, slot, index)
        return [Failure(self.id, TOO_FEW.text, detail=detail, term=LICENCE, domain=f"{RACK}={rack}", peers=users)]

    def remedies(
        self, state: RackLicencesState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Alternatives]:
        return [[remedy for user in _users(state, slot, index) for remedy in move_pods((user,), workload, index)]]

    def _left(self, state: RackLicencesState, index: PlacementIndex, at: At) -> Scores:
        """The licences left in the rack of each target, negative where more are taken than there are."""
        taken = np.zeros(state.racks.n_domains, np.int64)
        np.add.at(taken, state.racks.of_slot, index.capacity.requested[state.row])
        taken[ABSENT] = 0
        return self.arguments.per_rack - state.racks.gather(taken, at)


class CountedRackLicences(RackLicences):
    """The same, and it says that evictions return licences."""

    def eviction_effect(self, state: RackLicencesState, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        del codes
        left = self._left(state, preemptor.index, ALL)
        return EvictionEffect(capacity_constraints=(LicenceConstraint(state, left, preemptor.index),))


class LicenceConstraint(CapacityConstraint):
    """The licences of a rack, of which all its pods take."""

    def __init__(self, state: RackLicencesState, left: Amounts, index: PlacementIndex) -> None:
        super().__init__(1, np.where(state.racks.present(ALL), left - state.requested, 0))
        self.row, self.column, self.index = state.row, state.racks, index

    def amounts(self) -> Amounts | None:
        held = self.index.pod_table.amounts
        return held[self.row] if self.row < len(held) else None  # else no placed pod has any

    def amount_of(self, nominated: Workload, slot: int) -> int:
        return _licences_of(nominated) if RACK in self.index.slots.at(slot).labels else 0


def _licences_of(workload: Workload) -> int:
    return dict(workload.needs.requests.amounts).get(LICENCE, 0)


def _users(state: RackLicencesState, slot: int, index: PlacementIndex) -> tuple[WorkloadKey, ...]:
    """The pods that use the licences of a target's rack."""
    neighbours = state.racks.slots_in(state.racks.at[slot]).tolist()
    keys = [key for neighbour in neighbours for key in index.workloads_on(neighbour)]
    return tuple(key for key in keys if _licences_of(index.records[key].workload))
