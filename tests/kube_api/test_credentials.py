import base64
import datetime as dt
import json
import pathlib
import ssl
import stat
import tempfile

import pytest
from cryptography.hazmat.primitives import serialization

from bayplan.errors import InputError
from bayplan.kube_api import errors
from bayplan.kube_api.access import ConnectOptions
from kube_api.fake_time import SkippedTime
from kube_api.scripted import answer, authorizations, connected, encoded, error_response, whoami


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


async def test_a_rejected_token_is_read_again_at_once(tls_server, kubeconfig_for, tmp_path):
    tls_server.then(error_response(401, "Unauthorized"), answer({}), error_response(401, "Unauthorized"))
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


async def test_a_token_file_takes_precedence_over_a_token_while_it_can_be_read(tls_server, kubeconfig_for, tmp_path):
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
    ("two words", "the token has characters that are not allowed in a token"),
    ("line\nline", "the token has characters that are not allowed in a token"),
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


def client_files(authority, folder, name):
    issued = authority.issue_cert(f"{name}.example.com", common_name=name)
    issued.cert_chain_pems[0].write_to_path(str(folder / "client.crt"))
    issued.private_key_pem.write_to_path(str(folder / "client.key"))
    return issued


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


async def test_a_renewed_client_certificate_is_used(tls_server, kubeconfig_for, authority, tmp_path):
    tls_server.then(whoami, whoami)
    time = SkippedTime()
    client_files(authority, tmp_path, "ada")
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    async with connected(kubeconfig_for(tls_server, user), clock=time.clock) as connection:
        assert json.loads(await connection.get("/api")) == {"name": "ada"}
        client_files(authority, tmp_path, "eve")
        time.now += 61
        assert json.loads(await connection.get("/api")) == {"name": "eve"}


async def test_an_expired_client_certificate_is_named_as_the_reason(serve, kubeconfig_for, authority):
    # Which server refuses it, and how, differs; a Kubernetes API server answers 401 without a word about it.
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
    issued = authority.issue_cert("ada.example.com", not_after=past)
    server = await serve(authority.issue_cert("127.0.0.1"))
    server.then(error_response(401, "Unauthorized"))
    user = {
        "client-certificate-data": encoded(issued.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(issued.private_key_pem.bytes()),
    }
    async with connected(kubeconfig_for(server, user)) as connection:
        with pytest.raises(errors.UnauthorizedError, match=rf"the client certificate \(.*\) expired on {past:%F}"):
            await connection.get("/api")


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


async def test_every_request_has_the_impersonation_headers(tls_server, kubeconfig_for):
    tls_server.then(answer({}))
    user = {"token": "t", "as": "ada", "as-groups": ["a", "b"]}
    async with connected(kubeconfig_for(tls_server, user)) as connection:
        await connection.get("/api")
    headers = tls_server.requests[0].headers
    assert headers["Impersonate-User"] == "ada"
    assert headers.getall("Impersonate-Group") == ["a", "b"]
