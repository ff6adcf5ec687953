"""Pods that wait, and pods that run."""

from agreeing import drawn_nodes, drawn_terms
from agreeing.drawing import NODE_LABELS, POD_LABELS, ZONE, ZONES, thing
from reference.strategies import IMAGES, labels, match_labels

PORTS = {"c": (8080, 8080, 8086), "d": (8081, 8087), "e": (8082,), "i0": (8083,), "i1": (8084,), "i2": (8085,)}
AGES = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-02T00:00:00Z", "2026-01-03T12:00:00Z")


def pending(theme, name, claims=()):
    """A pod that waits for a node. `claims` are the names of claims that it may use."""
    own = labels(theme, POD_LABELS, 3)
    pod = thing("Pod", name, namespace=theme.lives_in(), labels=own, spec=_spec(theme, own, claims))
    pod["metadata"]["creationTimestamp"] = theme.pick(AGES)
    pod["status"] = {"phase": "Pending"}
    return pod


def _spec(theme, own, claims):
    spec = {"schedulerName": "default-scheduler", **_containers(theme)}
    if "ports" in theme.features and theme.rarely(6):
        spec["hostNetwork"] = True
    terms = drawn_terms.affinity(theme, own)
    if terms:
        spec["affinity"] = terms
    if theme.has("node-selector"):
        spec["nodeSelector"] = match_labels(theme, {"disk": NODE_LABELS["disk"], ZONE: ZONES})
    if theme.has("tolerations", "taints", "cordons"):
        spec["tolerations"] = [drawn_nodes.toleration(theme) for _ in range(theme.number(1, 2))]
    if theme.has("spread"):
        spec["topologySpreadConstraints"] = drawn_terms.spread_constraints(theme, own)
    volumes = _volumes(theme, claims)
    if volumes:
        spec["volumes"] = volumes
    if theme.rarely(3):
        spec["priority"] = theme.pick((0, 5, 10, 1000, -10))
    if theme.rarely(20):
        spec["preemptionPolicy"] = theme.pick(("Never", "PreemptLowerPriority"))
    return spec


# Containers and what they request


def _containers(theme):
    spec = {"containers": [container(theme, name) for name in ("c", "d", "e")[: theme.pick((1, 1, 1, 2, 3))]]}
    if theme.has("init", "sidecars"):
        spec["initContainers"] = [_init_container(theme, f"i{i}") for i in range(theme.number(1, 3))]
    if theme.has("overhead"):
        spec["overhead"] = theme.pick(({"cpu": "250m", "memory": "64Mi"}, {"cpu": "1"}, {"memory": "100M"}))
    if theme.has("pod-level"):
        _set_pod_level(theme, spec)
    return spec


def container(theme, name):
    drawn = {"name": name, "image": theme.pick((*IMAGES, "repo/job", "repo/db"))}
    if theme.has("requests", "extended", "hugepages") or theme.rarely(3):
        drawn["resources"] = _resources(theme)
    if theme.has("ports"):
        drawn["ports"] = [_port(theme, theme.pick(PORTS[name]))]
    return drawn


def _init_container(theme, name):
    drawn = container(theme, name)
    return {**drawn, "restartPolicy": "Always"} if theme.has("sidecars") or theme.rarely(3) else drawn


def _port(theme, port):
    drawn = {"containerPort": port, "protocol": theme.pick(("TCP", "TCP", "UDP", "SCTP"))}
    if theme.often(6):
        drawn["hostPort"] = port
        if theme.rarely(2):
            drawn["hostIP"] = theme.pick(drawn_nodes.ADDRESSES)
    return drawn


def _resources(theme):
    """Requests, and for what cannot be shared the limits that an API server wants beside them."""
    asked, limits = amounts(theme), {}
    if theme.has("extended"):
        name = theme.pick(("example.com/gpu", "example.com/fpga"))
        asked[name] = limits[name] = theme.pick(("1", "2"))
    if theme.has("hugepages"):
        name = theme.pick(("hugepages-2Mi", "hugepages-1Gi"))
        asked[name] = limits[name] = {"hugepages-2Mi": "64Mi", "hugepages-1Gi": "1Gi"}[name]
        asked.setdefault("cpu", "100m")
    return {"requests": asked, "limits": limits} if limits else {"requests": asked}


def amounts(theme):
    asked = {}
    if theme.often(4):
        asked["cpu"] = theme.pick(("100m", "0", "500m", "1", "1500m", "0.0005"))
    if theme.often(4):
        asked["memory"] = theme.pick(("128Mi", "0", "1Gi", "3000M", "1500Mi"))
    if theme.rarely(6):
        asked["ephemeral-storage"] = theme.pick(("4Gi", "1Gi"))
    return asked


