"""
ResourceQuotas: what pods and claims are charged, and which ones an API server would refuse for it.

Mirrors pkg/quota/v1/evaluator/core and the admission plugin in apiserver/pkg/admission/plugin/resourcequota. A pod is
charged by what its spec requests, so pods of one template share one charge. Does not know in which order pods come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.caching import memoised
from bayplan.mapping import pod_shapes
from bayplan.model import labels as label_model
from bayplan.validating import pod_resources
from bayplan.validating.pod_resources import ONE, ZERO, Amount, Amounts
from bayplan.wire.admission import ResourceQuota, ScopedSelectorRequirement
from bayplan.wire.pods import Container, PodAffinityTerm, PodSpec
from bayplan.wire.storage import PersistentVolumeClaim

PODS, COUNT_PODS, CLAIMS, COUNT_CLAIMS = "pods", "count/pods", "persistentvolumeclaims", "count/persistentvolumeclaims"
STORAGE = "requests.storage"
_OF_CLASS = ".storageclass.storage.k8s.io/"
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_REQUESTS, _LIMITS = "requests.", "limits."
# What a quota counts of pods, beside huge pages and extended resources.
_OF_PODS = frozenset((COUNT_PODS, PODS, *(f"{side}{name}" for name in _NATIVE for side in ("", _REQUESTS, _LIMITS))))
# If a quota counts one of these, every container must set it.
_MUST_BE_SET = frozenset(f"{side}{name}" for name in ("cpu", "memory") for side in ("", _REQUESTS, _LIMITS))
_BEST_EFFORT = ("cpu", "memory")


class QuotaCharge(msgspec.Struct, frozen=True, eq=False):
    """What quotas count of one pod, by resource, and what their scopes and constraints ask of it."""

    usage: Mapping[str, Amount]
    unset: Mapping[str, tuple[str, ...]]  # resource → the containers that do not set it
    best_effort: bool
    terminates: bool
    priority_class: str
    crosses_namespaces: bool


def charge_of(spec: PodSpec) -> QuotaCharge:
    """The charge for one pod with this spec, after admission has completed it."""
    usage = _compute(pod_resources.requests_of(spec), pod_resources.limits_of(spec))
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    unset: dict[str, tuple[str, ...]] = {}
    if not _sets_pod_level(spec):
        for name in _MUST_BE_SET:
            without = tuple(sorted({one.name for one in containers if name not in _of_container(one)}))
            if without:
                unset[name] = without
    return QuotaCharge(
        usage={**usage, PODS: ONE, COUNT_PODS: ONE},
        unset=unset,
        best_effort=_is_best_effort(spec, containers),
        terminates=(spec.active_deadline_seconds or 0) >= 0 and spec.active_deadline_seconds is not None,
        priority_class=spec.priority_class_name,
        crosses_namespaces=_crosses_namespaces(spec),
    )


class ChargedShape(msgspec.Struct, frozen=True):
    """What pods of one template are charged by: their shape, and what it does not have."""

    shape: bytes
    deadline: int | None
    priority_class: str


charged_shape = memoised(16384)(ChargedShape)  # one for all pods of a template


@memoised(16384)
def charge_of_shape(charged: ChargedShape) -> QuotaCharge:
    """The charge for pods of one shape; few clusters have quotas, so it is computed only where it counts."""
    spec = pod_shapes.decoded(charged.shape).pod().spec
    spec.active_deadline_seconds, spec.priority_class_name = charged.deadline, charged.priority_class
    return charge_of(spec)


class _Quota(msgspec.Struct):
    """One quota with what is used of it now."""

    name: str
    hard: Amounts
    used: Amounts
    scopes: tuple[ScopedSelectorRequirement, ...]

    def exceeded(self, usage: Mapping[str, Amount]) -> str:
        """The server's message if the usage does not fit in."""
        asked = {name: amount for name, amount in usage.items() if name in self.hard and amount.exact}
        over = sorted(
            name for name in asked if self.used.get(name, ZERO).plus(asked[name]).exact > self.hard[name].exact
        )
        if not over:
            return ""
        texts = (_listed(over, one) for one in (asked, self.used, self.hard))
        requested, used, limited = texts
        return f"exceeded quota: {self.name}, requested: {requested}, used: {used}, limited: {limited}"

    def add(self, usage: Mapping[str, Amount], *, sign: int = 1) -> None:
        for name, amount in usage.items():
            if name in self.hard and amount.exact:
                own = Amount(sign * amount.exact, amount.binary)
                self.used[name] = self.used[name].plus(own) if name in self.used else own

    def matches(self, charge: QuotaCharge) -> bool:
        return any(map(_is_of_pods, self.hard)) and all(_in_scope(one, charge) for one in self.scopes)

    def matches_claims(self) -> bool:
        # Scopes are about pods, but for the class of volume attributes, which is not read.
        return not self.scopes and any(map(_is_of_claims, self.hard))


