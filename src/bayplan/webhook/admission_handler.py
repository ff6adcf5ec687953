"""
Answers one AdmissionReview: which rules apply to which kind of object. Knows nothing of HTTP.

Mutation adds the daemon namespaces, which every required anti-affinity term tolerates, to the annotation
`bayplan.io/affinity`. Terms of `spec.affinity` have no field for them: for those there is the switch
`daemonNamespaces`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bayplan.enforcing import pod_guard
from bayplan.errors import ClusterError, InputError
from bayplan.explaining.peer_names import PeerNames
from bayplan.mapping import pods
from bayplan.model.labels import Labels
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.workloads import Workload
from bayplan.validating import admission, affinity, fields, placement_annotation, yaml_text
from bayplan.validating import warnings as policy_warnings
from bayplan.validating.affinity import AFFINITY_ANNOTATION, MAX_ANNOTATION_LENGTH
from bayplan.validating.fields import Cause, Field
from bayplan.validating.guard import NO_NAMESPACES, GuardSettings, Requester
from bayplan.webhook import reviews
from bayplan.webhook.reviewers import BindReviewer, ClusterView, QuotaReviewer
from bayplan.webhook.reviews import ALLOWED, AdmissionRequest, AdmissionResponse
from bayplan.wire import conversion, kinds
from bayplan.wire.meta import ApiObject, ObjectReference
from bayplan.wire.pods import Pod

EXEMPT_NAMESPACE = "kube-system"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"  # marks a static pod, which the kubelet runs in any case
# Errors that appear only when the object of a review is decoded: invalid UTF-8 and excessive nesting.
_DECODE_ERRORS = (UnicodeDecodeError, RecursionError)
KARMADA_GROUPS = frozenset(row.group for row in kinds.having(kinds.Trait.HAS_PLACEMENT))
# They create pods and ReplicaSets from templates that other users wrote (pkg/controller).
CONTROLLERS = frozenset(
    {
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:cronjob-controller",
        "system:serviceaccount:kube-system:daemon-set-controller",
        "system:serviceaccount:kube-system:deployment-controller",
        "system:serviceaccount:kube-system:job-controller",
        "system:serviceaccount:kube-system:replicaset-controller",
        "system:serviceaccount:kube-system:replication-controller",
        "system:serviceaccount:kube-system:statefulset-controller",
    }
)
_REQUIRED_LISTS = (affinity.REQUIRED_DURING_EXECUTION, affinity.REQUIRED)
_POINTER = f"/metadata/annotations/{AFFINITY_ANNOTATION.replace('~', '~0').replace('/', '~1')}"


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`own_namespace` is where this webhook runs: objects there are never rejected, so that it cannot block itself."""

    semantics: Semantics = UPSTREAM
    guard: GuardSettings = GuardSettings()
    own_namespace: str = "bayplan-system"
    charge: Literal["largest", "average"] = "largest"
    quota: str = "bayplan-quota"
    names: PeerNames = PeerNames()


class _Binding(ApiObject):
    target: ObjectReference = msgspec.field(default_factory=ObjectReference)


StateReview = Coroutine[Any, Any, AdmissionResponse]
OnOwner = Callable[[StateReview], Awaitable[AdmissionResponse]]


async def _on_this_thread(review: StateReview) -> AdmissionResponse:
    return await review


