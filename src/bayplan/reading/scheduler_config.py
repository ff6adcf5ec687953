"""A KubeSchedulerConfiguration, read into a scheduler profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.mapping import pods, selectors
from bayplan.model.workloads import SpreadConstraint
from bayplan.rules import resources_fit, topology_spread
from bayplan.rules.profiles import DEFAULT, DEFAULT_WEIGHTS, SchedulerProfile
from bayplan.validating import scheduler_config
from bayplan.wire.pods import TopologySpreadConstraint, WireNodeAffinity

RATIO_SCALE = 10  # scores of a shape range from 0 to 10


def profile_of(config: Mapping[str, Any] | None, scheduler_name: str = "") -> SchedulerProfile:
    """The profile for a scheduler name, else the first one; the default profile without a configuration."""
    if config is None:
        return DEFAULT
    faults = scheduler_config.validate_scheduler_config(dict(config))
    if faults:
        raise InputError([Fault(fault, subject="KubeSchedulerConfiguration") for fault in faults])
    profiles = config.get("profiles") or [{}]
    chosen = next((p for p in profiles if p.get("schedulerName") == scheduler_name), profiles[0])
    arguments = {entry["name"]: entry.get("args") or {} for entry in chosen.get("pluginConfig") or ()}
    return msgspec.structs.replace(
        DEFAULT,
        **_plugins(chosen.get("plugins") or {}),
        **_fit(arguments.get("NodeResourcesFit", {})),
        **_balanced(arguments.get("NodeResourcesBalancedAllocation", {})),
        **_inter_pod(arguments.get("InterPodAffinity", {})),
        **_node_affinity(arguments.get("NodeAffinity", {})),
        **_spread(arguments.get("PodTopologySpread", {})),
    )


def _plugins(plugins: Mapping[str, Any]) -> dict[str, Any]:
    """Weights and disabled plugins. A plugin enabled without a weight has weight 1, not its default."""
    weights, everywhere = dict(DEFAULT_WEIGHTS), plugins.get("multiPoint") or {}
    for point in (everywhere, plugins.get("score") or {}):
        for entry in point.get("enabled") or ():
            weights[entry["name"]] = entry.get("weight") or 1
    return {
        "weights": weights,
        "disabled": _disabled(everywhere),
        "disabled_filters": _disabled(plugins.get("filter") or {}),
        "disabled_scores": _disabled(plugins.get("score") or {}),
    }


def _disabled(point: Mapping[str, Any]) -> frozenset[str]:
    """The plugins that are disabled at an extension point and not enabled again; `*` means all of them."""
    off = {entry["name"] for entry in point.get("disabled") or ()}
    on = {entry["name"] for entry in point.get("enabled") or ()}
    return frozenset((KNOWN_PLUGINS if "*" in off else off) - on)


KNOWN_PLUGINS = frozenset({
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation", "ImageLocality",
})  # fmt: skip


def _fit(args: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ignored_resources": frozenset(args.get("ignoredResources") or ()),
        "ignored_resource_groups": frozenset(args.get("ignoredResourceGroups") or ()),
    }
    strategy = args.get("scoringStrategy")
    if strategy:
        shape = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or ()
        found["strategy"] = resources_fit.ScoringStrategy(
            strategy.get("type") or resources_fit.LEAST_ALLOCATED,
            _weighted(strategy.get("resources")) or resources_fit.ScoringStrategy().resources,
            tuple((point.get("utilization") or 0, (point.get("score") or 0) * RATIO_SCALE) for point in shape),
        )
    return found


def _weighted(resources: list[Mapping[str, Any]] | None) -> tuple[tuple[str, int], ...]:
    return tuple((resource["name"], resource.get("weight") or 1) for resource in resources or ())


def _balanced(args: Mapping[str, Any]) -> dict[str, Any]:
    resources = _weighted(args.get("resources"))
    return {"balanced_resources": tuple(name for name, _ in resources)} if resources else {}


def _inter_pod(args: Mapping[str, Any]) -> dict[str, Any]:
    weight = args.get("hardPodAffinityWeight")
    return {
        "hard_pod_affinity_weight": 1 if weight is None else weight,
        "ignore_preferred_terms_of_existing_pods": bool(args.get("ignorePreferredTermsOfExistingPods")),
    }


def _node_affinity(args: Mapping[str, Any]) -> dict[str, Any]:
    added = args.get("addedAffinity")
    if not added:
        return {}
    return {"added_affinity": selectors.node_affinity_of(msgspec.convert(added, WireNodeAffinity))}


def _spread(args: Mapping[str, Any]) -> dict[str, Any]:
    if (args.get("defaultingType") or "System") == "System":
        return {"spread_defaults": topology_spread.SYSTEM_DEFAULTS, "spread_defaults_are_systems": True}
    written = msgspec.convert(args.get("defaultConstraints") or [], list[TopologySpreadConstraint])
    defaults: tuple[SpreadConstraint, ...] = tuple(pods.spread_constraint(c, {}) for c in written)
    return {"spread_defaults": defaults, "spread_defaults_are_systems": False}
