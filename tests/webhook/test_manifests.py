"""The webhook configurations and the injection of the CA bundle."""

import base64
import pathlib

import pytest
import yaml

from bayplan.validating.guard import GuardSettings
from bayplan.webhook.admission_handler import AdmissionSettings
from bayplan.webhook.manifests import WebhookAddress, bundle_injector, manifests
from bayplan.webhook.running import WebhookSettings

ROOT = pathlib.Path(__file__).parents[2]
SERVICE = WebhookAddress()


def webhooks(*how, **more):
    return {hook["name"]: hook for one in manifests(*how, **more) for hook in one["webhooks"]}


def test_two_configurations_of_one_name():
    kinds = [(one["kind"], one["metadata"]["name"]) for one in manifests(SERVICE, "ops")]
    assert kinds == [("ValidatingWebhookConfiguration", "bayplan"), ("MutatingWebhookConfiguration", "bayplan")]
    assert len(manifests(SERVICE, "ops", mutate=False)) == 1


def test_exempt_namespaces_are_excluded_from_every_webhook():
    for hook in webhooks(SERVICE, "ops").values():
        (excluded,) = hook["namespaceSelector"]["matchExpressions"]
        assert excluded == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "ops"]}


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_the_failure_policy_can_be_chosen(policy):
    assert {hook["failurePolicy"] for hook in webhooks(SERVICE, "ops", policy).values()} == {policy}


@pytest.mark.parametrize("address, config, hosts", [
    (WebhookAddress(namespace="ops"), {"service": {"namespace": "ops", "name": "bayplan-webhook", "path": "/mutate", "port": 443}}, ("bayplan-webhook.ops.svc", "bayplan-webhook.ops.svc.cluster.local", "bayplan-webhook.ops")),
    (WebhookAddress(url="https://127.0.0.1:8443"), {"url": "https://127.0.0.1:8443/mutate"}, ("127.0.0.1",)),
    (WebhookAddress(url="https://[::1]:8443"), {"url": "https://[::1]:8443/mutate"}, ("::1",)),
    (WebhookAddress(url="https://webhook.example"), {"url": "https://webhook.example/mutate"}, ("webhook.example",)),
])  # fmt: skip
def test_the_client_config_follows_the_address(address, config, hosts):
    assert webhooks(address, "ops")["defaults.bayplan.io"]["clientConfig"] == config
    assert address.hosts == hosts


async def test_the_bundle_is_injected_into_every_webhook():
    patched = []

    async def patch(resource, name, change):
        patched.append((resource, name, change))

    await bundle_injector(patch, manifests(SERVICE, "ops"))(b"pem")
    assert [(resource, name) for resource, name, _ in patched] == [
        ("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "bayplan"),
        ("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "bayplan"),
    ]
    injected = {hook["name"]: hook["clientConfig"] for *_, change in patched for hook in change["webhooks"]}
    encoded = base64.b64encode(b"pem").decode()
    assert injected == {name: {"caBundle": encoded} for name in webhooks(SERVICE, "ops")}


def test_the_shipped_manifest_equals_the_defaults():
    shipped = yaml.safe_load_all((ROOT / "deploy" / "webhook" / "configurations.yaml").read_text())
    assert list(shipped) == WebhookSettings().manifests()


def test_without_namespaces_to_tolerate_nothing_is_mutated():
    settings = AdmissionSettings(guard=GuardSettings(tolerate_namespaces=()))
    assert len(WebhookSettings(settings=settings).manifests()) == 1
