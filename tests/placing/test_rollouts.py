"""Updates, stepped through: whether they complete, where they get stuck and why, and which pod moves where."""

import pytest

from bayplan.placing.rollout_history import Move, PodOnNode
from rollout_scenes import (
    APART,
    HOSTNAME,
    controller,
    daemons,
    deployed,
    node,
    nodes_of,
    pod_of,
    roll_out,
    stateful,
    stepper,
)

NODES = [node(name) for name in "abcd"]


def steps_of(result):
    """Each step as `+created -deleted =placed`, by number."""
    return [f"+{len(step.created)} -{len(step.deleted)} ={len(step.placed)}" for step in result.steps]


def recreate(**more):
    return controller("Deployment", strategy={"type": "Recreate"}, **more)


def rolling(surge, unavailable, **more):
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    return controller("Deployment", strategy={"type": "RollingUpdate", "rollingUpdate": limits}, **more)


def test_a_deployment_that_asks_for_too_much_is_stuck_although_its_old_pods_run():
    old, new = controller("Deployment"), controller("Deployment", cpu="64")
    result = roll_out([*NODES, *deployed(old, *"abc")], new)["web"]
    assert (result.result, result.stuck_at) == ("stuck", 1)
    assert result.why.endswith(": 0/4 nodes are available: 4 Insufficient cpu.")
    assert [message for _, message in result.pending] == ["0/4 nodes are available: 4 Insufficient cpu."]
    assert [move.left for move in result.moves] == [None]  # no old pod has left


def test_surge_and_anti_affinity_get_stuck_without_a_free_node():
    old, new = rolling(1, 0, pod={"affinity": APART}), rolling(1, 0, image="web:2", pod={"affinity": APART})
    state = [*NODES[:3], *deployed(old, *"abc")]
    assert roll_out(state, new)["web"].result == "stuck"
    assert roll_out(state, new, final=True)["web"].result == "complete"  # the end fits, but is not reached
    assert roll_out([*NODES, *deployed(old, *"abc")], new)["web"].result == "complete"  # a free node is enough
    assert roll_out(state, rolling(0, 1, image="web:2", pod={"affinity": APART}))["web"].result == "complete"


def test_old_pods_leave_as_new_ones_become_ready():
    result = roll_out([*NODES, *deployed(rolling(1, 0), *"abc")], rolling(1, 0, image="web:2"))["web"]
    assert steps_of(result) == ["+1 -0 =1", "+1 -1 =1", "+1 -1 =1", "+0 -1 =0"]
    assert {move.left.node for move in result.moves} == set("abc")


def test_a_full_cluster_needs_room_that_max_unavailable_gives():
    full = [node("a", cpu="3"), *deployed(rolling(1, 0), "a", "a", "a")]
    stuck = roll_out(full, rolling(1, 0, image="web:2"))["web"]
    assert stuck.result == "stuck"
    done = roll_out(full, rolling(0, 1, image="web:2"))["web"]
    assert steps_of(done) == ["+1 -1 =1", "+1 -1 =1", "+1 -1 =1"]


