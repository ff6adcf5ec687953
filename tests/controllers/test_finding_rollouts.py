"""Which controllers of a change are rolled out, with which pods, and which of these are old."""

import pytest

from bayplan.controllers import finding_rollouts
from bayplan.errors import InputError
from rollout_scenes import controller, daemons, deployed, inputs_of, node, pod_of, stateful

NODES = [node(name) for name in "abc"]


def found(state, *change):
    return finding_rollouts.rollouts_of(inputs_of([*NODES, *state], *change), set())


def test_only_controllers_that_existed_before_are_rolled_out():
    other = controller("Deployment", name="other")
    state = [*deployed(controller("Deployment"), *"abc"), other]
    new = controller("StatefulSet", name="new")
    rollouts = found(state, controller("Deployment", image="web:2"), new)
    assert [tuple(rollout.key) for rollout in rollouts] == [("Deployment", "shop", "web")]


def test_their_pods_are_not_created_twice():
    inputs = inputs_of([*NODES, *deployed(controller("Deployment"), "a")], controller("Deployment", image="web:2"))
    keys = finding_rollouts.changed_controllers(inputs)
    assert keys == {("Deployment", "shop", "web"), ("ReplicaSet", "shop", "web-old")}


def test_a_changed_template_has_no_replica_set_yet():
    (rollout,) = found(deployed(controller("Deployment"), *"abc"), controller("Deployment", image="web:2"))
    assert (rollout.present, sorted(rollout.sets), sorted(rollout.pods)) == (
        "", ["web-old"], ["web-old-0", "web-old-1", "web-old-2"],
    )  # fmt: skip


def test_a_template_that_stays_has_the_replica_set_of_the_revision():
    first, second = controller("Deployment"), controller("Deployment")
    state = [*deployed(first, "a"), deployed(second, hashed="new", revision="2")[1]]
    first["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "2"
    change = controller("Deployment", replicas=2, annotations={"deployment.kubernetes.io/revision": "2"})
    assert found(state, change)[0].present == "web-new"


def test_a_change_that_the_wire_does_not_show_needs_a_new_replica_set():
    """Only the raw templates differ, say in an environment variable."""
    inputs = inputs_of([*NODES, *deployed(controller("Deployment"), "a")], controller("Deployment", replicas=1))
    inputs.rolled_out.add(("Deployment", "shop", "web"))
    (rollout,) = finding_rollouts.rollouts_of(inputs, set())
    assert rollout.present == ""


@pytest.mark.parametrize("image, is_updated", [("web:1", True), ("web:2", False)])
def test_pods_of_a_stateful_set_are_old_if_the_template_changed(image, is_updated):
    (rollout,) = found(stateful(controller("StatefulSet"), *"ab"), controller("StatefulSet", 4, image=image))
    revisions = {pod.revision == rollout.state.update_revision for pod in rollout.pods.values()}
    assert revisions == {is_updated}


@pytest.mark.parametrize("image, is_updated", [("web:1", True), ("web:2", False)])
def test_pods_of_a_daemon_set_are_old_if_the_template_changed(image, is_updated):
    new = controller("DaemonSet", image=image, annotations={"note": "new"})
    (rollout,) = found(daemons(controller("DaemonSet"), *"ab"), new)
    assert {rollout.state.is_updated(pod) for pod in rollout.pods.values()} == {is_updated}


def test_an_update_of_a_daemon_set_that_is_under_way_goes_on():
    old = controller("DaemonSet", annotations={finding_rollouts.GENERATION: "2"})
    new = controller("DaemonSet", annotations={finding_rollouts.GENERATION: "2", "note": "new"})
    pods = [
        pod_of(old, f"web-{place}", place, labels={"pod-template-generation": n, "controller-revision-hash": f"h{n}"})
        for place, n in (("a", "1"), ("b", "2"))
    ]
    (rollout,) = found([old, *pods], new)
    assert [rollout.state.is_updated(pod) for pod in rollout.pods.values()] == [False, True]
    assert rollout.state.revision == "h2"


@pytest.mark.parametrize("kind, spec", [("Deployment", {"replicas": 2_000_000}), ("Job", {"parallelism": 2_000_000})])
def test_more_pods_than_any_cluster_supports_are_a_fault(kind, spec):
    with pytest.raises(InputError, match="expected at most 1,000,000 pods to be made from controllers in all"):
        found([controller(kind)], controller(kind, **spec))


def test_daemon_pods_of_a_node_that_is_gone_do_not_count():
    (rollout,) = found(daemons(controller("DaemonSet"), "a", "gone"), controller("DaemonSet", image="web:2"))
    assert list(rollout.pods) == ["web-a"]


def rolling(partition):
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}


@pytest.mark.parametrize("kind, replicas, spec, note", [
    ("StatefulSet", 2, rolling(0), ""),
    ("StatefulSet", 2, rolling(1), "partition: pods below web-1 keep the old template"),
    ("StatefulSet", 2, rolling(1) | {"ordinals": {"start": 5}}, "partition: pods below web-6 keep the old template"),
    ("StatefulSet", 2, rolling(2), "partition: its new template is not rolled out"),
    ("StatefulSet", 2, rolling(2147483647), "partition: its new template is not rolled out"),
    ("StatefulSet", 2, {"updateStrategy": {"type": "OnDelete"}}, finding_rollouts.ON_DELETE),
    ("StatefulSet", 0, {}, "it asks for no pods: its new template is not tried"),
    ("Deployment", 0, {}, "it asks for no pods: its new template is not tried"),
    ("Deployment", 2, {}, ""),
    ("Deployment", 2, {"paused": True}, "paused: its new template is not rolled out"),
    ("ReplicaSet", 2, {}, "running pods keep the old template until they are deleted"),
])  # fmt: skip
def test_what_holds_back_a_new_template_is_noted(kind, replicas, spec, note):
    before = controller(kind, 2)
    state = deployed(before, *"ab") if kind == "Deployment" else [before, pod_of(before, "web-0", "a")]
    (rollout,) = found(state, controller(kind, replicas, image="web:2", **spec))
    assert rollout.note == note


def test_a_daemon_set_that_runs_nowhere_is_noted():
    moved = controller("DaemonSet", image="web:2", pod={"nodeSelector": {"disk": "none"}})
    (rollout,) = found(daemons(controller("DaemonSet"), *"ab"), moved)
    assert rollout.note == finding_rollouts.EMPTY


def test_a_suspended_job_is_noted():
    (rollout,) = found([controller("Job", parallelism=2)], controller("Job", parallelism=2, suspend=True))
    assert rollout.note == finding_rollouts.SUSPENDED


def test_a_job_that_another_controller_manages_is_no_rollout():
    managed = {"parallelism": 2, "managedBy": "kueue.x-k8s.io/multikueue"}
    assert found([controller("Job", **managed)], controller("Job", **managed, suspend=True)) == []
