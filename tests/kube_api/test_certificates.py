"""Which servers are trusted, and what is said of the others."""

import datetime as dt

import pytest
import trustme

from bayplan.kube_api import errors
from bayplan.kube_api.access import ConnectOptions
from kube_api.fake_time import SkippedTime
from kube_api.scripted import answer, connected


@pytest.fixture(params=["GET", "PUT"], autouse=True)
def method(request, monkeypatch):
    """Lists and watches use aiohttp, writes a client of ours."""
    monkeypatch.setattr("kube_api.test_certificates.METHOD", request.param)


METHOD = "GET"


async def ask(kubeconfig, options=None):
    async with connected(kubeconfig, options) as connection:
        return await connection.request(METHOD, "/api")


async def test_an_expired_certificate(serve, authority, kubeconfig_for):
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    server = await serve(authority.issue_cert("127.0.0.1", not_after=past))
    with pytest.raises(errors.CertificateError, match=r"not trusted: certificate has expired; renew it"):
        await ask(kubeconfig_for(server))
    assert server.requests == []


async def test_a_certificate_of_an_unknown_authority(serve, kubeconfig_for):
    server = await serve(trustme.CA().issue_cert("127.0.0.1"))
    with pytest.raises(errors.CertificateError, match=r"the certificate-authority of the cluster .* did not sign it"):
        await ask(kubeconfig_for(server))


async def test_a_certificate_for_another_name(serve, authority, kubeconfig_for):
    server = await serve(authority.issue_cert("api.example.com"))
    server.then(answer({}))
    with pytest.raises(errors.CertificateError, match="tls-server-name in the kubeconfig can name another host"):
        await ask(kubeconfig_for(server))
    await ask(kubeconfig_for(server, cluster={"tls-server-name": "api.example.com"}))
    assert len(server.requests) == 1


async def test_server_flag_does_not_use_the_tls_server_name_of_the_context(serve, authority, kubeconfig_for):
    server = await serve(authority.issue_cert("127.0.0.1"))
    server.then(answer({}))
    path = kubeconfig_for(server, cluster={"tls-server-name": "api.example.com", "server": "https://10.0.0.1"})
    await ask(path, options=ConnectOptions(server=server.url))


@pytest.mark.parametrize("how", ["kubeconfig", "flag"])
async def test_insecure_skip_tls_verify_accepts_any_certificate(serve, kubeconfig_for, how):
    server = await serve(trustme.CA().issue_cert("elsewhere.example.com"))
    server.then(answer({}))
    cluster = {"insecure-skip-tls-verify": True, "certificate-authority": None} if how == "kubeconfig" else {}
    options = ConnectOptions(insecure=how == "flag")
    assert await ask(kubeconfig_for(server, cluster=cluster), options=options) == b"{}"


async def test_a_new_authority_in_the_same_file_is_used(serve, authority, kubeconfig_for, tmp_path):
    other, time = trustme.CA(), SkippedTime()
    server = await serve(other.issue_cert("127.0.0.1"))
    server.then(answer({}))
    async with connected(kubeconfig_for(server), clock=time.clock) as connection:
        with pytest.raises(errors.CertificateError):
            await connection.request(METHOD, "/api")
        other.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        time.now += 61
        assert await connection.request(METHOD, "/api") == b"{}"
