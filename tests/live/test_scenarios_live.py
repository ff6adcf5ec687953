"""Every scenario that an API server can store has the same result live as offline: node, victims, message."""

import copy

import msgspec
import pytest

import preemption_scenarios
import scenarios
from bayplan.reading import questions
from live.admin import wait_for
from live.bayplan_running import NAME, in_process

WAITS = 20
# Fields that an API server sets itself and does not accept.
AFTER_ADMISSION = {"match-label-keys/an-expanded-selector-is-not-expanded-again"}


def why_not(case):
    """Return why an API server cannot store the scenario, such as fields that only files have; empty if it can."""
    if case.claim in AFTER_ADMISSION:
        return "an API server would expand the selector once more"
    for written in (*case.question["pods"], case.question["pod"]):
        for term in _terms(written["spec"].get("affinity") or {}):
            if not term.get("topologyKey"):
                return "an API server rejects an empty topologyKey"
            if term.get("namespaces") == []:
                return "an API server drops an empty list of namespaces"
            if {"limit", "tolerateNamespaces"} & term.keys():
                return "an API server drops fields it does not know; the annotation has scenarios of its own"
        if "requiredDuringSchedulingRequiredDuringExecution" in str(written["spec"]):
            return "an API server drops fields it does not know; the annotation has scenarios of its own"
    return ""


def _terms(affinity):
    for side in affinity.values():
        for terms in side.values() if isinstance(side, dict) else ():
            for term in terms if isinstance(terms, list) else ():
                yield term.get("podAffinityTerm", term)


def shown(cases):
    """Return the scenarios as parameters; those that cannot run live are skipped with the reason (`-rs`)."""
    found = []
    for case in cases:
        reason = why_not(case)
        marks = [pytest.mark.skip(reason=f"{case.claim}: {reason}")] if reason else []
        found.append(pytest.param(case, id=case.question["name"], marks=marks))
    return found


def test_the_exceptions_are_scenarios():
    assert {case.claim for case in scenarios.all_cases()} >= AFTER_ADMISSION


@pytest.mark.parametrize("case", shown(scenarios.all_cases()))
async def test_the_scenario_ends_the_same_on_a_real_api_server(case, admin, kube_server):
    await set_the_scene(case.question, admin)
    async with scheduling(case.question, kube_server):
        name, namespace = case.question["pod"]["metadata"]["name"], case.question["pod"]["metadata"]["namespace"]
        await admin.create(waiting(case.question["pod"]))
        if case.expected.get("nowhere"):
            found = await wait_for(lambda: rejection(admin, name, namespace), timeout=WAITS)
            assert found.startswith(case.expected.get("message") or f"0/{len(case.question['nodes'])} nodes")
        else:
            node = await wait_for(lambda: node_for(admin, name, namespace), timeout=WAITS)
            assert node in (case.expected.get("best") or [case.expected["node"]])


@pytest.mark.parametrize("case", shown(preemption_scenarios.all_cases()))
async def test_the_same_victims_are_chosen_on_a_real_api_server(case, admin, kube_server):
    await make_priorities(case.question, admin)
    await set_the_scene(case.question, admin)
    leaving = await leaving_pods(admin)
    pod = case.question["pod"]
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    await admin.create(waiting(with_class(pod)))
    await admin.patch("pods", name, {"status": pod["status"]}, namespace, subresource="status")
    async with scheduling(case.question, kube_server):
        message = await wait_for(lambda: rejection(admin, name, namespace), timeout=WAITS)
        if case.expected.get("frees"):
            await wait_for(lambda: nominated(admin, name, namespace), timeout=WAITS)
            expected = {key if "/" in key else f"default/{key}" for key in case.expected["victims"]}
            await wait_for(lambda: same(expected, leaving_pods(admin), leaving), timeout=WAITS)
            assert await nominated(admin, name, namespace) == case.expected["frees"]
        else:
            assert message.endswith(case.expected["message"])
            assert await leaving_pods(admin) == leaving


def scheduling(question, kube_server):
    situation = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    return in_process(kube_server, semantics=situation.index.semantics, config=question["options"].get("config"))


