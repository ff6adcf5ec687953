"""The index keeps few classes and moves few workloads between them: counted in operations, never in seconds."""

import pytest

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import IN, Selector, equals, requirement
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PeerTerm, PodTerm, TermPart
from bayplan.model.workloads import Needs, Requests, Workload

REQUESTS = Requests((("cpu", 100),), (("cpu", 100), ("memory", 1)), (("cpu", 100), ("memory", 1)))


def target(i):
    allocatable = (("cpu", 1_000_000), ("memory", 10**12), ("pods", 1000))
    return Target(name=f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 3}"}, allocatable=allocatable)


def workload(name, app="web", terms=None, **labels):
    needs = Needs(requests=REQUESTS, affinity=terms or AffinityTerms())
    return Workload(namespace="default", name=name, labels={"app": app, **labels}, needs=needs)


def cluster(n_targets, n_workloads, **fields):
    index = PlacementIndex()
    for i in range(n_targets):
        index.add_target(target(i))
    for i in range(n_workloads):
        index.add(workload(f"old-{i}", **fields), f"n{i % n_targets}")
    return index


def test_unique_labels_do_not_distinguish_classes_until_a_term_mentions_them():
    index = PlacementIndex()
    index.add_target(target(0))
    for i in range(30):
        index.add(workload(f"db-{i}", app="db", ordinal=str(i)), "n0")
    assert len(index.peer_index.classes) == 1
    index.add(
        workload("watcher", terms=AffinityTerms(anti_required=(PodTerm(equals({"ordinal": "7"}), HOSTNAME),))), "n0"
    )
    assert len(index.peer_index.classes) == 3  # the pod with the named value, all others, and the watcher
    index.remove("default/watcher")
    assert not index.peer_index.terms.mentioned


def named(key, *values):
    return PeerTerm((TermPart(Selector((requirement(key, IN, values),)), ("default",)),))


@pytest.mark.parametrize("labels, n_moved", [
    ({}, 0),
    ({"tier": "web"}, 0),  # all members have it, so the class is relabelled as a whole
    ({"ordinal": "{i}"}, 1),  # the pod whose value is named
    ({"tier": "web", "ordinal": "{i}"}, 1),
    ({"ordinal": "{i}", "{i}": "x"}, 1),  # whatever their other labels
])  # fmt: skip
def test_a_label_that_is_first_named_moves_only_pods_that_differ(labels, n_moved):
    index, moved = cluster(10, 0), []
    for i in range(200):
        own = {key.format(i=i): value.format(i=i) for key, value in labels.items()}
        index.add(workload(f"old-{i}", **own), f"n{i % 10}")
    index.peer_index.moved = lambda rows, class_id: moved.extend(rows)
    for value in ("web", "7"):
        for key in ("tier", "ordinal", "unused"):
            index.peer_index.hold(named(key, value))
    assert len(moved) == n_moved
    assert len(index.peer_index.classes) == 1 + n_moved


def test_the_smaller_part_of_a_class_is_moved():
    index, moved = cluster(10, 0), []
    for i in range(100):
        index.add(workload(f"old-{i}", tier="front" if i < 90 else "back"), f"n{i % 10}")
    index.peer_index.moved = lambda rows, class_id: moved.extend(rows)
    index.peer_index.hold(named("tier", "front"))
    assert len(moved) == 10
    assert sorted(cls.n_members for cls in index.peer_index.classes.by_id.values()) == [10, 90]


def test_a_label_that_is_named_again_moves_pods_added_in_between():
    index = cluster(10, 0)
    index.add(workload("early", tier="front"), "n0")
    index.peer_index.release(index.peer_index.hold(named("tier", "front")))
    index.add(workload("late", tier="front"), "n1")
    index.add(workload("other", tier="back"), "n2")
    entry = index.peer_index.hold(named("tier", "front"))
    assert index.peer_index.match_reach(entry, (HOSTNAME,)).counter.anywhere == 2
    assert index.peer_index.all_peers(entry.term) == ("default/early", "default/late")


def test_node_churn_reuses_slots_and_domains():
    index = cluster(20, 40)
    column = index.column(HOSTNAME)
    before = (index.slots.capacity, column.n_domains)
    for i in range(200):
        index.add_target(target(1000 + i))
        index.remove_target(f"n{1000 + i}")
    assert (index.slots.capacity, column.n_domains) == (before[0], before[1] + 1)
