"""Which node to reserve for a pod, by a loop over the nodes and their pods."""

from fractions import Fraction

MAX_SUM = 2**61  # of what the pods of a node request


def choose(pod, nodes, placed, taken):
    """
    The node that lacks the least and what it lacks, or twice None; `nodes` are those that all other rules admit.

    `nodes` has the allocatable amounts by name, `placed` pairs of pod and node.
    """
    if any(not lacks(pod, name, nodes, placed) for name in nodes):
        return None, None  # it fits
    found = []
    for name in nodes:
        if name not in taken and could_hold(pod, name, nodes, placed):
            missing = lacks(pod, name, nodes, placed)
            asked = requests(pod)
            found.append(
                (sum(Fraction(amount, asked[resource]) for resource, amount in missing.items()), name, missing)
            )
    if not found:
        return None, None
    _, name, missing = min(found, key=lambda one: one[:2])
    return name, missing


def could_hold(pod, name, nodes, placed):
    stays = [
        other
        for other, node in placed
        if node == name
        and (other.priority > pod.priority or (other.controller and other.controller.kind in ("DaemonSet", "Node")))
    ]
    return not exceeded(pod, nodes[name], stays)


def lacks(pod, name, nodes, placed):
    return exceeded(pod, nodes[name], [other for other, node in placed if node == name])


def exceeded(pod, allocatable, others):
    missing = {}
    for resource, amount in requests(pod).items():
        free = allocatable.get(resource, 0) - min(sum(requests(other).get(resource, 0) for other in others), MAX_SUM)
        if amount > free:
            missing[resource] = amount - free
    return missing


def requests(pod):
    return {"pods": 1} | {resource: amount for resource, amount in pod.needs.requests.amounts if amount}
