"""`nodeSelector` and node affinity, and the affinity that the scheduler's configuration adds to every pod."""

from reference.cycle import SKIP, UNRESOLVABLE, Rejected, normalise_by_maximum
from reference.selecting import node_selected, term_matches

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def added(cycle):
    return cycle.args("NodeAffinity").get("addedAffinity") or {}


def matches_pod(pod, node):
    """Whether the node matches the pod's nodeSelector and required terms."""
    for key, value in (pod.spec.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            return False
    required = pod.node_affinity.get(REQUIRED)
    return required is None or node_selected(required, node.labels, node.name)


def before_filter(cycle):
    required = cycle.pod.node_affinity.get(REQUIRED)
    if required is None and added(cycle).get(REQUIRED) is None and cycle.pod.spec.get("nodeSelector") is None:
        return SKIP
    if required is None or not required.get("nodeSelectorTerms"):
        return None
    names = set()
    for term in required["nodeSelectorTerms"]:
        listed = [
            set(field.get("values") or [])
            for field in term.get("matchFields") or []
            if field["key"] == "metadata.name" and field["operator"] == "In"
        ]
        if not listed:  # terms are ORed, so one that names no node leaves all nodes open
            return None
        names |= set.intersection(*listed)
    return names or Rejected(UNRESOLVABLE, "pod affinity terms conflict")


def check(cycle, node):
    enforced = added(cycle).get(REQUIRED)
    if enforced is not None and not node_selected(enforced, node.labels, node.name):
        return Rejected(UNRESOLVABLE, "node(s) didn't match scheduler-enforced node affinity")
    if not matches_pod(cycle.pod, node):
        return Rejected(UNRESOLVABLE, "node(s) didn't match Pod's node affinity/selector")
    return None


def before_score(cycle, feasible):
    if not added(cycle).get(PREFERRED) and cycle.pod.node_affinity.get(PREFERRED) is None:
        return SKIP
    return None


def score(cycle, node):
    total = 0
    for preferred in [*(added(cycle).get(PREFERRED) or []), *(cycle.pod.node_affinity.get(PREFERRED) or [])]:
        if term_matches(preferred.get("preference") or {}, node.labels, node.name):
            total += preferred.get("weight") or 0
    return total


def normalise(cycle, scores):
    return normalise_by_maximum(scores)
