"""
Whether something may change or refuse a new pod in a way that cannot be known: sidecar injectors and other webhooks.

If the webhooks of the cluster are known, they are asked by their own rules and selectors. If not, the labels and
annotations of the well-known injectors tell. Does not know what would be injected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.mapping import selectors
from bayplan.model import labels as label_model
from bayplan.model.labels import Labels
from bayplan.wire.admission import Webhook, WebhookConfiguration, WebhookRule
from bayplan.wire.meta import LabelSelector
from bayplan.wire.nodes import Namespace
from bayplan.wire.pods import Pod

MUTATING = "MutatingWebhookConfiguration"
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # a label that every namespace has
_ISTIO_INJECTION, _ISTIO_REVISION, _ISTIO_SIDECAR = "istio-injection", "istio.io/rev", "sidecar.istio.io/inject"
_LINKERD = "linkerd.io/inject"
INJECTION_ANNOTATIONS = (_ISTIO_SIDECAR, _LINKERD)
_ISTIO_YES = ("y", "yes", "true", "on")
_LINKERD_YES = ("enabled", "ingress")


class PodInjection:
    """Judges new pods by the namespaces and webhooks of the input; `complete` if these are all that the cluster has."""

    def __init__(
        self,
        namespaces: Mapping[str, Namespace],
        configurations: Iterable[WebhookConfiguration],
        *,
        complete: bool,
    ) -> None:
        self._namespaces = namespaces
        self._complete = complete
        self._webhooks = [
            (configuration, webhook)
            for configuration in configurations
            for webhook in configuration.webhooks or ()
            if any(map(_is_about_new_pods, webhook.rules or ()))
        ]

    def reason(self, pod: Pod) -> str:
        """What may change the pod, or else refuse it; empty if nothing is known to."""
        namespace = self._namespaces.get(pod.metadata.namespace)
        for configuration, webhook in self._webhooks:
            if self._may_match(webhook, pod, namespace):
                may = "change" if configuration.kind == MUTATING else "refuse"
                named = f"{configuration.kind} {configuration.metadata.name}"
                return f"the webhook {webhook.name} of {named} may {may} it"
        return "" if self._complete else _istio(pod, namespace) or _linkerd(pod, namespace)

    def _may_match(self, webhook: Webhook, pod: Pod, namespace: Namespace | None) -> bool:
        own = pod.metadata.labels or {}
        if not _matches(webhook.object_selector, own):
            return False
        known = {NAMESPACE_NAME: pod.metadata.namespace}
        if namespace is not None:
            return _matches(webhook.namespace_selector, {**known, **(namespace.metadata.labels or {})})
        # Of a namespace that is not in the input, only its name is known.
        selector = selectors.selector_of(webhook.namespace_selector) or label_model.EVERYTHING
        return all(one.matches(known) for one in selector.requirements if one.key == NAMESPACE_NAME)


def _matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """A webhook without a selector is called for everything."""
    return selector is None or label_model.matches(selectors.selector_of(selector), labels)


def _is_about_new_pods(rule: WebhookRule) -> bool:
    def lists(written: list[str] | None, *names: str) -> bool:
        return any(one in names for one in written or ())

    return (
        lists(rule.operations, "*", "CREATE")
        and lists(rule.api_groups, "*", "")
        and lists(rule.api_versions, "*", "v1")
        and lists(rule.resources, "*", "*/*", "pods", "pods/*")
        and rule.scope in ("", "*", "Namespaced")
    )


def _istio(pod: Pod, namespace: Namespace | None) -> str:
    """Istio's default webhooks: a label of the pod decides before that of its namespace, except against `disabled`."""
    around = (namespace.metadata.labels if namespace is not None else None) or {}
    own, notes = pod.metadata.labels or {}, pod.metadata.annotations or {}
    asked = own.get(_ISTIO_SIDECAR, notes.get(_ISTIO_SIDECAR, "")).lower()
    if pod.spec.host_network or around.get(_ISTIO_INJECTION) == "disabled" or (asked and asked not in _ISTIO_YES):
        return ""
    if asked:
        return f"a sidecar may be injected ({_ISTIO_SIDECAR}={asked})"
    if around.get(_ISTIO_INJECTION) == "enabled":
        return f"a sidecar may be injected ({_ISTIO_INJECTION}=enabled of its namespace)"
    if _ISTIO_REVISION in around:
        return f"a sidecar may be injected ({_ISTIO_REVISION}={around[_ISTIO_REVISION]} of its namespace)"
    return f"a sidecar may be injected ({_ISTIO_REVISION}={own[_ISTIO_REVISION]})" if _ISTIO_REVISION in own else ""


def _linkerd(pod: Pod, namespace: Namespace | None) -> str:
    """Linkerd reads an annotation, of the pod or else of its namespace."""
    around = (namespace.metadata.annotations if namespace is not None else None) or {}
    own = (pod.metadata.annotations or {}).get(_LINKERD)
    value = around.get(_LINKERD) if own is None else own
    if value not in _LINKERD_YES or pod.spec.host_network:
        return ""
    return f"a sidecar may be injected ({_LINKERD}={value}{' of its namespace' if own is None else ''})"
