"""Responses as servers may send them, and connections that are kept, closed or lost. Counts connections, not seconds."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube_api import http1
from bayplan.kube_api.http1 import ConnectionPool, ResponseReader
from bayplan.kube_api.transport import ConnectFailedError, InvalidResponseError, ResponseCutError

OK = b"HTTP/1.1 200 OK\r\n"
SHORT = OK + b"Content-Length: 2\r\n\r\n{}"
REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = OK + b"Content-Type: text/plain\r\n\r\nuntil the end"


def read(*parts, ends=False):
    reader = ResponseReader()
    for part in parts:
        reader.feed(part)
    if ends:
        reader.end()
    return reader


@pytest.mark.parametrize("sent, body, reusable", [
    (SHORT, b"{}", True),
    (OK + b"content-length:2\r\nConnection: keep-alive\r\n\r\n{}", b"{}", True),
    (OK + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}", b"{}", False),
    (OK.replace(b"1.1", b"1.0") + b"Content-Length: 2\r\n\r\n{}", b"{}", False),
    (SHORT + b"more", b"{}", False),  # what was not asked for cannot answer the next request
    (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + SHORT, b"{}", True),
    (CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"{}", True),
    (CHUNKED + b"A;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", b"0123456789", True),
    (CHUNKED + b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", True),
    (b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", b"", True),  # without a reason
])  # fmt: skip
@given(cut=st.integers(0, 200))
async def test_a_response_in_any_two_parts(sent, body, reusable, cut):
    reader = read(*(part for part in (sent[:cut], sent[cut:]) if part))
    assert await reader.response.read() == body
    assert reader.is_reusable is reusable


async def test_a_response_byte_by_byte():
    sent = CHUNKED + b"3\r\nabc\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"
    reader = read(*(bytes([byte]) for byte in sent))
    assert await reader.response.read() == b"abc" + b"x" * 16
    assert reader.is_reusable


def test_a_response_without_end_is_not_collected(monkeypatch):
    monkeypatch.setattr(http1, "_MAX_RESPONSE_BYTES", 100)
    reader = read(ENDLESS)
    with pytest.raises(InvalidResponseError):
        reader.feed(b"x" * 100)


async def test_a_body_that_ends_with_the_connection():
    assert read(ENDLESS).response is None
    reader = read(ENDLESS, ends=True)
    assert await reader.response.read() == b"until the end"
    assert reader.response.content_type == "text/plain"
    assert not reader.is_reusable


@pytest.mark.parametrize("sent", [
    SHORT[:-1],
    CHUNKED + b"5\r\nabc",
    CHUNKED + b"1\r\nx\r\n0\r\n",
    OK,
], ids=["length", "chunk", "last chunk", "head"])  # fmt: skip
def test_a_response_that_is_cut_is_not_taken_for_a_whole_one(sent):
    assert read(sent, ends=True).response is None


@pytest.mark.parametrize("sent", [
    b"SSH-2.0-OpenSSH\r\n\r\n",
    b"HTTP/2 200 OK\r\n\r\n",
    b"HTTP/1.1 2 OK\r\n\r\n",
    OK + b"Content-Length: -1\r\n\r\n",
    OK + b"Content-Length: two\r\n\r\n",
    OK + b"Transfer-Encoding: gzip\r\n\r\n",
    CHUNKED + b"-1\r\n\r\n",
    CHUNKED + b"xyz\r\n\r\n",
    CHUNKED + b"\r\n\r\n",
    b"x" * 70_000,
])  # fmt: skip
def test_what_is_not_a_response(sent):
    with pytest.raises(InvalidResponseError):
        read(sent)


class Scripted(asyncio.Protocol):
    """Answers each request with the next bytes; None closes the connection, "wait" answers nothing."""

    def __init__(self, answers, connections):
        self.answers, self.connections = answers, connections

    def connection_made(self, transport):
        self.transport = transport
        self.connections.append(self)

    def data_received(self, data):
        for _ in range(data.count(b"HTTP/1.1")):
            found = self.answers.pop(0)
            if found is None:
                self.transport.abort()
            elif found != "wait":
                self.transport.write(found)
                if found is ENDLESS:
                    self.transport.close()


@contextlib.asynccontextmanager
async def pool_for(*answers, clock=lambda: 0.0):
    """A pool for a server with these answers, and the server's ends of its connections."""
    connections = []
    server = await asyncio.get_running_loop().create_server(
        lambda: Scripted(list(answers) if not connections else connections[0].answers, connections), "127.0.0.1", 0
    )
    pool = ConnectionPool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", clock=clock)
    try:
        yield pool, connections
    finally:
        pool.close()
        server.close()
        await server.wait_closed()


