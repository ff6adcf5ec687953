"""
Karmada bindings, mapped to workloads with their placement and Bayplan's own workload affinity terms.

A term has one of two forms: `labelSelector` with `matchLabelKeys`, or `affinityEnabled` over the configured keys; if
both are given, both must hold. The keys of the scheduler's configuration restrict the labels that terms may select by.
Does not know the detector that creates bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from bayplan.caching import memoised
from bayplan.errors import InputError
from bayplan.mapping import placement_size, placements, selectors, targets
from bayplan.model import bindings as model
from bayplan.model import timestamps
from bayplan.model.labels import EVERYTHING, EXISTS, IN, Labels, Selector, requirement
from bayplan.model.placements import AffinityGroup, Placement
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.targets import CLUSTER, FIELD_KEYS, Amounts, ReplicaDemand
from bayplan.model.terms import NO_TERMS, TARGET, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Workload
from bayplan.validating import structure_faults
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.validating.structure import Nulls
from bayplan.wire import conversion
from bayplan.wire import placements as wire
from bayplan.wire.fleets import BindingComponent, ReplicaRequirements, ResourceBinding

LABELS_ANNOTATION = "bayplan.io/workload-labels"
REPORTED_ANNOTATION = "bayplan.io/reported-replicas"
TOO_MANY_CONSTRAINTS = (
    "the placement has {n} scheduling constraints, more than the {most} that this scheduler accepts "
    "(--max-binding-constraints)"
)
_MAX_CACHED_LENGTH = 16384  # of a placement with its annotations; longer ones are rare, and would take memory
MAX_CLAIM_LENGTH = 16384  # accurate estimators are not asked about larger requirements
PURGE_MODES_WITHOUT_DRAINING = ("Directly", "Immediately")
DURING_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TOPOLOGY_PREFIX = "topology.karmada.io/"
FLAG_OF_FIELD = {"workloadAffinity": "--affinity-label-keys", "workloadAntiAffinity": "--anti-affinity-label-keys"}


class LabelKeys(msgspec.Struct, frozen=True):
    """The keys that affinity and anti-affinity terms may select by; None for every key."""

    affinity: tuple[str, ...] | None = None
    anti_affinity: tuple[str, ...] | None = None


ANY_KEY = LabelKeys()


class BindingContext(msgspec.Struct, frozen=True):
    """
    How bindings are mapped: the semantics, and the label keys that terms may select by.

    `assumes_no_labels`: a workload has no labels if neither its template nor the binding's annotation has them. If
    not, its labels are not known. A binding whose placement has more than `max_constraints` cannot be placed; 0 for no
    limit. `asks_estimators`: demands say what accurate estimators are asked with.
    """

    semantics: Semantics = UPSTREAM
    keys: LabelKeys = ANY_KEY
    assumes_no_labels: bool = True
    max_constraints: int = 0
    asks_estimators: bool = False


def workload_of(
    written: ResourceBinding, template: Mapping[str, Any] | None = None, context: BindingContext | None = None
) -> Workload:
    """The binding as a workload with its template's labels. A fault in its placement makes it unplaceable."""
    spec, meta = written.spec, written.metadata
    groups = spec.workload_affinity_groups
    context = context or BindingContext()
    labels, rules, fault = _rules(written, template, context)
    binding = model.Binding(
        namespace=spec.resource.namespace,
        name=spec.resource.name,
        api_version=spec.resource.api_version,
        kind=spec.resource.kind,
        uid=spec.resource.uid,
        replicas=spec.replicas,
        demand=None if spec.replica_requirements is None else _demand(spec.replica_requirements, context),
        components=tuple(map(_component, spec.components or ())),
        placement=rules.placement,
        group=rules.placement.groups[0] if rules.placement.groups else AffinityGroup(),
        previous=tuple((target.name, target.replicas) for target in spec.clusters or ()),
        evicted_from=tuple(task.from_cluster for task in spec.graceful_eviction_tasks or ()),
        observed=written.status.scheduler_observing_affinity_name,
        fresh=rebalance_requested_since(spec.reschedule_triggered_at, written.status.last_scheduled_time),
        affinity_group=groups.affinity_group if groups else "",
        anti_affinity_group=groups.anti_affinity_group if groups else "",
    )
    grouped = {model.AFFINITY_GROUP: binding.affinity_group, model.ANTI_AFFINITY_GROUP: binding.anti_affinity_group}
    known = _labels_of_groups(grouped.values()) if labels is None else labels
    return Workload(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels={**known, **{key: group for key, group in grouped.items() if group}},
        needs=Needs(affinity=rules.terms.of_owner(known)),
        priority=spec.schedule_priority.priority if spec.schedule_priority else 0,
        created=meta.creation_timestamp or "",
        scheduler_name=spec.scheduler_name,
        unplaceable=fault,
        binding=binding,
    )


