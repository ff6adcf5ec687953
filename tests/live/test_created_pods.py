"""A real API server completes and refuses new pods as Bayplan says, word for word."""

import asyncio
import itertools
import random
import re

import msgspec
import pytest

from bayplan.controllers.desired_state import DesiredState
from bayplan.controllers.pod_admission import PodAdmission
from bayplan.validating import pod_resources
from bayplan.wire.admission import LimitRange, ResourceQuota, RuntimeClass
from bayplan.wire.controllers import PriorityClass
from bayplan.wire.nodes import Namespace
from bayplan.wire.pods import Pod
from live.admin import ApiError

N_SCENES, PODS_PER_SCENE = 24, 12
CPU, MEMORY = ("100m", "0.5", "1", "2", "1500m", "3"), ("64Mi", "128Mi", "1Gi", "1000000", "0.5Gi")
CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 70},
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "meek"},
        "value": 5,
        "preemptionPolicy": "Never",
    },
]
RUNTIMES = [
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {
            "nodeSelector": {"runtime": "kata"},
            "tolerations": [{"key": "kata", "operator": "Exists"}, {"key": "node.kubernetes.io/not-ready"}],
        },
    },
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "plain"}, "handler": "runc"},
]


def amounts(rng, chance=0.5):
    found = {"cpu": rng.choice(CPU), "memory": rng.choice(MEMORY)}
    return {name: text for name, text in found.items() if rng.random() < chance}


def limit_range(rng, namespace):
    limits = []
    for whose in rng.sample(["Container", "Pod"], k=rng.randint(1, 2)):
        item = {"type": whose}
        if rng.random() < 0.4:
            item["max"] = {"cpu": "2500m", "memory": "1Gi"}
        if rng.random() < 0.4:
            item["min"] = {"cpu": "100m"}
        if whose == "Container" and rng.random() < 0.6:
            item["default"], item["defaultRequest"] = {"cpu": "1500m"}, {"cpu": "200m", "memory": "100Mi"}
        if rng.random() < 0.2:
            item["maxLimitRequestRatio"] = {"cpu": "3"}
        limits.append(item)
    metadata = {"name": "limits", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}}


def quota(rng, namespace, name):
    names = ["pods", "cpu", "requests.memory", "limits.cpu", "limits.memory", "count/pods", "requests.cpu"]
    hard = {
        one: {"pods": "3", "count/pods": "4"}.get(one, "2Gi" if "mem" in one else "3500m")
        for one in rng.sample(names, k=2)
    }
    used = {one: {"pods": "2", "count/pods": "2"}.get(one, "1500Mi" if "mem" in one else "1") for one in hard}
    spec = {"hard": hard}
    if rng.random() < 0.4:
        spec["scopes"] = [rng.choice(["BestEffort", "NotBestEffort", "Terminating", "NotTerminating"])]
        if spec["scopes"] == ["BestEffort"]:
            hard, used = {"pods": "2"}, {"pods": rng.choice(["1", "2"])}
            spec["hard"] = hard
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}, {
        "hard": hard,
        "used": used,
    }


def container(rng, name):
    found = {"name": name, "image": "example.com/none"}
    limits = amounts(rng, 0.6)
    requests = {key: text for key, text in amounts(rng).items() if key not in limits or rng.random() < 0.3}
    for key in requests.keys() & limits.keys():  # a request above its limit is invalid
        requests[key] = limits[key]
    if requests or limits:
        found["resources"] = {"requests": requests, "limits": limits}
    if rng.random() < 0.3:
        found["ports"] = [{"containerPort": rng.randint(1, 60000)}]
    return found


