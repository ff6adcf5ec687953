"""Custom kinds make pods by a table of paths; what is not in the table and has a pod template is not judged."""

import json
import re

import pytest
import yaml
from click.testing import CliRunner

from admitting import Loader, deployment, messages, pod, stored, written
from bayplan.cli import main
from bayplan.controllers import custom_kinds
from bayplan.controllers.custom_kinds import CustomKind, TemplatePath
from bayplan.controllers.desired_state import ObjectKey
from bayplan.errors import InputError

T = "{metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}"


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


@pytest.mark.parametrize("version, kind, spec, n_pods", [
    ("argoproj.io/v1alpha1", "Rollout", f"{{replicas: 3, template: {T}}}", 3),
    ("argoproj.io/v1alpha1", "Rollout", f"{{template: {T}}}", 1),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", f"{{replicatedJobs: [{{name: a, replicas: 2, template: {{spec: {{parallelism: 3, template: {T}}}}}}}, {{name: b, template: {{spec: {{template: {T}}}}}}}]}}", 7),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", f"{{replicatedJobs: [{{name: a, template: {{spec: {{parallelism: 3, completions: 2, template: {T}}}}}}}]}}", 2),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", f"{{replicas: 2, leaderWorkerTemplate: {{size: 4, workerTemplate: {T}}}}}", 8),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", f"{{leaderWorkerTemplate: {{size: 3, leaderTemplate: {T}, workerTemplate: {T}}}}}", 3),
    ("ray.io/v1", "RayCluster", f"{{headGroupSpec: {{template: {T}}}, workerGroupSpecs: [{{groupName: a, replicas: 2, template: {T}}}, {{groupName: b, minReplicas: 1, template: {T}}}]}}", 4),
    ("ray.io/v1", "RayCluster", f"{{headGroupSpec: {{template: {T}}}, workerGroupSpecs: [{{groupName: a, replicas: 2, numOfHosts: 4, template: {T}}}]}}", 9),
    ("ray.io/v1", "RayJob", f"{{rayClusterSpec: {{headGroupSpec: {{template: {T}}}}}, submitterPodTemplate: {T}}}", 2),
    ("ray.io/v1", "RayService", f"{{rayClusterConfig: {{headGroupSpec: {{template: {T}}}}}}}", 1),
    ("kubeflow.org/v1", "PyTorchJob", f"{{pytorchReplicaSpecs: {{Master: {{template: {T}}}, Worker: {{replicas: 3, template: {T}}}}}}}", 4),
    ("kubeflow.org/v1", "TFJob", f"{{tfReplicaSpecs: {{PS: {{replicas: 2, template: {T}}}}}}}", 2),
    ("kubeflow.org/v2beta1", "MPIJob", f"{{mpiReplicaSpecs: {{Launcher: {{template: {T}}}, Worker: {{replicas: 2, template: {T}}}}}}}", 3),
    ("kubeflow.org/v1", "Notebook", f"{{template: {T}}}", 1),
    ("batch.volcano.sh/v1alpha1", "Job", f"{{tasks: [{{name: a, replicas: 2, template: {T}}}]}}", 2),
    ("apps.kruise.io/v1alpha1", "CloneSet", f"{{replicas: 2, template: {T}}}", 2),
    ("apps.kruise.io/v1beta1", "StatefulSet", f"{{replicas: 2, template: {T}, volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {{accessModes: [ReadWriteOnce]}}}}]}}", 2),
])  # fmt: skip
def test_the_shipped_kinds_make_pods(load, version, kind, spec, n_pods):
    found = load(written(kind, "train", f"spec: {spec}", version))
    assert len(found.pending) == len({one.key for one in found.pending}) == n_pods
    for one in found.pending:
        assert one.name.startswith("train-")
        assert (one.controller.api_version, one.controller.kind, one.controller.name) == (version, kind, "train")
        assert dict(one.needs.requests.amounts) == {"cpu": 1000}
    assert set(found.made_for.values()) == {ObjectKey(kind, "shop", "train")}
    assert (found.not_judged_objects, found.not_judged) == ([], {})
    assert not any("ignored" in note or "not read" in note for note in found.notes)


def test_a_daemon_set_of_kruise_has_a_pod_per_node(load):
    nodes = [written("Node", name, "{}", namespace="") for name in ("a1", "a2")]
    assert (
        len(load(*nodes, written("DaemonSet", "log", f"spec: {{template: {T}}}", "apps.kruise.io/v1beta1")).pending)
        == 2
    )


def rollout(replicas=2, cpu=1, **more):
    text = f"spec: {{replicas: {replicas}, template: {T.replace('cpu: 1', f'cpu: {cpu}')}}}"
    return written("Rollout", "web", text, "argoproj.io/v1alpha1") | more


def owned(found, kind="Rollout", name="web"):
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "name": name, "uid": "u", "controller": True}
    return found | {"metadata": found["metadata"] | {"ownerReferences": [owner]}}


