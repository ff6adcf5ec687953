import asyncio
import gzip
import logging
import socket

import pytest
from aiohttp import web

from bayplan.kube_api import access, errors
from bayplan.kube_api.access import ConnectOptions
from kube_api.conftest import TOKEN
from kube_api.fake_time import SkippedTime
from kube_api.scripted import ScriptedServer, answer, connected, error_response

# Lists and watches use aiohttp, writes a client of ours: what goes wrong is reported in the same words.
BOTH = pytest.mark.parametrize("method", ["GET", "PUT"])


async def ask(kubeconfig, *args, options=None, **settings):
    async with connected(kubeconfig, options) as connection:
        return await connection.request(*args or ("GET", "/api/v1/pods"), **settings)


async def test_a_request_as_it_is_sent(tls_server, kubeconfig_for):
    tls_server.then(answer({"kind": "Pod"}))
    settings = {"query": {"dryRun": "All", "fieldManager": "a b&c"}, "body": b"{}", "content_type": "application/x"}
    assert await ask(kubeconfig_for(tls_server), "POST", "/api/v1/x%2Fy", **settings) == b'{"kind": "Pod"}'
    asked = tls_server.requests[0]
    assert (asked.method, asked.body) == ("POST", b"{}")
    assert asked.url == "/api/v1/x%2Fy?dryRun=All&fieldManager=a+b%26c"
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["Content-Type"] == "application/x"
    assert asked.headers["Accept"] == "application/json"
    assert asked.headers["User-Agent"].startswith("bayplan/")


@pytest.mark.parametrize("code, reason, kind", [
    (401, "Unauthorized", errors.UnauthorizedError),
    (403, "Forbidden", errors.ForbiddenError),
    (404, "NotFound", errors.NotFoundError),
    (409, "Conflict", errors.ConflictError),
    (409, "AlreadyExists", errors.ConflictError),
    (410, "Expired", errors.GoneError),
    (422, "Invalid", errors.ApiError),
    (429, "TooManyRequests", errors.TooManyRequestsError),
    (500, "InternalError", errors.ServerUnavailableError),
    (503, "ServiceUnavailable", errors.ServerUnavailableError),
])  # fmt: skip
@BOTH
async def test_error_statuses(server, kubeconfig_for, code, reason, kind, method):
    server.then(error_response(code, reason, "because", {"name": "web", "retryAfterSeconds": 7}))
    with pytest.raises(kind, match="because") as caught:
        await ask(kubeconfig_for(server), method, "/api/v1/pods", retry=False)
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.reason, error.details.name, error.retry_after) == (code, reason, "web", 7)
    assert error.message.startswith("because")


async def test_the_message_of_missing_rights_names_user_verb_and_resource(server, kubeconfig_for):
    message = 'pods is forbidden: User "ada" cannot list resource "pods" in API group "" at the cluster scope'
    server.then(error_response(403, "Forbidden", message))
    with pytest.raises(errors.ForbiddenError) as caught:
        await ask(kubeconfig_for(server))
    assert str(caught.value) == f"GET {server.url}/api/v1/pods: no rights: {message}"


@BOTH
async def test_a_message_of_many_lines_is_shown_in_one(server, kubeconfig_for, method):
    server.then(error_response(422, "Invalid", "a\n\tb\x1b[31m" + "c" * 5000))
    with pytest.raises(errors.ApiError) as caught:
        await ask(kubeconfig_for(server), method, "/api/v1/pods")
    assert "422 Invalid: a b [31mccc" in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("found", [
    lambda: web.Response(text="<html>Welcome</html>", content_type="text/html"),
    lambda: web.Response(status=404, text="<html>No</html>", content_type="text/html"),
    lambda: web.Response(status=302, headers={"Location": "https://login.example.com/"}),
    lambda: web.Response(text="ok"),
], ids=["page", "no page", "redirect", "text"])  # fmt: skip
@BOTH
async def test_a_server_that_is_no_api_server(server, kubeconfig_for, found, method):
    server.then(found())
    with pytest.raises(errors.WrongServerError, match="is this a Kubernetes API server"):
        await ask(kubeconfig_for(server), method, "/api/v1/pods")
    assert len(server.requests) == 1


async def test_an_unknown_path_does_not_mean_the_wrong_server(server, kubeconfig_for):
    server.then(web.Response(status=404, text="404 page not found"))
    with pytest.raises(errors.NotFoundError, match="404 page not found"):
        await ask(kubeconfig_for(server))


