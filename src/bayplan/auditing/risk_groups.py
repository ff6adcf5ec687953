"""Which few failures of any levels break a group together. Knows nothing of layouts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from bayplan.auditing.failure_events import FailureEvent
from bayplan.auditing.survivability import Group


def breaking_sets(
    group: Group, all_events: Sequence[FailureEvent], most: int = 2
) -> Iterator[tuple[FailureEvent, ...]]:
    """
    The minimal sets of at most so many events, of any levels, that break the group together; smallest first.

    One of size 1 is a single point. Costs a look at every combination: give `most` with care.
    """
    hitting = [event for event in all_events if any(member.node in event.nodes for member in group.members)]
    found: list[frozenset[int]] = []
    for size in range(1, most + 1):
        for chosen in itertools.combinations(range(len(hitting)), size):
            if any(smaller <= frozenset(chosen) for smaller in found):
                continue
            lost = frozenset().union(*(hitting[i].nodes for i in chosen))
            if group.survivors(lost) < group.need:
                found.append(frozenset(chosen))
                yield tuple(hitting[i] for i in chosen)
