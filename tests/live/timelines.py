"""
Timelines that are played on a real API server and simulated, each with the objects that it begins with.

What would take minutes in reality, such as grace times and tolerations, is short; ties between nodes are broken by the same seed.
"""

import copy
import json

from simulating.clusters import ZONE, apart, budget, deployment, node, workload

HOST = "kubernetes.io/hostname"
AT_ONCE = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    for what in ("not-ready", "unreachable")
]
SPREAD = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]  # fmt: skip
ONE_MORE = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
ONE_FEWER = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def nodes(*cpus, n_zones=3):
    return [node(f"node-{n}", "abc"[n % n_zones], cpu=str(cpu)) for n, cpu in enumerate(cpus)]


def image(number, name="web", kind="Deployment", replicas=3, **more):
    changed = workload(kind, name, replicas, **more)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = f"{name}:{number}"
    return changed


def away(**more):
    """A pod that leaves a node which is not ready at once."""
    return {"tolerations": AT_ONCE, **more}


def in_execution(written, side, name, key):
    """The workload with a rule that holds during execution, as an annotation: API servers drop the field."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}}
    rule = {side: {"requiredDuringSchedulingRequiredDuringExecution": [term]}}
    written["spec"]["template"]["metadata"]["annotations"] = {"bayplan.io/affinity": json.dumps(rule)}
    return written


def for_bayplan(found):
    """The objects and steps, with Bayplan as the scheduler of all pods."""
    found = copy.deepcopy(found)
    objects, steps = found
    for one in (*objects, *(step["apply"] for step in steps if "apply" in step)):
        if "template" in one.get("spec", {}):
            one["spec"]["template"]["spec"]["schedulerName"] = "bayplan"
    return objects, steps


def priority(name, value):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


# name → objects and steps; a step may have several verbs
TIMELINES = {
    "a Deployment is scaled up and down": (
        [*nodes(4, 4, 4), deployment(replicas=2)],
        [{"scale": {"web": 7}}, {"scale": {"web": 3}}],
    ),
    "a Deployment is scaled beyond the room": ([*nodes(2, 2), deployment(replicas=2)], [{"scale": {"web": 6}}]),
    "a rolling update with a surge": (
        [*nodes(4, 4, 4), deployment(replicas=4, strategy=ONE_MORE)],
        [{"restart": "Deployment/web"}],
    ),
    "a rolling update without a surge": (
        [*nodes(2, 2), deployment(replicas=4, strategy=ONE_FEWER)],
        [{"restart": "Deployment/web"}],
    ),
    "an update that recreates": ([*nodes(2, 2), deployment(replicas=4, strategy={"type": "Recreate"})], [{"restart": "Deployment/web"}]),
    "an update that gets stuck": (
        [*nodes(4, 4, 4), deployment(replicas=3, pod=apart("web"), strategy=ONE_MORE)],
        [{"restart": "Deployment/web"}],
    ),
    "back to the first template": (
        [*nodes(4, 4), image(1, strategy=ONE_MORE)],
        [{"apply": image(2, strategy=ONE_MORE)}, {"apply": image(1, strategy=ONE_MORE)}, {"scale": {"web": 4}}],
    ),
    "a StatefulSet is scaled and updated": (
        [*nodes(4, 4, 4), workload("StatefulSet", "db", 3)],
        [{"scale": {"StatefulSet/db": 5}}, {"restart": "StatefulSet/db"}, {"scale": {"StatefulSet/db": 2}}],
    ),
    "a DaemonSet follows nodes": (
        [*nodes(4, 4), workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}})],
        [{"relabel": {"node/node-0": {"disk": "ssd"}}}, {"apply": node("node-2", "c", disk="ssd")}, {"relabel": {"node/node-0": {"disk": None}}}],
    ),
    "a node is cordoned and uncordoned": (
        [*nodes(6, 2), deployment(replicas=2)],
        [{"cordon": "node/node-0"}, {"scale": {"web": 5}}, {"uncordon": "node/node-0"}],
    ),
    "a node is drained as a budget allows": (
        [*nodes(4, 4, 4), deployment(replicas=4), budget("web", minAvailable=3)],
        [{"drain": "node/node-0"}],
    ),
    "a drain that a budget does not allow": (
        [*nodes(4, 1), deployment(replicas=3), budget("web", maxUnavailable=0)],
        [{"drain": "node/node-0"}],
    ),
    "a taint drives pods away": (
        [*nodes(4, 4, 4), deployment(replicas=3)],
        [{"taint": {"node/node-0": "broken=disk:NoExecute"}}, {"scale": {"web": 6}}, {"taint": {"node/node-0": "broken-"}}, {"scale": {"web": 8}}],
    ),
    "a Deployment loses a machine": ([*nodes(4, 4, 4), deployment(replicas=3, pod=away())], [{"lose": "node/node-0"}]),
    "a StatefulSet loses a machine": (
        [*nodes(4, 4, 4), workload("StatefulSet", "db", 3, pod=away(**apart("db")))],
        [{"lose": "node/node-0"}],
    ),
    "a machine is lost and comes back": (
        [*nodes(4, 4, 4), deployment(replicas=6, pod=away()), workload("StatefulSet", "db", 3, pod=away(**apart("db")))],
        [{"lose": "node/node-0"}, {"recover": "node/node-0"}],
    ),
    "a zone is lost under a spread constraint": (
        [*nodes(4, 4, 4, n_zones=2), deployment(replicas=4, pod=away(topologySpreadConstraints=SPREAD))],
        [{"lose": f"{ZONE}=b"}, {"recover": f"{ZONE}=b"}],
    ),
    "pods of higher priority preempt": (
        [*nodes(4, 4), priority("high", 1000), deployment("low", 8)],
        [{"apply": deployment("high", 2, cpu="3", pod={"priorityClassName": "high"})}],
    ),
    "what is deleted makes room": (
        [*nodes(4), deployment("web", 4), deployment("api", 2)],
        [{"delete": "Deployment/web"}],
    ),
    "a node is added for those that wait": (
        [*nodes(2), deployment(replicas=5)],
        [{"apply": node("node-1", "b")}],
    ),
    "a peer is gone for longer than the grace time": (
        [*nodes(8, 8, n_zones=2), deployment("s2", 1), in_execution(deployment("s1", 2), "podAffinity", "s2", ZONE)],
        [{"delete": "Deployment/s2"}, {"apply": deployment("s2", 1)}],
    ),
    "a label breaks an anti-affinity": (
        [*nodes(4, 4), in_execution(workload("StatefulSet", "quiet", 2), "podAntiAffinity", "loud", HOST), workload("StatefulSet", "other", 2)],
        [{"relabel": {"pod/other-0": {"app": "loud"}}}],
    ),
}  # fmt: skip
