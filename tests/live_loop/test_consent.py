"""Enforcement across namespaces: who consents, what is reported, and what owners of pods read about other namespaces."""

import json

import pytest

from bayplan.enforcing.planning import EnforcementSettings
from live_loop.simulated import Simulation
from live_loop.test_enforcement import EXECUTION, HOST, enforce

ANYWHERE = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": HOST}
AGAINST_ALL = {"bayplan.io/affinity": json.dumps({"podAntiAffinity": {EXECUTION: [ANYWHERE]}})}


def attacked(*, granted=(), consenting=None, **settings):
    """Five pods of each of two namespaces, and a running pod of a tenant that gets a rule against all of them."""
    enforcement = EnforcementSettings(anti_affinity_grace=60, granted=frozenset(granted))
    cluster = Simulation(enforcement=enforcement, **settings)
    cluster.add_node("one")
    cluster.add_namespace("lab")
    for namespace in ("web", "bank"):
        cluster.add_namespace(namespace, **({"bayplan.io/evictable-by": consenting} if consenting else {}))
        for i in range(5):
            cluster.add_pod(f"{namespace}-{i}", namespace=namespace, node="one")
    cluster.add_pod("tenant", namespace="lab", node="one", priority=1000)
    return cluster


def patch(cluster):
    cluster.pods["lab/tenant"]["metadata"]["annotations"] = AGAINST_ALL
    cluster.report("tenant", "lab")


async def settled(cluster, seconds):
    await enforce(cluster, seconds)
    cluster.parts.enforcement.report_withheld(await cluster.parts.enforcement.plan_evictions())
    await cluster.parts.events.flush()


async def test_a_rule_patched_onto_a_running_pod_evicts_no_pod_of_other_namespaces():
    cluster = attacked()
    await settled(cluster, 10)
    patch(cluster)
    await settled(cluster, 600)
    await settled(cluster, 600)
    assert cluster.deleted == []
    (note,) = cluster.notes("tenant", "RuleNotEnforced")
    assert note.startswith("not enforced, because 10 pods of namespaces without consent would be evicted: lab/tenant")
    assert b'bayplan_evictions_total{outcome="withheld"} 10.0' in cluster.parts.metrics.text()


@pytest.mark.parametrize("how", [{"granted": ["lab"]}, {"consenting": "lab"}, {"consenting": "ANY"}])
async def test_with_a_grant_or_consent_they_are_evicted(how):
    cluster = attacked(**how)
    patch(cluster)
    await settled(cluster, 600)
    assert len(cluster.deleted) == 10
    assert cluster.notes("tenant", "RuleNotEnforced") == []


async def test_consent_withdrawn_while_victims_are_chosen_evicts_nothing(monkeypatch):
    cluster = attacked(consenting="lab")
    patch(cluster)
    await cluster.parts.enforcement.plan_evictions()
    cluster.now += 100
    enforcer = cluster.parts.enforcement._enforcer
    choosing = enforcer.choosing

    def then_withdraw(*what):
        choose = choosing(*what)

        def chosen():
            found = choose()
            assert len(found.evictions) == 10
            return found

        cluster.add_namespace("web")
        cluster.add_namespace("bank", **{"bayplan.io/evictable-by": "other"})
        return chosen

    monkeypatch.setattr(enforcer, "choosing", then_withdraw)
    plan = await cluster.parts.enforcement.plan_evictions()
    assert plan.evict == ()


@pytest.mark.parametrize("show_all, shown", [(False, "a pod of another namespace"), (True, "lab/tenant")])
async def test_victims_are_told_the_owner_of_the_rule_only_if_configured(show_all, shown):
    cluster = attacked(consenting="ANY", names_other_namespaces=show_all)
    patch(cluster)
    await settled(cluster, 600)
    (note,) = cluster.notes("web-0", "RuleBroken")
    assert note.endswith(f"{shown} rejects everything in any namespace in {HOST}=one")
    notes = cluster.notes("tenant", "NeighbourEvicted")
    assert any("web/web-0 was evicted" in note for note in notes) is show_all
    assert any("a pod of another namespace was evicted" in note for note in notes) is not show_all


@pytest.mark.parametrize(
    "show_all, shown", [(False, "a pod of another namespace (1 node)"), (True, "bank/vault on one")]
)
async def test_an_unschedulable_pod_names_blockers_of_other_namespaces_only_if_configured(show_all, shown):
    cluster = Simulation(names_other_namespaces=show_all)
    for name in ("one", "two"):
        cluster.add_node(name)
    cluster.add_namespace("web")
    cluster.add_namespace("bank")
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "namespaces": ["web", "bank"], "topologyKey": HOST}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.add_pod("vault", namespace="bank", labels={"app": "x"}, node="one")
    cluster.add_pod("own", labels={"app": "x"}, node="two")
    cluster.add_pod("new", labels={"app": "x"}, affinity=alone)
    await cluster.settle()
    (note,) = cluster.notes("new", "FailedScheduling")
    assert note.startswith("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: ")
    assert sorted(note.partition("Blocked by ")[2].rstrip(".").split(", ")) == sorted(["web/own on two", shown])
    assert "bank" not in cluster.condition("new")["message"], "it has kube-scheduler's text alone"
