"""Control planes that run as pods of another cluster."""

import pytest
import yaml
from scenery import finding, judge, node, nodes, verdicts

from bayplan.auditing.audit_input import Hosting
from bayplan.auditing.repairing import repair_proposal
from bayplan.errors import InputError
from bayplan.reading import audit_files
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.observed import ObservedContainer, ObservedPod, ObservedPodSpec, ObservedPodStatus

WORKERS = nodes("worker x/a", "worker y/b")
PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def part(name, on, *containers):
    return ObservedPod(
        metadata=ObjectMeta(name=name, namespace="tenant"),
        spec=ObservedPodSpec(node_name=on, containers=[ObservedContainer(name=one) for one in containers]),
        status=ObservedPodStatus(phase="Running"),
    )


def hosted(*places):
    """One of each component on each node: `x/h1`."""
    there = [node(f"m{i}", "worker", place) for i, place in enumerate(places)]
    return Hosting(nodes=there, pods=[part(f"{p}-{i}", f"m{i}", p) for i in range(len(places)) for p in PARTS])


@pytest.mark.parametrize("places, machines, quorum, dup", [
    (("x/h1", "y/h2", "z/h3"), "PASS", "PASS", "PASS"),
    (("x/h1", "x/h1", "x/h1"), "FAIL", "WARN", "PASS"),
    (("x/h1",),                "FAIL", "WARN", "FAIL"),
    (("x/-", "x/-", "x/-"),    "UNDECIDED", "UNDECIDED", "PASS"),
])  # fmt: skip
def test_the_control_plane_is_judged_where_it_runs(places, machines, quorum, dup):
    found = judge(WORKERS, hosting=hosted(*places))
    assert verdicts(found)["cp-hidden"] == "PASS"
    assert verdicts(found)["scs-0214-cp-machines"] == machines
    assert verdicts(found)["fd-quorum-etcd-host"] == quorum
    assert verdicts(found)["scs-0213-dup-etcd"] == dup
    assert finding(found, "scs-0213-dup-etcd").evidence == "observed"
    assert verdicts(found)["scs-0214-labels-zone"] == "PASS"  # of the cluster's own nodes


def test_nodes_of_both_clusters_may_have_one_name():
    there = [node(f"n{i}", "worker", f"z/h{i}", provider_id=f"openstack:///m{i}") for i in range(2)]
    pods = [part(f"{p}-{i}", f"n{i}", p) for i in range(2) for p in PARTS]
    here = [node(f"n{i}", "worker", "z/h5", provider_id=f"openstack:///w{i}") for i in range(2)]
    inventory = {"w0": {"host": "h5"}, "w1": {"host": "h5"}, "m0": {"host": "h0"}, "m1": {"host": "h1"}}
    found = judge(here, hosting=Hosting(nodes=there, pods=pods), inventory=inventory)
    assert verdicts(found)["scs-0214-labels-current"] == "PASS"
    assert verdicts(found)["scs-0214-cp-machines"] == "PASS"
    assert verdicts(found)["scs-0214-worker-spread"] == "WARN"


def test_several_components_in_one_pod():
    there = [node(f"m{i}", "worker", f"z{i}/h{i}") for i in range(2)]
    pods = [part(f"kcp-{i}", f"m{i}", *PARTS[:3], "konnectivity") for i in range(2)]
    found = judge(WORKERS, hosting=Hosting(nodes=there, pods=pods))
    assert [len(found.layout.members[one]) for one in PARTS[:3]] == [2, 2, 2]
    assert verdicts(found)["scs-0213-dup-etcd"] == "UNDECIDED"  # it may be shared, and run elsewhere
    assert "--hosting-namespace" in finding(found, "scs-0213-dup-etcd").message
    alone = [part(f"api-{i}", f"m{i}", "kube-apiserver") for i in range(2)]
    found = verdicts(judge(WORKERS, hosting=Hosting(nodes=there, pods=alone)))
    assert (found["scs-0213-dup-apiserver"], found["scs-0213-dup-scheduler"]) == ("PASS", "FAIL")


def test_two_instances_on_one_node_share_its_machine():
    there = [node("m0", "worker", "z/-"), node("m1", "worker", "z/-")]
    pods = [part(f"api-{i}", "m0", "kube-apiserver") for i in range(2)]
    found = judge(WORKERS, hosting=Hosting(nodes=there, pods=pods), profile="ha")
    assert verdicts(found)["scs-0213-half-apiserver"] == "FAIL"


def test_nodes_of_the_same_name_are_kept_apart():
    there = [node("worker-0", "worker", "x/h1")]
    found = judge(WORKERS, hosting=Hosting(nodes=there, pods=[part("api", "worker-0", "kube-apiserver")]))
    assert [one.name for one in found.layout.control_plane] == ["hosting/worker-0"]
    assert len(found.layout.workers) == 2


def test_a_dump_without_any_component_leaves_it_hidden_with_a_note():
    found = judge(WORKERS, hosting=Hosting(nodes=nodes("worker x/a"), pods=[part("web", "worker-0", "web")]))
    assert verdicts(found)["cp-hidden"] == "UNDECIDED"
    assert "no pod of the hosting cluster's dump runs a part" in found.layout.notes[0]


def test_repair_moves_no_nodes_of_the_hosting_cluster():
    found = repair_proposal.propose_repair(judge(WORKERS, hosting=hosted("x/h1", "x/h1", "x/h1")))
    assert found.plan.moves == ()
    assert "spread them there" in found.plan.notes[0]


def written(folder, *namespaces):
    objects = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m0"}}]
    for namespace in namespaces:
        spec = {"nodeName": "m0", "containers": [{"name": "kube-apiserver"}]}
        metadata = {"name": "kube-apiserver", "namespace": namespace}
        objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    path = folder / "hosting.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return [str(path)]


def test_the_control_plane_is_selected_by_namespace(tmp_path):
    paths = written(tmp_path, "kube-system", "shoot-a")
    assert [one.metadata.namespace for one in audit_files.load_hosting(paths, ()).pods] == ["shoot-a"]
    paths = written(tmp_path, "kube-system", "shoot-a", "shoot-b")
    with pytest.raises(InputError, match="choose with --hosting-namespace among shoot-a, shoot-b"):
        audit_files.load_hosting(paths, ())
    assert len(audit_files.load_hosting(paths, ["shoot-b"]).pods) == 1
    with pytest.raises(InputError, match="no part of a control plane in namespace shoot-c"):
        audit_files.load_hosting(paths, ["shoot-c"])