def test_what_runs_already_is_not_created_again(load):
    assert load(stored(rollout())).pending == []
    assert load(rollout(), owned(pod("web-1", node="a1"))).pending == []
    replica_set = owned(deployment("web-1") | {"kind": "ReplicaSet"})
    assert [one.controller.kind for one in load(rollout(), replica_set).pending] == ["ReplicaSet"]


@pytest.mark.parametrize("change, judged", [(rollout(), True), (rollout(cpu=2), False), (rollout(replicas=3), False)])
def test_how_a_changed_one_replaces_its_pods_is_not_known(load, change, judged):
    found = load.on_state([stored(rollout())], change)
    expected = [] if judged else [(ObjectKey("Rollout", "shop", "web"), "how a Rollout replaces its pods is not known")]
    assert (found.pending, found.not_judged_objects) == ([], expected)


def test_one_that_the_state_does_not_have_is_new(load):
    assert len(load.on_state([written("Namespace", "shop", "{}", namespace="")], stored(rollout())).pending) == 2


@pytest.mark.parametrize("cpu, judged", [(1, True), (2, False)])
def test_one_of_an_unknown_kind_that_stays_as_it_is(load, cpu, judged):
    farms = [
        written("Farm", "f", f"spec: {{template: {T.replace('cpu: 1', f'cpu: {n}')}}}", "example.com/v1")
        for n in (1, cpu)
    ]
    assert (load.on_state([stored(farms[0])], farms[1]).not_judged_objects == []) == judged


def test_its_pods_are_admitted_and_autoscaled(load):
    quota = written("ResourceQuota", "team", "spec: {hard: {pods: 1}}")
    assert len(messages(load(quota, rollout(3)))) == 2
    target = "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}"
    scaler = written(
        "HorizontalPodAutoscaler", "web", f"spec: {{scaleTargetRef: {target}, maxReplicas: 5}}", "autoscaling/v2"
    )
    found = load(scaler, rollout(3), load="max")
    assert len(found.pending) == 5
    assert not any("Autoscaler" in note for note in found.notes)


def test_without_a_template_it_is_not_judged(load):
    found = load(
        written("Rollout", "web", "spec: {workloadRef: {kind: Deployment, name: web}}", "argoproj.io/v1alpha1")
    )
    assert found.not_judged_objects == [
        (ObjectKey("Rollout", "shop", "web"), "it has no pod template where one is expected")
    ]


def test_a_template_is_validated(load):
    wrong = rollout()
    wrong["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Sometimes"}]
    with pytest.raises(InputError, match=re.escape("spec.template.spec.tolerations[0].operator")):
        load(wrong)


def test_too_many_pods_are_a_fault(load):
    with pytest.raises(InputError, match="expected at most 1,000,000 pods"):
        load(rollout(2_000_000))


# Kinds that are not in the table


@pytest.mark.parametrize("spec, judged", [
    (f"{{farm: {{workers: [{T}]}}}}", False),
    ("{template: {spec: {containers: [{image: i}]}}}", False),  # as in a Service of Knative
    ("{templates: [{container: {image: i}}]}", False),  # as in a Workflow of Argo
    ("{steps: [{name: build, image: i}]}", False),  # as in a Task of Tekton
    ("{image: i, replicas: 3}", True),
    ("{containers: 3}", True),
    ("{}", True),
])  # fmt: skip
def test_an_unknown_kind_with_a_pod_template_is_not_judged(load, spec, judged):
    found = load(written("Farm", "f", f"spec: {spec}", "example.com/v1"))
    reason = "it has a pod template, and how many pods are made from it is not known"
    assert found.not_judged_objects == ([] if judged else [(ObjectKey("Farm", "shop", "f"), reason)])
    assert f"not judged: the pods of Farm shop/f: {reason}" in found.notes or judged
    unread = "not read, because their kinds are not known; if they make pods, these are missing: 1 Farm"
    assert (unread in found.notes) == judged


def test_of_a_dump_its_pods_are_in_the_dump(load):
    assert load(stored(written("Farm", "f", f"spec: {{template: {T}}}", "example.com/v1"))).not_judged_objects == []


def test_what_may_change_or_refuse_pods_is_not_said_to_be_without_effect(load):
    found = load(
        written("ValidatingAdmissionPolicy", "w", "{}", "admissionregistration.k8s.io/v1", namespace=""),
        written("ConfigMap", "c", "{}"),
    )
    assert "ignored, because placements do not depend on them: 1 ConfigMap" in found.notes
    assert "not judged: what these may change in pods, or refuse: 1 ValidatingAdmissionPolicy" in found.notes


# The table


def test_paths():
    kind = CustomKind(
        group="g", kind="K", templates=(TemplatePath(template="a.*.b.*.t", replicas="n", default=5, factor="../../m"),)
    )
    content = yaml.safe_load("{a: {x: {m: 2, b: [{n: 3, t: T1}, {t: T2}]}, y: {b: [{name: z, n: -1, t: T3}]}, q: 3}}")
    found = [(one.path, one.content, one.n_pods, one.part) for one in custom_kinds.templates_of(kind, content)]
    assert found == [("a.x.b[0].t", "T1", 6, "0"), ("a.x.b[1].t", "T2", 10, "1"), ("a.y.b[0].t", "T3", 0, "z")]


