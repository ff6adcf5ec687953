"""Reviews as an API server sends them, the state of a cluster to review them by, and a store for certificates."""

import json

import msgspec

from bayplan.enforcing.quota import NO_LIMITS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.model.semantics import UPSTREAM
from bayplan.webhook import reviews
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

HOSTNAME = "kubernetes.io/hostname"
RUNNING = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
RESOURCES = {
    "Pod": ("", "v1", "pods"),
    "Deployment": ("apps", "v1", "deployments"),
    "CronJob": ("batch", "v1", "cronjobs"),
    "PropagationPolicy": ("policy.karmada.io", "v1alpha1", "propagationpolicies"),
    "Binding": ("", "v1", "pods"),
    "ConfigMap": ("", "v1", "configmaps"),
}


def review(obj, *, old=None, operation="CREATE", user="alice", groups=("dev",), **more):
    """The AdmissionReview for an object, as a dict."""
    group, version, resource = RESOURCES[obj["kind"]]
    request = {
        "uid": "u-1",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": "UPDATE" if old is not None else operation,
        "name": obj["metadata"].get("name", ""),
        "namespace": obj["metadata"].get("namespace", ""),
        "userInfo": {"username": user, "uid": "42", "groups": list(groups), "extra": {"a": ["b"]}},
        "object": obj,
        "oldObject": old,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        "dryRun": False,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def request(obj, **how):
    return reviews.read_request(json.dumps(review(obj, **how)).encode())


def anti(key=HOSTNAME, when=SCHEDULING, app=None, **more):
    """A required anti-affinity term; against all pods unless `app` selects some."""
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": key, **more}
    if app is not None:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}
    return {"podAntiAffinity": {when: [term]}}


def pod(name="p", *, affinity=None, annotation=None, namespace="shop", node="", labels=None, **metadata):
    annotations = {} if annotation is None else {"annotations": {"bayplan.io/affinity": annotation}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    if affinity is not None:
        spec["affinity"] = affinity
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": namespace, "labels": labels or {}, **annotations, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def deployment(affinity=None, **metadata):
    template = pod(affinity=affinity)
    spec = {"replicas": 8, "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]}}
    meta = {"name": "web", "namespace": "shop", **metadata}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def policy(placement, **metadata):
    spec = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": placement}
    meta = {"name": "web", "namespace": "shop", **metadata}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": meta, "spec": spec}


def binding(name, node, namespace="shop"):
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": node}}


def workload(obj):
    return pods.workload_of(msgspec.convert(obj, Pod))


class MemoryStore:
    """A certificate store for a single replica, lost when it ends."""

    def __init__(self):
        self._chain = None

    async def load(self):
        return self._chain

    async def save(self, chain, instead_of):
        if self._chain != instead_of:
            return False
        self._chain = chain
        return True


class View:
    """Two nodes of 4 cpu each, the pods put there, and pending pods."""

    def __init__(self, *, limits=NO_LIMITS, semantics=UPSTREAM, synced=True):
        self.synced = synced
        self.index = PlacementIndex(semantics)
        self.limits = limits
        self.pending_pods = []
        for name in ("n1", "n2"):
            written = {"metadata": {"name": name, "labels": {HOSTNAME: name}}, "status": {"allocatable": {"cpu": "4"}}}
            self.index.add_target(targets.target_of_node(msgspec.convert(written, Node)))

    def put(self, obj):
        """Add a pod as the cluster reports it."""
        found = workload(obj)
        if obj["spec"].get("nodeName"):
            self.index.add(found, obj["spec"]["nodeName"])
        else:
            self.pending_pods.append(found)

    async def pending(self, namespace):
        return [found for found in self.pending_pods if found.namespace == namespace]

    async def pod(self, namespace, name):
        key = f"{namespace}/{name}"
        placed = self.index.records.get(key)
        return placed.workload if placed else next((p for p in self.pending_pods if p.key == key), None)
