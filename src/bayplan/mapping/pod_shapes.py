"""
What a pod's needs are computed from, as bytes: equal for all pods of a template.

Does not compute the needs.
"""

from __future__ import annotations

import msgspec

from bayplan.mapping.pod_requests import RESIZE_PENDING
from bayplan.validating.affinity import AFFINITY_ANNOTATION
from bayplan.wire.meta import Quantities
from bayplan.wire.pods import (
    Affinity,
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
    WireToleration,
    WireVolume,
)

_READS_OWN_LABELS = b"atchLabelKeys"  # matchLabelKeys or mismatchLabelKeys


def shape_of(pod: Pod) -> bytes:
    """
    Everything that the pod's needs are computed from, as bytes: equal for the pods of one template.

    Encoding takes a tenth of the time of computing the needs. Fields in which pods of a template differ are left out,
    except labels if the pod's terms read them, and whether a server has read them already.
    """
    spec, status, annotations = pod.spec, pod.status, pod.metadata.annotations
    annotation = annotations.get(AFFINITY_ANNOTATION) if annotations else None
    statuses, init_statuses = status.container_statuses, status.init_container_statuses
    is_resized = (statuses and _says_resources(statuses)) or (init_statuses and _says_resources(init_statuses))
    shape = (
        spec.containers,
        spec.init_containers,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.overhead,
        spec.resources,
        _with_images(spec.volumes) if spec.volumes else None,
        _resized(statuses) if statuses and is_resized else None,
        _resized(init_statuses) if init_statuses and is_resized else None,
        status.resources,
        status.allocated_resources,
        _resize_pending(status.conditions) if status.conditions else None,
        annotation,
    )
    encoded = _encode(shape)
    has_terms = spec.affinity or spec.topology_spread_constraints or annotation
    if not has_terms or _READS_OWN_LABELS not in encoded:
        return encoded
    meta = pod.metadata
    return _encode((*shape, meta.labels, bool(meta.uid or meta.resource_version)))


def _with_images(volumes: list[WireVolume]) -> list[WireVolume] | None:
    """Volumes of images, which are all that matters here: nearly every pod has one of its own, with its token."""
    for volume in volumes:
        if volume.image is not None:
            return [volume for volume in volumes if volume.image is not None]
    return None


def _says_resources(statuses: list[ContainerStatus]) -> bool:
    return any(one.resources is not None or one.allocated_resources is not None for one in statuses)


def _resized(statuses: list[ContainerStatus]) -> list[ContainerStatus]:
    """The statuses without how often containers restarted, which distinguishes pods of a template."""
    return [one if not one.restart_count else msgspec.structs.replace(one, restart_count=0) for one in statuses]


def _resize_pending(conditions: list[PodCondition]) -> list[PodCondition] | None:
    """The condition of a resize that waits, without its time."""
    for one in conditions:
        if one.type == RESIZE_PENDING:
            return [PodCondition(type=one.type, reason=one.reason)]
    return None


class PodShape(msgspec.Struct, array_like=True):
    """The content of a shape, in its order; the labels are there only if they are read."""

    containers: list[Container] | None
    init_containers: list[Container] | None
    node_selector: dict[str, str] | None
    affinity: Affinity | None
    tolerations: list[WireToleration] | None
    topology_spread_constraints: list[TopologySpreadConstraint] | None
    overhead: Quantities | None
    resources: ResourceRequirements | None
    volumes: list[WireVolume] | None
    statuses: list[ContainerStatus] | None
    init_statuses: list[ContainerStatus] | None
    level_resources: ResourceRequirements | None
    allocated_resources: Quantities | None
    conditions: list[PodCondition] | None
    annotation: str | None
    labels: dict[str, str] | None = None
    is_stored: bool = False  # by an API server, which has merged the labels into the terms of the affinity

    def pod(self) -> Pod:
        """A pod with these fields and no others."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name in PodSpec.__struct_fields__}
        status = PodStatus(
            container_statuses=self.statuses,
            init_container_statuses=self.init_statuses,
            resources=self.level_resources,
            allocated_resources=self.allocated_resources,
            conditions=self.conditions,
        )
        return Pod(spec=PodSpec(**fields), status=status)


def decoded(shape: bytes) -> PodShape:
    """The content of a shape."""
    return _decode(shape)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PodShape).decode
