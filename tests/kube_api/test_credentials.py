import asyncio
import base64
import datetime as dt
import json
import pathlib
import ssl
import stat
import sys
import tempfile

import pytest
from cryptography.hazmat.primitives import serialization

from bayplan.errors import InputError
from bayplan.kube_api import errors, in_cluster
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.connection import Connection
from kube_api.fake_time import SkippedTime
from kube_api.scripted import ScriptedServer, answer, connected, refusal

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def authorizations(server):
    return [asked.headers.get("Authorization") for asked in server.requests]


async def test_name_and_password(tls_server, kubeconfig_for):
    tls_server.then(answer({}))
    async with connected(kubeconfig_for(tls_server, {"username": "ada", "password": "päss"})) as connection:
        await connection.get("/api")
    encoded = base64.b64encode("ada:päss".encode()).decode()
    assert authorizations(tls_server) == [f"Basic {encoded}"]


async def test_a_token_file_is_read_again_every_minute(tls_server, kubeconfig_for, tmp_path):
    tls_server.then(*(answer({}) for _ in range(4)))
    time, file = SkippedTime(), tmp_path / "token"
    file.write_text("one\n")
    path = kubeconfig_for(tls_server, {"tokenFile": "token"})
    async with connected(path, clock=time.clock) as connection:
        await connection.get("/api")
        file.write_text("two\n")
        time.now += 59
        await connection.get("/api")
        time.now += 2
        await connection.get("/api")
        file.unlink()  # a moment without the file does no harm
        time.now += 61
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


async def test_a_refused_token_is_read_again_at_once(tls_server, kubeconfig_for, tmp_path):
    tls_server.then(refusal(401, "Unauthorized"), answer({}), refusal(401, "Unauthorized"))
    file = tmp_path / "token"
    file.write_text("old")
    async with connected(kubeconfig_for(tls_server, {"tokenFile": "token"})) as connection:
        await connection._access.credentials.current()
        file.write_text("new")
        await connection.request("POST", "/api", body=b"{}")
        with pytest.raises(errors.UnauthorizedError):  # nothing new this time: no second try
            await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer old", "Bearer new", "Bearer new"]
    assert [asked.body for asked in tls_server.requests] == [b"{}", b"{}", b""]


async def test_a_token_file_wins_over_a_token_while_it_can_be_read(tls_server, kubeconfig_for, tmp_path):
    tls_server.then(answer({}), answer({}))
    path = kubeconfig_for(tls_server, {"token": "written", "tokenFile": "token"})
    async with connected(path) as connection:
        await connection.get("/api")
    (tmp_path / "token").write_text("in-file")
    async with connected(path) as connection:
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer written", "Bearer in-file"]


@pytest.mark.parametrize("content, text", [
    (None, "users[0].user.tokenFile: cannot read"),
    ("", "the token is empty"),
    ("two words", "the token has characters that no token can have"),
    ("line\nline", "the token has characters that no token can have"),
])  # fmt: skip
async def test_token_files_that_do_not_work(tls_server, kubeconfig_for, tmp_path, content, text):
    if content is not None:
        (tmp_path / "token").write_text(content)
    async with connected(kubeconfig_for(tls_server, {"tokenFile": "token"})) as connection:
        with pytest.raises(errors.CredentialError) as caught:
            await connection.get("/api")
    assert text in str(caught.value)
    assert "two words" not in str(caught.value)


async def test_a_token_on_the_command_line_is_the_only_credential(tls_server, kubeconfig_for):
    tls_server.then(answer({}))
    user = {"client-certificate": "missing", "client-key": "missing"}
    async with connected(kubeconfig_for(tls_server, user), ConnectOptions(token="flag")) as connection:
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer flag"]


async def whoami(request):
    """The common name in the client certificate that the server was shown."""
    certificate = request.transport.get_extra_info("peercert") or {}
    names = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return answer({"name": names.get("commonName", "")})


def client_files(authority, folder, name):
    issued = authority.issue_cert(f"{name}.example.com", common_name=name)
    issued.cert_chain_pems[0].write_to_path(str(folder / "client.crt"))
    issued.private_key_pem.write_to_path(str(folder / "client.key"))
    return issued


def encoded(content):
    return base64.b64encode(content).decode()


@pytest.mark.parametrize("how", ["files", "data"])
async def test_client_certificates(tls_server, kubeconfig_for, authority, tmp_path, monkeypatch, how):
    tls_server.then(whoami)
    issued = client_files(authority, tmp_path, "ada")
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    if how == "data":
        certificate, key = issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()
        user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    modes, private = [], tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    load = ssl.SSLContext.load_cert_chain

    def look(context, path, **settings):
        modes.append(stat.S_IMODE(pathlib.Path(path).stat().st_mode))
        load(context, path, **settings)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    async with connected(kubeconfig_for(tls_server, user)) as connection:
        assert json.loads(await connection.get("/api")) == {"name": "ada"}
        assert list(private.iterdir()) == []
    assert modes == [0o600]
    assert authorizations(tls_server) == [None]


