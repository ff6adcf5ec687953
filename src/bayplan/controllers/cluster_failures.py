"""
What-if for fleets: clusters that are lost, drained, tainted or recovered, and what Karmada's taint manager evicts then.

Mirrors v1.18.2: pkg/controllers/cluster/taint_manager.go. Eviction needs the feature gate Failover with
--enable-no-execute-taint-eviction, which no object shows: it is supposed. Does not schedule anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from bayplan.errors import ArgumentError
from bayplan.mapping import placements
from bayplan.model.labels import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, tolerated
from bayplan.model.node_selectors import NodeRequirement
from bayplan.wire import conversion
from bayplan.wire.fleets import Cluster, ClusterTaintPolicy, GracefulEvictionTask, MatchCondition, ResourceBinding
from bayplan.wire.nodes import WireTaint
from bayplan.wire.placements import WireClusterAffinity, WirePlacement

KIND = "cluster"
LOST = "cluster.karmada.io/unreachable"
DRAINED = "cluster.karmada.io/unschedulable"
# Karmada adds and removes these by the cluster's health; NoExecute ones come from policies or people.
_OF_HEALTH = ("cluster.karmada.io/not-ready", LOST, DRAINED)
_FIELDS = ("region", "provider", "zone")
_EXPECTED = "expected cluster/NAME or KEY=VALUE in a fleet"
_SUPPOSED = (
    "evictions are supposed: Karmada evicts for NoExecute taints only with the feature gate Failover and "
    "--enable-no-execute-taint-eviction"
)
_NO_POLICY = ", and adds such taints only by a ClusterTaintPolicy"
_READY, _STATUS_OF_LOST = "Ready", "Unknown"


class ClusterEvents(msgspec.Struct, frozen=True):
    """What is supposed to happen, as written: `cluster/NAME`, `NAME` or `KEY=VALUE`; a taint belongs to a cluster."""

    lose: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    recover: tuple[str, ...] = ()
    taints: tuple[tuple[str, Taint], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lose or self.drain or self.recover or self.taints)


class SupposedFleet(msgspec.Struct, frozen=True):
    """
    The clusters after the events, and by cluster the taints for which bindings are evicted from it.

    From `drained` clusters they are evicted whatever they tolerate.
    """

    clusters: list[Cluster]
    taints: Mapping[str, Sequence[Taint]]
    drained: frozenset[str]
    notes: list[str]


def suppose(
    events: ClusterEvents, clusters: Sequence[Cluster], policies: Sequence[ClusterTaintPolicy] = ()
) -> SupposedFleet:
    """
    The clusters after the events; raises ArgumentError for a cluster that does not exist, or for a contradiction.

    A lost cluster gets the taints that `policies` add to it. If none of them evicts, such a taint is supposed.
    """
    notes: list[str] = []
    lost, drained, recovered = (
        dict.fromkeys(name for text in texts for name in _selected(text, option, clusters, notes))
        for option, texts in (("lose", events.lose), ("drain", events.drain), ("recover", events.recover))
    )
    for option, names in (("lose", lost), ("drain", drained)):
        both = [name for name in names if name in recovered]
        if both:
            raise ArgumentError(f"{option} and recover contradict each other: both name cluster {both[0]}")
    added: dict[str, list[Taint]] = {}
    by_name, n_without_policy = {one.metadata.name: one for one in clusters}, 0
    for name in lost:
        by_policies = list(_taints_of_lost(by_name[name], policies))
        if not any(taint.effect == NO_EXECUTE for taint in by_policies):
            by_policies.append(Taint(LOST, "", NO_EXECUTE))
            n_without_policy += 1
        added.setdefault(name, []).extend([Taint(LOST, "", NO_SCHEDULE), *by_policies])
    for name in drained:
        added.setdefault(name, []).append(Taint(DRAINED, "", NO_SCHEDULE))
    for text, taint in events.taints:
        for name in _selected(text, "taint", clusters, notes):
            if name in recovered:
                raise ArgumentError(f"taint and recover contradict each other: both name cluster {name}")
            added.setdefault(name, []).append(taint)
    evicting = {name: [one for one in taints if one.effect == NO_EXECUTE] for name, taints in added.items()}
    evicting = {name: taints for name, taints in evicting.items() if taints}
    if evicting:
        notes.append(_SUPPOSED + (_NO_POLICY if n_without_policy else ""))
    after = [
        _with_taints(one, added.get(one.metadata.name, ()), recovers=one.metadata.name in recovered) for one in clusters
    ]
    return SupposedFleet(after, evicting, frozenset(drained), notes)


def _selected(text: str, option: str, clusters: Sequence[Cluster], notes: list[str]) -> Iterator[str]:
    """The clusters that `cluster/NAME`, `NAME` or `KEY=VALUE` names; a cluster in several zones needs all of them."""
    key, equals, value = text.partition("=")
    if not key or (equals and not value and key in _FIELDS):  # nothing is in a region without a name
        raise ArgumentError(_EXPECTED, argument=option, value=text)
    if equals:
        found = [one for one in clusters if value in _values(one, key)]
        if not found:
            message = f"no cluster has {text}{_near(value, _all_values(clusters, key))}"
            raise ArgumentError(message, argument=option, value=text)
        for one in found:
            if key == "zone" and len(one.spec.zones or ()) > 1 and option == "lose":
                notes.append(f"cluster {one.metadata.name} is not lost with zone {value}: it has other zones")
            else:
                yield one.metadata.name
        return
    kind, _, name = text.rpartition("/")
    names = [one.metadata.name for one in clusters]
    if kind not in ("", KIND, f"{KIND}s"):
        raise ArgumentError(_EXPECTED, argument=option, value=text)
    if name not in names:
        message = f"there is no such cluster{_near(name, names)}"
        raise ArgumentError(message, argument=option, value=text)
    yield name


def _values(cluster: Cluster, key: str) -> Sequence[str]:
    spec = cluster.spec
    fields = {"region": [spec.region], "provider": [spec.provider], "zone": spec.zones or []}
    label = (cluster.metadata.labels or {}).get(key)
    return fields.get(key, [] if label is None else [label])


def _all_values(clusters: Iterable[Cluster], key: str) -> list[str]:
    return sorted({value for one in clusters for value in _values(one, key)})


def _taints_of_lost(cluster: Cluster, policies: Iterable[ClusterTaintPolicy]) -> Iterator[Taint]:
    """The taints that ClusterTaintPolicies add to a cluster that cannot be reached (Karmada: pkg/controllers/taint)."""
    statuses = {one.type: one.status for one in cluster.status.conditions or ()} | {_READY: _STATUS_OF_LOST}
    found: dict[tuple[str, str], Taint] = {}
    for policy in sorted(policies, key=lambda one: one.metadata.creation_timestamp or ""):
        targets, conditions = policy.spec.target_clusters, policy.spec.add_on_conditions or ()
        is_met = bool(conditions) and all(_is_met(one, statuses.get(one.condition_type)) for one in conditions)
        if is_met and (targets is None or _is_selected(cluster, targets)):
            for one in policy.spec.taints or ():
                found.setdefault((one.key, one.effect), Taint(one.key, one.value, one.effect))
    return iter(found.values())


def _is_met(condition: MatchCondition, status: str | None) -> bool:
    """Whether the cluster has the condition with such a status; one without it never has."""
    if status is None or condition.operator not in ("In", "NotIn"):
        return False
    return (status in (condition.status_values or ())) == (condition.operator == "In")


def _is_selected(cluster: Cluster, written: WireClusterAffinity) -> bool:
    """Whether the affinity selects the cluster, read from the object itself."""
    affinity, spec = placements.cluster_affinity(msgspec.to_builtins(written)), cluster.spec
    name = cluster.metadata.name
    fields = {"region": spec.region or None, "provider": spec.provider or None}
    return (
        not affinity.impossible
        and name not in affinity.exclude
        and (not affinity.names or name in affinity.names)
        and (affinity.labels is None or affinity.labels.matches(cluster.metadata.labels or {}))
        and all(
            _zones_meet(one, spec.zones or []) if one.key == "zone" else one.matches(fields.get(one.key))
            for one in affinity.fields
        )
    )


def _zones_meet(requirement: NodeRequirement, zones: Sequence[str]) -> bool:
    """As for a single value, but a cluster may be in several zones: `In` needs one of them, `NotIn` none."""
    if requirement.operator in ("In", "NotIn"):
        return any(zone in requirement.values for zone in zones) == (requirement.operator == "In")
    return requirement.matches(zones[0] if zones else None)


def _near(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f", did you mean {near[0]}?" if near else ""


def _with_taints(cluster: Cluster, added: Iterable[Taint], *, recovers: bool) -> Cluster:
    taints = list(cluster.spec.taints or ())
    metadata = cluster.metadata
    if recovers:
        taints = [one for one in taints if one.key not in _OF_HEALTH and one.effect != NO_EXECUTE]
        metadata = msgspec.structs.replace(metadata, deletion_timestamp=None)
    taints += [WireTaint(key=one.key, value=one.value, effect=one.effect) for one in added]
    spec = msgspec.structs.replace(cluster.spec, taints=taints)
    return msgspec.structs.replace(cluster, spec=spec, metadata=metadata)


def evicted(binding: ResourceBinding, supposed: SupposedFleet, known: Mapping[str, Cluster]) -> ResourceBinding:
    """
    The binding after the evictions; clusters that are not `known` count as lost.

    A toleration with tolerationSeconds only delays an eviction.
    """
    gone = [target.name for target in binding.spec.clusters or () if target.name not in known]
    tasks = []
    for target in binding.spec.clusters or ():
        taints = supposed.taints.get(target.name, ())
        if target.name in supposed.drained or (taints and not tolerates(binding, taints)):
            tasks.append(GracefulEvictionTask(from_cluster=target.name))
    leaving = {*gone, *(task.from_cluster for task in tasks)}
    if not leaving:
        return binding
    spec = msgspec.structs.replace(
        binding.spec,
        clusters=[target for target in binding.spec.clusters or () if target.name not in leaving],
        graceful_eviction_tasks=[*(binding.spec.graceful_eviction_tasks or ()), *tasks],
    )
    return msgspec.structs.replace(binding, spec=spec)


def tolerates(binding: ResourceBinding, taints: Iterable[Taint]) -> bool:
    """Whether the placement tolerates all of the taints for ever."""
    try:
        written = conversion.converted(binding.spec.placement or {}, WirePlacement).cluster_tolerations or ()
    except msgspec.ValidationError:
        return False
    forever = [Toleration(t.key, t.operator, t.value, t.effect) for t in written if t.toleration_seconds is None]
    return all(tolerated(taint, forever) for taint in taints)


def untolerated(binding: ResourceBinding, known: Mapping[str, Cluster]) -> Iterator[tuple[str, Taint]]:
    """The NoExecute taints of the binding's clusters that it does not tolerate, each with its cluster."""
    for target in binding.spec.clusters or ():
        cluster = known.get(target.name)
        for one in (cluster.spec.taints or ()) if cluster is not None else ():
            taint = Taint(one.key, one.value, one.effect)
            if taint.effect == NO_EXECUTE and not tolerates(binding, (taint,)):
                yield target.name, taint
