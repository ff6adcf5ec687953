"""The domains of a cluster by topology key; by zone a cluster may be in several."""

PREFIX = "topology.karmada.io/"
CLUSTER = "cluster"
BUILT_IN = (CLUSTER, "zone", "region", "provider")


def plain(key):
    """The key without the design document's prefix, for the four built-in keys; no key means the cluster."""
    short = (key or CLUSTER).removeprefix(PREFIX)
    return short if short in BUILT_IN else key


def values(cluster, key):
    key = plain(key)
    if key == CLUSTER:
        return {cluster.name}
    if key == "zone":
        return set(cluster.zones)
    if key == "region":
        return {cluster.region} if cluster.region else set()
    if key == "provider":
        return {cluster.provider} if cluster.provider else set()
    return {cluster.labels[key]} if key in cluster.labels else set()


def values_of(fleet, names, key):
    """All domains of the clusters of these names; one that does not exist has its name alone."""
    found = set()
    for name in names:
        if name in fleet.cluster_by_name:
            found |= values(fleet.cluster_by_name[name], key)
        elif plain(key) == CLUSTER:
            found.add(name)
    return found
