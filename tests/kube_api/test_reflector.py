import asyncio
import collections
import contextlib
import gc
import random

import pytest
from aiohttp import web

from bayplan.kube_api import errors
from bayplan.kube_api.listing import Selection
from bayplan.kube_api.reflector import Reflector
from bayplan.kube_api.resources import PODS
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod
from kube_api.fake_time import SkippedTime
from kube_api.scripted import bookmark, connected, error_response, event, gone, page, pod, watch, watch_error

UNDECODABLE = pod("undecodable", 5, priority="high")
DEEP_LINE = (
    b'{"type":"ADDED","object":{"metadata":{"namespace":"shop","name":"deep","uid":"u","resourceVersion":"105"},"x":'
    + b"[" * 9000
    + b"]" * 9000
    + b"}}\n"
)


class RecordingHandler:
    """Records the calls of a handler in order."""

    def __init__(self):
        self.log = []

    def upsert(self, obj):
        self._note(f"{obj.metadata.name}@{obj.metadata.resource_version}")

    def delete(self, key, uid):
        self._note(f"-{key.name} {uid}")

    def undecodable(self, found):
        self._note(f"?{found.key.name}: {found.error}")

    def synced(self):
        self._note("synced")

    def _note(self, text):
        self.log.append(text)


class Scene:
    def __init__(self, connection, time, **settings):
        self.handler, self.trouble, self.time = RecordingHandler(), [], time
        self.reflector = Reflector(
            connection,
            PODS,
            settings.pop("item_type", Pod),
            self.handler,
            on_trouble=self.trouble.append,
            clock=time.clock,
            sleep=time.sleep,
            random=random.Random(7),
            **settings,
        )


@contextlib.asynccontextmanager
async def following(server, kubeconfig, n_requests, **settings):
    """A reflector that runs until the script is at its end: the last request of `n_requests` hangs."""
    time = SkippedTime()
    async with connected(kubeconfig, clock=time.clock, sleep=time.sleep) as connection:
        scene = Scene(connection, time, **settings)
        running = asyncio.create_task(scene.reflector.run())
        asked = asyncio.create_task(server.asked(n_requests))
        await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            asked.cancel()
            running.result()
        yield scene
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_lists_then_watches_from_there(server, kubeconfig_for):
    server.then(
        page(pod("a", 1), more="x"),
        page(pod("b", 2), version=100),
        watch(event("ADDED", pod("c", 101)), event("MODIFIED", pod("a", 102)), event("DELETED", pod("b", 103))),
    )
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert scene.handler.log == ["a@1", "b@2", "synced", "c@101", "a@102", "-b uid-b"]
        assert scene.reflector.synced.is_set()
        assert (scene.reflector.lists, scene.reflector.relists, scene.reflector.events) == (1, 0, 3)
        assert scene.reflector.last_resource_version == "103"
        assert len(scene.reflector) == 2
    first, second = server.requests[2:]
    assert first.query["resourceVersion"] == "100"
    assert first.query["allowWatchBookmarks"] == "true"
    assert 300 <= int(first.query["timeoutSeconds"]) <= 600
    assert second.query["resourceVersion"] == "103"
    assert first.query["timeoutSeconds"] != second.query["timeoutSeconds"]
    assert scene.trouble == []


async def test_a_bookmark_moves_the_version_on_without_a_call(server, kubeconfig_for):
    server.then(page(version=100), watch(bookmark(500)))
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == ["synced"]
    assert server.requests[2].query["resourceVersion"] == "500"


async def test_a_broken_watch_is_resumed_from_its_version(server, kubeconfig_for):
    server.then(
        page(version=100), watch(event("ADDED", pod("a", 101)), end="die"), watch(event("ADDED", pod("b", 102)))
    )
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert scene.handler.log == ["synced", "a@101", "b@102"]
        assert scene.reflector.restarts == 2
        assert scene.reflector.lists == 1
        assert "the response ended early; retrying in" in scene.trouble[0]
    assert server.requests[2].query["resourceVersion"] == "101"


