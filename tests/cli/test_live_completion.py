"""Names for completion from a live cluster: asked for as tables, page by page, and nothing if that fails."""

import pytest

from bayplan.cli import completion, live_completion
from live import scripted_server
from live.scripted_server import answer, rejection, stream

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: test
contexts: [{{name: test, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
"""
PODS, DEPLOYMENTS = "/api/v1/namespaces/shop/pods", "/apis/apps/v1/namespaces/shop/deployments"


def table(*names, token=""):
    rows = [{"cells": [name, "1/1", 7]} for name in names]
    return answer({"kind": "Table", "metadata": {"continue": token}, "rows": rows})


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server that has only what a test adds; it is that of the current context."""
    with scripted_server.ScriptedServer() as started:
        (tmp_path / "config").write_text(KUBECONFIG.format(url=started.url))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        yield started


def complete(*typed, program="kubectl bayplan"):
    return completion.candidates(typed, program).splitlines()[:-1]


def test_names_are_read_from_all_pages_of_a_table(server):
    server.on("GET", PODS, table("web-1", "web-2", token="more"), table("db-0"))
    assert complete("explain", "-n", "shop", "po/w") == ["po/web-1", "po/web-2"]
    first, second = server.requests
    assert (first.query["includeObject"], second.query["continue"]) == ("None", "more")
    assert "as=Table" in first.headers["accept"]


def test_only_kinds_that_can_follow_are_listed(server):
    server.on("GET", DEPLOYMENTS, table("web"))
    assert complete("explain", "-n", "shop", "depl") == ["deployment/web"]
    assert {one.path for one in server.requests} == {DEPLOYMENTS}
    server.on("GET", DEPLOYMENTS, table("web"))
    assert complete("explain", "-n", "shop", "deploy", "") == ["web"]


def test_what_may_not_be_listed_is_left_out(server):
    server.always("GET", DEPLOYMENTS, rejection(403, "Forbidden", "no"))
    server.on("GET", PODS, table("web-1"))
    assert complete("explain", "-n", "shop", "") == ["pod/web-1"]


def test_a_server_without_tables_sends_objects(server):
    server.on("GET", "/api/v1/namespaces", answer({"kind": "NamespaceList", "items": [{"metadata": {"name": "shop"}}]}))
    assert complete("place", "-n", "s") == ["shop"]


@pytest.mark.parametrize("wrong", [answer([]), answer({"rows": 7}), rejection(500, "InternalError", "no")])
def test_a_server_that_fails_gives_no_candidates(server, wrong, capfd):
    server.always("GET", "/api/v1/namespaces", wrong)
    assert complete("place", "-n", "s") == []
    assert capfd.readouterr() == ("", "")


def test_a_server_that_does_not_answer_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(live_completion, "MAX_SECONDS", 0.2)
    server.always("GET", "/api/v1/namespaces", stream(ending=scripted_server.STALL))
    assert complete("place", "-n", "s") == []


def test_no_cluster_is_asked_unless_one_is_read(server, tmp_path):
    (tmp_path / "web.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n")
    assert complete("explain", "", program="bayplan") == []
    assert complete("explain", "-f", str(tmp_path / "web.yaml"), "") == ["pod/web"]
    assert server.requests == []


def test_files_and_cluster_are_completed_together(server, tmp_path):
    (tmp_path / "web.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n")
    server.on("GET", PODS, table("web-1"))
    typed = ("explain", "--context", "test", "-f", str(tmp_path / "web.yaml"), "-n", "shop", "pod/w")
    assert complete(*typed, program="bayplan") == ["pod/web", "pod/web-1"]


def test_without_a_kubeconfig_there_are_no_candidates(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert complete("place", "-n", "") == []
    assert complete("place", "--server", "not an address", "-n", "", program="bayplan") == []