def _demand(written: ReplicaRequirements, context: BindingContext) -> ReplicaDemand:
    claim = msgspec.json.encode(written, order="sorted").decode() if context.asks_estimators else ""
    return _shared_demand(_requests(written), claim if len(claim) <= MAX_CLAIM_LENGTH else "")


_shared_demand = memoised(16384)(ReplicaDemand)  # one for all bindings that request the same


class _OwnKeysTerm(msgspec.Struct, frozen=True):
    """A term of which only the owner's values are missing: the peers must have the same as the owner in `same`."""

    term: PodTerm
    same: tuple[str, ...] = ()

    def of_owner(self, labels: Labels) -> PodTerm:
        """The term of a workload with these labels; if it lacks a key, one that matches nothing."""
        selector = self.term.selector
        if not self.same or selector is None:
            return self.term
        unknown = [key for key in self.same if key not in labels]
        if unknown and model.UNKNOWN_LABELS in labels:
            same = (requirement(key, *((IN, (labels[key],)) if key in labels else (EXISTS,))) for key in self.same)
            return msgspec.structs.replace(self.term, selector=None, possible=selector.and_also(same))
        if unknown:
            return msgspec.structs.replace(self.term, selector=None)
        own = selector.and_also(requirement(key, IN, (labels[key],)) for key in self.same)
        return msgspec.structs.replace(self.term, selector=own)


class _TermsOfPlacement(msgspec.Struct, frozen=True):
    """The terms of a placement, whatever the labels of the workload are."""

    required: tuple[_OwnKeysTerm, ...] = ()
    anti_required: tuple[_OwnKeysTerm, ...] = ()
    preferred: tuple[_OwnKeysTerm, ...] = ()
    anti_preferred: tuple[_OwnKeysTerm, ...] = ()

    def of_owner(self, labels: Labels) -> AffinityTerms:
        """The terms of a workload with these labels."""
        lists = (self.required, self.anti_required, self.preferred, self.anti_preferred)
        return AffinityTerms(*(tuple([one.of_owner(labels) for one in terms]) for terms in lists)) or NO_TERMS


class _PlacementRules(msgspec.Struct, frozen=True):
    """`fault` says what is wrong with terms; the others are there, for what is placed already."""

    placement: Placement = Placement()
    terms: _TermsOfPlacement = _TermsOfPlacement()
    fault: str = ""


def _rules(
    written: ResourceBinding, template: Mapping[str, Any] | None, context: BindingContext
) -> tuple[dict[str, str] | None, _PlacementRules, str]:
    """The labels, None if they are not known; the placement and terms; and what is wrong: then they are empty."""
    labels: dict[str, str] | None = None
    try:
        labels = _labels(written, template, context)
        metadata = (template or {}).get("metadata") or {}
        annotations = (
            (written.metadata.annotations or {}).get(PLACEMENT_ANNOTATION),
            (metadata.get("annotations") or {}).get(PLACEMENT_ANNOTATION),
        )
        n = placement_size.n_constraints(written.spec.placement or {}) if context.max_constraints else 0
        if n > context.max_constraints:  # it is not even mapped: that takes long, for each report of the binding
            text = TOO_MANY_CONSTRAINTS.format(n=n, most=context.max_constraints)
            return labels, _rules_of_annotations(annotations, context), text
        placement = msgspec.json.encode(written.spec.placement or {})
        # Bindings of one policy have the same texts, and reading YAML takes longer than everything else about them.
        is_short = len(placement) + sum(len(text or "") for text in annotations) <= _MAX_CACHED_LENGTH
        read = _remembered_rules if is_short else _read_rules
        rules = read(placement, annotations, context)
    except InputError as error:
        return labels, _PlacementRules(), str(error)
    return labels, rules, rules.fault


