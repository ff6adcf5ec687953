"""
The bindings of a fleet as Karmada's detector and its taint manager would leave them, and notes about them.

Bindings are created for templates that a policy selects, brought up to date with templates and policies, evicted from
clusters that are lost, and rebalanced. Does not schedule anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from bayplan.controllers import binding_detector, binding_triggers, cluster_failures, resource_interpreter
from bayplan.controllers.cluster_failures import SupposedFleet
from bayplan.controllers.desired_state import ObjectKey, TemplateKey
from bayplan.controllers.policy_index import PolicyIndex
from bayplan.controllers.resource_interpreter import Answers, ResourceTemplate
from bayplan.mapping import bindings
from bayplan.model.labels import NO_EXECUTE
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.reading.collecting import Inputs
from bayplan.validating import placements
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.wire import kinds
from bayplan.wire.fleets import ResourceBinding
from bayplan.wire.kinds import Trait
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod

Key = tuple[str, str]  # namespace and name of a binding
REPLICAS_NOT_KNOWN = "replicas are not known, so it is not judged"
_MAX_NAMES_SHOWN = 3


class DetectedBindings:
    """The bindings of the input as the detector would leave them, and the notes about them."""

    def __init__(self, inputs: Inputs, pods: Iterable[Pod], supposed: SupposedFleet, answers: Answers) -> None:
        self._inputs, self._supposed = inputs, supposed
        self._clusters = {one.metadata.name: one for one in supposed.clusters}
        self._priorities = {one.metadata.name: one.value for one in inputs.priority_classes}
        self._policy_index = PolicyIndex(inputs.policies)
        self._templates: dict[TemplateKey, ResourceTemplate] = {}
        for template in resource_interpreter.templates_of(inputs, pods, answers):
            self._templates.setdefault(template.key, template)
        self.bindings: dict[Key, ResourceBinding] = {
            (one.metadata.namespace, one.metadata.name): one for one in inputs.bindings
        }
        self._written = dict(self.bindings)
        self.was: dict[Key, tuple[tuple[str, int], ...]] = {
            key: tuple(bindings.shares_of(one)) for key, one in self.bindings.items()
        }
        self.policies: dict[Key, ObjectKey] = {}
        self._created: list[Key] = []
        self._unclaimed: Counter[str] = Counter()
        self.unselected: list[str] = []
        self.not_judged: list[str] = []
        self._whole: Counter[tuple[str, str]] = Counter()
        self._missing_groups: dict[Key, str] = {}
        for template in self._templates.values():
            self._detect(template)
        self._detect_policies()
        self._evicted = self._evict()
        self.rebalanced: set[Key] = set()
        self._not_found: list[str] = []
        self._rebalance()
        self._skipped = {key: self._reason_to_skip(key) for key in self.bindings}
        self._terminating = {
            one.metadata.name for one in supposed.clusters if one.metadata.deletion_timestamp is not None
        }

    def template_of(self, binding: ResourceBinding) -> ResourceTemplate | None:
        named = binding.spec.resource
        return self._templates.get((named.api_version, named.kind, named.namespace, named.name))

    def is_ours(self, key: Key) -> bool:
        """Whether the scheduler considers the binding at all."""
        return not self._skipped[key]

    def is_pending(self, key: Key) -> bool:
        """Whether the scheduler would schedule the binding now."""
        if not self.is_ours(key):
            return False
        binding = self.bindings[key]
        template = self.template_of(binding)
        return (
            key in self.rebalanced
            or self._has_edited_annotation(key, binding, template)
            or binding_triggers.needs_scheduling(binding, self._terminating, _placement_text(template))
        )

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
        for owner in (self.policies.get(key), None if template is None else _key_of(template)):
            before = None if owner is None else self._inputs.replaced.get(owner)
            if before is not None:
                after = now if owner == self.policies.get(key) else _placement_text(template)
                edited.append((after, _placement_text(before)))
        return any(after != before for after, before in edited)

    def notes(self) -> Iterator[str]:
        """What was created, what is ignored, and what the input names but does not contain."""
        if self._created:
            created = counted(len(self._created), "binding was", "bindings were")
            yield f"{created} created from templates and their policies"
        for why, n in sorted(Counter(why for why in self._skipped.values() if why).items()):
            yield f"not scheduled, because they {why}: {counted(n, 'binding', 'bindings')}"
        if self._unclaimed:
            listed = ", ".join(f"{n} {kind}" for kind, n in sorted(self._unclaimed.items()))
            follows = any(one.spec.propagate_deps for one in self._inputs.policies)
            unless = ", unless what is propagated depends on them" if follows else ""
            yield f"not propagated, because no policy selects them{unless}: {listed}"
        held = {
            _key_of(one) for one in self._inputs.policies if one.spec.suspension and one.spec.suspension.dispatching
        }
        n_held = sum(policy in held for policy in self.policies.values())
        if n_held:
            waiting = counted(n_held, "binding changes", "bindings change")
            yield f"{waiting} nothing on clusters yet: the policy suspends dispatching"
        yield from _first(self.not_judged)
        whole: dict[str, list[str]] = {}
        for (why, kind), n in sorted(self._whole.items()):
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

    def _evict(self) -> list[Key]:
        """Evict bindings from the clusters that they have to leave."""
        found = []
        supposed, known = self._supposed, self._clusters
        if (
            not supposed.taints
            and not supposed.drained
            and all(name in known for shares in self.was.values() for name, _ in shares)
        ):
            return []
        for key, binding in self.bindings.items():
            after = cluster_failures.evicted(binding, self._supposed, self._clusters)
            if after is not binding:
                found.append(key)
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
        waiting = [key for key in self._evicted if not self.is_ours(key)]
        if waiting:
            names = _listed(["/".join(key).lstrip("/") for key in waiting])
            yield f"evicted, but not scheduled again by this scheduler: {names}"
        tainted: Counter[str] = Counter()
        is_tainted = any(t.effect == NO_EXECUTE for one in self._clusters.values() for t in one.spec.taints or ())
        for binding in self.bindings.values() if is_tainted else ():
            for name, taint in cluster_failures.untolerated(binding, self._clusters):
                tainted[f"{name} has the taint {taint}, which is not tolerated by"] += 1
        for text, n in sorted(tainted.items()):
            yield f"{text} {counted(n, 'binding', 'bindings')} there: Karmada evicts if failover is enabled"

    def _shares(self, key: Key) -> list[tuple[str, int]]:
        return bindings.shares_of(self.bindings[key])

    def _detect(self, template: ResourceTemplate) -> None:
        """Create the template's binding, or update it."""
        key = (template.metadata.namespace, template.binding_name)
        policy = self._policy_index.policy_for(template) if binding_detector.is_propagated(template) else None
        present = self.bindings.get(key)
        if policy is not None:
            self.policies[key] = _key_of(policy)
            self._whole[template.whole, template.kind] += 1
            if template.unread and (present is None or self._is_changed(template)):
                self.not_judged.append(f"{REPLICAS_NOT_KNOWN}: {_named(template)}: {template.unread}")
        if present is not None and self.template_of(present) is template:
            self.bindings[key] = binding_detector.updated_binding(present, template, policy, self._priorities)
        elif present is not None and policy is not None:
            other = present.spec.resource
            shared = f"its binding has the name of the one for {other.kind} of {other.api_version}"
            self.not_judged.append(f"not judged: {_named(template)} of {template.api_version}: {shared}")
        elif present is None and policy is not None and not template.unread:
            self.bindings[key] = binding_detector.binding_for(template, policy, self._priorities)
            self._created.append(key)
        elif present is None and policy is None and not _is_rarely_propagated(template):
            self._unclaimed[template.kind] += 1
            self._note_unselected(template)

    def _note_unselected(self, template: ResourceTemplate) -> None:
        """Remember a workload that is about to be applied and that no policy propagates."""
        if self._is_changed(template) and _makes_pods(template, self._inputs):
            self.unselected.append(_named(template))

    def _is_changed(self, template: ResourceTemplate) -> bool:
        """Whether the template is about to be applied."""
        meta, change = template.metadata, self._inputs.change
        return not meta.uid if change is None else ObjectKey(template.kind, meta.namespace, meta.name) in change

    def _detect_policies(self) -> None:
        """Update the bindings whose templates are not in the input by the policies that they name."""
        policies = binding_detector.policies_by_name(self._inputs.policies)
        plain = {  # what most bindings have already, so that there is nothing to update
            _key_of(one): binding_detector.placement_of(one)
            for one in self._inputs.policies
            if binding_detector.is_plain(one)
        }
        for key, binding in self.bindings.items():
            policy = None if key in self.policies else binding_detector.claiming_policy(binding, policies)
            if policy is None or not binding_detector.may_select(policy, binding):
                continue
            named_policy = self.policies[key] = _key_of(policy)
            spec = binding.spec
            if named_policy in plain and (spec.placement, spec.scheduler_name, spec.schedule_priority) == (
                plain[named_policy],
                policy.spec.scheduler_name,
                None,
            ):
                continue
            if self.template_of(binding) is None:
                missing = binding_detector.missing_group_keys(binding, policy)
                if missing:
                    named = binding.spec.resource
                    name = f"{named.kind} {named.namespace}/{named.name}"
                    self._missing_groups[key] = f"labels of {name} are not known, which {', '.join(missing)} selects by"
                self.bindings[key] = binding_detector.updated_binding(binding, None, policy, self._priorities)

    def refused_for_groups(self, key: Key, workload: Workload) -> Workload:
        """The workload, not to be placed if its affinity groups are not known."""
        missing = self._missing_groups.get(key)
        return workload if missing is None else msgspec.structs.replace(workload, unplaceable=missing)

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
            if any(one in change for one in made_of) or self.policies.get(key) in change:
                found.add(key)
        rebalancers = [one for one in self._inputs.rebalancers if _key_of(one) in change]
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


