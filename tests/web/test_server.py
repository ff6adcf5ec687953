"""What the server answers, to whom, and what it refuses."""

import asyncio
import json
import socket
import time
from pathlib import Path

import aiohttp
import pytest

import document_schemas
from bayplan.web import access, serving
from bayplan.web.access import AccessRules

from . import pages

EXAMPLE = "examples/01-first-pod"
FLEET = "examples/10-fleet-idc-first/fleet"
CLUSTER = Path(EXAMPLE, "cluster.yaml").read_text(encoding="utf-8")
JSON = {"Content-Type": "application/json"}
EVIL = '<img src=x onerror="alert(1)">\u202etxt.exe'


@pytest.fixture(scope="module")
def url():
    with pages.served(pages.manifests(EXAMPLE)) as found:
        yield found


@pytest.fixture(scope="module")
def fleet():
    with pages.served(pages.manifests(FLEET, "examples/10-fleet-idc-first/shop-30.yaml")) as found:
        yield found


async def asked(url, path, body=None, method=None, **headers):
    """The status, the headers and the document of an answer."""
    async with aiohttp.ClientSession() as session:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        sent = {**(JSON if body is not None else {}), **headers}
        how = method or ("GET" if body is None else "POST")
        async with session.request(how, f"{url}{path}", data=data, headers=sent) as response:
            text = await response.read()
            found = json.loads(text) if response.content_type == "application/json" and text else text
            if isinstance(found, dict):
                document_schemas.check(found)
            return response.status, response.headers, found


async def test_the_state_has_every_node_and_pod(url):
    status, _, found = await asked(url, "api/v1/state")
    assert (status, found["apiVersion"], found["kind"], found["revision"]) == (
        200,
        "bayplan.io/v1alpha1",
        "ClusterState",
        1,
    )
    assert [node["name"] for node in found["nodes"]] == ["node-a1", "node-b1", "node-b2", "node-c1", "node-c2"]
    pods = dict(zip(found["pods"]["name"], found["pods"]["node"], strict=True))
    assert pods == {"cache-1": 0, "report-1": 2, "web-1": -1, "web-2": -1, "web-3": -1, "web-4": -1}
    assert found["sets"]["labels"][found["pods"]["labels"][0]] == {"app": "cache"}
    assert found["notes"] == ["4 pods were created for controllers whose pods are not in the input"]


async def test_a_state_that_is_known_is_not_sent_again(url):
    _, headers, _ = await asked(url, "api/v1/state")
    status, _, content = await asked(url, "api/v1/state", **{"If-None-Match": headers["ETag"]})
    assert (status, content) == (304, b"")


@pytest.mark.parametrize("what_if, moved, waiting, gone", [
    ({},                                  {"shop/web-1": "node-a1", "shop/web-2": "node-c1", "shop/web-3": "node-b1"}, ["shop/web-4"], []),
    ({"lose": ["node/node-a1"]},          {"shop/web-1": "node-c1", "shop/web-2": "node-b1"}, ["shop/web-3", "shop/web-4"], ["shop/cache-1"]),
    ({"addNodeLike": ["node-a1"]},        {"shop/web-1": "node-a1-more", "shop/web-2": "node-a1", "shop/web-3": "node-c1", "shop/web-4": "node-b1"}, [], []),
    ({"cordon": ["topology.kubernetes.io/zone=zone-b"]}, {"shop/web-1": "node-a1", "shop/web-2": "node-c1"}, ["shop/web-3", "shop/web-4"], []),
])  # fmt: skip
async def test_a_what_if_tells_what_moves_waits_and_goes(url, what_if, moved, waiting, gone):
    status, _, found = await asked(url, "api/v1/place", {"whatIf": what_if})
    pods = found["pods"]
    assert status == 200
    assert {one["pod"]: one["to"] for one in pods["moved"]} == moved
    assert [one["pod"] for one in pods["waiting"]] == waiting
    assert [one["pod"] for one in pods["gone"]] == gone
    assert found["ok"] is (not waiting and not gone)


async def test_the_answers_agree_with_the_library(url):
    import bayplan

    plan = bayplan.Cluster.from_manifests(EXAMPLE).lose("node/node-a1").place()
    _, _, found = await asked(url, "api/v1/place", {"whatIf": {"lose": ["node/node-a1"]}})
    assert {one["pod"]: one["to"] for one in found["pods"]["moved"]} == {
        key: one.node for key, one in plan.pods.items() if one.node
    }
    explained = bayplan.Cluster.from_manifests(EXAMPLE).explain("pod/web-4").to_dict()
    _, _, document = await asked(url, "api/v1/explain", {"namespace": "shop", "name": "web-4"})
    document = document["explanation"]
    assert document["verdicts"] == explained["verdicts"]
    assert [one["change"] for one in document["fixes"]] == [one["change"] for one in explained["fixes"]]


