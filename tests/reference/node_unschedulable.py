"""Cordoned nodes take only pods that tolerate it."""

from reference.cycle import UNRESOLVABLE, Refused
from reference.taint_toleration import tolerated

CORDON = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def check(cycle, node):
    if node.unschedulable and not tolerated(CORDON, cycle.pod.tolerations):
        return Refused(UNRESOLVABLE, "node(s) were unschedulable")
    return None
