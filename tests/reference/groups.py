"""
What is wrong with a plan for groups of pods, by plain loops: every rule of every pod, and what only a group has.

Pods and nodes are manifests. A plan leads from NAMESPACE/NAME of a pending pod to its node. Knows nothing of searches.
"""

import itertools

import yaml

from reference import pods as pod_cycle
from reference.cycle import SUCCESS, Cycle
from reference.selecting import selects

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LABEL = "scheduling.x-k8s.io/pod-group"


def key_of(pod):
    return f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"


def group_of(pod):
    """NAMESPACE/NAME of the pod's group, or nothing."""
    metadata = pod["metadata"]
    named = (
        (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
        or (metadata.get("labels") or {}).get(LABEL)
        or (metadata.get("annotations") or {}).get("bayplan.io/group")
    )
    return f"{metadata.get('namespace', 'default')}/{named}" if named else ""


def violations(scene, plan):
    """A text for every rule that the plan breaks. `scene` has nodes, pods and objects as manifests."""
    nodes = {node["metadata"]["name"]: node for node in scene["nodes"]}
    there = [placed(pod, plan) for pod in scene["pods"] if placed(pod, plan) is not None]
    return [
        *(text for pod in there if key_of(pod) in plan for text in broken_rules(scene, pod, there)),
        *(text for group in groups(scene["pods"]) for text in broken_group(scene, group, plan, nodes)),
        *(text for pod in there if key_of(pod) in plan for text in broken_group_rules(pod, there, nodes)),
    ]


def placed(pod, plan):
    """The pod on its node, if it has one."""
    node = pod["spec"].get("nodeName") or plan.get(key_of(pod))
    return {**pod, "spec": {**pod["spec"], "nodeName": node}} if node else None


def broken_rules(scene, pod, there):
    """Whether the rules of kube-scheduler admit the pod on its node in the presence of all others."""
    others = [other for other in there if key_of(other) != key_of(pod)]
    asked = {**pod, "spec": {name: value for name, value in pod["spec"].items() if name != "nodeName"}}
    question = {
        "nodes": scene["nodes"],
        "namespaces": scene.get("namespaces") or [],
        "pods": others,
        "pod": asked,
        "objects": [one for one in scene.get("objects") or [] if one["kind"] != "PodGroup"],
    }
    verdicts, _ = pod_cycle.filtered(Cycle(question))
    verdict = verdicts[pod["spec"]["nodeName"]]
    if verdict["code"] != SUCCESS:
        yield f"{key_of(pod)} on {pod['spec']['nodeName']}: {verdict.get('plugin')} {verdict.get('reasons')}"


def groups(pods):
    found = {}
    for pod in pods:
        if group_of(pod):
            found.setdefault(group_of(pod), []).append(pod)
    return found.values()


def needed(group, scene):
    """How many members must run, and the key of the domain that they share."""
    first = group[0]
    annotations = first["metadata"].get("annotations") or {}
    if "bayplan.io/group" in annotations:
        return int(annotations.get("bayplan.io/group-min", len(group))), annotations.get("bayplan.io/group-topology")
    for one in scene.get("objects") or []:
        if one["kind"] == "PodGroup" and key_of(one) == group_of(first):
            spec = one["spec"]
            topology = (spec.get("schedulingConstraints") or {}).get("topology") or [{}]
            policy = spec.get("schedulingPolicy") or {}
            least = spec.get("minMember") or (policy.get("gang") or {}).get("minCount", 0)
            return least, topology[0].get("key")
    return len(group) + 1, None  # without its PodGroup, it is not placed


def broken_group(scene, group, plan, nodes):
    least, topology_key = needed(group, scene)
    there = [pod for pod in (placed(pod, plan) for pod in group) if pod is not None]
    newly = [pod for pod in group if key_of(pod) in plan]
    if newly and len(there) < least:
        yield f"{group_of(group[0])} has {len(there)} of {least} members"
    if newly and topology_key:
        domains = {nodes[pod["spec"]["nodeName"]]["metadata"]["labels"].get(topology_key) for pod in there}
        if len(domains) > 1 or None in domains:
            yield f"{group_of(group[0])} is in {sorted(map(str, domains))} of {topology_key}"


def broken_group_rules(pod, there, nodes):
    """The rules between groups that a pod breaks as an owner, and those of others that it breaks."""
    for term in terms(pod, "groupAntiAffinity"):
        for other in there:
            if is_other(pod, other) and meant(term, pod, other) and share(term, pod, other, nodes):
                yield f"{key_of(pod)} is with {key_of(other)} in one domain of {term['topologyKey']}"
    for other in there:
        for term in terms(other, "groupAntiAffinity"):
            if is_other(pod, other) and meant(term, other, pod) and share(term, pod, other, nodes):
                yield f"{key_of(pod)} is with {key_of(other)} in one domain of {term['topologyKey']}"
    for term in terms(pod, "groupAffinity"):
        peers = [other for other in there if key_of(other) != key_of(pod) and meant(term, pod, other)]
        first = not peers and meant(term, pod, pod)
        has_key = term["topologyKey"] in nodes[pod["spec"]["nodeName"]]["metadata"]["labels"]
        if not has_key or not (first or any(share(term, pod, other, nodes) for other in peers)):
            yield f"{key_of(pod)} is not with a group of its groupAffinity"


def terms(pod, side):
    text = (pod["metadata"].get("annotations") or {}).get("bayplan.io/group-affinity")
    return ((yaml.safe_load(text) or {}).get(side) or {}).get(REQUIRED) or [] if text else []


def is_other(pod, other):
    return group_of(other) not in ("", group_of(pod))


def meant(term, owner, other):
    """Whether a term selects a pod: it is in a group, in a namespace of the term, and has the labels."""
    namespaces = term.get("namespaces") or [owner["metadata"].get("namespace", "default")]
    there = other["metadata"].get("namespace", "default") in namespaces
    return bool(group_of(other)) and there and selects(term.get("labelSelector"), other["metadata"].get("labels") or {})


def share(term, one, other, nodes):
    key = term["topologyKey"]
    values = [nodes[pod["spec"]["nodeName"]]["metadata"]["labels"].get(key) for pod in (one, other)]
    return values[0] is not None and values[0] == values[1]


def best_plan(scene):
    """By trying everything: a plan with the most pods among those without violations, in which as many groups run."""
    pending = [pod for pod in scene["pods"] if not pod["spec"].get("nodeName")]
    names = [node["metadata"]["name"] for node in scene["nodes"]]
    best = {}
    for choice in itertools.product([None, *names], repeat=len(pending)):
        plan = {key_of(pod): node for pod, node in zip(pending, choice, strict=True) if node is not None}
        if len(plan) > len(best) and not violations(scene, plan):
            best = plan
    return best
