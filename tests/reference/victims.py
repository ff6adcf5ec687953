"""Who must go where anti-affinity is broken, by trying every choice. For conflicts among few workloads."""

import itertools


def choose(conflicts, precedence):
    """The best choice of all that leave no conflict."""
    involved = sorted({key for c in conflicts for key in (c.owner, *c.peers)})
    choices = [
        set(gone)
        for size in range(len(involved) + 1)
        for gone in itertools.combinations(involved, size)
        if leaves_no_conflict(conflicts, set(gone))
    ]
    return min(choices, key=lambda gone: cost(conflicts, precedence, involved, gone), default=set())


def leaves_no_conflict(conflicts, gone):
    return all(c.owner in gone or len(c.peers - gone) <= c.limit for c in conflicts)


def cost(conflicts, precedence, involved, gone):
    """Priority by priority: how many are wronged, how many go; then, from the most wanted on, whether it goes."""
    by_level = []
    for level in sorted({precedence[key].priority for key in involved}, reverse=True):
        here = [key for key in gone if precedence[key].priority == level]
        unjustified = [
            key for key in here if not any(gives_way(conflicts, precedence, key, o) for o in set(involved) - gone)
        ]
        by_level.append((len(unjustified), len(here)))
    wanted = sorted(
        involved, key=lambda k: (-precedence[k].priority, not precedence[k].spared, precedence[k].since or "9999", k)
    )
    return by_level, [key in gone for key in wanted]


def gives_way(conflicts, precedence, one, other):
    """Whether the first has to go if the second stays."""
    for c in conflicts:
        lower = precedence[one].priority < precedence[other].priority
        if c.owner == one and other in c.peers and (lower or precedence[one].priority == precedence[other].priority):
            return True
        if c.owner == other and one in c.peers and lower:
            return True
    return False
