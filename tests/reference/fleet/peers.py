"""The clusters where another workload counts as placed. Knows nothing of terms or groups."""

PURGED_AT_ONCE = ("Directly", "Immediately")  # its copy is removed before the new one is there


def occupied(peer, semantics):
    """Names of clusters where a peer counts for anti-affinity, however few replicas it has there."""
    names = {name for name, _ in peer.clusters}
    if semantics["drainingCopiesCount"]:
        names |= {
            task.get("fromCluster") for task in peer.eviction_tasks if task.get("purgeMode") not in PURGED_AT_ONCE
        }
    return names


def left_behind(fleet):
    """Names of clusters where the workload cannot join a peer: it is evicted from them, or they are being deleted."""
    if not fleet.semantics["groupsMoveTogether"]:
        return set()
    named = {name for peer in fleet.bindings for name, _ in peer.clusters}
    gone = {name for name in named if name not in fleet.cluster_by_name or fleet.cluster_by_name[name].deleting}
    return gone | {task.get("fromCluster") for task in fleet.binding.eviction_tasks}
