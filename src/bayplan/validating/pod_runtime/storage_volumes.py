"""
Volumes of storage systems that Kubernetes knows by name, most of them from before there were drivers.

Mirrors the `validate…VolumeSource` functions in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

CACHING = ("None", "ReadOnly", "ReadWrite")
DISK_KINDS = ("Dedicated", "Managed", "Shared")
MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)  # fmt: skip
BLOB = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)
PARTITIONS = "must be between 1 and 255, inclusive"  # although 0 will do
OURS = "kubernetes.io and k8s.io namespaces are reserved"
ISCSI_NAME = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
ISCSI_FORM = "must be valid format"
ISCSI_BEGINNING = "must be valid format starting with iqn, eui, or naa"
HOST_AND_PORT = "must be a host:port pair or multiple pairs separated by commas"
TENANT = "must be a UUID and may not exceed a length of 64 characters"
_QUALIFIED = {
    "iqn": r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+\Z",
    "eui": r"eui.[A-Za-z0-9]{16}\Z",
    "naa": r"naa.[A-Za-z0-9]{32}\Z",
}
_HOST_PORT = r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*"

Check = Callable[[Field], list[Cause]]


def needing(*known: str) -> Check:
    """The check of a source that only has to have some texts."""
    return lambda source: causes.needed(*(source[name] for name in known))


def gce_disk(source: Field) -> list[Cause]:
    """What is wrong with a disk of Google's cloud."""
    return causes.needed(source["pdName"]) + _partition(source["partition"])


def aws_disk(source: Field) -> list[Cause]:
    """What is wrong with a disk of Amazon's cloud."""
    return causes.needed(source["volumeID"]) + _partition(source["partition"])


def azure_disk(source: Field) -> list[Cause]:
    """What is wrong with a disk of Microsoft's cloud, whose place depends on who manages it."""
    kind, uri = source["kind"].text() if source["kind"].present else "Shared", source["diskURI"]
    found = causes.needed(source["diskName"], uri)
    found += causes.one_of(source["cachingMode"], CACHING) + causes.one_of(source["kind"], DISK_KINDS)
    beginning, form = ("/subscriptions/", MANAGED_DISK) if kind == "Managed" else ("https://", BLOB)
    if not uri.text().startswith(beginning):
        found.append(causes.unsupported(uri.path, go_text.quoted(uri.text()), form))
    return found


def iscsi(source: Field) -> list[Cause]:
    """What is wrong with a disk behind iSCSI."""
    iqn, initiator = source["iqn"], source.at("initiatorName", source["initiatorname"].path)
    found = causes.needed(source["targetPortal"], iqn)
    if iqn.text():
        found += _qualified(iqn)
    found += causes.within(source["lun"], 0, 255)
    chap = source["chapAuthDiscovery"].flag() or source["chapAuthSession"].flag()
    if chap and not source["secretRef"].present:
        found.append(causes.required(source["secretRef"].path))
    return found + (_qualified(initiator) if initiator.present else [])


def iscsi_name(volume: Field) -> list[Cause]:
    """Whether the initiator, which is called after the volume and the portal, can be."""
    source, name = volume["iscsi"], volume["name"]
    length = go_text.n_bytes(f"{name.text()}:{source['targetPortal'].text()}")
    if not source["initiatorName"].present or length <= 64:
        return []
    return [causes.invalid(name.path, go_text.quoted(name.text()), ISCSI_NAME)]


def flocker(source: Field) -> list[Cause]:
    """What is wrong with a dataset of Flocker."""
    name, uuid = source["datasetName"], source["datasetUUID"]
    found: list[Cause] = []
    if not name.text() and not uuid.text():
        found.append(causes.required(source.path, "one of datasetName and datasetUUID is required"))
    if name.text() and uuid.text():
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        found.append(causes.invalid(source.path, '"resource"', detail))
    if "/" in name.text():
        found.append(causes.invalid(name.path, go_text.quoted(name.text()), "must not contain '/'"))
    return found


def rbd(source: Field) -> list[Cause]:
    """What is wrong with an image of Ceph."""
    return _monitors(source) + causes.needed(source["image"])


def ceph(source: Field) -> list[Cause]:
    """What is wrong with a file system of Ceph."""
    return _monitors(source)


def cinder(source: Field) -> list[Cause]:
    """What is wrong with a disk of OpenStack."""
    return causes.needed(source["volumeID"]) + _secret_name(source["secretRef"])


def quobyte(source: Field) -> list[Cause]:
    """What is wrong with a volume of Quobyte."""
    registry, tenant = source["registry"], source["tenant"]
    if not registry.text():
        found = [causes.required(registry.path, HOST_AND_PORT)]
    elif go_text.n_bytes(tenant.text()) > 64:
        found = [causes.required(tenant.path, TENANT)]
    else:
        pairs = registry.text().split(",")
        wrong = causes.invalid(registry.path, go_text.quoted(registry.text()), HOST_AND_PORT)
        found = [wrong for pair in pairs if not re.fullmatch(_HOST_PORT, pair)]
    return found + causes.needed(source["volume"])


def fibre_channel(source: Field) -> list[Cause]:
    """What is wrong with a disk behind Fibre Channel."""
    worldwide, lun = source["targetWWNs"], source["lun"]
    found: list[Cause] = []
    if not worldwide.items():
        if not source["wwids"].items():
            found.append(causes.required(worldwide.path, "must specify either targetWWNs or wwids, but not both"))
        return found
    if source["wwids"].items():
        detail = "targetWWNs and wwids can not be specified simultaneously"
        found.append(causes.invalid(worldwide.path, go_text.as_json(worldwide.texts()), detail))
    if not lun.present:
        return [*found, causes.required(lun.path, "lun is required if targetWWNs is specified")]
    return found + causes.within(lun, 0, 255)


def flex(source: Field) -> list[Cause]:
    """What is wrong with a volume of a driver that is a program on the node."""
    found = causes.needed(source["driver"])
    for key in source["options"].names():
        domain = f".{key.split('/', 1)[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            found.append(causes.invalid(source["options"].entry(key).path, go_text.quoted(key), OURS))
    return found


def storage_os(source: Field) -> list[Cause]:
    """What is wrong with a volume of StorageOS."""
    found = causes.needed(source["volumeName"])
    for field in (source["volumeName"], source["volumeNamespace"]):
        if field.text():
            found += names.invalid(field.path, field.text(), names.dns_label(field.text()))
    return found + _secret_name(source["secretRef"])


def _partition(field: Field) -> list[Cause]:
    return [] if 0 <= field.number() <= 255 else [causes.invalid(field.path, str(field.number()), PARTITIONS)]


def _monitors(source: Field) -> list[Cause]:
    return [] if source["monitors"].items() else [causes.required(source["monitors"].path)]


def _secret_name(reference: Field) -> list[Cause]:
    return causes.needed(reference["name"]) if reference.present else []


def _qualified(field: Field) -> list[Cause]:
    text = field.text()
    form = _QUALIFIED.get(text[:3])
    if form is not None and re.search(form, text):
        return []
    return [causes.invalid(field.path, go_text.quoted(text), ISCSI_FORM if form else ISCSI_BEGINNING)]