def test_shipped_kinds_are_named_once():
    assert len(custom_kinds.table()) == len(custom_kinds.SHIPPED)


FARM = """
apiVersion: bayplan.io/v1alpha1
kind: BayplanConfiguration
customKinds:
- {group: example.com, kind: Farm, templates: [{template: spec.workers.*.template, replicas: count}]}
"""


def run(tmp_path, config, *arguments):
    (tmp_path / "config.yaml").write_text(config)
    return CliRunner().invoke(main.cli, [*arguments, "--config", str(tmp_path / "config.yaml")])


def test_the_configuration_file_adds_kinds(tmp_path):
    farm = written("Farm", "f", f"spec: {{workers: [{{count: 2, template: {T}}}]}}", "example.com/v1")
    (tmp_path / "a.json").write_text(json.dumps(farm))
    placed = run(tmp_path, FARM, "place", "-f", str(tmp_path / "a.json"), "-o", "name")
    assert len(placed.stdout.splitlines()) == 2
    shown = yaml.safe_load(run(tmp_path, FARM, "config", "view").stdout)
    assert shown["customKinds"] == yaml.safe_load(FARM)["customKinds"]


@pytest.mark.parametrize("entry, problem", [
    ("{kind: Farm}", "customKinds[0].group: expected a string, got nothing"),
    ("{group: g, kind: Farm, templates: [{replicas: n}]}", "customKinds[0].templates[0].template: expected a string"),
    ("{group: g, kind: Farm, tmplates: []}", "customKinds[0].tmplates: unknown field, did you mean templates?"),
    ("{group: g, kind: Farm, like: CronJob}", "customKinds[0].like"),
])  # fmt: skip
def test_a_bad_entry_is_a_fault(tmp_path, entry, problem):
    config = FARM.partition("customKinds")[0] + f"customKinds: [{entry}]\n"
    done = run(tmp_path, config, "place", "-f", "nothing.yaml")
    assert done.exit_code == 2
    assert problem in done.stderr


@pytest.mark.parametrize("version, kind, spec", [
    ("jobset.x-k8s.io/v1alpha2", "JobSet", f"{{suspend: true, replicatedJobs: [{{name: a, template: {{spec: {{template: {T}}}}}}}]}}"),
    ("ray.io/v1", "RayCluster", f"{{suspend: true, headGroupSpec: {{template: {T}}}}}"),
    ("ray.io/v1", "RayJob", f"{{suspend: true, rayClusterSpec: {{headGroupSpec: {{template: {T}}}}}}}"),
    ("kubeflow.org/v1", "PyTorchJob", f"{{runPolicy: {{suspend: true}}, pytorchReplicaSpecs: {{Master: {{template: {T}}}}}}}"),
])  # fmt: skip
def test_a_suspended_object_makes_no_pods(load, version, kind, spec):
    found = load(written(kind, "train", f"spec: {spec}", version))
    assert found.pending == []
    assert f"{kind} shop/train is suspended: no pods are created for it" in found.notes
    resumed = written(kind, "train", f"spec: {spec}".replace("suspend: true", "suspend: false"), version)
    assert load(resumed).pending
    assert load.on_state([stored(written(kind, "train", f"spec: {spec}", version))], resumed).not_judged_objects


@pytest.mark.parametrize("version, kind, spec, faults", [
    ("argoproj.io/v1alpha1", "Rollout", f"{{replicas: three, template: {T}}}", [("spec.replicas", "'three'")]),
    ("argoproj.io/v1alpha1", "Rollout", f"{{replicas: -1, template: {T}}}", [("spec.replicas", "-1")]),
    ("argoproj.io/v1alpha1", "Rollout", f"{{replicas: true, template: {T}}}", [("spec.replicas", "True")]),
    ("argoproj.io/v1alpha1", "Rollout", f"{{replicas: 1.5, template: {T}}}", [("spec.replicas", "1.5")]),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", f"{{replicatedJobs: [{{name: a, replicas: x, template: {{spec: {{parallelism: -4, template: {T}}}}}}}]}}",
     [("spec.replicatedJobs[0].template.spec.parallelism", "-4"), ("spec.replicatedJobs[0].replicas", "'x'")]),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", f"{{replicas: all, leaderWorkerTemplate: {{size: 4, workerTemplate: {T}}}}}", [("spec.replicas", "'all'")]),
    ("kubeflow.org/v1", "TFJob", f"{{tfReplicaSpecs: {{PS: {{replicas: '2', template: {T}}}}}}}", [("spec.tfReplicaSpecs.PS.replicas", "'2'")]),
])  # fmt: skip
def test_a_number_of_pods_that_is_none_is_a_fault(load, version, kind, spec, faults):
    with pytest.raises(InputError) as error:
        load(written(kind, "train", f"spec: {spec}", version))
    expected = "expected a whole number that is not negative, got "
    assert [(fault.path, fault.message) for fault in error.value.faults] == [(p, expected + got) for p, got in faults]
