"""The claims of a pod's ephemeral volumes, as pkg/controller/volume/ephemeral creates them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec

from bayplan.wire.meta import ObjectMeta, OwnerReference
from bayplan.wire.pods import Pod
from bayplan.wire.storage import PersistentVolumeClaim


def claims_of(pod: Pod) -> Iterator[PersistentVolumeClaim]:
    """A claim for each volume with a template, named after the pod and the volume, and owned by the pod."""
    for volume in pod.spec.volumes or ():
        written = (volume.ephemeral or {}).get("volumeClaimTemplate")
        if not written:
            continue
        try:
            template = msgspec.convert(written, PersistentVolumeClaim)
        except msgspec.ValidationError:
            continue  # no server admits it: without its claim, the pod is not placed
        meta = pod.metadata
        owner = OwnerReference(
            api_version="v1",
            kind="Pod",
            name=meta.name,
            uid=meta.uid or str(uuid.uuid5(uuid.NAMESPACE_OID, f"Pod/{meta.namespace}/{meta.name}")),
            controller=True,
        )
        metadata = ObjectMeta(
            name=f"{meta.name}-{volume.name}",
            namespace=meta.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=[owner],
        )
        yield PersistentVolumeClaim(
            api_version="v1", kind="PersistentVolumeClaim", metadata=metadata, spec=template.spec
        )
