"""Which pods the input holds and whose they are, in as few bytes as controllers need to know who is missing."""

from __future__ import annotations

import msgspec

from bayplan.wire import meta, pods

_NAME_FIELD = "metadata.name"
SUCCEEDED = "Succeeded"
FINISHED = (SUCCEEDED, "Failed")
INDEX_KEY = "batch.kubernetes.io/job-completion-index"


class Member(msgspec.Struct, frozen=True, gc=False):
    """One pod. `node` is where a DaemonSet's pod runs or must run, `index` which part of a Job a pod does."""

    name: str
    owner_uid: str = ""
    active: bool = True
    succeeded: bool = False
    node: str = ""
    index: str = ""


class Census(msgspec.Struct):
    """Pods by their controller (namespace, kind, name), those without one by namespace with their labels."""

    owned: dict[tuple[str, str, str], list[Member]] = msgspec.field(default_factory=dict)
    orphans: dict[str, list[tuple[dict[str, str], Member]]] = msgspec.field(default_factory=dict)
    names: set[str] = msgspec.field(default_factory=set)

    def add(self, pod: pods.Pod) -> None:
        """Note one pod, whose namespace is settled."""
        namespace = pod.metadata.namespace
        self.names.add(f"{namespace}/{pod.metadata.name}")
        owner = controller_of(pod.metadata)
        member = _member(pod, owner)
        if owner is None:
            self.orphans.setdefault(namespace, []).append((pod.metadata.labels or {}, member))
        else:
            self.owned.setdefault((namespace, owner.kind, owner.name), []).append(member)


def controller_of(metadata: meta.ObjectMeta) -> meta.OwnerReference | None:
    """The owner that manages the object, as `metav1.GetControllerOf`."""
    for owner in metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


def _member(pod: pods.Pod, owner: meta.OwnerReference | None) -> Member:
    phase = pod.status.phase
    return Member(
        name=pod.metadata.name,
        owner_uid=owner.uid if owner else "",
        active=phase not in FINISHED and pod.metadata.deletion_timestamp is None,
        succeeded=phase == SUCCEEDED,
        node=_bound_for(pod) if owner is None or owner.kind == "DaemonSet" else "",
        index=_index(pod.metadata),
    )


def _bound_for(pod: pods.Pod) -> str:
    """The node a daemon's pod is on, or the only one it may go to."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        for field in term.match_fields or ():
            if field.key == _NAME_FIELD and field.values:
                return pod.spec.node_name or field.values[0]
    return pod.spec.node_name


def _index(metadata: meta.ObjectMeta) -> str:
    for marks in (metadata.labels, metadata.annotations):
        if marks and INDEX_KEY in marks:
            return marks[INDEX_KEY]
    return ""
