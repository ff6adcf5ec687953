"""The label keys that name a node's domain at each level, the most trusted first."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.auditing.layout import CLOUD, HOST, RACK, REGION, ZONE

HOST_KEY = "topology.scs.community/host-id"
ZONE_KEY = "topology.kubernetes.io/zone"
REGION_KEY = "topology.kubernetes.io/region"
CSI_ZONE_KEY = "topology.cinder.csi.openstack.org/zone"

# `kubernetes.io/hostname` is left out deliberately: it names the virtual machine.
KEYS: dict[str, tuple[str, ...]] = {
    HOST: (
        HOST_KEY,
        "topology.openstack.org/host-id",
        "machine-controller/physical-host-id",
        "node.cluster.x-k8s.io/esxi-host",
        "topology.scs.openstack.org/host-id",
    ),
    RACK: ("topology.rook.io/rack", "oci.oraclecloud.com/fault-domain"),
    ZONE: (ZONE_KEY, "failure-domain.beta.kubernetes.io/zone"),
    REGION: (REGION_KEY, "failure-domain.beta.kubernetes.io/region", "topology.rook.io/datacenter"),
    CLOUD: (),
}
# Providers whose zone label names the hypervisor, and those whose nodes are the machines themselves.
ZONE_IS_HOST = ("proxmox", "xenorchestra")
BARE_METAL = ("metal3",)
# Providers of which there is one cloud. Of others, such as openstack or vsphere, there are as many as operators.
ONE_CLOUD = (
    "alicloud",
    "aws",
    "azure",
    "digitalocean",
    "equinixmetal",
    "exoscale",
    "gce",
    "hcloud",
    "ibmcloud",
    "linode",
    "oci",
    "scaleway",
    "tencentcloud",
    "upcloud",
    "vultr",
)
# The zone name of OpenStack where no zone was configured.
DEFAULT_ZONE = "nova"


class Catalogue(msgspec.Struct, frozen=True):
    """
    The keys of each level, most trusted first; whether zones are hosts, or nodes machines, for every provider.

    `inventory_revealed`: whether reports may say which obfuscated label is which machine of the inventory.
    """

    keys: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: dict(KEYS))
    zone_is_host: bool = False
    bare_metal: bool = False
    inventory_revealed: bool = False

    def preferring(self, level: str, key: str) -> Catalogue:
        """The catalogue with this key before all others of the level."""
        others = tuple(other for other in self.keys[level] if other != key)
        return msgspec.structs.replace(self, keys={**self.keys, level: (key, *others)})
