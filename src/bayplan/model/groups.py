"""
A group of pods that are placed together, whatever object or annotation declares it.

Does not know where anything runs.
"""

from __future__ import annotations

import enum

import msgspec

# The label by which the terms of groups select members; its value is NAMESPACE/NAME of the group. No manifest can have
# a label with such a key.
MEMBER_OF = "\0group"
# The annotations of a member: its group, what they say of the group itself, and the rules between groups.
GROUP = "bayplan.io/group"
GROUP_MIN, GROUP_TOPOLOGY = "bayplan.io/group-min", "bayplan.io/group-topology"
GROUP_TOPOLOGY_PREFERRED = "bayplan.io/group-topology-preferred"
GROUP_AFFINITY = "bayplan.io/group-affinity"
GROUP_ANNOTATIONS = frozenset((GROUP, GROUP_MIN, GROUP_TOPOLOGY, GROUP_TOPOLOGY_PREFERRED, GROUP_AFFINITY))
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"  # of scheduler-plugins
# Members of groups that are left to other schedulers.
KUEUE_LABEL, VOLCANO_ANNOTATION = "kueue.x-k8s.io/pod-group-name", "scheduling.k8s.io/group-name"


class GroupSource(enum.Enum):
    """What declares a group."""

    POD_GROUP = "PodGroup of scheduling.k8s.io"
    COSCHEDULING = "PodGroup of scheduling.x-k8s.io"
    ANNOTATION = "the annotation bayplan.io/group"
    OWNER = "the owner of the pods"


class GroupTopology(msgspec.Struct, frozen=True):
    """
    In which domains the members of a group are, with the paths where that is written.

    All are in one domain of `required`, if it is given, and in one of the first of `preferred` where they fit.
    """

    required: str = ""
    required_path: str = ""
    preferred: tuple[str, ...] = ()
    preferred_path: str = ""


NO_TOPOLOGY = GroupTopology()


class GroupMembership(msgspec.Struct, frozen=True):
    """The group that a pod names, and what the pod itself says of it; without an object, that is all there is."""

    source: GroupSource
    name: str
    min_members: int = 0
    topology: GroupTopology = NO_TOPOLOGY


class GroupDeclaration(msgspec.Struct, frozen=True):
    """A PodGroup. `min_members` is 0 if its pods are placed one by one; `problem` says why it is not read further."""

    source: GroupSource
    namespace: str
    name: str
    min_members: int = 0
    topology: GroupTopology = NO_TOPOLOGY
    priority: int | None = None
    problem: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
