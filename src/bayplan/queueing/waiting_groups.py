"""The pending members of each group, and which groups have changed. Knows no order and places nothing."""

from __future__ import annotations

from typing import Generic

from bayplan.model.groups import MEMBER_OF
from bayplan.model.workloads import WorkloadKey
from bayplan.queueing.pending_pod import Pending


class WaitingGroups(Generic[Pending]):
    """
    The pending pods of each group that has any, whatever their stage.

    Without `holds`, there are no groups: members are scheduled one by one. `changed` has the groups of which a member
    came, changed or left since the last `take_changed`.
    """

    def __init__(self, *, holds: bool = False) -> None:
        self.members: dict[str, dict[WorkloadKey, Pending]] = {}
        self._holds = holds
        self._group_of: dict[WorkloadKey, str] = {}
        self._changed: dict[str, None] = {}

    def has(self, pending: Pending) -> bool:
        """Whether a pod waits for the other members of its group."""
        return self._holds and pending.workload.group is not None

    def put(self, pending: Pending) -> None:
        """Add a pod, or note that it has changed; it may be in another group than before, or in none."""
        self.discard(pending.key)
        if self.has(pending):
            group = pending.workload.labels[MEMBER_OF]
            self.members.setdefault(group, {})[pending.key] = pending
            self._group_of[pending.key] = group
            self.touch(group)

    def discard(self, key: WorkloadKey) -> None:
        """Remove a pod, if it is a member."""
        group = self._group_of.pop(key, "")
        if group:
            del self.members[group][key]
            if not self.members[group]:
                del self.members[group]
            self.touch(group)

    def touch(self, group: str) -> None:
        """Note that something about a group has changed."""
        self._changed[group] = None

    def take_changed(self) -> list[str]:
        """The groups that have changed since the last call."""
        changed = list(self._changed)
        self._changed.clear()
        return changed
