"""Which clusters a ClusterAffinity selects. Knows nothing of tiers but their order."""

from reference import selecting

RULE = "ClusterAffinity"
REASON = "cluster(s) did not match the placement cluster affinity constraint"


def check(attempt, cluster):
    if attempt.term.admits(cluster, attempt.binding.is_workload):
        return []
    return [{"rule": RULE, "reason": REASON}]


def matches(cluster, affinity):
    """All conditions are ANDed, so an empty affinity matches every cluster."""
    if cluster.name in (affinity.get("exclude") or []):
        return False
    if not _labels_match(cluster, affinity.get("labelSelector")):
        return False
    for requirement in (affinity.get("fieldSelector") or {}).get("matchExpressions") or []:
        if not _field_matches(cluster, requirement):
            return False
    names = affinity.get("clusterNames") or []
    return not names or cluster.name in names


def _labels_match(cluster, selector):
    """A null selector matches every cluster here; an invalid one matches nothing."""
    if selector is None:
        return True
    requirements = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ]
    requirements += selector.get("matchExpressions") or []
    if not all(_sensible(requirement) for requirement in requirements):
        return False
    return all(selecting.holds(requirement, cluster.labels) for requirement in requirements)


def _sensible(requirement):
    known = requirement.get("operator") in ("In", "NotIn", "Exists", "DoesNotExist")
    return known and selecting.makes_sense(requirement)


def _field_matches(cluster, requirement):
    if requirement.get("key") == "zone":
        return _zones_match(cluster.zones, requirement.get("operator"), requirement.get("values") or [])
    # Upstream crashes on an invalid provider or region requirement; here it matches nothing.
    fields = {"provider": cluster.provider, "region": cluster.region}
    present = {key: value for key, value in fields.items() if value}
    return selecting.makes_sense(requirement) and selecting.holds(requirement, present)


def _zones_match(zones, operator, values):
    """A cluster may have several zones: for In one of them must be listed, for NotIn none."""
    if operator == "In":
        return any(zone in values for zone in zones)
    if operator == "NotIn":
        return not any(zone in values for zone in zones)
    if operator == "Exists":
        return bool(zones)
    if operator == "DoesNotExist":
        return not zones
    return False
