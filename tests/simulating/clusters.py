"""Small clusters as objects, and timelines on them."""

import bayplan

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def node(name, zone="a", cpu="4", **labels):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone, **labels}},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def workload(kind, name, replicas=None, cpu="1", pod=None, **spec):
    labels = {"app": name}
    container = {"name": "c", "image": f"{name}:1", "resources": {"requests": {"cpu": cpu}}}
    written = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **(pod or {})}},
        **spec,
    }
    if kind == "Job":
        del written["selector"]
        written["template"]["spec"]["restartPolicy"] = "Never"
    if kind == "StatefulSet":
        written["serviceName"] = name
    if replicas is not None:
        written["replicas"] = replicas
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": written}


def deployment(name="web", replicas=3, **more):
    return workload("Deployment", name, replicas, **more)


def budget(name, **limits):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **limits},
    }


def autoscaler(name="web", least=2, most=20, **spec):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most, **spec},
    }


def apart(name, key=HOST):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def in_execution(side, name, key=HOST):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}}
    return {"affinity": {side: {"requiredDuringSchedulingRequiredDuringExecution": [term]}}}


def three_zones(n_per_zone=1, cpu="4"):
    return [node(f"{zone}{n}", zone, cpu) for zone in "abc" for n in range(1, n_per_zone + 1)]


def simulate(objects, steps, *, at=(), all_events=False, **timeline):
    """The answer for objects and steps; the timeline lasts as long as the last step says."""
    return bayplan.Cluster.from_objects(objects).simulate({"steps": steps, **timeline}, at=at, all_events=all_events)


def state(objects, steps, at, **timeline):
    """Where the pods are at a time: node by pod, "" for those that wait."""
    (found,) = simulate(
        objects, [*steps, {"at": at, "expect": {"nodesReady": {"atLeast": 1}}}], at=[at], **timeline
    ).states
    where = {pod.partition("/")[2]: name for name, pods in found.pods.items() for pod in pods}
    return where | {pod.partition("/")[2]: "" for pod in found.pending}


def reasons(run, *wanted):
    """When, about what and for what reason: the events with these reasons."""
    return [(one.at, one.object, one.reason) for one in run.events if not wanted or one.reason in wanted]


def first(run, reason):
    """When the first event of a reason was."""
    return next(one.at for one in run.events if one.reason == reason)
