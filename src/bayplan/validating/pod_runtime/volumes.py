"""
The volumes of a pod: their names, their source, and the claims that are created together with the pod.

Mirrors `ValidateVolumes`, `validateVolumeSource`, `ValidatePersistentVolumeClaimSpec` and
`ValidatePersistentVolumeClaimTemplate` in pkg/apis/core/validation/validation.go. The default source is an emptyDir, as
`SetDefaults_Volume` in pkg/apis/core/v1/defaults.go sets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from bayplan.model.kubernetes_versions import V1_37
from bayplan.validating import go_text, names, resources, selectors
from bayplan.validating.fields import Cause, Field, missing_texts
from bayplan.validating.pod_runtime import file_volumes, storage_volumes

EMPTY_DIR: dict[str, object] = {"emptyDir": {}}
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
VOLUME_MODES = ("Block", "Filesystem")
CLAIM_TEMPLATE_METADATA = ("annotations", "labels")
GO_NAMES = {"uid": "uID"}  # upstream's path is its Go name with a lower-case first letter

SEVERAL_SOURCES = "may not specify more than 1 volume type"
OWN_CLAIM = "must not reference a PVC that gets created for an ephemeral volume"
NOT_ALONE = "may not use ReadWriteOncePod with other access modes"
NO_ACCESS_MODE = "at least 1 access mode is required"
NOT_POSITIVE = "must be greater than zero"
NOT_A_CLAIM = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
CANNOT_BE_SET = "cannot be set"
OTHER_NAMESPACE = "may not be specified when dataSourceRef.namespace is specified"


class VolumeOwner(msgspec.Struct, frozen=True):
    """The owner of volumes: a pod with its name, or a template, which has none."""

    is_pod: bool
    name: str = ""


def validate_volumes(volumes: Field, owner: VolumeOwner) -> tuple[list[Cause], dict[str, Field]]:
    """The causes for rejecting the volumes, and the valid volumes by name: only those can be mounted."""
    found: list[Cause] = []
    valid: dict[str, Field] = {}
    ephemeral = [volume["name"].text() for volume in volumes.items() if volume["ephemeral"].present]
    created = {f"{owner.name}-{name}" for name in ephemeral} if owner.name else set()
    for volume in volumes.items():
        name, claim = volume["name"], volume["persistentVolumeClaim"]["claimName"]
        wrong = [*_validate_source(volume, owner), *missing_texts(name)]
        wrong += name.check_text(names.dns_label, optional=True)
        if name.text() in valid:
            wrong.append(name.duplicate())
        if not wrong:
            valid[name.text()] = volume
        found += wrong
        if volume["persistentVolumeClaim"].present and claim.text() in created:
            found.append(claim.invalid(OWN_CLAIM))
    return found, valid


def volumes_by_name(volumes: Field) -> dict[str, Field]:
    """All volumes, valid or not; the last one of a name counts, and one without a source is an emptyDir."""
    by_name: dict[str, Field] = {}
    for volume in volumes.items():
        has_source = any(volume[key].present for key in _SOURCES)
        by_name[volume["name"].text()] = volume if has_source else Field(volume.path, EMPTY_DIR)
    return by_name


def _validate_source(volume: Field, owner: VolumeOwner) -> list[Cause]:
    """The first source counts; upstream misspells the path of some if they are one too many."""
    written = [key for key in _SOURCES if volume[key].present]
    if not written:
        return []
    first, name = written[0], volume["name"]
    found = _SOURCES[first](volume.at(first, volume[_VALIDATED_AS.get(first, first)].path))
    found += [volume[_REJECTED_AS.get(key, key)].forbidden(SEVERAL_SOURCES) for key in written[1:]]
    if first == "ephemeral" and owner.name and name.text():
        claim = f"{owner.name}-{name.text()}"
        found += [name.invalid(f"PVC name {go_text.quoted(claim)}: {detail}") for detail in names.dns_subdomain(claim)]
    if first == "image" and (owner.is_pod or volume.version >= V1_37):
        found += missing_texts(volume["image"]["reference"])
    if volume["iscsi"].present:
        found += storage_volumes.validate_iscsi_initiator(volume)
    return found


def validate_ephemeral(source: Field) -> list[Cause]:
    """The causes for rejecting a volume whose claim is created and deleted together with the pod."""
    template, metadata = source["volumeClaimTemplate"], source["volumeClaimTemplate"]["metadata"]
    if not template.present:
        return [template.required()]
    others = [name for name in metadata.names() if name not in CLAIM_TEMPLATE_METADATA and metadata[name].value]
    return [
        *names.validate_annotations(metadata["annotations"]),
        *names.validate_labels(metadata["labels"]),
        *(metadata[GO_NAMES.get(name, name)].forbidden(CANNOT_BE_SET) for name in others),
        *validate_claim_spec(template["spec"]),
    ]


def validate_claim_spec(spec: Field) -> list[Cause]:
    """The causes for rejecting the spec of a PersistentVolumeClaim."""
    old, new = spec["dataSource"], spec["dataSourceRef"]
    found = [
        *_validate_access_modes(spec["accessModes"]),
        *selectors.validate_selector(spec["selector"]),
        *_validate_storage(spec["resources"]),
        *spec["storageClassName"].check_text(names.dns_subdomain, optional=True),
        *spec["volumeMode"].check_enum(VOLUME_MODES, empty_is_default=False),
        *_validate_data_source(old),
        *_validate_data_source(new),
    ]
    # Both fields must be the same; upstream prints an empty structure for them.
    if old.present and new.present:
        if new["namespace"].text():
            found.append(spec.invalid(OTHER_NAMESPACE, "{}"))
        elif any(old[name].text() != new[name].text() for name in ("apiGroup", "kind", "name")):
            found.append(spec.invalid("must match dataSourceRef", "{}"))
    return found + spec["volumeAttributesClassName"].check_text(names.dns_subdomain, optional=True)


def _validate_access_modes(modes: Field) -> list[Cause]:
    written = modes.texts()
    if not written:
        return [modes.required(NO_ACCESS_MODE)]
    unknown = [mode for mode in written if mode not in ACCESS_MODES]
    found = [modes.unsupported(ACCESS_MODES, go_text.as_json(mode)) for mode in unknown]
    known = {mode for mode in written if mode in ACCESS_MODES}
    if READ_WRITE_ONCE_POD in known and len(known) > 1:
        found.append(modes.forbidden(NOT_ALONE))
    return found


def _validate_storage(requirements: Field) -> list[Cause]:
    requests = requirements["requests"]
    amount = requests.at("storage", requirements.entry("storage").path)
    if not isinstance(requests.value, Mapping) or "storage" not in requests.names():
        return [amount.required()]
    unparsable = amount.present and not resources.is_quantity(amount.value)
    if unparsable or go_text.rounded_quantity(amount.value) > 0:
        return []
    return [amount.invalid(NOT_POSITIVE, go_text.quoted(go_text.quantity_text(amount.value)))]


def _validate_data_source(source: Field) -> list[Cause]:
    """The source that the volume is filled from: another claim, unless the kind is of another group."""
    if not source.present:
        return []
    group, kind = source["apiGroup"], source["kind"]
    found = missing_texts(source["name"], kind)
    if not group.text() and kind.text() != "PersistentVolumeClaim":
        found.append(source.invalid(NOT_A_CLAIM, go_text.quoted(kind.text())))
    found += group.check_text(names.dns_subdomain, optional=True)
    return found + source["namespace"].check_text(names.dns_label, optional=True)


_VALIDATED_AS = {"gcePersistentDisk": "persistentDisk"}
_REJECTED_AS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}

# In upstream's order: the first of several sources is the one that counts.
_SOURCES: dict[str, Callable[[Field], list[Cause]]] = {
    "emptyDir": file_volumes.validate_empty_dir,
    "hostPath": file_volumes.validate_host_path,
    "gitRepo": file_volumes.validate_git_repo,
    "gcePersistentDisk": storage_volumes.validate_gce_disk,
    "awsElasticBlockStore": storage_volumes.validate_aws_disk,
    "secret": file_volumes.validate_secret,
    "nfs": file_volumes.validate_nfs,
    "iscsi": storage_volumes.validate_iscsi,
    "glusterfs": storage_volumes.requiring("endpoints", "path"),
    "flocker": storage_volumes.validate_flocker,
    "persistentVolumeClaim": storage_volumes.requiring("claimName"),
    "rbd": storage_volumes.validate_rbd,
    "cinder": storage_volumes.validate_cinder,
    "cephfs": storage_volumes.validate_ceph,
    "quobyte": storage_volumes.validate_quobyte,
    "downwardAPI": file_volumes.validate_downward_api,
    "fc": storage_volumes.validate_fibre_channel,
    "flexVolume": storage_volumes.validate_flex,
    "configMap": file_volumes.validate_config_map,
    "azureFile": storage_volumes.requiring("secretName", "shareName"),
    "vsphereVolume": storage_volumes.requiring("volumePath"),
    "photonPersistentDisk": storage_volumes.requiring("pdID"),
    "portworxVolume": storage_volumes.requiring("volumeID"),
    "azureDisk": storage_volumes.validate_azure_disk,
    "storageos": storage_volumes.validate_storage_os,
    "projected": file_volumes.validate_projected,
    "scaleIO": storage_volumes.requiring("gateway", "system", "volumeName"),
    "csi": file_volumes.validate_csi,
    "ephemeral": validate_ephemeral,
    "image": file_volumes.validate_image,
}
