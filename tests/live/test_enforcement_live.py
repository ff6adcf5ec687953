"""Rules that hold while pods run, on a real API server: evictions are real, and budgets are the API server's."""

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
        assert await wait_for(lambda: cluster.notes("NeighbourEvicted"))  # told to the cause


async def test_a_node_moved_and_a_namespace_relabelled_break_rules_too(kube_server, cluster):
    await cluster.admin.patch("nodes", "node-1", {"metadata": {"labels": {ZONE: "elsewhere"}}})
    await cluster.run("loud", "node-1", labels={"app": "loud"})
    await cluster.run("quiet", annotations=apart(ZONE, app="loud"), priority="high")
    await cluster.run("distrustful", "node-2", annotations=apart(namespaces={"trusted": "no"}), priority="high")
    await cluster.run("guest", "node-2", labels={"app": "guest"})
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.admin.patch("nodes", "node-1", {"metadata": {"labels": {ZONE: "zone-0"}}})
        await wait_for(lambda: cluster.gone("loud"))
        await cluster.admin.patch("namespaces", cluster.namespace, {"metadata": {"labels": {"trusted": "no"}}})
        await wait_for(lambda: cluster.gone("guest"))
        assert await cluster.names() == ["distrustful", "quiet"]


async def test_a_pod_that_another_scheduler_binds_is_judged_as_well(kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.make("stray", labels={"app": "loud"})
        await cluster.admin.bind(cluster.namespace, "stray", "node-0")
        await wait_for(lambda: cluster.gone("stray"))
        assert await cluster.names() == ["quiet"]


async def test_a_partner_back_within_the_grace_time_costs_nothing(kube_server, cluster):
    await cluster.run("s2", labels={"app": "s2"})
    await cluster.run("s1", "node-1", annotations=near(app="s2"))
    async with in_process(kube_server, enforcement=QUICK) as running:
        await cluster.end("s2")
        await wait_for(running.enforcement.broken)
        await cluster.run("s2", labels={"app": "s2"})
        await wait_for(lambda: not running.enforcement.broken())
        # Whoever lost its partner later has used up the same grace time: s1 would have gone before.
        await cluster.run("later", "node-1", annotations=near(app="never"))
        await wait_for(lambda: cluster.gone("later"))
        assert await cluster.names() == ["s1", "s2"]


async def test_a_partner_gone_for_good_takes_its_follower_along(kube_server, cluster):
    await cluster.run("s2", labels={"app": "s2"})
    await cluster.run("s1", "node-1", annotations=near(app="s2"), priority="high")  # whatever its priority
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.end("s2")
        await wait_for(lambda: cluster.gone("s1"))
        assert await cluster.notes("RuleBroken")


async def test_when_the_follower_ends_its_partner_runs_on(kube_server, cluster):
    await cluster.run("s2", labels={"app": "s2"})
    await cluster.run("s1", "node-1", annotations=near(app="s2"))
    async with in_process(kube_server, enforcement=QUICK) as running:
        await cluster.end("s1")
        await wait_for(lambda: cluster.key("s1") not in running.state.index.records)
        assert not running.enforcement.broken()
        await cluster.run("later", "node-1", annotations=near(app="never"))
        await wait_for(lambda: cluster.gone("later"))
        assert await cluster.names() == ["s2"]


@pytest.mark.parametrize(
    "quiet, loud, goes",
    [
        ("low", "low", "quiet"),  # at equal priority the owner of the rule
        ("high", "low", "loud"),
        ("low", "high", "quiet"),
    ],
)
async def test_who_goes_of_two(quiet, loud, goes, kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"), priority=quiet)
    await cluster.run("loud", labels={"app": "loud"}, priority=loud)
    async with in_process(kube_server, enforcement=QUICK) as running:
        await wait_for(lambda: cluster.gone(goes))
        await wait_for(lambda: not running.enforcement.broken())
        assert await cluster.names() == [{"quiet": "loud", "loud": "quiet"}[goes]]


async def test_a_budget_forbids_it(kube_server, cluster):
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
    """Everything on node-0, where quiet and loud cannot be together, and no room anywhere else."""
    for node in ("node-1", "node-2"):
        await cluster.run(f"full-{node}", node, cpu="4")
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("loud", labels={"app": "loud"}, cpu="3")


async def test_with_nothing_better_available_the_victim_goes_all_the_same(kube_server, cluster):
    await full(cluster)
    async with in_process(kube_server, enforcement=QUICK):
        await wait_for(lambda: cluster.gone("loud"))
        assert await cluster.names() == ["full-node-1", "full-node-2", "quiet"]


async def test_with_nothing_better_available_the_victim_can_be_spared(kube_server, cluster):
    await full(cluster)
    spare = EnforcementSettings(anti_affinity_grace=1, retry_after=1, only_if_placeable=True)
    async with in_process(kube_server, enforcement=spare) as running:
        # Somebody who has another place goes, although its rule was broken later.
        await cluster.run("small", labels={"app": "small"})
        await cluster.run("shy", annotations=apart(app="small"), priority="high")
        await wait_for(lambda: cluster.gone("small"))
        assert await cluster.names() == ["full-node-1", "full-node-2", "loud", "quiet", "shy"]
        assert running.enforcement.broken()
        await cluster.end("full-node-2")  # now there is room
        await wait_for(lambda: cluster.gone("loud"))


async def test_a_dry_run_changes_nothing(kube_server, cluster, caplog):
    caplog.set_level(logging.INFO)
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("loud", labels={"app": "loud"})
    before = await cluster.admin.items("pods", cluster.namespace)
    async with in_process(kube_server, enforcement=QUICK, enforcement_dry_run=True) as running:
        await wait_for(lambda: [said.pod for said in caplog.records if said.message == "would evict"])
        assert running.enforcement.broken()
    assert await cluster.admin.items("pods", cluster.namespace) == before
    assert await cluster.admin.items("events.k8s.io/v1/events", cluster.namespace) == []


async def test_switched_off_in_flight_nobody_else_goes(kube_server, cluster):
    """One is on its way out, others wait for it: they are let off, and it is not called back."""
    for i in range(3):
        await cluster.run(f"quiet-{i}", f"node-{i}", annotations=apart(app="loud"), priority="high")
        await cluster.run(f"loud-{i}", f"node-{i}", labels={"app": "loud"}, finalizers=["example.com/stays"])
    one_by_one = EnforcementSettings(anti_affinity_grace=1, retry_after=1, at_once=1)
    async with in_process(kube_server, enforcement=one_by_one) as running:
        (going,) = await wait_for(cluster.ending)
        running.toggle_enforcement()
        await cluster.admin.patch("pods", going, {"metadata": {"finalizers": None}}, cluster.namespace)
        await wait_for(lambda: cluster.key(going) not in running.state.index.records)
        assert (await running.enforcement.plan_evictions()).evict == ()
        assert await cluster.ending() == []
        assert len(await cluster.names()) == 5
        running.toggle_enforcement()
        (another,) = await wait_for(cluster.ending)
        assert another != going
