"""What exclusive pods are charged: pod by pod, node by node, straight from the manifests."""

from math import ceil

from reference import node_affinity, objects
from reference.selecting import selects_all

UNKNOWN_NAMESPACE = "unknown-namespace"
# Without a label, and with each value that random selectors use: a term that selects all of these selects every one.
LABELS = [{"kubernetes.io/metadata.name": UNKNOWN_NAMESPACE, **team} for team in ({}, {"team": "a"}, {"team": "b"})]


def charges(question, semantics, charge="largest"):
    """Pod → what it is charged by resource, for the pods with required anti-affinity to every other pod."""
    cluster = objects.Cluster(question)
    waiting = [objects.Pod(manifest) for manifest in [question["pod"]]]
    on_nodes = [pod for node in cluster.nodes for pod in node.pods]
    found = {}
    for pod in [*on_nodes, *waiting]:
        terms = [term for term in pod.terms.anti_required if selects_every_pod(term, semantics)]
        if not terms or pod.namespace in semantics.daemon_namespaces:
            continue
        blocked = [blocks(terms, node, cluster.nodes, semantics) for node in possible_nodes(pod, cluster.nodes)]
        found[f"{pod.namespace}/{pod.name}"] = combined([b for b in blocked if b], charge)
    return found


def selects_every_pod(term, semantics):
    everywhere = all(term._looks_into(UNKNOWN_NAMESPACE, labels, semantics, False) for labels in LABELS)
    return everywhere and selects_all(term.selector)


def possible_nodes(pod, nodes):
    if pod.node_name:
        return [node for node in nodes if node.name == pod.node_name]
    return [node for node in nodes if node_affinity.matches_pod(pod, node)] or nodes


def blocks(terms, here, nodes, semantics):
    """The names of the nodes that share a domain with this one, and what they offer."""
    domains = [domain for term in terms for domain in term.domains(here, semantics)]
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
