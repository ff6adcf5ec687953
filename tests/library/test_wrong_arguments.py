"""Arguments of the wrong kind: an ArgumentError that names the argument, before anything is read."""

import json
import pathlib

import pytest

import bayplan
from bayplan.testing import assert_fits, assert_survives, assert_valid

from .test_inputs import NODE, pod, small

C, S, A = bayplan.Cluster, bayplan.Settings, bayplan.AuditSettings


@pytest.mark.parametrize("ask, argument", [
    (lambda: small().lose(None), "lose"),
    (lambda: small().lose("node/n1", None), "lose"),
    (lambda: small().drain(b"node/n1"), "drain"),
    (lambda: small().place(group_by="x"), "group_by"),
    (lambda: small().audit("scs-0213"), "settings"),
    (lambda: small().quota(limits=3), "limits"),
    (lambda: small().only(namespace=""), "namespace"),
    (lambda: C.from_objects([NODE], namespace=""), "namespace"),
    (lambda: C.from_objects([NODE], settings={"semantics": "design"}), "settings"),
    (lambda: bayplan.load(NODE, settings="design"), "settings"),
    (lambda: bayplan.validate(NODE, settings="design"), "settings"),
    (lambda: bayplan.validate(NODE, guard="x"), "guard"),
    (lambda: bayplan.explain_rule(3), "code"),
    (lambda: bayplan.AuditReport([1]), "audits"),
    (lambda: S(kubernetes_version=1.36), "kubernetes_version"),
    (lambda: S(switches=["x"]), "switches"),
    (lambda: S(scheduler="x"), "scheduler"),
    (lambda: S(seed=3), "seed"),
    (lambda: S(affinity_label_keys=3), "affinity_label_keys"),
    (lambda: A(label_keys=3), "label_keys"),
    (lambda: A(quorum_workloads=3), "quorum_workloads"),
    (lambda: A(inventory=None), "inventory"),
    (lambda: small().place().to_text(3), "output"),
    (lambda: small().place().to_text("custom-columns="), "output"),
    (lambda: small().place().to_text("jsonpath={.items"), "output"),
    (lambda: small().place().to_text(width=0), "width"),
    (lambda: assert_survives(small(), loss_of=None), "loss_of"),
    (lambda: assert_fits(small(), pod(), workload=3), "workload"),
    (lambda: assert_fits(small(), pod(), workload="rollout/web"), "workload"),
])  # fmt: skip
def test_a_wrong_argument_is_named(ask, argument):
    with pytest.raises(bayplan.ArgumentError) as caught:
        ask()
    assert caught.value.argument == argument


@pytest.mark.parametrize("ask", [lambda: C.from_objects(None), lambda: small().apply(3), lambda: small().add_node(3)])
def test_what_is_no_object_is_an_error(ask):
    with pytest.raises(bayplan.ArgumentError):
        ask()


def test_a_configuration_of_another_kind_is_not_ignored():
    settings = S(scheduler={"kind": "KubeSchedulerConfig", "profiles": []}, scheduler_file="scheduler.yaml")
    with pytest.raises(bayplan.InputError, match=r"scheduler\.yaml: kind: expected KubeSchedulerConfiguration"):
        C.from_objects([NODE], settings=settings).place()


def test_an_empty_code_is_unknown():
    with pytest.raises(bayplan.InputError, match="unknown reason ' '; `bayplan explain-rule` lists"):
        bayplan.explain_rule(" ")


@pytest.mark.parametrize("answer", [
    lambda: small().place(),
    lambda: small().apply(pod()).place(),
    lambda: small().violations(),
    lambda: bayplan.validate(NODE),
    lambda: small().apply(pod()).explain("pod/web"),
])  # fmt: skip
def test_an_answer_is_neither_true_nor_false(answer):
    """A validation without problems has no items: `assert validate(…)` would hold if something is wrong."""
    with pytest.raises(TypeError, match="an answer is neither true nor false"):
        bool(answer())


def test_assertions_about_nothing_are_errors():
    with pytest.raises(bayplan.ArgumentError, match="nothing of the change can be judged"):
        assert_fits(small().only(namespace="other"), pod())
    with pytest.raises(bayplan.ArgumentError, match="nothing was checked"):
        assert_valid({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})


def test_an_assertion_can_be_about_one_pod_of_a_namespace():
    plan = assert_fits(small(), [pod("web"), pod("web", "other")], workload="shop/web")
    assert plan.pods["shop/web"].placed


def owned(name, kind, controller, **labels):
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": controller, "controller": True}
    made = pod(name, labels=labels, ownerReferences=[owner])
    return {**made, "spec": {**made["spec"], "nodeName": "n1"}}


@pytest.mark.parametrize("asked, found", [
    ("deploy/calico", "shop/odd"),  # not calico-node-ab1de, which is written like one of its pods
    ("ds/calico-node", "shop/calico-node-ab1de"),
    ("rs/calico-6d4", "shop/odd"),
    ("sts/db", "shop/db-zero"),
    ("cronjob/night", "shop/backup"),
    ("job/night-29", "shop/backup"),
])  # fmt: skip
def test_pods_are_found_by_their_controllers(asked, found):
    pods = [
        owned("calico-node-ab1de", "DaemonSet", "calico-node"),
        owned("odd", "ReplicaSet", "calico-6d4", **{"pod-template-hash": "6d4"}),
        owned("db-zero", "StatefulSet", "db"),
        owned("backup", "Job", "night-29"),
    ]
    assert C.from_objects([NODE, *pods]).explain(asked).workload == found


def test_a_replica_set_of_another_deployment_is_not_asked_for():
    pods = [owned("web-api-ab1de", "ReplicaSet", "web-api", **{"pod-template-hash": "7f9"})]
    state = C.from_objects([NODE, *pods])
    assert state.explain("deploy/web").workload  # by the name, if the labels say nothing
    pods = [owned("web-api-7f9-ab1de", "ReplicaSet", "web-api-7f9", **{"pod-template-hash": "7f9"})]
    with pytest.raises(bayplan.InputError, match="no pod of deployment/web is in the input"):
        C.from_objects([NODE, *pods]).explain("deploy/web")


def test_paths_may_be_odd(tmp_path):
    folder = tmp_path / "ödd ☃ '$(x)"
    folder.mkdir()
    (folder / 'n ".json').write_text(json.dumps(NODE))
    assert set(C.from_files(pathlib.Path(folder)).nodes) == {"n1"}
