"""
What is admitted in a pod's affinity and then means something else than its author may think, each as `path: message`.

Facts of kube-scheduler 1.36, and what its users report again and again. What API servers themselves warn of is in
`warnings`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.model import reaching_all
from bayplan.model.labels import Labels
from bayplan.model.resolved_terms import resolve
from bayplan.model.semantics import Semantics
from bayplan.model.terms import AffinityTerms, PodTerm

ONE_FOR_ALL = "kube-scheduler wants one pod that meets all required affinity terms at once"
NEGATIVE_SELECTOR = (
    "kube-scheduler 1.34 to 1.36 takes a namespaceSelector of only NotIn and DoesNotExist for every namespace "
    "(kubernetes#141526)"
)
EMPTY_LIST = "an empty list means the pod's own namespace; for every namespace write namespaceSelector: {}"
DAEMONS_TOO = (
    "this means daemons too, so the pod fits in no domain that has one; tolerateNamespaces in the annotation "
    "bayplan.io/affinity, or the switch daemonNamespaces, leaves them out"
)
STUCK_UPDATE = (
    "in a rolling update no old pod goes before a new one runs (maxUnavailable comes to 0), and no new one may stand "
    "beside an old one: without a free domain it is stuck; matchLabelKeys: [pod-template-hash] leaves old ones out"
)


def of_terms(affinity: AffinityTerms, namespace: str, semantics: Semantics) -> list[str]:
    """The traps in the terms of a pod in `namespace`."""
    return [
        *_met_by_one(affinity, semantics),
        *(said for term in _all(affinity) for said in _namespaces(term, semantics)),
        *_daemons(affinity, namespace, semantics),
    ]


def of_rolling_update(affinity: AffinityTerms, namespace: str, old: Labels, semantics: Semantics) -> list[str]:
    """The hard anti-affinity that keeps new pods from the domains of old ones, whose labels are `old`."""
    uses = resolve(affinity, namespace, semantics, incoming=True).anti_required
    kept_apart = (use for use in uses if not use.limit and use.term.matches(old, namespace, {}, terminating=False))
    return list(dict.fromkeys(f"{use.source.path}: {STUCK_UPDATE}" for use in kept_apart))


def _met_by_one(affinity: AffinityTerms, semantics: Semantics) -> Iterator[str]:
    if len(affinity.required) > 1 and not semantics.affinity_terms_met_apart:
        yield f"{affinity.required[1].path}: {ONE_FOR_ALL}"


def _all(affinity: AffinityTerms) -> tuple[PodTerm, ...]:
    return (*affinity.required, *affinity.preferred, *affinity.anti_required, *affinity.anti_preferred)


def _namespaces(term: PodTerm, semantics: Semantics) -> Iterator[str]:
    selector = term.namespace_selector
    if selector is None:
        if term.namespaces == () and not semantics.empty_namespaces_mean_all:
            yield f"{term.path}.namespaces: {EMPTY_LIST}"
    elif selector.requirements and semantics.negative_namespace_selector_matches_all and selector.matches({}):
        yield f"{term.path}.namespaceSelector: {NEGATIVE_SELECTOR}"


def _daemons(affinity: AffinityTerms, namespace: str, semantics: Semantics) -> Iterator[str]:
    for use in resolve(affinity, namespace, semantics, incoming=True).anti_required:
        (part,) = use.term.parts
        if reaching_all.covers_all_pods(part) and not part.excluded_namespaces and not use.limit:
            yield f"{use.source.path}: {DAEMONS_TOO}"
