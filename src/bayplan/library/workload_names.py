"""
The workload that a question names: `KIND/NAME` in kubectl's spelling, or `NAMESPACE/NAME` of a pod.

Knows the names of pods that controllers make, and nothing of explanations.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan.errors import ArgumentError

if TYPE_CHECKING:
    from bayplan.controllers.desired_state import ObjectKey
    from bayplan.model.workloads import Workload

_MADE_BY = {"deployment": "replicaset", "cronjob": "job"}  # what its pods are controlled by
_TEMPLATE_HASH = "pod-template-hash"
ANY_KIND = "pod"  # a bare name is read as a pod's; in a fleet it matches a template of any kind


@functools.cache
def pod_suffixes() -> dict[str, str]:
    """Kind → what follows its name in the names of its pods."""
    from bayplan.wire import kinds

    rows = [(names, row) for names in kinds.PodNames for row in kinds.KINDS.values() if row.pod_names is names]
    return {row.kind.lower(): names.value for names, row in rows}


@functools.cache
def _binding_kinds() -> frozenset[str]:
    """The names and short names of the kinds of bindings."""
    from bayplan.wire import kinds

    return frozenset(name for row in kinds.held_in("bindings") for name in (row.kind.lower(), row.short_name))


@functools.cache
def short_names() -> dict[str, str]:
    """Short name → kind, of everything but bindings."""
    from bayplan.wire import kinds

    named = {row.short_name: row.kind.lower() for row in kinds.KINDS.values() if row.short_name}
    return {short: kind for short, kind in named.items() if short not in _binding_kinds()}


class WorkloadName(msgspec.Struct, frozen=True):
    """The workload that is asked about; an empty namespace matches any."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"

    def matches_pod(self, pod: Workload) -> bool:
        """Whether a pod is requested: by its controller, and by its own name if none is known."""
        if self.namespace not in ("", pod.namespace):
            return False
        controller = pod.controller
        if self.kind == ANY_KIND or controller is None:
            return self.matches_name(pod.name)
        kind = controller.kind.lower()
        if kind == self.kind:
            return controller.name == self.name
        if kind != _MADE_BY.get(self.kind):
            return False
        template = pod.labels.get(_TEMPLATE_HASH)
        if template and controller.name.endswith(f"-{template}"):
            return controller.name == f"{self.name}-{template}"
        # The name of a pod is that of its controller, and a suffix that has no hyphen.
        return self.matches_name(f"{controller.name}-{'x' * 5}")

    def matches_name(self, name: str) -> bool:
        """Whether a pod of this name would be requested."""
        return re.fullmatch(re.escape(self.name) + pod_suffixes()[self.kind], name) is not None

    def names(self, key: ObjectKey) -> bool:
        """Whether the controller itself is requested."""
        return (self.kind, self.name) == (key.kind.lower(), key.name) and self.namespace in ("", key.namespace)

    def matches_binding(self, workload: Workload) -> bool:
        """Whether a binding is requested, by its own name or by the name of its template."""
        binding = workload.binding
        if binding is None or workload.terminating:
            return False
        if self.kind in _binding_kinds():
            return workload.name == self.name
        if self.kind == binding.kind.lower().removesuffix("s") and binding.name == self.name:
            return True
        return self.kind == ANY_KIND and self.name in (binding.name, workload.name)


def parse(text: str) -> WorkloadName:
    """`KIND/NAME` in kubectl's spelling, `KIND.GROUP/NAME` too; raises ArgumentError if the name is missing."""
    kind, slash, name = text.rpartition("/")
    if not name or (slash and not kind):
        raise ArgumentError(f"expected KIND/NAME, got {text!r}", argument="workload")
    kind = _without_group(kind)
    singular = kind.lower().removesuffix("s") if kind.lower() not in short_names() else kind.lower()
    return WorkloadName(short_names().get(singular, singular) if slash else "pod", name)


def _without_group(written: str) -> str:
    """`deployment.apps` and `deployment.v1.apps` as `deployment`; a group that no such kind has is left as it is."""
    from bayplan.wire import kinds

    kind, _, rest = written.partition(".")
    version, _, group = rest.partition(".")
    for row in kinds.KINDS.values():
        is_group = rest == row.group or (version, group) == (row.version, row.group)
        if row.group and is_group and kind.lower() in (row.kind.lower(), row.plural, row.short_name):
            return kind
    return written


def of_pods(text: str, workloads: Sequence[Workload]) -> WorkloadName:
    """The pods that are named by their controller, or the pod; raises ArgumentError for another kind."""
    asked = with_namespace(parse(text), text, workloads)
    if asked.kind not in pod_suffixes():  # only in a fleet can a workload be of any kind
        known = ", ".join(pod_suffixes())
        expected = f"expected KIND/NAME with a kind of {known}, or NAMESPACE/NAME of a pod; got {text!r}"
        raise ArgumentError(expected, argument="workload")
    return asked


def with_namespace(asked: WorkloadName, text: str, workloads: Sequence[Workload]) -> WorkloadName:
    """The request, read as `NAMESPACE/NAME` if the part before the slash is a namespace of the input and not a kind."""
    before, slash, _ = text.rpartition("/")
    template_kinds = {one.binding.kind.lower() for one in workloads if one.binding is not None}
    is_kind = asked.kind in pod_suffixes() or asked.kind in template_kinds
    if slash and not is_kind and any(one.namespace == before for one in workloads):
        return WorkloadName("pod", asked.name, before)
    return asked
