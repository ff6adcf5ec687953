"""What exclusive pods are charged: pod by pod, node by node, straight from the manifests."""

from math import ceil

from reference import node_affinity, objects
from reference.selecting import selects_all

UNHEARD_OF = "somewhere-nobody-knows"
# Without a label, and with each value that random selectors ask for: whoever looks into all of them looks everywhere.
LABELS = [{"kubernetes.io/metadata.name": UNHEARD_OF, **team} for team in ({}, {"team": "a"}, {"team": "b"})]


def charges(question, semantics, charge="largest"):
    """Pod → what it is charged by resource, for the pods that are charged anything or at least refuse all others."""
    cluster = objects.Cluster(question)
    waiting = [objects.Pod(manifest) for manifest in [question["pod"]]]
    on_nodes = [pod for node in cluster.nodes for pod in node.pods]
    found = {}
    for pod in [*on_nodes, *waiting]:
        terms = [term for term in pod.terms.anti_required if refuses_all(term, semantics)]
        if not terms or pod.namespace in semantics.daemon_namespaces:
            continue
        blocked = [blocks(terms, node, cluster.nodes, semantics) for node in may_stand_on(pod, cluster.nodes)]
        found[f"{pod.namespace}/{pod.name}"] = combined([b for b in blocked if b], charge)
    return found


def refuses_all(term, semantics):
    everywhere = all(term._looks_into(UNHEARD_OF, labels, semantics, False) for labels in LABELS)
    return everywhere and selects_all(term.selector)


def may_stand_on(pod, nodes):
    if pod.node_name:
        return [node for node in nodes if node.name == pod.node_name]
    return [node for node in nodes if node_affinity.wanted_by_pod(pod, node)] or nodes


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