async def test_an_explanation_has_raw_scores_weights_and_peers(url):
    _, _, found = await asked(url, "api/v1/explain", {"namespace": "shop", "name": "web-1"})
    verdicts = found["explanation"]["verdicts"]
    assert found["explanation"]["target"] == "node-a1"
    affinity = next(one for one in found["rules"] if one["rule"] == "pod-affinity")
    assert affinity["weight"] == 2
    assert affinity["raw"]["node-a1"] > affinity["raw"]["node-b1"]
    scores = verdicts["node-a1"]["scores"]
    assert set(scores) == {one["name"] for one in found["rules"]}
    assert sum(scores.values()) == verdicts["node-a1"]["score"]
    attracting = [one for one in found["relations"] if one["effect"] == "attracts"]
    assert [(one["peers"], one["weight"], one["ofPeer"]) for one in attracting] == [(["shop/cache-1"], 100, False)]


async def test_a_hypothetical_manifest_is_placed_and_explained(url):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "new", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    for manifest in (
        pod,
        json.dumps(pod),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: new, namespace: shop}\nspec: {containers: [{name: c, image: x}]}\n",
    ):
        _, _, found = await asked(url, "api/v1/place", {"whatIf": {"apply": [manifest]}})
        new = next(one for one in found["pods"]["moved"] if one["pod"] == "shop/new")
        assert new["new"] is True
        assert new["to"]
        _, _, why = await asked(
            url, "api/v1/explain", {"namespace": "shop", "name": "new", "whatIf": {"apply": [manifest]}}
        )
        assert why["explanation"]["target"] == new["to"]
    status, _, _ = await asked(url, "api/v1/explain", {"namespace": "shop", "name": "new"})
    assert status == 400  # nothing of it is left


async def test_the_manifests_of_a_fix_can_be_tried(url):
    _, _, fixed = await asked(url, "api/v1/fix", {"namespace": "shop", "name": "web-4", "fix": 1})
    assert fixed["deleted"] == []
    _, _, found = await asked(url, "api/v1/place", {"whatIf": {"apply": fixed["manifests"]}})
    assert found["pods"]["waiting"] == []
    # The pod is created by a rollout now.
    _, _, why = await asked(
        url, "api/v1/explain", {"namespace": "shop", "name": "web-4", "whatIf": {"apply": fixed["manifests"]}}
    )
    assert why["explanation"]["target"] == next(
        one["to"] for one in found["pods"]["moved"] if one["pod"] == "shop/web-4"
    )


@pytest.mark.parametrize("path, body, expected", [
    ("api/v1/place", {"whatIf": {"lose": ["node/nope"]}}, "there is no such node"),
    ("api/v1/place", {"whatIf": {"loose": []}}, "unknown field `loose`"),
    ("api/v1/place", {"whatIf": {"lose": "node/a"}}, "Expected `array`"),
    ("api/v1/place", b"[1,", "the body of the request"),
    ("api/v1/place", b"[" * 100_000, "the body of the request"),
    ("api/v1/place", {"whatIf": {"apply": ["apiVersion: v1\nkind: Pod\nmetadata: {name: A_B}\n"]}}, "metadata.name"),
    ("api/v1/place", {"whatIf": {"apply": [": : :"]}}, "objects"),
    ("api/v1/place", {"whatIf": {"lose": ["node/x"] * 5001}}, "length <= 5000"),
    ("api/v1/place", {"whatIf": {"recover": ["cluster/x"]}}, "in fleets"),
    ("api/v1/explain", {"namespace": "shop", "name": "nope"}, "no pod of shop/nope is in the input"),
    ("api/v1/explain", {"name": "web-1"}, "missing required field `namespace`"),
    ("api/v1/fix", {"namespace": "shop", "name": "web-4", "fix": 99}, "there is no fix 99"),
    ("api/v1/scale", {"namespace": "shop", "name": "web", "replicas": [1]}, "in fleets"),
])  # fmt: skip
async def test_a_bad_question_is_answered_with_what_is_wrong(url, path, body, expected):
    status, _, found = await asked(url, path, body)
    assert (status, found["kind"]) == (400, "Error")
    assert expected in found["message"]


