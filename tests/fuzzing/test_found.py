"""What the fuzzer has found: each document once ended a command with a traceback or an answer that no terminal should get."""

import json
import pathlib

import pytest
import yaml

from bayplan.writing import versioned
from fuzzing import running

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
DIGITS = "9" * 400
ROOT = pathlib.Path(__file__).parents[2]
RECORDING = '{"recording":"bayplan.io/recording/v1"}\n'


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def check(arguments, text, expected, *, code=2, stdin=False):
    """Run the command; the expected text is in a message or in the answer."""
    data = text if isinstance(text, bytes) else text.encode()
    outcome = running.run(arguments.split(), {"doc": data}, data if stdin else b"")
    assert outcome.failure == "", outcome.detail
    assert expected in outcome.stderr + outcome.stdout.decode()
    assert outcome.code == code


# The lines of `decide`, and what the answer says.
LINES = [
    ("pods", '{"nodes":[],"pod":{"spec":{"priority":' + DIGITS + "}}}", "pod.spec.priority: expected a whole number from"),
    ("pods", '{"nodes":[{"status":{"images":[{"names":["a"],"sizeBytes":' + DIGITS + '}]}}],"pod":{}}', "sizeBytes: expected a whole number from"),
    ("pods", '{"nodes":[{"status":{"allocatable":{"cpu":"1' + "0" * 5000 + '"}}}],"pod":{}}', "nodes[0]: expected a quantity of at most 64 bits"),
    ("pods", '{"nodes":[{"status":{"allocatable":{"cpu":"1e' + DIGITS + '"}}}],"pod":{}}', "nodes[0]: expected a quantity of at most 64 bits"),
    ("preemption", '{"nodes":[],"pods":[{"spec":{"nodeName":"a"},"status":{"startTime":"now"}}],"pod":{}}', "pods[0].status.startTime: expected a time"),
    ("pods", '{"nodes":[],"pods":[{"spec":{"nodeName":"a"},"status":{"startTime":"now"}}],"pod":{}}', "pods[0].status.startTime: expected a time"),
    ("fleet", '{"clusters":[],"binding":{"spec":{"rescheduleTriggeredAt":"2026-01-05"},"status":{"lastScheduledTime":"2026-01-01T00:00:00Z"}}}',
     "binding.spec.rescheduleTriggeredAt: expected a time"),
    ("pods", '{"nodes":' + "[" * 100_000, "invalid JSON: nested too deeply"),
    ("pods", b'{"name":"\xff"}', "invalid JSON: not UTF-8"),
    ("pods", '{"name":' + "9" * 5000 + "}", "invalid JSON: Integer value out of range"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "line", "expected"), LINES, ids=range(len(LINES)))
def test_a_bad_line_is_an_error_and_the_lines_after_it_are_answered(kind, line, expected):
    good = {"name": "good", **({"clusters": [], "binding": {}} if kind == "fleet" else {"nodes": [], "pod": {}})}
    line = line if isinstance(line, bytes) else line.encode()
    given = b"\n".join([line, json.dumps(good).encode(), line, b""])
    outcome = running.run(["decide", kind], {}, given)
    assert outcome.failure == "", outcome.detail
    first, second, third = map(json.loads, outcome.stdout.splitlines())
    assert expected in first["error"]
    assert second["name"] == "good"
    assert (first["line"], third["line"], outcome.code) == (1, 3, 2)


