"""
Bindings and their policies, as Karmada's detector leaves them: created for templates, claimed, released, up to date.

Does not know clusters, and schedules nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from bayplan.controllers import binding_detector, policy_claims, resource_interpreter
from bayplan.controllers.desired_state import ObjectKey, TemplateKey
from bayplan.controllers.policy_claims import PolicyClaim, PolicyClaims
from bayplan.controllers.resource_interpreter import Answers, ResourceTemplate
from bayplan.model.workloads import Workload
from bayplan.reading.collecting import Inputs
from bayplan.wire import kinds
from bayplan.wire.fleets import ResourceBinding
from bayplan.wire.kinds import Trait
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod

Key = tuple[str, str]  # namespace and name of a binding
REPLICAS_NOT_KNOWN = "replicas are not known, so it is not judged"


class ClaimedBindings:
    """
    The bindings of the input as the detector would leave them.

    `policies` has the policy of each that has one, `released` the edited policy that let it go, and `created` is new.
    `unclaimed` counts templates without a policy by kind, `unselected` names the workloads of the change among them,
    `whole` counts those that are propagated as they are, by reason and kind. `not_judged` says which templates are
    left out, and why.
    """

    def __init__(self, inputs: Inputs, pods: Iterable[Pod], answers: Answers) -> None:
        self._inputs = inputs
        self._priorities = {one.metadata.name: one.value for one in inputs.priority_classes}
        self._claims = PolicyClaims(inputs.policies, *_edited_policies(inputs))
        self._templates: dict[TemplateKey, ResourceTemplate] = {}
        for template in resource_interpreter.templates_of(inputs, pods, answers):
            self._templates.setdefault(template.key, template)
        self.bindings: dict[Key, ResourceBinding] = {
            (one.metadata.namespace, one.metadata.name): one for one in inputs.bindings
        }
        self.policies: dict[Key, ObjectKey] = {}
        self.released: dict[Key, ObjectKey] = {}
        self.created: list[Key] = []
        self.unclaimed: Counter[str] = Counter()
        self.unselected: list[str] = []
        self.not_judged: list[str] = []
        self.whole: Counter[tuple[str, str]] = Counter()
        self._not_known: dict[Key, str] = {}
        self._in_doubt: set[Key] = set()
        for template in self._templates.values():
            self._detect(template)
        self._detect_policies()

    def template_of(self, binding: ResourceBinding) -> ResourceTemplate | None:
        named = binding.spec.resource
        return self._templates.get((named.api_version, named.kind, named.namespace, named.name))

    def is_in_doubt(self, key: Key) -> bool:
        """Whether it depends on labels that are not known which policy the binding has."""
        return key in self._in_doubt

    def _detect(self, template: ResourceTemplate) -> None:
        """Create the template's binding, or update it."""
        key = (template.metadata.namespace, template.binding_name)
        present = self.bindings.get(key)
        own = present if present is not None and self.template_of(present) is template else None
        claim = self._claims.of_template(template, own) if binding_detector.is_propagated(template) else PolicyClaim()
        policy = claim.policy
        if policy is not None:
            self.policies[key] = key_of(policy)
            self.whole[template.whole, template.kind] += 1
            if template.unread and (present is None or self._is_changed(template)):
                self.not_judged.append(f"{REPLICAS_NOT_KNOWN}: {_named(template)}: {template.unread}")
        if own is not None:
            self._update(key, own, template, claim)
        elif present is not None and policy is not None:
            other = present.spec.resource
            shared = f"its binding has the name of the one for {other.kind} of {other.api_version}"
            self.not_judged.append(f"not judged: {_named(template)} of {template.api_version}: {shared}")
        elif present is None and policy is not None and not template.unread:
            self.bindings[key] = binding_detector.binding_for(template, policy, self._priorities)
            self.created.append(key)
        elif present is None and policy is None and not _is_rarely_propagated(template):
            self.unclaimed[template.kind] += 1
            self._note_unselected(template)

    def _update(
        self, key: Key, binding: ResourceBinding, template: ResourceTemplate | None, claim: PolicyClaim
    ) -> None:
        """Bring a binding up to date with its template, if that is in the input, and with its policy."""
        policy = claim.policy
        if claim.released_by is not None or (policy is not None and not policy_claims.is_claimed(binding)):
            binding = self.bindings[key] = binding_detector.claimed_for(binding, policy)
        if claim.released_by is not None:
            self.released[key] = key_of(claim.released_by)
        if policy is None and (claim.ignored or claim.released_by is not None):
            if template is not None:
                self._note_unselected(template)
            return
        altered = template is not None and key_of(template) in self._inputs.altered
        self.bindings[key] = binding_detector.updated_binding(
            binding, template, policy, self._priorities, template_altered=altered
        )

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
        plain = {  # what most bindings have already, so that there is nothing to update
            key_of(one): binding_detector.placement_of(one)
            for one in self._inputs.policies
            if binding_detector.is_plain(one)
        }
        for key, binding in self.bindings.items():
            if key in self.policies or self.template_of(binding) is not None:
                continue
            claim, spec = self._claims.of_binding(binding), binding.spec
            policy = claim.policy or claim.released_by
            if policy is None:
                continue
            named_policy = key_of(policy)
            if claim.policy is not None:
                self.policies[key] = named_policy
            applied = (spec.placement, spec.scheduler_name, spec.schedule_priority)
            if claim.doubtful is not None:
                self._in_doubt.add(key)
                self._refuse(key, f"policy {claim.doubtful.metadata.name}")
            elif claim.released_by is not None or not (
                policy_claims.is_claimed(binding)
                and named_policy in plain
                and applied == (plain[named_policy], policy.spec.scheduler_name, None)
            ):
                missing = binding_detector.missing_group_keys(binding, policy) if claim.policy is not None else []
                if missing:
                    self._refuse(key, ", ".join(missing))
                self._update(key, binding, None, claim)

    def _refuse(self, key: Key, selecting: str) -> None:
        """Remember that something selects by the labels of the binding's template, which are not known."""
        named = self.bindings[key].spec.resource
        name = f"{named.kind} {named.namespace}/{named.name}".replace(" /", " ")
        self._not_known[key] = f"labels of {name} are not known, which {selecting} selects by"

    def lacking(self) -> Counter[str]:
        """The policies that bindings belong to and that the input lacks, with the number of bindings."""
        known = {(one.metadata.namespace, one.metadata.name) for one in self._inputs.policies}
        named = Counter(binding_detector.claimed_by(one.metadata) for one in self.bindings.values())
        return Counter({_policy_name(*one): n for one, n in named.items() if one is not None and one not in known})

    def refused_for_labels(self, key: Key, workload: Workload) -> Workload:
        """The workload, not to be placed if its policy or its affinity groups are not known."""
        missing = self._not_known.get(key)
        return workload if missing is None else msgspec.structs.replace(workload, unplaceable=missing)


def _edited_policies(inputs: Inputs) -> tuple[set[ObjectKey], set[ObjectKey]]:
    """The policies that release what they do not select, and those with other selectors than before the change."""
    if inputs.change is None:
        return set() if inputs.has_state else {key_of(one) for one in inputs.policies}, set()
    edited = {key_of(one): one for one in inputs.policies if key_of(one) in inputs.altered}
    before = {key: inputs.replaced.get(key) for key in edited}
    return set(edited), {
        key
        for key, one in edited.items()
        if (former := before[key]) is None or former.spec.resource_selectors != one.spec.resource_selectors
    }


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


def _named(template: ResourceTemplate) -> str:
    return f"{template.kind} {template.metadata.namespace}/{template.metadata.name}".replace(" /", " ")


def _policy_name(namespace: str, name: str) -> str:
    return f"PropagationPolicy {namespace}/{name}" if namespace else f"ClusterPropagationPolicy {name}"


def key_of(written: ApiObject | ResourceTemplate) -> ObjectKey:
    """The identity of an object."""
    return ObjectKey(written.kind, written.metadata.namespace, written.metadata.name)
