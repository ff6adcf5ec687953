"""Misspelt fields and wrong types: all of them are reported, each with its place and a suggestion."""

import json

import pytest

from bayplan.reading import checking
from bayplan.validating import structure, structure_faults
from bayplan.wire import kinds

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


def findings(kind, text_or_value):
    return [
        f"{finding.path}: {structure_faults.message(finding)}"
        for finding in structure.walk(text_or_value, checking.shapes()[kind])
    ]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "spec, reported",
    [
        ({"nodename": "a"}, "spec.nodename: unknown field, did you mean nodeName?"),
        (
            {"topologySpreadConstraint": []},
            "spec.topologySpreadConstraint: unknown field, did you mean topologySpreadConstraints?",
        ),
        ({"xyz": 1}, "spec.xyz: unknown field"),
        (
            {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologykey": "zone"}]}}},
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologykey: unknown field, did you mean topologyKey?",
        ),
        ({"affinity": {"podAffinity": {"required": []}}}, "spec.affinity.podAffinity.required: unknown field"),
        ({"priority": "7"}, 'spec.priority: expected a whole number, got the string "7"'),
        ({"priority": 7.5}, "spec.priority: expected a whole number, got the number 7.5"),
        (
            {"priority": 1e23},
            "spec.priority: expected a whole number from -2147483648 to 2147483647, got the number 1e+23",
        ),
        (
            {"priority": 3000000000},
            "spec.priority: expected a whole number from -2147483648 to 2147483647, got the number 3000000000",
        ),
        (
            {"activeDeadlineSeconds": 2**63},
            f"spec.activeDeadlineSeconds: expected a whole number from {-(2**63)} to {2**63 - 1}, got the number {2**63}",
        ),
        (
            {"containers": [{"ports": [{"hostPort": 2**31}]}]},
            f"spec.containers[0].ports[0].hostPort: expected a whole number from {-(2**31)} to {2**31 - 1}, got the number {2**31}",
        ),
        (
            {"containers": [{"livenessProbe": {"httpGet": {"port": 2**31}}}]},
            f"spec.containers[0].livenessProbe.httpGet.port: expected a whole number from {-(2**31)} to {2**31 - 1}, got the number {2**31}",
        ),
        ({"priority": True}, "spec.priority: expected a whole number, got true"),
        ({"hostNetwork": "yes"}, 'spec.hostNetwork: expected true or false, got the string "yes"'),
        ({"nodeSelector": {"disk": True}}, "spec.nodeSelector[disk]: expected a string, got true (put it in quotes)"),
        ({"nodeSelector": ["disk"]}, "spec.nodeSelector: expected a mapping, got a list"),
        ({"nodeName": 12}, "spec.nodeName: expected a string, got the number 12 (put it in quotes)"),
        ({"containers": {"name": "a"}}, "spec.containers: expected a list, got a mapping"),
        ({"containers": ["a"]}, 'spec.containers[0]: expected a mapping, got the string "a"'),
        ({"affinity": "none"}, 'spec.affinity: expected a mapping, got the string "none"'),
        (
            {"containers": [{"resources": {"limits": {"cpu": "2 cores"}}}]},
            'spec.containers[0].resources.limits[cpu]: expected a quantity such as 500m or 1.5Gi, got the string "2 cores"',
        ),
        (
            {"containers": [{"livenessProbe": {"httpGet": {"port": [80]}}}]},
            "spec.containers[0].livenessProbe.httpGet.port: expected a whole number or a string, got a list",
        ),
        # Fields that do not affect scheduling are checked too.
        ({"containers": [{"envFrm": []}]}, "spec.containers[0].envFrm: unknown field, did you mean envFrom?"),
        ({"volumes": [{"emptydir": {}}]}, "spec.volumes[0].emptydir: unknown field, did you mean emptyDir?"),
    ],
)
def test_faults_of_a_pod(spec, reported):
    assert findings("Pod", {"spec": spec}) == [reported]


@pytest.mark.parametrize(
    "spec",
    [
        {"priority": 7.0},  # JSON has one kind of number
        {"priority": None, "affinity": None, "nodeSelector": {"a": None}},  # null means absent
        {"containers": [{"resources": {"limits": {"cpu": 2, "memory": 1.5, "nvidia.com/gpu": "1"}}}]},
        {"containers": [{"livenessProbe": {"httpGet": {"port": "web"}}, "env": [{"name": "A", "value": "1"}]}]},
        {
            "affinity": {
                "podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "limit": 2, "tolerateNamespaces": ["a"]}]}
            }
        },
        {"affinity": {"podAffinity": {"requiredDuringSchedulingRequiredDuringExecution": [{"topologyKey": "zone"}]}}},
    ],
)
def test_valid_fields_are_accepted(spec):
    assert findings("Pod", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}) == []