async def test_a_renewed_client_certificate_is_taken_up(tls_server, kubeconfig_for, authority, tmp_path):
    tls_server.then(whoami, whoami)
    time = SkippedTime()
    client_files(authority, tmp_path, "ada")
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    async with connected(kubeconfig_for(tls_server, user), clock=time.clock) as connection:
        assert json.loads(await connection.get("/api")) == {"name": "ada"}
        client_files(authority, tmp_path, "eve")
        time.now += 61
        assert json.loads(await connection.get("/api")) == {"name": "eve"}


async def test_an_expired_client_certificate_is_named_as_the_reason(tls_server, kubeconfig_for, authority, tmp_path):
    # Which server refuses it, and how, differs; a Kubernetes API server answers 401 without a word about it.
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
    issued = authority.issue_cert("ada.example.com", not_after=past)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = await ScriptedServer().start(context)  # does not look at client certificates
    server.then(refusal(401, "Unauthorized"))
    user = {
        "client-certificate-data": encoded(issued.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(issued.private_key_pem.bytes()),
    }
    async with connected(kubeconfig_for(server, user)) as connection:
        with pytest.raises(errors.UnauthorizedError, match=rf"our client certificate \(.*\) expired on {past:%F}"):
            await connection.get("/api")
    await server.stop()


@pytest.mark.parametrize("how", ["no certificate", "key of another", "pass phrase"])
async def test_client_certificates_that_cannot_be_used(tls_server, kubeconfig_for, authority, tmp_path, how):
    issued = client_files(authority, tmp_path, "ada")
    if how == "no certificate":
        (tmp_path / "client.crt").write_text("nothing")
    elif how == "key of another":
        authority.issue_cert("x.example.com").private_key_pem.write_to_path(str(tmp_path / "client.key"))
    else:
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        locked = key.private_bytes(pem, form, serialization.BestAvailableEncryption(b"secret"))
        (tmp_path / "client.key").write_bytes(locked)
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    async with connected(kubeconfig_for(tls_server, user)) as connection:
        with pytest.raises(errors.CredentialError, match="client certificate and its key cannot be used"):
            await connection.get("/api")


@pytest.mark.parametrize("cluster, text", [
    ({"certificate-authority": "gone.pem"}, "clusters[0].cluster.certificate-authority: cannot read"),
    ({"certificate-authority": "config"}, "clusters[0].cluster.certificate-authority: expected certificates in PEM form"),
])  # fmt: skip
async def test_authorities_that_cannot_be_used(tls_server, kubeconfig_for, cluster, text):
    with pytest.raises(InputError) as caught:
        async with connected(kubeconfig_for(tls_server, cluster=cluster)) as connection:
            await connection.get("/api")
    assert text in str(caught.value)


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
async def test_a_plugin_gives_a_token(tls_server, kubeconfig_for, plugin, version):
    tls_server.then(answer({}), answer({}))
    plugin.says(version, token="from-plugin")
    async with connected(kubeconfig_for(tls_server, plugin.user(version))) as connection:
        await asyncio.gather(connection.get("/api"), connection.get("/api"))
    assert authorizations(tls_server) == ["Bearer from-plugin"] * 2
    assert plugin.calls == [{"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}]


async def test_a_plugin_is_asked_again_when_its_token_expires(tls_server, kubeconfig_for, plugin):
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


async def test_a_plugin_is_asked_again_when_its_token_is_refused(tls_server, kubeconfig_for, plugin):
    tls_server.then(answer({}), refusal(401, "Unauthorized"), answer({}), refusal(401, "x"), refusal(401, "x"))
    plugin.says(token="one")
    async with connected(kubeconfig_for(tls_server, plugin.user())) as connection:
        await connection.get("/api")
        plugin.says(token="two")
        await connection.get("/api")
        plugin.says(token="three")
        with pytest.raises(errors.UnauthorizedError):
            await connection.get("/api")
    assert authorizations(tls_server)[2:] == ["Bearer two", "Bearer two", "Bearer three"]


async def test_a_plugin_gives_a_certificate(tls_server, kubeconfig_for, plugin, authority):
    tls_server.then(whoami, refusal(401, "Unauthorized"), whoami)

    def says(name):
        issued = authority.issue_cert(f"{name}.example.com", common_name=name)
        certificate, key = issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode()
        plugin.says(clientCertificateData=certificate, clientKeyData=key)

    says("ada")
    async with connected(kubeconfig_for(tls_server, plugin.user())) as connection:
        assert json.loads(await connection.get("/api")) == {"name": "ada"}
        says("eve")
        assert json.loads(await connection.get("/api")) == {"name": "eve"}


async def test_a_plugin_is_told_of_its_cluster_if_asked_for(tls_server, kubeconfig_for, plugin, authority):
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


async def test_other_credentials_go_before_a_plugin(tls_server, kubeconfig_for, plugin):
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
    ({"status": {"token": "s3cr3t\n\nX: y"}}, "characters that no token can have"),
    ({"status": {"token": ["s3cr3t"]}}, "wrote no ExecCredential"),
    ("no json s3cr3t", "wrote no ExecCredential"),
])  # fmt: skip
async def test_plugins_that_answer_wrongly(tls_server, kubeconfig_for, plugin, says, text):
    content = {"kind": "ExecCredential", "apiVersion": V1}
    plugin.says_text(says if isinstance(says, str) else json.dumps(content | says))
    async with connected(kubeconfig_for(tls_server, plugin.user())) as connection:
        with pytest.raises(errors.CredentialError) as caught:
            await connection.get("/api")
    assert f"users[0].user.exec: {sys.executable}: " in str(caught.value)
    assert text in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("fields, text", [
    ({"command": "no-such-program", "installHint": "get it\nhere"}, "cannot run the program: No such file or directory (get it here)"),
    ({"env": [{"name": "CODE", "value": "7"}]}, "failed with exit code 7"),
    ({"interactiveMode": "Always"}, "interactiveMode is Always and standard input is no terminal"),
])  # fmt: skip
async def test_plugins_that_do_not_run(tls_server, kubeconfig_for, plugin, fields, text, monkeypatch):
    plugin.says(token="t")
    async with connected(kubeconfig_for(tls_server, plugin.user(**fields))) as connection:
        with pytest.raises(errors.CredentialError) as caught:
            await connection.get("/api")
    assert str(caught.value).endswith(text)


async def test_impersonation_goes_with_every_request(tls_server, kubeconfig_for):
    tls_server.then(answer({}))
    user = {"token": "t", "as": "ada", "as-groups": ["a", "b"]}
    async with connected(kubeconfig_for(tls_server, user)) as connection:
        await connection.get("/api")
    headers = tls_server.requests[0].headers
    assert headers["Impersonate-User"] == "ada"
    assert headers.getall("Impersonate-Group") == ["a", "b"]


async def test_a_proxy_is_gone_through(tls_server, kubeconfig_for):
    tls_server.then(answer({}))
    tunnels = []

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        tunnels.append(head.decode())
        host, _, port = head.split()[1].decode().partition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    async def pump(source, sink):
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        path = kubeconfig_for(tls_server, cluster={"proxy-url": f"http://127.0.0.1:{port}"})
        async with connected(path) as connection:
            assert await connection.get("/api") == b"{}"
    assert tunnels[0].startswith(f"CONNECT {tls_server.url.removeprefix('https://')} HTTP/1.1")
    assert "Authorization: Bearer" not in tunnels[0]


async def test_a_proxy_that_refuses(server, tls_server, kubeconfig_for):
    proxy = server.url.replace("http://", "http://user:s3cr3t@")
    async with connected(kubeconfig_for(tls_server, cluster={"proxy-url": proxy})) as connection:
        with pytest.raises(errors.UnreachableError, match=f"the proxy {server.url} answered 404"):
            await connection.get("/api")


@pytest.fixture
def pod_volume(tmp_path, authority):
    (tmp_path / "token").write_text("first")
    (tmp_path / "namespace").write_text("shop\n")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    return tmp_path


async def test_inside_a_pod(tls_server, pod_volume):
    tls_server.then(answer({}), answer({}))
    time = SkippedTime()
    host, _, port = tls_server.url.removeprefix("https://").partition(":")
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    access = in_cluster.find(environment, pod_volume, time.clock)
    async with Connection(access, ConnectOptions()) as connection:
        assert (connection.namespace, connection.server) == ("shop", tls_server.url)
        await connection.get("/api")
        (pod_volume / "token").write_text("second")
        time.now += 61
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer first", "Bearer second"]
    assert in_cluster.find(environment | {"POD_NAMESPACE": "bank"}, pod_volume).namespace == "bank"


def test_what_is_no_pod(pod_volume):
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster.find(environment, pod_volume).server == "https://[fd00::1]:443"
    assert not in_cluster.is_possible({}, pod_volume)
    (pod_volume / "token").unlink()
    with pytest.raises(errors.NoClusterError, match="this is not a pod with a service account"):
        in_cluster.find(environment, pod_volume)
