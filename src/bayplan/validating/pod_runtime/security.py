"""
Who containers run as and what they may do to the node.

Mirrors `ValidateSecurityContext`, `validatePodSpecSecurityContext` and `validateHostUsers` in
pkg/apis/core/validation/validation.go, for a cluster that lets containers be privileged.
"""

from __future__ import annotations

import re

from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import local_paths, windows

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
    found = [*_id(context["runAsUser"]), *_id(context["runAsGroup"]), *causes.one_of(proc, PROC_MOUNTS)]
    if host_users and proc.text() == "Unmasked":
        found.append(causes.invalid(proc.path, '"Unmasked"', UNMASKED))
    found += seccomp(context["seccompProfile"])
    if context["allowPrivilegeEscalation"].value is False:
        found += _escalation(context)
    return [*found, *windows.options(context["windowsOptions"]), *app_armor(context["appArmorProfile"])]


def of_pod(spec: Field) -> list[Cause]:
    """What is wrong with the security context of a pod, and with what it shares with its node."""
    context, shared = spec["securityContext"], spec["shareProcessNamespace"]
    found: list[Cause] = []
    if context.present:
        found += [cause for name in ("fsGroup", "runAsUser", "runAsGroup") for cause in _id(context[name])]
        found += [cause for group in context["supplementalGroups"].items() for cause in _id(group)]
        found += sysctl_causes(context["sysctls"], spec)
        found += causes.one_of(context["fsGroupChangePolicy"], CHANGE_POLICIES)
        found += seccomp(context["seccompProfile"])
        found += windows.options(context["windowsOptions"])
        found += app_armor(context["appArmorProfile"])
        found += causes.one_of(context["supplementalGroupsPolicy"], GROUP_POLICIES)
        found += causes.one_of(context["seLinuxChangePolicy"], LABEL_POLICIES)
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
    return causes.within(field, 0, MAX_ID)


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


# RF merged from validating.running.profiles: Profiles of seccomp and AppArmor: which kind, and which file of the
# node. Mirrors `validateSeccompProfileField` and `ValidateAppArmorProfileField` in
# pkg/apis/core/validation/validation.go.

LOCALHOST = "Localhost"
TYPES = (LOCALHOST, "RuntimeDefault", "Unconfined")
PADDED = "must not be padded with whitespace"
MAX_PROFILE = 4095


def seccomp(profile: Field) -> list[Cause]:
    """What is wrong with a profile of seccomp."""
    if not profile.present:
        return []
    kind, local = profile["type"], profile["localhostProfile"]
    found = _type(kind, "type is required when seccompProfile is set")
    if kind.text() != LOCALHOST:
        if local.present:
            parts = (go_text.as_json(kind.text()), go_text.as_json(local.text()))
            shown = '{{"Type":{},"LocalhostProfile":{}}}'.format(*parts)
            found.append(causes.invalid(local.path, shown, "can only be set when seccomp type is Localhost"))
        return found
    if not local.present:
        return [*found, causes.required(local.path, "must be set when seccomp type is Localhost")]
    return found + local_paths.descending(local)


def app_armor(profile: Field) -> list[Cause]:
    """What is wrong with a profile of AppArmor."""
    if not profile.present:
        return []
    kind, local = profile["type"], profile["localhostProfile"]
    if kind.text() == LOCALHOST:
        return _named(local)
    found = _type(kind, "type is required when appArmorProfile is set")
    if local.present and not found:
        shown = go_text.as_json(local.text())
        found.append(causes.invalid(local.path, shown, "can only be set when AppArmor type is Localhost"))
    return found


def _named(local: Field) -> list[Cause]:
    text = local.text()
    if not text:
        return [causes.required(local.path, "must be set when AppArmor type is Localhost")]
    found = [causes.invalid(local.path, go_text.quoted(text), PADDED)] if text != text.strip() else []
    if go_text.n_bytes(text) > MAX_PROFILE:
        found.append(causes.too_long(local.path, f"may not be more than {MAX_PROFILE} bytes"))
    return found


def _type(kind: Field, missing: str) -> list[Cause]:
    if not kind.text():
        return [causes.required(kind.path, missing)]
    return [] if kind.text() in TYPES else [causes.unsupported(kind.path, go_text.as_json(kind.text()), TYPES)]


# RF merged from validating.running.sysctls: Kernel settings of a pod. Knows which belong to namespaces that a pod may
# share with its node. Mirrors `validateSysctls` in pkg/apis/core/validation/validation.go and component-helpers'
# node/util/sysctl.

_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_NAME = rf"({_SEGMENT}[\./])*{_SEGMENT}"
MAX_NAME = 253
BAD_NAME = f"must have at most {MAX_NAME} characters and match regex ^{_NAME}$"
OF_IPC = frozenset({
    "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
    "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
})  # fmt: skip


def sysctl_causes(sysctls: Field, spec: Field) -> list[Cause]:
    """What is wrong with the kernel settings of a pod with this spec."""
    found: list[Cause] = []
    seen: set[str] = set()
    for item in sysctls.items():
        name = item["name"]
        shown = go_text.quoted(name.text())
        if not name.text():
            found.append(causes.required(name.path))
        elif go_text.n_bytes(name.text()) > MAX_NAME or not re.fullmatch(_NAME, name.text()):
            found.append(causes.invalid(name.path, shown, BAD_NAME))
        elif name.text() in seen:
            found.append(causes.duplicate(name.path, shown))
        shared = _shared(name.text())
        if shared and spec[shared].flag():
            found.append(causes.invalid(name.path, shown, f"may not be specified when '{shared}' is true"))
        seen.add(name.text())
    return found


def _shared(name: str) -> str:
    """The field by which the pod would have the setting's namespace in common with its node, if there is one."""
    dotted = _with_dots(name).partition("*")[0]
    if dotted in OF_IPC or dotted.startswith("fs.mqueue."):
        return "hostIPC"
    return "hostNetwork" if dotted.startswith("net.") else ""


def _with_dots(name: str) -> str:
    """Where the first separator is a slash, slashes and dots have changed places."""
    first = re.search("[./]", name)
    return name.translate({ord("."): "/", ord("/"): "."}) if first and first[0] == "/" else name
