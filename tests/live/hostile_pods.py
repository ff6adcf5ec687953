"""Valid pods of up to a megabyte, each of which makes a scheduler do one thing very often."""

SELECTOR = {"matchLabels": {"app": "hostile"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _terms(n):
    return [{"topologyKey": f"example.com/key-{i}", "labelSelector": SELECTOR} for i in range(n)]


def _expressions(n):
    return [{"key": f"example.com/key-{i}", "operator": "DoesNotExist"} for i in range(n)]


def _requests(n):
    return {f"example.com/resource-{i}": "1" for i in range(n)}


# The fields of a pod's spec, by what there is too much of. All of them fit, but for the last two.
SPECS = {
    "anti-affinity": lambda n: {"affinity": {"podAntiAffinity": {REQUIRED: _terms(n)}}},
    "preferred-affinity": lambda n: {
        "affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term} for term in _terms(n)]}}
    },
    "node-affinity": lambda n: {
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": _expressions(n)}]}}}
    },
    "spread": lambda n: {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **term} for term in _terms(n)
        ]
    },
    "affinity": lambda n: {"affinity": {"podAffinity": {REQUIRED: _terms(n)}}},
    "resources": lambda n: {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": _requests(n), "limits": _requests(n)}}]
    },
}
