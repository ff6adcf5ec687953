import ssl

import pytest
import trustme
import yaml

from kube_api.scripted import ScriptedServer

TOKEN = "s3cr3t-t0k3n"


@pytest.fixture
async def server():
    """A scripted server without TLS."""
    started = await ScriptedServer().start()
    yield started
    await started.stop()


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture
async def tls_server(authority):
    """A scripted server with TLS that takes client certificates if they are shown."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "api.example.com").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    started = await ScriptedServer().start(context)
    yield started
    await started.stop()


@pytest.fixture
async def serve():
    """A function that starts a scripted server with a certificate of the test's own; it asks for none."""
    started = []

    async def start(certificate):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate.configure_cert(context)
        started.append(await ScriptedServer().start(context))
        return started[-1]

    yield start
    for server in started:
        await server.stop()


@pytest.fixture
def kubeconfig_for(tmp_path, authority):
    """A function that writes a kubeconfig for a scripted server; `user` and `cluster` are more fields of theirs."""

    def write(server, user=None, cluster=None, name="config", **context):
        trust = {"certificate-authority": "ca.pem"} if server.url.startswith("https") else {}
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "here", "cluster": {"server": server.url} | trust | (cluster or {})}],
            "users": [{"name": "me", "user": {"token": TOKEN} if user is None else user}],
            "contexts": [{"name": "test", "context": {"cluster": "here", "user": "me"} | context}],
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    return write


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
