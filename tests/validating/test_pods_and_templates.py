"""The rest of a pod, the templates that pods are made from, and objects of the wrong shape."""

import pytest

from bayplan.validating import admission
from validating import writing

NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"


@pytest.mark.parametrize("kind, api_version, path", [
    ("Deployment", "apps/v1", "spec.template"),
    ("ReplicaSet", "apps/v1", "spec.template"),
    ("StatefulSet", "apps/v1", "spec.template"),
    ("DaemonSet", "apps/v1", "spec.template"),
    ("Job", "batch/v1", "spec.template"),
    ("CronJob", "batch/v1", "spec.jobTemplate.spec.template"),
    ("ReplicationController", "v1", "spec.template"),
])  # fmt: skip
def test_path_of_a_template(kind, api_version, path):
    obj = writing.workload(kind, api_version, {"nodeSelector": {"-x": ""}}, labels={"-x": ""})
    assert writing.held_against(obj) == [
        f'{path}.labels: Invalid value: "-x": {NAME}',  # upstream leaves "metadata" out
        f'{path}.spec.nodeSelector: Invalid value: "-x": {NAME}',
    ]


@pytest.mark.parametrize("obj", [
    {},
    {"kind": "ConfigMap", "apiVersion": "v1"},
    {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1"},  # somebody else's Job
    {"kind": 3},
])  # fmt: skip
def test_a_kind_without_rules_is_admitted(obj):
    assert admission.validate(obj) == []


@pytest.mark.parametrize("metadata, wrong", [
    ({"name": "web-1.x"}, []),
    ({"name": ""}, [".name: Required value: name or generateName is required"]),
    ({"name": "", "generateName": "web-"}, []),
    ({"name": "", "generateName": "Web-"}, [f'.generateName: Invalid value: "Web-": {SUBDOMAIN}']),
    ({"name": "Web"}, [f'.name: Invalid value: "Web": {SUBDOMAIN}']),
    ({"namespace": ""}, []),  # the request says which
    ({"namespace": "a_b"}, [f'.namespace: Invalid value: "a_b": {LABEL}']),
    ({"labels": {"-x": "a"}}, [f'.labels: Invalid value: "-x": {NAME}']),
    ({"annotations": {"Upper.com/x": "any thing"}}, []),
    ({"annotations": {"-X": ""}}, [f'.annotations: Invalid value: "-X": {NAME}']),
    ({"annotations": {"a": "x" * 2**18}}, [".annotations: Too long: may not be more than 262144 bytes"]),
])  # fmt: skip
def test_metadata(metadata, wrong):
    assert writing.held_against(writing.pod(**metadata), "metadata") == wrong


@pytest.mark.parametrize("spec, wrong", [
    ("{containers: []}", [".containers: Required value"]),
    ("{containers: [{}]}", [".containers[0].name: Required value", ".containers[0].image: Required value"]),
    ("{containers: [{name: a_b, image: x}]}", [f'.containers[0].name: Invalid value: "a_b": {LABEL}']),
    ("{containers: [{name: c, image: x}, {name: c, image: x}]}", ['.containers[1].name: Duplicate value: "c"']),
    ("{initContainers: [{name: c, image: x}]}", ['.initContainers[0].name: Duplicate value: "c"']),
    ("{containers: [{name: c, image: x, ports: [{hostPort: 70000}]}]}", [".containers[0].ports[0].containerPort: Required value", ".containers[0].ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
    ("{containers: [{name: c, image: x, ports: [{containerPort: 1, protocol: tcp}]}]}", ['.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"']),
    ("{containers: [{name: c, image: x, ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2, hostPort: 80}]}]}", ['.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"']),
    ("{hostNetwork: true, containers: [{name: c, image: x, ports: [{containerPort: 1, hostPort: 80}]}]}", [".containers[0].ports[0].hostPort: Invalid value: 80: must match `containerPort` when `hostNetwork` is true"]),
    ("{hostNetwork: true, containers: [{name: c, image: x, ports: [{containerPort: 1}, {containerPort: 1}]}]}", ['.containers[0].ports[1].hostPort: Duplicate value: "TCP//1"']),  # in the host's network they meet
    ("{nodeName: Bad}", [f'.nodeName: Invalid value: "Bad": {SUBDOMAIN}']),
    ("{priorityClassName: Bad}", [f'.priorityClassName: Invalid value: "Bad": {SUBDOMAIN}']),
    ("{preemptionPolicy: Never}", []),
    ("{preemptionPolicy: ''}", [".preemptionPolicy: Required value"]),
    ("{preemptionPolicy: no}", [".preemptionPolicy: Invalid value: false: expected text, got true or false"]),
    ("{preemptionPolicy: Maybe}", ['.preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"']),
    ("{schedulingGates: [{name: a}, {name: a}]}", ['.schedulingGates[1]: Duplicate value: "a"']),
    ("{schedulingGates: [{name: -x}]}", [f'.schedulingGates[0]: Invalid value: "-x": {NAME}']),
    ("{schedulingGates: [{name: a}], nodeName: n}", [".nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"]),
])  # fmt: skip
def test_spec(spec, wrong):
    assert writing.held_against(writing.pod(writing.read(spec)), "spec") == wrong


@pytest.mark.parametrize("obj, wrong", [
    ({"kind": "Pod", "metadata": [], "spec": "x"}, ['metadata: Invalid value: "a list": expected a mapping, got a list', 'spec: Invalid value: "x": expected a mapping, got text']),
    (writing.pod(labels={"a": 1, "-x": "y"}), ["metadata.labels[a]: Invalid value: 1: expected text, got a whole number"]),  # nothing else is looked at
    (writing.pod({"tolerations": [{"tolerationSeconds": 1.5}]}), ["spec.tolerations[0].tolerationSeconds: Invalid value: 1.5: expected a whole number, got a fraction"]),
    (writing.pod({"tolerations": {}}), ['spec.tolerations: Invalid value: "a mapping": expected a list, got a mapping']),
    (writing.pod({"affinity": None, "tolerations": None, "nodeSelector": None}), []),
])  # fmt: skip
def test_shape(obj, wrong):
    assert writing.held_against(obj) == wrong
    assert {cause.reason for cause in admission.validate(obj)} <= {"FieldValueTypeInvalid"}


@pytest.mark.parametrize("spec, reason", [
    ("{containers: []}", "FieldValueRequired"),
    ("{nodeName: Bad}", "FieldValueInvalid"),
    ("{preemptionPolicy: Maybe}", "FieldValueNotSupported"),
    ("{schedulingGates: [{name: a}, {name: a}]}", "FieldValueDuplicate"),
    ("{schedulingGates: [{name: a}], nodeName: n}", "FieldValueForbidden"),
])  # fmt: skip
def test_reason(spec, reason):
    assert [cause.reason for cause in admission.validate(writing.pod(writing.read(spec)))] == [reason]
