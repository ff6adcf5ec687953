"""
Changes for which a gate must not be green: each was once placed, or not looked at, where a cluster would say no.

The cluster has two nodes of 4 cpu. What asks for 64 fits nowhere.
"""

import json

import pytest

from rollout_scenes import controller, node, pod_of

TOO_LARGE = "64"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def replica_set(name, owner, replicas=2):
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": "web",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    made = controller("ReplicaSet", replicas=replicas)
    labels = {"app": "web", "pod-template-hash": "abc"}
    made["metadata"] = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [reference]}
    made["spec"]["selector"], made["spec"]["template"]["metadata"] = {"matchLabels": labels}, {"labels": labels}
    return made  # fmt: skip


def manifest(kind, cpu=TOO_LARGE, **spec):
    """As people write it, without a uid."""
    written = controller(kind, replicas=2, cpu=cpu, **spec)
    written["metadata"] = {"name": "web", "namespace": "shop"}
    if kind == "Job":
        del written["spec"]["selector"]
        written["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return written


def bare(name, cpu=TOO_LARGE, status=None, metadata=None, **spec):
    requests = {"resources": {"requests": {"cpu": cpu}}}
    written = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", **(metadata or {})}}
    written["spec"] = {"containers": [{"name": "c", "image": "c", **requests}], **spec}
    return written if status is None else {**written, "status": status}


@pytest.fixture
def gate(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def place(state, change, *words):
        for name, objects in (("state", [node("n1"), node("n2"), *state]), ("change", change)):
            (tmp_path / f"{name}.json").write_text("\n".join(map(json.dumps, objects)))
        return run("place", "--state", "state.json", "-f", "change.json", *words)

    return place


DEPLOYMENT, STATEFUL, DAEMON = controller("Deployment"), controller("StatefulSet"), controller("DaemonSet")
OWNED = {
    "Deployment": [pod_of(replica_set("web-abc", DEPLOYMENT), f"web-abc-{n}", f"n{n}") for n in (1, 2)],
    "StatefulSet": [pod_of(STATEFUL, f"web-{n}", f"n{n + 1}") for n in (0, 1)],
    "DaemonSet": [pod_of(DAEMON, f"web-{n}", f"n{n}") for n in (1, 2)],
}


@pytest.mark.parametrize("kind", OWNED)
def test_a_controller_that_only_its_pods_show_is_rolled_out(gate, kind):
    result = gate(OWNED[kind], [manifest(kind)])
    assert (result.exit_code, "stuck at step" in result.stdout) == (1, True)
    assert f"note: {kind} shop/web is not in the state, but its pods are: they are replaced as if" in result.stderr
    assert "object of the state is replaced" not in result.stderr
    assert gate(OWNED[kind], [manifest(kind, cpu="1")]).exit_code == 0


def test_a_deployment_of_which_only_the_replica_sets_are_known_is_rolled_out(gate):
    assert gate([replica_set("web-abc", DEPLOYMENT), *OWNED["Deployment"]], [manifest("Deployment")]).exit_code == 1


def test_a_controller_whose_state_cannot_be_read_is_rolled_out(gate):
    broken = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": "two"}}
    assert gate([broken, *OWNED["Deployment"]], [manifest("Deployment")]).exit_code == 1


def test_a_job_that_only_its_pods_show_is_not_judged(gate):
    owner = controller("Job")
    result = gate([pod_of(owner, "web-x", "n1")], [manifest("Job")], "--strict")
    assert result.exit_code == 1
    assert "Job shop/web: the state has pods of it, but not what it was before the change" in result.stderr


def test_a_deployment_adopts_no_bare_pods(gate):
    running = [bare(f"debug-{n}", cpu="1", metadata={"labels": {"app": "web"}}, nodeName=f"n{n}") for n in (1, 2)]
    result = gate(running, [manifest("Deployment")])
    assert (result.exit_code, "note: 0 of 2 placed of the change" in result.stderr) == (1, True)


def test_a_stateful_set_waits_for_a_name_that_another_pod_has(gate):
    result = gate([bare("web-0", cpu="1", nodeName="n1")], [manifest("StatefulSet", cpu="1")])
    assert (result.exit_code, 'pods "web-0" already exists' in result.stdout) == (1, True)


@pytest.mark.parametrize("whole", [True, False], ids=["with its ReplicaSet", "without"])
def test_a_custom_object_whose_pods_run_is_not_judged(gate, whole):
    rollout = {**controller("Deployment"), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    sets = [replica_set("web-abc", rollout)] if whole else []
    changed = {
        **rollout,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": controller("Deployment", cpu="64")["spec"],
    }
    for state in ([rollout, *sets, *OWNED["Deployment"]], [*sets, *OWNED["Deployment"]] if whole else [rollout]):
        result = gate(state, [changed], "--strict")
        assert (result.exit_code, "not judged: the pods of Rollout shop/web" in result.stderr) == (1, True)  # fmt: skip


def test_what_a_changed_autoscaler_asks_for_is_of_the_change(gate):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
    }
    autoscaler["spec"] = {"scaleTargetRef": target, "minReplicas": 50, "maxReplicas": 60}
    result = gate([controller("Deployment", replicas=2)], [autoscaler])
    assert (result.exit_code, "note: 8 of 50 placed of the change" in result.stderr) == (1, True)  # fmt: skip


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}


@pytest.mark.parametrize(
    "written",
    [
        bare("one", status={"phase": "Succeeded"}),
        bare("one", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        {**manifest("Job"), "status": COMPLETE},
        {**manifest("Deployment"), "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7",
                                                "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
    ids=["succeeded", "terminating", "complete", "deployment"],
)  # fmt: skip
def test_what_a_server_sets_does_not_hide_a_new_object(gate, written):
    result = gate([], [written])
    assert (result.exit_code, "Insufficient cpu" in result.stdout) == (1, True)


def test_a_deletion_in_a_manifest_deletes_nothing(gate):
    marked = manifest("Deployment")
    marked["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert gate([DEPLOYMENT, *OWNED["Deployment"]], [marked]).exit_code == 1


@pytest.mark.parametrize("name, cpu, exit_code", [("n1", "1", 0), ("n1", TOO_LARGE, 1), ("gone", "1", 1)])
def test_a_node_that_a_new_pod_names_must_take_it(gate, name, cpu, exit_code):
    for change in (bare("one", cpu=cpu, nodeName=name), manifest("Deployment", cpu=cpu, pod={"nodeName": name})):
        assert gate([], [change]).exit_code == exit_code


def test_a_pod_that_runs_already_is_not_placed_again(gate):
    running = bare("one", cpu="3", nodeName="n1", metadata={"uid": "u"}, status={"phase": "Running"})
    assert gate([running], [bare("one", cpu="3", nodeName="n1")]).exit_code == 0


def test_pods_that_a_changed_node_drives_out_are_named(gate):
    tainted = node("n1", taints=[{"key": "k", "effect": "NoExecute"}])
    result = gate([DEPLOYMENT, replica_set("web-abc", DEPLOYMENT), *OWNED["Deployment"]], [tainted], "--strict")
    assert result.exit_code == 1
    assert "Node n1: its change drives out 1 running pod (shop/web-abc-1)" in result.stderr


def test_a_daemon_set_leaves_a_node_that_it_no_longer_selects(gate):
    selecting = controller("DaemonSet", pod={"nodeSelector": {"disk": "ssd"}})
    labelled = [node(name, labels={"disk": "ssd"}) for name in ("n1", "n2")]
    state = [selecting, *(pod_of(selecting, f"web-{n}", f"n{n}") for n in (1, 2))]
    result = gate([*state], [node("n1"), labelled[1]], "--strict")
    assert (result.exit_code, "(shop/web-1)" in result.stderr, "shop/web-2" in result.stderr) == (1, True, False)


def test_a_pod_for_another_scheduler_is_not_judged(gate):
    result = gate([], [bare("one", cpu="1", schedulerName="volcano")], "--strict")
    assert (result.exit_code, "not judged: it is for the scheduler volcano" in result.stdout) == (1, True)
    assert gate([], [bare("one", cpu="1", schedulerName="bayplan")], "--strict").exit_code == 0


RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


@pytest.mark.parametrize("resources, exit_code", [(["pods"], 1), (["services"], 0)])
def test_what_a_webhook_may_refuse_is_not_judged(gate, resources, exit_code):
    webhook = {"name": "w.example.com", "rules": [{**RULE, "resources": resources}]}
    refusing = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    refusing |= {"metadata": {"name": "w"}, "webhooks": [webhook]}
    result = gate([refusing], [bare("one", cpu="1")], "--strict")
    assert result.exit_code == exit_code
    assert ("w.example.com of ValidatingWebhookConfiguration w may refuse it" in result.stdout) == bool(exit_code)


def test_policies_that_are_not_read_are_a_no_under_strict(gate):
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
    }
    assert gate([policy], [bare("one", cpu="1")], "--strict").exit_code == 1
    assert gate([policy], [bare("one", cpu="1")]).exit_code == 0  # fmt: skip


def test_a_namespace_that_the_state_does_not_list_may_not_exist(gate):
    elsewhere = bare("one", cpu="1", metadata={"namespace": "nowhere"})
    result = gate([NAMESPACE], [elsewhere], "--strict")
    assert (result.exit_code, "its namespace nowhere is not in the state" in result.stdout) == (1, True)
    assert gate([NAMESPACE], [bare("one", cpu="1")], "--strict").exit_code == 0
    assert gate([NAMESPACE], [bare("one", cpu="1", metadata={"namespace": "default"})], "--strict").exit_code == 0


def test_a_pod_that_a_full_replica_set_adopts_is_not_judged(gate):
    state = [
        replica_set("web-abc", DEPLOYMENT),
        *OWNED["Deployment"],
        DEPLOYMENT | {"spec": {**DEPLOYMENT["spec"], "replicas": 2}},
    ]
    labels = {"app": "web", "pod-template-hash": "abc"}
    result = gate(state, [bare("mine", cpu="1", metadata={"labels": labels})], "--strict")
    assert (result.exit_code, "ReplicaSet web-abc adopts it" in result.stdout) == (1, True)  # fmt: skip


def test_a_job_that_is_applied_again_keeps_the_selector_that_was_generated_for_it(gate):
    labels = {"batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "web"}
    running = manifest("Job", cpu="1")
    running["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    running["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    running["spec"]["template"]["metadata"] = {"labels": {"app": "web", **labels}}
    result = gate([running, pod_of(running, "web-x", "n1")], [manifest("Job", cpu="1")])
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("group, kind, exit_code", [("keda.sh", "ScaledObject", 1), ("cert-manager.io", "Issuer", 0)])
def test_an_object_of_the_change_of_which_nothing_is_known_is_not_judged(gate, group, kind, exit_code):
    unknown = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "x", "namespace": "shop"}, "spec": {}}
    assert gate([], [bare("one", cpu="1"), unknown], "--strict").exit_code == exit_code
    assert gate([unknown], [bare("one", cpu="1")], "--strict").exit_code == 0


@pytest.mark.parametrize("words, n_pods", [(("-n", "shop"), 2), (("-l", "app!=web"), 2), ((), 0)])
def test_what_the_scope_leaves_out_of_the_change_is_counted(gate, words, n_pods):
    change = manifest("Deployment", cpu="1")
    change["metadata"]["namespace"] = "other"
    result = gate([], [change], *words, "--strict")
    assert result.exit_code == bool(n_pods)
    line = f"note: left out by --namespace or --selector: {n_pods} pods of the change; with --strict that is a no"
    assert (line in result.stderr) == bool(n_pods)
    assert gate([], [change], *words).exit_code == 0


def test_a_rollout_that_the_scope_leaves_out_is_counted(gate):
    result = gate([DEPLOYMENT, *OWNED["Deployment"]], [manifest("Deployment")], "-n", "other", "--strict")
    assert (result.exit_code, "left out by --namespace or --selector: 1 rollout of the change" in result.stderr) == (
        1,
        True,
    )


FORMER = [
    ("apps/v1beta1", manifest("Deployment", cpu="1")),
    ("apps/v1beta2", manifest("DaemonSet", cpu="1")),
    ("batch/v1beta1", {**manifest("Job", cpu="1"), "kind": "CronJob"}),
    ("autoscaling/v2beta2", {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {}}),
    ("policy/v1beta1", {"kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": {}}),
]


@pytest.mark.parametrize("version, written", FORMER, ids=[version for version, _ in FORMER])
def test_a_version_that_is_no_longer_served_is_refused_in_a_manifest(gate, run, version, written):
    result = gate([], [{**written, "apiVersion": version}])
    line = f'apiVersion: no matches for kind "{written["kind"]}" in version "{version}"; it is in '
    assert (result.exit_code, line in result.stderr) == (2, True)
    assert run("validate", "-f", "change.json").exit_code == 1


def test_a_former_version_is_read_in_a_state(gate):
    result = gate([{**DEPLOYMENT, "apiVersion": "apps/v1beta1"}, *OWNED["Deployment"]], [manifest("Deployment")])
    assert (result.exit_code, "stuck at step" in result.stdout) == (1, True)


def autoscaler(kind, name="web", version="apps/v1", least=50):
    target = {"apiVersion": version, "kind": kind, "name": name}
    meta = {"name": "web", "namespace": "shop"}
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": 60}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


@pytest.mark.parametrize("again", [True, False], ids=["in the change too", "only in the state"])
@pytest.mark.parametrize("least, exit_code", [(50, 1), (2, 0)])
def test_a_custom_object_that_a_changed_autoscaler_scales_is_not_judged(gate, again, least, exit_code):
    rollout = {**controller("Deployment", replicas=2), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    scaling = autoscaler("Rollout", version="argoproj.io/v1alpha1", least=least)
    result = gate([rollout], [scaling, *([rollout] if again else [])], "--strict")
    assert result.exit_code == exit_code
    line = "not judged: the pods of Rollout shop/web: how a Rollout is scaled is not known"
    assert (line in result.stderr) == bool(exit_code)


def test_an_autoscaler_of_the_change_without_its_target_is_not_judged(gate):
    result = gate([], [autoscaler("Deployment", "gone")], "--strict", "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["notJudgedObjects"] == [
        {"kind": "HorizontalPodAutoscaler", "namespace": "shop", "name": "web",
         "reason": "it scales Deployment gone, which is not in the input"}
    ]  # fmt: skip


@pytest.mark.parametrize("kind, spec", [
    ("Deployment", {"paused": True}),
    ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}),
    ("StatefulSet", {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}),
    ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}),
])  # fmt: skip
def test_a_template_that_no_pod_gets_yet_is_not_judged(gate, kind, spec):
    state = [controller(kind, replicas=2), *OWNED[kind]]
    result = gate(state, [manifest(kind, **spec)])
    assert (result.exit_code, "held back" in result.stdout) == (0, True)
    assert "note: not judged: 1 new template, which no pod gets yet; with --strict that is a no" in result.stderr
    assert gate(state, [manifest(kind, **spec)], "--strict").exit_code == 1


def quota(counted, hard, used=None):
    status = {} if used is None else {"status": {"used": {counted: used}}}
    meta = {"name": "team", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {counted: hard}}, **status}


