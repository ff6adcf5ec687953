"""What a DaemonSet creates and deletes next."""

import msgspec
import pytest

from bayplan.controllers import daemon_set_updates, daemon_sets
from bayplan.controllers.daemon_set_updates import DaemonSetState, NodeState, PodsByNode
from bayplan.controllers.desired_state import PodEntry
from bayplan.model.labels import NO_EXECUTE
from bayplan.wire.controllers import Controller
from bayplan.wire.nodes import Node
from bayplan.wire.pods import PodSpec

RUNS, KEEPS, LEAVES = NodeState(True, True), NodeState(False, True), NodeState(False, False)


def pod(text):
    """`a:old` is a ready old pod on node a; `!` not ready, `x` terminating, `f` failed, `?` pending."""
    node, _, state = text.partition(":")
    marks = set(state) & set("!xf?")
    return PodEntry(
        f"{node}-{state.strip('!xf?') or 'new'}", active=not marks & set("xf"), terminating="x" in marks,
        ready=not marks, assigned="?" not in marks, node=node, revision=state.strip("!xf?") or "new",
    )  # fmt: skip


def after(pods, nodes="a b c", leaving="", keeping="", **more):
    states = dict.fromkeys(nodes.split(), RUNS) | dict.fromkeys(leaving.split(), LEAVES)
    states |= dict.fromkeys(keeping.split(), KEEPS)
    by_node = PodsByNode(DaemonSetState("new", **more), states)
    for text in pods.split():
        by_node.put(pod(text))
    found = daemon_set_updates.sync(by_node)
    return " ".join(found.created), " ".join(found.deleted)


@pytest.mark.parametrize(
    "pods, more, expected",
    [
        ("", {}, ("a b c", "")),
        ("a b", {}, ("c", "")),
        ("a b c", {}, ("", "")),
        ("a:old b:old c:old", {}, ("", "a-old")),
        ("a:oldx b:old c:old", {}, ("", "")),  # the next node waits until it is gone
        ("b:old c:old", {}, ("a", "")),
        ("a:? b:old c:old", {}, ("", "")),  # and until the new pod is available
        ("a b:old c:old", {}, ("", "b-old")),
        ("a:old b:old c:old!", {}, ("", "c-old")),  # an old pod that is unavailable goes at once
        ("a:old! b:old! c:old", {}, ("", "a-old b-old")),
        ("a:old b:old c:old", {"max_unavailable": 2}, ("", "a-old b-old")),
        ("a:old b:old c:old", {"max_unavailable": "34%"}, ("", "a-old b-old")),  # rounded up
        ("a:old b:old c:old", {"max_unavailable": "0%"}, ("", "a-old")),
        ("a:old b:old c:old", {"on_delete": True}, ("", "")),
        ("a:old b:oldf c:old", {"on_delete": True}, ("", "b-old")),
        ("a:old a:new b c", {}, ("", "a-old")),  # one pod for each node
    ],
)
def test_node_by_node(pods, more, expected):
    assert after(pods, **more) == expected


@pytest.mark.parametrize(
    "pods, more, expected",
    [
        ("a:old b:old c:old", {}, ("a", "")),
        ("a:old a:new? b:old c:old", {}, ("", "")),
        ("a:old a:new b:old c:old", {}, ("", "a-old")),
        ("a b:old c:old", {}, ("b", "")),
        ("a:old b:old c:old", {"max_surge": "50%"}, ("a b", "")),
        ("a:old! b:old c:old", {}, ("a b", "")),  # an unavailable old pod may be doubled beyond maxSurge
        ("a:old! a:new? b:old c:old", {}, ("", "a-old")),
        ("a:oldx b:old c:old", {}, ("a", "")),
    ],
)
def test_with_a_surge(pods, more, expected):
    assert after(pods, **({"max_surge": 1, "max_unavailable": 0} | more)) == expected


def test_a_node_that_no_longer_runs_it_gives_up_its_pod_when_another_is_available():
    surging = {"max_surge": 1, "max_unavailable": 0}
    assert after("d:old", nodes="a", keeping="d", **surging) == ("a", "")
    assert after("d:old a:!", nodes="a", keeping="d", **surging) == ("", "")
    assert after("d:old a", nodes="a", keeping="d", **surging) == ("", "d-old")


def test_pods_leave_nodes_on_which_they_must_not_run():
    assert after("a d", nodes="a", leaving="d") == ("", "d-new")
    assert after("a d:?", nodes="a") == ("", "d-new")  # the node of a pending pod is gone
    assert after("a d", nodes="a") == ("", "")


def test_a_pod_is_up_to_date_by_its_hash_or_generation():
    state = DaemonSetState("new", "3")
    assert state.is_updated(PodEntry("a", revision="new")) is True
    assert state.is_updated(PodEntry("a", revision="other", generation="3")) is True
    assert state.is_updated(PodEntry("a", revision="other", generation="2")) is False
    assert DaemonSetState("new").is_updated(PodEntry("a", revision="other")) is False


def test_defaults_and_what_is_read():
    written = {"updateStrategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}}
    full = msgspec.convert({"spec": written}, Controller)
    assert daemon_set_updates.state_of(full, "h", "") == DaemonSetState("h", "", False, "10%", 0)
    assert daemon_set_updates.state_of(Controller(), "h", "") == DaemonSetState("h", "", False, 0, 1)
    on_delete = msgspec.convert({"spec": {"updateStrategy": {"type": "OnDelete"}}}, Controller)
    assert daemon_set_updates.state_of(on_delete, "h", "").on_delete is True


@pytest.mark.parametrize("effect, runs, keeps", [("NoSchedule", False, True), ("NoExecute", False, False)])
def test_a_running_pod_stays_where_none_would_be_created(effect, runs, keeps):
    node = msgspec.convert({"metadata": {"name": "a"}, "spec": {"taints": [{"key": "k", "effect": effect}]}}, Node)
    assert daemon_sets.runs_on(PodSpec(), node) is runs
    assert daemon_sets.runs_on(PodSpec(), node, (NO_EXECUTE,)) is keeps
