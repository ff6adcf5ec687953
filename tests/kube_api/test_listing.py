import pytest

import listed
from bayplan.errors import ClusterError
from bayplan.kube_api import decoding, errors, listing
from bayplan.kube_api.decoding import Key
from bayplan.kube_api.listing import Restarted, Selection
from bayplan.kube_api.resources import PODS, Resource
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod
from kube_api.scripted import answer, connected, gone, page, pod


async def page_names(kubeconfig, *args, **settings):
    """The names on each page; `again` where the list started again."""
    async with connected(kubeconfig) as connection:
        pages = listing.pages(connection, PODS, Pod, *args, **settings)
        return [
            "again" if isinstance(found, Restarted) else [item.metadata.name for item in found.items]
            async for found in pages
        ]


async def test_pages_follow_one_another(server, kubeconfig_for):
    server.then(page(pod("a", 1), pod("b", 2), more="token/1", remaining=1), page(pod("c", 3)))
    assert await page_names(kubeconfig_for(server), limit=2) == [["a", "b"], ["c"]]
    first, second = server.requests
    assert first.path == "/api/v1/pods"
    assert first.query == {"limit": "2"}
    assert second.query == {"limit": "2", "continue": "token/1"}


async def test_a_page_has_the_version_and_the_remaining_count(server, kubeconfig_for):
    server.then(page(pod("a", 1), version=7, more="x", remaining=1), page(pod("b", 2), version=7))
    async with connected(kubeconfig_for(server)) as connection:
        first, second = [found async for found in listing.pages(connection, PODS, Pod)]
    assert (first.resource_version, first.remaining) == ("7", 1)
    assert (second.resource_version, second.remaining) == ("7", None)


async def test_an_empty_list(server, kubeconfig_for):
    server.then(answer({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": None}))
    assert await page_names(kubeconfig_for(server)) == [[]]


async def test_a_version_that_vanishes_midway_starts_the_list_again(server, kubeconfig_for):
    server.then(page(pod("a", 1), more="x"), gone(), page(pod("b", 2), more="y"), page(pod("c", 3)))
    assert await page_names(kubeconfig_for(server)) == [["a"], "again", ["b"], ["c"]]


async def test_after_three_attempts_the_list_is_requested_without_pages(server, kubeconfig_for):
    for _ in range(3):
        server.then(page(pod("a", 1), more="x"), gone())
    server.then(page(pod("a", 1), pod("b", 2)))
    assert await page_names(kubeconfig_for(server)) == [["a"], "again"] * 3 + [["a", "b"]]
    assert "limit" not in server.requests[-1].query


async def test_a_list_that_expires_every_time_is_an_error(server, kubeconfig_for):
    server.then(*(gone() for _ in range(4)))
    with pytest.raises(errors.GoneError):
        await page_names(kubeconfig_for(server))
    assert server.unused == 0


async def test_selection(server, kubeconfig_for):
    server.then(page())
    selection = Selection("shop", label_selector="app in (web)", field_selector="spec.nodeName=")
    await page_names(kubeconfig_for(server), selection)
    asked = server.requests[0]
    assert asked.path == "/api/v1/namespaces/shop/pods"
    assert asked.query == {"labelSelector": "app in (web)", "fieldSelector": "spec.nodeName=", "limit": "500"}


async def test_metadata_alone(server, kubeconfig_for):
    server.then(page({"metadata": {"name": "a", "labels": {"app": "web"}}}))
    async with connected(kubeconfig_for(server)) as connection:
        found = await listed.everything(connection, PODS, ApiObject, Selection(metadata_only=True))
    assert found.items[0].metadata.labels == {"app": "web"}
    accepted = server.requests[0].headers["Accept"]
    assert accepted == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


UNDECODABLE = pod("undecodable", 5, uid="u-5", priority="high")
DEEP = (
    b'{"metadata":{"namespace":"shop","name":"undecodable","uid":"u-5","resourceVersion":"5"},"x":'
    + b"[" * 9000
    + b"]" * 9000
    + b"}"
)


async def test_one_undecodable_object_does_not_affect_the_others(server, kubeconfig_for):
    server.then(page(pod("a", 1), UNDECODABLE, pod("b", 2), version=9))
    async with connected(kubeconfig_for(server)) as connection:
        found = await listed.everything(connection, PODS, Pod)
    assert [item.metadata.name for item in found.items] == ["a", "b"]
    assert found.resource_version == "9"
    (bad,) = found.unreadable
    assert (bad.key, bad.uid, bad.resource_version) == (Key("shop", "undecodable"), "u-5", "5")
    assert bad.error == "spec.priority: expected int | null, got str"


@pytest.mark.parametrize("raw, error", [
    (DEEP, "nested too deeply to be decoded"),
    (b'{"metadata":{"namespace":"shop","name":"undecodable","uid":"u-5","resourceVersion":"5","labels":{"a":1}}}', "metadata.labels[...]: expected str, got int"),
    (b'{"metadata":{"namespace":"shop","name":"undecodable","uid":"u-5","resourceVersion":"5"},"spec":{"nodeName":"\xff"}}', "'utf-8' codec"),
])  # fmt: skip
async def test_undecodable_objects(raw, error):
    body = b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}, ' + raw + b"]}"
    meta, slices = decoding.Decoding(Pod).page("GET x", body)
    (fine, bad) = next(slices)
    assert meta.resource_version == "9"
    assert fine.metadata.name == "a"
    assert decoding.identity(bad) == (Key("shop", "undecodable"), "u-5", "5")
    assert bad.error.startswith(error)


def test_a_big_page_is_decoded_in_slices(monkeypatch):
    monkeypatch.setattr(decoding, "_MAX_PAGE_BYTES_AT_ONCE", 100)
    items = b",".join(b'{"metadata":{"name":"p%d"}}' % number for number in range(250))
    _, slices = decoding.Decoding(Pod).page("GET x", b'{"kind":"PodList","metadata":{},"items":[' + items + b"]}")
    sizes = [[item.metadata.name for item in part] for part in slices]
    assert [len(part) for part in sizes] == [100, 100, 50]
    assert sizes[2][-1] == "p249"


@pytest.mark.parametrize("content", [{"hello": "world"}, {"kind": "Pod", "metadata": {}}, [1, 2]])
async def test_a_response_that_is_no_list_means_the_wrong_server(server, kubeconfig_for, content):
    server.then(answer(content))
    with pytest.raises(errors.WrongServerError, match=r"/api/v1/pods: .*list of objects") as caught:
        await page_names(kubeconfig_for(server))
    assert isinstance(caught.value, ClusterError)


@pytest.mark.parametrize("resource, args, path", [
    (PODS, (), "/api/v1/pods"),
    (PODS, ("shop", "web", "binding"), "/api/v1/namespaces/shop/pods/web/binding"),
    (Resource("apps", "v1", "replicasets"), ("shop",), "/apis/apps/v1/namespaces/shop/replicasets"),
    (Resource("", "v1", "nodes", namespaced=False), ("shop", "n1"), "/api/v1/nodes/n1"),
    (PODS, ("shop", "../../nodes?x"), "/api/v1/namespaces/shop/pods/..%2F..%2Fnodes%3Fx"),
])  # fmt: skip
def test_paths(resource, args, path):
    assert resource.path(*args) == path
