"""
Volumes of the storage systems that have a field of their own in the API, most of them older than CSI drivers.

Mirrors the `validate…VolumeSource` functions in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bayplan.validating import go_text, names
from bayplan.validating.fields import Cause, Field, missing_texts

AZURE_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
AZURE_DISK_KINDS = ("Dedicated", "Managed", "Shared")
AZURE_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)  # fmt: skip
AZURE_BLOB = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)
PARTITIONS = "must be between 1 and 255, inclusive"  # 0 is valid although the text does not say so
RESERVED_NAMESPACES = "kubernetes.io and k8s.io namespaces are reserved"
ISCSI_NAME = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
ISCSI_FORM = "must be valid format"
ISCSI_PREFIX = "must be valid format starting with iqn, eui, or naa"
HOST_AND_PORT = "must be a host:port pair or multiple pairs separated by commas"
TENANT = "must be a UUID and may not exceed a length of 64 characters"
_ISCSI_NAMES = {
    "iqn": r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+\Z",
    "eui": r"eui.[A-Za-z0-9]{16}\Z",
    "naa": r"naa.[A-Za-z0-9]{32}\Z",
}
_HOST_PORT = r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*"


def requiring(*known: str) -> Callable[[Field], list[Cause]]:
    """The rule for a source that only requires some texts."""
    return lambda source: missing_texts(*(source[name] for name in known))


def validate_gce_disk(source: Field) -> list[Cause]:
    """A GCE persistent disk."""
    return missing_texts(source["pdName"]) + _validate_partition(source["partition"])


def validate_aws_disk(source: Field) -> list[Cause]:
    """An AWS EBS volume."""
    return missing_texts(source["volumeID"]) + _validate_partition(source["partition"])


def validate_azure_disk(source: Field) -> list[Cause]:
    """An Azure disk; the form of its URI depends on whether Azure manages it."""
    kind, uri = source["kind"].text() if source["kind"].present else "Shared", source["diskURI"]
    found = missing_texts(source["diskName"], uri)
    found += source["cachingMode"].check_enum(AZURE_CACHING_MODES, empty_is_default=False)
    found += source["kind"].check_enum(AZURE_DISK_KINDS, empty_is_default=False)
    beginning, form = ("/subscriptions/", AZURE_MANAGED_DISK) if kind == "Managed" else ("https://", AZURE_BLOB)
    if not uri.text().startswith(beginning):
        found.append(uri.unsupported(form, go_text.quoted(uri.text())))
    return found


def validate_iscsi(source: Field) -> list[Cause]:
    """An iSCSI disk."""
    iqn, initiator = source["iqn"], source.at("initiatorName", source["initiatorname"].path)
    found = missing_texts(source["targetPortal"], iqn)
    if iqn.text():
        found += _validate_iscsi_name(iqn)
    found += source["lun"].check_range(0, 255)
    chap = source["chapAuthDiscovery"].is_true() or source["chapAuthSession"].is_true()
    if chap and not source["secretRef"].present:
        found.append(source["secretRef"].required())
    return found + (_validate_iscsi_name(initiator) if initiator.present else [])


def validate_iscsi_initiator(volume: Field) -> list[Cause]:
    """The length of the initiator's name, which consists of the volume's name and the portal."""
    source, name = volume["iscsi"], volume["name"]
    length = go_text.n_bytes(f"{name.text()}:{source['targetPortal'].text()}")
    if not source["initiatorName"].present or length <= 64:
        return []
    return [name.invalid(ISCSI_NAME)]


def validate_flocker(source: Field) -> list[Cause]:
    """A Flocker dataset."""
    name, uuid = source["datasetName"], source["datasetUUID"]
    found: list[Cause] = []
    if not name.text() and not uuid.text():
        found.append(source.required("one of datasetName and datasetUUID is required"))
    if name.text() and uuid.text():
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        found.append(source.invalid(detail, '"resource"'))
    if "/" in name.text():
        found.append(name.invalid("must not contain '/'"))
    return found


def validate_rbd(source: Field) -> list[Cause]:
    """A Ceph RBD image."""
    return _validate_monitors(source) + missing_texts(source["image"])


def validate_ceph(source: Field) -> list[Cause]:
    """A Ceph file system."""
    return _validate_monitors(source)


def validate_cinder(source: Field) -> list[Cause]:
    """An OpenStack Cinder volume."""
    return missing_texts(source["volumeID"]) + _validate_secret_name(source["secretRef"])


def validate_quobyte(source: Field) -> list[Cause]:
    """A Quobyte volume."""
    registry, tenant = source["registry"], source["tenant"]
    if not registry.text():
        found = [registry.required(HOST_AND_PORT)]
    elif go_text.n_bytes(tenant.text()) > 64:
        found = [tenant.required(TENANT)]
    else:
        pairs = registry.text().split(",")
        wrong = registry.invalid(HOST_AND_PORT)
        found = [wrong for pair in pairs if not re.fullmatch(_HOST_PORT, pair)]
    return found + missing_texts(source["volume"])


def validate_fibre_channel(source: Field) -> list[Cause]:
    """A Fibre Channel disk."""
    worldwide, lun = source["targetWWNs"], source["lun"]
    found: list[Cause] = []
    if not worldwide.items():
        if not source["wwids"].items():
            found.append(worldwide.required("must specify either targetWWNs or wwids, but not both"))
        return found
    if source["wwids"].items():
        detail = "targetWWNs and wwids can not be specified simultaneously"
        found.append(worldwide.invalid(detail, go_text.as_json(worldwide.texts())))
    if not lun.present:
        return [*found, lun.required("lun is required if targetWWNs is specified")]
    return found + lun.check_range(0, 255)


def validate_flex(source: Field) -> list[Cause]:
    """A FlexVolume, whose driver is a program on the node."""
    found = missing_texts(source["driver"])
    for key in source["options"].names():
        domain = f".{key.split('/', 1)[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            found.append(source["options"].entry(key).invalid(RESERVED_NAMESPACES, go_text.quoted(key)))
    return found


def validate_storage_os(source: Field) -> list[Cause]:
    """A StorageOS volume."""
    found = missing_texts(source["volumeName"])
    for field in (source["volumeName"], source["volumeNamespace"]):
        if field.text():
            found += field.check_text(names.dns_label)
    return found + _validate_secret_name(source["secretRef"])


def _validate_partition(field: Field) -> list[Cause]:
    return [] if 0 <= field.number() <= 255 else [field.invalid_number(PARTITIONS)]


def _validate_monitors(source: Field) -> list[Cause]:
    return [] if source["monitors"].items() else [source["monitors"].required()]


def _validate_secret_name(reference: Field) -> list[Cause]:
    return missing_texts(reference["name"]) if reference.present else []


def _validate_iscsi_name(field: Field) -> list[Cause]:
    text = field.text()
    form = _ISCSI_NAMES.get(text[:3])
    if form is not None and re.search(form, text):
        return []
    return [field.invalid(ISCSI_FORM if form else ISCSI_PREFIX, go_text.quoted(text))]