class AdmissionHandler:
    """
    Answers reviews by the settings and, with a view of the cluster, by its state: binds and quota.

    `on_owner` runs the part of a review that reads the view on the thread that owns it.
    """

    def __init__(
        self, settings: AdmissionSettings, view: ClusterView | None = None, on_owner: OnOwner = _on_this_thread
    ) -> None:
        self._settings, self._view, self._on_owner = settings, view, on_owner
        self._binds = None if view is None else BindReviewer(view, settings.names)
        self._quota = None if view is None else QuotaReviewer(view, settings.charge, settings.quota)

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return whether the object is admitted. In exempt namespaces a rejection becomes a warning."""
        exempt = request.namespace in (EXEMPT_NAMESPACE, self._settings.own_namespace)
        try:
            response = await self._validate(request)
        except InputError as error:
            response = AdmissionResponse(reviews.INVALID, str(error))
        except ClusterError:
            if exempt:
                return ALLOWED
            raise
        if response.allowed or not exempt:
            return response
        return AdmissionResponse(warnings=(response.message, *response.warnings))

    async def mutate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return the changes to make to the object before it is admitted."""
        if (request.kind.group, request.kind.kind) != kinds.POD or request.sub_resource:
            return ALLOWED
        try:
            pod, old = _decode(request.object, Pod), _decode_old(request, Pod)
        except InputError:
            return ALLOWED  # the validation that follows rejects it
        annotations = pod.metadata.annotations
        # An annotation that the request does not change stays as it is; so does that of a terminating pod.
        before = None if old is None else (old.metadata.annotations or {}).get(AFFINITY_ANNOTATION)
        if pod.metadata.deletion_timestamp is not None or (annotations or {}).get(AFFINITY_ANNOTATION) == before:
            return ALLOWED
        return AdmissionResponse(patch=toleration_patch(annotations, self._settings.guard.tolerate_namespaces))

    async def _validate(self, request: AdmissionRequest) -> AdmissionResponse:
        if request.operation not in (reviews.CREATE, reviews.UPDATE):
            return ALLOWED
        group, kind = request.kind.group, request.kind.kind
        if (group, kind) == ("", "Binding"):
            return await self._review_binding(request)
        if request.sub_resource:
            return ALLOWED
        if group in KARMADA_GROUPS:
            return _review_placement(request)
        wire_type = pod_guard.wire_type(group, kind)
        return _review_template(request) if wire_type is None else await self._review_pod_template(request, wire_type)

    async def _review_pod_template(self, request: AdmissionRequest, wire_type: type[ApiObject]) -> AdmissionResponse:
        written, old = _decode(request.object, wire_type), _decode_old(request, wire_type)
        if written.metadata.deletion_timestamp is not None:
            return ALLOWED  # only finalizers can still change
        verdict = self._guard_verdict(written, old, request)
        if verdict.causes:
            return _rejected(verdict.causes, verdict.warnings)
        if isinstance(written, Pod):
            assert old is None or isinstance(old, Pod)
            response = await self._review_cluster_state(written, old, request)
            if not response.allowed:
                return msgspec.structs.replace(response, warnings=verdict.warnings)
        return AdmissionResponse(warnings=verdict.warnings)

    def _guard_verdict(
        self, written: ApiObject, old: ApiObject | None, request: AdmissionRequest
    ) -> pod_guard.GuardVerdict:
        """Return the warnings, and the causes that the object did not have before the request."""
        pod, settings = pod_guard.pod_like(written, request.namespace), self._settings
        before = None if old is None else pod_guard.pod_like(old, request.namespace)
        requester = _requester(request, written)
        verdict = pod_guard.guard_verdict(
            pod,
            settings.semantics,
            settings.guard,
            requester,
            annotated=True,
            before=before,
            namespaces=self._namespaces(),
        )
        misplaced = _new_causes(_placement_causes(written), _placement_causes(old))
        return pod_guard.GuardVerdict(verdict.causes + misplaced, verdict.warnings) if misplaced else verdict

    def _namespaces(self) -> Mapping[str, Labels]:
        """Return the namespaces that exist with their labels; none while they are not known."""
        view = self._view
        return view.index.peer_index.namespaces if view is not None and view.synced else NO_NAMESPACES

    # Reviews that need the state of the cluster

    async def _review_cluster_state(self, pod: Pod, old: Pod | None, request: AdmissionRequest) -> AdmissionResponse:
        if self._quota is None:
            return ALLOWED
        workload, before = _workload(pod, request), None if old is None else _workload(old, request)
        bound_now = pod.spec.node_name and (old is None or not old.spec.node_name)
        node = pod.spec.node_name if bound_now and MIRROR_ANNOTATION not in (pod.metadata.annotations or {}) else ""
        if not node and not self._quota.concerns(workload, before):
            return ALLOWED
        return await self._on_owner(self._review_pod_in_cluster(workload, before, node, dry_run=bool(request.dry_run)))

    async def _review_pod_in_cluster(
        self, workload: Workload, before: Workload | None, node: str, *, dry_run: bool
    ) -> AdmissionResponse:
        assert self._binds is not None
        assert self._quota is not None
        if node:
            rejection = self._binds.rejection(workload, node, dry_run=dry_run, by_scheduler=False)
            if rejection:
                return AdmissionResponse(reviews.CONFLICT, rejection)
        rejection = await self._quota.rejection(workload, before, dry_run=dry_run)
        return AdmissionResponse(reviews.FORBIDDEN, rejection) if rejection else ALLOWED

    async def _review_binding(self, request: AdmissionRequest) -> AdmissionResponse:
        if self._view is None:
            return ALLOWED
        binding = _decode(request.object, _Binding)
        name = binding.metadata.name or request.name
        return await self._on_owner(
            self._review_bind_in_cluster(request.namespace, name, binding.target.name, dry_run=bool(request.dry_run))
        )

    async def _review_bind_in_cluster(
        self, namespace: str, name: str, node: str, *, dry_run: bool
    ) -> AdmissionResponse:
        assert self._view is not None
        assert self._binds is not None
        pod = await self._view.pod(namespace, name)
        if pod is None:
            return ALLOWED
        rejection = self._binds.rejection(pod, node, dry_run=dry_run, by_scheduler=True)
        return AdmissionResponse(reviews.CONFLICT, rejection) if rejection else ALLOWED


