"""
The groups that wait: their members, how many must run, and what is wrong with them.

A group with a problem is not placed; that does not keep others from being placed. Knows no nodes but their labels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan.grouping.problem import GroupToPlace
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.groups import MEMBER_OF, NO_TOPOLOGY, GroupDeclaration, GroupMembership, GroupSource
from bayplan.model.workloads import Workload, queue_order

OWNER_GROUP = "{}/{} {}"  # no PodGroup and no annotation can have such a name
NOT_DECLARED = "there is no {} {}"
TOO_FEW = "{} members must run, and only {} exist"
HELD_BACK = "{} members must run, and {} of {} are held back: {}"
TWO_GROUPS = "its members name {} and {} as what declares it: two groups have one name"
DIFFERENT = "its members have different {}: {}"
NO_KEY = "no node has the label {}, in one domain of which its members must be"
_NAMES_OF_KINDS = {GroupSource.POD_GROUP: "PodGroup", GroupSource.COSCHEDULING: "PodGroup (scheduling.x-k8s.io)"}


class PendingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """
    A group with pending members. `pods` are those to be placed, in the order of the scheduling queue.

    `min_members` must run, of which `n_placed` do. `held_back` are members that must not be placed yet. `problem` says
    why the group cannot be placed at all; empty if it may be.
    """

    key: str
    pods: tuple[Workload, ...]
    held_back: tuple[Workload, ...] = ()
    n_placed: int = 0
    min_members: int = 0
    topology_key: str = ""
    preferred_keys: tuple[str, ...] = ()
    problem: str = ""

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Its place in the scheduling queue: that of its first member."""
        return min(queue_order(pod) for pod in (*self.pods, *self.held_back))

    def to_place(self) -> GroupToPlace:
        return GroupToPlace(
            key=self.key,
            pods=tuple(pod.key for pod in self.pods),
            min_members=self.min_members,
            n_placed=self.n_placed,
            topology_key=self.topology_key,
            preferred_keys=self.preferred_keys,
        )


def group_of(pod: Workload, *, by_owner: bool = False) -> str:
    """The key of the pod's group, empty if it is in none; `by_owner`: the pods of one controller are a group."""
    if pod.group is not None:
        return pod.labels[MEMBER_OF]
    if by_owner and pod.controller is not None:
        return OWNER_GROUP.format(pod.namespace, pod.controller.kind, pod.controller.name)
    return ""


def pending_group(
    key: str, pending: Sequence[Workload], placed: Sequence[Workload], declarations: Mapping[str, GroupDeclaration]
) -> PendingGroup:
    """The group of some pending pods, of which others are placed."""
    members = [*pending, *placed]
    said = pending[0].group
    declared = declarations.get(key)
    if said is None:  # the pods of one controller: all of those that wait
        least, topology = len(members), NO_TOPOLOGY
    elif declared is not None and declared.source is said.source:
        least, topology = declared.min_members, declared.topology
    else:
        least, topology = said.min_members or len(members), said.topology
    ready = [one for one in pending if not _hindrance(one)]
    held_back = [one for one in pending if _hindrance(one)]
    found = PendingGroup(
        key=key,
        pods=tuple(sorted(ready, key=queue_order)),
        held_back=tuple(held_back),
        n_placed=len(placed),
        min_members=least,
        topology_key=topology.required,
        preferred_keys=topology.preferred,
    )
    problem = "; ".join(_problems(found, members, declared))
    return msgspec.structs.replace(found, problem=problem) if problem else found


def _hindrance(pod: Workload) -> str:
    if pod.terminating:
        return "it is being deleted"
    return f"it has the scheduling gate {pod.gates[0]}" if pod.gates else ""


def _problems(group: PendingGroup, members: Sequence[Workload], declared: GroupDeclaration | None) -> Iterable[str]:
    said = {member.group for member in members if member.group is not None}
    sources = sorted({one.source.value for one in said})
    if len(sources) > 1:
        yield TWO_GROUPS.format(*sources[:2])
        return
    if said:
        yield from _of_declaration(group, said, declared)
    schedulers = {member.scheduler_name or "default-scheduler" for member in members}
    if len(schedulers) > 1:
        yield DIFFERENT.format("schedulers", ", ".join(sorted(schedulers)))
    priorities = {member.priority for member in members}
    if len(priorities) > 1:
        yield DIFFERENT.format("priorities", ", ".join(map(str, sorted(priorities))))
    if group.min_members > len(members):
        yield TOO_FEW.format(group.min_members, len(members))
    elif group.min_members > len(members) - len(group.held_back):
        first = group.held_back[0]
        n = len(group.held_back)
        yield HELD_BACK.format(group.min_members, n, len(members), f"{first.key}: {_hindrance(first)}")


def _of_declaration(
    group: PendingGroup, said: set[GroupMembership], declared: GroupDeclaration | None
) -> Iterable[str]:
    source = next(iter(said)).source
    if source is GroupSource.ANNOTATION:
        if len(said) > 1:
            yield DIFFERENT.format("annotations of the group", _differing(said))
        if declared is not None:
            yield TWO_GROUPS.format(source.value, declared.source.value)
    elif declared is None:
        yield NOT_DECLARED.format(_NAMES_OF_KINDS[source], group.key)
    elif declared.source is not source:
        yield TWO_GROUPS.format(source.value, declared.source.value)
    elif declared.problem:
        yield declared.problem


def _differing(said: set[GroupMembership]) -> str:
    least = sorted({str(one.min_members or "absent") for one in said})
    if len(least) > 1:
        return f"bayplan.io/group-min {', '.join(least)}"
    topologies = {one.topology.required or "absent" for one in said}
    if len(topologies) > 1:
        return f"bayplan.io/group-topology {', '.join(sorted(topologies))}"
    return "bayplan.io/group-topology-preferred"


def missing_key(group: PendingGroup, index: PlacementIndex) -> str:
    """Why no node can hold the group whatever runs: none has the topology key; empty if some have."""
    if group.topology_key and not index.column(group.topology_key).by_value and len(index.slots):
        return NO_KEY.format(group.topology_key)
    return ""


def placed_members(index: PlacementIndex) -> dict[str, list[Workload]]:
    """The members of each group that run."""
    found: defaultdict[str, list[Workload]] = defaultdict(list)
    for record in index.records.values():
        if record.workload.group is not None and not record.workload.terminating:
            found[record.workload.labels[MEMBER_OF]].append(record.workload)
    return found
