"""
A KubeSchedulerConfiguration: the errors with which kube-scheduler does not start, and the profile of a valid one.

Mirrors pkg/scheduler/apis/config/validation and the framework's errors on unknown plugins; absent values count as their
defaults. The arguments of a plugin belong to its rule; those of plugins that Bayplan does not have are not validated,
nor are leader election and client settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.preempting import arguments as preemption_arguments
from bayplan.rules.profiles import DEFAULT, DEFAULT_WEIGHTS, POD_PLUGINS, SchedulerProfile
from bayplan.validating import go_text, structure, structure_faults
from bayplan.validating.fields import Cause, Field
from bayplan.validating.structure import Finding, Nulls
from bayplan.wire.scheduler_config import ConfiguredPlugins, DefaultPreemptionArgs, SchedulerConfiguration

ALL_PLUGINS = "*"  # among the disabled ones
RULES_BY_PLUGIN = {rule.name: rule for rule in POD_PLUGINS}
# The plugins of pkg/scheduler/framework/plugins/names/names.go that are no rules
OTHER_PLUGINS = (
    preemption_arguments.PLUGIN, "DefaultBinder", "DynamicResources", "GangScheduling", "NodeDeclaredFeatures",
    "PodGroupPodsCount", "PrioritySort", "SchedulingGates", "TopologyPlacementGenerator",
)  # fmt: skip
PLUGINS = tuple(sorted((*RULES_BY_PLUGIN, *OTHER_PLUGINS)))
EXTENSION_POINTS = tuple(point.encode_name for point in msgspec.structs.fields(ConfiguredPlugins))
ARGUMENT_VALIDATORS = {
    preemption_arguments.PLUGIN: preemption_arguments.validate,
    **{name: rule.arguments_type.validate for name, rule in RULES_BY_PLUGIN.items()},
}
WRITTEN_TYPES = {
    preemption_arguments.PLUGIN: DefaultPreemptionArgs,
    **{name: rule.arguments_type.written_type for name, rule in RULES_BY_PLUGIN.items()},
}
SUBJECT = "KubeSchedulerConfiguration"


def profile_of(config: Mapping[str, Any] | None, scheduler_name: str = "") -> SchedulerProfile:
    """The profile for a scheduler name, else the first one; the default profile without a configuration."""
    if config is None:
        return DEFAULT
    if undecodable := [structure_faults.fault(one, subject=SUBJECT) for one in check_structure(config)]:
        raise InputError(undecodable)
    faults = validate_scheduler_config(dict(config))
    if faults:
        raise InputError([Fault(fault, subject=SUBJECT) for fault in faults])
    profiles = config.get("profiles") or [{}]
    chosen = next((p for p in profiles if p.get("schedulerName") == scheduler_name), profiles[0])
    plugins, weights = chosen.get("plugins") or {}, dict(DEFAULT_WEIGHTS)
    everywhere, score = plugins.get("multiPoint") or {}, plugins.get("score") or {}
    for entry in (*(everywhere.get("enabled") or ()), *(score.get("enabled") or ())):
        weights[entry["name"]] = entry.get("weight") or 1  # not the default weight of the plugin
    written = {entry["name"]: entry.get("args") or {} for entry in chosen.get("pluginConfig") or ()}
    return SchedulerProfile(
        weights=weights,
        disabled=_disabled(everywhere),
        disabled_filters=_disabled(plugins.get("filter") or {}),
        disabled_scores=_disabled(score),
        arguments={
            name: rule.arguments_type.read(written[name]) for name, rule in RULES_BY_PLUGIN.items() if name in written
        },
    )


def check_structure(config: Any, path: str = "") -> list[Finding]:
    """The values of wrong types, also in the arguments of plugins; `path` leads to the configuration."""
    found = list(structure.walk(config, structure.shape_of(SchedulerConfiguration), path, nulls=Nulls.NOWHERE))
    for profile in Field(path, config)["profiles"].items():
        for entry in profile["pluginConfig"].items():
            args, written_type = entry["args"], WRITTEN_TYPES.get(entry["name"].text())
            if args.present and written_type is not None:
                found += structure.walk(args.value, structure.shape_of(written_type), args.path, nulls=Nulls.NOWHERE)
    return found


def _disabled(point: Mapping[str, Any]) -> frozenset[str]:
    """The plugins that are disabled at an extension point and not enabled again; `*` means all of them."""
    off = {entry["name"] for entry in point.get("disabled") or ()}
    on = {entry["name"] for entry in point.get("enabled") or ()}
    return frozenset((RULES_BY_PLUGIN.keys() if ALL_PLUGINS in off else off) - on)


def validate_scheduler_config(config: dict[str, object]) -> list[str]:
    """All errors of the configuration, each with its field path; none if it can be used."""
    whole = Field("", config)
    found = [
        *whole["parallelism"].check_integer(1, None, "should be an integer value greater than zero"),
        *whole["percentageOfNodesToScore"].check_integer(0, 100, "not in valid range [0-100]"),
        *whole["podInitialBackoffSeconds"].check_integer(1, None, "must be greater than 0"),
    ]
    most = whole["podMaxBackoffSeconds"]
    if most.number(10) < whole["podInitialBackoffSeconds"].number(1):
        found.append(most.invalid("must be greater than or equal to PodInitialBackoffSeconds", str(most.number(10))))
    found += _validate_profiles(whole["profiles"])
    return [str(cause) for cause in found]


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
        found += profile["percentageOfNodesToScore"].check_integer(0, 100, "not in valid range [0-100]")
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
                found += plugin["weight"].check_integer(0, None, "not in valid range [0, inf)")
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
        if name in ARGUMENT_VALIDATORS:
            found += ARGUMENT_VALIDATORS[name](config["args"])
    return found
