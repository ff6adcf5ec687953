"""What a user of a Karmada control plane does, in a namespace of its own: applies workloads and policies, and looks."""

import asyncio
import contextlib
import datetime as dt

from live.admin import Admin, ApiError, wait_for
from live.karmada_control_plane import BINDINGS, CLUSTERS

POLICIES = "policy.karmada.io/v1alpha1/propagationpolicies"
CLUSTER_POLICIES = "policy.karmada.io/v1alpha1/clusterpropagationpolicies"
WORKS = "work.karmada.io/v1alpha1/works"
DEPLOYMENTS = "apps/v1/deployments"
DIVIDED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
DYNAMIC = {**DIVIDED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
DUPLICATED = {"replicaSchedulingType": "Duplicated"}
PATIENCE = 60


class FleetUser:
    """`admin` is a client of Karmada's API server; members are reached by their names."""

    def __init__(self, karmada, admin, namespace):
        self.karmada, self.admin, self.namespace = karmada, admin, namespace
        self.members = {}
        self._created = []

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, karmada, namespace):
        async with contextlib.AsyncExitStack() as stack:
            user = cls(karmada, await stack.enter_async_context(Admin.of(karmada.server)), namespace)
            for name, server in karmada.members.items():
                user.members[name] = await stack.enter_async_context(Admin.of(server))
            await user.admin.create_namespace(namespace)
            kubelets = asyncio.create_task(user._play_kubelets())
            try:
                yield user
            finally:
                kubelets.cancel()
                karmada.recover()
                await user._clean_up()

    # Changes

    async def create(self, content):
        """Create an object, in the namespace of this user if it has one, and delete it after the test."""
        namespace = content["metadata"].get("namespace", self.namespace)
        made = await self.admin.create(content, namespace=namespace)
        resource, _ = await self.admin._resource_of(content)
        self._created.append((resource, made["metadata"]["name"], made["metadata"].get("namespace")))
        return made

    async def deploy(self, name, replicas, *, cpu="100m", labels=None):
        return await self.create(deployment(name, replicas, cpu=cpu, labels=labels))

    async def propagate(self, *names, placement, scheduler="bayplan", kind="Deployment", policy="", **spec):
        """Create a policy that propagates workloads of the namespace."""
        version = "v1" if kind == "ConfigMap" else "apps/v1"
        selectors = [{"apiVersion": version, "kind": kind, "name": name} for name in names]
        return await self.create(
            {
                "apiVersion": "policy.karmada.io/v1alpha1",
                "kind": "PropagationPolicy",
                "metadata": {"name": policy or f"{names[0]}-policy"},
                "spec": {"resourceSelectors": selectors, "schedulerName": scheduler, "placement": placement, **spec},
            }
        )

    async def scale(self, name, replicas):
        await self.admin.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, self.namespace)

    async def rebalance(self, *names):
        """Request that Deployments are scheduled afresh; the request has to be a second younger than the last result."""
        for name in names:
            await wait_for(lambda name=name: self._was_scheduled_before_this_second(name))
        workloads = [
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": self.namespace, "name": name} for name in names
        ]
        return await self.create(
            {
                "apiVersion": "apps.karmada.io/v1alpha1",
                "kind": "WorkloadRebalancer",
                "metadata": {"name": f"{self.namespace}-{names[0]}"},
                "spec": {"workloads": workloads},
            }
        )

    async def _was_scheduled_before_this_second(self, name):
        last = dt.datetime.fromisoformat((await self.binding(name))["status"]["lastScheduledTime"])
        return dt.datetime.now(dt.UTC) - last >= dt.timedelta(seconds=1)

    async def add_cluster(self, name, *, cpu="100", labels=None, taints=(), **spec):
        """Register a cluster that nobody reports about, with a status written by hand."""
        await wait_for(lambda: self._cluster_is_gone(name), PATIENCE)  # that of an earlier test
        await self.create(
            {
                "apiVersion": "cluster.karmada.io/v1alpha1",
                "kind": "Cluster",
                "metadata": {"name": name, "labels": labels or {}},
                "spec": {"syncMode": "Pull", "taints": list(taints), **spec},
            }
        )
        await self.report(name, cpu=cpu)

    async def report(self, name, *, cpu="100"):
        """Write the status of a cluster, as its agent would."""
        enabled = [
            {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]},
            {"groupVersion": "v1", "resources": [{"kind": "ConfigMap", "name": "configmaps"}]},
            {
                "groupVersion": "rbac.authorization.k8s.io/v1",
                "resources": [{"kind": "ClusterRole", "name": "clusterroles"}],
            },
        ]
        now = "2026-01-01T00:00:00Z"
        ready = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "", "lastTransitionTime": now}
        complete = {**ready, "type": "CompleteAPIEnablements", "reason": "FullAPIEnablements"}
        status = {
            "apiEnablements": enabled,
            "conditions": [ready, complete],
            "resourceSummary": {"allocatable": {"cpu": cpu, "memory": "1000Gi", "pods": "1000"}},
        }
        await self.admin.patch(CLUSTERS, name, {"status": status}, subresource="status")

    # What is

    async def binding(self, name, kind="deployment"):
        return await self.admin.get(BINDINGS, f"{name}-{kind}", self.namespace)

    async def shares(self, name, kind="deployment"):
        """The replicas by cluster of a workload's binding; None while it does not exist."""
        try:
            found = await self.binding(name, kind)
        except ApiError:
            return None
        return shares_of(found)

    async def until_placed(self, name, expected, kind="deployment"):
        """Wait until the binding is where it should be and the scheduler has observed it; return it."""

        async def placed():
            try:
                found = await self.binding(name, kind)
            except ApiError:
                return None
            condition = scheduled(found)
            is_done = shares_of(found) == expected and is_observed(found)
            return found if is_done and condition and condition["status"] == "True" else None

        try:
            return await wait_for(placed, PATIENCE)
        except AssertionError as failure:
            failure.add_note(f"{name}: {await self._told(name, kind)}")
            raise

    async def until_refused(self, name, reason, kind="deployment"):
        """Wait until the binding has a condition with this reason; return the message."""

        async def refused():
            try:
                found = scheduled(await self.binding(name, kind))
            except ApiError:
                return None
            return found if found and found["reason"] == reason else None

        try:
            return (await wait_for(refused, PATIENCE))["message"]
        except AssertionError as failure:
            failure.add_note(f"{name}: {await self._told(name, kind)}")
            raise

    async def _told(self, name, kind):
        try:
            return await self.binding(name, kind)
        except ApiError as error:
            return str(error)

    async def replicas_on_members(self, name):
        """The replicas of a Deployment on each member that has it."""
        found = {}
        for member, admin in self.members.items():
            with contextlib.suppress(ApiError, OSError):
                found[member] = (await admin.get(DEPLOYMENTS, name, self.namespace))["spec"]["replicas"]
        return found

    async def members_serve(self, version):
        """Whether every member has told Karmada that it serves the kinds of a version."""
        for name in self.members:
            status = (await self.admin.get(CLUSTERS, name)).get("status", {})
            if not any(one["groupVersion"] == version for one in status.get("apiEnablements", ())):
                return False
        return True

    async def events_of(self, name):
        """The notes of the Events about an object, by reason."""
        found = await self.admin.items("events.k8s.io/v1/events", self.namespace)
        return [(one["reason"], one["note"]) for one in found if one["regarding"]["name"] == name]

    # Behind the scenes

    async def _play_kubelets(self):
        """Let every Deployment on a member be as ready as it should be."""
        while True:
            for admin in self.members.values():
                with contextlib.suppress(ApiError, OSError):
                    for found in await admin.items(DEPLOYMENTS, self.namespace):
                        await _make_ready(admin, found)
            await asyncio.sleep(0.3)

    async def _clean_up(self):
        for resource, name, namespace in reversed(self._created):
            with contextlib.suppress(ApiError):
                await self.admin.delete(resource, name, namespace, grace=None)
        await wait_for(self._bindings_are_gone, PATIENCE)
        for resource, name, _ in self._created:
            if resource == CLUSTERS:
                await self._cluster_is_gone(name)  # Karmada takes ten seconds for it: whoever needs the name waits

    async def _bindings_are_gone(self):
        return not await self.admin.items(BINDINGS, self.namespace)

    async def _cluster_is_gone(self, name):
        """Nobody removes works from a cluster without an agent, so their finalizers are removed here."""
        for work in await self.admin.items(WORKS, f"karmada-es-{name}"):
            with contextlib.suppress(ApiError):
                nothing = {"metadata": {"finalizers": None}}
                await self.admin.patch(WORKS, work["metadata"]["name"], nothing, f"karmada-es-{name}")
        names = [one["metadata"]["name"] for one in await self.admin.items(CLUSTERS)]
        return name not in names


async def _make_ready(admin, found):
    wanted = found["spec"]["replicas"]
    status = {
        "observedGeneration": found["metadata"]["generation"],
        **dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), wanted),
    }
    if any(found["status"].get(key) != value for key, value in status.items() if value):
        meta = found["metadata"]
        await admin.patch(DEPLOYMENTS, meta["name"], {"status": status}, meta["namespace"], subresource="status")


def deployment(name, replicas, *, cpu="100m", labels=None):
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    pod = {"containers": [{"name": "main", "image": "example.com/none", "resources": resources}]}
    own = {"app": name, **(labels or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": own},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


def shares_of(binding):
    return {one["name"]: one.get("replicas", 0) for one in binding["spec"].get("clusters") or ()}


def scheduled(binding):
    """The condition Scheduled; None if there is none."""
    conditions = binding.get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == "Scheduled"), None)


def is_observed(binding):
    return binding.get("status", {}).get("schedulerObservedGeneration") == binding["metadata"]["generation"]
