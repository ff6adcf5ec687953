"""
What an API server admits but warns about. Mirrors pkg/api/pod/warnings.go and pkg/api/node/util.go.

Two warnings are ours: a deprecated node label as the topology key of an affinity term, and fields of the seed that only
Bayplan knows. What policies are warned of is in `policy_warnings`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.model import terms
from bayplan.model.labels import Labels
from bayplan.model.semantics import Semantics
from bayplan.model.terms import AffinityTerms, PodTerm, resolve
from bayplan.validating import (
    admission,
    causes,
    fields,
    names,
    placement_annotation,
    placements,
    pod_affinity,
    tiers,
    workload_affinity,
)
from bayplan.validating import placements as spread
from bayplan.validating.fields import Field

NO_SELECTOR = "a null labelSelector results in matching no pod"
DURING_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
OURS = ("limit", "tolerateNamespaces")
DROPPED = "API servers drop this field; in a cluster it belongs into the annotation bayplan.io/affinity"
DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def of_object(obj: dict[str, object]) -> list[str]:
    """The warnings for an object of any kind, each as `path: message`."""
    return of_pod(obj) + of_placement(obj)


def of_pod(obj: dict[str, object]) -> list[str]:
    """The warnings for a pod, or for an object with a pod template; none for any other object."""
    made = admission.pod_like(obj)
    if made is None:
        return []
    spec = made["spec"]
    return [
        *_node_selector(spec["nodeSelector"]),
        *_node_affinity(spec["affinity"]["nodeAffinity"]),
        *_spread(spec["topologySpreadConstraints"]),
        *_pod_affinity(spec["affinity"]),
    ]


def _node_selector(selector: Field) -> list[str]:
    return [
        f"{fields.entry(selector.path, key)}: {DEPRECATED_LABELS[key]}"
        for key in selector.names()
        if key in DEPRECATED_LABELS
    ]


def _node_affinity(affinity: Field) -> list[str]:
    found: list[str] = []
    for term in affinity[pod_affinity.REQUIRED]["nodeSelectorTerms"].items():
        found += _node_term(term, values_too=False)
    for item in affinity[pod_affinity.PREFERRED].items():
        found += _node_term(item["preference"], values_too=True)
    return found


def _node_term(term: Field, *, values_too: bool) -> list[str]:
    """Deprecated keys, and in preferred terms the values that no label can have: in required ones they are refused."""
    found: list[str] = []
    for requirement in term["matchExpressions"].items():
        found += _deprecated(requirement["key"])
        if values_too:
            found += [
                f"{value.path}: {value.text()} is invalid, {detail}"
                for value in requirement["values"].items()
                for detail in names.label_value(value.text())
            ]
    return found


def _spread(constraints: Field) -> list[str]:
    found: list[str] = []
    for constraint in constraints.items():
        found += _deprecated(constraint["topologyKey"])
        found += _null_selector(constraint)
    return found


def _pod_affinity(affinity: Field) -> list[str]:
    found: list[str] = []
    for term in pod_affinity.terms(affinity):
        found += _null_selector(term.field)
        found += _deprecated(term.field["topologyKey"])
        found += [f"{ours.path}: {DROPPED}" for ours in (term.field[name] for name in OURS) if ours.present]
    for sign in ("podAffinity", "podAntiAffinity"):
        if affinity[sign][DURING_EXECUTION].present:
            found.append(f"{affinity[sign][DURING_EXECUTION].path}: {DROPPED}")
    return found


def _null_selector(term: Field) -> list[str]:
    return [] if term["labelSelector"].present else [f"{term['labelSelector'].path}: {NO_SELECTOR}"]


def _deprecated(key: Field) -> list[str]:
    message = DEPRECATED_LABELS.get(key.text())
    return [f"{key.path}: {key.text()} is {message}"] if message else []


# RF merged from validating.policy_warnings: What Karmada admits in a placement and its scheduler then takes otherwise
# than its author may think. Facts of v1.18.2: pkg/scheduler/core/spreadconstraint for spread, and what issues of its
# users say of the rest. Fields that nobody knows are `reading.checking`'s.

REGION = "region"

EVERY_CLUSTER = (
    "without maxGroups on a cluster spread constraint the first workload takes every cluster that fits, "
    "and its peers find none"
)
NO_MAX = "maxGroups is not set, so Karmada's scheduler selects no cluster at all"
NO_MAX_BESIDE_REGION = "maxGroups is not set, so Karmada's scheduler takes one cluster of each region"
BY_LABEL = "Karmada does not spread by label: scheduling fails unless clusters or regions are constrained too"
STATIC = "Karmada's static weights ignore spread constraints"
NEVER_FALLS_THROUGH = "with duplicated replicas a lack of resources never leads on to the next term"
POLICY_WARNINGS_NO_SELECTOR = "a null labelSelector results in matching no workload"


def of_placement(obj: dict[str, object]) -> list[str]:
    """The warnings for a policy or a binding, each as `path: message`; none for any other object."""
    field = admission.placed(obj)
    if field is None or any(cause.reason == causes.TYPE_INVALID for cause in admission.causes_of(obj)):
        return []
    placement = field["spec"]["placement"]
    annotation = placement_annotation.written(field["metadata"])
    sources = [placement] if annotation is None else [placement, annotation]
    return [
        *_anti_affinity(sources),
        *_policy_warnings_spread(placement),
        *_duplicated(sources),
        *_null_selectors(sources),
    ]


def _anti_affinity(sources: list[Field]) -> Iterator[str]:
    placement = sources[0]
    kind, preference = placements.strategy(placement)
    # Aggregated takes as few clusters as it can.
    if (kind, preference) == (placements.DIVIDED, placements.AGGREGATED) or _limited(placement):
        return
    group = placement["workloadAffinity"]["antiAffinity"]
    if group.present:
        yield f"{group.path}: {EVERY_CLUSTER}"
    for source in sources:
        required = source[workload_affinity.ANTI_AFFINITY][workload_affinity.REQUIRED]
        if required.items():
            yield f"{required.path}: {EVERY_CLUSTER}"


def _limited(placement: Field) -> bool:
    """Whether something keeps the number of clusters down."""
    limits = (item for item in placement["spreadConstraints"].items() if _by(item) in (spread.CLUSTER, REGION))
    return not _static(placement) and any(item["maxGroups"].number() > 0 for item in limits)


def _policy_warnings_spread(placement: Field) -> Iterator[str]:
    constraints = placement["spreadConstraints"]
    if _static(placement):
        if constraints.items():
            yield f"{constraints.path}: {STATIC}"
        return
    by_region = any(_by(item) == REGION for item in constraints.items())
    for item in constraints.items():
        by = _by(item)
        if by == "":
            yield f"{item['spreadByLabel'].path}: {BY_LABEL}"
        elif by not in (spread.CLUSTER, REGION):
            yield f"{item['spreadByField'].path}: Karmada does not spread by {by}: clusters only have to have one"
        elif item["maxGroups"].number() == 0:
            yield f"{item.path}: {NO_MAX_BESIDE_REGION if by_region and by == spread.CLUSTER else NO_MAX}"


def _by(constraint: Field) -> str:
    """The field that a constraint spreads by, empty if it is a label; one with neither is made to mean clusters."""
    if constraint["spreadByField"].text():
        return constraint["spreadByField"].text()
    return "" if constraint["spreadByLabel"].text() else spread.CLUSTER


def _static(placement: Field) -> bool:
    """Whether the weights are fixed: no preference at all means equal ones."""
    if placements.strategy(placement) != (placements.DIVIDED, placements.WEIGHTED):
        return False
    preference = placement["replicaScheduling"]["weightPreference"]
    listed = bool(preference["staticWeightList"].items()) and not placements.by_dynamic_weight(placement)
    return listed or not preference.present


def _duplicated(sources: list[Field]) -> Iterator[str]:
    inherited = any(source.under(tiers.STRATEGY, "mode").text() == tiers.INHERITED for source in sources)
    terms = sources[0][tiers.TERMS]
    if placements.strategy(sources[0])[0] == placements.DUPLICATED and len(terms.items()) > 1 and not inherited:
        yield f"{terms.path}: {NEVER_FALLS_THROUGH}"


def _null_selectors(sources: list[Field]) -> Iterator[str]:
    for source in sources:
        for term in workload_affinity.terms(source):
            if not term.field["labelSelector"].present and not term.field["affinityEnabled"].present:
                yield f"{term.field['labelSelector'].path}: {POLICY_WARNINGS_NO_SELECTOR}"


# RF merged from validating.traps: What is admitted in a pod's affinity and then means something else than its author
# may think, each as `path: message`. Facts of kube-scheduler 1.36, and what its users report again and again. What
# API servers themselves warn of is in `warnings`.

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
        if terms.covers_all_pods(part) and not part.excluded_namespaces and not use.limit:
            yield f"{use.source.path}: {DAEMONS_TOO}"
