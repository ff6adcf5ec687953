"""
What nodes reject by themselves, and what pending pods take of them together: resources, places for pods, host ports.

Knows nothing of domains beyond their sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec
import numpy as np

from bayplan.grouping.linear_model import Term
from bayplan.grouping.plan_model import PendingClass, PlanModel, RuleKey
from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Reason
from bayplan.model.terms import TARGET
from bayplan.model.workloads import HostPort
from bayplan.rules.inter_pod_affinity.rule import InterPodAffinity
from bayplan.rules.node_ports import NodePorts, ports_conflict
from bayplan.rules.resources_fit import ResourcesFit
from bayplan.rules.topology_spread.rule import TopologySpread

MAX_UNITS = 8  # in which one resource is counted
PER_CLASS = (InterPodAffinity, TopologySpread, ResourcesFit)  # rules that are modelled as they depend on other pods


class Room(msgspec.Struct, frozen=True):
    """What nodes have of a resource, by slot, and what pods of each class take, in one unit; `spare` is left of all."""

    rule: int
    taken: list[tuple[PendingClass, int]]
    by_slot: dict[int, int]
    spare: int


def rejections(model: PlanModel) -> Iterator[tuple[PendingClass, RuleKey, Mask]]:
    """The nodes that rules reject for a class whatever other pending pods do: more pods only take more."""
    for one in model.classes:
        for result in one.results:
            rule = result.rule
            key = RuleKey(rule.id, result.evaluation.part)
            only = result.pre_filter(model.index)
            if isinstance(only, Reason):
                every = np.ones(model.index.slots.capacity, np.bool_)
                yield one, msgspec.structs.replace(key, detail=only.text), every
            elif only is not None:
                yield one, key, _all_but(only, model.index)
            if not isinstance(rule, PER_CLASS):
                rejected = result.rejected()
                if rejected is not None and rejected.any():
                    yield one, key, rejected


def _all_but(names: frozenset[str], index: PlacementIndex) -> Mask:
    mask = np.ones(index.slots.capacity, np.bool_)
    mask[[index.slots.by_name[name] for name in names if name in index.slots.by_name]] = False
    return mask


def add_resources(model: PlanModel) -> list[Room]:
    """What the pods on a node request is at most what is free on it."""
    requests: dict[tuple[str, str], list[tuple[PendingClass, int]]] = defaultdict(list)
    for one in model.classes:
        for result in one.results:
            if isinstance(result.rule, ResourcesFit) and result.rule.filters:
                state = result.evaluation.state
                amounts = dict(state.amounts)
                for resource, amount in ((PODS, 1), *((name, amounts[name]) for name, _ in state.bits)):
                    requests[result.rule.id, resource].append((one, amount))
    capacity = model.index.capacity
    rooms = []
    for (rule, resource), requesting in requests.items():
        row = capacity.row(resource)
        free = np.maximum(capacity.allocatable[row] - capacity.requested[row], 0)
        detail = "room for pods on the nodes" if resource == PODS else f"{resource} that is free on the nodes"
        number = model.rule(RuleKey(rule, resource, detail=detail), *(one for one, _ in requesting))
        sizes = sorted({amount for _, amount in requesting})
        # Beside the greatest common unit, in units in which what does not fill one is lost: pods of 2 do not use a
        # third of a node of 3. That follows for nodes, but for domains it says more than their sums do.
        for unit in dict.fromkeys([int(np.gcd.reduce(sizes)), *sizes[-MAX_UNITS:]]):
            taken = [(one, amount // unit) for one, amount in requesting if amount >= unit]
            slots = [slot for slot in model.slots if any(slot in one.counts for one, _ in taken)]
            by_slot = {slot: int(free[slot]) // unit for slot in slots}
            needed = sum(amount * len(one.pods) for one, amount in taken if one.is_required)
            rooms.append(Room(number, taken, by_slot, sum(by_slot.values()) - needed))
            for slot in slots:
                here = [(one.counts[slot], amount) for one, amount in taken if slot in one.counts]
                _fill(model, here, by_slot[slot], rooms[-1])
        model.check_size()
    return rooms


def _fill(model: PlanModel, terms: list[Term], size: int, room: Room) -> None:
    """At most the room is taken, and no more of it is left than is left of all."""
    model.linear.at_most(terms, size, room.rule)
    if 0 <= room.spare < size:
        model.linear.at_least(terms, size - room.spare, room.rule)


def add_rooms_of_domains(model: PlanModel, rooms: list[Room]) -> None:
    """What the pods in a domain request is at most what is free in it."""
    for column in model.columns_with_sums():
        for room in rooms:
            for domain in model.domains(column):
                size = sum(room.by_slot.get(slot, 0) for slot in column.slots_in(domain).tolist())
                terms = [(model.sum_in(one, column, domain), amount) for one, amount in room.taken]
                _fill(model, terms, size, room)
        model.check_size()


def add_ports(model: PlanModel) -> None:
    """No two pods on a node have the same host port."""
    with_ports = [
        one for one in model.classes if any(isinstance(r.rule, NodePorts) and r.rule.filters for r in one.results)
    ]
    column = model.index.column(TARGET)
    for position, one in enumerate(with_ports):
        number = model.rule(RuleKey(NodePorts.id, "among pending pods", detail="host ports of the pods"), one)
        for other in with_ports[position:]:
            if not _conflict(one.first.needs.host_ports, other.first.needs.host_ports):
                continue
            for slot in one.counts:
                if other is one:
                    model.linear.at_most([(one.counts[slot], 1)], 1, number)
                elif slot in other.counts:
                    both = [(model.present(each, column, column.at[slot]), 1) for each in (one, other)]
                    model.linear.at_most(both, 1, number)
    model.check_size()


def _conflict(some: tuple[HostPort, ...], others: tuple[HostPort, ...]) -> bool:
    return any(ports_conflict(one, other) for one in some for other in others)