def _placement_causes(written: ApiObject | None) -> list[Cause]:
    annotations = None if written is None else written.metadata.annotations
    if not annotations or placement_annotation.PLACEMENT_ANNOTATION not in annotations:
        return []
    return placement_annotation.validate_extensions(Field("metadata", {"annotations": annotations}))


def _review_template(request: AdmissionRequest) -> AdmissionResponse:
    """Review an object of any other kind, which Karmada may propagate, by the annotation that adds to its placement."""
    found = _new_causes(
        _placement_causes(_decode(request.object, ApiObject)), _placement_causes(_decode_old(request, ApiObject))
    )
    return _rejected(found, ()) if found else ALLOWED


def _review_placement(request: AdmissionRequest) -> AdmissionResponse:
    """Review a policy or binding by the rules of Karmada and ours; its API server has checked the schema."""
    obj = _decode_object(request.object)
    before = admission.validate(_decode_object(request.old_object)) if request.operation == reviews.UPDATE else []
    found, warnings = _new_causes(admission.validate(obj), before), policy_warnings.placement_warnings(obj)
    return _rejected(found, warnings) if found else AdmissionResponse(warnings=warnings)


def _rejected(found: Sequence[Cause], warnings: Sequence[str]) -> AdmissionResponse:
    code = reviews.FORBIDDEN if all(cause.reason == fields.FORBIDDEN for cause in found) else reviews.INVALID
    return AdmissionResponse(code, "; ".join(str(cause) for cause in found), found, warnings)


def _new_causes(found: list[Cause], before: list[Cause]) -> list[Cause]:
    """Return the new causes: other fields of an existing invalid object may still be changed."""
    return [cause for cause in found if cause not in before]


def _requester(request: AdmissionRequest, written: ApiObject) -> Requester:
    user, owners = request.user_info, written.metadata.owner_references or ()
    carried_out = user.username in CONTROLLERS and any(owner.controller for owner in owners)
    return Requester(user.username, tuple(user.groups or ()), carried_out)


def _workload(pod: Pod, request: AdmissionRequest) -> Workload:
    if not pod.metadata.namespace:
        pod.metadata.namespace = request.namespace
    return msgspec.structs.replace(pods.workload_of(pod), requested_target=pod.spec.node_name)


@functools.cache
def _decoder(wire_type: type[ApiObject]) -> Callable[[msgspec.Raw], Any]:
    return msgspec.json.Decoder(wire_type).decode


def _decode(raw: msgspec.Raw, wire_type: type[ApiObject]) -> Any:
    try:
        return _decoder(wire_type)(raw)
    except (msgspec.ValidationError, *_DECODE_ERRORS):
        pass  # possibly only because of a null, which means that the field is absent
    try:
        return conversion.converted(_decode_object(raw), wire_type)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"the object cannot be read: {error}") from None


def _decode_old(request: AdmissionRequest, wire_type: type[ApiObject]) -> ApiObject | None:
    found: ApiObject | None = _decode(request.old_object, wire_type) if request.operation == reviews.UPDATE else None
    return found


def _decode_object(raw: msgspec.Raw) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, *_DECODE_ERRORS) as error:
        raise InputError(f"the object cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise InputError("the review has no object")
    return found


def toleration_patch(annotations: dict[str, str] | None, tolerated: tuple[str, ...]) -> list[dict[str, Any]]:
    """
    Return the JSON patch that makes every required anti-affinity term tolerate these namespaces; empty if all do.

    A malformed annotation stays as it is: the validation that follows reports what is wrong.
    """
    text = (annotations or {}).get(AFFINITY_ANNOTATION)
    if text is None or len(text) > MAX_ANNOTATION_LENGTH:
        return []
    try:
        content = yaml_text.parse(text)
    except ValueError:
        return []
    changed = [_add_tolerations(term, tolerated) for term in _required_anti_affinity_terms(content)]
    if not any(changed):
        return []
    return [{"op": "replace", "path": _POINTER, "value": msgspec.json.encode(content).decode()}]


def _required_anti_affinity_terms(content: object) -> list[dict[str, Any]]:
    anti = content.get(affinity.POD_ANTI_AFFINITY) if isinstance(content, dict) else None
    lists = [anti.get(when) for when in _REQUIRED_LISTS] if isinstance(anti, dict) else []
    return [term for listed in lists if isinstance(listed, list) for term in listed if isinstance(term, dict)]


def _add_tolerations(term: dict[str, Any], tolerated: tuple[str, ...]) -> bool:
    """Make the term tolerate the namespaces. Return whether it changed."""
    listed = term.get("tolerateNamespaces") or []
    if not isinstance(listed, list):
        return False
    missing = [namespace for namespace in tolerated if namespace not in listed]
    if missing:
        term["tolerateNamespaces"] = [*listed, *missing]
    return bool(missing)
