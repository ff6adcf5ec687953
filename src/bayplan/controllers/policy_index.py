"""
The policy of a resource template, found by an index over the selectors of all policies.

Mirrors v1.18.2: pkg/detector. Of policies that select a name, or everything of a kind, only the best can be chosen, so
only that is kept; those that select labels are found by the rarest label that they require.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from bayplan.controllers import binding_detector
from bayplan.controllers.resource_interpreter import ResourceTemplate
from bayplan.wire.placements import PropagationPolicy, ResourceSelector

Scope = tuple[str, str, str, str]  # the policy's namespace, the selector's namespace, version and kind
Label = tuple[str, str]


class PolicyIndex:
    """The policies that are not being deleted."""

    def __init__(self, policies: Iterable[PropagationPolicy]) -> None:
        self._by_name: dict[tuple[str, str], PropagationPolicy] = {}
        self._best_for: dict[tuple[Scope, str], PropagationPolicy] = {}  # a name, or "" for everything of the kind
        self._by_label: dict[tuple[Scope, Label | None], list[PropagationPolicy]] = {}
        alive = [policy for policy in policies if policy.metadata.deletion_timestamp is None]
        common = Counter(
            (scope, label) for policy in alive for scope, selector in _scoped(policy) for label in _labels(selector)
        )
        for policy in alive:
            self._by_name.setdefault((policy.metadata.namespace, policy.metadata.name), policy)
            for scope, selector in _scoped(policy):
                if selector.name or selector.label_selector is None:
                    known = self._best_for.setdefault((scope, selector.name), policy)
                    self._best_for[scope, selector.name] = min(known, policy, key=_precedence)
                else:
                    rarest = min(_labels(selector), key=lambda label: common[scope, label], default=None)
                    self._by_label.setdefault((scope, rarest), []).append(policy)

    def policy_for(self, template: ResourceTemplate) -> PropagationPolicy | None:
        """
        The policy that has claimed the template, else the best of its namespace, else the best cluster-wide.

        Among those that select it: the highest `priority`, then the most explicit selector, then the first name.
        """
        claimed = binding_detector.claimed_by(template.metadata)
        if claimed is not None:
            found = self._by_name.get(claimed)
            return found if found is not None and binding_detector.explicitness(template, found) else None
        return self.best_for(template)

    def best_for(self, template: ResourceTemplate) -> PropagationPolicy | None:
        """The policy that would claim the template if none had: the best of its namespace, else cluster-wide."""
        namespace = template.metadata.namespace
        own = self._best(template, namespace, (namespace,)) if namespace else None
        return own or self._best(template, "", {"", namespace})

    def _best(
        self, template: ResourceTemplate, policy_namespace: str, selected_namespaces: Iterable[str]
    ) -> PropagationPolicy | None:
        candidates: dict[int, PropagationPolicy] = {}
        for namespace in selected_namespaces:
            scope = (policy_namespace, namespace, template.api_version, template.kind)
            candidates.update((id(policy), policy) for policy in self._candidates(template, scope))
        fitting = [(policy, binding_detector.explicitness(template, policy)) for policy in candidates.values()]
        ranked = [(-(policy.spec.priority or 0), -how, policy.metadata.name, policy) for policy, how in fitting if how]
        return min(ranked, key=lambda entry: entry[:3])[3] if ranked else None

    def _candidates(self, template: ResourceTemplate, scope: Scope) -> Iterator[PropagationPolicy]:
        for name in {"", template.metadata.name}:
            if (scope, name) in self._best_for:
                yield self._best_for[scope, name]
        for label in (None, *(template.metadata.labels or {}).items()):
            yield from self._by_label.get((scope, label), ())


def _precedence(policy: PropagationPolicy) -> tuple[int, str]:
    return -(policy.spec.priority or 0), policy.metadata.name


def _scoped(policy: PropagationPolicy) -> Iterator[tuple[Scope, ResourceSelector]]:
    namespace = policy.metadata.namespace
    for selector in policy.spec.resource_selectors or ():
        yield (namespace, selector.namespace or namespace, selector.api_version, selector.kind), selector


def _labels(selector: ResourceSelector) -> Iterable[Label]:
    """The labels that the selector requires; none if it is for a name."""
    if selector.name or selector.label_selector is None:
        return ()
    return (selector.label_selector.match_labels or {}).items()