def test_a_terminating_pod_does_not_count_in_spread_constraints():
    spread = [{"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "web"}}}]  # fmt: skip
    more = {"replicas": 2, "pod": {"topologySpreadConstraints": spread}}
    state = [node("a"), node("b", cpu="64"), *deployed(rolling(0, 1, **more), *"ab")]
    result = roll_out(state, rolling(0, 1, image="web:2", **more))["web"]
    assert [(pod.deleted[0].node, pod.placed[0].node) for pod in result.steps] == [("a", "a"), ("b", "b")]


def test_recreate_waits_until_all_old_pods_are_gone():
    result = roll_out([*NODES, *deployed(recreate(), *"abc")], recreate(image="web:2"))["web"]
    assert steps_of(result) == ["+0 -3 =0", "+3 -0 =3"]


def test_a_paused_deployment_scales_and_is_not_rolled_out():
    old = controller("Deployment", replicas=2)
    new = controller("Deployment", replicas=3, image="web:2", paused=True)
    result = roll_out([*NODES, *deployed(old, *"ab")], new)["web"]
    assert (result.result, result.note) == ("held back", "paused: its new template is not rolled out")
    assert [move.came.pod.startswith("web-old-") for move in result.moves] == [True]


def test_a_paused_deployment_does_not_create_its_first_replica_set():
    result = roll_out([*NODES, controller("Deployment", replicas=0)], controller("Deployment", paused=True))["web"]
    assert (result.result, result.note, result.steps) == ("held back", "paused: its new template is not rolled out", ())


def test_a_deployment_that_grows_with_its_template_is_scaled_first():
    new = rolling(0, 1, replicas=4, image="web:2")
    result = roll_out([*NODES, *deployed(rolling(0, 1, replicas=2), *"ab")], new)["web"]
    assert all(name.startswith("web-old-") for name in result.steps[0].created[:2])
    assert (result.result, len(result.moves)) == ("complete", 4)


def test_a_deployment_that_shrinks_deletes_pods_that_are_not_ready_first():
    state = [*NODES, *deployed(controller("Deployment"), *"abc", ready=[True, False, True])]
    result = roll_out(state, controller("Deployment", replicas=2))["web"]
    assert result.moves == (Move(PodOnNode("web-old-1", "b"), None),)


def test_unhealthy_old_replicas_go_first():
    state = [*NODES, *deployed(rolling(1, 0), *"abc", ready=[True, True, False])]
    result = roll_out(state, rolling(1, 0, image="web:2"))["web"]
    assert result.steps[1].deleted == [PodOnNode("web-old-2", "c")]
    assert result.result == "complete"


def test_a_template_of_an_earlier_replica_set_is_rolled_back_to():
    first, second = controller("Deployment"), controller("Deployment", image="web:2")
    earlier = deployed(controller("Deployment"), hashed="first")[1]
    state = [*NODES, *deployed(second, *"abc", hashed="second", revision="2"), earlier]
    steps = stepper(state, first)
    assert [result.result for result in steps.run()] == ["complete"]
    assert all(name.startswith("web-first-") for name in steps.rollouts[0].pods)


def test_without_replica_sets_their_pods_name_them():
    state = [one for one in deployed(controller("Deployment"), *"abc") if one["kind"] != "ReplicaSet"]
    result = roll_out([*NODES, *state], controller("Deployment", image="web:2"))["web"]
    assert result.result == "complete"
    assert {move.left.pod for move in result.moves} == {"web-old-0", "web-old-1", "web-old-2"}


def test_a_deployment_whose_template_stays_only_gets_its_missing_pods():
    state = [*NODES, *deployed(controller("Deployment"), *"abc")[:-1]]
    result = roll_out(state, controller("Deployment", annotations={"note": "new"}))["web"]
    assert (result.result, steps_of(result)) == ("complete", ["+1 -0 =1"])


def test_a_stateful_set_is_updated_from_its_highest_ordinal():
    state = [*NODES, *stateful(controller("StatefulSet"), *"abc")]
    result = roll_out(state, controller("StatefulSet", image="web:2"))["web"]
    assert [pod.pod for step in result.steps for pod in step.deleted] == ["web-2", "web-1", "web-0"]
    assert [move.left.pod == move.came.pod for move in result.moves] == [True] * 3


def test_a_stateful_set_is_stuck_at_the_first_pod_that_fits_nowhere():
    state = [*NODES, *stateful(controller("StatefulSet"), *"abc")]
    result = roll_out(state, controller("StatefulSet", cpu="64"))["web"]
    assert (result.result, result.stuck_at) == ("stuck", 2)
    assert result.why == "web-2: 0/4 nodes are available: 4 Insufficient cpu."
    assert result.moves == (Move(PodOnNode("web-2", "c"), PodOnNode("web-2", "")),)


def test_a_partition_holds_back_lower_ordinals():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    state = [*NODES, *stateful(controller("StatefulSet"), *"abc")]
    result = roll_out(state, controller("StatefulSet", image="web:2", updateStrategy=strategy))["web"]
    assert (result.result, [move.left.pod for move in result.moves]) == ("complete", ["web-2"])


def test_a_stateful_set_that_grows_waits_for_each_pod_unless_it_is_parallel():
    state = [*NODES, *stateful(controller("StatefulSet", replicas=1), "a")]
    assert steps_of(roll_out(state, controller("StatefulSet"))["web"]) == ["+1 -0 =1", "+1 -0 =1"]
    parallel = controller("StatefulSet", podManagementPolicy="Parallel")
    assert steps_of(roll_out(state, parallel)["web"]) == ["+2 -0 =2"]


def test_a_pod_that_is_not_ready_blocks_a_stateful_set():
    state = [*NODES, *stateful(controller("StatefulSet"), *"abc", ready=[True, False, True])]
    result = roll_out(state, controller("StatefulSet", image="web:2"))["web"]
    assert (result.result, result.why) == ("stuck", "waits for web-1, which is not ready")


UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
OUT_OF_SERVICE = [*UNREACHABLE, {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}]
EVERYWHERE = {"tolerations": [{"operator": "Exists"}]}
LEFT_BEHIND = "it is not deleted, because its node c is unreachable"


def lost_node(taints):
    return [*NODES[:2], node("c", taints=taints), NODES[3]]


@pytest.mark.parametrize("kind, why", [
    (recreate, LEFT_BEHIND),
    (lambda **more: controller("StatefulSet", **more), LEFT_BEHIND),
    (lambda **more: controller("DaemonSet", pod=EVERYWHERE, **more), LEFT_BEHIND),
    (lambda **more: controller("DaemonSet", pod=EVERYWHERE, **rolling_daemons(4), **more), LEFT_BEHIND),
    (lambda **more: rolling(1, 0, **more), ""),  # does not wait for pods that leave
])  # fmt: skip
@pytest.mark.parametrize("taints", [UNREACHABLE, OUT_OF_SERVICE, []])
def test_a_pod_does_not_leave_an_unreachable_node(kind, why, taints):
    old = kind()
    running = {"Deployment": deployed, "StatefulSet": stateful, "DaemonSet": daemons}[old["kind"]](old, *"abc")
    result = roll_out([*lost_node(taints), *running], kind(image="web:2"))["web"]
    expected = why if taints is UNREACHABLE else ""
    assert (result.result, result.why.partition(": ")[2]) == ("stuck" if expected else "complete", expected)


def rolling_daemons(unavailable):
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}}}


