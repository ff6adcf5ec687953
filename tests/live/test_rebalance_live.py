"""`bayplan rebalance` on a real API server: the plan, and `--apply`."""

import asyncio
import json
import os
import pathlib
import pty
import re
import signal

import pytest
import yaml

from live.admin import wait_for
from live.bayplan_running import in_process
from live.fleets import binding, cluster
from live.programs import ended, started
from live.replica_sets import ReplicaSet, crowded, preferred_anti_affinity

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "rebalance-workloads.md"


@pytest.fixture
async def crowd(admin, namespace):
    return await crowded(admin, namespace)


async def test_a_plan_alone_changes_nothing(kube_server, crowd):
    before = await crowd.pods()
    code, answer, said = await ended("rebalance", kube_server)
    assert code == 1
    assert len(answer.splitlines()) == 3
    assert "2 moves gain 600 points" in said
    assert await crowd.pods() == before


async def test_the_plan_is_carried_out(kube_server, crowd):
    async with in_process(kube_server), crowd.reconciled():
        code, answer, said = await ended("rebalance", kube_server, "--apply", "--yes")
        assert code == 0, said
        assert len(answer.splitlines()) == 3
        assert "move 1 of 2: evicting" in said
        assert said.endswith("note: 2 of 2 moves made, 600 of 600 points gained\n")
        assert sorted((await crowd.pods()).values()) == ["node-0", "node-1", "node-2"]


async def test_the_json_output_has_the_outcome(kube_server, crowd):
    async with in_process(kube_server), crowd.reconciled():
        code, answer, said = await ended("rebalance", kube_server, "--apply", "--yes", "-o", "json", "--max-moves", "1")
        assert code == 0, said
        applied = json.loads(answer)["applied"]
        assert applied["summary"]["complete"]
        (made,) = applied["made"]
        pods = await crowd.pods()
        assert made["asPlanned"]
        assert pods[made["replacement"].partition("/")[2]] == made["to"] != "node-0"
        assert made["workload"].partition("/")[2] not in pods


async def test_without_a_terminal_it_requires_yes(kube_server, crowd):
    code, answer, said = await ended("rebalance", kube_server, "--apply")
    assert (code, answer) == (2, "")
    assert "use --yes" in said
    assert len(await crowd.pods()) == 3


@pytest.mark.parametrize("answer, code, moved", [(b"y\n", 0, 2), (b"n\n", 1, 0)])
async def test_at_a_terminal_it_prompts(kube_server, crowd, answer, code, moved):
    before = await crowd.pods()
    mine, its = pty.openpty()
    try:
        async with (
            in_process(kube_server),
            crowd.reconciled(),
            started("rebalance", kube_server, "--apply", stdin=its) as program,
        ):
            await wait_for(lambda: "moves gain" in program.said)
            os.write(mine, answer)
            found, plan = await program.end()
    finally:
        os.close(mine)
        os.close(its)
    assert found == code, program.said
    assert len(plan.splitlines()) == 3
    assert "Evict these 2 pods? [y/N]" in program.said
    assert len(before.keys() - (await crowd.pods()).keys()) == moved


async def test_pods_without_a_controller_stay(kube_server, admin, namespace):
    await admin.create_nodes(3)
    for n in range(3):
        meta = {"labels": {"app": "web"}}
        await admin.create_pod(
            f"web-{n}", namespace, meta=meta, affinity=preferred_anti_affinity("web"), nodeName="node-0"
        )
    code, _, said = await ended("rebalance", kube_server, "--apply", "--yes")
    assert code == 0
    assert (
        f"no controller that would recreate them, and are not evicted: {namespace}/web-0, {namespace}/web-1, {namespace}/web-2"
        in said
    )
    assert len(await admin.items("pods", namespace)) == 3


async def test_it_stops_when_no_replacement_comes(kube_server, crowd):
    code, _, said = await ended("rebalance", kube_server, "--apply", "--yes", "--timeout", "1s")
    assert code == 1
    assert "no replacement was created within 1 s" in said
    assert "stopped: 1 of 2 moves made, 0 of 600 points gained" in said
    assert len(await crowd.pods()) == 2


async def test_it_stops_when_the_replacement_has_no_node(kube_server, crowd):
    async with crowd.reconciled():  # without a scheduler
        code, _, said = await ended("rebalance", kube_server, "--apply", "--yes", "--timeout", "4s")
    assert code == 1
    assert "has no node within 4 s" in said
    assert sorted((await crowd.pods()).values()) == ["", "node-0", "node-0"]


async def test_it_waits_until_the_old_pod_is_deleted(kube_server, admin, namespace):
    await admin.create_nodes(3)
    slow = {"terminationGracePeriodSeconds": 60}
    web = await ReplicaSet.create(admin, "web", namespace, 2, affinity=preferred_anti_affinity("web"), **slow)
    for _ in range(2):
        await web.make_pod("node-0")
    async with (
        in_process(kube_server),
        web.reconciled(),
        started("rebalance", kube_server, "--apply", "--yes") as program,
    ):

        async def replaced():
            return sorted((await web.pods()).values())[1:] in (["node-1"], ["node-2"])

        await wait_for(replaced)
        assert "was replaced by" not in program.said
        (old,) = await web.terminating()
        await admin.delete("pods", old, namespace)  # as its kubelet would do
        code, _ = await program.end()
    assert code == 0, program.said
    assert "1 of 1 move made, 200 of 200 points gained" in program.said


