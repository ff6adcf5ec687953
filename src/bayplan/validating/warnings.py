"""
Warnings on objects that are admitted, each as `path: message`.

Those on pods mirror pkg/api/pod/warnings.go and pkg/api/node/util.go; two are Bayplan's own: a deprecated node label as
the topology key of an affinity term, and fields that only Bayplan has. Those on placements are facts of Karmada
v1.18.2 (pkg/scheduler/core/spreadconstraint for spread, its issues for the rest). Pitfalls are terms with another
meaning than their author may expect: facts of kube-scheduler 1.36 that users report repeatedly. Unknown fields are
reported in `reading.checking`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.model import groups, terms
from bayplan.model.labels import Labels
from bayplan.model.semantics import Semantics
from bayplan.model.terms import AffinityTerms, resolve
from bayplan.validating import (
    admission,
    affinity,
    bindings,
    fields,
    names,
    placement_annotation,
    placements,
    selectors,
    structure,
    tiers,
)
from bayplan.validating.fields import Field
from bayplan.wire.pods import OWN_TERM_FIELDS

OWN_PREFIX = "bayplan.io/"
OWN_ANNOTATIONS = groups.GROUP_ANNOTATIONS | {
    affinity.AFFINITY_ANNOTATION,
    placement_annotation.PLACEMENT_ANNOTATION,
    bindings.WORKLOAD_LABELS,
    "bayplan.io/reported-replicas",
    "bayplan.io/audit",
}
NO_SELECTOR = "a null labelSelector results in matching no pod"
DROPPED = "API servers drop this field; in a cluster it belongs into the annotation bayplan.io/affinity"
DROPPED_OF_PLACEMENT = "API servers drop this field; in a fleet it belongs into the annotation bayplan.io/placement"
UNPARSABLE = "Karmada does not check this selector when the policy is applied; it is invalid, so it matches nothing"
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

DAEMONS = "kube-system"  # where daemons run, with the label that every namespace has
DAEMON_LABELS = {"kubernetes.io/metadata.name": DAEMONS}
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
NO_WORKLOAD_SELECTOR = "a null labelSelector results in matching no workload"

ONE_FOR_ALL = "kube-scheduler requires one pod that meets all required affinity terms at once"
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
    "in a rolling update no old pod is deleted before a new one runs (maxUnavailable comes to 0), and no new pod may "
    "share a domain with an old one: without a free domain it is stuck; matchLabelKeys: [pod-template-hash] leaves old "
    "ones out"
)


def object_warnings(obj: dict[str, object]) -> list[str]:
    """The warnings for an object of any kind."""
    return annotation_warnings(obj) + pod_warnings(obj) + placement_warnings(obj)


def annotation_warnings(obj: dict[str, object]) -> list[str]:
    """Annotations of the object and of its pod template that look like Bayplan's and are none: they have no effect."""
    holders = {one.path: one for one in (Field("", obj), admission.pod_or_template(obj)) if one is not None}
    return [
        f"{annotations.entry(key).path}: {_unknown_annotation(key)}"
        for annotations in (holder["metadata"]["annotations"] for holder in holders.values())
        for key in annotations.names()
        if key.startswith(OWN_PREFIX) and key not in OWN_ANNOTATIONS
    ]


def _unknown_annotation(key: str) -> str:
    near = structure.nearest(key, sorted(OWN_ANNOTATIONS), cutoff=0.8, fold_case=True)
    return f"unknown annotation, it has no effect{f'; did you mean {near}?' if near else ''}"


def pod_warnings(obj: dict[str, object]) -> list[str]:
    """The warnings for a pod, or for an object with a pod template; none for any other object."""
    pod = admission.pod_or_template(obj)
    if pod is None:
        return []
    spec = pod["spec"]
    selector, constraints = spec["nodeSelector"], spec["topologySpreadConstraints"].items()
    deprecated = [key for key in selector.names() if key in DEPRECATED_LABELS]
    return [
        *(f"{selector.entry(key).path}: {DEPRECATED_LABELS[key]}" for key in deprecated),
        *_node_affinity_warnings(spec["affinity"]["nodeAffinity"]),
        *(warning for one in constraints for warning in (*_deprecated_key(one["topologyKey"]), *_null_selector(one))),
        *_pod_affinity_warnings(spec["affinity"]),
    ]