def written_pod(rng, namespace, number):
    spec = {"containers": [container(rng, f"c{i}") for i in range(rng.randint(1, 2))]}
    if rng.random() < 0.3:
        spec["initContainers"] = [container(rng, "i0")]
        if rng.random() < 0.5:
            spec["initContainers"][0]["restartPolicy"] = "Always"
    for chance, part in (
        (0.3, {"priorityClassName": rng.choice(["gold", "meek", "nothing", "system-cluster-critical"])}),
        (0.3, {"runtimeClassName": rng.choice(["kata", "plain", "absent"])}),
        (0.2, {"nodeSelector": {"runtime": rng.choice(["kata", "runc"])}}),
        (0.2, {"tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}]}),
        (0.2, {"tolerations": [{"operator": "Exists"}]}),
        (0.2, {"activeDeadlineSeconds": 60}),
        (0.2, {"hostNetwork": True}),
        (0.1, {"overhead": {"cpu": "250m", "memory": "120Mi"}}),
        (0.1, {"resources": {"limits": {"cpu": "8", "memory": "8Gi"}}}),
        (0.1, {"priority": 3}),
    ):
        if rng.random() < chance:
            spec |= part
    metadata = {"name": f"web-{number}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def answer_of(admin, pod):
    """The server's message, or the pod as it would store it; the quota's status is seen a moment after it is set."""
    while True:
        try:
            return await admin.create(pod, dryRun="All")
        except ApiError as error:
            text = error.body["message"]
            if "status unknown for quota" not in text:
                return text
        await asyncio.sleep(0.05)


def parts(message):
    """A message that lists several violations lists them in no particular order."""
    return sorted(re.split(r", (?=minimum |maximum |\w+ max limit|spec\.)|[\[\]]", message))


def exact(listed):
    return {name: amount.exact for name, amount in pod_resources.amounts_of(listed).items() if amount.exact}


def facts(pod):
    spec = pod.spec
    return {
        "containers": [
            (
                one.name,
                exact(one.resources.requests if one.resources else None),
                exact(one.resources.limits if one.resources else None),
                [port.host_port for port in one.ports or ()],
            )
            for one in (*(spec.containers or ()), *(spec.init_containers or ()))
        ],
        "pod": [exact(spec.resources.requests), exact(spec.resources.limits)] if spec.resources else [],
        "tolerations": spec.tolerations or [],
        "others": [spec.node_selector or {}, exact(spec.overhead), spec.scheduler_name],
        "priority": [spec.priority, spec.priority_class_name, spec.preemption_policy],
    }


async def build(admin, rng, namespace):
    """A namespace with a LimitRange and quotas, on the server and as a state."""
    ranges = [limit_range(rng, namespace)] if rng.random() < 0.7 else []
    quotas = [quota(rng, namespace, f"q{i}") for i in range(rng.randint(0, 2))]
    await admin.create_all(ranges)
    stored = []
    for one, status in quotas:
        await admin.create(one)
        patched = await admin.patch(
            "resourcequotas", one["metadata"]["name"], {"status": status}, namespace, subresource="status"
        )
        stored.append(msgspec.convert(patched, ResourceQuota))
    return DesiredState(
        namespaces=[msgspec.convert({"metadata": {"name": namespace}}, Namespace)],
        limit_ranges=msgspec.convert(ranges, list[LimitRange]),
        resource_quotas=stored,
        priority_classes=msgspec.convert(CLASSES, list[PriorityClass]),
        runtime_classes=msgspec.convert(RUNTIMES, list[RuntimeClass]),
        context_complete=True,
    )


def admissions(state):
    for quotas in itertools.permutations(state.resource_quotas):
        yield PodAdmission(msgspec.structs.replace(state, resource_quotas=list(quotas)))


@pytest.mark.parametrize("seed", range(N_SCENES))
async def test_new_pods_become_the_same(seed, admin, namespace):
    rng = random.Random(seed)
    for one in (*CLASSES, *RUNTIMES):
        await admin.create(one)
    state = await build(admin, rng, namespace)
    for number in range(PODS_PER_SCENE):
        pod = written_pod(rng, namespace, number)
        # A dry run charges nothing, so each pod is judged by a ledger of its own. Quotas are asked in no particular order.
        ours = [one.admit(msgspec.convert(pod, Pod)) for one in admissions(state)]
        theirs = await answer_of(admin, pod)
        for _ in range(100):
            # Of several quotas the server may know only the first ones for a moment, and admit what the last one refuses.
            if isinstance(theirs, str) or not any(one.refused for one in ours):
                break
            await asyncio.sleep(0.05)
            theirs = await answer_of(admin, pod)
        if isinstance(theirs, str):
            assert parts(theirs) in [parts(one.refused) for one in ours], pod
        else:
            assert [one.refused for one in ours] == [""] * len(ours), pod
            assert facts(ours[0].pod) == facts(msgspec.convert(theirs, Pod)), pod
