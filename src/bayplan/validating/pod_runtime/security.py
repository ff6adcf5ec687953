"""
Users and privileges of containers, on Linux and on Windows, and what a pod shares with its node.

Mirrors `ValidateSecurityContext`, `validatePodSpecSecurityContext`, `validateHostUsers`, `validateSeccompProfileField`,
`ValidateAppArmorProfileField`, `validateSysctls`, `validateOS`, `validateWindows`, `validateLinux`,
`validateWindowsHostProcessPod` and `validateWindowsSecurityContextOptions` in pkg/apis/core/validation/validation.go,
for a cluster that allows privileged containers, and component-helpers' node/util/sysctl.
"""

from __future__ import annotations

import re

from bayplan.model.kubernetes_versions import V1_37
from bayplan.validating import go_text, names
from bayplan.validating.fields import Cause, Field
from bayplan.validating.pod_runtime import mounts

MAX_ID = 2**31 - 1
PROC_MOUNTS = ("Default", "Unmasked")
CHANGE_POLICIES = ("Always", "OnRootMismatch")
GROUP_POLICIES = ("Merge", "Strict")
LABEL_POLICIES = ("MountOption", "Recursive")  # the first is behind a feature gate that is off before 1.37
LOCALHOST = "Localhost"
PROFILE_TYPES = (LOCALHOST, "RuntimeDefault", "Unconfined")
MAX_PROFILE_BYTES = 4095
SYSTEMS = ("linux", "windows")
LINUX_POD_FIELDS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "runAsUser", "runAsGroup",
    "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
LINUX_CONTAINER_FIELDS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
MAX_GMSA_SPEC_KIB, MAX_DOMAIN_BYTES, MAX_USER_BYTES = 64, 256, 104
MAX_SYSCTL_BYTES = 253
IPC_SYSCTLS = frozenset({
    "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
    "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
})  # fmt: skip

_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}"
_NET_BIOS = r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}'
_DNS_PART = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = rf"{_NET_BIOS}|{_DNS_PART}(?:\.{_DNS_PART})*"
_NOT_IN_USER = '"/\\:;|=,+*?<>@[]'

UNMASKED = "`hostUsers` must be false to use `Unmasked`"
PRIVILEGED = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
SYS_ADMIN = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
SHARED_WITH_HOST = "ShareProcessNamespace and HostPID cannot both be enabled"
OWN_USERS = "when `hostUsers` is false"
PADDED = "must not be padded with whitespace"
BAD_SYSCTL = f"must have at most {MAX_SYSCTL_BYTES} characters and match regex ^{_SYSCTL}$"
NOT_FOR_LINUX = "windows options cannot be set for a linux pod"
NOT_FOR_WINDOWS = "cannot be set for a windows pod"
NO_RESOURCES = "may not be set for a windows pod"
NOT_ALL_HOST_PROCESSES = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
NO_HOST_NETWORK = "hostNetwork must be true if pod contains any hostProcess containers"


def validate_container_security(context: Field, *, host_users: bool) -> list[Cause]:
    """The causes for rejecting the security context of a container; `host_users`: the pod has the node's users."""
    if not context.present:
        return []
    proc = context["procMount"]
    found = context["runAsUser"].check_range(0, MAX_ID) + context["runAsGroup"].check_range(0, MAX_ID)
    found += proc.check_enum(PROC_MOUNTS, empty_is_default=False)
    if host_users and proc.text() == "Unmasked":
        found.append(proc.invalid(UNMASKED))
    found += _validate_seccomp(context["seccompProfile"])
    if context["allowPrivilegeEscalation"].value is False:
        if context["privileged"].is_true():
            found.append(context.invalid(PRIVILEGED, _context_json(context)))
        if "CAP_SYS_ADMIN" in context["capabilities"]["add"].texts():
            found.append(context.invalid(SYS_ADMIN, _context_json(context)))
    found += _validate_windows_options(context["windowsOptions"])
    return found + _validate_app_armor(context["appArmorProfile"])


def validate_pod_security(spec: Field) -> list[Cause]:
    """The causes for rejecting the security context of a pod, and what it shares with its node."""
    context = spec["securityContext"]
    found: list[Cause] = []
    if context.present:
        ids = (context["fsGroup"], context["runAsUser"], context["runAsGroup"], *context["supplementalGroups"].items())
        found += [cause for field in ids for cause in field.check_range(0, MAX_ID)]
        found += _validate_sysctls(context["sysctls"], spec)
        found += context["fsGroupChangePolicy"].check_enum(CHANGE_POLICIES, empty_is_default=False)
        found += _validate_seccomp(context["seccompProfile"])
        found += _validate_windows_options(context["windowsOptions"])
        found += _validate_app_armor(context["appArmorProfile"])
        found += context["supplementalGroupsPolicy"].check_enum(GROUP_POLICIES, empty_is_default=False)
        policies = LABEL_POLICIES if spec.version >= V1_37 else LABEL_POLICIES[1:]
        found += context["seLinuxChangePolicy"].check_enum(policies, empty_is_default=False)
    if spec["shareProcessNamespace"].is_true() and spec["hostPID"].is_true():
        # In upstream's internal type of 1.36, the field is part of the security context.
        shared = (spec if spec.version >= V1_37 else context)["shareProcessNamespace"]
        found.append(shared.invalid(SHARED_WITH_HOST, "true"))
    if spec["hostUsers"].value is False:
        found += [path.forbidden(OWN_USERS) for path in _shared_with_node(spec)]
    return found


