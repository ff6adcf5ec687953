"""
How decisions are made: semantics and their switches, versions, profiles of the scheduler, custom kinds, the seed.

Values only: what was read from a file or given as an option arrives here as plain data.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bayplan.errors import ArgumentError, Fault, InputError
from bayplan.library import arguments

if TYPE_CHECKING:
    from bayplan.controllers.custom_kinds import CustomKind
    from bayplan.engine.engine import EngineOf
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.mapping.bindings import LabelKeys
    from bayplan.model.kubernetes_versions import KubernetesVersion
    from bayplan.model.semantics import Semantics
    from bayplan.rules.rule import AnyRule

DEFAULT_SCHEDULER = "default-scheduler"
_CONFIGURATION = "KubeSchedulerConfiguration"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """
    How decisions are made. The defaults are those of the command line.

    `semantics` is a preset, "upstream" or "design", and `switches` are the differences between the two, by name.
    `kubernetes_version` is "1.36" or "1.37". `seed` decides between equal scores. `hpa` says how many replicas a
    HorizontalPodAutoscaler gives its target: "min", "current" or "max". `scheduler` is a KubeSchedulerConfiguration,
    and `scheduler_file` the name for it in error messages. `custom_kinds` are the kinds that make pods, as in the
    configuration file. The label keys are those that workload affinity and anti-affinity in a fleet may use; None for
    all.
    """

    semantics: Literal["upstream", "design"] = "upstream"
    switches: Mapping[str, bool | int | str | Sequence[str]] = {}
    kubernetes_version: str = ""
    seed: str = ""
    hpa: Literal["min", "current", "max"] = "current"
    scheduler: Mapping[str, Any] | None = None
    scheduler_file: str = ""
    custom_kinds: Sequence[Mapping[str, Any]] = ()
    affinity_label_keys: Sequence[str] | None = None
    anti_affinity_label_keys: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Copy what could be changed later, and reject what is of another type than the field."""
        for name in ("semantics", "kubernetes_version", "seed", "hpa", "scheduler_file"):
            arguments.check_is(name, getattr(self, name), str)
        arguments.check_is("switches", self.switches, Mapping)
        arguments.check_is("scheduler", self.scheduler or {}, Mapping)
        for name in ("switches", "scheduler", "custom_kinds"):
            if given := getattr(self, name):
                msgspec.structs.force_setattr(self, name, copy.deepcopy(given))
        for name in ("affinity_label_keys", "anti_affinity_label_keys"):
            if (keys := getattr(self, name)) is not None:
                msgspec.structs.force_setattr(self, name, arguments.several(name, keys))


def version_of(settings: Settings) -> KubernetesVersion:
    """The version whose scheduler and API server decide."""
    from bayplan.model.kubernetes_versions import DEFAULT_VERSION, KubernetesVersion, known_version

    found = known_version(settings.kubernetes_version) if settings.kubernetes_version else DEFAULT_VERSION
    if found is None:
        expected = f"expected {' or '.join(KubernetesVersion)}, got {settings.kubernetes_version!r}"
        raise ArgumentError(expected, argument="kubernetes_version")
    return found


def semantics_of(settings: Settings) -> Semantics:
    """The preset with the switches set; raises ArgumentError for an unknown switch or a value of another type."""
    from bayplan.model.semantics import Semantics, preset_of

    version = version_of(settings)
    arguments.check_choice("semantics", settings.semantics, ("upstream", "design"))
    arguments.check_choice("hpa", settings.hpa, ("min", "current", "max"))
    fields = msgspec.to_builtins(preset_of(settings.semantics, version))
    del fields["kubernetesVersion"]
    for name, value in settings.switches.items():
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1)
            advice = f"did you mean {near[0]}?" if near else f"the switches are {', '.join(fields)}"
            raise ArgumentError(f"unknown switch {name!r}; {advice}", argument="switches")
        fields[name] = _switch_value(name, value, fields[name])
    return msgspec.convert({**fields, "kubernetesVersion": version}, Semantics)


