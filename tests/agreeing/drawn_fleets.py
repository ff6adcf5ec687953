"""Questions of `decide fleet`: those of the reference implementation, and fleets of up to 60 clusters."""

import random

from reference.fleet import strategies


def question(seed, number):
    """Every tenth divides replicas among many equal clusters, every tenth is any other question about many clusters."""
    dice = strategies.Dice(random.Random(f"fleet/{seed}/{number}").randrange)
    if number % 10 == 3:
        return {**strategies.large_fleet(dice), "name": f"large-{seed}-{number}"}
    if number % 10 == 7:
        drawn = strategies.question(dice, additions=False, most_clusters=60, most_bindings=20)
        return {**drawn, "name": f"many-{seed}-{number}"}
    return {**strategies.question(dice, additions=False), "name": f"few-{seed}-{number}"}
