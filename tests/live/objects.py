"""Nodes and pods for live tests, as plain dicts. The API server sets the defaults."""


def node(number, *, prefix="node-", cpu="4", memory="16Gi", pods=110, zones=3, labels=None, taints=None, spec=None):
    """A ready node; zones alternate: zone-0, zone-1, …. `labels` may be a function of the number."""
    name = f"{prefix}{number}"
    own = labels(number) if callable(labels) else labels or {}
    capacity = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": f"zone-{number % zones}",
                "topology.kubernetes.io/region": "region-0",
                **own,
            },
        },
        "spec": {"taints": taints or [], **(spec or {})},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(name, namespace="default", *, scheduler="default-scheduler", cpu=None, memory=None, meta=None, **spec):
    """A pod with one container; `meta` and the rest are fields of its metadata and its spec as Kubernetes spells them."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container = {"name": "main", "image": "example.com/none", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **(meta or {})},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }
