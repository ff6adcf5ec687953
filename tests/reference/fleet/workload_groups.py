"""
Karmada's own workload affinity: one affinity and one anti-affinity group, filled in by its detector
(`groupByLabelKey`).

Affinity requires that the cluster holds every placed peer of the group, anti-affinity that it holds none. Clusters that
hold the workload already pass both.
"""

from reference.fleet.peers import left_behind, occupied

AFFINITY, ANTI_AFFINITY = "WorkloadAffinity", "WorkloadAntiAffinity"
APART = "ResourceBinding with the same affinity group does not target this cluster"
TOGETHER = "cluster already has workload with the same anti-affinity group"


def check_affinity(attempt, cluster):
    binding, group = attempt.binding, attempt.binding.groups.get("affinityGroup")
    if not group or binding.targets(cluster.name):
        return []
    leaving = left_behind(attempt.fleet)
    missing = []
    for peer in peers(attempt.fleet, "affinityGroup", group):
        clusters = {name for name, _ in peer.clusters} - leaving
        if clusters and cluster.name not in clusters:
            missing.append(peer)
    return _failure(AFFINITY, APART, cluster, missing)


def check_anti_affinity(attempt, cluster):
    binding, group = attempt.binding, attempt.binding.groups.get("antiAffinityGroup")
    if not group or binding.targets(cluster.name):
        return []
    there = [
        peer
        for peer in peers(attempt.fleet, "antiAffinityGroup", group)
        if cluster.name in occupied(peer, attempt.fleet.semantics)
    ]
    return _failure(ANTI_AFFINITY, TOGETHER, cluster, there)


def peers(fleet, sign, group):
    """Bindings of the same group in the template's namespace, but for the template's own."""
    own = binding_name(fleet.binding.resource)
    return [
        peer
        for peer in fleet.bindings
        if peer.groups.get(sign) == group
        and peer.namespace == (fleet.binding.resource.get("namespace") or "")
        and peer.name != own
    ]


def binding_name(resource):
    """The name that Karmada gives the binding of a template; the API group is not part of it."""
    return f"{(resource.get('name') or '').replace(':', '.')}-{resource.get('kind') or ''}".lower()


def _failure(rule, reason, cluster, blocking):
    if not blocking:
        return []
    names = [f"{peer.namespace}/{peer.name}" for peer in blocking]
    return [{"rule": rule, "reason": reason, "domain": f"cluster={cluster.name}", "peers": names}]
