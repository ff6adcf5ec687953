"""Execution-time rules on a real API server: real evictions, and budgets checked by the API server."""

import logging

import pytest

from bayplan.enforcing.planning import EnforcementSettings
from live.admin import wait_for
from live.bayplan_running import in_process
from live.breaking import QUICK, ZONE, Cluster, apart, near


@pytest.fixture
async def cluster(admin, namespace):
    await admin.create_nodes(3, zones=1)
    return await Cluster(admin, namespace).set_up()


async def test_a_pod_relabelled_into_a_conflict_is_evicted(kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("other")
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.relabel("other", app="loud")
        await wait_for(lambda: cluster.gone("other"))
        assert await cluster.names() == ["quiet"]
        (note,) = await wait_for(lambda: cluster.notes("RuleBroken"))
        assert "quiet rejects app=loud" in note
        assert await wait_for(lambda: cluster.notes("NeighbourEvicted"))  # recorded on the peer


async def test_relabelled_nodes_and_namespaces_cause_violations_too(kube_server, cluster):
    await cluster.admin.patch("nodes", "node-1", {"metadata": {"labels": {ZONE: "elsewhere"}}})
    await cluster.run("loud", "node-1", labels={"app": "loud"})
    await cluster.run("quiet", annotations=apart(ZONE, app="loud"), priority="high")
    await cluster.run("distrustful", "node-2", annotations=apart(namespaces={"trusted": "no"}), priority="high")
    await cluster.run("visitor", "node-2", labels={"app": "visitor"})
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.admin.patch("nodes", "node-1", {"metadata": {"labels": {ZONE: "zone-0"}}})
        await wait_for(lambda: cluster.gone("loud"))
        await cluster.admin.patch("namespaces", cluster.namespace, {"metadata": {"labels": {"trusted": "no"}}})
        await wait_for(lambda: cluster.gone("visitor"))
        assert await cluster.names() == ["distrustful", "quiet"]


async def test_pods_bound_by_another_scheduler_are_checked_too(kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.make("stray", labels={"app": "loud"})
        await cluster.admin.bind(cluster.namespace, "stray", "node-0")
        await wait_for(lambda: cluster.gone("stray"))
        assert await cluster.names() == ["quiet"]


async def test_a_required_peer_back_within_the_grace_period_prevents_the_eviction(kube_server, cluster):
    await cluster.run("s2", labels={"app": "s2"})
    await cluster.run("s1", "node-1", annotations=near(app="s2"))
    async with in_process(kube_server, enforcement=QUICK) as running:
        await cluster.end("s2")
        await wait_for(running.enforcement.lasting_violations)
        await cluster.run("s2", labels={"app": "s2"})
        await wait_for(lambda: not running.enforcement.lasting_violations())
        # The pod that lost its peer later is evicted after the same grace period: s1 would have been evicted before it.
        await cluster.run("later", "node-1", annotations=near(app="never"))
        await wait_for(lambda: cluster.gone("later"))
        assert await cluster.names() == ["s1", "s2"]


async def test_a_pod_is_evicted_when_its_required_peer_is_gone(kube_server, cluster):
    await cluster.run("s2", labels={"app": "s2"})
    await cluster.run("s1", "node-1", annotations=near(app="s2"), priority="high")  # regardless of its priority
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.end("s2")
        await wait_for(lambda: cluster.gone("s1"))
        assert await cluster.notes("RuleBroken")


async def test_a_required_peer_is_not_evicted_when_the_owner_of_the_rule_ends(kube_server, cluster):
    await cluster.run("s2", labels={"app": "s2"})
    await cluster.run("s1", "node-1", annotations=near(app="s2"))
    async with in_process(kube_server, enforcement=QUICK) as running:
        await cluster.end("s1")
        await wait_for(lambda: cluster.key("s1") not in running.state.index.records)
        assert not running.enforcement.lasting_violations()
        await cluster.run("later", "node-1", annotations=near(app="never"))
        await wait_for(lambda: cluster.gone("later"))
        assert await cluster.names() == ["s2"]


@pytest.mark.parametrize(
    "quiet, loud, evicted",
    [
        ("low", "low", "quiet"),  # at equal priority the owner of the rule
        ("high", "low", "loud"),
        ("low", "high", "quiet"),
    ],
)
async def test_which_of_two_pods_is_evicted(quiet, loud, evicted, kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"), priority=quiet)
    await cluster.run("loud", labels={"app": "loud"}, priority=loud)
    async with in_process(kube_server, enforcement=QUICK) as running:
        await wait_for(lambda: cluster.gone(evicted))
        await wait_for(lambda: not running.enforcement.lasting_violations())
        assert await cluster.names() == [{"quiet": "loud", "loud": "quiet"}[evicted]]


async def test_a_budget_prevents_the_eviction(kube_server, cluster):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    budget["metadata"] = {"name": "keep", "namespace": cluster.namespace}
    budget["spec"] = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "loud"}}}
    await cluster.admin.create(budget)
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("loud", labels={"app": "loud"})
    async with in_process(kube_server, enforcement=QUICK):
        assert await wait_for(lambda: cluster.notes("EvictionRefused"))
        assert await cluster.names() == ["loud", "quiet"]
        await cluster.admin.delete("policy/v1/poddisruptionbudgets", "keep", cluster.namespace)
        await wait_for(lambda: cluster.gone("loud"))


