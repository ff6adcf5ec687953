"""Which clusters a ClusterAffinity selects. Knows nothing of tiers but their order."""

import re

from reference import selecting

RULE = "ClusterAffinity"
LABEL = re.compile("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
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
    return known and selecting.makes_sense(requirement) and _parsable(requirement)


def _parsable(requirement):
    """Nothing checks the keys and values of a placement's selectors before they are parsed."""
    prefix, _, name = (requirement.get("key") or "").rpartition("/")
    values = requirement.get("values") or []
    return (
        bool(LABEL.fullmatch(name))
        and (not prefix or bool(SUBDOMAIN.fullmatch(prefix)))
        and all(not value or LABEL.fullmatch(value) for value in values)
    )


def _field_matches(cluster, requirement):
    if requirement.get("key") == "zone":
        return _zones_match(cluster.zones, requirement.get("operator"), requirement.get("values") or [])
    # Upstream crashes on an invalid provider or region requirement; here it matches nothing.
    fields = {"provider": cluster.provider, "region": cluster.region}
    present = {key: value for key, value in fields.items() if value}
    return selecting.makes_sense(requirement) and _parsable(requirement) and selecting.holds(requirement, present)


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
