"""
The seed's rule against hard anti-affinity as a weapon, told by asking about made-up pods.

A term reaches all namespaces if it looks into one that nobody has heard of, whatever labels that one has.
"""

from reference import affinity_terms, objects

HOSTNAME = "kubernetes.io/hostname"
UNHEARD_OF = "somewhere-nobody-knows"
# Of these labels a namespace may have any; the first it always has.
ANYWHERE = [
    {"kubernetes.io/metadata.name": UNHEARD_OF, **more}
    for more in (
        {},
        {"team": "a"},
        {"team": "b"},
        {"env": "prod"},
        {"team": "a", "env": "prod"},
        {"team": "?", "env": "?"},
    )
]


def refused(pod, semantics):
    """How many of the pod's hard anti-affinity terms the rule refuses."""
    pod = objects.Pod(pod)
    if pod.namespace in semantics.daemon_namespaces:
        return 0
    return sum(_refused(term, semantics) for term in affinity_terms.read(pod).anti_required)


def _refused(term, semantics):
    return any(key != HOSTNAME for key in term.keys(semantics)) and all(
        term._looks_into(UNHEARD_OF, labels, semantics, True) for labels in ANYWHERE
    )
