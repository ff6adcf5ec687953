"""Scheduler configurations that kube-scheduler starts with."""

from agreeing import drawn_terms
from agreeing.drawing import HOSTNAME, ZONE

API = "kubescheduler.config.k8s.io/v1"
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi")
SCORERS = ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity",
           "NodeResourcesBalancedAllocation", "ImageLocality", "VolumeBinding")  # fmt: skip
FILTERS = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
           "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread",
           "InterPodAffinity")  # fmt: skip


def config(theme):
    """None, or a configuration with one profile."""
    profile = {"schedulerName": "default-scheduler"}
    arguments = _arguments(theme)
    if arguments:
        profile["pluginConfig"] = [
            {"name": name, "args": {"apiVersion": API, "kind": f"{name}Args", **given}}
            for name, given in arguments.items()
        ]
    plugins = _plugins(theme)
    if plugins:
        profile["plugins"] = plugins
    if len(profile) == 1:
        return None
    return {"apiVersion": API, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def _arguments(theme):
    args = {}
    if theme.has("strategies"):
        args["NodeResourcesFit"] = {"scoringStrategy": scoring_strategy(theme)}
        if theme.rarely(3):
            args["NodeResourcesFit"]["ignoredResources"] = ["example.com/gpu"]
        if theme.rarely(3):
            args["NodeResourcesFit"]["ignoredResourceGroups"] = ["example.com"]
    if theme.has("strategies"):
        resources = [{**entry, "weight": 1} for entry in _weights(theme)]
        args["NodeResourcesBalancedAllocation"] = {"resources": resources}
    if theme.has("weights"):
        args["InterPodAffinity"] = {"hardPodAffinityWeight": theme.pick((0, 1, 50, 100))}
        args["InterPodAffinity"]["ignorePreferredTermsOfExistingPods"] = theme.rarely(2)
    if theme.has("added-affinity"):
        added = drawn_terms.node_affinity(theme)
        if added.get(drawn_terms.PREFERRED) == []:
            del added[drawn_terms.PREFERRED]
        args["NodeAffinity"] = {"addedAffinity": added} if added else {}
    if theme.has("default-constraints", "controllers"):
        args["PodTopologySpread"] = _default_constraints(theme)
    if theme.has("capacity") and theme.rarely(2):
        at = sorted(theme.some(range(0, 101, 10), 2, 3))
        args["VolumeBinding"] = {"shape": [{"utilization": one, "score": theme.number(0, 10)} for one in at]}
    return args


def scoring_strategy(theme):
    kind = theme.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    strategy = {"type": kind}
    if kind == "RequestedToCapacityRatio":
        at = sorted(theme.some(range(0, 101, 10), 1, 4))
        shape = [{"utilization": utilization, "score": theme.number(0, 10)} for utilization in at]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    if theme.often(3):
        strategy["resources"] = _weights(theme)
    return strategy


def _weights(theme):
    return [{"name": name, "weight": theme.number(1, 5)} for name in theme.some(RESOURCES, 1, 3)]


def _default_constraints(theme):
    if theme.rarely(3):
        return {"defaultingType": "System"}
    constraints = [
        {
            "maxSkew": theme.number(1, 3),
            "topologyKey": key,
            "whenUnsatisfiable": theme.pick(("ScheduleAnyway", "DoNotSchedule")),
        }
        for key in theme.some((ZONE, HOSTNAME, "rack"))
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}


def _plugins(theme):
    """Other weights and orders, single extension points, plugins left out."""
    if not theme.has("plugins"):
        return {}
    drawn = {}
    if theme.often(2):
        enabled = [{"name": name, "weight": theme.number(1, 10)} for name in theme.some(SCORERS, 1, 3)]
        drawn["multiPoint"] = {"enabled": enabled}
        if theme.rarely(3):
            drawn["multiPoint"]["disabled"] = [{"name": name} for name in theme.some(FILTERS[:5], 1, 2)]
    if theme.rarely(3):
        drawn["score"] = {"disabled": [{"name": name} for name in theme.some(SCORERS, 1, 3)]}
    if theme.rarely(3):
        drawn["filter"] = {"disabled": [{"name": name} for name in theme.some(FILTERS, 1, 3)]}
    if theme.rarely(4):
        drawn["score"] = {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": name, "weight": theme.number(1, 5)} for name in theme.some(SCORERS, 1, 3)],
        }
    if theme.rarely(6):
        drawn["filter"] = {"enabled": [{"name": name} for name in theme.some(FILTERS, 1, 3)]}
    return drawn
