"""A script is played as written. These tests need no real server."""

import asyncio
import contextlib
import json

import aiohttp
import pytest

from live.admin import Admin, ApiError
from live.scripted_server import (
    CUT,
    STALL,
    ScriptedServer,
    answer,
    bookmark,
    error_event,
    event,
    gone,
    hang_up_at_once,
    page,
    rejection,
    slowly,
    stream,
)

PODS = "/api/v1/pods"


@pytest.fixture
async def client(scripted_server, credentials):
    async with Admin(scripted_server.url, token="secret", ca_file=credentials.ca_file) as client:
        yield client


def named(name):
    return {"metadata": {"name": name}}


async def events_of(client):
    return [event["type"] async for event in client.watch("pods")]


async def test_a_list_expires_between_pages(scripted_server, client):
    scripted_server.on("GET", PODS, page("Pod", [named("a")], "7", token="more", left=1), gone())
    first = await client.list("pods", limit=1)
    assert first["metadata"] == {"resourceVersion": "7", "continue": "more", "remainingItemCount": 1}
    with pytest.raises(ApiError) as rejected:
        await client.list("pods", limit=1, **{"continue": "more"})
    assert (rejected.value.status, rejected.value.body["reason"]) == (410, "Expired")
    assert [seen.query for seen in scripted_server.requests] == [{"limit": "1"}, {"limit": "1", "continue": "more"}]
    assert scripted_server.requests[0].headers["authorization"] == "Bearer secret"
    assert not scripted_server.unplayed


async def test_a_rejection_has_a_retry_after_header(scripted_server, client):
    scripted_server.on("GET", PODS, rejection(429, "TooManyRequests", "later", retry_after=3))
    async with client._session.get(scripted_server.url + PODS) as rejected:
        assert (rejected.status, rejected.headers["Retry-After"]) == (429, "3")


async def test_a_watch_ends_normally(scripted_server, client):
    lines = [event("ADDED", named("a")), bookmark("Pod", "9"), error_event(410, "Expired")]
    scripted_server.on("GET", PODS, stream(*lines))
    assert await events_of(client) == ["ADDED", "BOOKMARK", "ERROR"]


async def test_a_watch_is_cut_within_a_line(scripted_server, client):
    scripted_server.on("GET", PODS, stream(event("ADDED", named("a")), ending=CUT))
    events = client.watch("pods")
    assert (await anext(events))["type"] == "ADDED"
    with pytest.raises((aiohttp.ClientError, json.JSONDecodeError)):
        await anext(events)


async def test_a_watch_stalls(scripted_server, client):
    scripted_server.on("GET", PODS, stream(event("ADDED", named("a")), ending=STALL))
    async with contextlib.aclosing(client.watch("pods")) as events:
        assert (await anext(events))["type"] == "ADDED"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await anext(events)


async def test_a_line_may_be_huge(scripted_server, client):
    scripted_server.on("GET", PODS, stream(event("ADDED", {"data": "x" * (1 << 21)})))
    async with contextlib.aclosing(client.watch("pods")) as events:
        assert len((await anext(events))["object"]["data"]) == 1 << 21


async def test_a_response_is_sent_byte_by_byte(scripted_server, client):
    scripted_server.on("GET", PODS, slowly({"items": []}, pause=0.001))
    assert await client.list("pods") == {"items": []}


async def test_the_connection_is_closed_without_a_response(scripted_server, client):
    scripted_server.on("POST", PODS, hang_up_at_once())
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.request("POST", PODS, {})


async def test_the_default_step_is_played_after_the_others(scripted_server, client):
    scripted_server.always("GET", PODS, answer({"items": [1]}))
    scripted_server.on("GET", PODS, answer({"items": [0]}))
    assert [await client.items("pods") for _ in range(3)] == [[0], [1], [1]]


async def test_a_request_outside_the_script_is_recorded():
    with ScriptedServer() as server:
        async with Admin(server.url, token="secret") as client:
            with pytest.raises(ApiError, match="no step is left for GET /api/v1/pods"):
                await client.list("pods")
        assert [seen.path for seen in server.surprises] == [PODS]
