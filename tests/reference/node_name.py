"""A pod that names its node goes there or nowhere."""

from reference.cycle import UNRESOLVABLE, Refused


def check(cycle, node):
    if cycle.pod.node_name and cycle.pod.node_name != node.name:
        return Refused(UNRESOLVABLE, "node(s) didn't match the requested node name")
    return None
