"""Cordoned nodes accept only pods that tolerate the unschedulable taint."""

from reference.cycle import UNRESOLVABLE, Rejected
from reference.taint_toleration import tolerated

CORDON = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def check(cycle, node):
    if node.unschedulable and not tolerated(CORDON, cycle.pod.tolerations):
        return Rejected(UNRESOLVABLE, "node(s) were unschedulable")
    return None
