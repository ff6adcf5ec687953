"""
The design document's rule against cluster-wide required anti-affinity, checked with invented namespaces.

A term selects pods of all namespaces if it selects those of an unknown one, whatever its labels are.
"""

from reference import affinity_terms, objects

HOSTNAME = "kubernetes.io/hostname"
UNKNOWN_NAMESPACE = "unknown-namespace"
# Sets of labels that a namespace may have; it always has the first label.
ANYWHERE = [
    {"kubernetes.io/metadata.name": UNKNOWN_NAMESPACE, **more}
    for more in (
        {},
        {"team": "a"},
        {"team": "b"},
        {"env": "prod"},
        {"team": "a", "env": "prod"},
        {"team": "?", "env": "?"},
    )
]


def rejected_terms(pod, semantics):
    """How many of the pod's required anti-affinity terms the rule rejects."""
    pod = objects.Pod(pod)
    if pod.namespace in semantics.daemon_namespaces:
        return 0
    return sum(_is_rejected(term, semantics) for term in affinity_terms.read(pod).anti_required)


def _is_rejected(term, semantics):
    return any(key != HOSTNAME for key in term.keys(semantics)) and all(
        term._looks_into(UNKNOWN_NAMESPACE, labels, semantics, True) for labels in ANYWHERE
    )
