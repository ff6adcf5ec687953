"""Workload controllers, rollouts, autoscalers and budgets in the course of time."""

import pytest

from .clusters import (
    apart,
    autoscaler,
    budget,
    deployment,
    first,
    node,
    reasons,
    simulate,
    state,
    three_zones,
    workload,
)

ROOM = [node(name, zone, cpu="32") for name, zone in (("a1", "a"), ("b1", "b"), ("c1", "c"))]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_workloads_are_scaled_up_and_down(kind):
    objects = [*ROOM, workload(kind, "web", 2)]
    steps = [
        {"at": "5m", "expect": {"ready": {"of": "web", "exactly": 2}}},
        {"at": "6m", "scale": {"web": 5}},
        {"at": "10m", "expect": {"ready": {"of": "web", "exactly": 5}}},
        {"at": "11m", "scale": {f"{kind}/web": 1}},
        {"at": "20m", "expect": [{"ready": {"of": "shop/web", "exactly": 1}}, {"pods": {"of": "web", "exactly": 1}}]},
    ]
    run = simulate(objects, steps)
    assert run.ok, str(run)


def test_a_stateful_set_starts_its_pods_one_after_another():
    run = simulate([*ROOM, workload("StatefulSet", "db", 3)], [{"at": "1m", "expect": {"pending": 0}}], all_events=True)
    started = {one.object: one.at for one in run.events if one.reason == "Started"}
    assert started == {"Pod shop/db-0": 5, "Pod shop/db-1": 10, "Pod shop/db-2": 15}


def test_a_rollout_replaces_pods_within_its_limits_and_says_when_it_is_complete():
    web = deployment(replicas=4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    steps = [
        {"at": "10m", "restart": "web"},
        {"at": "10m", "until": "20m", "expect": {"ready": {"of": "web", "atLeast": 4}}},
        {"at": "20m", "expect": {"rollouts": 0}},
    ]
    run = simulate([*ROOM, web], steps, timing={"start": "30s"})
    assert run.ok, str(run)
    assert reasons(run, "RolloutStarted", "RolloutComplete") == [
        (600, "Deployment shop/web", "RolloutStarted"),
        (720, "Deployment shop/web", "RolloutComplete"),
    ]


def test_a_rollout_that_gets_stuck_stays_in_progress():
    web = deployment(replicas=3, pod=apart("web"), strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    run = simulate([*three_zones(), web], [{"at": "10m", "restart": "web"}, {"at": "2h", "expect": {"rollouts": 0}}])
    (verdict,) = run
    assert (verdict.met, verdict.found) == (False, "1")
    assert first(run, "FailedScheduling") == 600


def test_applying_another_image_rolls_out_and_applying_the_same_again_does_not():
    changed = deployment(replicas=2)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"
    steps = [{"at": "5m", "apply": changed}, {"at": "10m", "apply": changed}, {"at": "15m", "expect": {"rollouts": 0}}]
    run = simulate([*ROOM, deployment(replicas=2)], steps)
    assert reasons(run, "RolloutStarted", "Unchanged") == [
        (300, "Deployment shop/web", "RolloutStarted"),
        (600, "Deployment shop/web", "Unchanged"),
    ]


def test_a_field_that_is_not_read_rolls_out_too_once_it_is_known_how_it_was_applied():
    first_time, second = deployment(), deployment()
    first_time["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    second["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "2"}]
    steps = [
        {"at": "5m", "apply": first_time},
        {"at": "10m", "apply": second},
        {"at": "15m", "expect": {"rollouts": 0}},
    ]
    run = simulate([*ROOM, deployment()], steps)
    assert reasons(run, "RolloutStarted") == [(600, "Deployment shop/web", "RolloutStarted")]
    assert any("compared in the fields that are read only" in note for note in run.notes)


def test_going_back_to_an_earlier_template_uses_its_replica_set_again():
    def image(number):
        changed = deployment(replicas=2)
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = f"web:{number}"
        return changed

    steps = [{"at": "5m", "apply": image(2)}, {"at": "15m", "apply": image(1)}, {"at": "25m", "scale": {"web": 3}}]
    where = state([*ROOM, image(1)], steps, "30m")
    before = state([*ROOM, image(1)], [], "1m")
    sets = {name.rsplit("-", 1)[0] for name in where}
    assert sets == {name.rsplit("-", 1)[0] for name in before}
    assert len(where) == 3
    assert not set(where) & set(before), "names are not used again"


def test_a_deleted_workload_goes_with_its_pods():
    objects = [*ROOM, deployment(), workload("StatefulSet", "db", 2)]
    assert sorted(state(objects, [{"at": "1m", "delete": ["Deployment/web"]}], "5m")) == ["db-0", "db-1"]


def test_pods_of_a_job_succeed_after_their_time_and_the_job_ends():
    objects = [*ROOM, workload("Job", "batch", parallelism=2, completions=5)]
    run = simulate(objects, [], lasts="1h", timing={"of": {"Job/batch": {"run": "10m"}}}, at=[900, 3600])
    assert [len([pod for pods in one.pods.values() for pod in pods]) for one in run.states] == [4, 5]
    assert run.to_dict()["eventCounts"]["Created"] == 5


def test_a_daemon_set_follows_new_nodes_and_labels():
    agent = workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}})
    objects = [node("a1", disk="ssd"), node("b1", "b")]
    steps = [{"at": "1m", "apply": node("c1", "c", disk="ssd")}, {"at": "2m", "relabel": {"node/b1": {"disk": "ssd"}}}]
    assert sorted(state([*objects, agent], steps, "5m").values()) == ["a1", "b1", "c1"]
    steps.append({"at": "6m", "relabel": {"node/a1": {"disk": None}}})
    assert sorted(state([*objects, agent], steps, "10m").values()) == ["b1", "c1"]