@pytest.mark.parametrize("counted, used, hard, exit_code", [
    ("count/deployments.apps", "1", "1", 1),
    ("count/deployments.apps", None, "1", 0),
    ("count/deployments.apps", None, "0", 1),
    ("count/deployments.apps", "1", "2", 0),
    ("count/replicasets.apps", "4", "4", 1),  # a Deployment makes one
    ("count/jobs.batch", "4", "4", 0),
])  # fmt: skip
def test_a_quota_that_leaves_too_few_objects_is_not_judged(gate, counted, used, hard, exit_code):
    result = gate([NAMESPACE, quota(counted, hard, used)], [manifest("Deployment", cpu="1")], "--strict")
    assert result.exit_code == exit_code
    assert (f"quota team leaves too few {counted} for the change: requested: 1" in result.stdout) == bool(exit_code)


@pytest.mark.parametrize("counted", ["services", "count/services"])
def test_a_quota_of_services_counts_those_of_the_change(gate, counted):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}
    change = [manifest("Deployment", cpu="1"), {**service, "spec": {"ports": [{"port": 80}]}}]
    assert gate([NAMESPACE, quota(counted, "0", "0")], change, "--strict").exit_code == 1
    assert gate([NAMESPACE, quota(counted, "1", "0")], change, "--strict").exit_code == 0
    assert gate([NAMESPACE, quota(counted, "0", "0")], change[:1], "--strict").exit_code == 0