# Unusual and valid.
ANSWERED = [
    ("pods", {"nodes": [{"metadata": {"name": "a"}, "status": {"allocatable": {"memory": -(2**63) - 1}}}], "pod": {}}),
    ("pods", {"nodes": [{"metadata": {"name": "a"}}], "pod": {}, "pods": [
        {"metadata": {"name": str(i)}, "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"cpu": "-9e99"}}}]}} for i in range(4)]}),
    ("preemption", {"nodes": [{"metadata": {"name": "a"}}], "pod": {}, "pods": [
        {"metadata": {"name": time}, "spec": {"nodeName": "a"}, "status": {"startTime": time}}
        for time in ("1677-09-21T00:00:00Z", "2262-04-12T00:00:00Z", "9999-12-31T23:59:59-12:00", "0000-01-01T00:00:00Z")]}),
    ("admission", {"object": {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "a"}, "spec": {"placement":
        {"supplements": {"a": 1}}}}}),
    ("admission", {"object": {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "a", "annotations":
        {"bayplan.io/placement": '{"supplements":[]}'}}, "spec": {"placement": {"clusterAffinities": [{"affinityName": []}]}}}}),
    ("pods", {"name": "\x7f\x9b31m", "nodes": [], "pod": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "question"), ANSWERED, ids=range(len(ANSWERED)))
def test_an_unusual_question_is_answered(kind, question):
    check(f"decide {kind}", json.dumps(question), "{", code=0, stdin=True)


FILES = [
    ("place -f doc", f"a: {DIGITS}", "expected an object with apiVersion and kind"),
    ("place -f doc", f"apiVersion: v1\nkind: Node\nmetadata: {{name: a, generation: {DIGITS}}}", "metadata.generation: expected a whole number"),
    ("bench pods doc", "[" * 100_000, "doc: invalid JSON: nested too deeply"),
    ("bench fleet doc", b'{"a":"\xff"}', "doc: invalid JSON: not UTF-8"),
    ("replay doc", "[" * 100_000 + "\n", "doc:1: invalid JSON: nested too deeply"),
    ("replay doc", RECORDING + '{"target":{"name":"a","labels":{},"allocatable":[["cpu",' + DIGITS + "]]}}\n", "doc:2: target.allocatable[0][1]: expected a whole number"),
    ("replay doc", RECORDING + '{"a":' + "9" * 5000 + "}\n", "doc:2: invalid JSON: Integer value out of range"),
    ("replay doc", RECORDING + '{"add":{"namespace":"a","name":"b","labels":{},"needs":{}},"shares":[["a",1],["a",1]]}\n', "doc:2: shares: expected each target once"),
    ("audit labels --inventory doc", "n: {host: 2026-02-31}", ""),
    ("audit labels --inventory doc", "n: {host: !!float a}", "doc:1: 'a' is no float"),
    ("kubeconfig doc", "!!int a", "doc:1: invalid YAML: expected a value of type int"),
    ("kubeconfig doc", "users: &a [*a]", "doc"),
    ("config view --config doc", "apiVersion: bayplan.io/v1alpha1\nkind: BayplanConfiguration\ncommands: {place: null}", ""),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text", "expected"), FILES, ids=range(len(FILES)))
def test_a_file(arguments, text, expected):
    check(arguments, text, expected, code=2 if expected else 0)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({}, "expected an object with apiVersion and kind"),
        ({"apiVersion": "v1", "kind": "Pod"}, "invalid JSON: Number out of range"),
        ({"apiVersion": "v1", "kind": "Namespace"}, "invalid JSON: Number out of range"),
        (
            {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"},
            "invalid JSON: Number out of range",
        ),
    ],
)
def test_a_number_that_no_double_holds_is_a_finding(kind, expected):
    text = json.dumps({**kind, "metadata": {"name": "a"}, "spec": {"later": 0}}).replace("0}", "1e999}")
    check("validate -f doc", text, expected, code=1)


def test_a_kustomization_with_a_number_that_no_double_holds_names_no_patches(tmp_path):
    kustomization = '{"apiVersion":"kustomize.config.k8s.io/v1beta1","kind":"Kustomization","patches":[1e999]}'
    (tmp_path / "kustomization.yaml").write_text(kustomization)
    outcome = running.run(["validate", "-R", "-f", "."], {}, b"")
    assert outcome.failure == "", outcome.detail
    assert "no file is a manifest" in outcome.stdout.decode()


def test_a_node_with_room_for_any_number():
    node = {**NODE, "status": {"allocatable": {"pods": "9" * 40}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    check(
        "place -f doc --replicas max",
        f"{json.dumps(node)}\n{json.dumps(pod)}",
        "counted up to 5000, more may fit",
        code=0,
    )


@pytest.mark.parametrize("unsafe", ["\x7f", "\x85", "\x9b31m", "\u202e", "\ufeff"])
def test_yaml_escapes_what_a_terminal_would_obey(unsafe):
    content = {f"k{unsafe}": f"a {unsafe} b", "long": f"{'word ' * 60}{unsafe} end", "list": [f"{unsafe}\n{unsafe}"]}
    written = versioned.as_yaml(content)
    assert unsafe[0] not in written
    assert yaml.safe_load(written) == content


def test_a_lease_at_the_end_of_time():
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a"},
        "spec": {"renewTime": "9999-12-31T23:59:59-12:00"},
    }
    check("audit -f doc --exit-zero", json.dumps([NODE, lease][0]) + "\n" + json.dumps(lease), "scs-0214", code=0)


def test_a_snapshot_of_a_binding_without_a_spec():
    binding = {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": "a", "resourceVersion": "1"},
        "status": {},
    }
    check("snapshot -f doc", json.dumps(binding), '"kind":"ResourceBinding"', code=0)


def test_a_scheduled_binding_whose_placement_cannot_be_read():
    cluster = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"}}
    binding = {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ClusterResourceBinding",
        "metadata": {"name": "a", "resourceVersion": "1", "labels": {"clusterpropagationpolicy.karmada.io/permanent-id": "p"}},
        "spec": {"clusters": [{"name": "m1"}], "placement": {"clusterAffinity": {"clusterNames": [None]}}},
        "status": {},
    }  # fmt: skip
    text = f"{json.dumps(cluster)}\n{json.dumps(binding)}"
    check("rebalance -f doc", text, "", code=0)
    check("place -f doc", text, "placement.clusterAffinity.clusterNames[0]: expected a string, got null", code=1)


def test_as_many_replicas_as_a_number_holds():
    served = [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}]
    rooms = [{"metadata": {"name": name}, "status": {"apiEnablements": served}} for name in "ab"]
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "d", "name": "a"}
    placement = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}
    question = {
        "clusters": rooms,
        "binding": {"spec": {"resource": resource, "replicas": 2**31 - 1, "placement": placement}},
    }
    check("decide fleet", json.dumps(question), "1073741824", code=0, stdin=True)


# Objects of a dump that the state has too, with a value of the wrong type in the one or the other.
CHANGES = [
    ("Pod", {}, {"spec": "text"}, "spec: expected a mapping"),
    ("Pod", {}, {"spec": {"containers": [{"resources": {"requests": {"cpu": []}}}]}}, "requests[cpu]: expected a quantity"),
    ("Pod", {"spec": {"activeDeadlineSeconds": 5}}, {"spec": {"activeDeadlineSeconds": "x"}}, ""),
    ("Pod", {}, {"spec": {"tolerations": [[]]}}, "spec.tolerations[0]: expected a mapping"),
    ("Pod", {}, {"spec": {"schedulingGates": ["now"]}}, "spec.schedulingGates[0]: expected a mapping"),
    ("Pod", {"spec": {"containers": {"name": "c"}}}, {"spec": {"containers": [{"name": "c"}]}}, ""),
    ("Node", {}, {"status": {"allocatable": {"pods": {}}}}, "status.allocatable[pods]: expected a quantity"),
    ("Job", {"status": {"conditions": ["Complete"]}, "spec": {"suspend": True}}, {"spec": {"template": "text"}}, ""),
    ("Job", {"status": "text", "spec": {"suspend": True}}, {"spec": {"parallelism": 1}}, ""),
    ("PersistentVolumeClaim", {"status": {"phase": "Bound"}}, {"spec": {"resources": {"requests": {"storage": []}}}}, "storage"),
    ("StatefulSet", {"spec": "text"}, {"spec": {"template": 7}}, "spec.template: expected a mapping"),
    ("Pod", {"spec": {"containers": [{}]}}, {"spec": {"containers": [None]}}, ""),
    ("Pod", {"spec": {"containers": [None], "initContainers": [None]}}, {"spec": {"containers": [{"image": "a"}]}}, ""),
    ("Pod", {"spec": {"tolerations": [None]}}, {"spec": {"tolerations": [None, {"key": "a"}]}}, ""),
    ("Pod", {"spec": {"schedulingGates": [None]}}, {"spec": {"schedulingGates": [{"name": "a"}]}}, "spec.containers: Required value"),
    ("Pod", {}, {"spec": {"schedulingGates": [None]}}, ""),
    ("Job", {"status": {"conditions": [None]}, "spec": {"suspend": True}}, {"spec": {"template": {"spec": {"containers": [None]}}}}, ""),
    ("Job", {"spec": {"suspend": True, "template": {"spec": {"containers": [None]}}}}, {"spec": {"template": {"spec": {"containers": [{}]}}}}, ""),
    ("StatefulSet", {"spec": {"volumeClaimTemplates": [None]}}, {"spec": {"volumeClaimTemplates": [{}]}}, ""),
    ("PersistentVolume", {"spec": {"accessModes": [None]}}, {"spec": {"accessModes": ["ReadWriteOnce"]}}, ""),
]  # fmt: skip
VERSIONS = {"Job": "batch/v1", "StatefulSet": "apps/v1"}


@pytest.mark.parametrize(("kind", "before", "after", "expected"), CHANGES, ids=range(len(CHANGES)))
def test_a_value_of_the_wrong_type_in_an_object_that_the_state_has(kind, before, after, expected):
    written = {"apiVersion": VERSIONS.get(kind, "v1"), "kind": kind, "metadata": {"name": "a", "resourceVersion": "1"}}
    written["status"] = {}  # as in a dump
    files = {name: json.dumps({**written, **fields}).encode() for name, fields in (("state", before), ("doc", after))}
    outcome = running.run(["place", "--state", "state", "-f", "doc"], files, b"")
    assert outcome.failure == "", outcome.detail
    assert expected in outcome.stderr + outcome.stdout.decode()


def test_an_old_replica_set_that_requests_two_billion_pods():
    state = (ROOT / "examples/18-stuck-rollout/state.yaml").read_text()
    head, _, rest = state.partition("kind: ReplicaSet")
    files = {
        "state": f"{head}kind: ReplicaSet{rest.replace('replicas: 3', 'replicas: 2147483647', 1)}".encode(),
        "doc": (ROOT / "examples/18-stuck-rollout/web.yaml").read_bytes(),
    }
    outcome = running.run(["place", "--state", "state", "-f", "doc"], files, b"")
    assert outcome.failure == "", outcome.detail
    assert "ReplicaSet shop/web-5d4f8: spec.replicas: expected at most 1,000,000 pods" in outcome.stderr
    assert outcome.code == 2


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("kind", ["Node", "Other"])
def test_a_number_out_of_range_in_an_object_of_an_unknown_group(kind, output):
    text = f'{{"apiVersion":"example.com/v1","kind":"{kind}","metadata":{{"name":"a"}},"status":{{"a":{DIGITS}}}}}'
    for option in ("-f", "--state"):
        outcome = running.run(["place", option, "doc", "-o", output], {"doc": text.encode()}, b"")
        assert outcome.failure == "", outcome.detail
