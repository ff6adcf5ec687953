"""NodeResourcesFit: a node needs free resources for the pod, and its utilisation with the pod is scored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.caching import memoised
from bayplan.indexing.capacity import NONZERO_RESOURCES, POD_ROW, PODS, UNOFFERED_ROW
from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model import quantities
from bayplan.model.reasons import Codes, DocumentedReason, Reason, Scores, StatusCode
from bayplan.model.workloads import Requests, Workload
from bayplan.rules import utilization_shapes
from bayplan.rules.arguments import Arguments
from bayplan.rules.evictions import Amounts, CapacityConstraint, EvictionEffect, FixedConstraint, Preemptor
from bayplan.rules.remedies import Alternatives
from bayplan.rules.rule import MAX_SCORE, Failure, LiftedBy, Rule
from bayplan.validating import names
from bayplan.validating.fields import Cause, Field
from bayplan.wire.scheduler_config import NodeResourcesFitArgs

INSUFFICIENT = Reason("insufficient-<resource>", "Insufficient <resource>", StatusCode.UNSCHEDULABLE)
TOO_MANY_PODS = Reason("too-many-pods", "Too many pods", StatusCode.UNSCHEDULABLE)
UNRESOLVABLE_BIT = 1 << 62
FIRST_BIT, LAST_BIT = 2, 1 << 61  # of the resources in the code; those beyond 60 share the last one
NATIVE = ("cpu", "memory", "ephemeral-storage")
MAX_AMOUNT = 1 << 62  # of any resource: beyond this, differences do not fit into 64 bits

LEAST_ALLOCATED, MOST_ALLOCATED, RATIO = "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"
SCORING_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, RATIO)


class ScoringStrategy(msgspec.Struct, frozen=True):
    """How utilisation is scored; `shape` holds (utilisation, score 0..100) points for RequestedToCapacityRatio."""

    type: str = LEAST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    shape: utilization_shapes.Shape = ()


class ResourcesFitArguments(Arguments, frozen=True):
    """NodeResourcesFitArgs: how to score, and which extended resources another component judges."""

    written_type = NodeResourcesFitArgs
    strategy: ScoringStrategy = ScoringStrategy()
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        found: list[Cause] = []
        for item in written["ignoredResources"].items():
            found += item.check_text(names.label_key)
        for item in written["ignoredResourceGroups"].items():
            if "/" in item.text():
                found.append(item.invalid("resource group name can't contain '/'"))
            found += item.check_text(names.label_key)
        return found + _validate_strategy(written["scoringStrategy"])

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        strategy = written.get("scoringStrategy")
        return cls(
            _read_strategy(strategy) if strategy else ScoringStrategy(),
            frozenset(written.get("ignoredResources") or ()),
            frozenset(written.get("ignoredResourceGroups") or ()),
        )


class ResourcesFitState(msgspec.Struct, frozen=True):
    """
    The requests with their rows of the index's capacity looked up.

    `bits` are the bits of the code by resource. `fitted` are (row, amount, bit) of those that any target offers,
    `scored` (whether unset requests count, row, amount, weight). `unoffered` is the code of what no target offers, 0 if
    there is none. `n_rows` is the number of resources that targets offered at that time.
    """

    amounts: tuple[tuple[str, int], ...]
    bits: tuple[tuple[str, int], ...]
    fitted: tuple[tuple[int, int, int], ...]
    unoffered: int
    scored: tuple[tuple[bool, int, int, int], ...]
    n_rows: int


class ResourcesFit(Rule[Requests, ResourcesFitState]):
    name = "NodeResourcesFit"
    id = "resources"
    extends = ("preFilter", "filter", "preScore", "score")
    filter_needs_pre_filter = True
    lifted_by = LiftedBy.RESOURCES
    default_weight = 1
    arguments_type = ResourcesFitArguments
    arguments: ResourcesFitArguments
    follows_requests = True
    reads_template_only = True
    documented = (
        DocumentedReason(
            INSUFFICIENT,
            means=(
                "The pod requests more of the resource than the node has free: its allocatable amount minus the "
                "requests of its pods. Requests count, not usage."
            ),
            to_do=(
                "Lower the requests if they are higher than needed, or free or add nodes. If the request exceeds the "
                "allocatable amount of every node, only larger nodes help."
            ),
        ),
        DocumentedReason(
            TOO_MANY_PODS,
            means="The node runs as many pods as its kubelet allows (allocatable pods, often 110).",
            to_do="Add nodes, or raise maxPods of the kubelet if the pod network has enough addresses.",
        ),
    )

    def __init__(self, arguments: Arguments | None = None) -> None:
        super().__init__(arguments)
        self.strategy = self.arguments.strategy
        self._score_of, self._score_of_one = _scorers(self.strategy)
        self._is_ratio = self.strategy.type == RATIO
        self._is_least = self.strategy.type == LEAST_ALLOCATED

    def part(self, workload: Workload, index: PlacementIndex) -> Requests:
        del index
        return workload.needs.requests

    def prepare(self, part: Requests, index: PlacementIndex) -> ResourcesFitState:
        row, requested = index.capacity.row, dict(part.scored)
        bits: list[tuple[str, int]] = []
        fitted: list[tuple[int, int, int]] = []
        unoffered = 0
        for resource, amount in part.amounts:
            if amount and not self.is_ignored(resource):
                bit = min(FIRST_BIT << len(bits), LAST_BIT)
                bits.append((resource, bit))
                if row(resource) == UNOFFERED_ROW:
                    unoffered |= bit | UNRESOLVABLE_BIT
                else:
                    fitted.append((row(resource), amount, bit))
        scored = tuple(
            (resource in NONZERO_RESOURCES, row(resource), requested.get(resource, 0), weight)
            for resource, weight in self.strategy.resources
            if resource in NATIVE or requested.get(resource)
        )
        return ResourcesFitState(part.amounts, tuple(bits), tuple(fitted), unoffered, scored, len(index.capacity.rows))

    def is_outdated(self, state: ResourcesFitState, index: PlacementIndex) -> bool:
        return state.n_rows != len(index.capacity.rows)

    def reject(self, state: ResourcesFitState, index: PlacementIndex, at: At) -> Codes:
        """Bit 0: no capacity for one more pod; others: too little of the resource is free; bit 62: or exists."""
        capacity = index.capacity
        pods = capacity.rows[PODS]
        codes = (capacity.requested[pods, at] + 1 > capacity.allocatable[pods, at]).astype(np.int64)
        for row, amount, bit in state.fitted:
            offered = capacity.allocatable[row, at]
            codes |= (amount > offered - capacity.requested[row, at]) * np.int64(bit)
            codes |= (amount > offered) * np.int64(UNRESOLVABLE_BIT)
        if state.unoffered:
            codes |= state.unoffered
        return codes

    def score(self, state: ResourcesFitState, index: PlacementIndex, at: At) -> Scores:
        capacity = index.capacity
        total = np.zeros(len(index.slots.alive[at]), np.int64)
        weights = np.zeros(len(total), np.int64)
        for is_nonzero, row, amount, weight in state.scored:
            taken = capacity.nonzero_requested if is_nonzero else capacity.requested
            offered = capacity.allocatable[row, at]
            scored = self._score_of(taken[row, at] + amount, np.maximum(offered, 1))
            counts = offered > 0
            if self._is_ratio:
                counts &= scored > 0
            total += np.where(counts, weight * scored, 0)
            weights += np.where(counts, weight, 0)
        weights_or_one = np.maximum(weights, 1)
        if self._is_ratio:  # rounded half away from zero, the others down
            return np.floor(total / weights_or_one + 0.5).astype(np.int64)
        return total // weights_or_one

    def evaluate_one(self, state: ResourcesFitState, index: PlacementIndex, slot: int) -> tuple[int, int]:
        capacity, score_of = index.capacity, self._score_of_one
        is_ratio, is_least = self._is_ratio, self._is_least
        offered, requested, nonzero = capacity.allocatable_at, capacity.requested_at, capacity.nonzero_requested_at
        code = 0 if requested[POD_ROW][slot] < offered[POD_ROW][slot] else 1
        for row, amount, bit in state.fitted:
            whole = offered[row][slot]
            if amount > whole - requested[row][slot]:
                code |= bit if amount <= whole else bit | UNRESOLVABLE_BIT
        code |= state.unoffered
        total = weights = 0
        for is_nonzero, row, amount, weight in state.scored:
            whole = offered[row][slot]
            if whole > 0:
                taken = nonzero if is_nonzero else requested
                with_pod = taken[row][slot] + amount
                if is_least:  # by default, so not even a call
                    scored = 0 if with_pod > whole else (whole - with_pod) * MAX_SCORE // whole
                else:
                    scored = score_of(with_pod, whole)
                if scored > 0 or not is_ratio:
                    total += weight * scored
                    weights += weight
        if is_ratio:
            return code, math.floor(total / max(weights, 1) + 0.5)
        return code, total // (weights or 1)

    def may_lift(self, state: ResourcesFitState, rejected: Workload, change: Change, index: PlacementIndex) -> bool:
        """Whether a workload has left a target where the requests fit now, or do after preemption."""
        if change.workload is None:
            return False
        # One of lower priority could be preempted before: its removal makes nothing possible that was not.
        preempts = rejected.preempts and change.workload.priority >= rejected.priority
        return any(self._may_fit(state, rejected, slot, index, preempts=preempts) for slot in change.slots)

    def _may_fit(
        self, state: ResourcesFitState, workload: Workload, slot: int, index: PlacementIndex, *, preempts: bool
    ) -> bool:
        """Whether the requests fit a target, with what workloads of lower priority request if it `preempts` them."""
        capacity, missing = index.capacity, dict[str, int]()
        for resource, amount in ((PODS, 1), *state.amounts):
            if not amount or self.is_ignored(resource):
                continue  # a request of 0 fits although the target may be overcommitted
            row = capacity.row(resource)
            offered = capacity.allocatable_at[row][slot]
            lacking = amount - offered + capacity.requested_at[row][slot]
            if lacking > 0:
                if not preempts or amount > offered:
                    return False
                missing[resource] = lacking
        if not missing:
            return True
        preemptible = _requested_by_lower_priority(workload, slot, index)
        return all(lacking <= preemptible[resource] for resource, lacking in missing.items())

    def reasons(self, state: ResourcesFitState, code: int) -> tuple[Reason, ...]:
        return tuple([reason for _, reason in self._shortages(state, code)])

    def _shortages(self, state: ResourcesFitState, code: int) -> list[tuple[str, Reason]]:
        """What a code says is short, each with its reason. Of those that share a bit, perhaps only some are."""
        status = StatusCode.UNRESOLVABLE if code & UNRESOLVABLE_BIT else StatusCode.UNSCHEDULABLE
        short = [(PODS, TOO_MANY_PODS)] if code & 1 else []
        short += [(resource, _insufficient(resource)) for resource, bit in state.bits if code & bit]
        return [(resource, msgspec.structs.replace(reason, status=status)) for resource, reason in short]

    def evidence(self, state: ResourcesFitState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        code = int(self.reject(state, index, np.array([slot]))[0])
        requests = {PODS: 1, **dict(state.amounts)}
        failures = []
        for resource, reason in self._shortages(state, code):
            row = index.capacity.row(resource)
            offered, taken = index.capacity.allocatable[row, slot], index.capacity.requested[row, slot]
            if requests[resource] <= offered - taken:
                continue
            requested, free, whole = (
                quantities.show(resource, int(amount))
                for amount in (requests[resource], max(offered - taken, 0), offered)
            )
            detail = f"requests {requested} {resource}, {free} of {whole} is free"
            failures.append(Failure(self.id, reason.text, detail=detail, term=resource))
        return failures

    def remedies(
        self, state: ResourcesFitState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Alternatives]:
        from bayplan.rules import resource_remedies  # only explanations need it

        requested = {PODS: 1, **dict(state.amounts)}
        code, capacity = int(self.reject(state, index, np.array([slot]))[0]), index.capacity
        short = [
            one
            for one, _ in self._shortages(state, code)
            if requested[one] > capacity.allocatable[capacity.row(one), slot] - capacity.requested_of(one, slot)
        ]
        return resource_remedies.alternatives(requested, short, workload, slot, index)

    def eviction_effect(self, state: ResourcesFitState, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        del codes
        index = preemptor.index
        found: list[CapacityConstraint] = [ResourceConstraint(1, (PODS, 1), index)]
        requested = dict(state.amounts)
        for resource, bit in state.bits:
            if index.capacity.row(resource) != UNOFFERED_ROW:
                free = ResourceConstraint(bit, (resource, requested[resource]), index)
                whole = index.capacity.allocatable[free.row] - requested[resource]
                found += [free, TargetTooSmall(UNRESOLVABLE_BIT, whole)]
        if state.unoffered:
            nothing = np.full(index.slots.capacity, -1, np.int64)
            found.append(TargetTooSmall(state.unoffered, nothing))
        return EvictionEffect(capacity_constraints=tuple(found))

    def is_ignored(self, resource: str) -> bool:
        """Whether the configuration excludes this resource from the filter."""
        names, groups = self.arguments.ignored_resources, self.arguments.ignored_resource_groups
        listed = resource in names or resource.partition("/")[0] in groups
        return listed and may_be_ignored(resource)


class ResourceConstraint(CapacityConstraint):
    """One resource: what is free of it on a target."""

    adds = True

    def __init__(self, code: int, requested: tuple[str, int], index: PlacementIndex) -> None:
        self.index = index
        self.resource, amount = requested
        self.row = index.capacity.row(self.resource)
        free = index.capacity.allocatable[self.row] - index.capacity.requested[self.row]
        super().__init__(code, np.maximum(free, -MAX_AMOUNT) - min(amount, MAX_AMOUNT))

    def amounts(self) -> Amounts | None:
        held = self.index.pod_table.amounts
        return held[self.row] if self.row < len(held) else None  # else no placed workload has any

    def amount_of(self, nominated: Workload, slot: int) -> int:
        del slot
        return 1 if self.resource == PODS else dict(nominated.needs.requests.amounts).get(self.resource, 0)


class TargetTooSmall(FixedConstraint):
    """The whole target has less than the workload requests."""

    adds = True


Array = NDArray[np.int64]


def _scorers(strategy: ScoringStrategy) -> tuple[Callable[[Array, Array], Array], Callable[[int, int], int]]:
    """The score 0..100 from what would be requested and what is offered (at least 1): for arrays, and for integers."""
    if strategy.type == MOST_ALLOCATED:
        return (
            lambda taken, offered: np.minimum(taken, offered) * MAX_SCORE // offered,
            lambda taken, offered: min(taken, offered) * MAX_SCORE // offered,
        )
    if strategy.type == RATIO:
        scores = utilization_shapes.scores(strategy.shape)
        table = np.array(scores, np.int64)
        return (
            lambda taken, offered: table[np.where(taken > offered, 100, taken * MAX_SCORE // offered)],
            lambda taken, offered: scores[100 if taken > offered else taken * MAX_SCORE // offered],
        )
    return (
        lambda taken, offered: np.where(taken > offered, 0, (offered - taken) * MAX_SCORE // offered),
        lambda taken, offered: 0 if taken > offered else (offered - taken) * MAX_SCORE // offered,
    )


def _requested_by_lower_priority(workload: Workload, slot: int, index: PlacementIndex) -> Counter[str]:
    """What the workloads of lower priority on a target request."""
    requested: Counter[str] = Counter()
    for key in index.workloads_on(slot):
        other = index.records[key].workload
        if other.priority < workload.priority:
            requested[PODS] += 1
            requested.update(dict(other.needs.requests.on_node(index.semantics.kubernetes_version).amounts))
    return requested


@memoised(1024)
def _insufficient(resource: str) -> Reason:
    return INSUFFICIENT.filled(resource=resource)


def may_be_ignored(resource: str) -> bool:
    """Whether a configuration can exclude the resource: an extended one whose domain is not Kubernetes' own."""
    group, slash, _ = resource.partition("/")
    return bool(slash) and not group.endswith("kubernetes.io")