def test_a_new_replica_set_of_an_update_counts_for_a_quota(gate):
    state = [NAMESPACE, DEPLOYMENT, replica_set("web-abc", DEPLOYMENT), *OWNED["Deployment"]]
    limit = quota("count/replicasets.apps", "1")
    result = gate([*state, limit], [manifest("Deployment", cpu="2")], "--strict")
    assert (result.exit_code, "shop/deployment/web  not judged" in result.stdout) == (1, True)
    assert gate([*state, limit], [manifest("Deployment", cpu="1")], "--strict").exit_code == 0


@pytest.mark.parametrize("level, exit_code", [("restricted", 1), ("baseline", 1), ("privileged", 0)])
def test_a_pod_security_standard_is_not_judged(gate, level, exit_code):
    namespace = {**NAMESPACE, "metadata": {"name": "shop", "labels": {"pod-security.kubernetes.io/enforce": level}}}
    result = gate([namespace], [manifest("Deployment", cpu="1")], "--strict")
    line = f"note: not judged: what the pod security standard {level} refuses in namespace shop"
    assert (result.exit_code, line in result.stderr) == (exit_code, bool(exit_code))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop"}}
    service["spec"] = {"ports": [{"port": 80}]}
    assert gate([namespace], [service], "--strict").exit_code == 0


