"""
What a pod's needs are computed from, as bytes: equal for all pods of a template.

Does not compute the needs.
"""

from __future__ import annotations

import msgspec

from bayplan.validating.affinity import AFFINITY_ANNOTATION
from bayplan.wire.meta import Quantities
from bayplan.wire.pods import (
    Affinity,
    Container,
    ContainerStatus,
    Pod,
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
    except labels if the pod's terms read them.
    """
    spec, status, annotations = pod.spec, pod.status, pod.metadata.annotations
    shape = (
        spec.containers,
        spec.init_containers,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.overhead,
        spec.resources,
        # Nearly every pod has a volume of its own, with its token; only image volumes matter here.
        [volume for volume in spec.volumes if volume.image is not None] if spec.volumes else None,
        _resized(status.container_statuses),
        _resized(status.init_container_statuses),
        annotations.get(AFFINITY_ANNOTATION) if annotations else None,
    )
    encoded = _encode(shape)
    return _encode((*shape, pod.metadata.labels)) if _READS_OWN_LABELS in encoded else encoded


def _resized(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
    """What the statuses say of resources; how often a container restarted distinguishes pods of one template."""
    if not statuses or not any(status.restart_count for status in statuses):
        return statuses
    return [msgspec.structs.replace(status, restart_count=0) for status in statuses]


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
    annotation: str | None
    labels: dict[str, str] | None = None

    def pod(self) -> Pod:
        """A pod with these fields and no others."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name in PodSpec.__struct_fields__}
        status = PodStatus(container_statuses=self.statuses, init_container_statuses=self.init_statuses)
        return Pod(spec=PodSpec(**fields), status=status)


def decoded(shape: bytes) -> PodShape:
    """The content of a shape."""
    return _decode(shape)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PodShape).decode
