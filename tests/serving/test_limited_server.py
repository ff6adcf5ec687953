"""Clients that are slow, idle or too many, against a real server on loopback."""

import asyncio
import contextlib
import gc

import pytest
from aiohttp import web

from bayplan.errors import InputError
from bayplan.serving import limited_server
from bayplan.serving.limited_server import LimitedServer, ServerLimits

QUICK = ServerLimits(connections=4, request_seconds=0.05, idle_seconds=0.1)
PATIENT = ServerLimits(connections=4, request_seconds=60.0, idle_seconds=60.0)
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
KNOWN = b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def serving(limits, **how):
    async def answer(request):
        if request.path == "/known":
            server.recognise(request)
        return web.Response(text="hello")

    app = web.Application(client_max_size=1024)
    app.router.add_get("/{path:.*}", answer)
    server = LimitedServer(app, "127.0.0.1", 0, limits, **how)
    try:
        async with server:
            yield server
    finally:
        while CLIENTS:
            CLIENTS.pop().close()


CLIENTS = []


async def connected(server, address="127.0.0.1"):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0))
    CLIENTS.append(writer)
    return reader, writer


async def rest(reader):
    """What still arrives before the connection ends."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def answered(stream, request=REQUEST):
    reader, writer = stream
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(len("hello"))
    return head


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA:"])
async def test_a_header_that_does_not_arrive_ends_the_connection(sent):
    async with serving(QUICK) as server:
        reader, writer = await connected(server)
        writer.write(sent)
        assert await rest(reader) == b""
        assert server.closed == {limited_server.SLOW: 1}
        assert server.connections == 0


async def test_a_header_that_arrives_byte_by_byte_has_no_more_time():
    async with serving(QUICK) as server:
        reader, writer = await connected(server)
        with contextlib.suppress(ConnectionError):
            for byte in REQUEST * 100:
                if server.closed:
                    break
                writer.write(bytes([byte]))
                await asyncio.sleep(0.01)
        assert await rest(reader) == b""
        assert server.closed == {limited_server.SLOW: 1}


async def test_an_idle_connection_ends():
    async with serving(QUICK) as server:
        stream = await connected(server)
        await answered(stream)
        assert await rest(stream[0]) == b""
        assert server.closed == {limited_server.IDLE: 1}


async def test_at_the_limit_the_oldest_unknown_connection_is_closed_for_a_new_one():
    async with serving(PATIENT) as server:
        known = await connected(server)
        await answered(known, KNOWN)
        idle = [await connected(server) for _ in range(3)]
        for _ in range(50):  # more than are allowed, none of which ever asks for anything
            idle.append(await connected(server))
            await answered(await connected(server))
        assert server.connections <= PATIENT.connections
        assert await rest(idle[0][0]) == b""
        await answered(known, KNOWN)
        assert server.closed[limited_server.LIMIT] >= 50


async def test_connections_come_and_go_at_the_cost_of_their_own_address():
    async with serving(PATIENT) as server:
        slow = await connected(server)
        slow[1].write(REQUEST[:-2])
        for _ in range(50):
            await connected(server, "127.0.0.2")
            await connected(server, "127.0.0.3")
        assert server.connections == PATIENT.connections
        slow[1].write(REQUEST[-2:])
        assert b"200 OK" in await slow[0].readuntil(b"\r\n\r\n")


async def test_a_new_connection_waits_while_all_others_are_known_and_busy():
    async with serving(PATIENT) as server:
        known = [await connected(server) for _ in range(4)]
        for stream in known:
            await answered(stream, KNOWN)
            stream[1].write(KNOWN[:-2])  # the next request has begun
        while any(one.idle for one in server._recognised):  # noqa: ASYNC110
            await asyncio.sleep(0)
        new = await connected(server)
        waiting = asyncio.create_task(answered(new))
        for stream in known[:2]:
            stream[1].write(KNOWN[-2:])
            await stream[0].readuntil(b"hello")
        await waiting
        assert server.closed[limited_server.LIMIT] == 1  # the connection that was idle again
        stream = known[2]
        stream[1].write(KNOWN[-2:])
        await stream[0].readuntil(b"hello")


async def test_unknown_connections_end_after_the_response_where_that_is_wanted():
    async with serving(PATIENT, close_strangers=True) as server:
        stream = await connected(server)
        assert b"Connection: close" in await answered(stream)
        assert await rest(stream[0]) == b""
        known = await connected(server)
        assert b"Connection: close" not in await answered(known, KNOWN)
        await answered(known, KNOWN)


async def test_no_descriptor_stays_open():
    async with serving(PATIENT) as server:
        streams = [await connected(server) for _ in range(40)]
        for _, writer in streams:
            writer.close()
        for reader, _ in streams:
            await rest(reader)
    gc.collect()  # an unclosed socket would be reported here, which fails the test


def test_a_quarter_of_the_descriptors_is_the_most(monkeypatch):
    monkeypatch.setattr(limited_server.resource, "getrlimit", lambda _which: (100, 1000))
    assert ServerLimits(connections=64, idle_seconds=1.0).max_connections() == 25
    assert ServerLimits(connections=10, idle_seconds=1.0).max_connections() == 10


async def test_a_port_in_use_is_reported():
    async with serving(PATIENT) as server:
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{server.port}: Address already in use"):
            async with LimitedServer(web.Application(), "127.0.0.1", server.port, PATIENT):
                pass