def _rules_of_annotations(annotations: tuple[str | None, ...], context: BindingContext) -> _PlacementRules:
    """The terms of a placement that is not read: they hold for others while the binding is on its clusters."""
    try:
        return _remembered_rules(b"{}", annotations, context)
    except InputError:
        return _PlacementRules()


def _read_rules(placement: bytes, annotations: tuple[str | None, ...], context: BindingContext) -> _PlacementRules:
    """What the placement, as JSON, says together with the annotations; raises InputError for what is wrong."""
    merged = placements.merged_placement(msgspec.json.decode(placement), annotations)
    merged = _checked(merged)
    terms, fault = _terms_of(merged, context.keys)
    return _PlacementRules(placements.placement_of(merged, context.semantics), terms, fault)


_remembered_rules = memoised(4096)(_read_rules)


def _checked(placement: dict[str, Any]) -> dict[str, Any]:
    """
    The placement without nulls, which mean absent.

    Raises InputError for values of wrong types: an API server keeps fields that it does not know as they are.
    """
    try:
        msgspec.convert(placement, wire.WirePlacement)
    except msgspec.ValidationError:
        found = structure_faults.faults(placement, wire.WirePlacement, "placement", nulls=Nulls.FIELDS)
        if found:
            raise InputError(found) from None
        cleaned: dict[str, Any] = conversion.without_nulls(placement)
        return cleaned
    return placement


def _labels(
    written: ResourceBinding, template: Mapping[str, Any] | None, context: BindingContext
) -> dict[str, str] | None:
    """The template's labels, else those of the binding's annotation; None if they are not known."""
    if template is not None:
        return dict((template.get("metadata") or {}).get("labels") or {})
    text = (written.metadata.annotations or {}).get(LABELS_ANNOTATION)
    if not text:
        return {} if context.assumes_no_labels else None
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise InputError(f"metadata.annotations[{LABELS_ANNOTATION}]: {error}") from None


def reported_shares(written: ResourceBinding) -> dict[str, int] | None:
    """The replicas that clusters report of a binding that is only planned; None: those that it says itself."""
    text = (written.metadata.annotations or {}).get(REPORTED_ANNOTATION)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Annotated[int, msgspec.Meta(ge=0)]])
    except msgspec.MsgspecError as error:
        raise InputError(f"metadata.annotations[{REPORTED_ANNOTATION}]: {error}") from None


def known_labels(written: ResourceBinding) -> dict[str, str]:
    """The labels of the template as far as the binding reveals them; `UNKNOWN_LABELS` says that there may be others."""
    try:
        labels = _labels(written, None, BindingContext(assumes_no_labels=False))
    except InputError:  # reported when the binding is mapped
        labels = None
    if labels is not None:
        return labels
    groups = written.spec.workload_affinity_groups
    return _labels_of_groups((groups.affinity_group, groups.anti_affinity_group) if groups else ())


def _labels_of_groups(groups: Iterable[str]) -> dict[str, str]:
    """What is known of labels that are not known: those that Karmada's affinity groups are made of."""
    pairs = [group.partition("=") for group in groups if group]
    if not pairs:
        return {model.UNKNOWN_LABELS: ""}
    return {**{key: value for key, _, value in pairs}, model.UNKNOWN_LABELS: ""}


def draining_from(written: ResourceBinding) -> tuple[str, ...]:
    """The clusters from which a copy is still draining; a copy that is purged immediately does not drain."""
    tasks = written.spec.graceful_eviction_tasks or ()
    return tuple(task.from_cluster for task in tasks if task.purge_mode not in PURGE_MODES_WITHOUT_DRAINING)


def binding_name(name: str, kind: str) -> str:
    """The name of the binding for a resource; the API group is not part of it."""
    return f"{name.replace(':', '.')}-{kind}".lower()


def shares_of(written: ResourceBinding) -> list[tuple[str, int]]:
    """The clusters of the binding, each once, with its replicas there."""
    shares: dict[str, int] = {}
    for target in written.spec.clusters or ():
        shares.setdefault(target.name, target.replicas)
    return list(shares.items())


def _requests(written: ReplicaRequirements | None) -> Amounts | None:
    return None if written is None else targets.amounts_of(written.resource_request)


def _component(written: BindingComponent) -> model.Component:
    requirements = written.replica_requirements
    requests = (requirements.resource_request if requirements else None) or {}
    binary = frozenset(name for name, text in requests.items() if targets.is_binary(text))
    return model.Component(written.replicas, _requests(requirements), binary)


