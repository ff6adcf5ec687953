"""
The shorthand of fleet scenarios, expanded to Karmada's objects: Clusters, ResourceBindings, templates.

Clusters report what the workloads on them use, so a workload that was scheduled in one step uses resources in the next.
"""

import json
from fractions import Fraction

from reference.objects import exact, rounded
from scenarios import InvalidScenarioError, check_keys

CLUSTER = {"labels", "region", "zones", "provider", "taints", "free", "allocatable", "apis", "deleting"}
WORKLOAD = {
    "apiVersion",
    "kind",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "replicas",
    "requests",
    "components",
    "placement",
    "groups",
    "runs",
    "observed",
    "evicting",
    "fresh",
}
API_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "ConfigMap": "v1",
    "FlinkDeployment": "flink.apache.org/v1beta1",
    "RayService": "ray.io/v1",
    "RedisCluster": "redis.redis.opstreelabs.in/v1beta2",
}
WITHOUT_REPLICAS = {"ConfigMap"}
ROOM = {"cpu": "1000", "memory": "4000Gi", "pods": "1000"}  # enough unless a scenario says otherwise
RESOURCES = {*ROOM, "nvidia.com/gpu"}
APPLIED = "policy.karmada.io/applied-placement"  # the placement of the last scheduling
TRIGGERED, SCHEDULED = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


# Clusters


def check_cluster(name, short):
    check_keys(f"cluster {name}", short, CLUSTER)
    if "free" in short and "allocatable" in short:
        raise InvalidScenarioError(f"cluster {name}: give free or allocatable, not both")
    for resource in {**(short.get("free") or {}), **(short.get("allocatable") or {})}:
        if resource not in RESOURCES:
            raise InvalidScenarioError(f"cluster {name}: no resource {resource!r}")
    unknown = [kind for kind in short.get("apis") or () if kind not in API_VERSIONS]
    if unknown:
        raise InvalidScenarioError(f"cluster {name}: no kind {unknown[0]!r}")


def cluster(name, short, workloads):
    """`allocatable` is what the cluster has; what it reports as allocated is what the workloads there use."""
    metadata = {"name": name, "labels": short.get("labels") or {}}
    if short.get("deleting"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        metadata["finalizers"] = ["karmada.io/cluster-controller"]
    spec = {key: short[key] for key in ("region", "zones", "provider", "taints") if key in short}
    summary = {
        "allocatable": {**ROOM, **(short.get("allocatable") or {})},
        "allocated": {resource: written(resource, used) for resource, used in usage(name, workloads).items()},
    }
    served = API_VERSIONS if short.get("apis") is None else short["apis"]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": metadata,
        "spec": {"syncMode": "Push", **spec},
        "status": {"apiEnablements": [enabled(kind) for kind in served], "resourceSummary": summary},
    }


def enabled(kind):
    return {"groupVersion": API_VERSIONS[kind], "resources": [{"kind": kind, "name": f"{kind.lower()}s"}]}


def usage(name, workloads):
    """What all workloads use on a cluster of that name, exactly."""
    used = {}
    for short in workloads.values():
        copies = dict(targets(short)).get(name, 0)
        for resource, text in {"pods": "1", **(short.get("requests") or {})}.items():
            used[resource] = used.get(resource, Fraction(0)) + copies * exact(text)
    return used


def with_free_resources(short, name, workloads):
    """`free` is what running workloads leave when the timeline begins."""
    if "free" not in short:
        return short
    used = usage(name, workloads)
    allocatable = {
        resource: written(resource, exact(text) + used.get(resource, 0)) for resource, text in short["free"].items()
    }
    return {**{key: value for key, value in short.items() if key != "free"}, "allocatable": allocatable}


def written(resource, amount):
    """An exact amount as Kubernetes writes it."""
    return f"{rounded(resource, amount)}m" if resource == "cpu" else str(rounded(resource, amount))


# Workloads


