"""The pending members of each group, and which groups have changed. Knows no order and places nothing."""

from __future__ import annotations

from typing import Generic

from bayplan.model.groups import MEMBER_OF
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.pending_pod import Pending, decides_alike, is_held_back


class WaitingGroups(Generic[Pending]):
    """
    The pending pods of each group that has any, whatever their stage.

    `take_changed` returns the groups of which a member came, changed or left since the last call.
    """

    def __init__(self) -> None:
        self.members: dict[str, dict[WorkloadKey, Pending]] = {}
        self._group_of: dict[WorkloadKey, str] = {}
        self._changed: dict[str, None] = {}

    def put(self, pending: Pending) -> None:
        """Add a pod, or note that it is to be tried again; it may be in another group than before, or in none."""
        self.discard(pending.key)
        if pending.workload.group is not None:
            group = pending.workload.labels[MEMBER_OF]
            self.members.setdefault(group, {})[pending.key] = pending
            self._group_of[pending.key] = group
            self.touch(group)

    def update(self, pending: Pending, before: Workload) -> None:
        """Note that a pod has changed, unless a decision reads nothing of it: its status is reported often."""
        now = pending.workload
        was_held = is_held_back(before) != is_held_back(now)
        if was_held or before.group != now.group or not decides_alike(before, now):
            self.put(pending)

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
