"""
Followers: copies of an index for readers in other threads, kept up to date by its journal.

The owner of the index continues to change it while a follower is read. Catching up applies only the newer changes, so a
change of one cluster among a thousand is one change for a follower. A follower never contains half of a change, nor a
tentative one. Knows nothing of what it is read for.
"""

from __future__ import annotations

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target


class Follower:
    """
    A copy of `leader` in `index`, as of the last `catch_up`. One thread may use it at a time.

    `position` is that in the leader's journal. `n_applied` counts the changes it applied one by one, `n_copied` how
    often it copied the whole index.
    """

    def __init__(self, leader: PlacementIndex) -> None:
        self.leader = leader
        self.n_applied = 0
        self.n_copied = 0
        self.position = -1
        self.index = PlacementIndex()
        self.catch_up()

    def catch_up(self) -> PlacementIndex:
        """The copy, with everything that the leader has settled."""
        changes, position = self.leader.journal.settled_since(self.position)
        if changes is None:
            self._copy()
            return self.index
        for change in changes:
            if not change.follows:
                self._apply(change)
                self.n_applied += 1
        self.position = position
        return self.index

    def _copy(self) -> None:
        """
        Copy the whole index of the leader.

        The leader may change meanwhile, so the copy may contain some changes after `before`. Applying all changes since
        then makes it complete; applying a change twice is harmless.
        """
        self.n_copied += 1
        leader, before = self.leader, self.leader.journal.settled
        index = PlacementIndex(
            leader.configured_semantics, leader.slots.seed, lost_targets_count=leader.lost_targets_count
        )
        self.index = index
        for name, labels in list(leader.peer_index.namespaces.items()):
            index.set_namespace(name, labels)
        for name, table in leader.storage.tables.items():
            index.storage.tables[name].update(dict(table))
        index.images.adopt_sizes(leader.images)
        for target in list(leader.slots.targets):
            if target is not None:
                self._put_target(target)
        index.images.forget_undoable()
        for record in list(leader.records.values()):
            index.add_shares(record.workload, record.shares)
        self.position = before
        self.catch_up()

    def _apply(self, change: Change) -> None:
        index = self.index
        match change.type:
            case ChangeType.WORKLOAD_ADDED | ChangeType.WORKLOAD_REMOVED:
                assert change.workload is not None
                if change.workload.key in index.records:
                    index.remove(change.workload.key)
                if change.type is ChangeType.WORKLOAD_ADDED:
                    index.add_shares(change.workload, change.shares)
            case ChangeType.TARGET_ADDED | ChangeType.TARGET_CHANGED:
                assert change.target is not None
                self._put_target(change.target)
            case ChangeType.TARGET_REMOVED:
                assert change.target is not None
                if change.target.name in index.slots.by_name:
                    index.remove_target(change.target.name)
            case ChangeType.NAMESPACE_CHANGED:
                index.set_namespace(change.name, change.after)  # type: ignore[arg-type]
            case ChangeType.STORAGE_CHANGED:
                index.set_stored(change.table, change.name, change.after)

    def _put_target(self, target: Target) -> None:
        if target.name in self.index.slots.by_name:
            self.index.update_target(target)
        else:
            self.index.add_target(target)