def _node_affinity_warnings(node_affinity: Field) -> Iterator[str]:
    """Deprecated keys, and the invalid label values of preferred terms; in required terms those are rejected."""
    for term in node_affinity[affinity.REQUIRED]["nodeSelectorTerms"].items():
        for requirement in term["matchExpressions"].items():
            yield from _deprecated_key(requirement["key"])
    for item in node_affinity[affinity.PREFERRED].items():
        for requirement in item["preference"]["matchExpressions"].items():
            yield from _deprecated_key(requirement["key"])
            for value in requirement["values"].items():
                for detail in names.label_value(value.text()):
                    yield f"{value.path}: {value.text()} is invalid, {detail}"


def _pod_affinity_warnings(pod_affinity: Field) -> Iterator[str]:
    for term in affinity.pod_terms(pod_affinity):
        yield from _null_selector(term.field)
        yield from _deprecated_key(term.field["topologyKey"])
        own = (term.field[name] for name in OWN_TERM_FIELDS)
        yield from (f"{field.path}: {DROPPED}" for field in own if field.present)
    for kind in (affinity.POD_AFFINITY, affinity.POD_ANTI_AFFINITY):
        listed = pod_affinity[kind][affinity.REQUIRED_DURING_EXECUTION]
        if listed.present:
            yield f"{listed.path}: {DROPPED}"


def _null_selector(term: Field) -> list[str]:
    return [] if term["labelSelector"].present else [f"{term['labelSelector'].path}: {NO_SELECTOR}"]


def _deprecated_key(key: Field) -> list[str]:
    message = DEPRECATED_LABELS.get(key.text())
    return [f"{key.path}: {key.text()} is {message}"] if message else []


def placement_warnings(obj: dict[str, object]) -> list[str]:
    """The warnings for a policy or a binding; none for any other object and for one that cannot be decoded."""
    if not admission.has_placement(obj):
        return []
    if any(cause.reason == fields.TYPE_INVALID for cause in admission.validate(obj)):
        return []
    placement = Field("", obj)["spec"]["placement"]
    annotation = placement_annotation.annotated_placement(Field("", obj)["metadata"])
    sources = [placement] if annotation is None else [placement, annotation]
    return [
        *_anti_affinity_warnings(sources),
        *_spread_warnings(placement),
        *_duplicated_warnings(sources),
        *_null_workload_selectors(sources),
        *_dropped_fields(placement),
        *_unparsable_selectors(Field("", obj)["spec"]),
    ]


def _dropped_fields(placement: Field) -> Iterator[str]:
    """Bayplan's own fields in the placement itself."""
    near = placement[placements.WORKLOAD_AFFINITY]
    lists = (affinity.REQUIRED_DURING_EXECUTION, affinity.REQUIRED, affinity.PREFERRED)
    own = [*(near[name] for name in lists), placement[placements.WORKLOAD_ANTI_AFFINITY]]
    own += [placement[tiers.STRATEGY], placement[tiers.PREFERRED]]
    own += [one[tiers.SUPPLEMENTS] for one in (placement[tiers.SINGLE], *placement[tiers.TERMS].items())]
    yield from (f"{field.path}: {DROPPED_OF_PLACEMENT}" for field in own if field.present)


def _unparsable_selectors(spec: Field) -> Iterator[str]:
    """Selectors of clusters and of resources that a scheduler or detector cannot parse."""
    placement, terms = spec["placement"], spec["placement"][tiers.TERMS].items()
    holders = [placement[tiers.SINGLE], *terms, *spec["resourceSelectors"].items()]
    holders += [tier for term in terms for tier in term[tiers.OVERFLOW].items()]
    weights = placement["replicaScheduling"]["weightPreference"]["staticWeightList"].items()
    holders += [weight["targetCluster"] for weight in weights]
    for holder in holders:
        selector = holder["labelSelector"]
        if selectors.validate_selector(selector):
            yield f"{selector.path}: {UNPARSABLE}"


def _anti_affinity_warnings(sources: list[Field]) -> Iterator[str]:
    """Anti-affinity where nothing limits the number of clusters that a workload takes."""
    placement = sources[0]
    if placements.scheduling_strategy(placement) == (placements.DIVIDED, placements.AGGREGATED):
        return  # aggregated scheduling takes as few clusters as it can
    constraints = placement["spreadConstraints"].items()
    by_cluster = [one for one in constraints if _spread_by(one) in (placements.SPREAD_BY_CLUSTER, REGION)]
    if not _has_static_weights(placement) and any(one["maxGroups"].number() > 0 for one in by_cluster):
        return
    group = placement["workloadAffinity"]["antiAffinity"]
    if group.present:
        yield f"{group.path}: {EVERY_CLUSTER}"
    for source in sources:
        for name in (affinity.REQUIRED_DURING_EXECUTION, affinity.REQUIRED):
            required = source[placements.WORKLOAD_ANTI_AFFINITY][name]
            if required.items():
                yield f"{required.path}: {EVERY_CLUSTER}"


