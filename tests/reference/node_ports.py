"""Two pods cannot have the same port of a node."""

from reference.cycle import SKIP, UNSCHEDULABLE, Rejected

ANY_ADDRESS = "0.0.0.0"


def host_ports(pod):
    """(address, protocol, port) of containers and of init containers that keep running."""
    sidecars = [container for container in pod.init_containers if container.get("restartPolicy") == "Always"]
    return [
        (port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"])
        for container in [*pod.containers, *sidecars]
        for port in container.get("ports") or []
        if (port.get("hostPort") or 0) > 0
    ]


def conflict(wanted, used):
    if wanted[1:] != used[1:]:
        return False
    return wanted[0] == used[0] or ANY_ADDRESS in (wanted[0], used[0])


def before_filter(cycle):
    return None if host_ports(cycle.pod) else SKIP


def check(cycle, node):
    for pod in node.pods:
        for used in host_ports(pod):
            if used not in node.freed_ports and any(conflict(wanted, used) for wanted in host_ports(cycle.pod)):
                return Rejected(UNSCHEDULABLE, "node(s) didn't have free ports for the requested pod ports")
    return None
