"""Execution-time rules: which pods are evicted, when, and within which limits. On a cluster in memory."""

import asyncio
import json
import logging
import threading

from bayplan.enforcing import planning
from bayplan.enforcing.planning import EnforcementSettings
from bayplan.live import enforcement
from bayplan.live.cluster_writer import PodGoneError, RejectedError
from live_loop.simulated import Simulation

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GRACE = EnforcementSettings(affinity_grace=300, anti_affinity_grace=60, per_minute=30, at_once=10)
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"


def rule(side, key=HOST, **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"bayplan.io/affinity": json.dumps({side: {EXECUTION: [term]}})}


def apart(**labels):
    return rule("podAntiAffinity", **labels)


def near(**labels):
    return rule("podAffinity", key=ZONE, **labels)


def simulation(settings=GRACE, **more):
    cluster = Simulation(enforcement=settings, **more)
    for name, zone in (("one", "a"), ("two", "a"), ("three", "b")):
        cluster.add_node(name, zone=zone)
    return cluster


async def enforce(cluster, seconds=0.0):
    """Advance the time step by step and carry out the evictions that are due."""
    end = cluster.now + seconds
    while True:
        plan = await cluster.parts.enforcement.plan_evictions()
        for eviction in plan.evict:
            await cluster.parts.enforcement._evict(eviction)
        await cluster.parts.events.flush()
        if plan.evict:
            continue
        if plan.next_at > end:
            break
        cluster.now = max(cluster.now, plan.next_at)
    cluster.now = end


def relabel(cluster, name, **labels):
    cluster.pods[f"web/{name}"]["metadata"]["labels"] = labels
    cluster.report(name)


