"""Whether the pod's requests fit the free resources of a node, and three strategies to score nodes."""

import itertools
import math

from reference.cycle import UNRESOLVABLE, UNSCHEDULABLE, Rejected
from reference.requests import ASSUMED, assumed_requests, requests

PLAIN = ("cpu", "memory", "ephemeral-storage")


def is_scalar(resource):
    """Whether the scheduler counts it besides cpu, memory and ephemeral storage."""
    return (
        is_extended(resource)
        or resource.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in resource
    )


def is_extended(resource):
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def used(node, resource):
    return sum(requests(pod, placed=True).get(resource, 0) for pod in node.pods)


def assumed_use(node, resource):
    return sum(assumed_requests(pod).get(resource, 0) for pod in node.pods)


def check(cycle, node):
    reasons, never = [], False
    if len(node.pods) + 1 > node.allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for resource, asked in requests(cycle.pod, placed=False).items():
        if asked <= 0 or not (resource in PLAIN or is_scalar(resource)) or ignored(cycle, resource):
            continue
        room = node.allocatable.get(resource, 0)
        if asked > room - used(node, resource):
            reasons.append(f"Insufficient {resource}")
            never = never or asked > room
    if not reasons:
        return None
    return Rejected(UNRESOLVABLE if never else UNSCHEDULABLE, *reasons)


def ignored(cycle, resource):
    args = cycle.args("NodeResourcesFit")
    if not is_extended(resource):
        return False
    groups = args.get("ignoredResourceGroups") or []
    return resource in (args.get("ignoredResources") or []) or resource.split("/")[0] in groups


def score(cycle, node):
    strategy = cycle.args("NodeResourcesFit").get("scoringStrategy") or {}
    kind = strategy.get("type") or "LeastAllocated"
    weighed = []  # (score, weight) per resource
    for entry in strategy.get("resources") or [{"name": "cpu"}, {"name": "memory"}]:
        room, asked = room_and_demand(cycle, node, entry["name"])
        if room:
            weighed.append((worth(kind, strategy, asked, room), entry.get("weight") or 1))
    if kind == "RequestedToCapacityRatio":
        weighed = [(points, weight) for points, weight in weighed if points > 0]
    if not weighed:
        return 0
    points, weights = sum(s * w for s, w in weighed), sum(w for _, w in weighed)
    return half_away(points / weights) if kind == "RequestedToCapacityRatio" else points // weights


def room_and_demand(cycle, node, resource):
    """What the node has and what would be requested of it, with the assumed amounts; 0 means that it does not count."""
    asked = requests(cycle.pod, placed=False, assuming=ASSUMED, pod_level=False).get(resource, 0)
    if resource in ("cpu", "memory"):
        return node.allocatable.get(resource, 0), asked + assumed_use(node, resource)
    if resource != "ephemeral-storage" and (not is_scalar(resource) or asked == 0):
        return 0, 0
    return node.allocatable.get(resource, 0), asked + used(node, resource)


def worth(kind, strategy, asked, room):
    if kind == "LeastAllocated":
        return 0 if asked > room else (room - asked) * 100 // room
    if kind == "MostAllocated":
        return min(asked, room) * 100 // room
    shape = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or []
    return along(shape, 100 if asked > room else asked * 100 // room)


def along(shape, utilization):
    """The broken line through the shape's points (whose scores go to 10), in whole numbers, flat beyond its ends."""
    points = [(point.get("utilization") or 0, (point.get("score") or 0) * 10) for point in shape]
    if utilization <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in itertools.pairwise(points):
        if utilization <= right:
            return low + toward_zero((high - low) * (utilization - left), right - left)
    return points[-1][1]


def toward_zero(dividend, divisor):
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def half_away(number):
    """Rounded to the nearest whole number, halves up: only used on numbers that are not negative."""
    down = math.floor(number)
    return down + 1 if number - down >= 0.5 else down
