"""
Preemption scenarios: an unschedulable pod and its victims, from `scenarios/preemption` to questions of `decide preemption`.

Shorthand is as in other scenarios; pods may also have `priority`, `started`, `nominated` (the nominated node of a pending
pod) and `preempted` (a terminating victim). `budgets` are shorthand too. `expect` has the node to free with the victims, or
the message. Pending pods without an expectation are part of the state.
"""

import yaml

import scenarios
from scenarios import InvalidScenarioError, check_keys

FOLDER = scenarios.FOLDER / "preemption"
SCENE = {"about", "nodes", "pods", "namespaces", "objects", "budgets", "options", "expect"}
OPTIONS = {"semantics", "switches"}
BUDGET = {"namespace", "selector", "allowed", "disrupted"}
EXPECTATION = {"frees", "victims", "message"}
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


class Case:
    """One pending pod of a scenario under one preset: a question and the expected answer."""

    def __init__(self, claim, question, expected):
        self.claim, self.question, self.expected = claim, question, expected

    def check(self, answer):
        """Fail with the claim and the whole answer if the answer is not as expected."""
        got = {"frees": answer["nominated"], "victims": sorted(answer["victims"]), "message": answer["message"]}
        victims = sorted(f"default/{name}" if "/" not in name else name for name in self.expected.get("victims") or [])
        wanted = {"frees": self.expected.get("frees") or "", "victims": victims}
        wanted["message"] = self.expected.get("message") or ""
        assert got == wanted, f"{self.claim}:\n{yaml.safe_dump({'expected': wanted, 'got': got}, sort_keys=False)}"


def all_cases():
    return [case for path in sorted(FOLDER.rglob("*.yaml")) for case in load(path)]


def load(path):
    try:
        return cases(path.stem, scenarios.read(path))
    except InvalidScenarioError as problem:
        raise InvalidScenarioError(f"{path}: {problem}") from None


def cases(claim, scene):
    options, presets = scenarios.checked(scene, SCENE, OPTIONS)
    nodes = [scenarios.node(name, short or {}) for name, short in scene["nodes"].items()]
    pods = {name: pod(name, dict(short or {}), scene) for name, short in scene["pods"].items()}
    found = []
    for preset in presets:
        for name, expected in scene["expect"].items():
            check_expectation(name, expected, scene)
            question = {
                "name": f"{claim}:{name}:{preset}",
                "nodes": nodes,
                "namespaces": scenarios.namespaces(scene),
                "pods": [manifest for other, manifest in pods.items() if other != name],
                "pod": pods[name],
                "objects": [*(scene.get("objects") or []), *budgets(scene)],
                "options": {**options, "semantics": preset},
            }
            found.append(Case(claim, question, expected))
    return found


def pod(name, short, scene):
    own = {key: short.pop(key) for key in ("priority", "started", "nominated", "preempted") if key in short}
    if own.get("preempted"):
        short["terminating"] = True
    for key, needs_node in (("started", True), ("preempted", True), ("nominated", False)):
        if key in own and ("nodeName" in short) is not needs_node:
            raise InvalidScenarioError(f"pod {name}: {key} is for {'running' if needs_node else 'pending'} pods")
    made = scenarios.pod(name, short, scene)
    made["spec"].setdefault("priority", own.get("priority", 0))
    if "started" in own:
        made["status"]["startTime"] = own["started"]
    if "nominated" in own:
        made["status"]["nominatedNodeName"] = own["nominated"]
    if own.get("preempted"):
        made["status"]["conditions"] = [PREEMPTED]
    return made


def budgets(scene):
    for name, short in (scene.get("budgets") or {}).items():
        check_keys(f"budget {name}", short, BUDGET)
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": short.get("namespace") or "default"},
            "spec": {"selector": {"matchLabels": short["selector"]}},
            "status": {
                "disruptionsAllowed": short.get("allowed") or 0,
                "disruptedPods": dict.fromkeys(short.get("disrupted") or (), "2026-01-01T00:00:00Z"),
            },
        }


def check_expectation(name, expected, scene):
    check_keys(f"expectation for {name}", expected, EXPECTATION)
    if name not in scene["pods"] or "nodeName" in (scene["pods"][name] or {}):
        raise InvalidScenarioError(f"expectation for {name}: no such pod is pending")
    if ("frees" in expected) == ("message" in expected) or ("frees" in expected) != bool(expected.get("victims")):
        raise InvalidScenarioError(f"expectation for {name}: give the node to free and the victims, or the message")
    for each in (expected.get("frees"), *(expected.get("victims") or ())):
        if each is not None and each.removeprefix("default/").split("/")[-1] not in {*scene["nodes"], *scene["pods"]}:
            raise InvalidScenarioError(f"expectation for {name}: {each!r} does not exist")