async def test_version(server, kubeconfig_for):
    server.then(answer({"gitVersion": "v1.36.4"}), answer({"version": "2"}))
    async with connected(kubeconfig_for(server)) as connection:
        assert await connection.version() == await connection.version() == "v1.36.4"
        assert len(server.requests) == 1
    async with connected(kubeconfig_for(server)) as connection:
        with pytest.raises(errors.WrongServerError, match="is this a Kubernetes API server"):
            await connection.version()


@BOTH
async def test_redirects_are_not_followed(tls_server, server, kubeconfig_for, method):
    tls_server.then(web.Response(status=307, headers={"Location": server.url}))
    with pytest.raises(errors.WrongServerError):
        await ask(kubeconfig_for(tls_server), method, "/api/v1/pods")
    assert server.requests == []


@BOTH
async def test_a_request_is_retried_after_the_time_in_retry_after(server, kubeconfig_for, method):
    server.then(
        error_response(429, "TooManyRequests", Retry_After=3), error_response(503, "x", Retry_After=4), answer({})
    )
    time = SkippedTime()
    async with connected(kubeconfig_for(server), clock=time.clock, sleep=time.sleep) as connection:
        assert await connection.request(method, "/api") == b"{}"
    assert time.slept == [3, 4]


@pytest.mark.parametrize("settings, answers", [
    ({"method": "POST"}, [error_response(429, "x", Retry_After=1)]),
    ({"retry": False}, [error_response(429, "x", Retry_After=1)]),
    ({}, [error_response(503, "x")]),  # no time named
    ({}, [error_response(429, "x", Retry_After=1) for _ in range(5)]),
    ({}, [error_response(429, "x", Retry_After=20) for _ in range(2)]),  # more than half a minute in all
], ids=["post", "switched off", "no time named", "five times", "too long"])  # fmt: skip
async def test_requests_that_are_not_retried(server, kubeconfig_for, settings, answers):
    server.then(*answers)
    time = SkippedTime()
    async with connected(kubeconfig_for(server), clock=time.clock, sleep=time.sleep) as connection:
        with pytest.raises(errors.ApiError):
            await connection.request(**{"method": "GET", "path": "/api"} | settings)
    assert server.unused == 0
    assert len(server.requests) == len(answers)


async def test_a_post_is_retried_on_request(server, kubeconfig_for):
    server.then(error_response(429, "x", Retry_After=1), answer({}))
    time = SkippedTime()
    async with connected(kubeconfig_for(server), clock=time.clock, sleep=time.sleep) as connection:
        assert await connection.request("POST", "/api", body=b"{}", retry=True) == b"{}"


async def test_rate_limit(server, kubeconfig_for):
    server.then(*(answer({}) for _ in range(6)))
    time = SkippedTime()
    options = ConnectOptions(qps=10, burst=3)
    async with connected(kubeconfig_for(server), options, clock=time.clock, sleep=time.sleep) as connection:
        for _ in range(5):
            await connection.get("/api")
        assert time.slept == pytest.approx([0.1, 0.1])
        await connection.request("GET", "/api", limited=False)
    assert len(time.slept) == 2


@pytest.mark.parametrize("path", ["/apis/events.k8s.io/v1/namespaces/shop/events", "/api/v1/namespaces/shop/events"])
async def test_events_have_a_rate_limit_of_their_own(server, kubeconfig_for, path):
    server.then(*(answer({}) for _ in range(9)))
    time = SkippedTime()
    options = ConnectOptions(qps=10, burst=3)
    async with connected(kubeconfig_for(server), options, clock=time.clock, sleep=time.sleep) as connection:
        for _ in range(4):
            await connection.request("POST", path, body=b"{}")
        assert time.slept == pytest.approx([0.1])
        for _ in range(3):
            await connection.get("/api")
    assert len(time.slept) == 1


@BOTH
async def test_the_observer_is_called_for_every_response(server, kubeconfig_for, method):
    server.then(answer({}), error_response(404, "NotFound"))
    heard = []
    async with connected(kubeconfig_for(server)) as connection:
        connection.observer = lambda method, code, seconds: heard.append((method, code, seconds >= 0))
        await connection.request(method, "/api")
        with pytest.raises(errors.NotFoundError):
            await connection.request(method, "/api")
        await server.stop()
        with pytest.raises(errors.KubeError):
            await connection.request(method, "/api")
    assert heard == [(method, "200", True), (method, "404", True), (method, "<error>", True)]


@BOTH
async def test_no_response_in_time(server, kubeconfig_for, method):
    with pytest.raises(errors.NoAnswerError, match="no response in time"):
        await ask(kubeconfig_for(server), method, "/api/v1/pods", timeout=0.05)