class QuotaLedger:
    """
    The quotas of all namespaces, charged as pods and claims are created and given back as they are deleted.

    Charges are kept for namespaces with a quota only.
    """

    def __init__(self, quotas: Iterable[ResourceQuota]) -> None:
        self._quotas: dict[str, list[_Quota]] = {}
        self._reported: dict[int, frozenset[str]] = {}  # by quota: resources whose use its status reports
        self._charged: dict[tuple[str, str], QuotaCharge] = {}
        # Pods of one template share their spec; it is kept, so that its id stays its own.
        self._by_spec: dict[int, tuple[PodSpec, QuotaCharge]] = {}
        for written in quotas:
            used = pod_resources.amounts_of(written.status.used)
            expressions = written.spec.scope_selector.match_expressions if written.spec.scope_selector else None
            scopes = [ScopedSelectorRequirement(scope_name=one, operator="Exists") for one in written.spec.scopes or ()]
            hard = pod_resources.amounts_of(written.spec.hard)
            quota = _Quota(written.metadata.name, hard, used, (*scopes, *(expressions or ())))
            self._quotas.setdefault(written.metadata.namespace, []).append(quota)
            self._reported[id(quota)] = frozenset(used)

    def applies_to(self, namespace: str) -> bool:
        return namespace in self._quotas

    def count_existing(self, namespace: str, name: str, charge: QuotaCharge) -> None:
        """Count a pod that exists already, where the status of a quota does not report what is used."""
        self._charged[namespace, name] = charge
        for quota in self._quotas.get(namespace, ()):
            if quota.matches(charge):
                self._count(quota, charge.usage)

    def count_existing_claim(self, claim: PersistentVolumeClaim) -> None:
        for quota in self._quotas.get(claim.metadata.namespace, ()):
            if quota.matches_claims():
                self._count(quota, _usage_of_claim(claim))

    def charge(self, namespace: str, name: str, spec: PodSpec) -> str:
        """Charge a new pod to every quota that it falls under; the message if one refuses it, which charges none."""
        quotas = self._quotas.get(namespace)
        if not quotas:
            return ""
        if id(spec) not in self._by_spec:
            self._by_spec[id(spec)] = spec, charge_of(spec)
        charge = self._by_spec[id(spec)][1]
        matching = [quota for quota in quotas if quota.matches(charge)]
        for quota in matching:
            unset = sorted(charge.unset.keys() & quota.hard.keys())
            if unset:
                listed = "; ".join(f"{one} for: {','.join(charge.unset[one])}" for one in unset)
                return f"failed quota: {quota.name}: must specify {listed}"
        message = _charge_all(matching, charge.usage)
        if not message:
            self._charged[namespace, name] = charge
        return message

    def give_back(self, namespace: str, name: str) -> None:
        """A pod is deleted: what it was charged is free again."""
        charge = self._charged.pop((namespace, name), None)
        for quota in self._quotas.get(namespace, ()) if charge is not None else ():
            if charge is not None and quota.matches(charge):
                quota.add(charge.usage, sign=-1)

    def charge_claim(self, claim: PersistentVolumeClaim) -> str:
        """The same as `charge` for a new claim."""
        quotas = self._quotas.get(claim.metadata.namespace, ())
        return _charge_all([one for one in quotas if one.matches_claims()], _usage_of_claim(claim))

    def _count(self, quota: _Quota, usage: Mapping[str, Amount]) -> None:
        reported = self._reported[id(quota)]
        quota.add({name: amount for name, amount in usage.items() if name not in reported})


