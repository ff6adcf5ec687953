"""The webhook configurations that make an API server call this webhook, and the injection of their CA bundle."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from bayplan.validating.affinity import AFFINITY_ANNOTATION
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.webhook import serving
from bayplan.webhook.admission_handler import EXEMPT_NAMESPACE
from bayplan.webhook.certificates import InjectBundle
from bayplan.wire import kinds
from bayplan.wire.kinds import ApiKind

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

    def client_config(self, path: str) -> dict[str, Any]:
        """Return the `clientConfig` of a webhook, without the CA bundle."""
        if self.url:
            return {"url": f"{self.url}{path}"}
        where = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
        return {"service": where}


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


_BINDINGS = (_Rule([""], ["v1"], ["pods/binding", "bindings"], ["CREATE"]),)


def manifests(
    address: WebhookAddress,
    own_namespace: str,
    failure_policy: Literal["Fail", "Ignore"] = "Ignore",
    *,
    mutate: bool = True,
) -> list[dict[str, Any]]:
    """Return the configurations without a CA bundle; `mutate` adds the one for tolerated daemon namespaces."""
    common = {
        "admissionReviewVersions": ["v1"],
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",  # the quota counts admitted pods
        "timeoutSeconds": 5,
        # The webhook allows every request there anyway; this applies while it does not answer.
        "namespaceSelector": {
            "matchExpressions": [
                {"key": _NAMESPACE_LABEL, "operator": "NotIn", "values": sorted({EXEMPT_NAMESPACE, own_namespace})}
            ]
        },
    }

    def webhook(name: str, path: str, rules: Sequence[_Rule], condition: str = "", **more: Any) -> dict[str, Any]:
        conditions = {"matchConditions": [{"name": "needs-review", "expression": condition}]} if condition else {}
        return {
            "name": f"{name}.bayplan.io",
            "clientConfig": address.client_config(path),
            "rules": [rule.to_object() for rule in rules],
            **conditions,
            **common,
            **more,
        }

    pods = _rules([kinds.KINDS[kinds.POD]])
    validating = [
        webhook("pods", serving.PODS, pods, _CALL_CONDITION),
        webhook("workloads", serving.WORKLOADS, _rules(row for row in kinds.KINDS.values() if row.pod_path)),
        webhook("policies", serving.POLICIES, _rules(kinds.held_in("policies"))),
        webhook("bindings", serving.BINDINGS, _BINDINGS),
    ]
    found = [_configuration(VALIDATING, validating)]
    if mutate:
        more = {"sideEffects": "None", "reinvocationPolicy": "IfNeeded"}
        found.append(_configuration(MUTATING, [webhook("defaults", serving.MUTATE, pods, _ANNOTATED, **more)]))
    return found


def bundle_injector(patch: Patch, configurations: Sequence[dict[str, Any]]) -> InjectBundle:
    """
    Return a function that writes a CA bundle into all webhooks of these configurations.

    It writes on every call: a configuration may have been applied again without the bundle, and a patch costs little.
    """

    async def inject(bundle: bytes) -> None:
        for resource, name, change in _injections(configurations, bundle):
            await patch(resource, name, change)

    return inject


def _injections(configurations: Sequence[dict[str, Any]], bundle: bytes) -> Iterator[tuple[str, str, dict[str, Any]]]:
    encoded = base64.b64encode(bundle).decode()
    for configuration in configurations:
        webhooks = [
            {"name": webhook["name"], "clientConfig": {"caBundle": encoded}} for webhook in configuration["webhooks"]
        ]
        yield _resource(configuration["kind"]), configuration["metadata"]["name"], {"webhooks": webhooks}


def _resource(kind: str) -> str:
    row = kinds.named(kind)
    return f"{row.api_version}/{row.plural}"


def _configuration(kind: str, webhooks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": kinds.named(kind).api_version, "kind": kind, "metadata": {"name": NAME}, "webhooks": webhooks}
