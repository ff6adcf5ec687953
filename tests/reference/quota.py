"""What exclusive pods are charged: pod by pod, node by node, straight from the manifests."""

from math import ceil

from reference import node_affinity, objects, selecting
from reference.guard import NEW_LABELS, NEW_NAMESPACE


def charges(question, semantics, charge="largest"):
    """Pod → what it is charged by resource, for the pods with required anti-affinity to every other pod."""
    cluster = objects.Cluster(question)
    waiting = [objects.Pod(manifest) for manifest in [question["pod"]]]
    on_nodes = [pod for node in cluster.nodes for pod in node.pods]
    found = {}
    for pod in [*on_nodes, *waiting]:
        keys = exclusive_keys(pod, cluster, semantics)
        if not keys or pod.namespace in semantics.daemon_namespaces:
            continue
        blocked = [blocks(keys, node, cluster.nodes) for node in possible_nodes(pod, cluster.nodes)]
        found[f"{pod.namespace}/{pod.name}"] = combined([b for b in blocked if b], charge)
    return found


def exclusive_keys(pod, cluster, semantics):
    """
    The keys over which all pods without labels are excluded, in each namespace that could exist or in nine of ten that
    exist, at least three, beside the pod's own and those of the system.
    """
    terms = [term for term in pod.terms.anti_required if selecting.selects(term.selector, {})]
    others = {n: labels for n, labels in cluster.namespaces.items() if n != pod.namespace and not n.startswith("kube-")}
    found = []
    for key in sorted({key for term in terms for key in term.keys(semantics)}):
        same = [term for term in terms if key in term.keys(semantics)]
        open_ended = any(term._looks_into(NEW_NAMESPACE, NEW_LABELS, semantics, False) for term in same)
        reached = [n for n in others if any(term._looks_into(n, others[n], semantics, False) for term in same)]
        if open_ended or (len(others) >= 3 and len(reached) >= 0.9 * len(others)):
            found.append(key)
    return found


def possible_nodes(pod, nodes):
    if pod.node_name:
        return [node for node in nodes if node.name == pod.node_name]
    return [node for node in nodes if node_affinity.matches_pod(pod, node)] or nodes


def blocks(keys, here, nodes):
    """The names of the nodes that share a domain with this one, and what they offer."""
    domains = [(key, here.labels[key]) for key in keys if key in here.labels]
    shared = [node for node in nodes if any(node.labels.get(key) == value for key, value in domains)]
    offered = {}
    for node in shared:
        for resource, amount in node.allocatable.items():
            offered[resource] = offered.get(resource, 0) + amount
    return (tuple(sorted(domains)), offered) if shared else None


def combined(blocked, charge):
    offers = list(dict(blocked).values())
    resources = sorted({resource for offered in offers for resource in offered})
    amounts = {name: [offered.get(name, 0) for offered in offers] for name in resources}
    put_together = (lambda values: ceil(sum(values) / len(values))) if charge == "average" else max
    return {name: put_together(values) for name, values in amounts.items() if any(values)}