def _charge_all(quotas: list[_Quota], usage: Mapping[str, Amount]) -> str:
    for quota in quotas:
        message = quota.exceeded(usage)
        if message:
            return message
    for quota in quotas:
        quota.add(usage)
    return ""


def _compute(requests: Mapping[str, Amount], limits: Mapping[str, Amount]) -> Amounts:
    found: Amounts = {}
    for name, amount in requests.items():
        if name in _NATIVE or name.startswith(pod_resources.HUGE_PAGES):
            found[name] = amount
        if name in _NATIVE or name.startswith(pod_resources.HUGE_PAGES) or _is_extended(name):
            found[f"{_REQUESTS}{name}"] = amount
    return found | {f"{_LIMITS}{name}": amount for name, amount in limits.items() if name in _NATIVE}


def _of_container(container: Container) -> Amounts:
    resources = container.resources
    if resources is None:
        return {}
    return _compute(pod_resources.amounts_of(resources.requests), pod_resources.amounts_of(resources.limits))


def _sets_pod_level(spec: PodSpec) -> bool:
    level = spec.resources
    return level is not None and any(map(pod_resources.is_of_pods, (*(level.requests or ()), *(level.limits or ()))))


def _is_best_effort(spec: PodSpec, containers: list[Container]) -> bool:
    every = [spec.resources] if _sets_pod_level(spec) else [one.resources for one in containers]
    return not any(
        amount.exact > 0
        for resources in every
        if resources is not None
        for listed in (resources.requests, resources.limits)
        for name, amount in pod_resources.amounts_of(listed).items()
        if name in _BEST_EFFORT
    )


def _crosses_namespaces(spec: PodSpec) -> bool:
    def crosses(term: PodAffinityTerm) -> bool:
        return bool(term.namespaces) or term.namespace_selector is not None

    sides = (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity) if spec.affinity else ()
    return any(
        any(map(crosses, side.required_during_scheduling_ignored_during_execution or ()))
        or any(
            crosses(one.pod_affinity_term) for one in side.preferred_during_scheduling_ignored_during_execution or ()
        )
        for side in sides
        if side is not None
    )


def _in_scope(scope: ScopedSelectorRequirement, charge: QuotaCharge) -> bool:
    match scope.scope_name:
        case "Terminating":
            return charge.terminates
        case "NotTerminating":
            return not charge.terminates
        case "BestEffort":
            return charge.best_effort
        case "NotBestEffort":
            return not charge.best_effort
        case "CrossNamespacePodAffinity":
            return charge.crosses_namespaces
        case "PriorityClass" if scope.operator == label_model.EXISTS:
            return bool(charge.priority_class)
        case "PriorityClass":
            own = {"PriorityClass": charge.priority_class} if charge.priority_class else {}
            return label_model.requirement("PriorityClass", scope.operator, scope.values or ()).matches(own)
    return False


def _is_of_pods(resource: str) -> bool:
    return (
        resource in _OF_PODS
        or resource.removeprefix(_REQUESTS).startswith(pod_resources.HUGE_PAGES)
        or (resource.startswith(_REQUESTS) and _is_extended(resource.removeprefix(_REQUESTS)))
    )


def _is_of_claims(resource: str) -> bool:
    return resource == COUNT_CLAIMS or resource.rpartition(_OF_CLASS)[2] in (CLAIMS, STORAGE)


def _is_extended(resource: str) -> bool:
    """Whether it is neither of Kubernetes nor a quota's own name."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith(_REQUESTS)


def _usage_of_claim(claim: PersistentVolumeClaim) -> Amounts:
    usage = {CLAIMS: ONE, COUNT_CLAIMS: ONE}
    resources, storage_class = claim.spec.resources, claim.spec.storage_class_name
    requested = ((resources.requests if resources else None) or {}).get("storage")
    if requested is not None:
        usage[STORAGE] = pod_resources.amount_of(requested)
    by_class = {f"{storage_class}{_OF_CLASS}{name}": usage[name] for name in (CLAIMS, STORAGE) if name in usage}
    return {**usage, **by_class} if storage_class else usage


def _listed(names: Iterable[str], amounts: Mapping[str, Amount]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)
