"""
Random clusters so full that the pending pod mostly fits nowhere, as questions of `decide preemption`.

Made from the questions of `decide pods`: each pod gets a priority and a start time, nodes become small, budgets and
nominated pods are added.
"""

import random

from hypothesis import strategies as st

from reference import strategies
from reference.strategies import HOSTNAME, ZONE, Dice

PRIORITIES = (0, 0, 10, 100, -5, 1000, None)
STARTS = (None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-01-02T00:00:00Z", "2026-01-02T01:00:00+01:00")
SWITCHES = ("preemptAcrossNodes", "spareAffinityPartners")


@st.composite
def questions(draw, **choices):
    """Questions as `question` draws them."""
    return question(Dice(lambda below: draw(st.integers(0, below - 1))), **choices)


def seeded(seed, **choices):
    """The question of this number."""
    return question(Dice(random.Random(seed).randrange), **choices)


def question(dice, presets=("upstream", "design"), switches=True, most_nodes=5, most_pods=24):
    drawn = strategies.question(dice, presets, switches, most_nodes, most_pods)
    if switches and dice.rarely(2):
        drawn["options"].setdefault("switches", {})[dice.pick(SWITCHES)] = dice.rarely(2)
    names = [node["metadata"]["name"] for node in drawn["nodes"]]
    for node in drawn["nodes"]:
        shrink(dice, node, [pod for pod in drawn["pods"] if pod["spec"]["nodeName"] == node["metadata"]["name"]])
    for pod in drawn["pods"]:
        age(dice, pod)
        if dice.rarely(8):
            add_anti_affinity(dice, pod)
    pending(dice, drawn, names)
    if dice.rarely(5):
        zone_conflict(dice, drawn)
    drawn["pods"] += [nominated(dice, f"q{i}", names) for i in range(dice.number(0, 3) if dice.rarely(3) else 0)]
    drawn["objects"] += [budget(dice, f"b{i}") for i in range(dice.number(0, 3))]
    if dice.rarely(6):
        drawn["objects"].append({**strategies.thing("PriorityClass", "high"), "value": 100, "globalDefault": True})
    return drawn


def pending(dice, drawn, names):
    """The pending pod: of high priority, requesting something that is scarce."""
    pod = drawn["pod"]
    spec = pod["spec"]
    spec["priority"] = dice.pick((100, 50, 10, 500))
    if dice.often(3):
        spec["containers"][0]["resources"] = {"requests": {"cpu": dice.pick(("1500m", "1", "500m"))}}
    if dice.rarely(3):
        add_anti_affinity(dice, pod)
    if dice.rarely(4):
        add_spread_constraint(dice, pod)
    if dice.rarely(4):
        add_affinity(dice, pod)
    if dice.rarely(20):
        spec["preemptionPolicy"] = dice.pick(("Never", "PreemptLowerPriority"))
    if dice.rarely(4):
        pod["status"]["nominatedNodeName"] = dice.pick((*names, "gone"))


def zone_conflict(dice, drawn):
    """Only anti-affinity within a zone rejects nodes: the other pods have no terms."""
    for pod in (*drawn["pods"], drawn["pod"]):
        pod["spec"].pop("affinity", None)
        pod["metadata"].pop("annotations", None)
    for pod in [drawn["pod"], *dice.some(drawn["pods"], 0, 2)]:
        term = {"topologyKey": ZONE, "labelSelector": some_app(dice), "namespaceSelector": {}}
        side = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        pod["spec"]["affinity"] = {"podAntiAffinity": side}
    if dice.rarely(3):
        add_affinity(dice, drawn["pod"])


def shrink(dice, node, here):
    """Mostly the node has capacity for its own pods and no other."""
    for room in (node["status"].get("allocatable"), node["status"]["capacity"]):
        if room is not None and dice.often(3):
            room["pods"] = str(max(1, len(here)))
        elif room is not None:
            room["cpu"] = dice.pick(("2", "4", "1"))


def age(dice, pod):
    priority, start = dice.pick(PRIORITIES), dice.pick(STARTS)
    if priority is not None:
        pod["spec"]["priority"] = priority
    elif dice.rarely(3):
        pod["spec"]["priorityClassName"] = "high"
    if start is not None:
        pod["status"]["startTime"] = start
    if pod["metadata"].get("deletionTimestamp") and dice.rarely(2):
        reason = dice.pick(("PreemptionByScheduler", "EvictionByEvictionAPI"))
        pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]


def add_anti_affinity(dice, pod):
    side = pod["spec"].setdefault("affinity", {}).setdefault("podAntiAffinity", {})
    term = {"topologyKey": dice.pick((HOSTNAME, ZONE)), "labelSelector": strategies.label_selector(dice)}
    side.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)


def add_affinity(dice, pod):
    side = pod["spec"].setdefault("affinity", {}).setdefault("podAffinity", {})
    term = {"topologyKey": dice.pick((HOSTNAME, ZONE)), "labelSelector": some_app(dice)}
    side.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)


def add_spread_constraint(dice, pod):
    constraint = {
        "topologyKey": dice.pick((HOSTNAME, ZONE)),
        "maxSkew": dice.number(1, 2),
        "labelSelector": some_app(dice),
    }
    pod["spec"]["topologySpreadConstraints"] = [{**constraint, "whenUnsatisfiable": "DoNotSchedule"}]


def some_app(dice):
    return {"matchLabels": {"app": dice.pick(strategies.POD_LABELS["app"])}}


def nominated(dice, name, names):
    pod = strategies.pending_pod(dice, name, lively=2)
    pod["spec"]["priority"] = dice.pick((1000, 100, 0))
    pod["status"]["nominatedNodeName"] = dice.pick((*names, "gone"))
    return pod


def budget(dice, name):
    found = strategies.thing("PodDisruptionBudget", name, "policy/v1", namespace=dice.pick(strategies.HOMES))
    found["spec"] = {"selector": some_app(dice) if dice.rarely(2) else strategies.label_selector(dice)}
    if dice.rarely(20):
        found["spec"] = {}
    found["status"] = {"disruptionsAllowed": dice.pick((0, 0, 1, 2))}
    if dice.rarely(3):
        found["status"]["disruptedPods"] = {f"p{dice.below(20)}": "2026-01-01T00:00:00Z"}
    return found