def _set_pod_level(theme, spec):
    """Requests of the whole pod, at least as much as those of its containers together."""
    requests = {"cpu": theme.pick(("10", "12")), "memory": theme.pick(("20Gi", "24Gi"))}
    if theme.often(2):  # of the containers only the pages are left
        requests = {"cpu": theme.pick(("500m", "1", "3")), "memory": theme.pick(("1Gi", "3Gi"))}
        for one in (*spec["containers"], *spec.get("initContainers", ())):
            one.pop("resources", None)
    if theme.has("hugepages"):
        requests["hugepages-2Mi"] = theme.pick(("512Mi", "1Gi"))
    names = theme.some(sorted(requests), 1, 3)
    is_limited = theme.rarely(2) or "hugepages-2Mi" in names
    if is_limited or not {"cpu", "memory"} & set(names):
        names = sorted(requests)  # what is left out, API servers take from the containers
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        for listed in one.get("resources", {}).values():
            for name in [name for name in listed if name.startswith("hugepages")]:
                del listed[name]
    spec["resources"] = {"requests": {name: requests[name] for name in names}}
    if is_limited:
        spec["resources"]["limits"] = {
            name: {"cpu": "14", "memory": "28Gi"}.get(name, requests[name]) for name in names
        }


# Volumes


def _volumes(theme, claims):
    drawn = []
    if claims and theme.has("claims"):
        drawn += [{"persistentVolumeClaim": {"claimName": one}} for one in theme.some(claims, 1, 3)]
    if theme.has("ephemeral"):
        drawn.append(
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                            "storageClassName": "late",
                        }
                    }
                }
            }
        )
    if theme.has("disks"):
        drawn += [disk(theme) for _ in range(theme.number(1, 2))]
    if theme.has("image-volumes"):
        drawn.append({"image": {"reference": theme.pick((*IMAGES, "repo/job"))}})
    if theme.rarely(12):
        drawn.append(
            theme.pick(({"emptyDir": {}}, {"configMap": {"name": "settings"}}, {"hostPath": {"path": "/var"}}))
        )
    return [{"name": f"v{number}", **one} for number, one in enumerate(drawn)]


def disk(theme):
    """A disk that the pod names itself."""
    name, read_only = theme.pick(("a", "b")), {"readOnly": True} if theme.rarely(2) else {}
    monitors = theme.some(("10.1.0.1", "10.1.0.2", "10.1.0.3"), 1, 2)
    return theme.pick((
        {"gcePersistentDisk": {"pdName": f"disk-{name}", **read_only}},
        {"awsElasticBlockStore": {"volumeID": f"vol-{name}", **read_only}},
        {"iscsi": {"targetPortal": "10.2.0.1", "iqn": f"iqn.2026-01.com.example:{name}", "lun": 0, **read_only}},
        {"rbd": {"monitors": monitors, "image": name, "pool": theme.pick(("rbd", "fast")), **read_only}},
        {"azureDisk": {"diskName": name, "diskURI": f"/subscriptions/s/disks/{name}", "kind": "Managed"}},
        {"cinder": {"volumeID": f"c-{name}"}},
        {"csi": {"driver": "inline.example.com"}},
        {"nfs": {"server": "10.3.0.1", "path": "/"}},
    ))  # fmt: skip


# Pods that run


def placed(theme, name, node_names, claims=()):
    """A pod on a node that was there when it was placed; it may have ended, be terminating or be resized."""
    pod = pending(theme, name, claims if theme.rarely(2) else ())
    pod["spec"]["nodeName"] = "gone" if theme.rarely(30) else theme.pick(node_names)
    status = pod["status"]
    status["phase"] = theme.pick(("Pending", "Succeeded", "Failed")) if theme.rarely(8) else "Running"
    if theme.often(4):
        status["startTime"] = theme.pick(AGES)
    if theme.has("terminating"):
        pod["metadata"] |= {"deletionTimestamp": "2026-01-04T00:00:00Z", "deletionGracePeriodSeconds": 30}
    if theme.has("resize"):
        _resize(theme, pod)
    return pod


def _resize(theme, pod):
    """What a kubelet reports of a pod whose resources are changed in place."""
    spec, status = pod["spec"], pod["status"]
    for listed, reported in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        found = [_container_status(theme, one["name"]) for one in spec.get(listed, ()) if theme.often(4)]
        if found:
            status[reported] = found
    if "resources" in spec and theme.often(3):
        status["resources"] = {"requests": _level(theme)}
        if theme.often(3):
            status["allocatedResources"] = _level(theme)
    if theme.rarely(2):
        kind = theme.pick(("PodResizePending", "PodResizePending", "PodResizeInProgress"))
        reason = theme.pick(("Infeasible", "Deferred")) if kind == "PodResizePending" else ""
        status["conditions"] = [{"type": kind, "status": "True", "reason": reason}]


def _level(theme):
    return {"cpu": theme.pick(("1", "8", "11")), "memory": theme.pick(("1Gi", "16Gi", "21Gi"))}


def _container_status(theme, name):
    drawn = {"name": name, "image": "repo/web:v1", "imageID": "", "ready": True, "restartCount": 0}
    if theme.often(3):
        drawn["resources"] = {"requests": amounts(theme)} if theme.often(6) else {}
    if theme.often(3):
        drawn["allocatedResources"] = amounts(theme)
    return drawn


def nominate(theme, pod, node_names):
    """Promise a node to a pod that waits."""
    pod["status"]["nominatedNodeName"] = theme.pick(node_names)
    return pod
