"""The eviction victims where anti-affinity is violated, by trying every choice, for few workloads."""

import itertools


def choose(conflicts, precedence):
    """The best of all choices that leave no conflict."""
    involved = sorted({key for c in conflicts for key in (c.owner, *c.peers)})
    choices = [
        set(evicted)
        for size in range(len(involved) + 1)
        for evicted in itertools.combinations(involved, size)
        if leaves_no_conflict(conflicts, set(evicted))
    ]
    return min(choices, key=lambda evicted: cost(conflicts, precedence, involved, evicted), default=set())


def leaves_no_conflict(conflicts, evicted):
    return all(c.owner in evicted or len(c.peers - evicted) <= c.limit for c in conflicts)


def cost(conflicts, precedence, involved, evicted):
    """By priority: unjustified evictions, evictions; then, in retention order, whether each is evicted."""
    by_level = []
    for level in sorted({precedence[key].priority for key in involved}, reverse=True):
        here = [key for key in evicted if precedence[key].priority == level]
        unjustified = [
            key for key in here if not any(justifies(conflicts, precedence, key, o) for o in set(involved) - evicted)
        ]
        by_level.append((len(unjustified), len(here)))
    retention_order = sorted(
        involved, key=lambda k: (-precedence[k].priority, not precedence[k].spared, precedence[k].since or "9999", k)
    )
    return by_level, [key in evicted for key in retention_order]


def justifies(conflicts, precedence, one, other):
    """Whether the eviction of the first is justified if the second remains."""
    for c in conflicts:
        lower = precedence[one].priority < precedence[other].priority
        if c.owner == one and other in c.peers and (lower or precedence[one].priority == precedence[other].priority):
            return True
        if c.owner == other and one in c.peers and lower:
            return True
    return False
