"""Taints reject pods, or only lower the score of a node."""

from reference.cycle import UNRESOLVABLE, Rejected, normalise_by_maximum

HARD = ("NoSchedule", "NoExecute")


def tolerates(toleration, taint):
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerated(taint, tolerations):
    return any(tolerates(toleration, taint) for toleration in tolerations)


def rejects(node, tolerations):
    """Whether one of the node's hard taints is not tolerated."""
    return any(taint.get("effect") in HARD and not tolerated(taint, tolerations) for taint in node.taints)


def check(cycle, node):
    if rejects(node, cycle.pod.tolerations):
        return Rejected(UNRESOLVABLE, "node(s) had untolerated taint(s)")
    return None


def score(cycle, node):
    """How many soft taints are not tolerated: the fewer the better."""
    tolerations = [t for t in cycle.pod.tolerations if (t.get("effect") or "") in ("", "PreferNoSchedule")]
    return sum(taint.get("effect") == "PreferNoSchedule" and not tolerated(taint, tolerations) for taint in node.taints)


def normalise(cycle, scores):
    return normalise_by_maximum(scores, reverse=True)
