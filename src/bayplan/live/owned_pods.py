"""Pods as they are read from a cluster, with who made each of them: only those will come back when they are evicted."""

from __future__ import annotations

from bayplan.model.workloads import WorkloadKey
from bayplan.reading import pods
from bayplan.reading.cluster import PodSink
from bayplan.wire.meta import OwnerReference
from bayplan.wire.pods import Pod

NODE = "Node"  # owns the mirrors of static pods, which its kubelet runs whatever the API server says


class OwnedPods(PodSink):
    """`controllers` has the controlling owner of each pod that has one and would be made anew elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.controllers: dict[WorkloadKey, OwnerReference] = {}

    def __call__(self, pod: Pod) -> None:
        super().__call__(pod)
        meta = pod.metadata
        owner = next((one for one in meta.owner_references or () if one.controller), None)
        if owner is not None and owner.kind != NODE:
            self.controllers[WorkloadKey(f"{meta.namespace or pods.DEFAULT_NAMESPACE}/{meta.name}")] = owner
