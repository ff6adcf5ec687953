import asyncio
import datetime as dt
import json
import sys

import pytest

from bayplan.kube_api import errors
from kube_api.scripted import answer, authorizations, connected, encoded, error_response, whoami

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"

PLUGIN = """\
import json, os, sys
calls = open("calls", "a")
calls.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
print("a word to the user", file=sys.stderr)
sys.stdout.write(open("answer").read())
sys.exit(int(os.environ.get("CODE", "0")))
"""


class Plugin:
    """A program that answers what the test says and notes how it was called."""

    def __init__(self, folder):
        self._folder = folder
        (folder / "plugin.py").write_text(PLUGIN)

    def user(self, api_version=V1, **fields):
        run = {"command": sys.executable, "args": ["plugin.py"], "apiVersion": api_version, "interactiveMode": "Never"}
        return {"exec": run | fields}

    def says(self, api_version=V1, kind="ExecCredential", **status):
        content = {"apiVersion": api_version, "kind": kind, "status": status}
        (self._folder / "answer").write_text(json.dumps(content))

    def says_text(self, text):
        (self._folder / "answer").write_text(text)

    @property
    def calls(self):
        return [json.loads(line) for line in (self._folder / "calls").read_text().splitlines()]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Plugin(tmp_path)


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_provides_a_token(tls_server, kubeconfig_for, plugin, version):
    tls_server.then(answer({}), answer({}))
    plugin.says(version, token="from-plugin")
    async with connected(kubeconfig_for(tls_server, plugin.user(version))) as connection:
        await asyncio.gather(connection.get("/api"), connection.get("/api"))
    assert authorizations(tls_server) == ["Bearer from-plugin"] * 2
    assert plugin.calls == [{"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}]


async def test_a_plugin_is_run_again_when_its_token_expires(tls_server, kubeconfig_for, plugin):
    tls_server.then(*(answer({}) for _ in range(3)))
    now = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)
    plugin.says(token="one", expirationTimestamp="2026-11-15T12:10:00Z")
    path = kubeconfig_for(tls_server, plugin.user())
    async with connected(path, now=lambda: now) as connection:
        await connection.get("/api")
        plugin.says(token="two")
        now += dt.timedelta(minutes=9)
        await connection.get("/api")
        now += dt.timedelta(minutes=1)
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer one", "Bearer one", "Bearer two"]


async def test_a_plugin_is_run_again_when_its_token_is_rejected(tls_server, kubeconfig_for, plugin):
    tls_server.then(
        answer({}), error_response(401, "Unauthorized"), answer({}), error_response(401, "x"), error_response(401, "x")
    )
    plugin.says(token="one")
    async with connected(kubeconfig_for(tls_server, plugin.user())) as connection:
        await connection.get("/api")
        plugin.says(token="two")
        await connection.get("/api")
        plugin.says(token="three")
        with pytest.raises(errors.UnauthorizedError):
            await connection.get("/api")
    assert authorizations(tls_server)[2:] == ["Bearer two", "Bearer two", "Bearer three"]


async def test_requests_rejected_together_run_the_plugin_once(tls_server, kubeconfig_for, plugin):
    together = asyncio.Barrier(2)

    async def refuse(_request):
        await together.wait()
        return error_response(401, "Unauthorized")

    tls_server.then(answer({}), refuse, refuse, answer({}), answer({}))
    plugin.says(token="one")
    async with connected(kubeconfig_for(tls_server, plugin.user())) as connection:
        await connection.get("/api")
        plugin.says(token="two")
        await asyncio.gather(connection.get("/api"), connection.get("/api"))
    assert len(plugin.calls) == 2


async def test_a_plugin_provides_a_certificate(tls_server, kubeconfig_for, plugin, authority):
    tls_server.then(whoami, error_response(401, "Unauthorized"), whoami)

    def says(name):
        issued = authority.issue_cert(f"{name}.example.com", common_name=name)
        certificate, key = issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode()
        plugin.says(clientCertificateData=certificate, clientKeyData=key)

    says("ada")
    async with connected(kubeconfig_for(tls_server, plugin.user())) as connection:
        assert json.loads(await connection.get("/api")) == {"name": "ada"}
        says("eve")
        assert json.loads(await connection.get("/api")) == {"name": "eve"}


async def test_a_plugin_gets_the_cluster_with_provide_cluster_info(tls_server, kubeconfig_for, plugin, authority):
    tls_server.then(answer({}))
    plugin.says(token="t")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "06e3"}}
    cluster = {"tls-server-name": "api.example.com", "disable-compression": True, "extensions": [extension]}
    path = kubeconfig_for(tls_server, plugin.user(provideClusterInfo=True), cluster)
    async with connected(path) as connection:
        await connection.get("/api")
    assert plugin.calls[0]["spec"]["cluster"] == {
        "server": tls_server.url,
        "tls-server-name": "api.example.com",
        "disable-compression": True,
        "certificate-authority-data": encoded(authority.cert_pem.bytes()),
        "config": {"audience": "06e3"},
    }


