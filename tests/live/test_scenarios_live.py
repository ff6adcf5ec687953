"""Every scheduling scenario that an API server can hold gives the same node live as offline."""

import copy

import msgspec
import pytest

import scenarios
from bayplan.reading import questions
from live.admin import wait_for
from live.bayplan_running import NAME, in_process

WAITS = 20
# Objects as an API server would have changed them, which it does not take back.
AFTER_ADMISSION = {"match-label-keys/an-expanded-selector-stays-as-it-is"}


def expressible(case):
    """Whether an API server would take the scene: some hold what only files and annotations can."""
    if case.claim in AFTER_ADMISSION:
        return False
    # Somebody would have to make and bind their volumes first: test_running has that.
    if any(written["kind"] == "PersistentVolumeClaim" for written in case.question["objects"]):
        return False
    for written in (*case.question["pods"], case.question["pod"]):
        terms = _terms(written["spec"].get("affinity") or {})
        if any(not term.get("topologyKey") or term.get("namespaces") == [] for term in terms):
            return False
        if any(name in term for term in terms for name in ("limit", "tolerateNamespaces")):
            return False
        if "requiredDuringSchedulingRequiredDuringExecution" in str(written["spec"]):
            return False
    return True


def _terms(affinity):
    for side in affinity.values():
        for terms in side.values() if isinstance(side, dict) else ():
            for term in terms if isinstance(terms, list) else ():
                yield term.get("podAffinityTerm", term)


CASES = [case for case in scenarios.all_cases() if expressible(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.question["name"])
async def test_the_scenario_ends_the_same_on_a_real_api_server(case, admin, kube_server):
    question = msgspec.convert(case.question, questions.PodQuestion)
    situation = questions.situation_of(question)
    await set_the_scene(case.question, admin)
    async with in_process(kube_server, semantics=situation.index.semantics, config=config_of(case.question)):
        name, namespace = case.question["pod"]["metadata"]["name"], case.question["pod"]["metadata"]["namespace"]
        await admin.create(waiting(case.question["pod"]))
        if case.expected.get("nowhere"):
            found = await wait_for(lambda: refusal(admin, name, namespace), timeout=WAITS)
            assert found.startswith(case.expected.get("message") or f"0/{len(case.question['nodes'])} nodes")
        else:
            node = await wait_for(lambda: admin.node_of(name, namespace), timeout=WAITS)
            assert node in (case.expected.get("best") or [case.expected["node"]])


async def set_the_scene(question, admin):
    for namespace in question["namespaces"]:
        if namespace["metadata"]["name"] in scenarios.KNOWN_NAMESPACES:
            await admin.patch("namespaces", namespace["metadata"]["name"], {"metadata": namespace["metadata"]})
        else:
            await admin.create(namespace)
    for node in question["nodes"]:
        await admin.create(node)
        await admin.patch("nodes", node["metadata"]["name"], {"status": node["status"]}, subresource="status")
    for written in (*question["objects"], *question["pods"]):
        await place(written, admin)


async def place(written, admin):
    made = copy.deepcopy(written)
    metadata = made["metadata"]
    metadata.pop("uid", None)
    terminating = metadata.pop("deletionTimestamp", None)
    status = made.pop("status", None)
    if made["kind"] == "Pod":
        metadata.setdefault("finalizers", ["example.com/stays"] if terminating else [])
    await admin.create(made)
    if status and made["kind"] == "Pod" and status.get("phase") != "Pending":
        await admin.patch("pods", metadata["name"], {"status": status}, metadata["namespace"], subresource="status")
    if terminating:
        await admin.delete("pods", metadata["name"], metadata["namespace"])


def waiting(written):
    made = copy.deepcopy(written)
    made["metadata"].pop("uid", None)
    made.pop("status", None)
    made["spec"]["schedulerName"] = NAME
    return made


def config_of(question):
    return question["options"].get("config")


async def refusal(admin, name, namespace):
    found = await admin.get("pods", name, namespace)
    conditions = found["status"].get("conditions") or []
    return next((one["message"] for one in conditions if one["type"] == "PodScheduled"), None)
