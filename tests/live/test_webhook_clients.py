"""Which clients the webhook serves, called by a real API server: with a client certificate, and under overload."""

import base64

import aiohttp
import pytest
import yaml

from bayplan.webhook import in_cluster
from bayplan.webhook.admission_handler import AdmissionSettings
from live.admin import Admin, ApiError, wait_for
from live.hostile_clients import admits, guarded, post, unverified
from live.kube_server import KubeServer, Options
from live.open_webhook import PROBE, serving_webhook
from webhook.admission_reviews import pod, review


@pytest.fixture
def with_client_certificate(real_servers, tmp_path):
    """An API server that shows webhooks a client certificate, as docs/how-to/guard-a-cluster.md configures it."""
    server = KubeServer(Options(flags=(f"--admission-control-config-file={tmp_path / 'admission.yaml'}",)))
    certificate, key = server.client_certificate("kube-apiserver-webhooks")
    entry = {"client-certificate": str(certificate), "client-key": str(key)}
    config = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "127.0.0.1*", "user": entry}]}
    config["users"].append({"name": "*", "user": entry})
    (tmp_path / "webhooks.kubeconfig").write_text(yaml.safe_dump(config))
    plugins = [
        {
            "name": f"{kind}AdmissionWebhook",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": str(tmp_path / "webhooks.kubeconfig"),
            },
        }
        for kind in ("Validating", "Mutating")
    ]
    content = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    (tmp_path / "admission.yaml").write_text(yaml.safe_dump(content))
    with server:
        yield server


@pytest.mark.live
async def test_an_api_server_with_a_client_certificate_is_served_and_others_are_not(with_client_certificate):
    server = with_client_certificate
    async with Admin.of(server) as admin:
        flags = ("--webhook-client-ca-file", str(server.ca_file), "--no-leader-elect")
        async with guarded(server, admin, *flags, "--webhook-client-name", "kube-apiserver-webhooks") as running:
            assert await admits(admin)
            with pytest.raises(aiohttp.ClientError):
                await post(running.webhook_port, "/validate/pods", review(pod()))
            secret = await admin.get("secrets", in_cluster.SECRET, "bayplan-system")
            path = f"/{base64.b64decode(secret['data']['paths']).decode().split()[-1]}/validate/pods"
            for name, status in (("someone-else", 403), ("kube-apiserver-webhooks", 200)):
                context = unverified()
                context.load_cert_chain(*server.client_certificate(name))
                assert await post(running.webhook_port, path, review(pod()), context) == status


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
async def test_a_shed_review_is_answered_as_the_failure_policy_says(admin, failure_policy):
    async with serving_webhook(admin, AdmissionSettings(), failure_policy=failure_policy) as webhook:
        endpoint = webhook.server.endpoint
        endpoint._at_once = endpoint._limits.at_once  # as many reviews as there may be
        if failure_policy == "Ignore":
            await admin.create(PROBE, dryRun="All")
        else:
            with pytest.raises(ApiError, match="unable to handle the request") as error:
                await admin.create(PROBE, dryRun="All")
            segment = (await webhook.rotator._store.load()).segments[-1].value
            assert segment not in str(error.value)  # users read this message
        assert endpoint.shed["reviews"] > 0
        endpoint._at_once = 0
        await wait_for(lambda: admits(admin))
