"""Namespaces, PriorityClasses and RuntimeClasses: added to pods, refused where they do not exist, else not judged."""

import pytest

from admitting import Loader, container, deployment, messages, pod, requests, stored, written
from bayplan.errors import InputError

SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def namespace(name="shop"):
    return written("Namespace", name, "{}", namespace="")


def priority(name, text):
    return written("PriorityClass", name, text, "scheduling.k8s.io/v1", namespace="")


def runtime(text, name="kata"):
    return written("RuntimeClass", name, f"{{handler: kata, {text}}}", "node.k8s.io/v1", namespace="")


# PriorityClasses


@pytest.mark.parametrize("classes, spec, value, preempts", [
    ([], {}, 0, True),
    ([priority("gold", "{value: 5}")], {"priorityClassName": "gold"}, 5, True),
    ([priority("gold", "{value: 5, preemptionPolicy: Never}")], {"priorityClassName": "gold"}, 5, False),
    ([priority("gold", "{value: 5, globalDefault: true, preemptionPolicy: Never}")], {}, 5, False),
    ([priority("gold", "{value: 5, globalDefault: true}"), priority("iron", "{value: 3, globalDefault: true}")], {}, 3, True),
    *[([], {"priorityClassName": name}, value, True) for name, value in SYSTEM.items()],
    ([], {"priority": 7}, 7, True),
])  # fmt: skip
@pytest.mark.parametrize("made", [pod, deployment])
def test_the_class_gives_the_priority(load, made, classes, spec, value, preempts):
    found = load(*classes, made(**spec))
    (only,) = found.pending
    assert (only.priority, only.preempts, found.not_judged) == (value, preempts, {})


def test_without_its_class_a_pod_is_not_judged(load):
    found = load(pod(priorityClassName="gold"))
    assert found.not_judged == {"shop/web": "its PriorityClass gold is not in the input"}
    assert len(found.pending) == 1


def test_with_all_classes_known_a_pod_without_its_class_is_refused(load):
    found = load(namespace(), pod(priorityClassName="gold"), complete=True)
    assert messages(found) == ['pods "web" is forbidden: no PriorityClass with name gold was found']
    assert (found.pending, found.not_judged) == ([], {})


def test_classes_that_may_not_be_listed_are_not_known(load):
    found = load(namespace(), pod(priorityClassName="gold"), complete=True, unlisted=["PriorityClass"])
    assert list(found.not_judged) == ["shop/web"]


@pytest.mark.parametrize("spec, message", [
    ({"priority": 7}, ("the integer value of priority (7) must not be provided in pod spec; "
     "priority admission controller computed 5 from the given PriorityClass name")),
    ({"preemptionPolicy": "Never"}, ("the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
     "priority admission controller computed PreemptLowerPriority from the given PriorityClass name")),
])  # fmt: skip
def test_a_pod_must_not_contradict_its_class(load, spec, message):
    found = load(priority("gold", "{value: 5}"), pod(priorityClassName="gold", **spec))
    assert messages(found) == [f'pods "web" is forbidden: {message}']


def test_a_pod_of_a_dump_keeps_its_priority(load):
    (found,) = load(stored(pod(priorityClassName="gold", priority=9))).pending
    assert found.priority == 9


# RuntimeClasses


def test_the_class_adds_overhead_node_selector_and_tolerations(load):
    kata = runtime(
        "overhead: {podFixed: {cpu: 250m}}, scheduling: {nodeSelector: {kata: 'yes'}, tolerations: [{key: kata, operator: Exists}]}"
    )
    asked = container("{requests: {cpu: 1}}")
    found = load(
        kata, pod(runtimeClassName="kata", nodeSelector={"disk": "ssd"}, containers=[asked], tolerations=[
            {"key": "kata", "operator": "Equal", "value": "1"}])
    )  # fmt: skip
    (only,) = found.pending
    assert requests(found) == {"cpu": 1250}
    assert dict(only.needs.node_affinity.selector) == {"disk": "ssd", "kata": "yes"}
    # The toleration of the class contains the pod's own.
    assert [(one.key, one.operator) for one in only.needs.tolerations if one.key == "kata"] == [("kata", "Exists")]


