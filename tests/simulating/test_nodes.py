"""Machines that are lost and come back: when the cluster notices, which pods leave, at what rate."""

import pytest

from .clusters import ZONE, budget, deployment, first, node, reasons, simulate, state, three_zones, workload

LOSE = {"at": "10m", "lose": "node/a1"}


def test_a_lost_machine_is_noticed_after_the_grace_period_and_its_pods_leave_five_minutes_later():
    run = simulate([*three_zones(), deployment(replicas=3)], [LOSE], lasts="1h")
    assert reasons(run, "MachineLost", "NodeNotReady") == [
        (600, "Node a1", "MachineLost"),
        (650, "Node a1", "NodeNotReady"),
    ]
    (evicted,) = [one for one in run.events if one.reason == "TaintManagerEviction"]
    assert evicted.at == 950  # DefaultTolerationSeconds: 300 s after the taint
    assert run.evictions == {"taint": 1}


def test_the_replacement_runs_elsewhere_and_the_lost_pod_stays_terminating_until_the_machine_is_back():
    objects = [*three_zones(), deployment(replicas=3)]
    after_loss = state(objects, [LOSE], "30m")
    assert sorted(after_loss.values()).count("a1") == 1, "its kubelet cannot end it"
    assert len(after_loss) == 4
    back = state(objects, [LOSE, {"at": "30m", "recover": "node/a1"}], "40m")
    assert len(back) == 3
    assert "a1" not in back.values(), "nothing moves back by itself"


def test_a_pod_of_a_stateful_set_is_not_replaced_while_it_is_terminating():
    objects = [*three_zones(), workload("StatefulSet", "db", 3)]
    where = state(objects, [LOSE], "2h")
    assert len(where) == 3
    lost = next(name for name, at in where.items() if at == "a1")
    after = state(objects, [LOSE, {"at": "1h", "delete": "Node/a1"}], "2h")
    assert after[lost] in ("b1", "c1"), "the garbage collector deletes pods of nodes that are gone"


@pytest.mark.parametrize("seconds, leaves_at", [(0, 650), (60, 710), (3600, None)])
def test_toleration_seconds(seconds, leaves_at):
    tolerations = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for what in ("not-ready", "unreachable")
    ]
    objects = [*three_zones(), deployment(replicas=3, pod={"tolerations": tolerations})]
    run = simulate(objects, [LOSE], lasts="1h")
    found = [one.at for one in run.events if one.reason == "TaintManagerEviction"]
    assert found == ([] if leaves_at is None else [leaves_at])


def test_a_daemon_stays_on_a_node_that_is_not_ready():
    run = simulate([*three_zones(), workload("DaemonSet", "agent")], [LOSE], lasts="1h")
    assert not reasons(run, "TaintManagerEviction")
    (agent,) = run.workloads
    assert agent.unavailable == pytest.approx((50 + 3 * 5) / 60, abs=0.01), "then no pod is asked for there"


def test_nodes_of_a_zone_are_tainted_one_after_another():
    objects = [node(f"a{n}", "a") for n in range(3)] + [node(f"b{n}", "b") for n in range(3)]
    tolerations = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    ]
    objects.append(deployment(replicas=6, pod={"tolerations": tolerations}))
    run = simulate(objects, [{"at": "10m", "lose": f"{ZONE}=a"}], lasts="1h")
    times = sorted(one.at for one in run.events if one.reason == "TaintManagerEviction")
    assert times == [650, 660, 670], "a whole zone is lost: one node in ten seconds"


def test_if_nothing_is_heard_of_any_node_no_pod_is_evicted():
    run = simulate(
        [*three_zones(), deployment()], [{"at": "10m", "lose": ["node/a1", "node/b1", "node/c1"]}], lasts="2h"
    )
    assert run.evictions == {}
    run = simulate(
        [*three_zones(), deployment()],
        [{"at": "10m", "lose": ["node/a1", "node/b1", "node/c1"]}, {"at": "1h", "recover": "node/b1"}],
        lasts="2h",
    )
    assert run.evictions == {"taint": 2}