async def full(cluster):
    """Two conflicting pods on node-0, and no room on other nodes."""
    for node in ("node-1", "node-2"):
        await cluster.run(f"full-{node}", node, cpu="4")
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("loud", labels={"app": "loud"}, cpu="3")


async def test_a_pod_is_evicted_even_if_no_other_node_is_feasible(kube_server, cluster):
    await full(cluster)
    async with in_process(kube_server, enforcement=QUICK):
        await wait_for(lambda: cluster.gone("loud"))
        assert await cluster.names() == ["full-node-1", "full-node-2", "quiet"]


async def test_only_if_placeable_prevents_the_eviction(kube_server, cluster):
    await full(cluster)
    spare = EnforcementSettings(anti_affinity_grace=1, retry_after=1, only_if_placeable=True)
    async with in_process(kube_server, enforcement=spare) as running:
        # A pod that fits another node is evicted, although its rule was violated later.
        await cluster.run("small", labels={"app": "small"})
        await cluster.run("shy", annotations=apart(app="small"), priority="high")
        await wait_for(lambda: cluster.gone("small"))
        assert await cluster.names() == ["full-node-1", "full-node-2", "loud", "quiet", "shy"]
        assert running.enforcement.lasting_violations()
        await cluster.end("full-node-2")  # now there is room
        await wait_for(lambda: cluster.gone("loud"))


async def test_a_dry_run_changes_nothing(kube_server, cluster, caplog):
    caplog.set_level(logging.INFO)
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("loud", labels={"app": "loud"})
    before = await cluster.admin.items("pods", cluster.namespace)
    async with in_process(kube_server, enforcement=QUICK, enforcement_dry_run=True) as running:
        await wait_for(lambda: [said.pod for said in caplog.records if said.message == "would evict"])
        assert running.enforcement.lasting_violations()
    assert await cluster.admin.items("pods", cluster.namespace) == before
    assert await cluster.admin.items("events.k8s.io/v1/events", cluster.namespace) == []


async def test_no_eviction_follows_once_enforcement_is_switched_off(kube_server, cluster):
    """One victim terminates and others wait for the limit: those are not evicted."""
    for i in range(3):
        await cluster.run(f"quiet-{i}", f"node-{i}", annotations=apart(app="loud"), priority="high")
        await cluster.run(f"loud-{i}", f"node-{i}", labels={"app": "loud"}, finalizers=["example.com/stays"])
    one_by_one = EnforcementSettings(anti_affinity_grace=1, retry_after=1, at_once=1)
    async with in_process(kube_server, enforcement=one_by_one) as running:
        (terminating,) = await wait_for(cluster.terminating)
        running.toggle_enforcement()
        await cluster.admin.patch("pods", terminating, {"metadata": {"finalizers": None}}, cluster.namespace)
        await wait_for(lambda: cluster.key(terminating) not in running.state.index.records)
        assert (await running.enforcement.plan_evictions()).evict == ()
        assert await cluster.terminating() == []
        assert len(await cluster.names()) == 5
        running.toggle_enforcement()
        (another,) = await wait_for(cluster.terminating)
        assert another != terminating
