"""
A KubeSchedulerConfiguration: the errors with which kube-scheduler does not start.

Mirrors pkg/scheduler/apis/config/validation and the framework's errors on unknown plugins; absent values count as their
defaults. The arguments of plugins that Bayplan does not have are not validated, nor are leader election and client
settings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from bayplan.validating import affinity, go_text, names, pods
from bayplan.validating.fields import Cause, Field

SCORING_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
RATIO = "RequestedToCapacityRatio"
DEFAULTING_TYPES = ("System", "List")
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
EXTENSION_POINTS = (
    "bind", "filter", "multiPoint", "permit", "placementGenerate", "placementScore", "postBind", "postFilter",
    "preBind", "preEnqueue", "preFilter", "preScore", "queueSort", "reserve", "score",
)  # fmt: skip


def validate_scheduler_config(config: dict[str, object]) -> list[str]:
    """All errors of the configuration, each with its field path; none if it can be used."""
    whole = Field("", config)
    found = [
        *_validate_range(whole["parallelism"], 1, None, "should be an integer value greater than zero"),
        *_validate_range(whole["percentageOfNodesToScore"], 0, 100, "not in valid range [0-100]"),
        *_validate_range(whole["podInitialBackoffSeconds"], 1, None, "must be greater than 0"),
    ]
    most = whole["podMaxBackoffSeconds"]
    if most.number(10) < whole["podInitialBackoffSeconds"].number(1):
        found.append(most.invalid("must be greater than or equal to PodInitialBackoffSeconds", str(most.number(10))))
    found += _validate_profiles(whole["profiles"])
    return [str(cause) for cause in found]


def _validate_range(field: Field, least: int, most: int | None, detail: str) -> list[Cause]:
    """The cause for a field that is present and no integer from `least` to `most`."""
    if not field.present:
        return []
    if not isinstance(field.value, int) or isinstance(field.value, bool):
        return [field.invalid("expected a whole number", go_text.as_json(field.value))]
    if field.number() < least or (most is not None and field.number() > most):
        return [field.invalid_number(detail)]
    return []


def _validate_profiles(profiles: Field) -> list[Cause]:
    found: list[Cause] = []
    first: dict[str, str] = {}
    for profile in profiles.items():
        name = profile["schedulerName"]
        if not name.text() and len(profiles.items()) > 1:  # a single profile is called default-scheduler
            found.append(name.required())
        elif name.text() in first:
            found.append(name.duplicate(first[name.text()]))
        first.setdefault(name.text(), name.path)
        found += _validate_range(profile["percentageOfNodesToScore"], 0, 100, "not in valid range [0-100]")
        found += _validate_plugins(profile["plugins"])
        found += _validate_plugin_config(profile["pluginConfig"])
    return found


def _validate_plugins(plugins: Field) -> list[Cause]:
    """
    Extension points and plugins that do not exist, and plugins with a negative weight; 0 stands for the default.

    kube-scheduler accepts an unknown name among the disabled plugins, which leaves the intended plugin enabled without
    a message. Bayplan rejects it.
    """
    found: list[Cause] = []
    for point in plugins.names():
        if point not in EXTENSION_POINTS:
            found.append(plugins[point].unsupported(EXTENSION_POINTS, go_text.as_json(point)))
        for plugin in plugins[point]["enabled"].items():
            found += _validate_plugin_name(plugin["name"], PLUGINS)
            if point in ("multiPoint", "score"):
                found += _validate_range(plugin["weight"], 0, None, "not in valid range [0, inf)")
        for plugin in plugins[point]["disabled"].items():
            found += _validate_plugin_name(plugin["name"], (ALL_PLUGINS, *PLUGINS))
    return found


def _validate_plugin_name(name: Field, supported: tuple[str, ...]) -> list[Cause]:
    return [] if name.text() in supported else [name.unsupported(supported, go_text.as_json(name.value))]


def _validate_plugin_config(configs: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for config in configs.items():
        name = config["name"].text()
        if name in seen:
            found.append(config.duplicate(go_text.quoted(name)))
        seen.add(name)
        if name in _ARGUMENT_RULES:
            found += _ARGUMENT_RULES[name](config["args"])
    return found


def _validate_inter_pod_affinity(args: Field) -> list[Cause]:
    return _validate_range(args["hardPodAffinityWeight"], 0, 100, "not in valid range [0, 100]")


def _validate_node_affinity(args: Field) -> list[Cause]:
    added = args["addedAffinity"]
    found: list[Cause] = []
    for term in added[affinity.REQUIRED]["nodeSelectorTerms"].items():
        found += affinity.validate_node_selector_term(term)
    for item in added[affinity.PREFERRED].items():
        found += affinity.validate_node_selector_term(item["preference"])
    return found


def _validate_balanced_allocation(args: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for resource in args["resources"].items():
        name = resource["name"]
        if name.text() in seen:
            found.append(name.duplicate())
        seen.add(name.text())
        if resource["weight"].number():  # 0 stands for the default, which is 1
            found += _validate_range(resource["weight"], 1, 1, "must be 1")
    return found


def _validate_resources_fit(args: Field) -> list[Cause]:
    found: list[Cause] = []
    for item in args["ignoredResources"].items():
        found += item.check_text(names.label_key)
    for item in args["ignoredResourceGroups"].items():
        if "/" in item.text():
            detail = "resource group name can't contain '/'"
            found.append(item.invalid(detail))
        found += item.check_text(names.label_key)
    return found + _validate_scoring_strategy(args["scoringStrategy"])


def _validate_scoring_strategy(strategy: Field) -> list[Cause]:
    kind, ratio = strategy["type"], strategy["requestedToCapacityRatio"]
    found: list[Cause] = []
    if strategy.present and kind.text() not in SCORING_STRATEGIES:
        found.append(kind.unsupported(SCORING_STRATEGIES))
    for resource in strategy["resources"].items():
        if resource["weight"].number():  # 0 stands for the default, which is 1
            detail = f"resource weight of {resource['name'].text()} not in valid range (0, 100]"
            found += _validate_range(resource["weight"], 1, 100, detail)
    if kind.text() == RATIO:
        missing = ratio.required(f"must be specified when type is {RATIO}")
        found += _validate_shape(ratio["shape"]) if ratio.present else [missing]
    elif ratio.present:
        found.append(ratio.forbidden(f"must be nil when type is not {RATIO}"))
    return found


def _validate_shape(points: Field) -> list[Cause]:
    """The function from utilization to score: points in increasing order, each within its range."""
    items = points.items()
    if not items:
        return [points.required("at least one point must be specified")]
    found: list[Cause] = []
    used = [point["utilization"] for point in items]
    for before, after in itertools.pairwise(used):
        if before.number() >= after.number():
            shown = str(after.number())
            found.append(after.invalid("values must be sorted in increasing order", shown))
            break
    for point in items:
        found += _validate_range(point["utilization"], 0, 100, "not in valid range [0, 100]")
        found += _validate_range(point["score"], 0, MAX_CUSTOM_SCORE, f"not in valid range [0, {MAX_CUSTOM_SCORE}]")
    return found


def _validate_topology_spread(args: Field) -> list[Cause]:
    constraints = args["defaultConstraints"].items()
    found = _validate_defaulting(args["defaultingType"], constraints)
    seen: set[tuple[str, str]] = set()
    for constraint in constraints:
        found += _validate_default_constraint(constraint)
        kind = constraint["topologyKey"].text(), constraint["whenUnsatisfiable"].text()
        if kind in seen:
            found.append(constraint.duplicate(go_text.quoted("{" + ", ".join(kind) + "}")))
        seen.add(kind)
    return found


def _validate_defaulting(field: Field, constraints: list[Field]) -> list[Cause]:
    if field.text() not in ("", *DEFAULTING_TYPES):
        return [field.unsupported(DEFAULTING_TYPES)]
    if constraints and field.text() != "List":
        shown = go_text.as_json(field.text() or "System")
        return [field.invalid("when .defaultConstraints are not empty", shown)]
    return []


def _validate_default_constraint(constraint: Field) -> list[Cause]:
    skew, key, action = constraint["maxSkew"], constraint["topologyKey"], constraint["whenUnsatisfiable"]
    found: list[Cause] = []
    if skew.number() <= 0:
        found.append(skew.invalid_number("not in valid range (0, inf)"))
    found += key.check_text(names.label_key) if key.text() else [key.required("can not be empty")]
    if not action.text():
        found.append(action.required("can not be empty"))
    elif action.text() not in pods.UNSATISFIABLE_ACTIONS:
        found.append(action.unsupported(pods.UNSATISFIABLE_ACTIONS))
    if constraint["labelSelector"].present:
        detail = "constraint must not define a selector, as they deduced for each pod"
        found.append(constraint["labelSelector"].forbidden(detail))
    return found


def _validate_preemption(args: Field) -> list[Cause]:
    share, number = args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"]
    found = _validate_range(share, 0, 100, "not in valid range [0, 100]") + _validate_range(
        number, 0, None, "not in valid range [0, inf)"
    )
    if share.number(10) == 0 and number.number(100) == 0:
        same_time = "cannot be zero at the same time as"
        found.append(share.invalid(f"{same_time} minCandidateNodesAbsolute", "0"))
        found.append(number.invalid(f"{same_time} minCandidateNodesPercentage", "0"))
    return found


_ARGUMENT_RULES: dict[str, Callable[[Field], list[Cause]]] = {
    "DefaultPreemption": _validate_preemption,
    "InterPodAffinity": _validate_inter_pod_affinity,
    "NodeAffinity": _validate_node_affinity,
    "NodeResourcesBalancedAllocation": _validate_balanced_allocation,
    "NodeResourcesFit": _validate_resources_fit,
    "PodTopologySpread": _validate_topology_spread,
}
