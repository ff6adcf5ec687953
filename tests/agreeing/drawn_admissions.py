"""
Objects for `decide admission`: pods and controllers of pods that were valid before some places in them were changed.

One of three is about how pods run, the others are about what placing reads.
"""

import copy

from agreeing import drawn_pods
from agreeing.drawing import THEMES, Theme
from validating import mutations

# They need another object in the cluster.
ELSEWHERE = ("priority", "preemptionPolicy", "overhead")


def question(seed, number):
    name = f"{seed}-{number}"
    if number % 3 == 0:
        (drawn,) = mutations.mutated(f"running/{name}", 1)
        return {"name": f"running-{name}", "object": drawn}
    theme = Theme(sorted(THEMES)[number % len(THEMES)], f"admission/{seed}/{number}")
    spec = {key: value for key, value in drawn_pods.pending(theme, "p")["spec"].items() if key not in ELSEWHERE}
    dice = mutations.PlacingChanges(f"placing/{name}")
    for _ in range(dice.choice((0, 1, 1, 2, 3, 6))):
        mutations.change(dice, spec, "PodSpec")
    claim = copy.deepcopy(mutations.VALID["claim"])
    drawn = mutations.object_of_kind(dice.choice(mutations.KINDS), spec, claim)
    return {"name": f"{theme.name}-{name}", "object": drawn}
