"""
Who came in the place of evicted pods: the new pods of the same controllers, once they have a node.

A controller gives new pods other names, so they are told by what was not there before. Knows nothing of why the old
ones went.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.model.workloads import WorkloadKey


class SeenPod(msgspec.Struct, frozen=True):
    """A pod as it is now; `controller` is the uid of whoever made it, `target` empty while it has no node."""

    key: WorkloadKey
    uid: str
    controller: str
    target: str = ""
    ending: bool = False


class Replacement(msgspec.Struct, frozen=True):
    """What became of an evicted pod. `new` is who came for it, None if nobody has come yet; `gone`: the old one is."""

    old: SeenPod
    new: SeenPod | None
    gone: bool

    @property
    def is_over(self) -> bool:
        """Whether the old one is gone and the new one has a node."""
        return self.gone and self.new is not None and bool(self.new.target)

    @property
    def missing(self) -> str:
        """What is still to happen; empty if nothing is."""
        if self.new is None:
            return "no replacement was made"
        if not self.new.target:
            return f"its replacement {self.new.key} has no node"
        return "" if self.gone else "it has not ended"


def found(evicted: Sequence[SeenPod], before: AbstractSet[str], seen: Iterable[SeenPod]) -> tuple[Replacement, ...]:
    """For each evicted pod what became of it; `before` are the uids of all pods there were when it was evicted."""
    present = list(seen)
    uids = {pod.uid for pod in present}
    fresh: dict[str, list[SeenPod]] = {}
    # Those with a node first: of several new pods of one controller it does not matter who came for whom.
    for pod in sorted(present, key=lambda pod: (not pod.target, pod.key)):
        if pod.uid not in before and not pod.ending:
            fresh.setdefault(pod.controller, []).append(pod)
    found = []
    for old in evicted:
        waiting = fresh.get(old.controller)
        found.append(Replacement(old, waiting.pop(0) if waiting else None, old.uid not in uids))
    return tuple(found)