def rebalance_requested_since(triggered: str | None, scheduled: str | None) -> bool:
    """Whether a rebalance was requested after the last scheduling; both times must be set."""
    if not triggered or not scheduled:
        return False
    timestamps.checked(triggered, "spec.rescheduleTriggeredAt")
    timestamps.checked(scheduled, "status.lastScheduledTime")
    return timestamps.nanoseconds(triggered) > timestamps.nanoseconds(scheduled)


def _terms_of(placement: Mapping[str, Any], keys: LabelKeys) -> tuple[_TermsOfPlacement, str]:
    """The terms of the placement alone, and what is wrong with the first one that is left out."""
    found: dict[str, tuple[_OwnKeysTerm, ...]] = {}
    faults: list[str] = []
    for field, configured, prefix in (
        ("workloadAffinity", keys.affinity, ""),
        ("workloadAntiAffinity", keys.anti_affinity, "anti_"),
    ):
        lists = placement.get(field) or {}
        required = [
            (path, written, 0) for name in (DURING_EXECUTION, REQUIRED) for path, written in _listed(lists, field, name)
        ]
        preferred = [
            (f"{path}.workloadAffinityTerm", weighted.get("workloadAffinityTerm") or {}, weighted.get("weight") or 0)
            for path, weighted in _listed(lists, field, PREFERRED)
        ]
        for name, listed in (("required", required), ("preferred", preferred)):
            found[f"{prefix}{name}"] = tuple(_peer_terms(listed, configured, faults))
    return _TermsOfPlacement(**found), next(iter(faults), "")


def _peer_terms(
    listed: Iterable[tuple[str, Mapping[str, Any], int]], configured: tuple[str, ...] | None, faults: list[str]
) -> Iterator[_OwnKeysTerm]:
    """The terms of one list that are switched on; `faults` gets what is wrong with the others."""
    for path, written, weight in listed:
        try:
            term = _decoded(written, path)
            if term.affinity_enabled is not False or term.label_selector is not None or term.match_label_keys:
                yield _peer_term(term, path, weight, configured)
        except InputError as error:
            faults.append(str(error))


def _listed(lists: Mapping[str, Any], field: str, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The terms of one list, each with its path."""
    return [(f"{field}.{name}[{position}]", entry) for position, entry in enumerate(lists.get(name) or ())]


def _peer_term(
    term: wire.WorkloadAffinityTerm, path: str, weight: int, configured: tuple[str, ...] | None
) -> _OwnKeysTerm:
    selector = selectors.selector_of(term.label_selector)
    same = (*(term.match_label_keys or ()), *((configured or ()) if term.affinity_enabled else ()))
    _check_keys(path, term, selector, same, configured)
    found = PodTerm(
        EVERYTHING if selector is None and term.affinity_enabled else selector,
        topology_column(term.topology_key),
        None if term.namespaces is None else tuple(term.namespaces),
        selectors.selector_of(term.namespace_selector),
        weight=weight,
        path=path,
        during_execution=f".{DURING_EXECUTION}[" in path,
    )
    return _OwnKeysTerm(found, same)


def _decoded(raw: Mapping[str, Any], path: str) -> wire.WorkloadAffinityTerm:
    try:
        return msgspec.convert(raw, wire.WorkloadAffinityTerm)
    except msgspec.ValidationError as error:
        raise InputError(f"placement.{path}: {error}") from None


def _check_keys(
    path: str,
    term: wire.WorkloadAffinityTerm,
    selector: Selector | None,
    same: Sequence[str],
    configured: tuple[str, ...] | None,
) -> None:
    flag = FLAG_OF_FIELD[path.partition(".")[0]]
    if term.affinity_enabled and not configured:
        raise InputError(f"placement.{path}: affinityEnabled needs keys in {flag}")
    needed = {r.key for r in (selector.requirements if selector else ()) if r.operator in (IN, EXISTS)}
    if configured is not None and not {*needed, *same} & set(configured):
        raise InputError(f"placement.{path}: no key of the term is in {flag}")


def topology_column(key: str) -> str:
    """The column of a topology key; an empty key means the cluster."""
    short = (key or CLUSTER).removeprefix(TOPOLOGY_PREFIX)
    if short == CLUSTER:
        return TARGET
    return FIELD_KEYS.get(short, key)