async def test_an_inactive_watch_is_restarted(server, kubeconfig_for):
    server.then(page(version=100), watch(event("ADDED", pod("a", 101)), end="silence"))
    async with following(server, kubeconfig_for(server), 3, inactivity=0.05) as scene:
        assert "no response in time" in scene.trouble[0]
    assert server.requests[2].query["resourceVersion"] == "101"


@pytest.mark.parametrize("how", ["event", "answer"])
async def test_a_version_too_old_lists_again_and_finds_what_happened_meanwhile(server, kubeconfig_for, how):
    server.then(
        page(pod("stays", 1), pod("changes", 2), pod("goes", 3), pod("is-replaced", 4)),
        watch(watch_error(410, "Expired")) if how == "event" else gone(),
        page(pod("stays", 1), pod("changes", 7), pod("is-replaced", 8, uid="other"), pod("comes", 9), version=200),
    )
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert scene.handler.log[4:] == [
            "synced",
            "changes@7",
            "-is-replaced uid-is-replaced",
            "is-replaced@8",
            "comes@9",
            "-goes uid-goes",
            "synced",
        ]
        assert (scene.reflector.lists, scene.reflector.relists) == (2, 1)
        assert scene.trouble == []
    assert server.requests[3].query["resourceVersion"] == "200"


@pytest.mark.parametrize("how", ["event", "answer"])
async def test_versions_that_expire_at_once_are_listed_again_with_growing_pauses(server, kubeconfig_for, how):
    for _ in range(6):
        server.then(page(pod("a", 1)))
        server.then(watch(bookmark(101), watch_error(410, "Expired")) if how == "event" else gone())
    async with following(server, kubeconfig_for(server), 13) as scene:
        assert len(scene.time.slept) == 5, "the first time may be a coincidence"
        assert scene.time.slept[0] <= 1
        assert sum(scene.time.slept) > 10
        assert "the version of the last list has expired; listing in" in scene.trouble[0]


async def test_a_version_that_expires_after_a_while_is_listed_again_at_once(server, kubeconfig_for):
    async def later(request):
        scene.time.now += 300
        return await watch(watch_error(410, "Expired"))(request)

    time = SkippedTime()
    server.then(page(), later, page(), later, page(), later, page())
    async with connected(kubeconfig_for(server), clock=time.clock, sleep=time.sleep) as connection:
        scene = Scene(connection, time)
        running = asyncio.create_task(scene.reflector.run())
        await server.asked(8)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert time.slept == []


@pytest.mark.parametrize("version", ["9" * 5000, "-7", "", "1e9"])
async def test_a_version_that_is_no_number_is_taken_as_it_is(server, kubeconfig_for, version):
    server.then(page(version=100), watch(event("ADDED", pod("a", version)), event("ADDED", pod("b", 102))))
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == ["synced", f"a@{version}", "b@102"]


async def test_a_list_that_starts_again_discards_its_first_pages(server, kubeconfig_for):
    server.then(page(pod("a", 1), pod("b", 2), more="x"), gone(), page(pod("b", 2), pod("c", 3)))
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert scene.handler.log == ["a@1", "b@2", "c@3", "-a uid-a", "synced"]


async def test_undecodable_objects_in_a_list_and_in_a_watch(server, kubeconfig_for):
    poisoned_later = pod("a", 101, nodeName=["not", "text"])
    server.then(
        page(pod("a", 1), UNDECODABLE, pod("b", 2)),
        watch(
            event("MODIFIED", poisoned_later) + event("ADDED", pod("c", 102)),
            event("DELETED", {**UNDECODABLE, "metadata": {**UNDECODABLE["metadata"], "resourceVersion": "103"}}),
            event("MODIFIED", pod("a", 104)),
            DEEP_LINE,
            event("ADDED", pod("d", 106)),
        ),
    )
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == [
            "a@1",
            "?undecodable: spec.priority: expected int | null, got str",
            "b@2",
            "synced",
            "?a: spec.nodeName: expected str, got array",
            "c@102",
            "-undecodable uid-undecodable",
            "a@104",
            "?deep: nested too deeply to be decoded",
            "d@106",
        ]
        assert scene.reflector.lists == 1


