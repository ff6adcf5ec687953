"""
Scenarios: situations with their expected outcome, from `scenarios/*.yaml` to questions of `decide pods`.

Nodes and pods are shorthand, the part under test is verbatim Kubernetes. A misspelt key, a pod on a node that does not exist
or an expectation that no answer could satisfy is rejected: a scenario that tests nothing is worse than none.
"""

from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[1] / "scenarios"
OTHERS = {"fleet", "enforcement", "preemption", "groups"}

RULE_IDS = {
    "NodeUnschedulable": "node-unschedulable",
    "NodeName": "node-name",
    "TaintToleration": "taint",
    "NodeAffinity": "node-affinity",
    "NodePorts": "node-ports",
    "NodeResourcesFit": "resources",
    "VolumeRestrictions": "volume-restrictions",
    "NodeVolumeLimits": "volume-limits",
    "VolumeBinding": "volume-binding",
    "VolumeZone": "volume-zone",
    "PodTopologySpread": "topology-spread",
    "InterPodAffinity": "pod-affinity",
}

SCENE = {"about", "nodes", "pods", "namespaces", "objects", "options", "expect"}
NODE = {"labels", "taints", "unschedulable", "allocatable", "images"}
POD = {"nodeName", "labels", "namespace", "annotations", "terminating", "phase", "uid", "ownerReferences", "spec"}
OPTIONS = {"semantics", "switches", "config", "daemonNamespaces"}
EXPECTATION = {"node", "nowhere", "best", "prefers", "rejected", "message"}

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}  # small enough that one pod changes the score
KNOWN_NAMESPACES = {"default", "kube-system"}


class InvalidScenarioError(Exception):
    """The scenario itself is invalid."""


class _Strict(yaml.SafeLoader):
    """YAML loader that rejects duplicate keys."""

    def construct_mapping(self, node, deep=False):
        merged = "tag:yaml.org,2002:merge"
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != merged]
        for key in keys:
            if keys.count(key) > 1:
                raise InvalidScenarioError(f"key {key!r} twice, line {node.start_mark.line + 1}")
        return super().construct_mapping(node, deep)


class Case:
    """One pending pod of a scenario under one preset: a question and the expected answer."""

    def __init__(self, claim, question, expected):
        self.claim = claim
        self.question = question
        self.expected = expected

    def check(self, answer):
        """Fail with the claim and the whole answer if the answer is not as expected."""
        for difference in differences(self.expected, answer):
            raise AssertionError(f"{self.claim}: {difference}\n{yaml.safe_dump(answer, sort_keys=False)}")


def all_cases():
    """The cases of pending pods; fleets, groups, enforcement and preemption have loaders of their own."""
    paths = [path for path in sorted(FOLDER.rglob("*.yaml")) if path.relative_to(FOLDER).parts[0] not in OTHERS]
    return [case for path in paths for case in load(path)]


def load(path):
    claim = str(path.relative_to(FOLDER).with_suffix(""))
    try:
        return cases(claim, read(path))
    except InvalidScenarioError as problem:
        raise InvalidScenarioError(f"{path}: {problem}") from None


def read(path):
    """The scenario as written; a duplicate key is rejected."""
    return yaml.load(path.read_text(), _Strict)


def cases(claim, scene):
    options, presets = checked(scene, SCENE, OPTIONS)
    nodes = [node(name, short or {}) for name, short in scene["nodes"].items()]
    pods = {name: pod(name, short or {}, scene) for name, short in scene["pods"].items()}
    pending = {name for name, manifest in pods.items() if "nodeName" not in manifest["spec"]}
    if pending != set(scene["expect"]):
        raise InvalidScenarioError(
            f"pending pods are {sorted(pending)}, expectations are for {sorted(scene['expect'])}"
        )
    found = []
    for preset in presets:
        for name, expected in scene["expect"].items():
            check_expectation(name, expected, scene)
            question = {
                "name": f"{claim}:{name}:{preset}",
                "nodes": nodes,
                "namespaces": namespaces(scene),
                "pods": [manifest for other, manifest in pods.items() if other not in pending],
                "pod": pods[name],
                "objects": scene.get("objects") or [],
                "options": {**options, "semantics": preset},
            }
            found.append(Case(claim, question, expected))
    return found


def checked(scene, known, known_options):
    """The options of a pod scenario and its presets, after its keys are checked."""
    check_keys("scenario", scene, known)
    for needed in ("about", "nodes", "pods", "expect"):
        if not scene.get(needed):
            raise InvalidScenarioError(f"{needed!r} is missing or empty")
    options = scene.get("options") or {}
    check_keys("options", options, known_options)
    presets = options.get("semantics") or "upstream"
    return options, presets if isinstance(presets, list) else [presets]


