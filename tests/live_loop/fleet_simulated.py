"""A Karmada control plane in memory, and the scheduler of bindings on it: the real one, but for its requests."""

import copy
import datetime as dt

import msgspec

from bayplan.kube_api.errors import ApiError, ConflictError, NotFoundError, Status
from bayplan.live import fleet_writer
from bayplan.live.assembly import SchedulerSettings
from bayplan.live.cluster_writer import ObjectRef, PodGoneError, RejectedError, UnknownOutcomeError
from bayplan.live.fleet_assembly import FleetAssembly
from bayplan.model.workloads import WorkloadKey
from bayplan.watching.fleet_templates import TemplateKind
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.meta import ApiObject, ObjectMeta
from live import fleets

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAME = "bayplan"
DEPLOYMENT = TemplateKind("apps/v1", "Deployment")


class FleetServer:
    """
    The API server, as far as bindings go: versions, generations, merge patches with preconditions.

    `faults` are raised by the next writes, before or after they happen. A report of each change waits in `reports`.
    """

    def __init__(self):
        self.bindings, self.reports, self.patches, self.events = {}, [], [], []
        self.refusals, self.lost_answers = [], 0
        self.evictions, self.eviction_faults = [], []
        self.before_patch = lambda: None
        self._version = 0

    def put(self, binding):
        key = f"{binding['metadata'].get('namespace', '')}/{binding['metadata']['name']}"
        known = self.bindings.get(key)
        self._version += 1
        meta = binding["metadata"]
        is_new = known is None or known["spec"] != binding["spec"]
        generation = (known["metadata"]["generation"] if known else 0) + is_new
        meta |= {"generation": generation, "resourceVersion": str(self._version), "uid": meta.get("uid", f"uid-{key}")}
        self.bindings[key] = copy.deepcopy(binding)
        self.reports.append(key)
        return self.typed(key)

    def typed(self, key):
        return msgspec.convert(self.bindings[key], ResourceBinding)

    async def patch(self, binding, patch, *, status):
        self.before_patch()
        self.patches.append(("status" if status else "object", copy.deepcopy(patch)))
        if self.refusals:
            raise self.refusals.pop(0)
        meta = binding.metadata
        key = f"{meta.namespace}/{meta.name}"
        if key not in self.bindings:
            raise PodGoneError("gone") from NotFoundError("PATCH", Status(code=404))
        if self.bindings[key]["metadata"]["resourceVersion"] != meta.resource_version:
            raise RejectedError("changed") from ConflictError("PATCH", Status(code=409, reason="Conflict"))
        found = self.put(merged(self.bindings[key], patch))
        if self.lost_answers:
            self.lost_answers -= 1
            raise UnknownOutcomeError("no answer")
        return found

    async def read(self, binding: ObjectRef):
        return self.typed(f"{binding.namespace}/{binding.name}")

    async def evict(self, binding: ObjectRef, task):
        key = f"{binding.namespace}/{binding.name}"
        if self.eviction_faults:
            raise self.eviction_faults.pop(0)
        if key not in self.bindings:
            raise PodGoneError("gone")
        self.evictions.append((binding.name, task["fromCluster"]))
        return self.put(merged(self.bindings[key], fleet_writer.eviction_patch(self.bindings[key], binding, task)))

    async def post_event(self, event):
        self.events.append((event["regarding"]["name"], event["reason"], event["note"]))

    async def patch_event(self, namespace, name, patch):
        pass


def merged(content, patch):
    """The content after a JSON merge patch."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    found = dict(content) if isinstance(content, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def over_quota(text):
    error = RejectedError(text)
    error.__cause__ = ApiError("PATCH", Status(code=403, reason="QuotaExceeded", message=text))
    return error


class FleetSimulation:
    """A scheduler of bindings on a FleetServer, on a clock that the test sets."""

    def __init__(self, **settings):
        self.now = 0.0
        self.server = FleetServer()
        options = SchedulerSettings(identity="test", election=None, **settings)
        self.parts = FleetAssembly(
            self.server, [NAME], options, clock=lambda: self.now, wall=lambda: START + dt.timedelta(seconds=self.now)
        )
        self.parts.scheduler._writer._sleep = self._at_once
        self.scheduler, self.state = self.parts.scheduler, self.parts.state

    async def _at_once(self, _seconds):
        pass

    def cluster(self, name, *, cpu="100", labels=None, generation=1, leaving=False, **spec):
        """Report a cluster."""
        content = fleets.cluster(name, cpu)
        content["metadata"] |= {"labels": labels or {}, "generation": generation}
        if leaving:
            content["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        content["spec"] |= spec
        self.state.put_cluster(msgspec.convert(content, Cluster))

    def bind(self, name, placement, clusters=None, *, replicas=2, annotations=None, status=None, **spec):
        """Create or change a binding on the server, and report it."""
        content = fleets.binding(
            name,
            "shop",
            clusters or {},
            placement,
            replicas=replicas,
            annotations=annotations,
            schedulerName=NAME,
            **spec,
        )
        self.server.put(content | ({"status": status} if status else {}))
        self.report()

    def policy(self, name, text):
        """Report a policy with this annotation; None for one without."""
        annotations = {} if text is None else {"bayplan.io/placement": text}
        self.state.put_policy(ApiObject(metadata=ObjectMeta(name=name, namespace="shop", annotations=annotations)))

    def template(self, name, labels, annotations=None):
        """Report the metadata of the Deployment of a binding."""
        self.template_of("shop", name, labels, annotations)

    def template_of(self, namespace, name, labels, annotations=None):
        meta = ObjectMeta(name=name, namespace=namespace, labels=labels, annotations=annotations)
        self.state.put_template(DEPLOYMENT, ApiObject(metadata=meta))

    def change(self, name, patch):
        """Change a binding as another controller does. The change is not reported yet."""
        key = f"shop/{name}-deployment"
        self.server.put(merged(self.server.bindings[key], patch))

    def namespace(self, name, labels=None):
        self.state.index.set_namespace(name, labels or {})

    def end_evictions(self, name):
        """As the controller of graceful evictions does once the copies elsewhere are healthy."""
        self.change(name, {"spec": {"gracefulEvictionTasks": None}})
        self.report()

    def delete(self, name):
        key = WorkloadKey(f"shop/{name}-deployment")
        del self.server.bindings[key]
        self.state.drop_binding(key, "")

    def report(self):
        while self.server.reports:
            key = self.server.reports.pop(0)
            if key in self.server.bindings:
                self.state.put_binding(self.server.typed(key))

    async def settle(self):
        """Let everything happen that is due now."""
        for _ in range(30):
            while self.scheduler.step():
                await self.scheduler.idle()
            await self.scheduler.idle()
            self.report()
        await self.parts.events.flush()

    def of(self, name):
        return self.server.bindings[f"shop/{name}-deployment"]

    def shares(self, name):
        return {one["name"]: one.get("replicas", 0) for one in self.of(name)["spec"].get("clusters") or ()}

    def condition(self, name):
        conditions = self.of(name).get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == "Scheduled"), None)

    def counted(self, name):
        """Where the index has the binding."""
        record = self.state.index.records.get(WorkloadKey(f"shop/{name}-deployment"))
        return dict(record.shares) if record else {}