@pytest.mark.parametrize("path, method, status", [
    ("nope",                 "GET",     404),
    ("api/v1/nope",          "GET",     404),
    ("api/v2/state",         "GET",     404),
    ("assets/../access.py",  "GET",     404),
    ("assets/%2e%2e/access.py", "GET",  404),
    ("assets/nope.js",       "GET",     404),
    ("api/v1/state",         "POST",    405),
    ("api/v1/place",         "GET",     405),
    ("api/v1/place",         "DELETE",  405),
    ("",                     "POST",    405),
    ("api/v1/place",         "POST",    415),
    ("",                     "HEAD",    200),
    ("api/v1",               "GET",     200),
])  # fmt: skip
async def test_unknown_paths_and_methods_are_refused(url, path, method, status):
    found, headers, _ = await asked(url, path, method=method)
    assert found == status
    assert set(access.HEADERS.items()) <= set(headers.items())


async def test_a_large_body_is_refused(url):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[2].strip("/")))
    body = json.dumps({"whatIf": {"apply": ["x" * serving.MAX_BODY_BYTES]}}).encode()
    head = f"POST /api/v1/place HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 30)
    writer.close()


@pytest.mark.parametrize("headers, status", [
    ({"Host": "localhost"},                         200),
    ({"Host": "127.0.0.1:9"},                       200),  # behind a forwarded port
    ({"Host": "[::1]:9"},                           200),
    ({"Host": "evil.example"},                      421),  # DNS rebinding
    ({"Host": "evil.example:80"},                   421),
    ({"Host": "127.0.0.1.evil.example"},            421),
    ({"Host": "localhost.evil.example"},            421),
    ({"Host": "10.0.0.1"},                          421),
    ({"Host": "[::1"},                              421),
    ({"Host": ""},                                  421),
    ({"Host": "localhost", "Origin": "http://localhost"},      200),
    ({"Host": "localhost", "Origin": "http://evil.example"},   403),
    ({"Host": "localhost", "Origin": "http://localhost:81"},   403),
    ({"Host": "localhost", "Origin": "null"},                  403),
    ({"Host": "localhost", "Sec-Fetch-Site": "cross-site"},    403),
    ({"Host": "localhost", "Sec-Fetch-Site": "same-site"},     403),
    ({"Host": "localhost", "Sec-Fetch-Site": "same-origin"},   200),
])  # fmt: skip
async def test_requests_of_other_sites_are_refused(url, headers, status):
    found, _, content = await asked(url, "api/v1/state", **headers)
    assert found == status
    assert (content["kind"] == "ClusterState") is (status == 200)


async def test_every_answer_needs_the_token_and_the_page_itself_does_not():
    rules = AccessRules(is_loopback=False, names=frozenset({"page.example"}), token="secret")
    with pages.served(pages.manifests(EXAMPLE), rules=rules) as url:
        for path in ("api/v1", "api/v1/state", "api/v1/violations", "api/v1/events", "api/v1/nope"):
            assert (await asked(url, path))[0] == 401
            assert (await asked(url, path, Authorization="Bearer wrong"))[0] == 401
            assert (await asked(url, path, Authorization="Basic secret"))[0] == 401
        assert (await asked(url, "api/v1/place", {}))[0] == 401
        assert (await asked(url, "api/v1/state", Authorization="Bearer secret"))[0] == 200
        assert (await asked(url, ""))[0] == 200
        assert (await asked(url, "assets/app.js"))[0] == 200
        assert (await asked(url, "api/v1/state", Authorization="Bearer secret", Host="10.0.0.1"))[0] == 200
        assert (await asked(url, "api/v1/state", Authorization="Bearer secret", Host="PAGE.example:1"))[0] == 200
        assert (await asked(url, "api/v1/state", Authorization="Bearer secret", Host="evil.example"))[0] == 421


def test_the_page_loads_every_module_at_once():
    """A module that is missing from the head would be loaded only after those that import it."""
    from bayplan.web import assets_table

    found = assets_table.by_path()
    modules = {path for path in found if path.endswith(".js")}
    assert {path for path in modules if path in found["/"].content.decode()} == modules


@pytest.mark.parametrize("host, loopback", [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("", False), ("::", False), ("host.example", False), ("10.0.0.1", False),
])  # fmt: skip
def test_only_loopback_needs_no_token(host, loopback):
    assert access.is_loopback(host) is loopback


async def test_no_file_of_the_page_loads_anything_from_elsewhere_or_makes_markup_of_text(url):
    from bayplan.web import assets_table

    for path, asset in assets_table.by_path().items():
        text = asset.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
            assert word not in text, (path, word)
        status, headers, _ = await asked(url, path.removeprefix("/"))
        assert (status, headers["Content-Type"]) == (200, asset.content_type)
    assert "script-src 'self'" in access.HEADERS["Content-Security-Policy"]
    assert "unsafe" not in access.HEADERS["Content-Security-Policy"]