def test_pods_that_a_quota_refuses_are_created_when_there_is_room():
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"},
        "spec": {"hard": {"pods": "4"}},
    }  # fmt: skip
    objects = [*ROOM, quota, deployment(replicas=3), deployment("api", replicas=3)]
    run = simulate(
        objects, [{"at": "10m", "scale": {"web": 1}}, {"at": "30m", "expect": {"pods": {"of": "api", "exactly": 3}}}]
    )
    (refused,) = [one for one in run.events if one.reason == "FailedCreate"]
    assert "exceeded quota: q" in refused.note
    assert run.ok, str(run)


# Autoscalers


def test_an_autoscaler_follows_the_load_up_at_once_and_down_after_its_window():
    steps = [
        {"at": "10m", "load": {"web": 9}},
        {"at": "15m", "expect": {"ready": {"of": "web", "exactly": 9}}, "load": {"web": 2}},
        {"at": "19m", "expect": {"ready": {"of": "web", "exactly": 9}}},
        {"at": "25m", "expect": {"ready": {"of": "web", "exactly": 2}}},
    ]
    run = simulate([*ROOM, deployment(replicas=2), autoscaler()], steps)
    assert run.ok, str(run)
    sizes = [one.note for one in run.events if one.reason == "SuccessfulRescale"]
    assert sizes[0] == "New size: 6; it was 2", "at most four pods more, or twice as many, in 15 s"


def test_a_load_curve_is_a_straight_line_between_its_points():
    steps = [
        {"at": "0", "load": {"web": [2, 12, 2]}, "over": "2h"},
        {"at": "1h2m", "expect": {"pods": {"of": "web", "atLeast": 11}}},
        {"at": "2h30m", "expect": {"pods": {"of": "web", "exactly": 2}}},
    ]
    run = simulate([*ROOM, deployment(replicas=2), autoscaler()], steps)
    assert run.ok, str(run)


def test_bounds_and_behavior_of_an_autoscaler_count():
    slow = {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}}
    steps = [{"at": "10m", "load": {"web": 50}}, {"at": "14m", "expect": {"pods": {"of": "web", "atMost": 7}}}]
    run = simulate(
        [*ROOM, deployment(replicas=1), autoscaler(least=2, most=8, **slow)], steps, lasts="1h", at=[60, 3600]
    )
    assert run.ok, str(run)
    assert [sum(len(pods) for pods in one.pods.values()) for one in run.states] == [2, 8]


@pytest.mark.parametrize("limits, allowed", [({"maxUnavailable": 1}, 1), ({"minAvailable": "75%"}, 1), ({"minAvailable": 2}, 2)])  # fmt: skip
def test_budgets_are_counted_from_the_scale_of_the_controller(limits, allowed):
    objects = [node("a1", cpu="8"), node("b1", "b", cpu="1"), deployment(replicas=4), budget("web", **limits)]
    run = simulate(objects, [{"at": "10m", "drain": "node/a1"}], lasts="11m")
    assert run.evictions == {"drain": allowed}, "the rest has no room elsewhere, so the budget stays used up"


def test_pods_without_an_owner_are_adopted_and_those_without_their_controller_are_counted():
    def pod(name, owner=None):
        meta = {"name": name, "namespace": "shop", "labels": {"app": "db"}, "uid": f"uid-{name}"}
        if owner:
            meta["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "x", "controller": True}
            ]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": "a1", "containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}}  # fmt: skip

    objects = [*ROOM, workload("StatefulSet", "db", 2), pod("db-0"), pod("lone-1", "gone")]
    run = simulate(objects, [], lasts="5m", all_events=True, at=["5m"])
    assert [one.object for one in run.events if one.reason == "Created"] == ["Pod shop/db-1"]
    assert "1 pod has a controller that is not in the input: nothing creates them again" in run.notes
