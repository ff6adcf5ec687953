"""
Kernel settings of a pod. Knows which belong to namespaces that a pod may share with its node.

Mirrors `validateSysctls` in pkg/apis/core/validation/validation.go and component-helpers' node/util/sysctl.
"""

from __future__ import annotations

import re

from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_NAME = rf"({_SEGMENT}[\./])*{_SEGMENT}"
MAX_NAME = 253
BAD_NAME = f"must have at most {MAX_NAME} characters and match regex ^{_NAME}$"
OF_IPC = frozenset({
    "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
    "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
})  # fmt: skip


def causes_of(sysctls: Field, spec: Field) -> list[Cause]:
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
