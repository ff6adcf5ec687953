"""Spreading pods evenly over domains: hard constraints keep the skew in bounds, soft ones prefer empty domains."""

import contextlib
import math

from reference.cycle import SKIP, UNRESOLVABLE, UNSCHEDULABLE, Rejected
from reference.node_affinity import matches_pod
from reference.objects import namespace_of
from reference.resources_fit import half_away
from reference.selecting import selects, selects_all
from reference.taint_toleration import rejects

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"
SYSTEM_DEFAULTS = [
    {"maxSkew": 3, "topologyKey": HOSTNAME, "whenUnsatisfiable": SOFT},
    {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": SOFT},
]


SUBTRACTING = []  # not empty: terminating victims are subtracted from counts that they are not in, as by kube-scheduler


@contextlib.contextmanager
def subtracting_terminating_victims():
    SUBTRACTING.append(True)
    try:
        yield
    finally:
        SUBTRACTING.pop()


class Constraint:
    def __init__(self, raw, selector):
        self.key = raw["topologyKey"]
        self.max_skew = raw["maxSkew"]
        self.min_domains = raw.get("minDomains") or 1
        self.selector = selector
        self.honour_affinity = (raw.get("nodeAffinityPolicy") or "Honor") == "Honor"
        self.honour_taints = (raw.get("nodeTaintsPolicy") or "Ignore") == "Honor"

    def counts(self, pod, node):
        """Whether the node takes part in this constraint."""
        if self.honour_affinity and not matches_pod(pod, node):
            return False
        return not (self.honour_taints and rejects(node, pod.tolerations))

    def pods_on(self, node, namespace):
        """Pods of the namespace that it selects. The empty selector counts none, as in kube-scheduler."""
        if selects_all(self.selector):
            return 0
        counted = sum(
            selects(self.selector, pod.labels)
            for pod in node.pods
            if pod.namespace == namespace and not pod.terminating
        )
        gone = node.ended if SUBTRACTING else ()
        return counted - sum(selects(self.selector, pod.labels) for pod in gone if pod.namespace == namespace)


def constraints(cycle, action):
    own = cycle.pod.spec.get("topologySpreadConstraints") or []
    if own:
        return [Constraint(raw, raw.get("labelSelector")) for raw in own if raw["whenUnsatisfiable"] == action]
    chosen = [raw for raw in default_constraints(cycle) if raw["whenUnsatisfiable"] == action]
    selector = default_selector(cycle)
    if selects_all(selector):
        return []
    return [Constraint(raw, selector) for raw in chosen]


def uses_system_defaults(cycle):
    return (cycle.args("PodTopologySpread").get("defaultingType") or "System") == "System"


def default_constraints(cycle):
    if uses_system_defaults(cycle):
        return SYSTEM_DEFAULTS
    return cycle.args("PodTopologySpread").get("defaultConstraints") or []


def default_selector(cycle):
    """The selectors of the pod's controller and of the Services that select the pod, combined."""
    pod, cluster = cycle.pod, cycle.cluster
    wanted, expressions = {}, []
    for service in cluster.of_kind("Service"):
        selector = (service.get("spec") or {}).get("selector")
        if (
            namespace_of(service) == pod.namespace
            and selector is not None
            and selects({"matchLabels": selector}, pod.labels)
        ):
            wanted.update(selector)
    for owner in pod.manifest["metadata"].get("ownerReferences") or []:
        if not owner.get("controller"):
            continue
        controller = cluster.find(owner["kind"], owner["name"], pod.namespace)
        if controller is None:
            continue
        spec = controller.get("spec") or {}
        selector = spec.get("selector") or {}
        if (owner["apiVersion"], owner["kind"]) == ("v1", "ReplicationController"):
            template = spec.get("template") or {}
            wanted.update(selector or (template.get("metadata") or {}).get("labels") or {})
        elif (owner["apiVersion"], owner["kind"]) in (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")):
            for key, value in (selector.get("matchLabels") or {}).items():
                expressions.append({"key": key, "operator": "In", "values": [value]})
            expressions += selector.get("matchExpressions") or []
    return {"matchLabels": wanted, "matchExpressions": expressions}


def has_all_keys(node, wanted):
    return all(constraint.key in node.labels for constraint in wanted)


def before_filter(cycle):
    hard = constraints(cycle, HARD)
    if not hard:
        return SKIP
    pods_in = [{} for _ in hard]
    for node in cycle.cluster.nodes:
        if not has_all_keys(node, hard):
            continue
        for constraint, count in zip(hard, pods_in, strict=True):
            if constraint.counts(cycle.pod, node):
                value = node.labels[constraint.key]
                count[value] = count.get(value, 0) + constraint.pods_on(node, cycle.pod.namespace)
    cycle.notes["hard spread"] = list(zip(hard, pods_in, strict=True))
    return None


def check(cycle, node):
    for constraint, count in cycle.notes["hard spread"]:
        if constraint.key not in node.labels:
            return Rejected(
                UNRESOLVABLE, "node(s) didn't match pod topology spread constraints (missing required label)"
            )
        fewest = 0 if len(count) < constraint.min_domains else min(count.values())
        itself = 1 if selects(constraint.selector, cycle.pod.labels) else 0
        if count.get(node.labels[constraint.key], 0) + itself - fewest > constraint.max_skew:
            return Rejected(UNSCHEDULABLE, "node(s) didn't match pod topology spread constraints")
    return None


def before_score(cycle, feasible):
    soft = constraints(cycle, SOFT)
    if not soft:
        return SKIP
    own = bool(cycle.pod.spec.get("topologySpreadConstraints"))
    strict = own or not uses_system_defaults(cycle)
    scored = [node for node in feasible if not strict or has_all_keys(node, soft)]
    weighed = []
    for constraint in soft:
        if constraint.key == HOSTNAME:
            weighed.append((constraint, None, math.log(len(scored) + 2)))
            continue
        # Nodes without the label share one domain here, the one of the empty name.
        count = {node.labels.get(constraint.key, ""): 0 for node in scored}
        for node in cycle.cluster.nodes:
            if (strict and not has_all_keys(node, soft)) or not constraint.counts(cycle.pod, node):
                continue
            value = node.labels.get(constraint.key, "")
            if value in count:
                count[value] += constraint.pods_on(node, cycle.pod.namespace)
        weighed.append((constraint, count, math.log(len(count) + 2)))
    cycle.notes["soft spread"] = (weighed, {node.name for node in scored})
    return None


def score(cycle, node):
    """How many pods the node's domains hold: the fewer the better."""
    weighed, scored = cycle.notes["soft spread"]
    if node.name not in scored:
        return 0
    total = 0.0
    for constraint, count, weight in weighed:
        if constraint.key not in node.labels:
            continue
        here = constraint.pods_on(node, cycle.pod.namespace) if count is None else count[node.labels[constraint.key]]
        total += here * weight + (constraint.max_skew - 1)
    return half_away(total)


def normalise(cycle, scores):
    _, scored = cycle.notes["soft spread"]
    raw = [score for name, score in scores.items() if name in scored]
    highest, lowest = max(raw, default=0), min(raw, default=0)
    result = {}
    for name, score in scores.items():
        if name not in scored:
            result[name] = 0
        elif highest == 0:
            result[name] = 100
        else:
            result[name] = 100 * (highest + lowest - score) // highest
    return result