async def test_the_deletion_of_an_undecodable_object_between_two_watches_is_reported(server, kubeconfig_for):
    server.then(page(pod("a", 1), UNDECODABLE), gone(), page(pod("a", 1)))
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert scene.handler.log[3:] == ["-undecodable uid-undecodable", "synced"]


async def test_an_unchanged_undecodable_object_is_reported_once(server, kubeconfig_for):
    server.then(page(UNDECODABLE), gone(), page(UNDECODABLE))
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert [line.partition(":")[0] for line in scene.handler.log] == ["?undecodable", "synced", "synced"]


async def test_lines_longer_than_any_buffer(server, kubeconfig_for):
    big = pod("big", 101)
    big["metadata"]["annotations"] = {"note": "x" * 900_000}
    server.then(page(), watch(event("ADDED", big) + event("ADDED", pod("small", 102))))
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == ["synced", "big@101", "small@102"]


async def test_a_busy_server_is_retried_after_the_time_in_retry_after(server, kubeconfig_for):
    server.then(page(), error_response(429, "TooManyRequests", Retry_After=17), watch(event("ADDED", pod("a", 101))))
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert scene.handler.log == ["synced", "a@101"]
        assert 17.5 <= scene.time.slept[0] <= 18


async def test_waits_grow_and_start_again_after_a_success(server, kubeconfig_for):
    server.then(page(), *(error_response(503, "ServiceUnavailable") for _ in range(2)), watch(bookmark(5), end="die"))
    async with following(server, kubeconfig_for(server), 5) as scene:
        first, second, third = scene.time.slept
        assert 0.5 <= first <= 1 <= second <= 2
        assert third <= 1
        assert scene.reflector.lists == 1


async def test_after_repeated_failures_at_a_version_it_lists_again(server, kubeconfig_for):
    # So it is after a restore of the store: our version is ahead of the server's own.
    too_large = [error_response(504, "Timeout", "Too large resource version") for _ in range(3)]
    server.then(page(version=900), *too_large, page(version=100))
    async with following(server, kubeconfig_for(server), 6) as scene:
        assert scene.reflector.relists == 1
    assert server.requests[5].query["resourceVersion"] == "100"


async def test_watches_that_end_at_once_are_restarted_with_backoff(server, kubeconfig_for):
    server.then(page(), watch(), watch())
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert len(scene.time.slept) == 2
        assert "the watch ended immediately" in scene.trouble[0]


@pytest.mark.parametrize("code, reason, kind", [
    (401, "Unauthorized", errors.UnauthorizedError),
    (403, "Forbidden", errors.ForbiddenError),
    (404, "NotFound", errors.NotFoundError),
])  # fmt: skip
async def test_before_the_first_list_permanent_errors_are_raised(server, kubeconfig_for, code, reason, kind):
    server.then(error_response(code, reason, "pods is forbidden"))
    with pytest.raises(kind, match="pods is forbidden"):
        async with following(server, kubeconfig_for(server), 9):
            pass


async def test_before_the_first_list_temporary_errors_are_retried(server, kubeconfig_for):
    server.then(error_response(503, "ServiceUnavailable"), page(pod("a", 1)))
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == ["a@1", "synced"]
        assert "503 ServiceUnavailable" in scene.trouble[0]


async def test_errors_are_not_kept_while_it_waits(server, kubeconfig_for, monkeypatch):
    """What is alive for longer than a moment is never looked at by the garbage collection of `bayplan run`."""
    held, sleep = [], SkippedTime.sleep

    async def looking(time, seconds):
        gc.collect()
        held.extend(type(one) for one in gc.get_objects() if isinstance(one, errors.KubeError))
        await sleep(time, seconds)

    monkeypatch.setattr(SkippedTime, "sleep", looking)
    server.then(
        page(),
        error_response(503, "ServiceUnavailable"),
        error_response(403, "Forbidden"),
        error_response(503, "ServiceUnavailable"),
    )
    async with following(server, kubeconfig_for(server), 5) as scene:
        assert len(scene.trouble) == 2  # the third is like the first
    assert held == []