async def same(expected, leaving, before):
    return await leaving - before == expected


async def set_the_scene(question, admin):
    for namespace in question["namespaces"]:
        if namespace["metadata"]["name"] in scenarios.KNOWN_NAMESPACES:
            await admin.patch("namespaces", namespace["metadata"]["name"], {"metadata": namespace["metadata"]})
        else:
            await admin.create(namespace)
    for node in question["nodes"]:
        await admin.create(node)
        await admin.patch("nodes", node["metadata"]["name"], {"status": node["status"]}, subresource="status")
    # Claims precede their volumes, which have the uid of the claim.
    uids = {}
    for written in sorted(question["objects"], key=lambda one: one["kind"] != "PersistentVolumeClaim"):
        await place(written, admin, uids)
    for written in question["pods"]:
        await place(with_class(written), admin, uids)


async def place(written, admin, uids):
    made = copy.deepcopy(written)
    metadata = made["metadata"]
    metadata.pop("uid", None)
    terminating = metadata.pop("deletionTimestamp", None)
    status = made.pop("status", None)
    if made["kind"] == "Pod":
        metadata.setdefault("finalizers", ["example.com/stays"] if terminating else [])
        if not made["spec"].get("nodeName"):  # an existing pod, not one to schedule
            made["spec"] |= {"schedulerName": NAME, "schedulingGates": [{"name": "example.com/waits"}]}
    if "claimRef" in made.get("spec", {}):
        made["spec"]["claimRef"]["uid"] = uids[made["spec"]["claimRef"]["name"]]
    found = await admin.create(made)
    uids[metadata["name"]] = found["metadata"]["uid"]
    resource = {"Pod": "pods", "PodDisruptionBudget": "policy/v1/poddisruptionbudgets"}.get(made["kind"])
    if resource and status and status != {"phase": "Pending"}:
        change = {"status": status}
        await admin.patch(resource, metadata["name"], change, metadata["namespace"], subresource="status")
    if terminating:
        await admin.delete("pods", metadata["name"], metadata["namespace"], grace=None)


async def make_priorities(question, admin):
    """Create PriorityClasses for the priorities and preemption policies of the pods."""
    specs = [pod["spec"] for pod in (*question["pods"], question["pod"])]
    for name, spec in {class_of(spec): spec for spec in specs}.items():
        made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        policy = spec.get("preemptionPolicy", "PreemptLowerPriority")
        await admin.create(made | {"value": spec["priority"], "preemptionPolicy": policy})


def class_of(spec):
    return f"priority-{spec['priority']}-{spec.get('preemptionPolicy', 'any').lower()}"


def with_class(written):
    """Return the pod as a client may create it: with a class instead of a priority, and images for all containers."""
    if "priority" not in written["spec"]:
        return written
    spec = {name: value for name, value in written["spec"].items() if name != "priority"}
    containers = [{"image": "registry.example/main:1", **container} for container in spec["containers"]]
    return written | {"spec": spec | {"priorityClassName": class_of(written["spec"]), "containers": containers}}


def waiting(written):
    made = copy.deepcopy(written)
    made["metadata"].pop("uid", None)
    made.pop("status", None)
    made["spec"]["schedulerName"] = NAME
    return made


async def node_for(admin, name, namespace):
    """Return the node of the pod, else the selected node of its claim: there is no provisioner."""
    found = await admin.get("pods", name, namespace)
    if found["spec"].get("nodeName"):
        return found["spec"]["nodeName"]
    for volume in found["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            claim = await admin.get("persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"], namespace)
            return (claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node", "")
    return ""


async def nominated(admin, name, namespace):
    return (await admin.get("pods", name, namespace))["status"].get("nominatedNodeName", "")


async def leaving_pods(admin):
    """Return the terminating pods."""
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in await admin.items("pods")
        if "deletionTimestamp" in pod["metadata"]
    }


async def rejection(admin, name, namespace):
    found = await admin.get("pods", name, namespace)
    conditions = found["status"].get("conditions") or []
    return next((one["message"] for one in conditions if one["type"] == "PodScheduled"), None)
