"""
What becomes of the claims of a pod that is placed: they are bound, so that later pods see which volumes are left.

A claim that finds a volume is bound to it. For any other one a volume is provisioned; until then, only the selected
node may use it, as in kube-scheduler, which has placed the other pods of a workload long before the volume exists. Then
it is reached from the nodes with the same values of the topology keys of its driver (CSINode) as the selected one.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import disks
from bayplan.model.labels import IN
from bayplan.model.node_selectors import NodeRequirement, NodeTerm
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules import volume_binding, volume_claims, volume_matching

TopologyKeys = Mapping[str, Mapping[str, tuple[str, ...]]]  # node → driver → the label keys of its topology
ONLY_THERE = "whether other nodes than {} can use the new volume of its claim {} is not known"
TAKEN_IN_GROUP = "whether there are enough volumes for its group is not known: none is left for its claim {}"


class AssumedVolumes(msgspec.Struct):
    """
    The claims for which a volume is about to be provisioned, on which node.

    `doubts` says of placed pods why it is not known whether they can use their volumes.
    """

    index: PlacementIndex
    topology_keys: TopologyKeys
    doubts: dict[WorkloadKey, str]
    _selected: dict[str, str] = {}
    _only_on: dict[str, str] = {}  # claim → the only node that is known to reach its volume

    def assume(self, workload: Workload, slot: int) -> None:
        """The pod is placed: bind its claims to the volumes that they find on the node, or select it for them."""
        node = self.index.slots.at(slot).name
        self.doubts.pop(workload.key, None)
        for claim in volume_claims.claim_part(workload).known(self.index):
            if self._only_on.get(claim.key, node) != node:
                self.doubts[workload.key] = ONLY_THERE.format(self._only_on[claim.key], claim.name)
        for claim, name in volume_binding.volumes_for(workload, slot, self.index):
            if name:
                volume = self.index.storage.volumes[name]
                self._bind(claim, msgspec.structs.replace(volume, claim=claim.key, claim_uid=claim.uid))
            elif not self._provisioner(claim):  # the members of a group are placed together
                self.doubts[workload.key] = TAKEN_IN_GROUP.format(claim.name)
            else:
                self.index.set_claim(claim.key, msgspec.structs.replace(claim, selected_node=node))
                self._selected[claim.key] = node

    def provision(self) -> bool:
        """Provision the volumes for which a node is selected, and bind the claims; whether there were any."""
        selected, self._selected = self._selected, {}
        for key, node in selected.items():
            claim = self.index.storage.claims.get(key)
            if claim is not None and not claim.bound and claim.selected_node == node:
                self._bind(claim, self._provisioned(claim, node))
        return bool(selected)

    def _bind(self, claim: Claim, volume: Volume) -> None:
        self.index.set_volume(volume.name, volume)
        self.index.set_claim(claim.key, msgspec.structs.replace(claim, volume=volume.name, bound=True))

    def _provisioner(self, claim: Claim) -> str:
        found = self.index.storage.classes.get(claim.storage_class)
        return "" if found is None or found.provisioner == volume_matching.NO_PROVISIONER else found.provisioner

    def _provisioned(self, claim: Claim, node: str) -> Volume:
        driver, slot = disks.driver_of(self._provisioner(claim)), self.index.slots.by_name.get(node)
        keys = self.topology_keys.get(node, {}).get(driver)
        if keys is None:
            self._only_on[claim.key] = node
        labels = {} if slot is None else self.index.slots.at(slot).labels
        required = [NodeRequirement(key, IN, (labels[key],)) for key in keys or () if key in labels]
        return Volume(
            name=f"for {claim.key}",  # no name that an API server accepts
            storage_class=claim.storage_class,
            capacity=claim.requested,
            access_modes=claim.access_modes,
            volume_mode=claim.volume_mode,
            required=(NodeTerm(tuple(required)),) if required else None,
            claim=claim.key,
            claim_uid=claim.uid,
            driver=driver,
            handle=claim.key,
        )