def test_evictions_stop_in_a_small_zone_most_of_whose_nodes_are_lost():
    objects = [*(node(f"n{n}") for n in range(5)), deployment(replicas=5)]
    run = simulate(objects, [{"at": "10m", "lose": [f"node/n{n}" for n in range(3)]}], lasts="1h")
    assert run.evictions == {}
    run = simulate(objects, [{"at": "10m", "lose": [f"node/n{n}" for n in range(2)]}], lasts="1h")
    assert run.evictions == {"taint": 2}


def test_a_machine_that_is_back_in_time_loses_no_pod():
    run = simulate(
        [*three_zones(), deployment()], [LOSE, {"at": "12m", "recover": "node/a1"}], lasts="1h", timing={"start": "30s"}
    )
    assert reasons(run, "NodeNotReady", "NodeReady") == [
        (650, "Node a1", "NodeNotReady"),
        (720, "Node a1", "NodeReady"),
    ]
    assert run.evictions == {}
    (web,) = run.workloads
    assert web.unavailable == pytest.approx(1.5 + 2 + 0.5), "three starts, two minutes without it, and its start again"


def test_ready_does_not_count_a_pod_whose_machine_is_lost_though_no_controller_knows_yet():
    step = {"at": "10m", "lose": "node/a1", "expect": {"ready": {"of": "web", "exactly": 2}}}
    assert simulate([*three_zones(), deployment(replicas=3)], [step]).ok


def test_a_taint_that_pods_do_not_tolerate_drives_them_away_at_once():
    objects = [*three_zones(), deployment(replicas=3)]
    run = simulate(objects, [{"at": "10m", "taint": {"node/a1": "broken=disk:NoExecute"}}], lasts="20m", at=[1200])
    assert first(run, "TaintManagerEviction") == 600
    assert run.states[0].pods["a1"] == ()
    run = simulate(
        objects,
        [
            {"at": "10m", "taint": {"node/a1": "broken=disk:NoSchedule"}},
            {"at": "11m", "scale": {"web": 9}},
            {"at": "12m", "taint": {"node/a1": "broken-"}, "expect": {"pods": {"of": "web", "exactly": 9}}},
        ],
        at=[720],
    )
    assert len(run.states[0].pods["a1"]) == 1


def test_a_drain_evicts_as_the_budget_allows_and_leaves_daemons():
    objects = [
        node("a1"), node("b1", "b"),
        deployment(replicas=4), budget("web", minAvailable=3), workload("DaemonSet", "agent", cpu="10m"),
    ]  # fmt: skip
    run = simulate(objects, [{"at": "10m", "drain": "node/a1"}], lasts="1h", at=[3600], timing={"start": "20s"})
    refused = [one for one in run.events if one.reason == "EvictionRefused"]
    assert "needs 3 healthy pods and has 3 currently" in refused[0].note
    assert 620 <= first(run, "Drained") <= 625
    assert [pod.startswith("shop/agent-") for pod in run.states[0].pods["a1"]] == [True]
    assert run.evictions == {"drain": 2}


def test_a_drain_of_a_pod_without_a_controller_is_refused_as_by_kubectl():
    bare = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": "shop"},
        "spec": {"nodeName": "a1", "containers": [{"name": "c", "image": "i"}]},
    }  # fmt: skip
    run = simulate([*three_zones(), bare], [{"at": "1m", "drain": "node/a1"}], lasts="5m")
    (refused,) = [one for one in run.events if one.reason == "DrainRefused"]
    assert "kubectl drain evicts nothing without --force" in refused.note


def test_a_cordoned_node_gets_no_pods_until_it_is_uncordoned():
    steps = [{"at": "1m", "cordon": "node/a1"}, {"at": "2m", "scale": {"web": 6}}]
    objects = [node("a1", cpu="8"), node("b1", "b", cpu="3"), deployment(replicas=2)]
    waits = state(objects, steps, "5m")
    assert list(waits.values()).count("") == 2
    assert "" not in state(objects, [*steps, {"at": "3m", "uncordon": "node/a1"}], "5m").values()