def _validate_strategy(strategy: Field) -> list[Cause]:
    kind, ratio = strategy["type"], strategy["requestedToCapacityRatio"]
    found: list[Cause] = []
    if strategy.present and kind.text() not in SCORING_STRATEGIES:
        found.append(kind.unsupported(SCORING_STRATEGIES))
    for resource in strategy["resources"].items():
        if resource["weight"].number():  # 0 stands for the default, which is 1
            detail = f"resource weight of {resource['name'].text()} not in valid range (0, 100]"
            found += resource["weight"].check_integer(1, 100, detail)
    if kind.text() == RATIO:
        missing = ratio.required(f"must be specified when type is {RATIO}")
        found += utilization_shapes.validate(ratio["shape"]) if ratio.present else [missing]
    elif ratio.present:
        found.append(ratio.forbidden(f"must be nil when type is not {RATIO}"))
    return found


def _read_strategy(written: Mapping[str, Any]) -> ScoringStrategy:
    """What is absent or empty has its default, a weight of 0 is 1."""
    weights = tuple((resource["name"], resource.get("weight") or 1) for resource in written.get("resources") or ())
    shape = (written.get("requestedToCapacityRatio") or {}).get("shape") or ()
    return ScoringStrategy(
        written.get("type") or LEAST_ALLOCATED,
        weights or ScoringStrategy().resources,
        utilization_shapes.read(shape),
    )