@pytest.mark.parametrize("text, spec, message", [
    ("overhead: {podFixed: {cpu: 1}}", {"overhead": {"cpu": "2"}}, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
    ("", {"overhead": {"cpu": "2"}}, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
    ("scheduling: {nodeSelector: {disk: hdd}}", {"nodeSelector": {"disk": "ssd"}},
     "conflict: runtimeClass.scheduling.nodeSelector[disk] = hdd; pod.spec.nodeSelector[disk] = ssd"),
])  # fmt: skip
def test_a_pod_must_not_contradict_its_runtime_class(load, text, spec, message):
    assert messages(load(runtime(text), pod(runtimeClassName="kata", **spec))) == [
        f'pods "web" is forbidden: {message}'
    ]


def test_the_same_overhead_in_another_notation_is_no_contradiction(load):
    found = load(runtime("overhead: {podFixed: {cpu: 1}}"), pod(runtimeClassName="kata", overhead={"cpu": "1000m"}))
    assert messages(found) == []


def test_a_runtime_class_that_is_not_in_the_input(load):
    asked = pod(runtimeClassName="kata")
    assert load(asked).not_judged == {"shop/web": "its RuntimeClass kata is not in the input"}
    assert messages(load(namespace(), asked, complete=True)) == [
        'pods "web" is forbidden: pod rejected: RuntimeClass "kata" not found'
    ]


# Namespaces, and what cannot be judged


def test_a_namespace_that_does_not_exist(load):
    assert messages(load(deployment())) == []
    found = load(namespace("other"), deployment(replicas=2), complete=True)
    assert messages(found) == ['namespaces "shop" not found'] * 2
    assert messages(load(namespace(), deployment(), complete=True)) == []
    assert messages(load(deployment(), complete=True, unlisted=["Namespace"])) == []


def test_a_namespace_that_is_being_deleted(load):
    going = namespace()
    going["metadata"]["deletionTimestamp"] = "2026-11-18T07:00:00Z"
    assert messages(load(going, pod())) == [
        'pods "web" is forbidden: unable to create new content in namespace shop because it is being terminated'
    ]


@pytest.mark.parametrize("made", [pod, deployment, lambda **spec: stored(pod(**spec))])
def test_resource_claims_are_not_judged(load, made):
    found = load(made(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]))
    assert list(found.not_judged.values()) == ["it has resource claims (dynamic resource allocation)"]


def test_every_pod_leads_to_the_object_that_it_is_made_for(load):
    replica_set = deployment("web-1", labels={"pod-template-hash": "1"}) | {"kind": "ReplicaSet"}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    replica_set["metadata"]["ownerReferences"] = [owner]
    replica_set["spec"]["selector"]["matchLabels"] = {"pod-template-hash": "1"}
    replica_set["spec"]["template"]["metadata"]["labels"] = {"pod-template-hash": "1"}
    found = load(deployment(), replica_set, deployment("shop"))
    assert sorted({tuple(one) for one in found.made_for.values()}) == [
        ("Deployment", "shop", "shop"), ("Deployment", "shop", "web"),
    ]  # fmt: skip
    assert found.made_for.keys() == {one.key for one in found.pending}


def owned_by(kind, name, *owners):
    found = deployment(name) | {"kind": kind}
    found["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": True} for owner in owners
    ]
    return found


