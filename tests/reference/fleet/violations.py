"""
Which required terms and groups the placed bindings violate, by plain loops over all pairs of bindings.

Question in (`clusters`, `bindings`, `resources`, `options` of `decide fleet`), list of violated rules out. A draining
copy violates nothing and meets nothing.
"""

from reference.fleet import domains, workload_terms
from reference.fleet.failures import Failure
from reference.fleet.objects import Fleet


def broken(question):
    """(owner, sign, path, topology key, domains, cluster, peers) for each, in order."""
    fleet = Fleet({**question, "binding": {}})
    found = []
    for owner in fleet.bindings:
        others = [peer for peer in fleet.bindings if peer is not owner and peer.clusters]
        for name in dict.fromkeys(name for name, _ in owner.clusters):
            if name in fleet.cluster_by_name:
                cluster = fleet.cluster_by_name[name]
                found += by_terms(fleet, owner, cluster, others)
                found += by_groups(owner, cluster, others)
    return sorted(found)


def by_terms(fleet, owner, cluster, others):
    try:
        terms = workload_terms.read(fleet, owner, checks=False)
    except Failure:
        return
    for term in filter(workload_terms.is_served, terms["workloadAffinity"][workload_terms.REQUIRED]):
        meant = [peer for peer in others if term.matches(peer)]
        if any(term.shared(cluster, names_of(peer)) for peer in meant):
            continue
        if meant or not term.matches(owner):  # else it is the lone member of its set
            here = sorted(domains.values(cluster, term.key))
            yield breach(owner, "affinity", term.path, domains.plain(term.key), here, cluster, meant)
    for term in filter(workload_terms.is_served, terms["workloadAntiAffinity"][workload_terms.REQUIRED]):
        near = [peer for peer in others if term.matches(peer) and term.shared(cluster, names_of(peer))]
        crowded = {value for peer in near for value in domains.values_of(fleet, names_of(peer), term.key)}
        here = sorted(crowded & domains.values(cluster, term.key))
        if near:
            yield breach(owner, "anti-affinity", term.path, domains.plain(term.key), here, cluster, near)


def by_groups(owner, cluster, others):
    namespace = owner.resource.get("namespace") or ""
    for field, sign in (("affinityGroup", "affinity group"), ("antiAffinityGroup", "anti-affinity")):
        group = owner.groups.get(field)
        peers = [peer for peer in others if group and peer.groups.get(field) == group and peer.namespace == namespace]
        here = [peer for peer in peers if cluster.name in names_of(peer)]
        wrong = here if field == "antiAffinityGroup" else [peer for peer in peers if peer not in here]
        if wrong:
            path = f"workloadAffinityGroups.{field}"
            yield breach(owner, sign, path, "cluster", [cluster.name], cluster, wrong)


def names_of(binding):
    return {name for name, _ in binding.clusters}


def breach(owner, sign, path, key, values, cluster, peers):
    return (
        f"{owner.namespace}/{owner.name}",
        sign,
        path,
        key,
        sorted(f"{key}={value}" for value in values) or [""],
        cluster.name,
        tuple(sorted(f"{peer.namespace}/{peer.name}" for peer in peers)),
    )