async def test_an_interrupt_ends_the_run_between_moves(kube_server, crowd):
    async with started("rebalance", kube_server, "--apply", "--yes") as program:

        async def one_is_gone():
            return len(await crowd.pods()) == 2

        await wait_for(one_is_gone)
        program.child.send_signal(signal.SIGINT)
        code, _ = await program.end()
    assert code == 130
    assert "interrupted: 1 of 2 moves made" in program.said
    assert len(await crowd.pods()) == 2


async def test_a_move_that_gains_nothing_any_more_is_dropped(kube_server, admin, crowd):
    async with in_process(kube_server), started("rebalance", kube_server, "--apply", "--yes") as program:

        async def one_is_gone():
            return len(await crowd.pods()) == 2

        await wait_for(one_is_gone)
        await admin.patch("nodes", "node-2", {"spec": {"unschedulable": True}})
        async with crowd.reconciled():
            code, _ = await program.end()
    assert code == 0, program.said
    assert "is not moved: moving it gains nothing any more" in program.said
    assert "1 of 2 moves made, 400 of 600 points gained; 1 dropped" in program.said
    assert sorted((await crowd.pods()).values()) == ["node-0", "node-0", "node-1"]


async def grant(admin, role):
    """Give a ClusterRole to the user `restricted`, which has no other rights."""
    # Another test may have defined Karmada's kinds, which are then listed too.
    fleet = {"apiGroups": ["cluster.karmada.io", "policy.karmada.io", "work.karmada.io"], "resources": ["*"]}
    await admin.create({**role, "rules": [*role["rules"], {**fleet, "verbs": ["list"]}]})
    group = "rbac.authorization.k8s.io"
    meta = role["metadata"]
    subject = {"kind": "ServiceAccount", "name": "restricted", "namespace": "default"}
    reference = {"kind": "ClusterRole", "name": meta["name"], "apiGroup": group}
    binding = {"subjects": [subject], "roleRef": reference}
    await admin.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": meta, **binding})


def documented_role():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return yaml.safe_load(text)


async def test_the_documented_rights_are_enough(kube_server, admin, crowd):
    await grant(admin, documented_role())
    async with in_process(kube_server), crowd.reconciled():
        code, _, said = await ended("rebalance", kube_server, "--apply", "--yes", user="restricted")
    assert code == 0, said
    # Other tests may have left Karmada's kinds on this server; the rights are for a cluster without them.
    assert [line for line in said.splitlines() if "decided without" in line and "karmada.io" not in line] == []
    assert "2 of 2 moves made" in said


async def test_a_missing_right_to_evict_is_reported(kube_server, admin, crowd):
    role = documented_role()
    await grant(admin, {**role, "rules": role["rules"][:2]})
    code, _, said = await ended("rebalance", kube_server, "--apply", "--yes", user="restricted")
    assert code == 3
    assert 'cannot create resource "pods/eviction"' in said
    assert "0 of 2 moves made" in said
    assert len(await crowd.pods()) == 3


async def test_it_stops_if_the_scheduler_chooses_other_nodes_without_a_gain(kube_server, admin, crowd):
    async with crowd.reconciled(), started("rebalance", kube_server, "--apply", "--yes") as program:

        async def replacement():
            return [name for name, node in (await crowd.pods()).items() if not node]

        (name,) = await wait_for(replacement)
        await admin.bind(crowd.namespace, name, "node-0")  # its old node
        code, _ = await program.end()
    assert code == 1
    assert "elsewhere than planned, and nothing was gained" in program.said
    assert "stopped: 1 of 2 moves made, 0 of 600 points gained" in program.said
    assert set((await crowd.pods()).values()) == {"node-0"}


async def test_kube_scheduler_may_place_the_replacements(kube_server, admin, namespace):
    """Among equal nodes it takes any, with the same gain; its default spreading is part of the plan."""
    await admin.create_nodes(3)
    web = await ReplicaSet.create(
        admin, "web", namespace, 3, scheduler="default-scheduler", affinity=preferred_anti_affinity("web"), cpu="100m"
    )
    for _ in range(3):
        await web.make_pod("node-0")
    await asyncio.to_thread(kube_server.start_scheduler)
    async with web.reconciled():
        code, _, said = await ended("rebalance", kube_server, "--apply", "--yes")
    assert code == 0, said
    assert "2 of 2 moves made, 600 of 600 points gained" in said
    assert sorted((await web.pods()).values()) == ["node-0", "node-1", "node-2"]


async def test_bindings_are_planned_for_but_not_moved(karmada_server, admin, namespace):
    await admin.create_all([cluster("home"), cluster("away")])
    groups = [{"affinityName": name, "clusterNames": [name]} for name in ("home", "away")]
    dividing = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    placement = {"clusterAffinities": groups, "replicaScheduling": dividing}
    await admin.create(binding("shop", namespace, {"away": 4}, placement, replicas=4))
    observed = {"status": {"schedulerObservingAffinityName": "away"}}
    resource = "work.karmada.io/v1alpha2/resourcebindings"
    await admin.patch(resource, "shop-deployment", observed, namespace, subresource="status")

    code, answer, said = await ended("rebalance", karmada_server, "-o", "json")
    assert code == 1, said
    (item,) = json.loads(answer)["items"]
    assert (item["workload"], item["to"]) == (f"{namespace}/shop-deployment", [{"name": "home", "replicas": 4}])
    code, answer, said = await ended("rebalance", karmada_server, "--apply", "--yes")
    assert (code, answer) == (2, "")
    assert "it is not supported for fleets" in said
