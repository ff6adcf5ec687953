"""Cordoned nodes take only pods that tolerate it."""

from slow_twins.cycle import UNRESOLVABLE, Refused
from slow_twins.taint_toleration import tolerated

CORDON = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def check(cycle, node):
    if node.unschedulable and not tolerated(CORDON, cycle.pod.tolerations):
        return Refused(UNRESOLVABLE, "node(s) were unschedulable")
    return None