async def test_a_client_that_sends_its_body_slowly_is_let_go_and_others_are_answered(url, monkeypatch):
    monkeypatch.setattr(serving, "BODY_SECONDS", 0.3)
    port = int(url.split(":")[2].strip("/"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /api/v1/place HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    writer.write(head.encode())
    assert (await asked(url, "api/v1/place", {}))[0] == 200
    answered = await asyncio.wait_for(reader.read(), 10)
    assert b" 408 " in answered.splitlines()[0]
    writer.close()


async def test_a_client_that_sends_its_header_slowly_is_let_go(url, monkeypatch):
    port = int(url.split(":")[2].strip("/"))
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        slow.settimeout(20)
        started = time.monotonic()
        assert await asyncio.to_thread(slow.recv, 1) == b""
        assert time.monotonic() - started < 15
    assert (await asked(url, "api/v1/state"))[0] == 200


async def test_more_questions_than_can_wait_are_refused(url):
    found = await asyncio.gather(
        *(asked(url, "api/v1/place", {"whatIf": {"lose": ["node/node-a1"]}}) for _ in range(60))
    )
    assert {status for status, _, _ in found} <= {200, 503}
    assert [status for status, _, _ in found].count(200) >= serving.MAX_QUESTIONS
    assert (await asked(url, "api/v1/place", {}))[0] == 200


async def test_labels_are_data_in_the_documents(tmp_path):
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "labels": {"evil": EVIL, "long": "x" * 2**20}},
        "status": {"allocatable": {"cpu": "1", "pods": "9"}},
    }
    (tmp_path / "state.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}), encoding="utf-8"
    )
    with pages.served(pages.state(tmp_path / "state.json")) as url:
        _, headers, found = await asked(url, "api/v1/state")
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert found["nodes"][0]["labels"]["evil"] == EVIL
    assert len(found["nodes"][0]["labels"]["long"]) == 2**20


async def test_a_fleet_has_its_clusters_bindings_and_replicas(fleet):
    _, _, found = await asked(fleet, "api/v1/state")
    assert found["kind"] == "FleetState"
    assert [one["name"] for one in found["clusters"]] == ["cloud-1", "cloud-2", "idc-1", "idc-2"]
    (binding,) = found["bindings"]
    assert (binding["template"], binding["replicas"], binding["clusters"]) == ("shop", 30, {})
    _, _, placed = await asked(fleet, "api/v1/place", {})
    assert placed["bindings"][0]["clusters"] == {"idc-1": 12, "idc-2": 8, "cloud-1": 10}
    name = {"namespace": "shop", "name": binding["name"]}
    _, _, scaled = await asked(fleet, "api/v1/scale", {**name, "replicas": [3, 30]})
    assert [sum(one["clusters"].values()) for one in scaled["steps"]] == [3, 30]
    _, _, why = await asked(fleet, "api/v1/explain", name)
    assert {cluster: one["tier"] for cluster, one in why["explanation"]["verdicts"].items() if one["fits"]} == {
        "idc-1": 0,
        "idc-2": 0,
        "cloud-1": 1,
    }
    _, _, lost = await asked(fleet, "api/v1/place", {"whatIf": {"lose": ["cluster/idc-1"]}})
    assert "idc-1" not in lost["bindings"][0]["clusters"]


@pytest.mark.parametrize("body, expected", [
    ({"whatIf": {"cordon": ["node/a"]}}, "in clusters: this is a fleet"),
    ({"whatIf": {"lose": ["cluster/nope"]}}, "nope"),
])  # fmt: skip
async def test_a_bad_question_about_a_fleet_is_refused(fleet, body, expected):
    status, _, found = await asked(fleet, "api/v1/place", body)
    assert status == 400
    assert expected in found["message"]


async def test_a_change_of_a_file_is_told_and_shown(tmp_path):
    file = tmp_path / "cluster.yaml"
    whole = CLUSTER
    file.write_text(whole, encoding="utf-8")
    with pages.served(pages.state(file), follows=True) as url:
        async with aiohttp.ClientSession() as session, session.get(f"{url}api/v1/events") as events:
            assert await _event(events) == {"revision": 1, "trouble": ""}
            file.write_text("not: [yaml", encoding="utf-8")
            told = await _event(events)
            assert told["revision"] == 1
            assert "cluster.yaml" in told["trouble"]
            assert len((await asked(url, "api/v1/state"))[2]["nodes"]) == 5  # the last state that could be read
            file.write_text(whole.replace("node-c2", "node-d9"), encoding="utf-8")
            while (told := await _event(events))["trouble"]:
                pass
            assert told["revision"] > 1
            assert "node-d9" in [node["name"] for node in (await asked(url, "api/v1/state"))[2]["nodes"]]


async def _event(events):
    while True:
        line = await asyncio.wait_for(events.content.readline(), 30)
        if line.startswith(b"data: "):
            return json.loads(line[6:])