def check_workload(name, short, clusters):
    check_keys(f"workload {name}", short, WORKLOAD)
    kind = short.get("kind") or "Deployment"
    if "apiVersion" not in short and kind not in API_VERSIONS:
        raise InvalidScenarioError(f"workload {name}: no kind {kind!r}")
    if kind in WITHOUT_REPLICAS and (set(short) & {"replicas", "requests", "components"}):
        raise InvalidScenarioError(f"workload {name}: a {kind} has no replicas")
    for each in [*(short.get("runs") or ()), *(short.get("evicting") or ())]:
        if each not in clusters:
            raise InvalidScenarioError(f"workload {name} is on cluster {each!r}, which does not exist")
    twice = set(short.get("runs") or ()) & set(short.get("evicting") or ())
    if twice:
        raise InvalidScenarioError(f"workload {name} runs on {min(twice)} and is evicted from it")
    if short.get("fresh") and not short.get("runs"):
        raise InvalidScenarioError(f"workload {name} cannot be fresh: it runs nowhere")
    if isinstance(short.get("runs"), list) and has_replicas(short):
        raise InvalidScenarioError(f"workload {name}: give the replicas on each cluster")
    if "groups" in short:
        check_keys(f"groups of workload {name}", short["groups"], {"affinityGroup", "antiAffinityGroup"})
        if (short.get("placement") or {}).get("workloadAffinity"):
            raise InvalidScenarioError(f"workload {name}: its groups follow from its placement")


def has_replicas(short):
    return (short.get("kind") or "Deployment") not in WITHOUT_REPLICAS and not short.get("components")


def is_divided(short):
    scheduling = (short.get("placement") or {}).get("replicaScheduling") or {}
    return has_replicas(short) and scheduling.get("replicaSchedulingType") == "Divided"


def replicas(short):
    """As written, else as many as run."""
    if not has_replicas(short):
        return 0
    running = [number for _, number in targets(short)]
    return short.get("replicas", (sum(running) if is_divided(short) else max(running, default=1)))


def targets(short):
    """[(cluster, replicas)] of the previous result."""
    runs = short.get("runs") or {}
    return list(runs.items()) if isinstance(runs, dict) else [(name, 0) for name in runs]


def binding(name, short):
    kind = short.get("kind") or "Deployment"
    namespace = short.get("namespace") or "default"
    resource = {"apiVersion": api_version(short), "kind": kind, "namespace": namespace, "name": name}
    spec = {
        "resource": {**resource, "uid": short.get("uid") or ""},
        "placement": short.get("placement") or {},
        "clusters": [{"name": each, "replicas": number} for each, number in targets(short)],
        "gracefulEvictionTasks": evictions(short.get("evicting") or ()),
    }
    if has_replicas(short):
        spec["replicas"] = replicas(short)
        if short.get("requests"):
            spec["replicaRequirements"] = {"resourceRequest": short["requests"]}
    if short.get("components"):
        spec["components"] = short["components"]
    if groups(short):
        spec["workloadAffinityGroups"] = groups(short)
    if short.get("fresh"):
        spec["rescheduleTriggeredAt"] = TRIGGERED
    status = {"lastScheduledTime": SCHEDULED} if targets(short) else {}
    if short.get("observed"):
        status["schedulerObservingAffinityName"] = short["observed"]
    metadata = {"name": f"{name}-{kind.lower()}", "namespace": namespace, "uid": f"binding-{name}"}
    applied = {APPLIED: json.dumps(spec["placement"])} if targets(short) else {}
    if applied or short.get("annotations"):
        metadata["annotations"] = {**applied, **(short.get("annotations") or {})}
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def api_version(short):
    return short.get("apiVersion") or API_VERSIONS[short.get("kind") or "Deployment"]


def evictions(evicting):
    modes = evicting if isinstance(evicting, dict) else dict.fromkeys(evicting, "Gracefully")
    return [
        {"fromCluster": each, "purgeMode": mode, "reason": "TaintUntolerated", "producer": "TaintManager"}
        for each, mode in modes.items()
    ]


def groups(short):
    """As Karmada's detector fills them in from the labels of the template; a missing label means no group."""
    if "groups" in short:
        return short["groups"]
    asked, labels = (short.get("placement") or {}).get("workloadAffinity") or {}, short.get("labels") or {}
    keys = {
        group: (asked.get(term) or {}).get("groupByLabelKey")
        for group, term in (("affinityGroup", "affinity"), ("antiAffinityGroup", "antiAffinity"))
    }
    return {group: f"{key}={labels[key]}" for group, key in keys.items() if key in labels}


def template(name, short):
    """The resource template of the binding, with the labels only."""
    metadata = {"name": name, "namespace": short.get("namespace") or "default", "labels": short["labels"]}
    return {"apiVersion": api_version(short), "kind": short.get("kind") or "Deployment", "metadata": metadata}
