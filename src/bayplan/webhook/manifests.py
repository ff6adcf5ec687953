"""The webhook configurations that make an API server call this webhook, and the injection of CA bundle and paths."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from bayplan.errors import ClusterError
from bayplan.validating.affinity import AFFINITY_ANNOTATION
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.webhook import serving
from bayplan.webhook.admission_handler import EXEMPT_NAMESPACE
from bayplan.webhook.certificates import Inject
from bayplan.wire import kinds
from bayplan.wire.kinds import ApiKind

# As Karmada's own webhooks: its API server runs in a cluster, and has no Services itself.
FLEET_URL = "https://bayplan-webhook.bayplan-system.svc:443"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
NAME = "bayplan"
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_ANNOTATED = f"has(object.metadata.annotations) && {AFFINITY_ANNOTATION!r} in object.metadata.annotations"
# A pod may be a template that Karmada places.
_PLACED_TOO = _ANNOTATED.replace(AFFINITY_ANNOTATION, PLACEMENT_ANNOTATION)
# The webhook never rejects a pod without any of these, so the API server need not call it.
_BOUND = "request.operation == 'CREATE' && has(object.spec.nodeName)"
_CALL_CONDITION = f"has(object.spec.affinity) || ({_BOUND}) || ({_ANNOTATED}) || ({_PLACED_TOO})"

# Changes an object by a strategic merge patch: its resource as in a URL, its name, the patch.
Patch = Callable[[str, str, dict[str, Any]], Awaitable[None]]


class WebhookAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server reaches the webhook: a Service, or a URL without a path."""

    namespace: str = "bayplan-system"
    service: str = "bayplan-webhook"
    port: int = 443
    url: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names that the serving certificate must have."""
        if self.url:
            return (urllib.parse.urlsplit(self.url).hostname or "",)
        name = f"{self.service}.{self.namespace}.svc"
        return name, f"{name}.cluster.local", f"{self.service}.{self.namespace}"

    def client_config(self, path: str = "") -> dict[str, Any]:
        """Return the `clientConfig` of a webhook, without the CA bundle; without a path it cannot be called yet."""
        if self.url:
            return {"url": f"{self.url}{path}"}
        where = {"namespace": self.namespace, "name": self.service, "port": self.port}
        return {"service": {**where, "path": path} if path else where}


class _Rule(msgspec.Struct, frozen=True):
    """The requests for which a webhook is called."""

    groups: Sequence[str]
    versions: Sequence[str]
    resources: Sequence[str]
    operations: Sequence[str] = ("CREATE", "UPDATE")

    def to_object(self) -> dict[str, Any]:
        return {
            "apiGroups": list(self.groups),
            "apiVersions": list(self.versions),
            "resources": list(self.resources),
            "operations": list(self.operations),
            "scope": "*",
        }


def _rules(rows: Iterable[ApiKind]) -> list[_Rule]:
    """One rule for the kinds of each group and version."""
    by_version: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        by_version.setdefault((row.group, row.version), []).append(row.plural)
    return [_Rule([group], [version], plurals) for (group, version), plurals in by_version.items()]


PATHS = {
    "pods.bayplan.io": serving.PODS,
    "workloads.bayplan.io": serving.WORKLOADS,
    "policies.bayplan.io": serving.POLICIES,
    "bindings.bayplan.io": serving.BINDINGS,
    "templates.bayplan.io": serving.TEMPLATES,
    "defaults.bayplan.io": serving.MUTATE,
}
_ANY_KIND = (_Rule(["*"], ["*"], ["*"]),)
_POLICY_GROUP = kinds.named("PropagationPolicy").group
_IS_TEMPLATE = f"request.resource.group != {_POLICY_GROUP!r} && has(object.metadata)"
_BINDINGS = (_Rule([""], ["v1"], ["pods/binding", "bindings"], ["CREATE"]),)


def manifests(
    address: WebhookAddress,
    own_namespace: str,
    failure_policy: Literal["Fail", "Ignore"] = "Ignore",
    *,
    mutate: bool = True,
) -> list[dict[str, Any]]:
    """
    Return the configurations without a CA bundle and without paths, both of which are secret or rotate.

    `mutate` adds the one for tolerated daemon namespaces.
    """
    webhook = _webhooks(address, own_namespace, failure_policy, "NoneOnDryRun")  # the quota counts admitted pods
    pods = _rules([kinds.KINDS[kinds.POD]])
    validating = [
        webhook("pods.bayplan.io", pods, _CALL_CONDITION),
        webhook("workloads.bayplan.io", _rules(row for row in kinds.KINDS.values() if row.pod_path)),
        webhook("policies.bayplan.io", _rules(kinds.held_in("policies"))),
        webhook("bindings.bayplan.io", _BINDINGS),
    ]
    found = [_configuration(VALIDATING, validating)]
    if mutate:
        more = {"sideEffects": "None", "reinvocationPolicy": "IfNeeded"}
        found.append(_configuration(MUTATING, [webhook("defaults.bayplan.io", pods, _ANNOTATED, **more)]))
    return found


def fleet_manifests(
    address: WebhookAddress, own_namespace: str, failure_policy: Literal["Fail", "Ignore"] = "Ignore"
) -> list[dict[str, Any]]:
    """
    Return the configuration for the API server of a Karmada control plane: policies, and whatever has the annotation.

    Any kind may be a template, so the API server is asked to look for the annotation in objects of every kind.
    """
    webhook = _webhooks(address, own_namespace, failure_policy, "None")
    validating = [
        webhook("policies.bayplan.io", _rules(kinds.held_in("policies"))),
        webhook("templates.bayplan.io", _ANY_KIND, f"{_IS_TEMPLATE} && {_PLACED_TOO}"),
    ]
    return [_configuration(VALIDATING, validating)]


def _webhooks(
    address: WebhookAddress, own_namespace: str, failure_policy: str, side_effects: str
) -> Callable[..., dict[str, Any]]:
    """Return what makes a webhook of its name, its rules, a condition, and what else differs from the others."""
    common = {
        "admissionReviewVersions": ["v1"],
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": side_effects,
        "timeoutSeconds": 5,
        # The webhook allows every request there anyway; this applies while it does not answer.
        "namespaceSelector": {
            "matchExpressions": [
                {"key": _NAMESPACE_LABEL, "operator": "NotIn", "values": sorted({EXEMPT_NAMESPACE, own_namespace})}
            ]
        },
    }

    def webhook(name: str, rules: Sequence[_Rule], condition: str = "", **more: Any) -> dict[str, Any]:
        conditions = {"matchConditions": [{"name": "needs-review", "expression": condition}]} if condition else {}
        return {
            "name": name,
            "clientConfig": address.client_config(),
            "rules": [rule.to_object() for rule in rules],
            **conditions,
            **common,
            **more,
        }

    return webhook


def client_config_injector(patch: Patch, address: WebhookAddress, configurations: Sequence[dict[str, Any]]) -> Inject:
    """
    Return a function that writes a CA bundle and the paths with a secret segment into these configurations.

    It writes on every call: a configuration may have been applied again without them, and a patch costs little.
    """

    async def inject(bundle: bytes, segment: str) -> None:
        for resource, name, change in _injections(configurations, address, bundle, segment):
            try:
                await patch(resource, name, change)
            except ClusterError as error:  # an API server may repeat what it rejects, and errors are logged
                raise ClusterError(str(error).replace(segment, "SECRET")) from None

    return inject


def review_path(path: str, segment: str) -> str:
    """Return the path of a review under a secret segment, or without one."""
    return f"/{segment}{path}" if segment else path


def _injections(
    configurations: Sequence[dict[str, Any]], address: WebhookAddress, bundle: bytes, segment: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    encoded = base64.b64encode(bundle).decode()
    for configuration in configurations:
        names = [webhook["name"] for webhook in configuration["webhooks"]]
        configs = (address.client_config(review_path(PATHS[name], segment)) for name in names)
        webhooks = [
            {"name": name, "clientConfig": {**config, "caBundle": encoded}}
            for name, config in zip(names, configs, strict=True)
        ]
        yield _resource(configuration["kind"]), configuration["metadata"]["name"], {"webhooks": webhooks}


def _resource(kind: str) -> str:
    row = kinds.named(kind)
    return f"{row.api_version}/{row.plural}"


def _configuration(kind: str, webhooks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": kinds.named(kind).api_version, "kind": kind, "metadata": {"name": NAME}, "webhooks": webhooks}
