"""The webhook configurations and the injection of the CA bundle and of the secret path."""

import base64
import pathlib

import pytest
import yaml

from bayplan.errors import ClusterError
from bayplan.validating.guard import GuardSettings
from bayplan.webhook.admission_handler import AdmissionSettings
from bayplan.webhook.manifests import FLEET_URL, WebhookAddress, client_config_injector, manifests
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
    assert address.client_config("/mutate") == config
    assert address.hosts == hosts


async def test_the_bundle_is_injected_into_every_webhook():
    patched = []

    async def patch(resource, name, change):
        patched.append((resource, name, change))

    await client_config_injector(patch, SERVICE, manifests(SERVICE, "ops"))(b"pem", "segment")
    assert [(resource, name) for resource, name, _ in patched] == [
        ("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "bayplan"),
        ("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "bayplan"),
    ]
    injected = {hook["name"]: hook["clientConfig"] for *_, change in patched for hook in change["webhooks"]}
    encoded = base64.b64encode(b"pem").decode()
    assert {config["caBundle"] for config in injected.values()} == {encoded}
    assert {name: config["service"]["path"] for name, config in injected.items()} == {
        "pods.bayplan.io": "/segment/validate/pods",
        "workloads.bayplan.io": "/segment/validate/workloads",
        "policies.bayplan.io": "/segment/validate/policies",
        "bindings.bayplan.io": "/segment/validate/bindings",
        "defaults.bayplan.io": "/segment/mutate",
    }


def test_the_shipped_configurations_have_no_path_so_that_applying_them_again_resets_none():
    assert not any("path" in hook["clientConfig"]["service"] for hook in webhooks(SERVICE, "ops").values())


def test_the_shipped_manifest_equals_the_defaults():
    shipped = yaml.safe_load_all((ROOT / "deploy" / "webhook" / "configurations.yaml").read_text())
    assert list(shipped) == WebhookSettings().manifests()


def test_the_shipped_manifest_for_karmada_equals_the_defaults():
    (shipped,) = yaml.safe_load_all((ROOT / "deploy" / "fleet-webhook" / "configurations.yaml").read_text())
    settings = WebhookSettings(address=WebhookAddress(url=FLEET_URL), fleet=True)
    assert [shipped] == settings.manifests()
    assert [hook["name"] for hook in shipped["webhooks"]] == ["policies.bayplan.io", "templates.bayplan.io"]


def test_without_namespaces_to_tolerate_nothing_is_mutated():
    settings = AdmissionSettings(guard=GuardSettings(tolerate_namespaces=()))
    assert len(WebhookSettings(settings=settings).manifests()) == 1


async def test_an_error_of_the_api_server_does_not_show_the_secret():
    async def refuse(_resource, _name, change):
        raise ClusterError(f"422 Invalid: {change}")

    with pytest.raises(ClusterError, match="/SECRET/validate/pods") as error:
        await client_config_injector(refuse, SERVICE, manifests(SERVICE, "ops"))(b"pem", "the-secret-segment")
    assert "the-secret-segment" not in str(error.value)
