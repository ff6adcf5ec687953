"""The whole cycle for one pod: `decide pods` as plain loops. Question in, answer out."""

from reference import (
    balanced_allocation,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_name,
    node_ports,
    node_unschedulable,
    resources_fit,
    taint_toleration,
    topology_spread,
    volume_binding,
    volume_limits,
    volume_restrictions,
    volume_zone,
)
from reference.cycle import EXCLUDED, SKIP, SUCCESS, Cycle, Rejected

RULES = {
    "NodeUnschedulable": node_unschedulable,
    "NodeName": node_name,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodePorts": node_ports,
    "NodeResourcesFit": resources_fit,
    "VolumeRestrictions": volume_restrictions,
    "NodeVolumeLimits": volume_limits,
    "VolumeBinding": volume_binding,
    "VolumeZone": volume_zone,
    "PodTopologySpread": topology_spread,
    "InterPodAffinity": inter_pod_affinity,
    "NodeResourcesBalancedAllocation": balanced_allocation,
    "ImageLocality": image_locality,
}


def answer(question):
    cycle = Cycle(question)
    verdicts, message = filtered(cycle)
    feasible = [node for node in cycle.cluster.nodes if verdicts[node.name]["code"] == SUCCESS]
    for name, scores in scored(cycle, feasible).items():
        verdicts[name]["scores"] = scores
        verdicts[name]["total"] = sum(scores.values())
    highest = max((verdicts[node.name]["total"] for node in feasible), default=0)
    best = [node.name for node in feasible if verdicts[node.name]["total"] == highest]
    if not feasible and not message:
        message = sentence(cycle, verdicts)
    return {
        "name": question.get("name") or "",
        "message": "" if feasible else message,
        "nodes": verdicts,
        "best": best,
    }


# Filtering


def filtered(cycle):
    """(verdict by node name, the message of a rule that rejects every node at once or nothing)"""
    nodes = cycle.cluster.nodes
    skipped, allowed = set(), None
    for plugin in cycle.profile.filters:
        result = call(plugin, "before_filter", cycle)
        if result == SKIP:
            skipped.add(plugin)
        elif isinstance(result, Rejected):
            message = f"0/{len(nodes)} nodes are available: {', '.join(result.reasons)}."
            return {node.name: rejected(plugin, result) for node in nodes}, message
        elif result is not None:
            allowed = result
    running = [plugin for plugin in cycle.profile.filters if plugin not in skipped]
    return {node.name: verdict(cycle, running, allowed, node) for node in nodes}, ""


def verdict(cycle, plugins, allowed, node):
    """The verdict of the first rule that rejects the node."""
    if allowed is not None and node.name not in allowed:
        return {"code": EXCLUDED}
    for plugin in plugins:
        result = call(plugin, "check", cycle, node)
        if result is not None:
            return rejected(plugin, result)
    return {"code": SUCCESS}


def rejected(plugin, result):
    return {"code": result.code, "plugin": plugin, "reasons": result.reasons}


def call(plugin, function, *arguments):
    """Call a step of a rule, if the rule has it."""
    found = getattr(RULES[plugin], function, None)
    return found(*arguments) if found else None


# Scoring


def scored(cycle, feasible):
    """{node: {plugin: normalised, weighted score}} for the feasible nodes."""
    result = {node.name: {} for node in feasible}
    if not feasible:
        return result
    for plugin in cycle.profile.scorers:
        rule = RULES[plugin]
        if not hasattr(rule, "score") or call(plugin, "before_score", cycle, feasible) == SKIP:
            continue
        scores = {node.name: rule.score(cycle, node) for node in feasible}
        if hasattr(rule, "normalise"):
            scores = rule.normalise(cycle, scores)
        for name, score in scores.items():
            result[name][plugin] = score * cycle.profile.weight[plugin]
    return result


# The sentence


def sentence(cycle, verdicts):
    if not verdicts:
        return "no nodes available to schedule pods"
    counts = {}
    for each in verdicts.values():
        for reason in each.get("reasons") or ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]:
            counts[reason] = counts.get(reason, 0) + 1
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{len(verdicts)} nodes are available: {', '.join(parts)}."
