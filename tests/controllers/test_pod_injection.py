"""Pods that a sidecar injector or another webhook may change are not judged."""

import pytest
import yaml

from admitting import Loader, deployment, pod, stored, written


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def namespace(labels="{}", annotations="{}"):
    found = written("Namespace", "shop", "{}", namespace="")
    found["metadata"] |= {"labels": yaml.safe_load(labels), "annotations": yaml.safe_load(annotations)}
    return found


def marked(labels="{}", annotations="{}", **spec):
    found = pod(**spec)
    found["metadata"] |= {"labels": yaml.safe_load(labels), "annotations": yaml.safe_load(annotations)}
    return found


YES, NO = True, False
ENABLED = "{istio-injection: enabled}"
LINKERD = "{linkerd.io/inject: enabled}"


@pytest.mark.parametrize("around, own, injected", [
    (namespace(), marked(), NO),
    (namespace(ENABLED), marked(), YES),
    (namespace("{istio-injection: disabled}"), marked(), NO),
    (namespace("{istio.io/rev: canary}"), marked(), YES),
    (namespace(ENABLED), marked("{sidecar.istio.io/inject: 'false'}"), NO),
    (namespace(ENABLED), marked(annotations="{sidecar.istio.io/inject: 'false'}"), NO),
    (namespace(), marked("{sidecar.istio.io/inject: 'true'}"), YES),
    (namespace(), marked("{istio.io/rev: canary}"), YES),
    (namespace("{istio-injection: disabled}"), marked("{sidecar.istio.io/inject: 'true'}"), NO),
    (namespace(ENABLED), marked(hostNetwork=True), NO),  # it has no network of its own to intercept
    (namespace(annotations=LINKERD), marked(), YES),
    (namespace(), marked(annotations=LINKERD), YES),
    (namespace(), marked(annotations="{linkerd.io/inject: ingress}"), YES),
    (namespace(annotations=LINKERD), marked(annotations="{linkerd.io/inject: disabled}"), NO),
    (namespace(ENABLED), stored(marked()), NO),  # it has been injected
])  # fmt: skip
def test_the_well_known_injectors(load, around, own, injected):
    found = load(around, own)
    assert bool(found.not_judged) == injected
    assert len(found.pending) == 1
    if injected:
        assert found.not_judged["shop/web"].startswith("a sidecar may be injected (")


def webhook(selectors="", rule="operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]"):
    text = f"webhooks: [{{name: inject.example.com, rules: [{{{rule}}}], {selectors}}}]"
    return written("MutatingWebhookConfiguration", "injector", text, "admissionregistration.k8s.io/v1", namespace="")


@pytest.mark.parametrize("configuration, injected", [
    (webhook(), YES),
    (webhook("namespaceSelector: {}, objectSelector: {}"), YES),
    (webhook("namespaceSelector: {matchLabels: {inject: 'on'}}"), YES),
    (webhook("namespaceSelector: {matchLabels: {inject: 'off'}}"), NO),
    (webhook("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}"), YES),
    (webhook("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [shop]}]}"), NO),
    (webhook("objectSelector: {matchLabels: {app: web}}"), YES),
    (webhook("objectSelector: {matchLabels: {app: db}}"), NO),
    (webhook(rule="operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']"), YES),
    (webhook(rule="operations: [UPDATE], apiGroups: [''], apiVersions: [v1], resources: [pods]"), NO),
    (webhook(rule="operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]"), NO),
    (webhook(rule="operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods/binding]"), NO),
])  # fmt: skip
def test_webhooks_are_asked_by_their_selectors(load, configuration, injected):
    found = load(configuration, namespace("{inject: 'on'}"), deployment())
    assert bool(found.not_judged) == injected
    if injected:
        (reason,) = found.not_judged.values()
        assert reason == "the webhook inject.example.com of MutatingWebhookConfiguration injector may change it"


@pytest.mark.parametrize("selector, injected", [
    ("{matchLabels: {inject: 'on'}}", YES),
    ("{matchLabels: {kubernetes.io/metadata.name: shop}}", YES),
    ("{matchLabels: {kubernetes.io/metadata.name: other, inject: 'on'}}", NO),
])  # fmt: skip
def test_the_labels_of_a_namespace_that_is_not_in_the_input_are_not_known(load, selector, injected):
    assert bool(load(webhook(f"namespaceSelector: {selector}"), pod()).not_judged) == injected


def test_if_all_webhooks_are_known_labels_alone_inject_nothing(load):
    assert load(namespace(ENABLED), pod(), complete=True).not_judged == {}
    assert load(namespace(ENABLED), pod(), complete=True, unlisted=["MutatingWebhookConfiguration"]).not_judged
    assert load(namespace(), webhook(), pod(), complete=True).not_judged
