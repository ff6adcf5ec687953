"""
Pods for Windows: whose names their processes have, and what only Linux knows.

Mirrors `validateOS`, `validateWindows`, `validateLinux`, `validateWindowsHostProcessPod` and
`validateWindowsSecurityContextOptions` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re

from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

SYSTEMS = ("linux", "windows")
NOT_FOR_LINUX = "windows options cannot be set for a linux pod"
NOT_FOR_WINDOWS = "cannot be set for a windows pod"
NO_RESOURCES = "may not be set for a windows pod"
OF_CONTEXT = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "runAsUser", "runAsGroup",
    "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
OF_CONTAINER = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
NOT_ALL = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
NO_HOST_NETWORK = "hostNetwork must be true if pod contains any hostProcess containers"
MAX_SPEC_KIB, MAX_DOMAIN, MAX_USER = 64, 256, 104
_NET_BIOS = r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}'
_DNS_PART = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = rf"{_NET_BIOS}|{_DNS_PART}(?:\.{_DNS_PART})*"
_NOT_IN_USER = '"/\\:;|=,+*?<>@[]'


def of_system(spec: Field) -> list[Cause]:
    """What is wrong with the system that a pod is for, and what it asks for that this system has not."""
    system, name = spec["os"], spec.under("os", "name")
    if not system.present:
        return []
    if not name.text():
        return [causes.required(name.path)]
    if name.text() not in SYSTEMS:
        return [causes.unsupported(system.path, go_text.as_json(name.text()), SYSTEMS)]
    contexts = [container["securityContext"] for container in _containers(spec)]
    if name.text() == "linux":
        written = [one["windowsOptions"] for one in (spec["securityContext"], *contexts)]
        return [causes.forbidden(field.path, NOT_FOR_LINUX) for field in written if field.present]
    refused = [*_of_linux(spec), *(one[part] for one in contexts for part in OF_CONTAINER if one[part].present)]
    resources = [causes.forbidden(spec["resources"].path, NO_RESOURCES)] if spec["resources"].present else []
    return resources + [causes.forbidden(field.path, NOT_FOR_WINDOWS) for field in refused]


def _of_linux(spec: Field) -> list[Field]:
    context = spec["securityContext"]
    flags = [spec[name] for name in ("hostPID", "hostIPC") if spec[name].flag()]
    written = [spec["hostUsers"], spec["shareProcessNamespace"], *(context[part] for part in OF_CONTEXT)]
    sysctls = [context["sysctls"]] if context["sysctls"].items() else []
    return flags + sysctls + [field for field in written if field.present]


def host_processes(spec: Field) -> list[Cause]:
    """What is wrong with containers that are processes of the node, which all of a pod's are or none."""
    own = spec["securityContext"]["windowsOptions"]["hostProcess"]
    asked = [container["securityContext"]["windowsOptions"]["hostProcess"] for container in _containers(spec)]
    found: list[Cause] = []
    for field in asked:
        if own.present and field.present and own.flag() != field.flag():
            detail = f"pod hostProcess value must be identical if both are specified, was {go_text.as_json(own.value)}"
            found.append(causes.invalid(field.path, go_text.as_json(field.value), detail))
    on_host = [(field if field.present else own).flag() for field in asked]
    if not any(on_host):
        return found
    if not all(on_host):
        found.append(causes.invalid(spec.path, '""', NOT_ALL))
    if not spec["hostNetwork"].flag():
        found.append(causes.invalid(spec["hostNetwork"].path, "false", NO_HOST_NETWORK))
    return found


def options(field: Field) -> list[Cause]:
    """What is wrong with the part of a security context that is for Windows."""
    name, content, user = field["gmsaCredentialSpecName"], field["gmsaCredentialSpec"], field["runAsUserName"]
    found: list[Cause] = []
    if name.present:
        found += [_invalid(name, detail) for detail in names.dns_subdomain(name.text())]
    if content.present and not content.text():
        found.append(_invalid(content, "gmsaCredentialSpec cannot be an empty string"))
    if go_text.n_bytes(content.text()) > MAX_SPEC_KIB * 1024:
        found.append(_invalid(content, f"gmsaCredentialSpec size must be under {MAX_SPEC_KIB} KiB"))
    return found + ([_invalid(user, detail) for detail in _user_name(user.text())] if user.present else [])


def _user_name(text: str) -> list[str]:
    if not text:
        return ["runAsUserName cannot be an empty string"]
    if re.search(r"[\x00-\x1f\x7f]", text):
        return ["runAsUserName cannot contain control characters"]
    if text.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = text.rpartition("\\")
    details: list[str] = []
    if go_text.n_bytes(domain) >= MAX_DOMAIN:
        details.append(f"runAsUserName's Domain length must be under {MAX_DOMAIN} characters")
    if backslash and not re.fullmatch(_DOMAIN, domain):
        details.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        details.append("runAsUserName's User cannot be empty")
    elif go_text.n_bytes(user) > MAX_USER:
        details.append(f"runAsUserName's User length must not be longer than {MAX_USER} characters")
    if user and not user.strip(". "):
        details.append("runAsUserName's User cannot contain only periods or spaces")
    if any(character in _NOT_IN_USER for character in user):
        details.append(f"runAsUserName's User cannot contain the following characters: {_NOT_IN_USER}")
    return details


def _containers(spec: Field) -> list[Field]:
    return [*spec["initContainers"].items(), *spec["containers"].items()]


def _invalid(field: Field, detail: str) -> Cause:
    return causes.invalid(field.path, go_text.as_json(field.text()), detail)
