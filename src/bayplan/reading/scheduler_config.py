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
from bayplan.model.kubernetes_versions import DEFAULT_VERSION, V1_37, KubernetesVersion
from bayplan.preempting import arguments as preemption_arguments
from bayplan.rules.profiles import DEFAULT_WEIGHTS, POD_PLUGINS, SchedulerProfile, default_plugins, default_profile
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
WRITTEN_TYPES = {
    preemption_arguments.PLUGIN: DefaultPreemptionArgs,
    **{name: rule.arguments_type.written_type for name, rule in RULES_BY_PLUGIN.items()},
}
DECIDING_POINTS = ("preFilter", "filter", "preScore", "score")
SUBJECT = "KubeSchedulerConfiguration"


def profile_of(
    config: Mapping[str, Any] | None, scheduler_name: str = "", version: KubernetesVersion = DEFAULT_VERSION
) -> SchedulerProfile:
    """The profile for a scheduler name, else the first one; the default profile without a configuration."""
    if config is None:
        return default_profile(version)
    if undecodable := [structure_faults.fault(one, subject=SUBJECT) for one in check_structure(config)]:
        raise InputError(undecodable)
    faults = validate_scheduler_config(dict(config), version)
    if faults:
        raise InputError([Fault(fault, subject=SUBJECT) for fault in faults])
    profiles = config.get("profiles") or [{}]
    chosen = next((p for p in profiles if p.get("schedulerName") == scheduler_name), profiles[0])
    plugins = chosen.get("plugins") or {}
    everywhere = _enabled_everywhere(plugins.get("multiPoint") or {}, version)
    written = {entry["name"]: entry.get("args") or {} for entry in chosen.get("pluginConfig") or ()}
    weights = everywhere | _weights((plugins.get("score") or {}).get("enabled"))
    return SchedulerProfile(
        filter=_enabled_at("filter", plugins, everywhere, version),
        pre_filter=_enabled_at("preFilter", plugins, everywhere, version),
        pre_score=frozenset(_enabled_at("preScore", plugins, everywhere, version)),
        score={name: weights[name] for name in _enabled_at("score", plugins, everywhere, version)},
        arguments={
            name: rule.arguments_type.read(written[name]) for name, rule in RULES_BY_PLUGIN.items() if name in written
        },
    )


def _enabled_everywhere(multi_point: Mapping[str, Any], version: KubernetesVersion) -> dict[str, int]:
    """
    The plugins of `multiPoint` with their weights, in their order: the default ones that are not disabled, then others.

    Mirrors mergePluginSet of apis/config/v1/default_plugins.go: a default plugin that is listed again keeps its place.
    """
    disabled = {entry.get("name") for entry in multi_point.get("disabled") or ()}
    listed = _weights(multi_point.get("enabled"))
    kept = () if ALL_PLUGINS in disabled else (name for name in default_plugins(version) if name not in disabled)
    return {name: listed.get(name, DEFAULT_WEIGHTS[name]) for name in kept} | listed


def _weights(enabled: list[dict[str, Any]] | None) -> dict[str, int]:
    """The weights of enabled plugins that are rules; without one it is 1, not the default weight of the plugin."""
    return {one["name"]: one.get("weight") or 1 for one in enabled or () if one["name"] in RULES_BY_PLUGIN}


def _enabled_at(
    point: str, plugins: Mapping[str, Any], everywhere: Mapping[str, int], version: KubernetesVersion
) -> tuple[str, ...]:
    """
    The plugins of an extension point, in the order in which they run.

    Mirrors expandMultiPointPlugins of framework/runtime/framework.go: first those of `multiPoint` that the point lists
    again, then the other ones of `multiPoint`, then what only the point lists.
    """
    written = plugins.get(point) or {}
    listed, disabled = _weights(written.get("enabled")), {one.get("name") for one in written.get("disabled") or ()}
    if ALL_PLUGINS in disabled:
        return tuple(listed)
    extending = [name for name in everywhere if point in points_of(name, version) and name not in disabled]
    again = [name for name in listed if name in extending]
    return tuple(dict.fromkeys((*again, *(name for name in extending if name not in listed), *listed)))