async def test_after_the_first_list_lost_rights_are_retried(server, kubeconfig_for):
    server.then(
        page(pod("a", 1)), error_response(403, "Forbidden"), error_response(403, "Forbidden"), page(pod("a", 2))
    )
    async with following(server, kubeconfig_for(server), 5) as scene:
        assert scene.handler.log == ["a@1", "synced", "a@2", "synced"]
        assert len(scene.trouble) == 1


async def test_a_resource_that_may_be_missing_is_waited_for_and_that_is_told_once(server, kubeconfig_for):
    server.then(*(error_response(404, "NotFound") for _ in range(5)), page(pod("a", 1)))
    async with following(server, kubeconfig_for(server), 7, may_be_missing=True) as scene:
        assert scene.handler.log == ["a@1", "synced"]
        assert len(scene.trouble) == 1
        assert "404 NotFound" in scene.trouble[0]


async def test_a_trouble_that_comes_back_is_told_again(server, kubeconfig_for):
    first, second, third, fourth = (error_response(503, "ServiceUnavailable") for _ in range(4))
    server.then(first, second, page(pod("a", 1)), third, fourth)
    async with following(server, kubeconfig_for(server), 6) as scene:
        assert len([text for text in scene.trouble if "503" in text]) == 2


async def test_metadata_alone(server, kubeconfig_for):
    server.then(page({"metadata": {"name": "a", "resourceVersion": "1"}}), watch(watch_error(410, "Gone")), page())
    settings = {"item_type": ApiObject, "selection": Selection(metadata_only=True)}
    async with following(server, kubeconfig_for(server), 4, **settings) as scene:
        assert scene.handler.log == ["a@1", "synced", "-a ", "synced"]
    assert server.requests[1].headers["Accept"].startswith("application/json;as=PartialObjectMetadata;")


async def test_other_tasks_run_between_objects(server, kubeconfig_for):
    """A handler that takes a while per object, and a clock that shows it: no other task waits for more than a few of them."""
    server.then(page(*(pod(f"p{number}", number + 1) for number in range(100))))
    time, turns = SkippedTime(), []

    class Slow(RecordingHandler):
        def upsert(self, obj):
            time.now += 0.004
            turns.append("object")

    async def bystander():
        while True:
            turns.append("bystander")
            await asyncio.sleep(0)

    async with connected(kubeconfig_for(server)) as connection:
        reflector = Reflector(connection, PODS, Pod, Slow(), clock=time.clock, sleep=time.sleep)
        tasks = [asyncio.create_task(reflector.run()), asyncio.create_task(bystander())]
        await reflector.synced.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    runs = "".join(turn[0] for turn in turns).split("b")
    assert max(map(len, runs)) <= 3
    assert turns.count("object") == 100


async def test_an_exception_of_the_handler_is_raised(server, kubeconfig_for):
    class Broken(RecordingHandler):
        def upsert(self, obj):
            raise KeyError(obj.metadata.name)

    server.then(page(pod("a", 1)))
    async with connected(kubeconfig_for(server)) as connection:
        with pytest.raises(KeyError):
            await Reflector(connection, PODS, Pod, Broken()).run()


@pytest.mark.parametrize("how", ["listed", "watched"])
async def test_other_tasks_run_every_few_objects(server, kubeconfig_for, how):
    """An object takes 4 ms to use here: a hundred of them in one page, or in one piece of a stream, take many turns."""
    pods = [pod(f"p{number}", 200 + number) for number in range(100)]
    if how == "listed":
        server.then(page(*pods))
    else:
        server.then(page(), watch(b"".join(event("ADDED", one) for one in pods), end="silence"))
    time, by_turn = SkippedTime(), collections.Counter()

    async def count_turns():
        while True:
            count_turns.now += 1
            await asyncio.sleep(0)

    count_turns.now = 0
    async with connected(kubeconfig_for(server)) as connection:
        scene = Scene(connection, time)

        def slow(_pod):
            time.now += 0.004
            by_turn[count_turns.now] += 1

        scene.handler.upsert = slow
        tasks = [asyncio.create_task(scene.reflector.run()), asyncio.create_task(count_turns())]
        async with asyncio.timeout(10):
            while by_turn.total() < len(pods):  # noqa: ASYNC110 (the reflector has no event for it)
                await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert max(by_turn.values()) <= 4