TOLERATING = {"tolerations": [{"key": "gpu", "operator": "Exists"}], "nodeSelector": {"a": "b", "c": "d"}}


@pytest.mark.parametrize("pod, kept", [
    ({}, "spec.template.spec.nodeSelector, spec.template.spec.tolerations"),
    ({**TOLERATING, "nodeSelector": {"a": "b"}}, "spec.template.spec.nodeSelector.c"),
    (TOLERATING, ""),
])  # fmt: skip
def test_what_a_merge_keeps_without_a_last_applied_configuration_is_named(gate, pod, kept):
    running = controller("Deployment", replicas=2, pod=TOLERATING)
    result = gate([running], [manifest("Deployment", cpu="1", pod=pod)], "--exit-zero")
    line = "note: Deployment shop/web has no last-applied configuration, so it keeps what its manifest lacks: "
    found = [one.removeprefix(line).partition(";")[0] for one in result.stderr.splitlines() if one.startswith(line)]
    assert found == ([kept] if kept else [])


@pytest.mark.parametrize("change, kept", [
    ({"containers": [{"name": "d", "image": "i"}]}, "spec.template.spec.containers[c]"),
    ({"containers": [{"name": "c", "image": "i", "resources": {}}]}, "spec.template.spec.containers[c].resources.requests"),
])  # fmt: skip
def test_containers_and_requests_that_a_merge_keeps_are_named(gate, change, kept):
    result = gate([DEPLOYMENT], [manifest("Deployment", pod=change)], "--strict")
    assert (result.exit_code, f"lacks: {kept};" in result.stderr) == (1, True)


