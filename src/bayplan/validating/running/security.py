"""
Who containers run as and what they may do to the node.

Mirrors `ValidateSecurityContext`, `validatePodSpecSecurityContext` and `validateHostUsers` in
pkg/apis/core/validation/validation.go, for a cluster that lets containers be privileged.
"""

from __future__ import annotations

import re

from bayplan.validating import causes, choices, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.running import profiles, sysctls, windows

MAX_ID = 2**31 - 1
PROC_MOUNTS = ("Default", "Unmasked")
UNMASKED = "`hostUsers` must be false to use `Unmasked`"
PRIVILEGED = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
SYS_ADMIN = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
CHANGE_POLICIES = ("Always", "OnRootMismatch")
GROUP_POLICIES = ("Merge", "Strict")
LABEL_POLICIES = ("Recursive",)  # more behind a feature gate that is off
SHARED_WITH_HOST = "ShareProcessNamespace and HostPID cannot both be enabled"
OWN_USERS = "when `hostUsers` is false"


def of_container(context: Field, *, host_users: bool) -> list[Cause]:
    """What is wrong with the security context of a container in a pod that has the host's users, or its own."""
    if not context.present:
        return []
    proc = context["procMount"]
    found = [*_id(context["runAsUser"]), *_id(context["runAsGroup"]), *choices.one_of(proc, PROC_MOUNTS)]
    if host_users and proc.text() == "Unmasked":
        found.append(causes.invalid(proc.path, '"Unmasked"', UNMASKED))
    found += profiles.seccomp(context["seccompProfile"])
    if context["allowPrivilegeEscalation"].value is False:
        found += _escalation(context)
    return [*found, *windows.options(context["windowsOptions"]), *profiles.app_armor(context["appArmorProfile"])]


def of_pod(spec: Field) -> list[Cause]:
    """What is wrong with the security context of a pod, and with what it shares with its node."""
    context, shared = spec["securityContext"], spec["shareProcessNamespace"]
    found: list[Cause] = []
    if context.present:
        found += [cause for name in ("fsGroup", "runAsUser", "runAsGroup") for cause in _id(context[name])]
        found += [cause for group in context["supplementalGroups"].items() for cause in _id(group)]
        found += sysctls.causes_of(context["sysctls"], spec)
        found += choices.one_of(context["fsGroupChangePolicy"], CHANGE_POLICIES)
        found += profiles.seccomp(context["seccompProfile"])
        found += windows.options(context["windowsOptions"])
        found += profiles.app_armor(context["appArmorProfile"])
        found += choices.one_of(context["supplementalGroupsPolicy"], GROUP_POLICIES)
        found += choices.one_of(context["seLinuxChangePolicy"], LABEL_POLICIES)
    if shared.flag() and spec["hostPID"].flag():  # one of the fields that upstream keeps in the security context
        found.append(causes.invalid(context["shareProcessNamespace"].path, "true", SHARED_WITH_HOST))
    return found + (_own_users(spec) if spec["hostUsers"].value is False else [])


def _own_users(spec: Field) -> list[Cause]:
    """What a pod with users of its own cannot share with the node; two of the paths are upstream's Go names."""
    named = {"hostNetwork": "hostNetwork", "hostPID": "HostPID", "hostIPC": "HostIPC"}
    listed = [*spec["initContainers"].items(), *spec["containers"].items()]
    devices = [container["volumeDevices"] for container in listed if container["volumeDevices"].items()]
    refused = [spec[shown].path for name, shown in named.items() if spec[name].flag()]
    return [causes.forbidden(path, OWN_USERS) for path in (*refused, *(field.path for field in devices))]


def _id(field: Field) -> list[Cause]:
    return choices.within(field, 0, MAX_ID)


def _escalation(context: Field) -> list[Cause]:
    """What lets a process become more than it is, although it must not; upstream shows its own copy of the context."""
    found: list[Cause] = []
    if context["privileged"].flag():
        found.append(causes.invalid(context.path, _shown(context), PRIVILEGED))
    if "CAP_SYS_ADMIN" in context["capabilities"]["add"].texts():
        found.append(causes.invalid(context.path, _shown(context), SYS_ADMIN))
    return found


# The parts of upstream's own copy, in its order, with their fields if they have any.
_PARTS: dict[str, tuple[str, ...]] = {
    "capabilities": ("add", "drop"),
    "privileged": (),
    "seLinuxOptions": ("user", "role", "type", "level"),
    "windowsOptions": ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName", "hostProcess"),
    "runAsUser": (),
    "runAsGroup": (),
    "runAsNonRoot": (),
    "readOnlyRootFilesystem": (),
    "allowPrivilegeEscalation": (),
    "procMount": (),
    "seccompProfile": ("type", "localhostProfile"),
    "appArmorProfile": ("type", "localhostProfile"),
}
_TEXTS = ("user", "role", "type", "level")  # which are never null in Go


def _shown(context: Field) -> str:
    return _as_go({name: _part(context[name], parts) for name, parts in _PARTS.items()})


def _part(field: Field, parts: tuple[str, ...]) -> str:
    if not field.present or not parts:
        return go_text.as_json(field.value)
    return _as_go(
        {name: go_text.as_json(field[name].text() if name in _TEXTS else field[name].value) for name in parts}
    )


def _as_go(members: dict[str, str]) -> str:
    return "{" + ",".join(f'"{_go_name(name)}":{text}' for name, text in members.items()) + "}"


def _go_name(name: str) -> str:
    named = re.sub("^(gmsa|seL)", lambda match: match[0].upper(), name)
    return named[0].upper() + named[1:]
