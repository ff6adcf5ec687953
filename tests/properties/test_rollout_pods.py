"""The pods of a rollout are counted and ordered as if all of them were looked at each time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.controllers.desired_state import PodEntry
from bayplan.controllers.rollout_pods import RolloutPods
from bayplan.model import timestamps
from reference import rollout_pods as reference

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
