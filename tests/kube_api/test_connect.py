"""Access through a proxy, and with the service account of a pod."""

import asyncio

import pytest

from bayplan.kube_api import connect, errors
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.connection import Connection
from kube_api.fake_time import SkippedTime
from kube_api.scripted import answer, authorizations, connected


async def test_requests_use_the_proxy(tls_server, kubeconfig_for):
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


async def test_a_proxy_that_rejects_the_request(server, tls_server, kubeconfig_for):
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
    access = connect.in_cluster_access(environment, pod_volume, time.clock)
    async with Connection(access, ConnectOptions()) as connection:
        assert (connection.namespace, connection.server) == ("shop", tls_server.url)
        await connection.get("/api")
        (pod_volume / "token").write_text("second")
        time.now += 61
        await connection.get("/api")
    assert authorizations(tls_server) == ["Bearer first", "Bearer second"]
    assert connect.in_cluster_access(environment | {"POD_NAMESPACE": "bank"}, pod_volume).namespace == "bank"


def test_in_cluster_access_needs_a_service_account(pod_volume):
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert connect.in_cluster_access(environment, pod_volume).server == "https://[fd00::1]:443"
    assert not connect.runs_in_pod({}, pod_volume)
    (pod_volume / "token").unlink()
    with pytest.raises(errors.NoClusterError, match="not in a pod with a service account"):
        connect.in_cluster_access(environment, pod_volume)
