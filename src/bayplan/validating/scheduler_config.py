"""
A KubeSchedulerConfiguration: what kube-scheduler would refuse to start with.

Mirrors pkg/scheduler/apis/config/validation and what the framework says of plugins that it does not know; absent
values count as their defaults. Arguments of plugins that Bayplan does not have are left alone, as are leader election
and client settings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from bayplan.validating import causes, fields, go_text, node_affinity, pod_affinity, selectors, topology_spread
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
RATIO = "RequestedToCapacityRatio"
DEFAULTING = ("System", "List")
MAX_CUSTOM_SCORE = 10
ALL_PLUGINS = "*"  # among the disabled ones
# pkg/scheduler/framework/plugins/names/names.go
PLUGINS = (
    "DefaultBinder", "DefaultPreemption", "DynamicResources", "GangScheduling", "ImageLocality", "InterPodAffinity",
    "NodeAffinity", "NodeDeclaredFeatures", "NodeName", "NodePorts", "NodeResourcesBalancedAllocation",
    "NodeResourcesFit", "NodeUnschedulable", "NodeVolumeLimits", "PodGroupPodsCount", "PodTopologySpread",
    "PrioritySort", "SchedulingGates", "TaintToleration", "TopologyPlacementGenerator", "VolumeBinding",
    "VolumeRestrictions", "VolumeZone",
)  # fmt: skip
# The fields of Plugins in staging/src/k8s.io/kube-scheduler/config/v1/types.go
POINTS = (
    "bind", "filter", "multiPoint", "permit", "placementGenerate", "placementScore", "postBind", "postFilter",
    "preBind", "preEnqueue", "preFilter", "preScore", "queueSort", "reserve", "score",
)  # fmt: skip


def faults(config: dict[str, object]) -> list[str]:
    """Everything wrong with the configuration, each with its field path; none if it can be used."""
    whole = fields.root(config)
    found = [
        *_range(whole["parallelism"], 1, None, "should be an integer value greater than zero"),
        *_range(whole["percentageOfNodesToScore"], 0, 100, "not in valid range [0-100]"),
        *_range(whole["podInitialBackoffSeconds"], 1, None, "must be greater than 0"),
        *_backoff(whole),
        *_profiles(whole["profiles"]),
    ]
    return [str(cause) for cause in found]


def _range(field: Field, least: int, most: int | None, detail: str) -> list[Cause]:
    """The field, if it is there and no whole number from `least` to `most`."""
    if not field.present:
        return []
    if not isinstance(field.value, int) or isinstance(field.value, bool):
        return [causes.invalid(field.path, go_text.as_json(field.value), "expected a whole number")]
    if field.number() < least or (most is not None and field.number() > most):
        return [causes.invalid(field.path, str(field.number()), detail)]
    return []


def _backoff(whole: Field) -> list[Cause]:
    most = whole["podMaxBackoffSeconds"]
    if most.number(10) >= whole["podInitialBackoffSeconds"].number(1):
        return []
    detail = "must be greater than or equal to PodInitialBackoffSeconds"
    return [causes.invalid(most.path, str(most.number(10)), detail)]


def _profiles(profiles: Field) -> list[Cause]:
    found: list[Cause] = []
    first: dict[str, str] = {}
    for profile in profiles.items():
        name = profile["schedulerName"]
        if not name.text() and len(profiles.items()) > 1:  # a single profile is called default-scheduler
            found.append(causes.required(name.path))
        elif name.text() in first:
            found.append(causes.duplicate(name.path, first[name.text()]))
        first.setdefault(name.text(), name.path)
        found += _range(profile["percentageOfNodesToScore"], 0, 100, "not in valid range [0-100]")
        found += _plugins(profile["plugins"])
        found += _arguments(profile["pluginConfig"])
    return found


def _plugins(plugins: Field) -> list[Cause]:
    """
    Points and plugins that do not exist, and plugins with a negative weight; 0 stands for the default.

    A plugin that is disabled under a name which nobody has would stay on without a word: kube-scheduler lets that
    pass, we do not.
    """
    found: list[Cause] = []
    for point in plugins.names():
        if point not in POINTS:
            found.append(causes.unsupported(plugins[point].path, go_text.as_json(point), POINTS))
        for plugin in plugins[point]["enabled"].items():
            found += _known(plugin["name"], PLUGINS)
            if point in ("multiPoint", "score"):
                found += _range(plugin["weight"], 0, None, "not in valid range [0, inf)")
        for plugin in plugins[point]["disabled"].items():
            found += _known(plugin["name"], (ALL_PLUGINS, *PLUGINS))
    return found


def _known(name: Field, names: tuple[str, ...]) -> list[Cause]:
    return [] if name.text() in names else [causes.unsupported(name.path, go_text.as_json(name.value), names)]


def _arguments(configs: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for config in configs.items():
        name = config["name"].text()
        if name in seen:
            found.append(causes.duplicate(config.path, go_text.quoted(name)))
        seen.add(name)
        if name in _CHECKS:
            found += _CHECKS[name](config["args"])
    return found


def _inter_pod_affinity(args: Field) -> list[Cause]:
    return _range(args["hardPodAffinityWeight"], 0, 100, "not in valid range [0, 100]")


def _node_affinity(args: Field) -> list[Cause]:
    added = args["addedAffinity"]
    found: list[Cause] = []
    for term in added[pod_affinity.REQUIRED]["nodeSelectorTerms"].items():
        found += node_affinity.term(term, values_too=True)
    for item in added[pod_affinity.PREFERRED].items():
        found += node_affinity.term(item["preference"], values_too=True)
    return found


def _balanced_allocation(args: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for resource in args["resources"].items():
        name = resource["name"]
        if name.text() in seen:
            found.append(causes.duplicate(name.path, go_text.quoted(name.text())))
        seen.add(name.text())
        if resource["weight"].number():  # 0 stands for the default, which is 1
            found += _range(resource["weight"], 1, 1, "must be 1")
    return found


def _fit(args: Field) -> list[Cause]:
    found: list[Cause] = []
    for item in args["ignoredResources"].items():
        found += selectors.label_key(item)
    for item in args["ignoredResourceGroups"].items():
        if "/" in item.text():
            detail = "resource group name can't contain '/'"
            found.append(causes.invalid(item.path, go_text.quoted(item.text()), detail))
        found += selectors.label_key(item)
    return found + _strategy(args["scoringStrategy"])


def _strategy(strategy: Field) -> list[Cause]:
    kind, ratio = strategy["type"], strategy["requestedToCapacityRatio"]
    found: list[Cause] = []
    if strategy.present and kind.text() not in STRATEGIES:
        found.append(causes.unsupported(kind.path, go_text.as_json(kind.text()), STRATEGIES))
    for resource in strategy["resources"].items():
        if resource["weight"].number():  # 0 stands for the default, which is 1
            detail = f"resource weight of {resource['name'].text()} not in valid range (0, 100]"
            found += _range(resource["weight"], 1, 100, detail)
    if kind.text() == RATIO:
        missing = causes.required(ratio.path, f"must be specified when type is {RATIO}")
        found += shape(ratio["shape"]) if ratio.present else [missing]
    elif ratio.present:
        found.append(causes.forbidden(ratio.path, f"must be nil when type is not {RATIO}"))
    return found


def shape(points: Field) -> list[Cause]:
    """What is wrong with a function from utilization to score: points in rising order, each within its range."""
    items = points.items()
    if not items:
        return [causes.required(points.path, "at least one point must be specified")]
    found: list[Cause] = []
    used = [point["utilization"] for point in items]
    for before, after in itertools.pairwise(used):
        if before.number() >= after.number():
            shown = str(after.number())
            found.append(causes.invalid(after.path, shown, "values must be sorted in increasing order"))
            break
    for point in items:
        found += _range(point["utilization"], 0, 100, "not in valid range [0, 100]")
        found += _range(point["score"], 0, MAX_CUSTOM_SCORE, f"not in valid range [0, {MAX_CUSTOM_SCORE}]")
    return found


def _spread(args: Field) -> list[Cause]:
    constraints = args["defaultConstraints"].items()
    found = _defaulting(args["defaultingType"], constraints)
    seen: set[tuple[str, str]] = set()
    for constraint in constraints:
        found += _constraint(constraint)
        kind = constraint["topologyKey"].text(), constraint["whenUnsatisfiable"].text()
        if kind in seen:
            found.append(causes.duplicate(constraint.path, go_text.quoted("{" + ", ".join(kind) + "}")))
        seen.add(kind)
    return found


def _defaulting(field: Field, constraints: list[Field]) -> list[Cause]:
    if field.text() not in ("", *DEFAULTING):
        return [causes.unsupported(field.path, go_text.as_json(field.text()), DEFAULTING)]
    if constraints and field.text() != "List":
        shown = go_text.as_json(field.text() or "System")
        return [causes.invalid(field.path, shown, "when .defaultConstraints are not empty")]
    return []


def _constraint(constraint: Field) -> list[Cause]:
    skew, key, action = constraint["maxSkew"], constraint["topologyKey"], constraint["whenUnsatisfiable"]
    found: list[Cause] = []
    if skew.number() <= 0:
        found.append(causes.invalid(skew.path, str(skew.number()), "not in valid range (0, inf)"))
    found += selectors.label_key(key) if key.text() else [causes.required(key.path, "can not be empty")]
    if not action.text():
        found.append(causes.required(action.path, "can not be empty"))
    elif action.text() not in topology_spread.ACTIONS:
        found.append(causes.unsupported(action.path, go_text.as_json(action.text()), topology_spread.ACTIONS))
    if constraint["labelSelector"].present:
        detail = "constraint must not define a selector, as they deduced for each pod"
        found.append(causes.forbidden(constraint["labelSelector"].path, detail))
    return found


def _preemption(args: Field) -> list[Cause]:
    share, number = args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"]
    found = _range(share, 0, 100, "not in valid range [0, 100]") + _range(
        number, 0, None, "not in valid range [0, inf)"
    )
    if share.number(10) == 0 and number.number(100) == 0:
        same_time = "cannot be zero at the same time as"
        found.append(causes.invalid(share.path, "0", f"{same_time} minCandidateNodesAbsolute"))
        found.append(causes.invalid(number.path, "0", f"{same_time} minCandidateNodesPercentage"))
    return found


_CHECKS: dict[str, Callable[[Field], list[Cause]]] = {
    "DefaultPreemption": _preemption,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _spread,
}
