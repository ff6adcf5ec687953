"""A large pod among small ones that come and go: with --reserve-after a node is kept free for it, within limits."""

import pytest

from bayplan.live.preemption import PreemptionEvaluator
from live_loop.simulated import Simulation, apart

AFTER = 30.0


def cluster_with(*nodes, **settings):
    cluster = Simulation(**{"reserve_after": AFTER, **settings})
    for name in nodes:
        cluster.add_node(name, cpu="4")
    return cluster


class SmallPods:
    """On each node four pods of one cpu; every second the oldest ends and another one is created."""

    def __init__(self, cluster, n_nodes=1, **fields):
        self.cluster, self.fields = cluster, fields
        self.names, self.serial = [], 0
        for _ in range(4 * n_nodes):
            self.create()

    def create(self):
        self.serial += 1
        self.names.append(f"small-{self.serial}")
        self.cluster.add_pod(self.names[-1], cpu="1", **self.fields)

    async def come_and_go(self, seconds):
        for _ in range(int(seconds)):
            placed = [name for name in self.names if self.cluster.where().get(name)]
            if placed:
                self.names.remove(placed[0])
                self.cluster.remove_pod(placed[0])
                self.create()
            await self.cluster.settle(1)


async def wait(cluster, seconds=0.0):
    await cluster.settle(seconds)
    await cluster.settle()  # what is written at the end


def reservations(cluster):
    text = cluster.parts.metrics.text().decode()
    (line,) = [line for line in text.splitlines() if line.startswith("bayplan_reservations ")]
    return float(line.split()[1])


def nominated(cluster, name):
    return cluster.pods[f"web/{name}"].get("status", {}).get("nominatedNodeName", "")


async def test_without_the_option_a_large_pod_waits_while_small_ones_come_and_go():
    """As with kube-scheduler, which places whatever fits."""
    cluster = cluster_with("one", reserve_after=0.0)
    small = SmallPods(cluster)
    await cluster.settle()
    cluster.add_pod("large", cpu="3")
    await small.come_and_go(600)
    assert cluster.where()["large"] == ""
    assert reservations(cluster) == 0


async def test_a_large_pod_is_placed_on_the_node_that_is_reserved_for_it():
    cluster = cluster_with("one")
    small = SmallPods(cluster)
    await cluster.settle()
    cluster.add_pod("large", cpu="3")
    await small.come_and_go(AFTER - 1)
    assert (reservations(cluster), nominated(cluster, "large")) == (0, "")
    await small.come_and_go(2)
    assert (reservations(cluster), nominated(cluster, "large")) == (1, "one")
    assert cluster.condition("large")["message"].endswith(" Node one is reserved for this pod.")
    assert cluster.notes("large", "NodeReserved") == [
        "Node one is reserved for this pod. It lacks 3 cpu. The reservation ends after 300 s."
    ]
    await small.come_and_go(5)
    assert cluster.where()["large"] == "one"
    assert reservations(cluster) == 0
    assert cluster.deleted == [], "nothing is evicted for it"


async def test_the_scheduler_wakes_when_a_reservation_is_due():
    cluster = cluster_with("one")
    cluster.add_pod("old", cpu="3", node="one")
    cluster.add_pod("large", cpu="3")
    await wait(cluster)
    assert cluster.scheduler.next_at() == AFTER
    await wait(cluster, AFTER)
    assert reservations(cluster) == 1
    assert cluster.scheduler.next_at() == 2 * AFTER


