"""The pods of a rollout are counted and ordered as if all of them were looked at each time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.controllers import daemon_set_updates, stateful_sets
from bayplan.controllers.daemon_set_updates import DaemonSetState, NodeState, PodsByNode
from bayplan.controllers.desired_state import PodEntry
from bayplan.controllers.rollout_pods import RolloutPods
from bayplan.controllers.stateful_sets import PodsByOrdinal, StatefulSetState
from bayplan.model import timestamps
from reference import daemon_sets as reference_daemon_sets
from reference import rollout_pods as reference
from reference import stateful_sets as reference_stateful_sets

NOW = timestamps.nanoseconds("2026-01-10T00:00:00Z")
SETS = ("old", "older", "new")
# Each more than twice as old as the one before, or of about the same age and no two alike: so that upstream's order
# never contradicts itself.
TIMES = st.sampled_from(["2026-01-09T23:59:00Z", "2026-01-09T22:00:00Z", "2026-01-08T00:00:00Z", "soon", ""])
ALIKE = {name: f"2026-01-09T00:00:0{number}Z" for number, name in enumerate("abcdefghij")}
NAMES = st.sampled_from("abcdefghij")
STATES = st.sampled_from([
    {"active": True, "assigned": True},
    {"active": True, "assigned": True, "ready": True},
    {"active": True, "assigned": True, "ready": True, "deletion_cost": -1},
    {"active": True, "assigned": False, "phase": 0},
    {"active": False, "assigned": True, "terminating": True},
    {"active": False, "assigned": True},
])  # fmt: skip


@st.composite
def entries(draw, are_alike):
    name, state = draw(NAMES), draw(STATES)
    node = draw(st.sampled_from(["n1", "n2", "n3"])) if state["assigned"] else ""
    ready_since, created = (ALIKE[name],) * 2 if are_alike else (draw(TIMES), draw(TIMES))
    times = {"ready_since": ready_since, "created": created, "restarts": (draw(st.integers(0, 1)), 0)}
    return PodEntry(name, node=node, uid=draw(st.sampled_from("xyz")), **times, **state)


def histories(are_alike):
    """Pods, and what happens to them."""
    pods = entries(are_alike)
    change = st.one_of(
        st.tuples(st.just("put"), pods),
        st.tuples(st.just("put"), pods),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("ask"), st.integers(1, 4)),
    )
    return st.tuples(st.lists(pods, max_size=10), st.lists(change, max_size=25))


@given(st.booleans().flatmap(histories), st.sampled_from([NOW, None]), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_pods_are_counted_and_ordered_as_if_all_were_looked_at(history, now, random):
    first, changes = history
    set_of = {name: random.choice(SETS) for name in "abcdefghij"}
    ours, plain = RolloutPods(first, set_of), {pod.name: pod for pod in first}
    for change, what in [*changes, ("ask", 1)]:
        if change == "put":
            ours[what.name] = plain[what.name] = what
        elif change == "remove":
            assert ours.pop(what, None) == plain.pop(what, None)
        else:
            for name in SETS:
                found = ours.first_deleted(name, what, now)
                assert found == reference.first_deleted(plain, set_of, name, what, now)
        assert list(ours.items()) == list(plain.items())
        assert ours.pending() == reference.pending(plain)
        assert ours.leaving() == reference.leaving(plain)
        for name in SETS:
            one = ours.of_set(name)
            assert (len(one.active), one.n_ready) == reference.numbers(plain, set_of, name)
            assert ours.exist_outside(name) == reference.exist_outside(plain, set_of, name)


REVISED = st.sampled_from([
    *[{"active": True, "ready": True, "assigned": True}] * 4,
    {"active": True, "assigned": True},
    {"active": True, "assigned": False},
    {"active": False, "terminating": True, "assigned": True},
    {"active": False, "assigned": True},
])  # fmt: skip
NODE_STATES = st.sampled_from([*[NodeState(True, True)] * 3, NodeState(False, True), NodeState(False, False)])
LIMITS = st.sampled_from([0, 1, 2, "30%", "0%"])


@st.composite
def revised(draw, names, node=""):
    revision = draw(st.sampled_from(["old", "old", "new"]))
    return PodEntry(
        draw(names), revision=revision, node=node, generation=draw(st.sampled_from(["", "", "1"])), **draw(REVISED)
    )


@st.composite
def stateful_sets_and_changes(draw):
    """A StatefulSet whose ordinals have pods, and pods that come, change and go."""
    state = StatefulSetState(
        "web", draw(st.integers(0, 5)), "old", "new", start=draw(st.integers(0, 2)), parallel=draw(st.booleans()),
        on_delete=draw(st.sampled_from([False, False, True])), partition=draw(st.integers(0, 4)),
    )  # fmt: skip
    ordinals = range(state.start, state.start + state.replicas)
    first = [draw(revised(st.just(f"web-{ordinal}"))) for ordinal in ordinals]
    names = st.integers(0, 7).map("web-{}".format)
    return state, [*first, *draw(st.lists(st.one_of(revised(names), revised(names), names), max_size=10))]


@given(stateful_sets_and_changes())
@settings(max_examples=500, deadline=None)
def test_a_stateful_set_acts_as_if_it_looked_at_all_its_pods(found):
    state, changes = found
    by_ordinal, plain = PodsByOrdinal(state), {}
    pods = RolloutPods(listener=by_ordinal)
    for what in changes:
        if isinstance(what, str):
            assert pods.pop(what, None) == plain.pop(what, None)
        else:
            pods[what.name] = plain[what.name] = what
        assert stateful_sets.sync(by_ordinal) == reference_stateful_sets.sync(state, plain.values())


@st.composite
def daemon_sets_and_changes(draw):
    """A DaemonSet, its nodes with pods, and pods that come, change and go, also on a node that is gone."""
    state = DaemonSetState(
        "new", draw(st.sampled_from(["", "1"])), draw(st.sampled_from([False, False, True])), draw(LIMITS), draw(LIMITS)
    )
    nodes = draw(st.dictionaries(st.sampled_from("qrst"), NODE_STATES, min_size=1))
    first = [draw(revised(st.just(f"{name}-0"), name)) for name, node in nodes.items() if node.keeps]
    name, number = draw(st.lists(st.sampled_from("pqrst"), max_size=10)), st.integers(0, 1)
    changes = [draw(revised(number.map(f"{node}-{{}}".format), node)) for node in name]
    gone = [f"{node}-{draw(number)}" if draw(st.integers(0, 3)) == 0 else "" for node in name]
    return state, nodes, [*first, *(one for pair in zip(changes, gone, strict=True) for one in pair if one)]


@given(daemon_sets_and_changes())
@settings(max_examples=500, deadline=None)
def test_a_daemon_set_acts_as_if_it_looked_at_all_nodes(found):
    state, nodes, changes = found
    by_node, plain = PodsByNode(state, nodes), {}
    pods = RolloutPods(listener=by_node)
    for what in changes:
        if isinstance(what, str):
            assert pods.pop(what, None) == plain.pop(what, None)
        else:
            pods[what.name] = plain[what.name] = what
        actions, expected = daemon_set_updates.sync(by_node), reference_daemon_sets.sync(state, nodes, plain.values())
        # What leaves nodes that run no pod, or are gone, leaves in the order in which it came.
        assert (actions.created, sorted(actions.deleted)) == (expected.created, sorted(expected.deleted))