def test_no_pod_starts_on_an_unreachable_node():
    former, latter = (controller("DaemonSet", pod=EVERYWHERE, **rolling_daemons(4), image=i) for i in ("v:1", "v:2"))
    result = roll_out([*lost_node(UNREACHABLE), *daemons(former, *"abd")], latter)["web"]
    assert (result.result, result.why.partition(": ")[2]) == ("stuck", "its node c is unreachable")


def test_claims_of_a_stateful_set_stay_and_new_ones_are_made():
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}]
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
               "provisioner": "csi", "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip
    state = [*NODES, storage, *stateful(controller("StatefulSet", replicas=1, volumeClaimTemplates=claims), "a")]
    steps = stepper(state, controller("StatefulSet", replicas=2, volumeClaimTemplates=claims))
    assert [result.result for result in steps.run()] == ["complete"]
    assert "shop/data-web-1" in steps.index.storage.claims


def test_on_delete_changes_no_running_pod():
    strategy = {"type": "OnDelete"}
    state = [*NODES, *stateful(controller("StatefulSet"), *"abc")]
    result = roll_out(state, controller("StatefulSet", image="web:2", updateStrategy=strategy))["web"]
    assert (result.result, result.moves) == ("held back", ())
    assert result.note.startswith("OnDelete: running pods keep")