def _spread_warnings(placement: Field) -> Iterator[str]:
    constraints = placement["spreadConstraints"]
    if _has_static_weights(placement):
        if constraints.items():
            yield f"{constraints.path}: {STATIC}"
        return
    by_region = any(_spread_by(item) == REGION for item in constraints.items())
    for item in constraints.items():
        by = _spread_by(item)
        if by == "":
            yield f"{item['spreadByLabel'].path}: {BY_LABEL}"
        elif by not in (placements.SPREAD_BY_CLUSTER, REGION):
            yield f"{item['spreadByField'].path}: Karmada does not spread by {by}: clusters only have to have one"
        elif item["maxGroups"].number() == 0:
            beside_region = by_region and by == placements.SPREAD_BY_CLUSTER
            yield f"{item.path}: {NO_MAX_BESIDE_REGION if beside_region else NO_MAX}"


def _spread_by(constraint: Field) -> str:
    """The field that a constraint spreads by, empty if it is a label; the default of neither is the cluster."""
    if constraint["spreadByField"].text():
        return constraint["spreadByField"].text()
    return "" if constraint["spreadByLabel"].text() else placements.SPREAD_BY_CLUSTER


def _has_static_weights(placement: Field) -> bool:
    """Whether the weights are static; no preference at all means equal weights."""
    if placements.scheduling_strategy(placement) != (placements.DIVIDED, placements.WEIGHTED):
        return False
    preference = placement["replicaScheduling"]["weightPreference"]
    listed = bool(preference["staticWeightList"].items()) and not placements.by_dynamic_weight(placement)
    return listed or not preference.present


def _duplicated_warnings(sources: list[Field]) -> Iterator[str]:
    inherited = any(source[tiers.STRATEGY]["mode"].text() == tiers.INHERITED for source in sources)
    listed = sources[0][tiers.TERMS]
    duplicated = placements.scheduling_strategy(sources[0])[0] == placements.DUPLICATED
    if duplicated and len(listed.items()) > 1 and not inherited:
        yield f"{listed.path}: {NEVER_FALLS_THROUGH}"


def _null_workload_selectors(sources: list[Field]) -> Iterator[str]:
    for source in sources:
        for term in placements.workload_terms(source):
            selector = term.field["labelSelector"]
            if not selector.present and not term.field["affinityEnabled"].present:
                yield f"{selector.path}: {NO_WORKLOAD_SELECTOR}"


def affinity_pitfalls(pod_affinity: AffinityTerms, namespace: str, semantics: Semantics) -> list[str]:
    """The pitfalls in the terms of a pod in `namespace`."""
    required, anti_required = pod_affinity.required, pod_affinity.anti_required
    found: list[str] = []
    if len(required) > 1 and not semantics.affinity_terms_met_apart:
        found.append(f"{required[1].path}: {ONE_FOR_ALL}")
    for term in (*required, *pod_affinity.preferred, *anti_required, *pod_affinity.anti_preferred):
        selector = term.namespace_selector
        if selector is None:
            if term.namespaces == () and not semantics.empty_namespaces_mean_all:
                found.append(f"{term.path}.namespaces: {EMPTY_LIST}")
        elif selector.requirements and semantics.negative_namespace_selector_matches_all and selector.matches({}):
            found.append(f"{term.path}.namespaceSelector: {NEGATIVE_SELECTOR}")
    for use in resolve(pod_affinity, namespace, semantics, incoming=True).anti_required:
        (part,) = use.term.parts
        tolerant = part.excluded_namespaces or not part.in_scope(DAEMONS, DAEMON_LABELS)
        if terms.covers_all_pods(part) and not tolerant and not use.limit:
            found.append(f"{use.source.path}: {DAEMONS_TOO}")
    return found


def rolling_update_pitfalls(
    pod_affinity: AffinityTerms, namespace: str, old: Labels, semantics: Semantics
) -> list[str]:
    """The required anti-affinity that keeps new pods out of the domains of old pods, whose labels are `old`."""
    uses = resolve(pod_affinity, namespace, semantics, incoming=True).anti_required
    matching = (use for use in uses if not use.limit and use.term.matches(old, namespace, {}, terminating=False))
    return list(dict.fromkeys(f"{use.source.path}: {STUCK_UPDATE}" for use in matching))
