"""
How many whole sets of a workload's components a cluster could take (gate MultiplePodTemplatesScheduling).

Karmada compares amounts written in decimal form in thousandths and amounts written in binary form in units, without
checking whether both sides have the same form; so does this module.
"""

from reference.fleet import resource_models
from reference.fleet.free_resources import free_pods
from reference.fleet.go_numbers import int32
from reference.objects import exact, rounded


def applicable(binding):
    """Only for a placement that requires exactly one cluster."""
    if not binding.components:
        return False
    return any(
        constraint.get("spreadByField") == "cluster"
        and constraint.get("minGroups") == 1
        and constraint.get("maxGroups") == 1
        for constraint in binding.spread_constraints
    )


def most(components, cluster):
    if cluster.summary is None:
        return 0
    pods = free_pods(cluster.summary)
    if pods <= 0:
        return 0
    per_set = sum(component.get("replicas") or 0 for component in components)
    if per_set <= 0:
        return int32(pods)
    sets = int32(pods // per_set)
    for resource, wanted in _per_set(components).items():
        if wanted <= 0:
            continue
        free = _free(resource, cluster.summary)
        if free <= 0:
            return 0
        sets = min(sets, int32(free // wanted))
    if resource_models.usable(cluster):
        sets = min(sets, on_models(components, cluster, sets))
    return sets


def _per_set(components):
    total = {}
    for component in components:
        asked = (component.get("replicaRequirements") or {}).get("resourceRequest") or {}
        for resource, text in asked.items():
            amount = _amount(exact(text), binary=_is_binary(text))
            total[resource] = total.get(resource, 0) + amount * (component.get("replicas") or 0)
    return total


def _free(resource, summary):
    """A difference keeps the form of the first number that is not zero."""
    if resource not in (summary.get("allocatable") or {}):
        return 0
    free, binary = exact(summary["allocatable"][resource]), _is_binary(summary["allocatable"][resource])
    for part in ("allocated", "allocating"):
        if resource in (summary.get(part) or {}):
            text = summary[part][resource]
            if free == 0:
                binary = _is_binary(text)
            free -= exact(text)
    return _amount(free, binary=binary)


def _is_binary(text):
    return str(text).endswith("i")


def _amount(value, *, binary):
    return rounded("" if binary else "cpu", value)


def on_models(components, cluster, most_sets):
    """First fit, component by component and node by node; the first set that does not fit as a whole ends the count."""
    nodes = resource_models.nodes(cluster)
    for done in range(most_sets):
        if not all(_placed(component, nodes) for component in components):
            return done
    return most_sets


def _placed(component, nodes):
    remaining = component.get("replicas") or 0
    wanted = resource_models.request((component.get("replicaRequirements") or {}).get("resourceRequest") or {})
    for node in nodes:
        taken = min(remaining, resource_models.how_many(node, wanted))
        if resource_models.how_many(node, wanted) == 0:
            continue
        resource_models.take(node, wanted, taken)
        remaining -= taken
        if remaining == 0:
            return True
    return remaining == 0