def check_keys(what, given, allowed):
    unknown = sorted(set(given) - allowed)
    if unknown:
        raise InvalidScenarioError(
            f"{what}: unknown {', '.join(map(repr, unknown))}; known are {', '.join(sorted(allowed))}"
        )


def namespaces(scene):
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": found or {}}}
        for name, found in (scene.get("namespaces") or {}).items()
    ]


def node(name, short):
    check_keys(f"node {name}", short, NODE)
    spec = {key: short[key] for key in ("taints", "unschedulable") if key in short}
    room = {**ROOM, **(short.get("allocatable") or {})}
    status = {"capacity": room, "allocatable": room, "images": short.get("images") or []}
    found = {"kubernetes.io/hostname": name, **(short.get("labels") or {})}
    labels = {key: value for key, value in found.items() if value is not None}  # null removes the host name
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def pod(name, short, scene):
    check_keys(f"pod {name}", short, POD)
    namespace = short.get("namespace") or "default"
    if namespace not in KNOWN_NAMESPACES and namespace not in (scene.get("namespaces") or {}):
        raise InvalidScenarioError(f"pod {name} is in namespace {namespace!r}, which does not exist")
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": short.get("labels") or {},
    }
    for key in ("uid", "annotations", "ownerReferences"):
        if key in short:
            metadata[key] = short[key]
    if short.get("terminating"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"containers": [{"name": "main", "image": "registry.example/main:1"}], **(short.get("spec") or {})}
    if "nodeName" in (short.get("spec") or {}):
        raise InvalidScenarioError(f"pod {name}: say nodeName beside the spec, not in it")
    if "nodeName" in short:
        if short["nodeName"] not in scene["nodes"]:
            raise InvalidScenarioError(f"pod {name} is on node {short['nodeName']!r}, which does not exist")
        spec["nodeName"] = short["nodeName"]
    elif short.get("terminating") or short.get("phase"):
        raise InvalidScenarioError(f"pod {name} is pending, so it has no phase and is not terminating")
    status = {"phase": short.get("phase") or ("Running" if "nodeName" in short else "Pending")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def check_expectation(name, expected, scene):
    check_keys(f"expectation for {name}", expected, EXPECTATION)
    if sum(key in expected for key in ("node", "nowhere", "best")) != 1:
        raise InvalidScenarioError(f"expectation for {name}: say exactly one of node, best and nowhere")
    named = [expected.get("node"), *(expected.get("best") or []), *(expected.get("prefers") or [])]
    rejected = expected.get("rejected") or {}
    for each in [*named, *rejected]:
        if each is not None and each not in scene["nodes"]:
            raise InvalidScenarioError(f"expectation for {name}: node {each!r} does not exist")
    for each, rule in rejected.items():
        if rule not in RULE_IDS.values():
            raise InvalidScenarioError(f"expectation for {name}: no rule {rule!r}")
        if each in named:
            raise InvalidScenarioError(f"expectation for {name}: {each} cannot be rejected and chosen")
    if expected.get("nowhere") and set(rejected) != set(scene["nodes"]):
        raise InvalidScenarioError(f"expectation for {name}: nowhere needs a rejection for every node")
    if "nowhere" in expected and expected["nowhere"] is not True:
        raise InvalidScenarioError(f"expectation for {name}: nowhere is true or absent")
    if "message" in expected and not expected.get("nowhere"):
        raise InvalidScenarioError(f"expectation for {name}: only a pod that fits nowhere has a message")


def differences(expected, answer):
    """
    The differences between expectation and answer.

    `node` is the one best node and `best` all of them; `prefers` lists nodes by strictly decreasing totals; `rejected` is the
    whole list of rejected nodes, each with the first rule that rejects it.
    """
    rejected = {
        name: RULE_IDS.get(verdict.get("plugin"), "node-affinity")
        for name, verdict in answer["nodes"].items()
        if verdict["code"] != "Success"
    }
    if rejected != (expected.get("rejected") or {}):
        yield f"expected rejections {expected.get('rejected') or {}}, got {rejected}"
    best = sorted(answer.get("best") or [])
    expected_best = sorted(expected.get("best") or ([expected["node"]] if "node" in expected else []))
    if best != expected_best:
        yield f"expected {expected_best or 'no node'}, got {best or 'no node'}"
    totals = [answer["nodes"][name].get("total") for name in expected.get("prefers") or []]
    if None in totals or totals != sorted(set(totals), reverse=True):
        yield f"expected decreasing totals for {expected['prefers']}, got {totals}"
    if "message" in expected and answer.get("message") != expected["message"]:
        yield f"expected the message {expected['message']!r}, got {answer.get('message')!r}"
