"""Valid pods that have much of one thing: whatever a tenant can write a list of, with names that nobody has used."""

REQUIRED, PREFERRED = (
    f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred")
)  # fmt: skip


def _container(name, requested=None, **more):
    resources = {"requests": {requested: "1"}, "limits": {requested: "1"}} if requested else {}
    return {"name": name, "image": f"image-{name}", "resources": resources, **more}


def _term(name, **more):
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": name}}, **more}


def _selecting(names, operator, **more):
    return {"matchExpressions": [{"key": name, "operator": operator, **more} for name in names]}


def _peers(side, terms):
    return {"affinity": {side: {REQUIRED: terms}}}


def _preferred(terms):
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {"affinity": {"podAntiAffinity": {PREFERRED: weighted}}}


def _nodes(requirements):
    terms = [{"matchExpressions": [one]} for one in requirements]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _volumes(sources):
    return {"volumes": [{"name": f"v{i}", **source} for i, source in enumerate(sources)]}


# The fields of the spec for these names.
SPECS = {
    "containers": lambda names: {"containers": [_container(name) for name in names]},
    "resources": lambda names: {"containers": [_container(name, f"x.y/{name}") for name in names]},
    "init containers": lambda names: {"initContainers": [_container(name, f"x.y/{name}") for name in names]},
    "sidecars": lambda names: {
        "initContainers": [_container(name, f"x.y/{name}", restartPolicy="Always") for name in names]
    },
    "sidecars between init containers": lambda names: {
        "initContainers": [
            _container(name, f"x.y/{name}", **({"restartPolicy": "Always"} if i % 2 else {}))
            for i, name in enumerate(names)
        ]
    },
    "ports": lambda names: {
        "containers": [_container("a", ports=[{"hostPort": i + 1, "containerPort": i + 1} for i in range(len(names))])]
    },
    "claims": lambda names: _volumes({"persistentVolumeClaim": {"claimName": name}} for name in names),
    "ephemeral claims": lambda names: _volumes(
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}} for _ in names
    ),
    "disks": lambda names: _volumes({"gcePersistentDisk": {"pdName": name}} for name in names),
    "images": lambda names: _volumes({"image": {"reference": name}} for name in names),
    "tolerations": lambda names: {"tolerations": [{"key": name, "operator": "Exists"} for name in names]},
    "node selector": lambda names: {"nodeSelector": dict.fromkeys(names, "x")},
    "node terms": lambda names: _nodes({"key": name, "operator": "Gt", "values": ["1"]} for name in names),
    "node values": lambda names: _nodes([{"key": "a", "operator": "In", "values": names}]),
    "scheduling gates": lambda names: {"schedulingGates": [{"name": name} for name in names]},
    "anti-affinity": lambda names: _peers("podAntiAffinity", [_term(name) for name in names]),
    "affinity": lambda names: _peers("podAffinity", [_term(name) for name in names]),
    "affinity over keys": lambda names: _peers("podAffinity", [_term(name, topologyKey=name) for name in names]),
    "preferred terms": lambda names: _preferred(_term(name) for name in names),
    "requirements": lambda names: _peers(
        "podAntiAffinity", [_term("a", labelSelector=_selecting(names, "NotIn", values=["a"]))]
    ),
    "values": lambda names: _peers(
        "podAntiAffinity", [_term("a", labelSelector=_selecting(["a"], "In", values=names))]
    ),
    "namespaces": lambda names: _peers("podAntiAffinity", [_term("a", namespaces=names)]),
    "namespace selectors": lambda names: _peers(
        "podAntiAffinity", [_term(name, namespaceSelector=_selecting([name], "Exists")) for name in names]
    ),
    "spread": lambda names: {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **_term(name, topologyKey=name)} for name in names
        ]
    },
}


def pod(kind, n, prefix, **metadata):
    """A pod with `n` of the kind, whose names begin with the prefix."""
    spec = {"containers": [_container("main")], "schedulerName": "bayplan"}
    spec |= SPECS[kind]([f"{prefix}{i}" for i in range(n)])
    metadata = {"namespace": "shop", "name": "large", "labels": {"app": "large"}, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
