"""
Scenarios of groups: pods that are placed together, from `scenarios/groups` to manifests for `place`.

Shorthand is as in other scenarios; `times: N` makes N pods NAME-0 to NAME-(N-1), and `priority` is the pod's. `expect` says of
each pending pod its node (or a list of nodes, of which it is on one), or of its group, as `waits`, a part of the message.
`shared` leads from a topology key to pods that are in one domain of it, `apart` to pods that are in different ones.
"""

import json

import scenarios
from bayplan.library.cluster import Cluster
from reference import groups as reference_implementation
from scenarios import InvalidScenarioError, check_keys

FOLDER = scenarios.FOLDER / "groups"
SCENE = {"about", "nodes", "pods", "objects", "options", "expect"}
OPTIONS = {"groupBy"}
EXPECTATION = {"placed", "waits", "shared", "apart"}


def all_paths():
    return sorted(FOLDER.glob("*.yaml"))


class Scene:
    """The manifests of a scenario and what is expected."""

    def __init__(self, scene):
        check_keys("scenario", scene, SCENE)
        for needed in ("about", "nodes", "pods", "expect"):
            if not scene.get(needed):
                raise InvalidScenarioError(f"{needed!r} is missing or empty")
        self.options = scene.get("options") or {}
        check_keys("options", self.options, OPTIONS)
        self.expect = scene["expect"]
        check_keys("expect", self.expect, EXPECTATION)
        self.nodes = [scenarios.node(name, short or {}) for name, short in scene["nodes"].items()]
        self.pods = [made for name, short in scene["pods"].items() for made in pods(name, dict(short or {}), scene)]
        self.objects = scene.get("objects") or []
        pending = {pod["metadata"]["name"] for pod in self.pods if "nodeName" not in pod["spec"]}
        named = {*(self.expect.get("placed") or {}), *(self.expect.get("waits") or {})}
        if pending != named:
            raise InvalidScenarioError(f"pending pods are {sorted(pending)}, expectations are for {sorted(named)}")

    def manifests(self):
        return {"nodes": self.nodes, "pods": self.pods, "objects": self.objects}

    def place(self, folder):
        """The plan of `place`, which the reference implementation has checked."""
        path = folder / "scene.json"
        path.write_text("\n".join(map(json.dumps, [*self.nodes, *self.objects, *self.pods])))
        plan = Cluster.from_files(str(path)).place(group_by=self.options.get("groupBy", ""))
        nodes = {key: pod.node for key, pod in plan.pods.items() if pod.node}
        assert reference_implementation.violations(self.manifests(), nodes) == []
        return plan

    def check(self, plan):
        where = {pod.name: pod.node for pod in plan}
        said = {pod.name: pod.message for pod in plan}
        labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in self.nodes}
        where |= {one["metadata"]["name"]: one["spec"]["nodeName"] for one in self.pods if "nodeName" in one["spec"]}
        for name, expected in (self.expect.get("placed") or {}).items():
            allowed = expected if isinstance(expected, list) else [expected] if expected else labels
            assert where[name] in allowed, f"{name} is on {where[name] or 'no node'}: {said[name]}"
        for name, message in (self.expect.get("waits") or {}).items():
            assert not where[name], f"{name} is on {where[name]}"
            assert message in said[name]
        for word, is_shared in (("shared", True), ("apart", False)):
            for key, lists in (self.expect.get(word) or {}).items():
                for names in lists:
                    domains = {labels[where[name]][key] for name in names}
                    assert len(domains) == (1 if is_shared else len(names)), f"{names} are in {domains} of {key}"


def pods(name, short, scene):
    times, priority = short.pop("times", None), short.pop("priority", None)
    names = [name] if times is None else [f"{name}-{i}" for i in range(times)]
    for one in names:
        made = scenarios.pod(one, short, scene)
        if priority is not None:
            made["spec"]["priority"] = priority
        yield made
