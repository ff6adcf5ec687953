"""What keeps `bayplan run` from its work is said in one line, with the right exit code, and not tried over and over."""

import asyncio
import base64
import datetime as dt
import os
import sys

import pytest
import trustme
from aiohttp import web

from kube_api.scripted import answer, error_response

VERSION = {"gitVersion": "v1.36.4"}
NO_ACCESS, BAD_INPUT = 3, 2
HEAVY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {score: {enabled: [{name: ImageLocality, weight: heavy}]}}
"""


async def run(*arguments, code):
    """The one line of the command as a user starts it; it must end by itself."""
    nowhere = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--no-fleet")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bayplan",
        "run",
        "-q",
        *nowhere,
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
    assert output == b""
    # A slow machine may add a warning that it held the event loop.
    (line,) = [line for line in errors.decode().splitlines() if "event loop blocked" not in line]
    assert line.startswith("error: ")
    assert process.returncode == code, line
    return line


async def test_an_unknown_context(server, kubeconfig_for):
    line = await run("--kubeconfig", kubeconfig_for(server), "--context", "nowhere", code=NO_ACCESS)
    assert "nowhere" in line
    assert server.requests == []


@pytest.mark.parametrize("address, says", [
    ("https://127.0.0.1:1", "cannot connect: Connection refused"),
    ("https://absent.invalid:6443", "cannot find the host"),
])  # fmt: skip
async def test_no_server_at_the_address(server, kubeconfig_for, address, says):
    path = kubeconfig_for(server, cluster={"server": address})
    line = await run("--kubeconfig", path, code=NO_ACCESS)
    assert f"{address}: {says}" in line


async def test_a_server_that_is_no_api_server(server, kubeconfig_for):
    server.then(web.Response(text="<html>Welcome</html>", content_type="text/html"))
    line = await run("--kubeconfig", kubeconfig_for(server), code=NO_ACCESS)
    assert "is this a Kubernetes API server?" in line
    assert len(server.requests) == 1


async def test_a_server_whose_certificate_has_expired(serve, authority, kubeconfig_for):
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    server = await serve(authority.issue_cert("127.0.0.1", not_after=past))
    line = await run("--kubeconfig", kubeconfig_for(server), code=NO_ACCESS)
    assert f"{server.url}: its certificate is not trusted: certificate has expired" in line


async def test_a_server_with_a_certificate_of_another_authority(serve, kubeconfig_for):
    server = await serve(trustme.CA().issue_cert("127.0.0.1"))
    line = await run("--kubeconfig", kubeconfig_for(server), code=NO_ACCESS)
    assert "did not sign it" in line


async def test_an_expired_client_certificate(tls_server, kubeconfig_for):
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    own = trustme.CA().issue_cert("me", not_after=past)
    user = {
        "client-certificate-data": base64.b64encode(own.cert_chain_pems[0].bytes()).decode(),
        "client-key-data": base64.b64encode(own.private_key_pem.bytes()).decode(),
    }
    line = await run("--kubeconfig", kubeconfig_for(tls_server, user=user), code=NO_ACCESS)
    assert "expired" in line


async def test_credentials_that_are_not_accepted(tls_server, kubeconfig_for):
    tls_server.then(*(error_response(401, "Unauthorized") for _ in range(5)))
    line = await run("--kubeconfig", kubeconfig_for(tls_server), code=NO_ACCESS)
    assert "the server does not accept the credentials" in line
    assert len(tls_server.requests) <= 2


async def test_missing_rights(server, kubeconfig_for):
    message = 'nodes is forbidden: User "ada" cannot list resource "nodes" in API group "" at the cluster scope'
    server.then(answer(VERSION), *(error_response(403, "Forbidden", message) for _ in range(50)))
    line = await run("--kubeconfig", kubeconfig_for(server), code=NO_ACCESS)
    assert line.endswith(f"no rights: {message}")
    asked = [request.path for request in server.requests]
    assert len(asked) == len(set(asked)), "nothing is asked for twice"


@pytest.mark.parametrize("name, content, says", [
    ("--kubeconfig", "clusters: [", "config"),
    ("--kubeconfig", "kind: Pod\napiVersion: v1\n", "Pod"),
    ("--config", "apiVersion: bayplan.io/v1alpha1\nkind: BayplanConfiguration\nguardd: {}\n", "guardd"),
    ("--config", "kind: BayplanConfiguration\n  no: yaml", "bad-config:2"),
    ("--config", HEAVY, "weight"),
], ids=["no YAML", "no kubeconfig", "unknown field", "configuration is no YAML", "a weight that is none"])  # fmt: skip
async def test_malformed_files(tmp_path, server, kubeconfig_for, name, content, says):
    bad = tmp_path / "bad-config"
    bad.write_text(content)
    line = await run("--kubeconfig", kubeconfig_for(server), name, bad, code=BAD_INPUT)
    assert "bad-config" in line
    assert says in line
    assert server.requests == []


@pytest.mark.parametrize("arguments, says", [
    (("--config", "/no/such/file"), "/no/such/file"),
    (("--kubeconfig", "/no/such/file"), "/no/such/file"),
])  # fmt: skip
async def test_missing_files(server, kubeconfig_for, arguments, says):
    line = await run("--kubeconfig", kubeconfig_for(server), *arguments, code=BAD_INPUT)
    assert says in line


async def test_a_port_that_is_in_use(server, kubeconfig_for):
    server.then(answer(VERSION))
    taken = server.url.removeprefix("http://")
    line = await run("--kubeconfig", kubeconfig_for(server), "--metrics-bind-address", taken, code=BAD_INPUT)
    assert line == f"error: cannot listen on {taken}: Address already in use"


@pytest.mark.parametrize("address", ["192.0.2.1:8080", "absent.invalid:8080"])
async def test_an_address_of_another_host(server, kubeconfig_for, address):
    server.then(answer(VERSION))
    line = await run("--kubeconfig", kubeconfig_for(server), "--health-probe-bind-address", address, code=BAD_INPUT)
    assert f"cannot listen on {address}: " in line


async def test_a_recording_that_cannot_be_written(server, kubeconfig_for, tmp_path):
    path = tmp_path / "nowhere" / "decisions.jsonl"
    line = await run("--kubeconfig", kubeconfig_for(server), "--record", path, code=BAD_INPUT)
    assert line == f"error: {path}: cannot be written: No such file or directory"
    assert server.requests == []
