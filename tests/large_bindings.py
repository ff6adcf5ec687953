"""Placements that have much of one thing: whatever a tenant can write a list of in a policy, with names of its own."""


def _selecting(names, operator, **more):
    return [{"key": name, "operator": operator, **more} for name in names]


def _groups(names, **more):
    return [{"affinityName": name, **more, "clusterNames": ["one", name]} for name in names]


def _single(**affinity):
    return {"clusterAffinity": affinity}


def _weights(names):
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in names]
    return {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": weights},
        }
    }


# The placement for these names.
PLACEMENTS = {
    "names": lambda names: _single(clusterNames=["one", *names]),
    "excluded": lambda names: _single(exclude=list(names)),
    "labels": lambda names: _single(labelSelector={"matchExpressions": _selecting(names, "DoesNotExist")}),
    "values": lambda names: _single(
        labelSelector={"matchExpressions": [{"key": "a", "operator": "NotIn", "values": list(names)}]}
    ),
    "fields": lambda names: _single(
        fieldSelector={"matchExpressions": [{"key": "provider", "operator": "NotIn", "values": [n]} for n in names]}
    ),
    "groups": lambda names: {"clusterAffinities": _groups(names)},
    "groups that select nothing": lambda names: {
        "clusterAffinities": [{"affinityName": name, "labelSelector": {"matchLabels": {"a": name}}} for name in names]
    },
    "groups with tiers": lambda names: {
        "clusterAffinities": _groups(names, overflowAffinities=[{"clusterNames": ["one"]}])
    },
    "tiers": lambda names: {
        "clusterAffinities": [
            {"affinityName": "a", "overflowAffinities": [{"clusterNames": ["one", name]} for name in names]}
        ]
    },
    "tolerations": lambda names: {"clusterTolerations": [{"key": name, "operator": "Exists"} for name in names]},
    "spread": lambda names: {
        "spreadConstraints": [{"spreadByLabel": name, "minGroups": 1, "maxGroups": 2} for name in names]
    },
    "weights": _weights,
}


def names(n, prefix="x"):
    return [f"{prefix}{i}" for i in range(n)]