@BOTH
async def test_no_server_at_the_address(kubeconfig_for, method):
    server = ScriptedServer()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server.url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(errors.UnreachableError) as caught:
            await ask(kubeconfig_for(server), method, "/api/v1/pods")
    assert str(caught.value) == f"{server.url}: cannot connect: Connection refused"


@BOTH
async def test_no_such_host(kubeconfig_for, method):
    server = ScriptedServer()
    server.url = "https://no-such-host.invalid:6443"
    with pytest.raises(errors.UnreachableError, match=r"no-such-host\.invalid:6443: cannot find the host: "):
        await ask(kubeconfig_for(server), method, "/api/v1/pods")


@BOTH
async def test_a_server_without_tls_where_tls_is_expected(server, kubeconfig_for, method):
    server.url = server.url.replace("http:", "https:")
    with pytest.raises(errors.WrongServerError, match="no TLS connection: "):
        await ask(kubeconfig_for(server), method, "/api/v1/pods")


async def test_a_connection_that_is_closed_midway(server, kubeconfig_for):
    async def hang_up(request):
        request.transport.abort()
        return web.Response()

    server.then(hang_up)
    with pytest.raises(errors.ConnectionLostError, match="the connection was lost"):
        await ask(kubeconfig_for(server), "POST", "/api")


@pytest.mark.parametrize("accepts, sent", [("127.0.0.1", "identity"), ("elsewhere", "gzip")])
async def test_compression_is_not_requested_on_the_loopback_interface(
    server, kubeconfig_for, monkeypatch, accepts, sent
):
    body = b'{"kind":"PodList","items":[' + b",".join(b'{"metadata":{"name":"p"}}' for _ in range(200_000)) + b"]}"

    async def compress(request):
        asked = request.headers["Accept-Encoding"]
        headers = {"Content-Type": "application/json", "Content-Encoding": asked}
        return web.Response(body=gzip.compress(body) if asked == "gzip" else body, headers=headers)

    server.then(compress)
    if accepts == "elsewhere":
        monkeypatch.setattr(access, "is_loopback", lambda _server: False)
    assert await ask(kubeconfig_for(server)) == body
    assert server.requests[0].headers["Accept-Encoding"] == sent


async def test_compression_can_be_switched_off(server, kubeconfig_for, monkeypatch):
    monkeypatch.setattr(access, "is_loopback", lambda _server: False)
    server.then(answer({}))
    await ask(kubeconfig_for(server, cluster={"disable-compression": True}))
    assert server.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("server, here", [
    ("https://127.0.0.1:6443", True),
    ("https://127.9.0.1", True),
    ("https://[::1]:6443", True),
    ("https://localhost:6443", True),
    ("https://10.0.0.1:6443", False),
    ("https://localhost.example.com", False),
])  # fmt: skip
def test_which_servers_are_on_this_machine(server, here):
    assert access.is_loopback(server) is here


async def test_secrets_are_never_shown(tls_server, kubeconfig_for, caplog):
    caplog.set_level(logging.DEBUG)
    tls_server.then(error_response(401, "Unauthorized"), error_response(403, "Forbidden"))
    async with connected(kubeconfig_for(tls_server)) as connection:
        shown = [repr(connection), repr(connection._access), repr(await connection._access.credentials.current())]
        shown.append(repr(ConnectOptions(token=TOKEN)))
        for _ in range(2):
            with pytest.raises(errors.ApiError) as caught:
                await connection.get("/api")
            shown.append(repr(caught.value))
    assert TOKEN not in caplog.text
    assert not any(TOKEN in text for text in shown)
    assert len(tls_server.requests) == 2


@BOTH
async def test_without_tls_no_credentials_are_sent(server, kubeconfig_for, method):
    server.then(error_response(401, "Unauthorized"))
    with pytest.raises(errors.UnauthorizedError, match="none were sent, because the server address is not https"):
        await ask(kubeconfig_for(server), method, "/api/v1/pods")
    assert "Authorization" not in server.requests[0].headers


async def test_a_stream_that_is_left_early_is_closed(server, kubeconfig_for):
    ended = asyncio.Event()

    async def endless(request):
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 1000)
                await asyncio.sleep(0)
        finally:
            ended.set()

    server.then(endless)
    async with connected(kubeconfig_for(server)) as connection:
        async with connection.stream("/api", query={}, inactivity=5) as chunks:
            async for chunk in chunks:
                assert chunk
                break
        await asyncio.wait_for(ended.wait(), 5)
