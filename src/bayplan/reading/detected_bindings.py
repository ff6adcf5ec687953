"""
The bindings of a fleet as Karmada's detector and its taint manager would leave them, and notes about them.

Bindings are created for templates that a policy selects, brought up to date with templates and policies, evicted from
clusters that are lost, and rebalanced. Does not schedule anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from bayplan.controllers import binding_triggers, cluster_failures
from bayplan.controllers.cluster_failures import SupposedFleet
from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.resource_interpreter import Answers, ResourceTemplate
from bayplan.mapping import bindings
from bayplan.model.labels import NO_EXECUTE
from bayplan.model.workloads import WorkloadKey
from bayplan.reading.claimed_bindings import ClaimedBindings, Key, key_of
from bayplan.reading.collecting import Inputs
from bayplan.validating import placements
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.wire.fleets import ResourceBinding
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod

PREEMPTS = "Always"
_MAX_NAMES_SHOWN = 3


class DetectedBindings:
    """The bindings of the input as the detector would leave them, and the notes about them."""

    def __init__(self, inputs: Inputs, pods: Iterable[Pod], supposed: SupposedFleet, answers: Answers) -> None:
        self._inputs, self._supposed = inputs, supposed
        self._clusters = {one.metadata.name: one for one in supposed.clusters}
        self.claimed = ClaimedBindings(inputs, pods, answers)
        self.bindings = self.claimed.bindings
        self._written = {(one.metadata.namespace, one.metadata.name): one for one in inputs.bindings}
        self.was: dict[Key, tuple[tuple[str, int], ...]] = {
            key: tuple(bindings.shares_of(one)) for key, one in self._written.items()
        }
        self._evicted = self._evict()
        self.rebalanced: set[Key] = set()
        self._not_found: list[str] = []
        self._rebalance()
        self._skipped = {key: self._reason_to_skip(key) for key in self.bindings}
        self.n_not_judged = len(self.claimed.not_judged) + sum(
            self._skipped[key] == binding_triggers.OTHER_SCHEDULER for key in self._evicted
        )
        self._terminating = {
            one.metadata.name for one in supposed.clusters if one.metadata.deletion_timestamp is not None
        }

    def is_ours(self, key: Key) -> bool:
        """Whether the scheduler considers the binding at all."""
        return not self._skipped[key]

    def is_pending(self, key: Key) -> bool:
        """Whether the scheduler would schedule the binding now."""
        if not self.is_ours(key):
            return False
        binding = self.bindings[key]
        template = self.claimed.template_of(binding)
        return (
            key in self.rebalanced
            or key in self._evicted
            or self.claimed.is_in_doubt(key)
            or self._has_edited_annotation(key, binding, template)
            or binding_triggers.needs_scheduling(binding, self._terminating, _placement_text(template))
        )

    def why_ignored(self, key: Key) -> str:
        """Why the scheduler does not consider the binding; empty if it does."""
        return binding_triggers.reason_of_one(self._skipped[key])

    def is_abandoned(self, key: Key) -> bool:
        """Whether the binding is evicted, and no scheduler places it again."""
        why = self._skipped[key]
        return key in self._evicted and why not in ("", binding_triggers.DELETED, binding_triggers.OTHER_SCHEDULER)

    def _has_edited_annotation(self, key: Key, binding: ResourceBinding, template: ResourceTemplate | None) -> bool:
        """
        Whether the annotation `bayplan.io/placement` was edited since the binding was scheduled.

        That is known if the change edits the policy or the template, or if the binding has the text of before.
        """
        written, now = self._written.get(key), _placement_text(binding)
        if written is None or not binding.spec.clusters:
            return False
        had = _placement_text(written)
        edited: list[tuple[str | None, str | None]] = [] if had is None else [(now, had)]
        for owner in (self.claimed.policies.get(key), None if template is None else key_of(template)):
            before = None if owner is None else self._inputs.replaced.get(owner)
            if before is not None:
                after = now if owner == self.claimed.policies.get(key) else _placement_text(template)
                edited.append((after, _placement_text(before)))
        return any(after != before for after, before in edited)

    def notes(self) -> Iterator[str]:
        """What was created, what is ignored, and what the input names but does not contain."""
        if self.claimed.created:
            created = counted(len(self.claimed.created), "binding was", "bindings were")
            yield f"{created} created from templates and their policies"
        for why, n in sorted(Counter(why for why in self._skipped.values() if why).items()):
            yield f"not scheduled, because they {why}: {counted(n, 'binding', 'bindings')}"
        if self.claimed.unclaimed:
            listed = ", ".join(f"{n} {kind}" for kind, n in sorted(self.claimed.unclaimed.items()))
            follows = any(one.spec.propagate_deps for one in self._inputs.policies)
            unless = ", unless what is propagated depends on them" if follows else ""
            yield f"not propagated, because no policy selects them{unless}: {listed}"
        held = {key_of(one) for one in self._inputs.policies if one.spec.suspension and one.spec.suspension.dispatching}
        n_held = sum(policy in held for policy in self.claimed.policies.values())
        if n_held:
            waiting = counted(n_held, "binding changes", "bindings change")
            yield f"{waiting} nothing on clusters yet: the policy suspends dispatching"
        yield from self._notes_on_policies()
        yield from _first(self.claimed.not_judged)
        whole: dict[str, list[str]] = {}
        for (why, kind), n in sorted(self.claimed.whole.items()):
            if why:
                whole.setdefault(why, []).append(f"{n} {kind}")
        for why, listed_kinds in whole.items():
            yield f"propagated whole, without counting replicas: {', '.join(listed_kinds)}; {why}"
        if self._inputs.nodes:
            nodes = counted(len(self._inputs.nodes), "Node is", "Nodes are")
            yield f"{nodes} ignored: with Cluster objects in the input, workloads are placed on clusters"
        for name in self._not_found:
            yield f"a WorkloadRebalancer names {name}, which has no binding here"
        yield from self._unknown_clusters()
        yield from self._supposed.notes
        yield from self._notes_on_evictions()

    def _notes_on_policies(self) -> Iterator[str]:
        """Which bindings no policy selects any more, which policies are not known, and which would take others."""
        left = ["/".join(key).lstrip("/") for key in self.claimed.released if key not in self.claimed.policies]
        if left:
            yield f"released by an edited policy, selected by no other one, and left where they are: {_listed(left)}"
        lacking = self.claimed.lacking() if self._inputs.policies else Counter[str]()
        for name, n in sorted(lacking.items())[:_MAX_NAMES_SHOWN]:
            yield f"{counted(n, 'binding names', 'bindings name')} a policy that is not in the input: {name}"
        if len(lacking) > _MAX_NAMES_SHOWN:
            yield f"bindings name {len(lacking) - _MAX_NAMES_SHOWN} more policies that are not in the input"
        preempting = [one for one in self._inputs.policies if one.spec.preemption == PREEMPTS]
        if preempting:
            asked = counted(len(preempting), "policy asks", "policies ask")
            yield f"{asked} for preemption, but none takes what another one has: Karmada needs a feature gate for it"
        regrouped = [
            key
            for key, policy in self.claimed.policies.items()
            if policy in self._inputs.altered
            and self.is_ours(key)
            and not self.is_pending(key)
            and binding_triggers.has_other_group_keys(self.bindings[key])
        ]
        if regrouped:
            yield (
                "not scheduled again for other groups of workload affinity, as Karmada does not do so after a cluster "
                f"affinity group was observed: {_listed(['/'.join(key).lstrip('/') for key in regrouped])}"
            )

    def _evict(self) -> set[Key]:
        """Evict bindings from the clusters that they have to leave."""
        found = set()
        supposed, known = self._supposed, self._clusters
        if (
            not supposed.taints
            and not supposed.drained
            and all(name in known for shares in self.was.values() for name, _ in shares)
        ):
            return set()
        for key, binding in self.bindings.items():
            after = cluster_failures.evicted(binding, self._supposed, self._clusters)
            if after is not binding:
                found.add(key)
                self.bindings[key] = after
        return found

    def _notes_on_evictions(self) -> Iterator[str]:
        """What is lost without a what-if, what stays on a lost cluster, and what Karmada may evict at any time."""
        missing = {name for shares in self.was.values() for name, _ in shares if name not in self._clusters}
        if missing:
            yield f"bindings name clusters that are not in the input and count as lost: {_listed(sorted(missing))}"
        staying = Counter[str](
            name for key in self.bindings for name, _ in self._shares(key) if name in self._supposed.taints
        )
        for name, n in sorted(staying.items()):
            yield f"{counted(n, 'binding tolerates', 'bindings tolerate')} the taint of {name} and would stay there"
        for_others = [key for key in self._evicted if self._skipped[key] == binding_triggers.OTHER_SCHEDULER]
        if for_others:
            names = _listed(["/".join(key).lstrip("/") for key in for_others])
            yield f"not judged, because they are evicted and another scheduler places them again: {names}"
        tainted: Counter[str] = Counter()
        is_tainted = any(t.effect == NO_EXECUTE for one in self._clusters.values() for t in one.spec.taints or ())
        for binding in self.bindings.values() if is_tainted else ():
            for name, taint in cluster_failures.untolerated(binding, self._clusters):
                tainted[f"{name} has the taint {taint}, which is not tolerated by"] += 1
        for text, n in sorted(tainted.items()):
            yield f"{text} {counted(n, 'binding', 'bindings')} there: Karmada evicts if failover is enabled"

    def _shares(self, key: Key) -> list[tuple[str, int]]:
        return bindings.shares_of(self.bindings[key])

    def of_change(self) -> frozenset[WorkloadKey] | None:
        """The bindings that the change concerns, by themselves, their templates or policies; a cluster concerns all."""
        change, found = self._inputs.change, set[Key]()
        if change is None or any(
            ObjectKey("Cluster", "", one.metadata.name) in change for one in self._inputs.clusters
        ):
            return None
        for key, binding in self.bindings.items():
            named = binding.spec.resource
            made_of = (ObjectKey(binding.kind, *key), ObjectKey(named.kind, named.namespace, named.name))
            claims = (self.claimed.policies.get(key), self.claimed.released.get(key))
            if any(one in change for one in (*made_of, *claims)):
                found.add(key)
        rebalancers = [one for one in self._inputs.rebalancers if key_of(one) in change]
        for workload in [one for rebalancer in rebalancers for one in rebalancer.spec.workloads or ()]:
            found.add((workload.namespace, bindings.binding_name(workload.name, workload.kind)))
        return frozenset(map(workload_key, found))

    def _rebalance(self) -> None:
        for rebalancer in self._inputs.rebalancers:
            created = rebalancer.metadata.creation_timestamp
            for workload in rebalancer.spec.workloads or ():
                key = (workload.namespace, bindings.binding_name(workload.name, workload.kind))
                if key not in self.bindings:
                    self._not_found.append(f"{workload.kind} {workload.namespace}/{workload.name}".replace(" /", " "))
                elif self._is_newer(self.bindings[key], created):
                    self.rebalanced.add(key)

    def _is_newer(self, binding: ResourceBinding, created: str | None) -> bool:
        """Whether the rebalancer is newer than the last scheduling; one without a date is about to be created."""
        scheduled = binding.status.last_scheduled_time
        return bool(binding.spec.clusters) and (
            not created or not scheduled or bindings.rebalance_requested_since(created, scheduled)
        )

    def _reason_to_skip(self, key: Key) -> str:
        binding = self.bindings[key]
        written = ObjectKey(binding.kind, *key) in self._inputs.documents
        return binding_triggers.reason_to_skip(binding, handwritten=written)

    def _unknown_clusters(self) -> Iterator[str]:
        known = {cluster.metadata.name for cluster in self._inputs.clusters}
        for policy in self._inputs.policies:
            named = dict.fromkeys(
                name for _, name in placements.named_clusters(msgspec.to_builtins(policy.spec.placement))
            )
            unknown = [name for name in named if name not in known]
            if unknown:
                shown = _listed(unknown)
                where = f"{policy.metadata.namespace}/{policy.metadata.name}".lstrip("/")
                yield f"{policy.kind} {where} names clusters that are not in the input: {shown}"


def workload_key(key: Key) -> WorkloadKey:
    """The key that the workload of a binding has in the index."""
    return WorkloadKey("/".join(key))


def _placement_text(written: ApiObject | ResourceTemplate | None) -> str | None:
    """The annotation with Bayplan's own placement fields."""
    return None if written is None else (written.metadata.annotations or {}).get(PLACEMENT_ANNOTATION)


def _first(not_judged: list[str]) -> Iterator[str]:
    """The first workloads that are not judged, each with the reason, and how many more there are."""
    yield from not_judged[:_MAX_NAMES_SHOWN]
    n_more = len(not_judged) - _MAX_NAMES_SHOWN
    if n_more > 0:
        yield f"not judged: {counted(n_more, 'more workload', 'more workloads')}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MAX_NAMES_SHOWN]) + (" …" if len(names) > _MAX_NAMES_SHOWN else "")


def counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