def _switch_value(name: str, given: Any, preset: Any) -> Any:
    """The value, of the type that the preset has; text is read as on the command line."""
    if isinstance(preset, bool):
        if str(given).lower() not in ("true", "false") or given in ("True", "False"):
            raise ArgumentError(f"expected {name}=true or {name}=false, got {given!r}", argument="switches")
        return str(given).lower() == "true"
    if isinstance(preset, int):
        if isinstance(given, bool) or not str(given).isdecimal():
            raise ArgumentError(f"expected {name}=N, a whole number, got {given!r}", argument="switches")
        return int(given)
    return [item for item in given.split(",") if item] if isinstance(given, str) else list(given)


def label_keys(settings: Settings) -> LabelKeys:
    """The label keys that workload affinity and anti-affinity in a fleet may use."""
    from bayplan.mapping.bindings import LabelKeys

    given = (settings.affinity_label_keys, settings.anti_affinity_label_keys)
    return LabelKeys(*(None if keys is None else tuple(keys) for keys in given))


def custom_kinds(settings: Settings) -> list[CustomKind]:
    """The custom kinds that make pods, beside those that are known anyway."""
    if not settings.custom_kinds:
        return []
    from bayplan.controllers.custom_kinds import CustomKind
    from bayplan.validating import structure_faults

    written = arguments.plain("custom_kinds", settings.custom_kinds)
    for fault in structure_faults.faults(written, list[CustomKind], "custom_kinds"):
        raise ArgumentError(str(fault))
    return msgspec.convert(written, list[CustomKind])


def rules(settings: Settings, scheduler_name: str = DEFAULT_SCHEDULER) -> tuple[AnyRule, ...]:
    """The rules of the profile for a scheduler, else of the first one; else kube-scheduler's defaults."""
    from bayplan.rules import profiles

    version = version_of(settings)
    if settings.scheduler is None:
        return profiles.pod_rules(profiles.default_profile(version))
    from bayplan.reading import scheduler_config
    from bayplan.validating import structure_faults

    name = settings.scheduler_file
    written = dict(settings.scheduler)
    if (kind := written.get("kind", _CONFIGURATION)) != _CONFIGURATION:
        raise InputError(Fault(f"expected {_CONFIGURATION}, got {kind!r}", file=name, path="kind"))
    problems = [
        Fault(structure_faults.message(one), file=name, path=one.path)
        for one in scheduler_config.check_structure(written, "")
    ]
    if problems:
        raise InputError(problems)
    try:
        return profiles.pod_rules(scheduler_config.profile_of(written, scheduler_name, version))
    except InputError as error:
        raise InputError([Fault(f.message, file=name, subject=f.subject, path=f.path) for f in error.faults]) from None


def engines(settings: Settings) -> Callable[[PlacementIndex], EngineOf]:
    """The engines over an index by workload: one for each profile, however many schedulers the workloads name."""
    from bayplan.engine.engine import Engine

    first = rules(settings, "")  # reports a bad configuration before any input is read
    named = {name: rules(settings, name) for name in _profile_names(settings)}

    def over(index: PlacementIndex) -> EngineOf:
        default, by_name = Engine(index, first), {name: Engine(index, found) for name, found in named.items()}
        return lambda workload: by_name.get(workload.scheduler_name or DEFAULT_SCHEDULER, default)

    return over


def schedulers(settings: Settings) -> frozenset[str]:
    """The schedulers whose pods are placed: those with a profile, Bayplan and kube-scheduler."""
    from bayplan.controllers.pod_admission import SCHEDULERS

    return SCHEDULERS | set(_profile_names(settings))


def _profile_names(settings: Settings) -> list[str]:
    written = (settings.scheduler or {}).get("profiles") or ()  # its structure was checked with the rules
    return [name for profile in written if (name := profile.get("schedulerName"))]