async def test_a_reservation_ends_after_its_time_and_the_next_pod_has_its_turn():
    cluster = cluster_with("one")
    cluster.add_pod("forever", cpu="2", node="one")  # never ends
    for name in ("first", "second"):
        cluster.add_pod(name, cpu="3")
        await wait(cluster, 1)
    await wait(cluster, AFTER)
    assert (nominated(cluster, "first"), nominated(cluster, "second")) == ("one", "")
    for _ in range(10):
        await wait(cluster, AFTER)
    assert (nominated(cluster, "first"), nominated(cluster, "second")) == ("", "one")
    assert "reserved" not in cluster.condition("first")["message"]
    assert cluster.notes("first", "ReservationEnded") == [
        "Node one is no longer reserved for this pod: its time is over, and the pod waits again."
    ]
    assert reservations(cluster) == 1
    for _ in range(11):
        await wait(cluster, AFTER)
    assert (nominated(cluster, "first"), nominated(cluster, "second")) == ("one", "")


async def test_small_pods_are_placed_again_when_a_reservation_ends():
    cluster = cluster_with("one")
    cluster.add_pod("forever", cpu="2", node="one")
    cluster.add_pod("large", cpu="3")
    await wait(cluster, AFTER)
    cluster.add_pod("small", cpu="1")
    await wait(cluster, 9 * AFTER)
    assert cluster.where()["small"] == ""
    await wait(cluster, 2 * AFTER)
    assert cluster.where()["small"] == "one"


@pytest.mark.parametrize("most", [1, 2])
async def test_at_most_so_many_nodes_are_reserved_the_highest_priority_first_then_the_longest_wait(most):
    cluster = cluster_with("one", "two", "three", max_reservations=most)
    for node in ("one", "two", "three"):
        cluster.add_pod(f"on-{node}", cpu="2", node=node)
    for name, priority in (("old", 0), ("young", 0), ("high", 5)):
        cluster.add_pod(name, cpu="3", priority=priority, preemptionPolicy="Never")
    await wait(cluster, AFTER)
    found = {name: nominated(cluster, name) for name in ("high", "old", "young")}
    assert [name for name, node in found.items() if node] == ["high", "old"][:most]
    assert len({node for node in found.values() if node}) == most, "no node is reserved twice"


@pytest.mark.parametrize(
    "stays",
    [
        {"priority": 10},
        {"owner": "DaemonSet"},
        {"owner": "Node"},  # a mirror pod
    ],
)
async def test_no_node_is_reserved_that_could_not_hold_the_pod(stays):
    cluster = cluster_with("one")
    owner = stays.pop("owner", "")
    cluster.add_pod("stays", cpu="2", node="one", **stays)
    if owner:
        reference = {"apiVersion": "v1", "kind": owner, "name": "it", "uid": "u", "controller": True}
        cluster.pods["web/stays"]["metadata"]["ownerReferences"] = [reference]
        cluster.report("stays")
    cluster.add_pod("large", cpu="3")
    cluster.add_pod("huge", cpu="5")
    await wait(cluster, 3 * AFTER)
    assert reservations(cluster) == 0
    cluster.remove_pod("stays")
    cluster.add_pod("leaves", cpu="2", node="one")
    await wait(cluster, AFTER)
    assert (nominated(cluster, "large"), nominated(cluster, "huge")) == ("one", "")


async def test_a_pod_that_other_rules_keep_pending_gets_no_node():
    cluster = cluster_with("one")
    cluster.add_pod("db", cpu="3", node="one", labels={"app": "db"})
    cluster.add_pod("large", cpu="3", affinity=apart(app="db"))
    await wait(cluster, 5 * AFTER)
    assert reservations(cluster) == 0
    cluster.pods["web/db"]["metadata"]["labels"] = {}
    cluster.report("db")
    await wait(cluster, AFTER)
    assert reservations(cluster) == 0, "it has not been short of nothing but resources for so long"
    await wait(cluster, AFTER)
    assert reservations(cluster) == 1


async def test_the_node_that_lacks_the_least_is_reserved():
    cluster = cluster_with("one", "two", "three")
    for node, cpu in (("one", "3"), ("two", "2"), ("three", "4")):
        cluster.add_pod(f"on-{node}", cpu=cpu, node=node)
    cluster.add_pod("large", cpu="4")
    await wait(cluster, AFTER)
    assert nominated(cluster, "large") == "two"


