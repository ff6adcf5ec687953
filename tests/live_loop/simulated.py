"""The parts of the scheduler on a cluster in memory: writes take effect at once, and the test advances the clock."""

import asyncio
import datetime as dt

import msgspec

from bayplan.kube_api.decoding import Key
from bayplan.live.assembly import SchedulerAssembly, SchedulerSettings
from bayplan.live.cluster_writer import PodGoneError, RejectedError
from bayplan.rules import profiles
from bayplan.watching import resources
from bayplan.wire.controllers import PodDisruptionBudget
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Simulation:
    """
    `pods` is what the API server would store; a write of the scheduler comes back to it like a watch event.

    `slowness` is added to the time with every reading of the clock.
    """

    def __init__(self, *, names=("bayplan",), slowness=0.0, **settings):
        self.now, self.slowness = 0.0, slowness
        self.pods, self.events, self.failures = {}, [], []
        self.binds, self.deleted = [], []
        self.claims, self.volumes = {}, {}
        self.serial = 0
        rules = profiles.pod_rules()
        self.parts = SchedulerAssembly(
            self,
            dict.fromkeys(names, rules),
            SchedulerSettings(identity="test", election=None, **settings),
            clock=self._clock,
            wall=lambda: START + dt.timedelta(seconds=self.now),
        )
        self.state, self.scheduler = self.parts.state, self.parts.scheduler
        self._watched = {one.resource.plural: one for one in resources.scheduling_resources(self.state)}

    def _clock(self):
        self.now += self.slowness
        return self.now

    # The cluster

    def add_node(self, name, zone="a", cpu="4", pods="110", **spec):
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
        status = {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": pods}}
        self.state.put_node(
            convert({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}, Node)
        )

    def add_pod(
        self,
        name,
        *,
        namespace="web",
        labels=None,
        cpu=None,
        scheduler="bayplan",
        priority=0,
        node="",
        annotations=None,
        **spec,
    ):
        self.serial += 1
        requests = {"cpu": cpu} if cpu else {}
        written = {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "uid": f"uid-{self.serial}",
                "labels": labels or {},
                "annotations": annotations or {},
                "creationTimestamp": START.isoformat(),
            },
            "spec": {
                "schedulerName": scheduler,
                "priority": priority,
                "nodeName": node,
                "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
                **spec,
            },
        }
        self.pods[f"{namespace}/{name}"] = written
        self.report(name, namespace)

    def add_namespace(self, name, **labels):
        self._put("namespaces", {"metadata": {"name": name, "labels": labels}})

    def add_budget(self, name, labels, allowed):
        self.state.put_budget(
            convert(
                {
                    "metadata": {"namespace": "web", "name": name},
                    "spec": {"selector": {"matchLabels": labels}},
                    "status": {"disruptionsAllowed": allowed},
                },
                PodDisruptionBudget,
            )
        )

    def add_class(self, name, provisioner="kubernetes.io/no-provisioner"):
        written = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        self._put("storageclasses", {"metadata": {"name": name}, **written})

    def add_claim(self, name, storage_class="late"):
        self.serial += 1
        meta = {"namespace": "web", "name": name, "uid": f"uid-{self.serial}", "annotations": {}}
        spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}}
        self.claims[f"web/{name}"] = {"metadata": meta, "spec": spec}
        self.report_claim(name)

    def add_volume(self, name, storage_class="late", node=None):
        spec = {"storageClassName": storage_class, "capacity": {"storage": "1Gi"}}
        if node:
            on_node = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": on_node}]}}
        self.volumes[name] = {
            "metadata": {"name": name, "resourceVersion": "1"},
            "spec": spec,
            "status": {"phase": "Available"},
        }
        self.report_volume(name)

    def bind_claim(self, name, volume):
        """Bind a claim as the volume controller does when the volume exists."""
        self.claims[f"web/{name}"]["spec"]["volumeName"] = volume
        self.claims[f"web/{name}"]["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        self.report_claim(name)

    def remove_claim(self, name):
        del self.claims[f"web/{name}"]
        self._drop("persistentvolumeclaims", "web", name)

    def remove_node(self, name):
        self._drop("nodes", "", name)

    def report_claim(self, name):
        self._put("persistentvolumeclaims", self.claims[f"web/{name}"])

    def report_volume(self, name):
        self._put("persistentvolumes", self.volumes[name])

    def _put(self, plural, written):
        one = self._watched[plural]
        one.put(convert(written, one.item_type))
        self.parts.change_handler(one.resource)()

    def _drop(self, plural, namespace, name):
        one = self._watched[plural]
        one.drop(Key(namespace, name), "")
        self.parts.change_handler(one.resource)()

    def change_pod(self, name, **spec):
        self.pods[f"web/{name}"]["spec"].update(spec)
        self.report(name)

    def remove_pod(self, name, namespace="web"):
        gone = self.pods.pop(f"{namespace}/{name}")
        self.state.drop_pod(f"{namespace}/{name}", gone["metadata"]["uid"])
        self.scheduler.changed()

    def report(self, name, namespace="web"):
        self.state.put_pod(convert(self.pods[f"{namespace}/{name}"], Pod))
        self.scheduler.changed()

    async def settle(self, seconds=0.0):
        """Run the scheduler until it is idle, then advance the time, one retry at a time."""
        end = self.now + seconds
        while True:
            for _ in range(3):  # binds whose volumes are bound continue
                await asyncio.sleep(0)
            while self.scheduler.step():
                await self.scheduler.idle()
            await self.scheduler.idle()
            await self.parts.events.flush()
            groups = None if self.parts.groups is None else self.parts.groups.next_at()
            retry = min((at for at in (self.state.queue.ready_at(), groups) if at is not None), default=None)
            if retry is None or retry > end:
                break
            self.now = max(self.now, retry)
        self.now = end
        while self.scheduler.step():
            await self.scheduler.idle()

    def where(self):
        return {key.partition("/")[2]: pod["spec"]["nodeName"] for key, pod in sorted(self.pods.items())}

    def notes(self, name, reason):
        return [e["note"] for e in self.events if e["regarding"]["name"] == name and e["reason"] == reason]

    def condition(self, name):
        return self.pods[f"web/{name}"].get("status", {}).get("conditions", [{}])[0]

    # Writes of the scheduler

    def _find(self, pod):
        found = self.pods.get(f"{pod.namespace}/{pod.name}")
        if found is None or found["metadata"]["uid"] != pod.uid:
            raise PodGoneError(f"{pod.name} is gone")
        return found

    async def bind(self, pod, node):
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
        found = self._find(pod)
        if found["spec"]["nodeName"]:
            raise RejectedError("it has a node already")
        found["spec"]["nodeName"] = node
        self.binds.append((pod.name, node))
        self.report(pod.name, pod.namespace)

    async def node_of(self, pod):
        return self._find(pod)["spec"]["nodeName"]

    async def patch_status(self, pod, status):
        found = self._find(pod).setdefault("status", {})
        if "conditions" in status:  # merged by type, as the API server does
            known = {condition["type"]: condition for condition in found.get("conditions", ())}
            merged = [known.get(condition["type"], {}) | condition for condition in status["conditions"]]
            status = status | {"conditions": merged}
        found.update({name: value for name, value in status.items() if value is not None})
        for name in [name for name, value in status.items() if value is None]:
            found.pop(name, None)
        self.report(pod.name, pod.namespace)

    async def delete(self, pod):
        self._find(pod)
        self.deleted.append(pod.name)
        self.remove_pod(pod.name, pod.namespace)

    async def evict(self, pod):
        await self.delete(pod)

    async def select_node(self, claim, node):
        found = self.claims.get(f"{claim.namespace}/{claim.name}")
        if found is None:
            raise PodGoneError(f"{claim.name} is gone")
        if found["metadata"]["uid"] != claim.uid:
            raise RejectedError(f"{claim.name} is another claim by now")
        found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = node
        self.report_claim(claim.name)

    async def reserve_volume(self, volume, version, claim):
        if volume not in self.volumes:
            raise PodGoneError(f"{volume} is gone")
        if self.volumes[volume]["metadata"]["resourceVersion"] != version:
            raise RejectedError(f"{volume} has changed")
        self.take_volume(volume, claim.name, claim.uid)
        self.report_volume(volume)

    def take_volume(self, volume, claim, uid):
        """Bind a volume to a claim; the scheduler sees it when the volume is reported."""
        found = self.volumes[volume]
        found["spec"]["claimRef"] = {"namespace": "web", "name": claim, "uid": uid}
        found["metadata"]["resourceVersion"] += "0"

    async def post_event(self, event):
        self.events.append(event)

    async def patch_event(self, namespace, name, patch):
        self.events.append({"series": patch["series"], "regarding": {"name": name}, "reason": "", "note": ""})


def using(*claims):
    """The `volumes` of a pod that uses these claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def convert(value, kind):
    return msgspec.convert(value, kind)


def apart(key="kubernetes.io/hostname", **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(key="topology.kubernetes.io/zone", **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
