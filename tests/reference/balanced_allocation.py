"""Prefers nodes whose resources would be used evenly."""

import math

from reference.cycle import SKIP
from reference.requests import requests
from reference.resources_fit import is_scalar, toward_zero, used


def resources(cycle):
    listed = cycle.args("NodeResourcesBalancedAllocation").get("resources") or [{"name": "cpu"}, {"name": "memory"}]
    return [entry["name"] for entry in listed]


def before_score(cycle, feasible):
    asked = requests(cycle.pod, placed=False)
    return None if any(asked.get(resource, 0) for resource in resources(cycle)) else SKIP


def score(cycle, node):
    asked = requests(cycle.pod, placed=False)
    now, then = [], []
    for resource in resources(cycle):
        room = node.allocatable.get(resource, 0)
        if not room or (is_scalar(resource) and not asked.get(resource, 0)):
            continue
        before = used(node, resource)
        now.append(min(1.0, before / room))
        then.append(min(1.0, (before + asked.get(resource, 0)) / room))
    return 50 + toward_zero(50 + balance(then) - balance(now), 2)


def balance(fractions):
    return int((1 - deviation(fractions)) * 100)


def deviation(fractions):
    if len(fractions) < 2:
        return 0.0
    if len(fractions) == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    total = 0.0
    for fraction in fractions:
        total += fraction
    mean = total / len(fractions)
    squares = 0.0
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return math.sqrt(squares / len(fractions))