def test_a_daemon_set_is_updated_node_by_node():
    state = [*NODES, *daemons(controller("DaemonSet"), *"abcd")]
    result = roll_out(state, controller("DaemonSet", image="web:2"))["web"]
    assert [pod.node for step in result.steps for pod in step.placed] == list("abcd")
    assert steps_of(result)[:2] == ["+0 -1 =0", "+1 -0 =1"]


def test_a_daemon_set_gets_stuck_on_the_node_where_its_pod_no_longer_fits():
    filler = controller("ReplicaSet", replicas=1, name="filler", cpu="3")
    state = [*NODES, *daemons(controller("DaemonSet"), *"abcd"), filler, pod_of(filler, "filler-1", "b")]
    result = roll_out(state, controller("DaemonSet", cpu="2"))["web"]
    assert (result.result, result.stuck_at) == ("stuck", 4)
    assert "1 Insufficient cpu" in result.why
    assert {pod.node for step in result.steps for pod in step.placed} == {"a"}


def test_a_daemon_set_with_surge_needs_room_for_both_pods():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    state = [*NODES, *daemons(controller("DaemonSet", cpu="3"), *"abcd")]
    assert roll_out(state, controller("DaemonSet", cpu="2", updateStrategy=strategy))["web"].result == "stuck"
    assert roll_out(state, controller("DaemonSet", cpu="1", updateStrategy=strategy))["web"].result == "complete"


def test_a_job_gives_up_pods_when_it_is_suspended():
    job = controller("Job", parallelism=2)
    state = [*NODES, job, pod_of(job, "web-1", "a"), pod_of(job, "web-2", "b")]
    assert len(roll_out(state, controller("Job", parallelism=2, suspend=True))["web"].moves) == 2
    assert steps_of(roll_out(state, controller("Job", parallelism=3))["web"]) == ["+1 -0 =1"]


def test_a_replica_set_changes_its_size_and_no_running_pod():
    replica_set = controller("ReplicaSet", replicas=2)
    state = [*NODES, replica_set, pod_of(replica_set, "web-1", "a"), pod_of(replica_set, "web-2", "b")]
    assert steps_of(roll_out(state, controller("ReplicaSet", replicas=3, image="web:2"))["web"]) == ["+1 -0 =1"]
    assert steps_of(roll_out(state, controller("ReplicaSet", replicas=1))["web"]) == ["+0 -1 =0"]


def test_several_workloads_share_the_steps_and_the_room():
    two = [node("a", cpu="2"), node("b", cpu="2")]
    state = [*two, *deployed(rolling(1, 0, replicas=1), "a"), *stateful(controller("StatefulSet", 1, "db"), "b")]
    results = roll_out(state, rolling(1, 0, replicas=1, image="web:2"), controller("StatefulSet", 1, "db", cpu="2"))
    assert results["web"].result == "complete"
    assert results["db"].stuck_at <= 2


def test_a_refused_pod_is_tried_again_when_others_have_left():
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "shop"},
        "spec": {"hard": {"pods": "3"}}, "status": {"hard": {"pods": "3"}, "used": {"pods": "3"}},
    }  # fmt: skip
    state = [*NODES, quota, *deployed(rolling(1, 1), *"abc")]
    assert roll_out(state, rolling(1, 1, image="web:2"))["web"].result == "complete"
    result = roll_out(state, rolling(1, 0, image="web:2"))["web"]
    assert result.result == "stuck"
    assert "is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3" in result.why


