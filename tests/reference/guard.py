"""
The design document's rule against cluster-wide required anti-affinity, checked with an invented namespace.

A term selects pods of all namespaces if it selects those of a new one, which has no other label than its name.
"""

from reference import affinity_terms, objects

HOSTNAME = "kubernetes.io/hostname"
NEW_NAMESPACE = "new-namespace"
NEW_LABELS = {"kubernetes.io/metadata.name": NEW_NAMESPACE}


def rejected_terms(pod, semantics):
    """How many of the pod's required anti-affinity terms the rule rejects."""
    pod = objects.Pod(pod)
    if pod.namespace in semantics.daemon_namespaces:
        return 0
    return sum(_is_rejected(term, semantics) for term in affinity_terms.read(pod).anti_required)


def _is_rejected(term, semantics):
    wider = any(key != HOSTNAME for key in term.keys(semantics))
    return wider and term._looks_into(NEW_NAMESPACE, NEW_LABELS, semantics, True)
