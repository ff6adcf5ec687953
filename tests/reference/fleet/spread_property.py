"""A cluster must have the property that a spread constraint groups by, whether or not it is there already."""

RULE = "SpreadConstraint"


def check(attempt, cluster):
    for constraint in attempt.binding.spread_constraints:
        field, label = constraint.get("spreadByField"), constraint.get("spreadByLabel")
        if field == "provider" and not cluster.provider:
            return [{"rule": RULE, "reason": "cluster(s) did not have provider property"}]
        if field == "region" and not cluster.region:
            return [{"rule": RULE, "reason": "cluster(s) did not have region property"}]
        if field == "zone" and not cluster.zones:
            return [{"rule": RULE, "reason": "cluster(s) did not have zones property"}]
        if label and attempt.fleet.semantics["spreadByEveryField"] and label not in cluster.labels:
            return [{"rule": RULE, "reason": f"cluster(s) did not have label {label}"}]
    return []
