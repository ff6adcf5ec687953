"""
The volumes of a pod: their names, and that each comes from one source.

Mirrors `ValidateVolumes` and `validateVolumeSource` in pkg/apis/core/validation/validation.go. A volume without a
source is an empty folder, as `SetDefaults_Volume` in pkg/apis/core/v1/defaults.go makes it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import claims, file_volumes, storage_volumes

SEVERAL = "may not specify more than 1 volume type"
OWN_CLAIM = "must not reference a PVC that gets created for an ephemeral volume"
DEFAULT = "emptyDir"
EMPTY: dict[str, object] = {DEFAULT: {}}

Check = Callable[[Field], list[Cause]]


class Owner(msgspec.Struct, frozen=True):
    """Whose volumes these are: a pod, by its name, or a template, which has none."""

    is_pod: bool
    name: str = ""


def causes_of(volumes: Field, owner: Owner) -> tuple[list[Cause], dict[str, Field]]:
    """What is wrong with the volumes, and those that are sound by name: only they can be mounted."""
    found: list[Cause] = []
    sound: dict[str, Field] = {}
    made = _claims_to_be_made(volumes, owner)
    for volume in volumes.items():
        name = volume["name"]
        wrong = [*_source(volume, owner), *causes.needed(name)]
        if name.text():
            wrong += names.invalid(name.path, name.text(), names.dns_label(name.text()))
        if name.text() in sound:
            wrong.append(causes.duplicate(name.path, go_text.quoted(name.text())))
        if not wrong:
            sound[name.text()] = volume
        found += wrong
        claim = volume.under("persistentVolumeClaim", "claimName")
        if volume["persistentVolumeClaim"].present and claim.text() in made:
            found.append(causes.invalid(claim.path, go_text.quoted(claim.text()), OWN_CLAIM))
    return found, sound


def by_name(volumes: Field) -> dict[str, Field]:
    """All volumes, sound or not; the last of a name counts, and one without a source is an empty folder."""
    return {volume["name"].text(): _defaulted(volume) for volume in volumes.items()}


def _defaulted(volume: Field) -> Field:
    return volume if any(volume[key].present for key in _SOURCES) else Field(volume.path, EMPTY)


def _claims_to_be_made(volumes: Field, owner: Owner) -> set[str]:
    if not owner.name:
        return set()
    return {f"{owner.name}-{volume['name'].text()}" for volume in volumes.items() if volume["ephemeral"].present}


def _source(volume: Field, owner: Owner) -> list[Cause]:
    """The first source counts; upstream misspells the path of some when they are one too many."""
    written = [key for key in _SOURCES if volume[key].present]
    if not written:
        return []
    found = _SOURCES[written[0]](volume.at(written[0], volume[_CHECKED_AS.get(written[0], written[0])].path))
    found += [causes.forbidden(volume[_REFUSED_AS.get(key, key)].path, SEVERAL) for key in written[1:]]
    if written[0] == "ephemeral":
        found += _name_of_claim(volume["name"], owner)
    if written[0] == "image" and owner.is_pod:
        found += causes.needed(volume.under("image", "reference"))
    if volume["iscsi"].present:
        found += storage_volumes.iscsi_name(volume)
    return found


def _name_of_claim(name: Field, owner: Owner) -> list[Cause]:
    if not owner.name or not name.text():
        return []
    made = f"{owner.name}-{name.text()}"
    return [
        causes.invalid(name.path, go_text.quoted(name.text()), f"PVC name {go_text.quoted(made)}: {detail}")
        for detail in names.dns_subdomain(made)
    ]


_CHECKED_AS = {"gcePersistentDisk": "persistentDisk"}
_REFUSED_AS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}

# In upstream's order, which decides whose fault it is if there are several.
_SOURCES: dict[str, Check] = {
    "emptyDir": file_volumes.empty_dir,
    "hostPath": file_volumes.host_path,
    "gitRepo": file_volumes.git_repo,
    "gcePersistentDisk": storage_volumes.gce_disk,
    "awsElasticBlockStore": storage_volumes.aws_disk,
    "secret": file_volumes.secret,
    "nfs": file_volumes.nfs,
    "iscsi": storage_volumes.iscsi,
    "glusterfs": storage_volumes.needing("endpoints", "path"),
    "flocker": storage_volumes.flocker,
    "persistentVolumeClaim": storage_volumes.needing("claimName"),
    "rbd": storage_volumes.rbd,
    "cinder": storage_volumes.cinder,
    "cephfs": storage_volumes.ceph,
    "quobyte": storage_volumes.quobyte,
    "downwardAPI": file_volumes.downward_api,
    "fc": storage_volumes.fibre_channel,
    "flexVolume": storage_volumes.flex,
    "configMap": file_volumes.config_map,
    "azureFile": storage_volumes.needing("secretName", "shareName"),
    "vsphereVolume": storage_volumes.needing("volumePath"),
    "photonPersistentDisk": storage_volumes.needing("pdID"),
    "portworxVolume": storage_volumes.needing("volumeID"),
    "azureDisk": storage_volumes.azure_disk,
    "storageos": storage_volumes.storage_os,
    "projected": file_volumes.projected,
    "scaleIO": storage_volumes.needing("gateway", "system", "volumeName"),
    "csi": file_volumes.csi,
    "ephemeral": claims.ephemeral,
    "image": file_volumes.image,
}
