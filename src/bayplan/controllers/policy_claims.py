"""
Which policy templates and bindings belong to once the policies of the input are applied.

Mirrors v1.18.2: pkg/detector/policy.go. What a policy has claimed stays with it. A policy that is edited releases what
it no longer selects, which is matched again as if it were new. Policies do not preempt each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from bayplan.controllers import binding_detector
from bayplan.controllers.binding_detector import SelectionVerdict
from bayplan.controllers.binding_triggers import POLICY_LABELS
from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.policy_index import PolicyIndex
from bayplan.controllers.resource_interpreter import ResourceTemplate
from bayplan.mapping import bindings
from bayplan.model.bindings import UNKNOWN_LABELS
from bayplan.wire.fleets import ResourceBinding
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.placements import PropagationPolicy


class PolicyClaim(msgspec.Struct, frozen=True):
    """
    The policy of a template or a binding, None if it has none or if the input lacks it.

    `released_by` is the edited policy that it belonged to before. It is `ignored` by Karmada's detector while the
    policy that has claimed it does not select it. `doubtful` is the policy of which it is not known whether it selects
    the template, because the labels are not known.
    """

    policy: PropagationPolicy | None = None
    released_by: PropagationPolicy | None = None
    ignored: bool = False
    doubtful: PropagationPolicy | None = None


class PolicyClaims:
    """
    The policies that are not being deleted, and what belongs to them.

    `edited` are the keys of those that release what they do not select, `reselecting` of those with other selectors
    than before.
    """

    def __init__(
        self, policies: Iterable[PropagationPolicy], edited: Collection[ObjectKey], reselecting: Collection[ObjectKey]
    ) -> None:
        policies = list(policies)
        self._index = PolicyIndex(policies)
        self._named = binding_detector.policies_by_name(policies)
        self._edited, self._reselecting = edited, reselecting
        self._parsed: binding_detector.Parsed = {}
        alive = self._named.by_name.values()
        self._kinds_by_labels = {  # of which some policy selects by labels
            (one.api_version, one.kind)
            for policy in alive
            for one in policy.spec.resource_selectors or ()
            if not one.name and one.label_selector is not None
        }

    def of_template(self, template: ResourceTemplate, binding: ResourceBinding | None) -> PolicyClaim:
        """The claim on a template; `binding` is its own, which has a claim also where a manifest has none."""
        claimed = binding_detector.claimed_by(template.metadata)
        if claimed is not None:
            policy = self._named.by_name.get(claimed)
        elif binding is not None and is_claimed(binding):
            policy = binding_detector.claiming_policy(binding, self._named)
        else:
            return PolicyClaim(self._index.best_for(template))
        if policy is None:
            return PolicyClaim()
        if binding_detector.explicitness(template, policy):
            return PolicyClaim(policy)
        if _key_of(policy) not in self._edited:
            return PolicyClaim(ignored=True)
        return PolicyClaim(self._index.best_for(template), released_by=policy)

    def of_binding(self, binding: ResourceBinding) -> PolicyClaim:
        """The claim on a binding whose template is not in the input."""
        policy = binding_detector.claiming_policy(binding, self._named)
        if policy is None:
            return PolicyClaim() if is_claimed(binding) or not self._reselecting else self._newly_claimed(binding)
        selected = binding_detector.selection(policy, binding, self._parsed)
        if selected is SelectionVerdict.SELECTED:
            return PolicyClaim(policy)
        if selected is SelectionVerdict.NOT_KNOWN:
            return PolicyClaim(policy, doubtful=policy if _key_of(policy) in self._reselecting else None)
        if _key_of(policy) not in self._edited:
            return PolicyClaim(ignored=True)
        if self._labels_matter(binding):
            return PolicyClaim(policy, doubtful=policy)
        return PolicyClaim(self._index.best_for(_template_of(binding)), released_by=policy)

    def _newly_claimed(self, binding: ResourceBinding) -> PolicyClaim:
        """The claim on a binding of no policy; one that the change leaves as it is would have claimed it before."""
        if not binding.spec.resource.name or self._labels_matter(binding):
            return PolicyClaim()
        best = self._index.best_for(_template_of(binding))
        return PolicyClaim(best if best is not None and _key_of(best) in self._reselecting else None)

    def _labels_matter(self, binding: ResourceBinding) -> bool:
        """Whether which policy is the best depends on labels that are not known."""
        named = binding.spec.resource
        return (
            (named.api_version, named.kind) in self._kinds_by_labels
            and UNKNOWN_LABELS in bindings.known_labels(binding)
        )  # fmt: skip


def is_claimed(binding: ResourceBinding) -> bool:
    """Whether the binding belongs to a policy, in the input or not."""
    return any((binding.metadata.labels or {}).get(key) for key in POLICY_LABELS)


def _key_of(policy: PropagationPolicy) -> ObjectKey:
    return ObjectKey(policy.kind, policy.metadata.namespace, policy.metadata.name)


def _template_of(binding: ResourceBinding) -> ResourceTemplate:
    """What policies select a template by, as far as its binding reveals it."""
    named = binding.spec.resource
    meta = ObjectMeta(name=named.name, namespace=named.namespace, labels=bindings.known_labels(binding))
    return ResourceTemplate(api_version=named.api_version, kind=named.kind, metadata=meta)
