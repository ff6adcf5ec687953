"""
Capacity by resource models: a number of nodes per grade, each as large as its grade's minimum, with 110 pods.

Node selectors, affinity and tolerations do not matter: the modelled nodes have no labels and no taints.
"""

from reference.fleet.go_numbers import MAX_INT32
from reference.objects import exact, rounded

PODS_PER_NODE = 110


def usable(cluster):
    """Karmada falls back to the summary when no model is declared or a count is negative."""
    counted = cluster.summary.get("allocatableModelings") or []
    if not counted or not cluster.resource_models:
        return False
    return all((each.get("count") or 0) >= 0 for each in counted)


def nodes(cluster):
    """One dict of free amounts per modelled node, in ascending grade. Of a grade or range given twice the last counts."""
    sizes = {}
    for model in cluster.resource_models:
        smallest = {each["name"]: exact(each.get("min") or 0) for each in model.get("ranges") or []}
        size = {name: rounded(name, amount) for name, amount in smallest.items() if counts(name)}
        sizes[model.get("grade") or 0] = {**size, "pods": PODS_PER_NODE}
    built = []
    for grade in sorted(sizes):
        number = sum(
            each.get("count") or 0
            for each in cluster.summary["allocatableModelings"]
            if (each.get("grade") or 0) == grade
        )
        built += [dict(sizes[grade]) for _ in range(number)]
    return built


def request(resources):
    """What one replica takes of a node: always one pod, whatever is requested under that name."""
    amounts = {name: rounded(name, exact(text)) for name, text in resources.items() if counts(name)}
    return {**{name: amount for name, amount in amounts.items() if amount > 0}, "pods": 1}


def counts(name):
    """Whether Karmada's arithmetic for nodes knows the resource; it ignores requests for others."""
    if name in ("cpu", "memory", "ephemeral-storage"):
        return True
    if name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


def how_many(node, wanted):
    return min(node.get(name, 0) // amount for name, amount in wanted.items())


def take(node, wanted, times):
    for name, amount in wanted.items():
        node[name] = max(0, node.get(name, 0) - amount * times)


def most_replicas(requests, cluster):
    """Equal replicas fill one node after another, so it does not matter which comes first."""
    wanted = request(requests)
    return min(sum(how_many(node, wanted) for node in nodes(cluster)), MAX_INT32)