async def exchange(pool, *, is_idempotent=False, timeout=5):  # noqa: ASYNC109
    response = await pool.exchange(REQUEST, None, timeout, is_idempotent=is_idempotent)
    return response.status, await response.read()


async def lost(pool):
    """Return when no connection is open."""
    while pool._open:  # noqa: ASYNC110 (asyncio closes connections in later iterations)
        await asyncio.sleep(0)


async def test_requests_one_after_another_share_a_connection():
    async with pool_for(SHORT, SHORT, SHORT) as (pool, _):
        for _ in range(3):
            assert await exchange(pool) == (200, b"{}")
        assert pool.n_opened == 1


async def test_concurrent_requests_use_no_more_connections_than_allowed(monkeypatch):
    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 3)
    async with pool_for(*[SHORT] * 20) as (pool, connections):
        await asyncio.gather(*(exchange(pool) for _ in range(20)))
        assert pool.n_opened == len(connections) == 3


async def test_no_free_connection_in_time(monkeypatch):
    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 1)
    async with pool_for("wait", SHORT) as (pool, connections):
        first = asyncio.create_task(exchange(pool))
        while not connections or connections[0].answers != [SHORT]:  # noqa: ASYNC110 (the request has not arrived)
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await exchange(pool, timeout=0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await exchange(pool) == (200, b"{}")


async def test_a_connection_that_was_idle_for_long_is_not_used_again():
    now = [0.0]
    async with pool_for(SHORT, SHORT, clock=lambda: now[0]) as (pool, _):
        await exchange(pool)
        now[0] = http1.MAX_IDLE_SECONDS
        await exchange(pool)
        assert pool.n_opened == 2


@pytest.mark.parametrize("first", [OK + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}", ENDLESS, SHORT + b"x"])
async def test_a_connection_that_the_server_ends_is_not_used_again(first):
    async with pool_for(first, SHORT) as (pool, _):
        assert (await exchange(pool))[0] == 200
        assert await exchange(pool) == (200, b"{}")
        assert pool.n_opened == 2


async def test_a_connection_closed_while_idle_is_not_used_again():
    async with pool_for(SHORT, SHORT) as (pool, connections):
        await exchange(pool)
        connections[0].transport.close()
        await lost(pool)
        assert await exchange(pool) == (200, b"{}")
        assert pool.n_opened == 2


async def test_data_that_nothing_asked_for_ends_the_connection():
    async with pool_for(SHORT, SHORT) as (pool, connections):
        await exchange(pool)
        connections[0].transport.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        await lost(pool)
        assert await exchange(pool) == (200, b"{}")


async def test_a_request_that_meets_a_closed_connection_is_sent_again_only_if_idempotent():
    async with pool_for(SHORT, None, SHORT, None) as (pool, _):
        await exchange(pool)
        assert await exchange(pool, is_idempotent=True) == (200, b"{}")
        with pytest.raises(ConnectionError):
            await exchange(pool)


async def test_a_request_is_not_sent_again_on_a_new_connection():
    async with pool_for(None) as (pool, connections):
        with pytest.raises(ConnectionError):
            await exchange(pool, is_idempotent=True)
        assert len(connections) == 1


async def test_a_response_that_is_cut():
    cut = OK + b"Content-Length: 20\r\nConnection: close\r\n\r\n{"

    class Cutting(Scripted):
        def data_received(self, data):
            self.transport.write(cut)
            self.transport.close()

    server = await asyncio.get_running_loop().create_server(lambda: Cutting([], []), "127.0.0.1", 0)
    pool = ConnectionPool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server:
        with pytest.raises(ResponseCutError):
            await exchange(pool)
    pool.close()


async def test_no_response_in_time_ends_the_connection():
    async with pool_for(SHORT, "wait", "wait", SHORT) as (pool, _):
        await exchange(pool)
        for _ in range(2):  # on a connection that was open, and on a new one
            with pytest.raises(TimeoutError):
                await exchange(pool, timeout=0.01)
        assert await exchange(pool) == (200, b"{}")
        assert pool.n_opened == 3


async def test_a_cancelled_request_ends_its_connection():
    async with pool_for("wait", SHORT) as (pool, connections):
        task = asyncio.create_task(exchange(pool))
        while not connections or connections[0].answers != [SHORT]:  # noqa: ASYNC110 (the request has not arrived)
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await exchange(pool) == (200, b"{}")
        assert pool.n_opened == 2


async def test_what_is_not_http_ends_the_connection():
    async with pool_for(b"SSH-2.0\r\n\r\n", SHORT) as (pool, _):
        with pytest.raises(InvalidResponseError):
            await exchange(pool)
        assert await exchange(pool) == (200, b"{}")


async def test_no_server():
    async with pool_for() as (pool, _):
        pass
    with pytest.raises(ConnectFailedError):
        await exchange(pool)
    assert not pool._open
