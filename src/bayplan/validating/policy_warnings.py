"""
What Karmada admits in a placement and its scheduler then takes otherwise than its author may think.

Facts of v1.18.2: pkg/scheduler/core/spreadconstraint for spread, and what issues of its users say of the rest. Fields
that nobody knows are `reading.checking`'s.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import admission, causes, placement_annotation, placements, tiers, workload_affinity
from bayplan.validating import spread_constraints as spread
from bayplan.validating.fields import Field

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
NO_SELECTOR = "a null labelSelector results in matching no workload"


def of_placement(obj: dict[str, object]) -> list[str]:
    """The warnings for a policy or a binding, each as `path: message`; none for any other object."""
    field = admission.placed(obj)
    if field is None or any(cause.reason == causes.TYPE_INVALID for cause in admission.causes(obj)):
        return []
    placement = field["spec"]["placement"]
    annotation = placement_annotation.written(field["metadata"])
    sources = [placement] if annotation is None else [placement, annotation]
    return [
        *_anti_affinity(sources),
        *_spread(placement),
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


def _spread(placement: Field) -> Iterator[str]:
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
                yield f"{term.field['labelSelector'].path}: {NO_SELECTOR}"