def test_pod_templates_are_checked_in_every_kind():
    template = {"spec": {"toleration": []}}
    reported = "spec.template.spec.toleration: unknown field, did you mean tolerations?"
    for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"):
        assert findings(kind, {"spec": {"template": template}}) == [reported]
    nested = {"spec": {"jobTemplate": {"spec": {"template": template}}}}
    assert findings("CronJob", nested) == [reported.replace("spec.template", "spec.jobTemplate.spec.template", 1)]


def test_the_table_has_every_kind_that_is_read_and_every_type_it_mentions():
    table = checking.field_table()
    # Two API groups have a PodGroup, and the table goes by kind: only values of it are checked, not names of fields.
    assert {row.kind for row in kinds.decoded()} - {"PodGroup"} < set(table)
    mentioned = {kind.strip("[]{}") for fields in table.values() for kind in fields.values()}
    free = mentioned - set(table) - {"string", "int", "int32", "bool", "number", "Quantity", "IntOrString", "any"}
    # The API defines no fields for these: two accept anything, the others have none yet.
    assert {name for name in free if not name.startswith("WorkloadPodGroup")} == {"FieldsV1", "RawExtension"}


def test_all_faults_have_their_lines(faults_of):
    text = """\
        apiVersion: v1
        kind: Pod
        metadata:
          name: a
          labels:
            version: 2
            ready: yes
        spec:
          nodeselector: {disk: ssd}
          containers:
          - name: c
            resources:
              requests:
                cpu: lots
          affinity:
            podAntiAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
              - labelselector: {}
                topologykey: zone
        """
    cpu = "spec.containers[0].resources.requests[cpu]"
    term = f"spec.affinity.podAntiAffinity.{REQUIRED}[0]"
    assert faults_of(text) == [
        "a.yaml:6, Pod default/a: metadata.labels[version]: expected a string, got the number 2 (put it in quotes)",
        "a.yaml:7, Pod default/a: metadata.labels[ready]: expected a string, got true (put it in quotes)",
        "a.yaml:9, Pod default/a: spec.nodeselector: unknown field, did you mean nodeSelector?",
        f'a.yaml:14, Pod default/a: {cpu}: expected a quantity such as 500m or 1.5Gi, got the string "lots"',
        f"a.yaml:18, Pod default/a: {term}.labelselector: unknown field, did you mean labelSelector?",
        f"a.yaml:19, Pod default/a: {term}.topologykey: unknown field, did you mean topologyKey?",
    ]


def test_json_is_checked_as_yaml_is(faults_of):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodename": "x", "priority": "1"}}
    assert faults_of(json.dumps(pod, indent=1), "a.json") == [
        "a.json:8, Pod default/a: spec.nodename: unknown field, did you mean nodeName?",
        'a.json:9, Pod default/a: spec.priority: expected a whole number, got the string "1"',
    ]


def test_duplicate_keys_in_json_are_reported_with_both_lines(faults_of):
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},\n"spec": {"priority": 1,\n\n"priority": 2}}'
    assert faults_of(text, "a.json") == ["a.json:4, Pod default/a: the key priority is given twice, first on line 2"]


def test_metadata_of_the_wrong_shape(faults_of):
    for name in ("a.yaml", "a.json"):
        reported = faults_of('{"apiVersion": "v1", "kind": "Pod", "metadata": ["a"]}', name)
        assert reported == [f"{name}:1, Pod default/: metadata: expected a mapping, got a list"]
        reported = faults_of('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5}}', name)
        assert reported == [
            f"{name}:1, Pod default/: metadata.name: expected a string, got the number 5 (put it in quotes)"
        ]


DUMPED = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: u, somethingNew: 1}\nspec: {brandNew: {x: 1}%s}\nstatus: {phase: Running}\n"


def test_unknown_fields_are_accepted_in_dumps(load):
    assert load(DUMPED % "").pods[0].status.phase == "Running"


def test_types_are_checked_in_dumps_too(faults_of):
    wrong = ', priority: "1", nodeName: 5'
    assert faults_of(DUMPED % wrong) == [
        'a.yaml:4, Pod default/a: spec.priority: expected a whole number, got the string "1"',
        "a.yaml:4, Pod default/a: spec.nodeName: expected a string, got the number 5 (put it in quotes)",
    ]


def test_a_dump_without_its_status_was_edited_by_hand(faults_of):
    text = POD.replace("name: a", "name: a, resourceVersion: '5'") + "spec: {nodename: x}\n"
    assert "did you mean nodeName?" in faults_of(text)[0]


def test_unknown_fields_are_accepted_if_not_strict(load):
    assert load(POD + "spec: {nodename: x}\n", strict=False).pods[0].spec.node_name == ""


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_null_means_absent(load, name):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": None, "creationTimestamp": None, "labels": {"app": None, "x": "y"}},
        "spec": {"nodeName": None, "containers": [{"name": "c", "image": None}], "hostNetwork": None},
        "status": None,
    }
    (found,) = load(json.dumps(pod), name).pods
    assert found.metadata.namespace == "default"
    assert found.metadata.labels == {"app": "", "x": "y"}
    assert found.spec.node_name == ""
