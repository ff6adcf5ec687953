"""Which kinds of objects are read, as what, and which are namespaced. Knows nothing of files or fields."""

from __future__ import annotations

import difflib

import msgspec

from bayplan.wire import controllers, meta, nodes, pods, storage

BUILT_IN = {
    "Pod": ("v1", pods.Pod),
    "Node": ("v1", nodes.Node),
    "Namespace": ("v1", nodes.Namespace),
    "Service": ("v1", controllers.Service),
    "ReplicationController": ("v1", controllers.ReplicationController),
    "PersistentVolume": ("v1", storage.PersistentVolume),
    "PersistentVolumeClaim": ("v1", storage.PersistentVolumeClaim),
    "Deployment": ("apps/v1", controllers.Controller),
    "ReplicaSet": ("apps/v1", controllers.Controller),
    "StatefulSet": ("apps/v1", controllers.Controller),
    "DaemonSet": ("apps/v1", controllers.Controller),
    "Job": ("batch/v1", controllers.Controller),
    "StorageClass": ("storage.k8s.io/v1", storage.StorageClass),
    "PriorityClass": ("scheduling.k8s.io/v1", controllers.PriorityClass),
    "PodDisruptionBudget": ("policy/v1", dict),
}
CONTROLLERS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")
CLUSTER_WIDE = frozenset({"Node", "Namespace", "PersistentVolume", "StorageClass", "PriorityClass"})
# Where Kubernetes itself keeps kinds; a group with a dot of its own is somebody else's and may reuse any name.
_OWN_GROUPS = frozenset({"", "apps", "batch", "policy", "extensions", "storage.k8s.io", "scheduling.k8s.io"})

WireType = type[meta.ApiObject] | type[dict[str, object]]


class Reading(msgspec.Struct, frozen=True):
    """What to do with an object: read it as `wire_type`, refuse it for `problem`, or (neither) pass it over."""

    wire_type: WireType | None = None
    problem: str = ""
    path: str = ""


def reading(api_version: str, kind: str) -> Reading:
    """What becomes of objects of this kind."""
    if not kind or not api_version:
        missing = "kind" if not kind else "apiVersion"
        return Reading(problem="expected an object with apiVersion and kind", path=missing)
    if api_version.rpartition("/")[0] not in _OWN_GROUPS:
        return Reading()
    if kind not in BUILT_IN:
        return _unknown(kind)
    expected, wire_type = BUILT_IN[kind]
    if api_version.rpartition("/")[0] != expected.rpartition("/")[0]:
        return Reading(problem=f"expected {expected} for a {kind}, got {api_version}", path="apiVersion")
    return Reading(wire_type=wire_type)


def _unknown(kind: str) -> Reading:
    """Most kinds that we do not read are fine, but `pod` and `Deploymnet` would be missed in silence."""
    by_folded = {name.casefold(): name for name in BUILT_IN}
    near = difflib.get_close_matches(kind.casefold(), by_folded, n=1, cutoff=0.85)
    if near and kind not in _LOOKALIKES:
        return Reading(problem=f"unknown kind {kind}, did you mean {by_folded[near[0]]}?", path="kind")
    return Reading()


# Real kinds whose names come close to ones that are read.
_LOOKALIKES = frozenset({"CronJob", "PodTemplate"})
