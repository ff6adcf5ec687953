"""What runs is read and not validated; what is about to be applied on it is merged into it."""

import json

import pytest

from bayplan.controllers.desired_state import ObjectKey
from bayplan.errors import InputError
from bayplan.reading import cluster, files
from bayplan.reading.documents import Source
from bayplan.reading.files import ReadOptions

WEB = ObjectKey("Deployment", "shop", "web")


def deployment(name="web", image="web:1", replicas=2, uid="", **more):
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    metadata = {"name": name, "namespace": "shop", **({"uid": uid} if uid else {}), **more}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def pod(name, node="a1", annotations=None, **spec):
    metadata = {"name": name, "namespace": "shop", "annotations": annotations or {}}
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a1"},
    "status": {"allocatable": {"cpu": "4", "pods": "110"}},
}
MISSPELT = {"bayplan.io/affinity": "podAfinity: {}"}


@pytest.fixture
def written(write):
    """Write objects into a file, as JSON documents one after another."""

    def written(name, *objects):
        return write("\n".join(map(json.dumps, objects)), name)

    return written


@pytest.fixture
def read(written):
    """The input of a state and a change, with the pods that were read."""

    def read(state, change, **options):
        paths = [written("change.json", *change)] if change else []
        return cluster.read(ReadOptions(paths, state=[written("state.json", *state)], **options))

    return read


@pytest.fixture
def faults_of(read, tmp_path):
    def faults_of(state, change):
        with pytest.raises(InputError) as caught:
            read(state, change)
        return [str(fault).replace(f"{tmp_path}/", "") for fault in caught.value.faults]

    return faults_of


def deployments(inputs):
    return {one.metadata.name: one for one in inputs.controllers["Deployment"]}


def test_an_object_of_the_change_replaces_the_one_of_the_state(read):
    inputs, _ = read([deployment(), deployment("db")], [deployment(image="web:2"), deployment("new")])
    assert inputs.change == {WEB, ObjectKey("Deployment", "shop", "new")}
    assert list(inputs.replaced) == [WEB]
    assert inputs.replaced[WEB].spec.template.spec.containers[0].image == "web:1"
    found = deployments(inputs)
    assert sorted(found) == ["db", "new", "web"]
    assert found["web"].spec.template.spec.containers[0].image == "web:2"
    assert inputs.rolled_out == {WEB}
    assert inputs.state_notes() == ["1 object of the state is replaced"]


def test_replicas_of_the_state_stay_where_the_manifest_has_none(read):
    inputs, _ = read([deployment(replicas=7)], [deployment(replicas=None)])
    assert deployments(inputs)["web"].spec.replicas == 7
    assert inputs.rolled_out == set()


def test_a_template_that_only_looks_different_is_not_rolled_out(read):
    state = deployment()
    container = state["spec"]["template"]["spec"]["containers"][0]
    container |= {"terminationMessagePath": "/dev/termination-log", "resources": {"requests": {"cpu": "1"}}}
    change = deployment()
    change["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000m"}}
    inputs, _ = read([state], [change])
    assert (list(inputs.replaced), inputs.rolled_out) == ([WEB], set())


def test_the_last_applied_manifest_tells_what_is_removed(read):
    last = deployment()
    last["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}
    state = {**last, "metadata": {**last["metadata"], "annotations": {}}}
    state["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json.dumps(last)
    inputs, _ = read([state], [deployment()])
    assert deployments(inputs)["web"].spec.template.spec.node_selector is None
    assert inputs.rolled_out == {WEB}


def test_a_pod_of_the_change_that_runs_keeps_its_node(read):
    changed = pod("p")
    del changed["spec"]["nodeName"]
    changed["spec"]["containers"][0]["image"] = "i:2"
    inputs, sink = read([NODE, pod("p"), pod("q")], [changed])
    assert [(workload.name, node) for workload, node in sink.running] == [("q", "a1"), ("p", "a1")]
    assert sink.pending == []
    assert inputs.inventory.names == {"shop/p", "shop/q"}


def test_pods_with_generated_names_are_new(read):
    job = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "run-", "namespace": "shop"}}
    job["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    inputs, sink = read([NODE], [job, job])
    assert len(inputs.change) == len({one.metadata.name for one in sink.pending}) == 2


def test_kinds_of_other_groups_may_share_a_name(read):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    other = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "web"}}
    inputs, _ = read([service], [other])
    assert len(inputs.services) == 1
    inputs, _ = read([NODE], [service, other])
    assert len(inputs.services) == 1


def test_a_state_alone_is_not_divided(read):
    inputs, _ = read([NODE, deployment()], [])
    assert (inputs.change, inputs.has_state, inputs.replaced) == (None, True, {})


def test_files_alone_are_both(written):
    inputs, _ = cluster.read(ReadOptions([written("a.json", NODE, deployment())]))
    assert (inputs.change, inputs.has_state) == (None, False)


def test_a_live_cluster_is_a_state(written):
    listed = {"kind": "DeploymentList", "apiVersion": "apps/v1", "items": [deployment(uid="u")]}
    live = [Source("prod deployments", json.dumps(listed).encode())]
    inputs, _ = cluster.read(ReadOptions([written("a.json", deployment(image="web:2"))], live=live))
    assert (list(inputs.replaced), inputs.rolled_out) == ([WEB], {WEB})


# Bad input.