def test_a_refused_claim_holds_up_a_stateful_set():
    spec = {"resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": spec}]
    one = controller("StatefulSet", replicas=1, volumeClaimTemplates=claims)
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "shop"},
        "spec": {"hard": {"persistentvolumeclaims": "1"}}, "status": {"used": {"persistentvolumeclaims": "1"}},
    }  # fmt: skip
    meta = {"name": "data-web-0", "namespace": "shop"}
    taken = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    state = [*NODES, quota, taken, *stateful(one, "a")]
    result = roll_out(state, controller("StatefulSet", replicas=2, volumeClaimTemplates=claims))["web"]
    assert (result.result, result.stuck_at) == ("stuck", 1)
    assert result.why.startswith('persistentvolumeclaims "data-web-1" is forbidden: exceeded quota: few')


def test_pods_that_cannot_be_judged_are_known():
    steps = stepper(
        [*NODES, *deployed(controller("Deployment"), "a")],
        controller("Deployment", replicas=1, pod={"resourceClaims": [{"name": "gpu"}]}),
    )
    (result,) = steps.run()
    assert (result.result, result.why) == ("not judged", "it has resource claims (dynamic resource allocation)")


def test_a_pod_that_was_preempted_before_the_steps_is_known_to_be_pending():
    urgent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent", "namespace": "shop"},
              "spec": {"priority": 10, **controller("Pod", cpu="3")["spec"]["template"]["spec"]}}  # fmt: skip
    steps = stepper(
        [node("a"), urgent, *deployed(recreate(replicas=1, cpu="2"), "a")], recreate(replicas=1, cpu="1", image="2")
    )
    steps.scheduler.schedule()
    (result,) = steps.run()
    assert result.result == "complete"
    assert result.moves[0].left == PodOnNode("web-old-0", "a")


def test_pending_pods_that_are_left_out_of_the_answer_are_deleted_without_the_scheduler():
    found = deployed(rolling(0, 1), "a", "b", "")
    steps = stepper([*NODES, *found], rolling(0, 1, image="web:2"))
    steps.scheduler.remove("shop/web-old-2")
    assert [result.result for result in steps.run()] == ["complete"]


def test_the_end_state_takes_away_what_leaves_before_it_places_anything():
    full = [node("a", cpu="3"), *deployed(rolling(1, 0), "a", "a", "a")]
    steps = stepper(full, rolling(1, 0, image="web:2"))
    (result,) = steps.end_state()
    assert (result.result, steps_of(result)) == ("complete", ["+3 -3 =3"])
    assert nodes_of(steps) == ["a", "a", "a"]


def test_the_end_state_says_what_does_not_fit():
    state = [*NODES, *deployed(controller("Deployment"), *"abc")]
    result = roll_out(state, controller("Deployment", cpu="64"), final=True)["web"]
    assert (result.result, len(result.pending)) == ("stuck", 3)


def test_the_end_state_of_a_stateful_set_replaces_every_pod():
    state = [*NODES, *stateful(controller("StatefulSet"), *"abc")]
    result = roll_out(state, controller("StatefulSet", image="web:2"), final=True)["web"]
    assert (result.result, steps_of(result)) == ("complete", ["+3 -3 =3"])


@pytest.mark.parametrize("final", [False, True])
def test_pods_that_a_rollout_preempts_come_back(final):
    batch = controller("ReplicaSet", replicas=1, name="batch", cpu="3")
    state = [node("a"), batch, pod_of(batch, "batch-1", "a"), *stateful(controller("StatefulSet", 1), "a")]
    new = controller("StatefulSet", 1, cpu="2", pod={"priority": 10})
    steps = stepper(state, new)
    (result,) = steps.end_state() if final else steps.run()
    assert result.result == "complete"
    assert [eviction.victim.name for eviction in steps.scheduler.evictions] == ["batch-1"]


def test_unchanged_controllers_get_their_missing_pods():
    other = controller("Deployment", replicas=2, name="other")
    steps = stepper([*NODES, other, *deployed(controller("Deployment"), *"abc")], controller("Deployment", image="2"))
    steps.run()
    assert sum("other-" in key for key in steps.scheduler.placements) == 2
