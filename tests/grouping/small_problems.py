"""Random small problems of pods to be placed together, and their answer by trying every plan with the reference."""

import copy
import itertools
import random

import msgspec

from bayplan.engine.engine import Engine
from bayplan.grouping.problem import GroupProblem, GroupToPlace
from bayplan.model.groups import MEMBER_OF
from bayplan.model.terms import REGION, ZONE
from bayplan.reading import questions
from bayplan.rules import profiles
from reference import pods as reference_implementation
from reference import strategies
from reference.strategies import HOSTNAME

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
KEYS = (HOSTNAME, ZONE, "rack")


class SmallProblem:
    """A question without its pod, the pending pods, and the groups of some: (names, how many must run, key)."""

    def __init__(self, question, pending, groups=()):
        self.question, self.pending, self.groups = question, pending, groups
        self.names = [name_of(pod) for pod in pending]
        self.nodes = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in question["nodes"]}

    def of_product(self):
        """The problem as the product has it."""
        situations = [self._situation(pod) for pod in self.pending]
        index, profile = situations[0].index, situations[0].profile
        engine = Engine(index, profiles.pod_rules(profile))
        workloads = {one.workload.key: one.workload for one in situations}
        groups = []
        for number, (names, least, key) in enumerate(self.groups):
            for name in names:
                labels = {**workloads[name].labels, MEMBER_OF: f"default/g{number}"}
                workloads[name] = msgspec.structs.replace(workloads[name], labels=labels)
            of_group = GroupToPlace(key=f"default/g{number}", pods=tuple(names), min_members=least, topology_key=key)
            groups.append(of_group)
        pods = tuple(workloads.values())
        return GroupProblem(pods=pods, groups=tuple(groups), index=index, engine_of=lambda _: engine)

    def _situation(self, pod):
        asked = msgspec.convert({**self.question, "pod": pod}, questions.PodQuestion)
        return questions.pod_situation_of(asked)

    def plans(self):
        """Every plan that has enough pods."""
        optional = {name for names, _, _ in self.groups for name in names}
        places = [[*self.nodes, *([None] if name in optional else [])] for name in self.names]
        for nodes in itertools.product(*places):
            plan = {name: node for name, node in zip(self.names, nodes, strict=True) if node is not None}
            if all(sum(name in plan for name in names) >= least for names, least, _ in self.groups):
                yield plan

    def keeps_rules(self, plan):
        """Whether a plan keeps the rules, by the reference implementation: each pod beside all others."""
        for names, _, key in self.groups:
            if key and len({self.nodes[plan[name]].get(key, "") for name in names if name in plan} - {""}) > 1:
                return False
            if key and any(key not in self.nodes[plan[name]] for name in names if name in plan):
                return False
        return all(self._fits(pod, plan) for pod in self.pending if name_of(pod) in plan)

    def _fits(self, pod, plan):
        others = [self._placed(other, plan) for other in self.pending if other is not pod and name_of(other) in plan]
        question = {**self.question, "pod": pod, "pods": [*self.question["pods"], *others]}
        return reference_implementation.answer(question)["nodes"][plan[name_of(pod)]]["code"] == "Success"

    def _placed(self, pod, plan):
        node = plan[name_of(pod)]
        placed = copy.deepcopy(pod)
        placed["spec"]["nodeName"] = node
        copied = {key: self.nodes[node][key] for key in (ZONE, REGION) if key in self.nodes[node]}
        placed["metadata"]["labels"] = {**placed["metadata"].get("labels", {}), **copied}
        return placed

    def is_solvable(self):
        return any(self.keeps_rules(plan) for plan in self.plans())