@pytest.mark.parametrize("change, fault", [
    ([deployment(), deployment(image="web:2")],
     "change.json:2, Deployment shop/web: the same object is changed twice, first in change.json:1"),
    ([deployment(uid="other")],
     ("change.json:1, Deployment shop/web: metadata.uid: expected u, the uid of this object in the state, got other: "
     "it is of another cluster")),
    ([deployment(colour="red")], "change.json:1, Deployment shop/web: metadata.colour: unknown field"),
    ([{**deployment(), "spec": {**deployment()["spec"], "selector": {"matchLabels": {"app": "db"}}}}],
     ('change.json:1, Deployment shop/web: spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: '
     "field is immutable (matchLabels.app)")),
])  # fmt: skip
def test_a_change_that_cannot_be_applied(faults_of, change, fault):
    assert faults_of([deployment(uid="u")], change) == [fault]


def test_all_refusals_are_reported_at_once(faults_of):
    jobs = [{**deployment(name), "apiVersion": "batch/v1", "kind": "Job"} for name in ("a", "b")]
    for job in jobs:
        job["spec"] = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    changed = json.loads(json.dumps(jobs).replace('"image": "i"', '"image": "j"'))
    found = faults_of(jobs, changed)
    assert [fault.partition(": ")[0] for fault in found] == ["change.json:1, Job shop/a", "change.json:2, Job shop/b"]


def test_the_merged_object_is_validated(faults_of):
    change = deployment()
    change["spec"]["template"]["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}
    }
    assert any("topologyKey: Required value" in found for found in faults_of([deployment()], [change]))


def test_a_manifest_with_a_part_of_the_fields_is_enough(read):
    part = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
    inputs, _ = read([deployment()], [{**part, "spec": {"replicas": 5}}])
    assert deployments(inputs)["web"].spec.replicas == 5
    assert inputs.rolled_out == set()


# The state is read as far as possible.


def test_objects_of_the_state_are_not_validated(read):
    strange = pod("p", annotations=MISSPELT, colour="red")
    inputs, sink = read([NODE, strange], [])
    assert [workload.name for workload, _ in sink.running] == ["p"]
    assert inputs.set_aside == []
    found = cluster.cluster_of(inputs, sink=sink)
    assert next(note for note in found.notes if "podAfinity" in note).startswith(
        "Pod shop/p would not be placed again: "
    )


@pytest.mark.parametrize("bad, fault", [
    (pod("bad", nodeName=7), "spec.nodeName: expected a string, got the number 7 (put it in quotes)"),
    (pod("bad", containers="c"), 'spec.containers: expected a list, got the string "c"'),
    ({**pod("bad"), "kind": "Podd"}, "kind: unknown kind Podd, did you mean Pod?"),
    ({**pod("bad"), "status": {"startTime": "yesterday"}}, "status.startTime: "),
    ({"apiVersion": "v1", "kind": "Node", "metadata": {}}, "metadata.name: expected a name"),
])  # fmt: skip
def test_an_object_that_cannot_be_read_is_set_aside(read, bad, fault):
    inputs, sink = read([NODE, bad, pod("good")], [])
    assert [workload.name for workload, _ in sink.running] == ["good"]
    (found,) = inputs.set_aside
    assert fault in str(found)
    assert any(note.startswith("set aside: ") and fault in note for note in cluster.cluster_of(inputs, sink=sink).notes)


@pytest.mark.parametrize("bad", [
    {**NODE, "metadata": {"name": "b1"}, "status": {"allocatable": {"cpu": "many"}}},
    {**pod("bad", node=""), "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]}},
    pod("bad", containers=[{"name": "c", "resources": {"requests": {"cpu": "many"}}}]),
    {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"capacity": {"storage": "x"}}},
])  # fmt: skip
def test_an_object_that_cannot_be_mapped_is_set_aside(read, bad):
    inputs, sink = read([NODE, bad, pod("good")], [])
    found = cluster.cluster_of(inputs, sink=sink)
    assert list(found.index.records) == ["shop/good"]
    assert sum(note.startswith("set aside: ") for note in found.notes) == 1


def test_the_notes_on_what_is_set_aside_are_few(read):
    inputs, sink = read([NODE, *(pod(f"bad-{i}", nodeName=7) for i in range(9))], [])
    notes = [note for note in cluster.cluster_of(inputs, sink=sink).notes if note.startswith("set aside: ")]
    assert (len(notes), notes[-1]) == (4, "set aside: 6 more objects of the state")


def test_a_syntax_error_in_the_state_is_a_fault(write):
    with pytest.raises(InputError) as caught:
        files.load(ReadOptions(state=[write('{"apiVersion": "v1", ', "state.json")]))
    assert "invalid JSON: it ends too early" in str(caught.value)


def test_an_object_that_the_state_has_twice_is_read_once(read):
    inputs, sink = read([NODE, pod("p"), pod("p"), deployment(), deployment()], [deployment(image="web:2")])
    assert len(sink.running) == 1
    assert inputs.hints == ["the state has 1 object more than once; the first of each is used"]


def test_a_change_creates_what_the_state_has_but_cannot_be_read(read):
    broken = {**deployment(), "spec": {"replicas": "two"}}
    inputs, _ = read([broken], [deployment()])
    assert (inputs.replaced, len(inputs.set_aside)) == ({}, 1)
    assert deployments(inputs)["web"].spec.replicas == 2


def test_owners_may_own_each_other(read):
    owned = [pod(name) for name in ("p", "q")]
    for one, other in (owned, owned[::-1]):
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": other["metadata"]["name"],
            "uid": "u",
            "controller": True,
        }
        one["metadata"]["ownerReferences"] = [reference]
    inputs, sink = read([NODE, *owned], [])
    assert len(cluster.cluster_of(inputs, sink=sink).index.records) == 2