def test_what_a_last_applied_manifest_had_is_removed_and_not_named(gate):
    last = manifest("Deployment", cpu="1", pod=TOLERATING)
    running = controller("Deployment", replicas=2, pod=TOLERATING)
    running["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(last)}
    result = gate([running], [manifest("Deployment", cpu="1")])
    assert (result.exit_code, "last-applied configuration" in result.stderr) == (0, False)


ARGO = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]


@pytest.mark.parametrize("metadata, taints, exit_code", [(DELETED, [], 0), ({}, [], 1), (DELETED, UNREACHABLE, 1)])
def test_a_pod_that_is_being_deleted_makes_room_unless_its_node_is_unreachable(gate, metadata, taints, exit_code):
    full = [bare(name, "4", {"phase": "Running"}, {"uid": name}, nodeName=name) for name in ("n1", "n2", "n3")]
    full[2]["metadata"] |= metadata
    change = bare("new", "4", tolerations=[{"operator": "Exists"}])
    result = gate([NAMESPACE, *full, node("n3", taints=taints)], [change])
    assert (result.exit_code, "new   n3" in result.stdout) == (exit_code, not exit_code)


@pytest.mark.parametrize("live, change", [
    (DEPLOYMENT, manifest("Deployment")),
    (bare("one", "1", {"phase": "Running"}, {"uid": "one"}, nodeName="n1"), bare("one", "1")),
    ({**DEPLOYMENT, **ARGO}, {**manifest("Deployment"), **ARGO}),
])  # fmt: skip
def test_what_is_changed_while_it_is_being_deleted_is_not_judged(gate, live, change):
    named = f"{change['kind']} shop/{change['metadata']['name']}"
    assert "deleted" not in gate([NAMESPACE, live], [change]).stderr
    state = [NAMESPACE, {**live, "metadata": live["metadata"] | DELETED}]
    result = gate(state, [change])
    assert f"note: not judged: the pods of {named}: it is being deleted, and the change with it" in result.stderr
    assert gate(state, [change], "--strict").exit_code == 1