def points_of(plugin: str, version: KubernetesVersion) -> tuple[str, ...]:
    """The extension points of a plugin that is a rule."""
    points = RULES_BY_PLUGIN[plugin].extends
    return tuple(one for one in points if one != "preFilter") if plugin == "NodeName" and version < V1_37 else points


def check_structure(config: Any, path: str = "") -> list[Finding]:
    """The values of wrong types, also in the arguments of plugins; `path` leads to the configuration."""
    found = list(structure.walk(config, structure.shape_of(SchedulerConfiguration), path, nulls=Nulls.NOWHERE))
    for profile in Field(path, config)["profiles"].items():
        for entry in profile["pluginConfig"].items():
            args, written_type = entry["args"], WRITTEN_TYPES.get(entry["name"].text())
            if args.present and written_type is not None:
                found += structure.walk(args.value, structure.shape_of(written_type), args.path, nulls=Nulls.NOWHERE)
    return found


def validate_scheduler_config(config: dict[str, object], version: KubernetesVersion = DEFAULT_VERSION) -> list[str]:
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
    found += _validate_profiles(whole["profiles"], version)
    return [str(cause) for cause in found]


def _validate_profiles(profiles: Field, version: KubernetesVersion) -> list[Cause]:
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
        found += _validate_plugins(profile["plugins"], version)
        found += _validate_plugin_config(profile["pluginConfig"], version)
    return found


def _validate_plugins(plugins: Field, version: KubernetesVersion) -> list[Cause]:
    """
    Extension points and enabled plugins that do not exist or do not go together, and plugins with a negative weight.

    A weight of 0 stands for 1. As in kube-scheduler, an unknown name among the disabled plugins has no effect.
    """
    found: list[Cause] = []
    for point in plugins.names():
        if point not in EXTENSION_POINTS:
            found.append(plugins[point].unsupported(EXTENSION_POINTS, go_text.as_json(point)))
        for plugin in plugins[point]["enabled"].items():
            name = plugin["name"]
            if name.text() not in PLUGINS:
                found.append(name.unsupported(PLUGINS, go_text.as_json(name.value)))
            elif point in DECIDING_POINTS and not _extends(name.text(), point, version):
                kind = f"{point[0].upper()}{point[1:]}Plugin"
                found.append(name.invalid(f"plugin {go_text.quoted(name.text())} does not extend {kind} plugin"))
            if point in ("multiPoint", "score"):
                found += plugin["weight"].check_integer(0, None, "not in valid range [0, inf)")
    return found or _validate_states(plugins, version)


def _extends(plugin: str, point: str, version: KubernetesVersion) -> bool:
    return plugin not in RULES_BY_PLUGIN or point in points_of(plugin, version)


def _validate_states(plugins: Field, version: KubernetesVersion) -> list[Cause]:
    """Plugins that filter or score without what they compute before: kube-scheduler starts, and fails at every pod."""
    written = plugins.value if isinstance(plugins.value, dict) else {}
    everywhere = _enabled_everywhere(written.get("multiPoint") or {}, version)
    at = {point: _enabled_at(point, written, everywhere, version) for point in DECIDING_POINTS}
    lacking = [("filter", "preFilter", name) for name in at["filter"] if RULES_BY_PLUGIN[name].filter_needs_pre_filter]
    lacking += [("score", "preScore", name) for name in at["score"] if RULES_BY_PLUGIN[name].score_needs_pre_score]
    return [
        plugins[point].invalid(f"plugin {go_text.quoted(name)} needs {before}, where it is not enabled", name)
        for point, before, name in lacking
        if name not in at[before]
    ]


def _validate_plugin_config(configs: Field, version: KubernetesVersion) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for config in configs.items():
        name = config["name"].text()
        if name in seen:
            found.append(config.duplicate(go_text.quoted(name)))
        seen.add(name)
        if name == preemption_arguments.PLUGIN:
            found += preemption_arguments.validate(config["args"])
        elif name in RULES_BY_PLUGIN:
            found += RULES_BY_PLUGIN[name].arguments_type.validate_for(version, config["args"])
    return found