async def test_a_plugin_gets_its_variables_and_is_found_beside_the_kubeconfig(tls_server, kubeconfig_for, tmp_path):
    program = tmp_path / "bin" / "plugin"
    program.parent.mkdir()
    status = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "for-'$TEAM'"}})
    program.write_text(f"#!/bin/sh\necho '{status}'\n")
    program.chmod(0o755)
    tls_server.then(answer({}))
    run = {"command": "bin/plugin", "apiVersion": V1, "interactiveMode": "IfAvailable"}
    user = {"exec": run | {"env": [{"name": "TEAM", "value": "shop"}]}}
    async with connected(kubeconfig_for(tls_server, user)) as connection:
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer for-shop"]


async def test_other_credentials_take_precedence_over_a_plugin(tls_server, kubeconfig_for, plugin):
    tls_server.then(answer({}))
    async with connected(kubeconfig_for(tls_server, plugin.user() | {"token": "written"})) as connection:
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer written"]


@pytest.mark.parametrize("says, text", [
    ({"apiVersion": V1BETA1, "status": {"token": "s3cr3t"}}, f"expected an ExecCredential of {V1}, got ExecCredential of {V1BETA1}"),
    ({"kind": "Pod", "apiVersion": ""}, f"expected an ExecCredential of {V1}, got Pod of no apiVersion"),
    ({}, "returned neither a token nor a client certificate"),
    ({"status": {}}, "returned neither a token nor a client certificate"),
    ({"status": {"clientKeyData": "s3cr3t"}}, "returned only one of certificate and key"),
    ({"status": {"token": "s3cr3t\n\nX: y"}}, "characters that are not allowed in a token"),
    ({"status": {"token": ["s3cr3t"]}}, "did not write an ExecCredential"),
    ("no json s3cr3t", "did not write an ExecCredential"),
])  # fmt: skip
async def test_plugins_with_invalid_output(tls_server, kubeconfig_for, plugin, says, text):
    content = {"kind": "ExecCredential", "apiVersion": V1}
    plugin.says_text(says if isinstance(says, str) else json.dumps(content | says))
    async with connected(kubeconfig_for(tls_server, plugin.user())) as connection:
        with pytest.raises(errors.CredentialError) as caught:
            await connection.get("/api")
    assert f"users[0].user.exec: {sys.executable}: " in str(caught.value)
    assert text in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("fields, text", [
    ({"command": "no-such-program", "installHint": "get it\nhere"}, "cannot run the plugin: No such file or directory (get it here)"),
    ({"env": [{"name": "CODE", "value": "7"}]}, "failed with exit code 7"),
    ({"interactiveMode": "Always"}, "interactiveMode is Always and standard input is not a terminal"),
])  # fmt: skip
async def test_plugins_that_do_not_run(tls_server, kubeconfig_for, plugin, fields, text, monkeypatch):
    plugin.says(token="t")
    async with connected(kubeconfig_for(tls_server, plugin.user(**fields))) as connection:
        with pytest.raises(errors.CredentialError) as caught:
            await connection.get("/api")
    assert str(caught.value).endswith(text)