def _shared_with_node(spec: Field) -> list[Field]:
    """The fields that a pod with its own users cannot have; two of the paths are upstream's Go names."""
    shown = {"hostNetwork": "hostNetwork", "hostPID": "HostPID", "hostIPC": "HostIPC"}
    devices = [container["volumeDevices"] for container in _containers(spec)]
    shared = [spec[path] for name, path in shown.items() if spec[name].is_true()]
    return shared + [field for field in devices if field.items()]


# The fields of upstream's internal type in its order, with their own fields if they have any.
_CONTEXT_FIELDS: dict[str, tuple[str, ...]] = {
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
_NEVER_NULL = ("user", "role", "type", "level")  # strings in Go, not pointers


def _context_json(context: Field) -> str:
    """The security context as upstream prints its internal type."""
    members: dict[str, str] = {}
    for name, inner in _CONTEXT_FIELDS.items():
        field = context[name]
        if not field.present or not inner:
            members[name] = go_text.as_json(field.value)
            continue
        values = {one: field[one].text() if one in _NEVER_NULL else field[one].value for one in inner}
        members[name] = _go_json({one: go_text.as_json(value) for one, value in values.items()})
    return _go_json(members)


def _go_json(members: dict[str, str]) -> str:
    """The members as JSON, under the names that they have in Go."""
    names_in_go = [re.sub("^(gmsa|seL)", lambda match: match[0].upper(), name) for name in members]
    parts = zip(names_in_go, members.values(), strict=True)
    return "{" + ",".join(f'"{name[0].upper()}{name[1:]}":{text}' for name, text in parts) + "}"


def _validate_seccomp(profile: Field) -> list[Cause]:
    if not profile.present:
        return []
    kind, local = profile["type"], profile["localhostProfile"]
    found = _validate_profile_type(kind, "type is required when seccompProfile is set")
    if kind.text() == LOCALHOST:
        if not local.present:
            return [*found, local.required("must be set when seccomp type is Localhost")]
        return found + mounts.validate_relative_path(local)
    if local.present:
        parts = (go_text.as_json(kind.text()), go_text.as_json(local.text()))
        shown = '{{"Type":{},"LocalhostProfile":{}}}'.format(*parts)
        found.append(local.invalid("can only be set when seccomp type is Localhost", shown))
    return found


def _validate_app_armor(profile: Field) -> list[Cause]:
    if not profile.present:
        return []
    kind, local = profile["type"], profile["localhostProfile"]
    if kind.text() != LOCALHOST:
        found = _validate_profile_type(kind, "type is required when appArmorProfile is set")
        if local.present and not found:
            shown = go_text.as_json(local.text())
            found.append(local.invalid("can only be set when AppArmor type is Localhost", shown))
        return found
    if not local.text():
        return [local.required("must be set when AppArmor type is Localhost")]
    found = [local.invalid(PADDED)] if local.text() != local.text().strip() else []
    return found if go_text.n_bytes(local.text()) <= MAX_PROFILE_BYTES else [*found, local.too_long(MAX_PROFILE_BYTES)]


def _validate_profile_type(kind: Field, missing: str) -> list[Cause]:
    return kind.check_enum(PROFILE_TYPES) if kind.text() else [kind.required(missing)]


def _validate_sysctls(sysctls: Field, spec: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for item in sysctls.items():
        name = item["name"]
        if not name.text():
            found.append(name.required())
        elif go_text.n_bytes(name.text()) > MAX_SYSCTL_BYTES or not re.fullmatch(_SYSCTL, name.text()):
            found.append(name.invalid(BAD_SYSCTL))
        elif name.text() in seen:
            found.append(name.duplicate())
        shared = _host_namespace(name.text())
        if shared and spec[shared].is_true():
            found.append(name.invalid(f"may not be specified when '{shared}' is true"))
        seen.add(name.text())
    return found


def _host_namespace(sysctl: str) -> str:
    """The field that makes the pod share the namespace of the sysctl with its node; empty if there is none."""
    separator = re.search("[./]", sysctl)
    if separator and separator[0] == "/":  # then slashes and dots are swapped
        sysctl = sysctl.translate({ord("."): "/", ord("/"): "."})
    dotted = sysctl.partition("*")[0]
    if dotted in IPC_SYSCTLS or dotted.startswith("fs.mqueue."):
        return "hostIPC"
    return "hostNetwork" if dotted.startswith("net.") else ""


def validate_os(spec: Field) -> list[Cause]:
    """The causes for rejecting the operating system of a pod, and fields that this system does not have."""
    system, name = spec["os"], spec["os"]["name"]
    if not system.present:
        return []
    if not name.text():
        return [name.required()]
    if name.text() not in SYSTEMS:
        return [system.unsupported(SYSTEMS, go_text.as_json(name.text()))]
    context, contexts = spec["securityContext"], [container["securityContext"] for container in _containers(spec)]
    if name.text() == "linux":
        options = [one["windowsOptions"] for one in (context, *contexts)]
        return [field.forbidden(NOT_FOR_LINUX) for field in options if field.present]
    linux_only = [
        *(spec[name] for name in ("hostPID", "hostIPC") if spec[name].is_true()),
        *([context["sysctls"]] if context["sysctls"].items() else []),
        *(field for field in (spec["hostUsers"], spec["shareProcessNamespace"]) if field.present),
        *(context[name] for name in LINUX_POD_FIELDS if context[name].present),
        *(one[name] for one in contexts for name in LINUX_CONTAINER_FIELDS if one[name].present),
    ]
    found = [spec["resources"].forbidden(NO_RESOURCES)] if spec["resources"].present else []
    return found + [field.forbidden(NOT_FOR_WINDOWS) for field in linux_only]


def validate_host_processes(spec: Field) -> list[Cause]:
    """The causes for rejecting Windows HostProcess containers; either all containers of a pod are, or none."""
    pod_level = spec["securityContext"]["windowsOptions"]["hostProcess"]
    written = [container["securityContext"]["windowsOptions"]["hostProcess"] for container in _containers(spec)]
    found: list[Cause] = []
    for field in written:
        if pod_level.present and field.present and pod_level.is_true() != field.is_true():
            value = go_text.as_json(pod_level.value)
            detail = f"pod hostProcess value must be identical if both are specified, was {value}"
            found.append(field.invalid(detail, go_text.as_json(field.value)))
    host_processes = [(field if field.present else pod_level).is_true() for field in written]
    if not any(host_processes):
        return found
    if not all(host_processes):
        found.append(spec.invalid(NOT_ALL_HOST_PROCESSES))
    if not spec["hostNetwork"].is_true():
        found.append(spec["hostNetwork"].invalid(NO_HOST_NETWORK, "false"))
    return found


def _validate_windows_options(options: Field) -> list[Cause]:
    name, content, user = options["gmsaCredentialSpecName"], options["gmsaCredentialSpec"], options["runAsUserName"]
    wrong = [(name, detail) for detail in (names.dns_subdomain(name.text()) if name.present else [])]
    if content.present and not content.text():
        wrong.append((content, "gmsaCredentialSpec cannot be an empty string"))
    if go_text.n_bytes(content.text()) > MAX_GMSA_SPEC_KIB * 1024:
        wrong.append((content, f"gmsaCredentialSpec size must be under {MAX_GMSA_SPEC_KIB} KiB"))
    wrong += [(user, detail) for detail in (_windows_user_name(user.text()) if user.present else [])]
    return [field.invalid(detail, go_text.as_json(field.text())) for field, detail in wrong]


def _windows_user_name(text: str) -> list[str]:
    """The details on a user name, which may have a domain and a backslash before it."""
    if not text:
        return ["runAsUserName cannot be an empty string"]
    if re.search(r"[\x00-\x1f\x7f]", text):
        return ["runAsUserName cannot contain control characters"]
    if text.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = text.rpartition("\\")
    details: list[str] = []
    if go_text.n_bytes(domain) >= MAX_DOMAIN_BYTES:
        details.append(f"runAsUserName's Domain length must be under {MAX_DOMAIN_BYTES} characters")
    if backslash and not re.fullmatch(_DOMAIN, domain):
        details.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        details.append("runAsUserName's User cannot be empty")
    elif go_text.n_bytes(user) > MAX_USER_BYTES:
        details.append(f"runAsUserName's User length must not be longer than {MAX_USER_BYTES} characters")
    if user and not user.strip(". "):
        details.append("runAsUserName's User cannot contain only periods or spaces")
    if any(character in _NOT_IN_USER for character in user):
        details.append(f"runAsUserName's User cannot contain the following characters: {_NOT_IN_USER}")
    return details


def _containers(spec: Field) -> list[Field]:
    return [*spec["initContainers"].items(), *spec["containers"].items()]