@pytest.mark.parametrize("kind, exit_code", [("ReplicaSet", 0), ("StatefulSet", 1), ("DaemonSet", 1)])
def test_a_pod_that_will_come_back_makes_no_room(gate, kind, exit_code):
    """A ReplicaSet has created another pod long before; the others wait until the one that is deleted is gone."""
    owner = controller(kind, replicas=1, cpu="3")
    deleted = pod_of(owner, "web-0", "n2", **DELETED)
    full = [bare("n1", "4", {"phase": "Running"}, {"uid": "n1"}, nodeName="n1")]
    assert gate([NAMESPACE, *full, deleted], [bare("new", "4")]).exit_code == exit_code


def test_a_running_pod_that_the_change_preempts_for_good_is_a_no(gate):
    gold = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 1000}
    owner = controller("ReplicaSet", replicas=2, cpu="4")
    full = [owner, *(pod_of(owner, f"web-{number}", f"n{number}") for number in (1, 2))]
    result = gate([NAMESPACE, gold, *full], [bare("vip", "4", priorityClassName="gold")])
    assert "vip    n" in result.stdout
    assert (result.exit_code, "preempted from n" in result.stdout) == (1, True)
    assert gate([NAMESPACE, gold, *full, node("n3")], [bare("vip", "4", priorityClassName="gold")]).exit_code == 0
