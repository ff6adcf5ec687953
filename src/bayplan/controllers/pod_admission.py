"""
What an API server makes of a pod that is created: completed, refused with the server's message, or not judged.

One `PodAdmission` admits the pods of a whole answer in order, so that quotas are charged. Pods that a server has
admitted never pass here. Does not create pods and does not schedule them.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from bayplan.controllers import (
    completed_resources,
    ephemeral_claims,
    limit_ranges,
    pod_classes,
    pod_defaults,
)
from bayplan.controllers.desired_state import DesiredState
from bayplan.controllers.pod_classes import ClassError
from bayplan.controllers.pod_injection import MUTATING, PodInjection
from bayplan.controllers.resource_quotas import QuotaLedger
from bayplan.wire.admission import LimitRange, RuntimeClass
from bayplan.wire.pods import Pod, PodSpec
from bayplan.wire.storage import PersistentVolumeClaim

SCHEDULERS = frozenset((pod_defaults.DEFAULT_SCHEDULER, "bayplan"))
_FIRST_NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))  # every cluster has them
RESOURCE_CLAIMS = "it has resource claims (dynamic resource allocation)"


class AdmittedPod(msgspec.Struct, frozen=True):
    """
    The pod as the server would store it.

    `refused` is the server's message if it does not; `not_judged` says why it is not known whether it can be placed.
    `claims` are created for its ephemeral volumes, `notes` say which ones the server refuses.
    """

    pod: Pod
    refused: str = ""
    not_judged: str = ""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    notes: tuple[str, ...] = ()


class RefusedPod(msgspec.Struct, frozen=True):
    """A pod that an API server would not create, and its message."""

    pod: Pod
    message: str


class _Completed(msgspec.Struct, frozen=True):
    """
    What admission makes of every pod with one spec in one namespace, without quotas.

    What a plugin adds may make the pod `invalid`: a default limit below the request.
    """

    written: PodSpec  # kept, so that its id stays its own
    spec: PodSpec
    refused: str = ""
    invalid: str = ""
    not_judged: str = ""


class PodAdmission:
    """
    Admits pods against the namespaces, classes, limit ranges and quotas of one state.

    Only pods for one of the `schedulers` can be judged.
    """

    def __init__(
        self,
        state: DesiredState,
        quotas: QuotaLedger | None = None,
        schedulers: Container[str] = SCHEDULERS,
    ) -> None:
        self.state = state
        self.quotas = quotas or QuotaLedger(state.resource_quotas)
        self._namespaces = {one.metadata.name: one for one in state.namespaces}
        self._runtime_classes = {one.metadata.name: one for one in state.runtime_classes}
        self._limit_ranges: dict[str, list[LimitRange]] = {}
        for limit_range in state.limit_ranges:
            self._limit_ranges.setdefault(limit_range.metadata.namespace, []).append(limit_range)
        self._completed: dict[tuple[str, int], _Completed] = {}
        self._claims = {(one.metadata.namespace, one.metadata.name) for one in state.claims}
        webhooks_known = state.knows_all(MUTATING) and state.knows_all("Namespace")
        configurations = (*state.mutating_webhooks, *state.validating_webhooks)
        self._injection = PodInjection(self._namespaces, configurations, complete=webhooks_known)
        self._schedulers = schedulers
        self._exhausted: dict[str, str] = {}
        if state.change is not None and state.resource_quotas:
            from bayplan.controllers import object_counts  # few states have quotas

            self._exhausted = object_counts.exhausted(state)

    def admit(self, pod: Pod) -> AdmittedPod:
        """The new pod after admission. If it is admitted, its quotas are charged."""
        namespace, name = pod.metadata.namespace, pod.metadata.name
        if namespace not in self._namespaces and self.state.knows_all("Namespace"):
            return AdmittedPod(pod, refused=f'namespaces "{namespace}" not found')
        if namespace in self._namespaces and self._namespaces[namespace].metadata.deletion_timestamp is not None:
            terminated = f"unable to create new content in namespace {namespace} because it is being terminated"
            return AdmittedPod(pod, refused=f'pods "{name}" is forbidden: {terminated}')
        found = self._complete(namespace, pod.spec)
        pod = msgspec.structs.replace(pod, spec=found.spec)
        if found.invalid:
            return AdmittedPod(pod, refused=f'Pod "{name}" is invalid: {found.invalid}')
        message = found.refused or self.quotas.charge(namespace, name, found.spec)
        if message:
            return AdmittedPod(pod, refused=f'pods "{name}" is forbidden: {message}')
        doubts = (
            found.not_judged,
            self._of_namespace(namespace),
            self._exhausted.get(namespace),
            self._injection.reason(pod),
            self._elsewhere(pod),
        )
        return self.with_claims(AdmittedPod(pod, not_judged="; ".join(filter(None, doubts))))

    def completed(self, namespace: str, spec: PodSpec) -> PodSpec | None:
        """What admission makes of a pod with this spec, which charges no quota; None if it does not admit it."""
        found = self._complete(namespace, spec)
        return None if found.refused or found.invalid else found.spec

    def admit_stored(self, pod: Pod) -> AdmittedPod:
        """A pod that a server has admitted: only what happens to it afterwards is left."""
        doubts = (RESOURCE_CLAIMS if pod.spec.resource_claims else "", self._elsewhere(pod))
        return self.with_claims(AdmittedPod(pod, not_judged="; ".join(filter(None, doubts))))

    def _of_namespace(self, name: str) -> str:
        """A namespace that a state with namespaces lacks may not exist."""
        listed = self.state.has_state and self._namespaces and name not in self._namespaces
        return f"its namespace {name} is not in the state" if listed and name not in _FIRST_NAMESPACES else ""

    def _elsewhere(self, pod: Pod) -> str:
        name = pod.spec.scheduler_name
        return f"it is for the scheduler {name}" if name and name not in self._schedulers else ""

    def with_claims(self, admitted: AdmittedPod) -> AdmittedPod:
        """The result with the claims of the pod's ephemeral volumes that do not exist yet."""
        if not any(volume.ephemeral for volume in admitted.pod.spec.volumes or ()):
            return admitted
        created, notes = [], []
        for claim in ephemeral_claims.claims_of(admitted.pod):
            key = claim.metadata.namespace, claim.metadata.name
            refused = "" if key in self._claims else self.admit_claim(claim)
            if refused:
                notes.append(f"a pod waits for its ephemeral volume: {refused}")
            elif key not in self._claims:
                self._claims.add(key)
                created.append(claim)
        return msgspec.structs.replace(admitted, claims=tuple(created), notes=tuple(notes))

    def admit_claim(self, claim: PersistentVolumeClaim) -> str:
        """Why a new claim is refused; empty if it is admitted, and then its quotas are charged."""
        ranges = self._limit_ranges.get(claim.metadata.namespace, ())
        message = limit_ranges.claim_violation(claim, ranges) or self.quotas.charge_claim(claim)
        return f'persistentvolumeclaims "{claim.metadata.name}" is forbidden: {message}' if message else ""

    def remove(self, pod: Pod) -> None:
        """A pod is deleted: its quotas are given back."""
        self.quotas.give_back(pod.metadata.namespace, pod.metadata.name)

    def _complete(self, namespace: str, written: PodSpec) -> _Completed:
        """Pods of one template share their spec, so that this is done once for them."""
        key = namespace, id(written)
        if key not in self._completed:
            ranges = self._limit_ranges.get(namespace, [])
            spec = limit_ranges.with_defaults(pod_defaults.with_defaults(written), ranges)
            try:
                found = self._with_classes(written, spec)
                refused = limit_ranges.violation(found.spec, ranges) or self._overhead_alone(found.spec)
                invalid = completed_resources.faults(found.spec)
                self._completed[key] = msgspec.structs.replace(found, refused=refused, invalid=invalid)
            except ClassError as error:
                self._completed[key] = _Completed(written, spec, refused=str(error))
        return self._completed[key]

    def _with_classes(self, written: PodSpec, spec: PodSpec) -> _Completed:
        """The plugins in the server's order: priority, tolerations, runtime class."""
        doubts = [RESOURCE_CLAIMS] if spec.resource_claims else []
        chosen = pod_classes.priority_class(spec.priority_class_name, self.state.priority_classes)
        if chosen is None:
            if self.state.knows_all("PriorityClass"):
                raise ClassError(f"no PriorityClass with name {spec.priority_class_name} was found")
            if spec.priority is None:
                doubts.append(f"its PriorityClass {spec.priority_class_name} is not in the input")
        # Without its class, a number in a file is what the author knows of the cluster.
        elif spec.priority_class_name or spec.priority is None or self.state.knows_all("PriorityClass"):
            spec = pod_classes.with_priority(spec, chosen)
        spec = pod_defaults.with_tolerations(spec)
        runtime_class = self._runtime_class(spec.runtime_class_name, doubts)
        if runtime_class is not None:
            spec = pod_classes.with_runtime_class(spec, runtime_class)
        return _Completed(written, spec, not_judged="; ".join(doubts))

    def _overhead_alone(self, spec: PodSpec) -> str:
        """Only a RuntimeClass may say what running a pod costs."""
        name = spec.runtime_class_name
        if spec.overhead is None or (name and name not in self._runtime_classes):
            return ""
        return "" if name and self._runtime_classes[name].overhead is not None else pod_classes.OVERHEAD_ALONE

    def _runtime_class(self, name: str, doubts: list[str]) -> RuntimeClass | None:
        found = self._runtime_classes.get(name)
        if name and found is None:
            if self.state.knows_all("RuntimeClass"):
                raise ClassError(f'pod rejected: RuntimeClass "{name}" not found')
            doubts.append(f"its RuntimeClass {name} is not in the input")
        return found
