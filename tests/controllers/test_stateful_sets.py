"""What a StatefulSet creates and deletes next."""

import msgspec
import pytest

from bayplan.controllers import stateful_sets
from bayplan.controllers.desired_state import PodEntry
from bayplan.controllers.stateful_sets import PodsByOrdinal, StatefulSetActions, StatefulSetState
from bayplan.wire.controllers import Controller

WAITS = ((), ())


def pod(text):
    """`2:old` is a ready pod of ordinal 2; `!` not ready, `x` terminating, `f` failed."""
    ordinal, _, state = text.partition(":")
    marks = set(state) & set("!xf")
    active = not marks & set("xf")
    return PodEntry(
        f"db-{ordinal}", active=active, terminating="x" in marks, ready=not marks, assigned=True,
        revision=state.strip("!xf") or "new",
    )  # fmt: skip


def after(pods, **more):
    state = StatefulSetState("db", **({"replicas": 3, "current_revision": "old", "update_revision": "new"} | more))
    by_ordinal = PodsByOrdinal(state)
    for text in pods.split():
        by_ordinal.put(pod(text))
    found = stateful_sets.sync(by_ordinal)
    return found.created, found.deleted


@pytest.mark.parametrize(
    "pods, expected",
    [
        ("", ((0,), ())),
        ("0", ((1,), ())),
        ("0:!", WAITS),  # each waits for the one before it
        ("0 2", ((1,), ())),
        ("0 1 2", WAITS),
        ("0:old 1:old 2:old", ((), ("db-2",))),  # from the highest ordinal
        ("0:old 1:old 2:!", WAITS),  # waits until it is ready
        ("0:old 1:old 2", ((), ("db-1",))),
        ("0:old 1:oldx 2", WAITS),
        ("0:old 1:old! 2", WAITS),  # an old pod that is not ready blocks: it has to be deleted by hand
        ("0:old 1:oldf 2", ((), ("db-1",))),  # a failed pod is deleted at once
        ("0 1 2 3 4", ((), ("db-4",))),  # scaled down from the highest ordinal
        ("0 1 2 3 4:x", WAITS),
        ("0 1 2 3:! 4", ((), ("db-4",))),
        ("0 1 2 3 4:!", ((), ("db-4",))),
        ("0 1 2 3:! 4:!", WAITS),  # only the first of the unavailable ones may go
        ("0 1:! 2 3", WAITS),
        ("0 1 2 other-7", WAITS),
    ],
)
def test_ordered(pods, expected):
    assert after(pods) == expected


@pytest.mark.parametrize(
    "pods, expected",
    [
        ("", ((0, 1, 2), ())),
        ("0:!", ((1, 2), ())),
        ("0 1 2 3 4:!", ((), ("db-4", "db-3"))),
        ("0:old 1:old 2:old", ((), ("db-2",))),  # updates go one by one all the same
        ("0:old 1:old 2:!", WAITS),
        ("0:old! 1:old 2:old", ((), ("db-2",))),  # a pod that is not ready blocks nothing above it
        ("0:oldf 1 2", ((), ("db-0",))),
    ],
)
def test_parallel(pods, expected):
    assert after(pods, parallel=True) == expected


@pytest.mark.parametrize(
    "pods, more, expected",
    [
        ("0:old 1:old 2:old", {"partition": 2}, ((), ("db-2",))),
        ("0:old 1:old 2", {"partition": 2}, WAITS),
        ("0:old 1:old 2", {"partition": 9}, WAITS),
        ("0:old 1:old 2:old", {"on_delete": True}, WAITS),
        ("0:old 1:old", {"on_delete": True}, ((2,), ())),
        ("5:old 6:old 7:old", {"start": 5}, ((), ("db-7",))),
        ("5:old 6:old 7:old", {"start": 5, "partition": 2}, ((), ("db-7",))),  # counted from the first ordinal
        ("5:old 6:old 7", {"start": 5, "partition": 2}, WAITS),
        ("0 5 6 7", {"start": 5}, ((), ("db-0",))),  # ordinals before the first go too
    ],
)
def test_partition_on_delete_and_first_ordinal(pods, more, expected):
    assert after(pods, **more) == expected


@pytest.mark.parametrize("ordinal, revision", [(5, "old"), (6, "old"), (7, "new")])
def test_pods_below_the_partition_come_back_at_the_former_revision(ordinal, revision):
    state = StatefulSetState("db", 3, "old", "new", start=5, partition=2)
    assert state.revision_of(ordinal) == revision


@pytest.mark.parametrize(
    "name, ordinal", [("db-0", 0), ("db-12", 12), ("db-x", -1), ("db", -1), ("my-db-1", -1), ("db-99999999999", -1)]
)
def test_the_ordinal_is_the_end_of_the_name(name, ordinal):
    assert stateful_sets.ordinal_of(name, "db") == ordinal


def test_defaults_and_what_is_read():
    written = {
        "replicas": 4, "podManagementPolicy": "Parallel", "ordinals": {"start": 3},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2, "maxUnavailable": 3}},
    }  # fmt: skip
    full = msgspec.convert({"metadata": {"name": "db"}, "spec": written}, Controller)
    assert stateful_sets.state_of(full, "old", "new") == StatefulSetState("db", 4, "old", "new", 3, True, False, 2)
    bare = msgspec.convert({"metadata": {"name": "db"}}, Controller)
    assert stateful_sets.state_of(bare, "old", "new") == StatefulSetState("db", 1, "old", "new")
    assert StatefulSetActions() == stateful_sets.NOTHING


def test_negative_numbers_of_a_state_count_as_none():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": -3}}
    spec = {"replicas": 2, "ordinals": {"start": -1}, "updateStrategy": rolling}
    found = msgspec.convert({"metadata": {"name": "db"}, "spec": spec}, Controller)
    assert stateful_sets.state_of(found, "old", "new") == StatefulSetState("db", 2, "old", "new")