@pytest.mark.parametrize("owners, circle", [
    ({"a": "b", "b": "a"}, "ReplicaSet a → ReplicaSet b → ReplicaSet a"),
    ({"a": "a"}, "ReplicaSet a → ReplicaSet a"),
    ({"c": "a", "a": "b", "b": "a"}, "ReplicaSet a → ReplicaSet b → ReplicaSet a"),
])  # fmt: skip
def test_owners_that_own_each_other(load, owners, circle):
    sets = [owned_by("ReplicaSet", name, owner) for name, owner in owners.items()]
    with pytest.raises(InputError) as caught:
        load(*sets)
    (fault,) = caught.value.faults
    assert (fault.path, fault.message) == (
        "metadata.ownerReferences", f"expected owners that do not own each other, got {circle}",
    )  # fmt: skip
    found = load(*map(stored, sets))
    assert f"these objects of namespace shop own each other: {circle}" in found.notes
    assert len(found.made_for) == len(sets)


def test_a_circle_of_the_state_is_no_fault_of_a_change(load):
    circle = [stored(owned_by("ReplicaSet", name, owner)) for name, owner in {"a": "b", "b": "a"}.items()]
    changed = deployment("b") | {"kind": "ReplicaSet"}
    found = load.on_state(circle, changed)
    assert "these objects of namespace shop own each other: ReplicaSet a → ReplicaSet b → ReplicaSet a" in found.notes


def test_a_change_closes_a_circle_with_the_state(load):
    state = [stored(owned_by("ReplicaSet", "a", "b")), stored(deployment("b") | {"kind": "ReplicaSet"})]
    with pytest.raises(InputError) as caught:
        load.on_state(state, owned_by("ReplicaSet", "b", "a"))
    (fault,) = caught.value.faults
    assert (fault.subject, fault.path) == ("ReplicaSet shop/b", "metadata.ownerReferences")


def test_a_paused_deployment_creates_no_pods(load):
    paused = deployment()
    paused["spec"]["paused"] = True
    found = load(paused)
    assert found.pending == []
    assert "Deployment shop/web is paused: no pods are created for it" in found.notes


def job(name="batch", **spec):
    pods = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"template": {"spec": pods}, **spec},
    }


MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def test_the_pods_of_a_job_that_another_controller_manages_are_not_judged(load):
    found = load(job(managedBy=MULTIKUEUE))
    assert found.pending == []
    assert [tuple(key) for key, _ in found.not_judged_objects] == [("Job", "shop", "batch")]
    assert any(MULTIKUEUE in note for note in found.notes)
    (pending,) = load(job(managedBy="kubernetes.io/job-controller")).pending
    assert pending.controller.kind == "Job"


def test_a_change_of_a_job_that_another_controller_manages_is_not_judged(load):
    before = stored(job(managedBy=MULTIKUEUE))
    found = load.on_state([before], job(managedBy=MULTIKUEUE, parallelism=3))
    assert [tuple(key) for key, _ in found.not_judged_objects] == [("Job", "shop", "batch")]
    assert found.rollouts == []
    assert load.on_state([before], pod()).not_judged_objects == []  # of what else runs, nothing is asked


def test_the_jobs_of_a_cron_job_that_another_controller_manages_are_not_judged(load):
    template = {"spec": job(managedBy=MULTIKUEUE)["spec"]}
    cron_job = written("CronJob", "nightly", "{}", "batch/v1") | {
        "spec": {"schedule": "0 3 * * *", "jobTemplate": template}
    }
    assert [tuple(key) for key, _ in load(cron_job).not_judged_objects] == [("CronJob", "shop", "nightly")]


@pytest.mark.parametrize("found, note", [
    (job(suspend=True), "Job shop/batch is suspended: no pods are created for it"),
    (job(parallelism=0), "Job shop/batch has a parallelism of 0: no pods are created for it"),
    (deployment(replicas=0), "Deployment shop/web has 0 replicas: no pods are created for it"),
])  # fmt: skip
def test_what_asks_for_no_pods_is_noted(load, found, note):
    assert note in load(found).notes
    assert note not in load.on_state([stored(found)], pod()).notes
