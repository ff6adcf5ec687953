"""A pod that names its node fits on that node only."""

from reference.cycle import UNRESOLVABLE, Rejected


def check(cycle, node):
    if cycle.pod.node_name and cycle.pod.node_name != node.name:
        return Rejected(UNRESOLVABLE, "node(s) didn't match the requested node name")
    return None
