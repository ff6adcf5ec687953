"""One pod, whatever its tenant writes into it, holds up no other."""

import pytest

from bayplan.live.loop import REST_FACTOR
from live_loop.simulated import Simulation, apart

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def hostile(n):
    terms = [{"topologyKey": f"unused-{i}", "labelSelector": {"matchLabels": {"app": "x"}}} for i in range(n)]
    return {"podAntiAffinity": {REQUIRED: terms}}


@pytest.fixture
def cluster():
    made = Simulation(max_pod_constraints=50)
    made.add_node("one")
    return made


async def test_a_pod_with_too_many_constraints_is_set_aside_with_an_event(cluster):
    cluster.add_pod("huge", affinity=hostile(30))
    cluster.add_pod("web")
    await cluster.settle()
    assert cluster.where() == {"huge": "", "web": "one"}
    (note,) = cluster.notes("huge", "FailedScheduling")
    assert "the pod has 61 scheduling constraints, more than the 50 that this scheduler accepts" in note
    assert "61 scheduling constraints" in cluster.condition("huge")["message"]
    assert not cluster.state.index.peer_index.terms.counted._groups, "none of its terms is mapped"


async def test_a_pod_that_is_set_aside_is_placed_once_it_has_fewer(cluster):
    cluster.add_pod("huge", affinity=hostile(30))
    await cluster.settle()
    cluster.change_pod("huge", affinity=hostile(3))
    await cluster.settle(20)
    assert cluster.where() == {"huge": "one"}


async def test_a_bound_pod_counts_however_many_constraints_it_has(cluster):
    cluster.add_node("two")
    terms = hostile(30)
    terms["podAntiAffinity"][REQUIRED] += apart(app="web")["podAntiAffinity"][REQUIRED]
    cluster.add_pod("huge", affinity=terms, node="one", labels={"app": "x"})
    cluster.add_pod("web", labels={"app": "web"})
    await cluster.settle()
    assert cluster.where()["web"] == "two"


async def test_no_limit_is_a_limit_of_zero():
    cluster = Simulation(max_pod_constraints=0)
    cluster.add_node("one")
    cluster.add_pod("huge", affinity=hostile(1500))
    await cluster.settle()
    assert cluster.where() == {"huge": "one"}


async def test_large_pods_get_a_share_of_the_time_while_others_wait():
    cluster = Simulation()
    cluster.add_node("one", cpu="1000", pods="1000")
    for i in range(20):
        cluster.add_pod(f"large-{i}", affinity=hostile(60))
    for i in range(40):
        cluster.add_pod(f"web-{i}")
    spent, attempt = [], cluster.scheduler._attempt

    def timed(pending):
        seconds = 0.1 if pending.is_large else 0.02
        cluster.now += seconds
        spent.append((pending.is_large, seconds))
        attempt(pending)

    cluster.scheduler._attempt = timed
    while sum(not is_large for is_large, _ in spent) < 40:
        cluster.scheduler.step()
        await cluster.scheduler.idle()
    assert spent[0][0], "the first came first"
    large = sum(seconds for is_large, seconds in spent if is_large)
    assert large <= 0.1 + sum(seconds for is_large, seconds in spent if not is_large) / REST_FACTOR
    await cluster.settle(60)
    assert all(cluster.where().values()), "large pods are placed too"