async def test_a_pod_relabelled_into_a_conflict_is_evicted_after_the_grace_period():
    cluster = simulation()
    cluster.add_pod("quiet", labels={"app": "quiet"}, annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("other", labels={"app": "harmless"}, node="one")
    await enforce(cluster, 600)
    assert cluster.deleted == []
    relabel(cluster, "other", app="loud")
    await enforce(cluster, 59)
    assert cluster.deleted == []
    await enforce(cluster, 2)
    assert cluster.deleted == ["other"], "the pod of lower priority is evicted"
    (note,) = cluster.notes("other", "RuleBroken")
    assert note.endswith(f"web/quiet rejects app=loud in {HOST}=one")
    assert cluster.notes("quiet", "NeighbourEvicted")


async def test_the_owner_of_the_rule_gets_an_event_for_each_eviction():
    cluster = simulation()
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    loud = [f"loud-{i}" for i in range(5)]
    for name in loud:
        cluster.add_pod(name, labels={"app": "loud"}, node="one")
    await enforce(cluster, 61)
    assert cluster.deleted == loud
    assert len(cluster.notes("quiet", "NeighbourEvicted")) == len(loud)
    assert not any(cluster.notes(name, "NeighbourEvicted") for name in loud), "they do not conflict with each other"


async def test_pods_that_violate_a_rule_get_an_event_when_its_owner_is_evicted():
    cluster = simulation()
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one")
    cluster.add_pod("loud", labels={"app": "loud"}, node="one", priority=5)
    await enforce(cluster, 61)
    assert cluster.deleted == ["quiet"]
    assert cluster.notes("loud", "NeighbourEvicted")


async def test_at_equal_priority_the_owner_of_the_rule_is_evicted():
    cluster = simulation()
    cluster.add_pod("quiet", labels={"app": "quiet"}, annotations=apart(app="loud"), node="one")
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")
    await enforce(cluster, 61)
    assert cluster.deleted == ["quiet"]


async def test_a_required_peer_that_is_back_within_the_grace_period_prevents_the_eviction():
    cluster = simulation()
    cluster.add_pod("db", labels={"app": "db"}, node="one")
    cluster.add_pod("web", annotations=near(app="db"), node="two")
    await enforce(cluster, 10)
    cluster.remove_pod("db")
    await enforce(cluster, 200)
    cluster.add_pod("db", labels={"app": "db"}, node="one")
    await enforce(cluster, 400)
    assert cluster.deleted == []


async def test_a_pod_is_evicted_when_its_required_peer_is_gone_and_not_the_reverse():
    cluster = simulation()
    cluster.add_pod("s2", labels={"app": "s2"}, node="one")
    cluster.add_pod("s1", labels={"app": "s1"}, annotations=near(app="s2"), node="two")
    cluster.remove_pod("s2")
    await enforce(cluster, 301)
    assert cluster.deleted == ["s1"]
    cluster.add_pod("s2", labels={"app": "s2"}, node="one")
    await enforce(cluster, 900)
    assert cluster.deleted == ["s1"], "s2 keeps running without s1"


async def test_a_disruption_budget_delays_the_eviction_until_it_allows_it():
    cluster = simulation()
    forbidden = True

    async def evict(pod):
        if forbidden:
            raise RejectedError("the disruption budget keep does not allow it")
        await cluster.delete(pod)

    cluster.evict = evict
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")
    await enforce(cluster, 120)
    assert cluster.deleted == []
    assert "keep does not allow" in cluster.notes("loud", "EvictionRefused")[0]
    forbidden = False
    await enforce(cluster, 31)
    assert cluster.deleted == ["loud"]


async def test_a_pod_is_evicted_even_if_no_other_node_is_feasible():
    cluster = simulation()
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one", cpu="4")
    for name in ("two", "three"):
        cluster.add_pod(f"full-{name}", cpu="4", node=name)
    await enforce(cluster, 61)
    assert cluster.deleted == ["loud"]


async def test_only_if_placeable_delays_the_eviction_until_another_node_is_feasible():
    cluster = simulation(EnforcementSettings(anti_affinity_grace=60, only_if_placeable=True))
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one", cpu="3")
    for name in ("two", "three"):
        cluster.add_pod(f"full-{name}", cpu="4", node=name)
    await enforce(cluster, 600)
    assert cluster.deleted == []
    cluster.remove_pod("full-two")
    await enforce(cluster, 60)
    assert cluster.deleted == ["loud"]


async def test_many_evictions_stay_within_the_limits():
    cluster = simulation(EnforcementSettings(anti_affinity_grace=60, per_minute=30, at_once=10))
    evicted = []

    async def slowly(pod):
        evicted.append(pod.name)
        cluster.pods[f"web/{pod.name}"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        cluster.report(pod.name)

    cluster.evict = slowly
    for i in range(500):
        cluster.add_node(f"node-{i}")
        cluster.add_pod(f"quiet-{i}", annotations=apart(app="loud"), node=f"node-{i}", priority=5)
        cluster.add_pod(f"loud-{i}", labels={"app": "loud"}, node=f"node-{i}")
    await enforce(cluster, 60)
    assert len(evicted) == 10, "as many as may terminate at once"
    for minute in range(3):
        for name in evicted:
            if f"web/{name}" in cluster.pods:
                cluster.remove_pod(name)
                await enforce(cluster)
        assert len(evicted) <= 30 * (minute + 1) + 10
        await enforce(cluster, 60)
    assert all(name.startswith("loud-") for name in evicted)


async def test_a_dry_run_changes_nothing():
    cluster = simulation(enforcement_dry_run=True)
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")
    await enforce(cluster, 600)
    assert cluster.deleted == []
    assert cluster.events == []


async def test_a_dry_run_logs_every_victim_once(caplog):
    caplog.set_level(logging.INFO, "bayplan.enforcement")
    cluster = simulation(
        EnforcementSettings(anti_affinity_grace=60, per_minute=30, at_once=10), enforcement_dry_run=True
    )
    for i in range(40):
        cluster.add_node(f"node-{i}")
        cluster.add_pod(f"quiet-{i}", annotations=apart(app="loud"), node=f"node-{i}", priority=5)
        cluster.add_pod(f"loud-{i}", labels={"app": "loud"}, node=f"node-{i}")

    def logged():
        return sorted(record.pod for record in caplog.records if record.message == "would evict")

    await enforce(cluster, 600)
    assert logged() == sorted(f"web/loud-{i}" for i in range(40))
    caplog.clear()
    relabel(cluster, "loud-7", app="calm")
    await enforce(cluster, 600)
    relabel(cluster, "loud-7", app="loud")
    await enforce(cluster, 600)
    assert logged() == ["web/loud-7"], "a new violation is logged again"


async def test_scheduling_continues_while_victims_are_chosen(monkeypatch):
    cluster = simulation(EnforcementSettings(anti_affinity_grace=0))
    for i in ("one", "two"):
        cluster.add_pod(f"quiet-{i}", annotations=apart(app="loud"), node=i, priority=5)
        cluster.add_pod(f"loud-{i}", labels={"app": "loud"}, node=i)
    choose, may_continue = planning.choose_evictions, threading.Event()

    def slowly(*what):
        assert may_continue.wait(10), "the event loop was blocked"
        return choose(*what)

    monkeypatch.setattr(planning, "choose_evictions", slowly)
    planning_task = asyncio.create_task(cluster.parts.enforcement.plan_evictions())
    await asyncio.sleep(0)
    cluster.add_pod("new")
    await cluster.settle()
    assert cluster.where()["new"]
    relabel(cluster, "loud-one", app="calm")
    may_continue.set()
    plan = await planning_task
    assert [eviction.victim for eviction in plan.evict] == ["web/loud-two"], "a resolved violation needs no eviction"


async def test_no_eviction_follows_once_enforcement_is_switched_off():
    cluster = simulation()
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")
    await enforce(cluster, 30)
    cluster.parts.enforcement.switch(on=False)
    await enforce(cluster, 600)
    assert cluster.deleted == []
    cluster.parts.enforcement.switch(on=True)
    await enforce(cluster, 59)
    assert cluster.deleted == [], "the grace period starts again"
    await enforce(cluster, 2)
    assert cluster.deleted == ["loud"]


async def test_a_terminating_pod_is_not_evicted():
    cluster = simulation()
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")
    cluster.pods["web/loud"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.report("loud")
    await enforce(cluster, 600)
    assert cluster.deleted == []


async def test_a_victim_gone_before_the_watch_reports_it_is_evicted_once():
    cluster, requested = simulation(), []
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")

    async def not_found(pod):
        requested.append(pod.name)
        raise PodGoneError("not found")

    cluster.evict = not_found
    await enforce(cluster, 60)
    for _ in range(5):
        plan = await cluster.parts.enforcement.plan_evictions()
        assert plan.evict == ()
    assert requested == ["loud"]
    cluster.remove_pod("loud")
    await enforce(cluster, 60)
    assert cluster.parts.enforcement.lasting_violations() == []


async def test_a_recreated_pod_of_the_same_name_does_not_count_as_terminating():
    cluster = simulation()

    async def slowly(pod):
        cluster.deleted.append(pod.name)

    cluster.evict = slowly
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")
    await enforce(cluster, 61)
    cluster.remove_pod("loud")
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")  # before the next check
    await enforce(cluster, 61)
    assert cluster.deleted == ["loud", "loud"]


async def test_violations_are_counted():
    cluster = simulation()
    cluster.add_pod("quiet", annotations=apart(app="loud"), node="one", priority=5)
    cluster.add_pod("loud", labels={"app": "loud"}, node="one")
    await enforce(cluster)
    assert b'bayplan_violations{rule="apart"} 1.0' in cluster.parts.metrics.text()


async def test_pods_that_all_exclude_each_other_are_evicted_in_turns_after_one_grace_period(monkeypatch):
    monkeypatch.setattr(enforcement, "MAX_PEERS_JUDGED", 100)
    cluster = simulation(EnforcementSettings(anti_affinity_grace=60, per_minute=1000, at_once=1000))
    for i in range(40):
        cluster.add_pod(
            f"web-{i:02}", labels={"app": "web"}, annotations=rule("podAntiAffinity", app="web"), node="one"
        )
    await enforce(cluster, 59)
    assert cluster.deleted == []
    await enforce(cluster, 2)
    assert len(cluster.deleted) == 39, "their grace periods run while they wait for their turn"
