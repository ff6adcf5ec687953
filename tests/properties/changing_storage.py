"""A changing cluster whose volumes, claims and attachments change at random too."""

import msgspec

from bayplan.model.labels import equals
from bayplan.model.node_selectors import NodeRequirement, NodeTerm
from bayplan.model.volumes import Attachment, AvailableSpace, Claim, StorageClass, Volume
from properties.changing import ChangingCluster
from reference.strategies import HOSTNAME, ZONE, ZONES

CLAIMS = tuple(f"c{number}" for number in range(5))
VOLUMES = tuple(f"v{number}" for number in range(5))
NODES = tuple(f"n{number}" for number in range(7))
DRIVERS = ("disks", "disks", "shares")


class ChangingStorage(ChangingCluster):
    """`stored` are the entries of the storage tables."""

    def __init__(self, seed, semantics, n_pending=4):
        self.stored = {}
        super().__init__(seed, semantics, n_pending, spanning=0)
        self.pending = [msgspec.structs.replace(one, priority=i) for i, one in enumerate(self.pending)]  # no two alike
        for _ in range(40):
            self.change_storage()

    def step(self):
        if self.chance.random() < 0.6:
            self.change_storage()
        else:
            super().step()

    def next_name(self, stem):
        """Nodes reuse the names of removed ones, to which volumes may still be attached."""
        if stem != "node":
            return super().next_name(stem)
        return self.chance.choice([name for name in NODES if name not in self.targets])

    def add_target(self):
        if len(self.targets) < len(NODES):
            super().add_target()

    def fresh(self):
        index = super().fresh()
        for table, name in self._shuffled(self.stored):
            index.set_stored(table, name, self.stored[table, name])
        return index

    def change_storage(self):
        table, name, value = self.chance.choice(
            [
                self._claim,
                self._claim,
                self._volume,
                self._volume,
                self._class,
                self._limit,
                self._attachment,
                self._space,
            ]
        )()
        if self.chance.random() < 0.1:
            value = None
        if value is None:
            self.stored.pop((table, name), None)
        else:
            self.stored[table, name] = value
        self.index.set_stored(table, name, value)

    # Drawing

    def _workload(self, written):
        pick = self.chance.choice
        spec = {**written["spec"], "volumes": [], "containers": [{"name": "c", "image": "i"}]}
        for key in ("affinity", "topologySpreadConstraints", "nodeSelector", "nodeName"):
            spec.pop(key, None)
        for name in dict.fromkeys(pick(CLAIMS) for _ in range(pick((0, 1, 1, 2, 3)))):
            spec["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": name}})
        metadata = {**written["metadata"], "namespace": "default"}
        return super()._workload({**written, "metadata": metadata, "spec": spec})

    def _claim(self):
        pick = self.chance.choice
        key = f"default/{pick(CLAIMS)}"
        volume = pick(("",) * 4 + VOLUMES)
        bound = bool(volume) and self.chance.random() < 0.8
        modes = pick((("ReadWriteOnce",), ("ReadWriteOnce",), ("ReadWriteOncePod",)))
        selected = pick(("", "", "", *self.targets))
        claim = Claim(
            key=key,
            uid=key,
            volume=volume,
            bound=bound,
            storage_class=pick(("late",) * 7 + ("now",)),
            requested=pick((1, 2)),
            access_modes=modes,
            selected_node="" if volume else selected,
        )
        return "claims", key, claim

    def _volume(self):
        pick = self.chance.choice
        name = pick(VOLUMES)
        zone = NodeTerm((NodeRequirement(ZONE, "In", tuple(self.chance.sample(ZONES, 2))),))
        host = NodeTerm((NodeRequirement(HOSTNAME, "In", (pick(list(self.targets)),)),))
        anywhere_else = NodeTerm((NodeRequirement(ZONE, "NotIn", (pick(ZONES),)),))
        volume = Volume(
            name=name,
            storage_class=pick(("late",) * 7 + ("now",)),
            capacity=pick((1, 2, 3)),
            access_modes=("ReadWriteOnce", "ReadWriteOncePod"),
            required=pick((None, None, (zone,), (host,), (zone, host), (anywhere_else,), ())),
            claim=pick(("",) * 5 + tuple(f"default/{claim}" for claim in CLAIMS)),
            driver=pick(("", *DRIVERS)),
            handle=pick(("", "x", name)),
        )
        return "volumes", name, volume

    def _class(self):
        pick = self.chance.choice
        name, allowed = pick(("late", "late", "now")), ((ZONE, tuple(self.chance.sample(ZONES, 1))),)
        mode = "Immediate" if name == "now" else "WaitForFirstConsumer"
        provisioner = pick(("kubernetes.io/no-provisioner", *DRIVERS))
        made = StorageClass(name=name, provisioner=provisioner, binding_mode=mode, allowed=pick(((), (allowed,))))
        return "classes", name, made

    def _limit(self):
        drivers = self.chance.sample(("disks", "shares"), self.chance.choice((0, 1, 2)))
        node = self.chance.choice(NODES)
        return "attach_limits", node, {driver: self.chance.choice((1, 1, 2)) for driver in drivers}

    def _attachment(self):
        pick = self.chance.choice
        node = pick(NODES)
        return (
            "attachments",
            pick(("a0", "a1", "a2", "a3")),
            Attachment(node=node, driver=pick(DRIVERS), volume=pick(VOLUMES)),
        )

    def _space(self):
        pick = self.chance.choice
        if pick((True, False)):
            return "metering_drivers", pick(DRIVERS), True
        topology = pick((None, equals({}), equals({ZONE: pick(ZONES)}), equals({ZONE: pick(ZONES), "rack": "rack1"})))
        return (
            "space",
            pick(("s0", "s1")),
            AvailableSpace(storage_class="late", topology=topology, largest=pick((None, 1, 2))),
        )