@pytest.mark.parametrize("change", ["removed", "cordoned", "filled"])
async def test_a_node_that_is_of_no_use_any_more_is_given_back(change):
    cluster = cluster_with("one")
    cluster.add_pod("old", cpu="3", node="one")
    cluster.add_pod("large", cpu="3")
    await wait(cluster, AFTER)
    assert nominated(cluster, "large") == "one"
    if change == "removed":
        cluster.remove_pod("old")
        cluster.add_node("two", cpu="1")
        cluster.remove_node("one")
    elif change == "cordoned":
        cluster.add_node("one", cpu="4", unschedulable=True)
    else:
        cluster.add_pod("important", cpu="3", node="one", priority=10)
    await wait(cluster, AFTER)
    assert (reservations(cluster), nominated(cluster, "large")) == (0, "")
    assert cluster.notes("large", "ReservationEnded") == [
        "Node one is no longer reserved for this pod: the pod could no longer be placed there."
    ]


async def test_a_reservation_goes_with_its_pod():
    cluster = cluster_with("one")
    cluster.add_pod("old", cpu="3", node="one")
    cluster.add_pod("large", cpu="3")
    await wait(cluster, AFTER)
    cluster.add_pod("small", cpu="1")
    await wait(cluster, 2)
    assert (reservations(cluster), cluster.where()["small"]) == (1, "")
    cluster.remove_pod("large")
    await wait(cluster, 2)
    assert (reservations(cluster), cluster.where()["small"]) == (0, "one")


async def test_pods_of_higher_priority_ignore_a_reservation():
    cluster = cluster_with("one")
    cluster.add_pod("old", cpu="3", node="one")
    cluster.add_pod("large", cpu="3")
    await wait(cluster, AFTER)
    cluster.add_pod("high", cpu="1", priority=1, preemptionPolicy="Never")
    await wait(cluster, 1)
    assert cluster.where()["high"] == "one"


async def test_a_reservation_stays_when_the_pod_is_tried_again():
    cluster = cluster_with("one")
    cluster.add_pod("old", cpu="3", node="one")
    cluster.add_pod("large", cpu="3")
    await wait(cluster, AFTER)
    message = cluster.condition("large")["message"]
    before = cluster.state.queue.pods["web/large"].attempts
    cluster.pods["web/large"]["metadata"]["labels"] = {"app": "other"}
    cluster.report("large")
    await wait(cluster, 15)
    assert cluster.state.queue.pods["web/large"].attempts == before + 1
    assert (nominated(cluster, "large"), cluster.condition("large")["message"]) == ("one", message)
    cluster.remove_pod("old")
    await wait(cluster, 30)
    assert cluster.where()["large"] == "one"


async def test_a_pod_that_can_preempt_needs_no_reservation(monkeypatch):
    cluster = cluster_with("one")
    cluster.add_pod("low", cpu="3", node="one")

    async def slowly(self, workload, attempt):
        del self, workload, attempt

    monkeypatch.setattr(PreemptionEvaluator, "carry_out", slowly)
    cluster.add_pod("vip", cpu="3", priority=10)
    await wait(cluster, 3 * AFTER)
    assert nominated(cluster, "vip") == "one"
    assert reservations(cluster) == 0


async def test_a_new_leader_does_not_keep_a_reservation_without_end():
    cluster = cluster_with("one")
    cluster.add_pod("old", cpu="3", node="one")
    cluster.add_pod("large", cpu="3")
    await wait(cluster, AFTER)
    assert nominated(cluster, "large") == "one"
    later = cluster_with("one")
    later.pods = cluster.pods
    for key in later.pods:
        later.report(key.partition("/")[2])
    await wait(later)
    assert nominated(later, "large") == ""
    await wait(later, AFTER)
    assert (reservations(later), nominated(later, "large")) == (1, "one")
