"""
What bindings do not have of their policies and templates: labels, and the annotation `bayplan.io/placement`.

Knows nothing of the index: the methods that change something return the bindings that are read with it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from bayplan.controllers import binding_detector
from bayplan.mapping import placements
from bayplan.model.workloads import WorkloadKey
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.wire.fleets import ResourceBinding
from bayplan.wire.meta import ApiObject

PolicyKey = tuple[str, str]  # namespace, empty for a ClusterPropagationPolicy, and name
TemplateKey = tuple[str, str, str, str]  # version, kind, namespace and name


class TemplateKind(NamedTuple):
    """The kind of the resources that bindings propagate."""

    api_version: str
    kind: str


class FleetTemplates:
    """`kinds` are those that bindings name, with the number of these; `kinds_changed` is set when one comes or goes."""

    def __init__(self) -> None:
        self.kinds: Counter[TemplateKind] = Counter()
        self.kinds_changed = asyncio.Event()
        self._policies: dict[PolicyKey, str] = {}  # their annotations
        self._templates: dict[TemplateKey, dict[str, Any]] = {}  # labels and annotation, as an object has them
        self._by_template: defaultdict[TemplateKey, set[WorkloadKey]] = defaultdict(set)
        self._by_policy: defaultdict[PolicyKey, set[WorkloadKey]] = defaultdict(set)

    # What is reported

    def put_policy(self, policy: PolicyKey, text: str | None) -> Iterable[WorkloadKey]:
        """Set the annotation of a policy; None if it has none or is gone."""
        if self._policies.get(policy) == text:
            return ()
        if text is None:
            del self._policies[policy]
        else:
            self._policies[policy] = text
        return sorted(self._by_policy.get(policy, ()))

    def put_template(self, kind: TemplateKind, template: ApiObject) -> Iterable[WorkloadKey]:
        meta = template.metadata
        text = (meta.annotations or {}).get(PLACEMENT_ANNOTATION)
        annotations = {} if text is None else {PLACEMENT_ANNOTATION: text}
        found = {"metadata": {"labels": meta.labels or {}, "annotations": annotations}}
        key = (*kind, meta.namespace, meta.name)
        if self._templates.get(key) == found:
            return ()
        self._templates[key] = found
        return sorted(self._by_template.get(key, ()))

    def drop_template(self, kind: TemplateKind, namespace: str, name: str) -> Iterable[WorkloadKey]:
        key = (*kind, namespace, name)
        return () if self._templates.pop(key, None) is None else sorted(self._by_template.get(key, ()))

    def note(self, key: WorkloadKey, before: ResourceBinding | None, after: ResourceBinding | None) -> None:
        """Note the template and the policy of a binding, instead of those before."""
        was, now = (None if one is None else _template_of(one) for one in (before, after))
        if before is not None:
            _discard(self._by_policy, binding_detector.claimed_by(before.metadata), key)
        if after is not None and (policy := binding_detector.claimed_by(after.metadata)) is not None:
            self._by_policy[policy].add(key)
        if was == now:
            return
        if now is not None and now[1]:
            self._by_template[now].add(key)
            self._name(TemplateKind(*now[:2]), 1)
        if was is not None and was[1]:
            _discard(self._by_template, was, key)
            self._name(TemplateKind(*was[:2]), -1)

    def _name(self, kind: TemplateKind, change: int) -> None:
        """Note that one binding more, or one less, names a kind."""
        self.kinds[kind] += change
        if not self.kinds[kind]:
            del self.kinds[kind]
        if self.kinds.get(kind, 0) == max(change, 0):
            self.kinds_changed.set()

    def forget(self, kind: TemplateKind) -> None:
        """Forget the templates of a kind that no binding names any more."""
        for key in [key for key in self._templates if key[:2] == kind]:
            del self._templates[key]

    # What bindings are read with

    def template_of(self, written: ResourceBinding) -> dict[str, Any] | None:
        """The metadata of the template, None if they are not known."""
        return self._templates.get(_template_of(written))

    def text_of(self, written: ResourceBinding) -> str | None:
        """The annotation of the template, None if it has none."""
        found = self.template_of(written)
        text: str | None = None if found is None else found["metadata"]["annotations"].get(PLACEMENT_ANNOTATION)
        return text

    def with_policy(self, written: ResourceBinding) -> ResourceBinding:
        """The binding with the placement of its policy and what the annotation adds; InputError for a malformed one."""
        policy = binding_detector.claimed_by(written.metadata)
        text = None if policy is None else self._policies.get(policy)
        if text is None:
            return written
        placement = placements.merged_placement(written.spec.placement or {}, (text,))
        return msgspec.structs.replace(written, spec=msgspec.structs.replace(written.spec, placement=placement))


def _discard(table: defaultdict[Any, set[WorkloadKey]], at: object, key: WorkloadKey) -> None:
    if at in table:
        table[at].discard(key)
        if not table[at]:
            del table[at]


def _template_of(written: ResourceBinding) -> TemplateKey:
    named = written.spec.resource
    return named.api_version, named.kind, named.namespace, named.name
