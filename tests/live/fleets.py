"""Clusters and bindings of a fleet, as plain dicts."""


def cluster(name, cpu="100"):
    enabled = [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]
    room = {"allocatable": {"cpu": cpu, "memory": "1000Gi", "pods": "1000"}}
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Push", "region": name},
        "status": {"apiEnablements": enabled, "resourceSummary": room},
    }


def binding(name, namespace, clusters, placement, *, replicas=1, annotations=None, **spec):
    """A binding of a Deployment with a placement, scheduled to `clusters`: name → replicas."""
    labels = {"propagationpolicy.karmada.io/permanent-id": "b6a1c1de-2b0a-4f0e-9d5e-1f0f5d3f8a11"}
    meta = {"name": f"{name}-deployment", "namespace": namespace, "labels": labels, "annotations": annotations or {}}
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": name}
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": meta,
        "spec": {
            "resource": resource,
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
            "placement": placement,
            "clusters": [{"name": where, "replicas": count} for where, count in clusters.items()],
            **spec,
        },
    }