async def test_events_of_the_past_are_ignored(server, kubeconfig_for):
    """A pod that was bound is not unbound again, and one that was deleted does not come back."""
    first, bound, second = pod("a", 101), pod("a", 102, nodeName="node"), pod("b", 103)
    server.then(
        page(),
        watch(
            event("ADDED", first),
            event("MODIFIED", bound),
            event("ADDED", second) + event("DELETED", pod("b", 104)),
            event("ADDED", first) + event("MODIFIED", bound) + event("ADDED", second),
            event("DELETED", pod("a", 90, uid="an-earlier-one")),
            bookmark(80),
            event("ADDED", pod("c", 105)),
        ),
    )
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == ["synced", "a@101", "a@102", "b@103", "-b uid-b", "c@105"]
        assert scene.reflector.stale_events == 5
        assert scene.reflector.last_resource_version == "105"
        assert scene.trouble == [
            "pods: ignored the event ADDED of shop/a at version 101: the watch was at version 104 already"
        ]


async def test_a_watch_that_goes_back_in_time_long_after_the_list_leads_to_another_list(server, kubeconfig_for):
    """As after a restore of etcd: the list tells of the past too, and from then on that is the present."""
    clocks = []

    async def later(request):
        clocks[0].now += 100
        return await watch(event("ADDED", pod("b", 50)))(request)

    server.then(page(pod("a", 90)), later, page(pod("a", 40), version=41), watch(event("ADDED", pod("b", 50))))
    time = SkippedTime()
    clocks.append(time)
    async with connected(kubeconfig_for(server), clock=time.clock, sleep=time.sleep) as connection:
        scene = Scene(connection, time)
        running = asyncio.create_task(scene.reflector.run())
        await server.asked(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert scene.handler.log == ["a@90", "synced", "a@40", "synced", "b@50"]


@pytest.mark.parametrize("line", [
    b'{"type": "MODIFIED", "object": {"metad\n',
    b'{"type": 5, "object": {}}\n',
    b"[]\n",
    b"[" * 9000 + b"]" * 9000 + b"\n",
    b'{"kind":' + b"[" * 9000 + b"]" * 9000 + b"}\n",
    b"\xff\xfe\n",
])  # fmt: skip
async def test_after_a_line_that_cannot_be_read_everything_is_listed(server, kubeconfig_for, line):
    server.then(page(pod("a", 1)), watch(event("ADDED", pod("b", 101)), line), page(pod("b", 101), version=110))
    async with following(server, kubeconfig_for(server), 4) as scene:
        assert scene.handler.log == ["a@1", "synced", "b@101", "-a uid-a", "synced"]
        assert len(scene.trouble) == 1
        assert "not a watch event" in scene.trouble[0]


async def test_an_event_of_an_unknown_type_changes_nothing(server, kubeconfig_for):
    server.then(page(), watch(event("FORGOTTEN", pod("a", 101)), event("ADDED", pod("b", 102))))
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == ["synced", "b@102"]


async def test_a_first_list_that_is_cut_off_is_asked_for_again(server, kubeconfig_for):
    cut = web.Response(body=b'{"kind": "PodList", "metadata": {}, "items": [{"meta', content_type="application/json")
    server.then(cut, page(pod("a", 1)))
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert scene.handler.log == ["a@1", "synced"]
        assert "the response is not a list of objects" in scene.trouble[0]


async def test_a_server_cannot_ask_to_be_left_alone_for_ever(server, kubeconfig_for):
    server.then(error_response(503, "ServiceUnavailable", retry_after=10**9), page())
    async with following(server, kubeconfig_for(server), 3) as scene:
        assert max(scene.time.slept) <= 61