def name_of(pod):
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def any_problem(seed, preset):
    """Pods with any rules at all, most of them alike."""
    dice = strategies.Dice(random.Random(seed).randrange)
    question = strategies.question(dice, presets=(preset,), most_nodes=3, most_pods=4)
    question["pod"]["spec"].pop("nodeName", None)
    pending = [question["pod"]]
    for number in range(dice.number(1, 3)):
        if dice.often(3):
            pod = copy.deepcopy(pending[-1])
            pod["metadata"]["labels"] = strategies.labels(dice) if dice.rarely(3) else pod["metadata"]["labels"]
        else:
            pod = strategies.pending_pod(dice, "x")
        pod["metadata"].update(name=f"new-{number}", uid=f"new-{number}")
        pending.append(pod)
    return SmallProblem(question, pending, groups(dice, pending))


def groups(dice, pending):
    if dice.often(3):
        return ()
    names = [name_of(pod) for pod in pending]
    members = names[: dice.number(1, len(names))]
    return ((members, dice.number(1, len(members)), dice.pick(("", *KEYS))),)


def dense_problem(seed):
    """Pods of few apps with many hard rules between them, on nodes with little room."""
    dice = strategies.Dice(random.Random(seed).randrange)
    nodes = []
    for number in range(dice.number(2, 4)):
        labels = {HOSTNAME: f"n{number}", ZONE: dice.pick(("z1", "z2")), "rack": dice.pick(("r1", "r2", "r3"))}
        if dice.rarely(6):
            del labels[dice.pick((ZONE, "rack"))]
        room = {"cpu": dice.pick(("1", "2", "3")), "memory": "8Gi", "pods": dice.pick(("2", "110", "110"))}
        spec = {"taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]} if dice.rarely(6) else {}
        status = {"capacity": room, "allocatable": room}
        nodes.append(strategies.thing("Node", f"n{number}", labels=labels, spec=spec, status=status))
    placed = [_dense_pod(dice, f"old-{i}", f"n{dice.below(len(nodes))}") for i in range(dice.number(0, 2))]
    pending, template = [], None
    for number in range(dice.number(2, 4)):
        if template is None or dice.rarely(3):
            template = _dense_pod(dice, "x")
        pod = copy.deepcopy(template)
        pod["metadata"].update(name=f"new-{number}", uid=f"new-{number}")
        pending.append(pod)
    question = {"name": "dense", "nodes": nodes, "namespaces": [], "pods": placed, "objects": [], "options": {}}
    return SmallProblem(question, pending, groups(dice, pending))


def _dense_pod(dice, name, node=""):
    app = dice.pick(("a", "b", "c"))
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app, "tier": dice.pick("xy")}}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": dice.pick(("200m", "1", "1500m"))}}}
    if dice.rarely(6):
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec, affinity = {"containers": [container]}, {}
    if dice.rarely(2):
        affinity["podAffinity"] = {REQUIRED: [_dense_term(dice, app) for _ in range(dice.number(1, 2))]}
    if dice.rarely(2):
        affinity["podAntiAffinity"] = {REQUIRED: [_dense_term(dice, app)]}
    if affinity:
        spec["affinity"] = affinity
    if dice.rarely(4):
        term = {**_dense_term(dice, app), "limit": dice.number(0, 2)}
        rule = {"podAntiAffinity": {"requiredDuringSchedulingRequiredDuringExecution": [term]}}
        metadata["annotations"] = {"bayplan.io/affinity": msgspec.json.encode(rule).decode()}
    if dice.rarely(3):
        constraint = {"maxSkew": dice.number(1, 2), "whenUnsatisfiable": "DoNotSchedule", **_dense_term(dice, app)}
        if dice.rarely(2):
            constraint["minDomains"] = dice.number(1, 3)
        if dice.rarely(3):
            constraint["nodeTaintsPolicy"] = "Honor"
        spec["topologySpreadConstraints"] = [constraint]
    if dice.rarely(8):
        spec["nodeSelector"] = {ZONE: "z1"}
    if dice.rarely(4):
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if node:
        spec["nodeName"] = node
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _dense_term(dice, app):
    selector = {"matchLabels": {"app": app if dice.often(3) else dice.pick(("a", "b"))}}
    if dice.rarely(4):
        selector = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]}
    return {"topologyKey": dice.pick(KEYS), "labelSelector": selector}