def _key_of(written: ApiObject | ResourceTemplate) -> ObjectKey:
    return ObjectKey(written.kind, written.metadata.namespace, written.metadata.name)


def _named(template: ResourceTemplate) -> str:
    return f"{template.kind} {template.metadata.namespace}/{template.metadata.name}".replace(" /", " ")


def _first(not_judged: list[str]) -> Iterator[str]:
    """The first workloads that are not judged, each with the reason, and how many more there are."""
    yield from not_judged[:_MAX_NAMES_SHOWN]
    n_more = len(not_judged) - _MAX_NAMES_SHOWN
    if n_more > 0:
        yield f"not judged: {counted(n_more, 'more workload', 'more workloads')}"


def _makes_pods(template: ResourceTemplate, inputs: Inputs) -> bool:
    """Whether the template is a workload, and not a resource such as a ConfigMap."""
    group_kind = template.api_version.rpartition("/")[0], template.kind
    row = kinds.KINDS.get(group_kind)
    is_read = template.interpreted or template.components is not None or bool(template.unread or template.whole)
    return is_read or group_kind in inputs.custom_kinds or (row is not None and bool(row.pod_path))


def _is_rarely_propagated(template: ResourceTemplate) -> bool:
    """Whether it is an object of a cluster itself, such as a Namespace: not reported if no policy selects it."""
    row = kinds.KINDS.get((template.api_version.rpartition("/")[0], template.kind))
    return row is not None and Trait.OF_CLUSTER in row.traits


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MAX_NAMES_SHOWN]) + (" …" if len(names) > _MAX_NAMES_SHOWN else "")


def counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
