"""Pods, pod templates, metadata, tolerations and topology spread constraints."""

import pytest

from bayplan.validating import admission
from validating import objects

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
    obj = objects.workload(kind, api_version, {"nodeSelector": {"-x": ""}}, labels={"-x": ""})
    assert objects.causes_of(obj) == [
        f'{path}.labels: Invalid value: "-x": {NAME}',  # upstream leaves "metadata" out
        f'{path}.spec.nodeSelector: Invalid value: "-x": {NAME}',
    ]


@pytest.mark.parametrize("obj", [
    {},
    {"kind": "ConfigMap", "apiVersion": "v1"},
    {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1"},  # the Job of another group
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
    ({"namespace": ""}, []),  # the request has it
    ({"namespace": "a_b"}, [f'.namespace: Invalid value: "a_b": {LABEL}']),
    ({"labels": {"-x": "a"}}, [f'.labels: Invalid value: "-x": {NAME}']),
    ({"annotations": {"Upper.com/x": "any thing"}}, []),
    ({"annotations": {"-X": ""}}, [f'.annotations: Invalid value: "-X": {NAME}']),
    ({"annotations": {"a": "x" * 2**18}}, [".annotations: Too long: may not be more than 262144 bytes"]),
])  # fmt: skip
def test_metadata(metadata, wrong):
    assert objects.causes_of(objects.pod(**metadata), "metadata") == wrong


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
    assert objects.causes_of(objects.pod(objects.read(spec)), "spec") == wrong


@pytest.mark.parametrize("obj, wrong", [
    ({"kind": "Pod", "metadata": [], "spec": "x"}, ['metadata: Invalid value: "a list": expected a mapping, got a list', 'spec: Invalid value: "x": expected a mapping, got text']),
    (objects.pod(labels={"a": 1, "-x": "y"}), ["metadata.labels[a]: Invalid value: 1: expected text, got a whole number"]),  # nothing else is validated
    (objects.pod({"tolerations": [{"tolerationSeconds": 1.5}]}), ["spec.tolerations[0].tolerationSeconds: Invalid value: 1.5: expected a whole number, got a fraction"]),
    (objects.pod({"tolerations": {}}), ['spec.tolerations: Invalid value: "a mapping": expected a list, got a mapping']),
    (objects.pod({"affinity": None, "tolerations": None, "nodeSelector": None}), []),
])  # fmt: skip
def test_types(obj, wrong):
    assert objects.causes_of(obj) == wrong
    assert {cause.reason for cause in admission.validate(obj)} <= {"FieldValueTypeInvalid"}


@pytest.mark.parametrize("spec, reason", [
    ("{containers: []}", "FieldValueRequired"),
    ("{nodeName: Bad}", "FieldValueInvalid"),
    ("{preemptionPolicy: Maybe}", "FieldValueNotSupported"),
    ("{schedulingGates: [{name: a}, {name: a}]}", "FieldValueDuplicate"),
    ("{schedulingGates: [{name: a}], nodeName: n}", "FieldValueForbidden"),
])  # fmt: skip
def test_reason(spec, reason):
    assert [cause.reason for cause in admission.validate(objects.pod(objects.read(spec)))] == [reason]


# Tolerations


EMPTY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
SECONDS = "effect must be 'NoExecute' when `tolerationSeconds` is set"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
EFFECTS = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'


@pytest.mark.parametrize("toleration, wrong", [
    ("{operator: Exists}", []),
    ("{key: k, value: v, effect: NoSchedule}", []),
    ("{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: -1}", []),
    ("{key: -x, operator: Exists}", [f'.key: Invalid value: "-x": {NAME}']),
    ("{}", [f'.operator: Invalid value: "": {EMPTY_KEY}']),
    ("{operator: Equal, value: v}", [f'.operator: Invalid value: "Equal": {EMPTY_KEY}']),
    ("{key: k, operator: Exists, value: v}", [""".operator: Invalid value: "v": value must be empty when `operator` is 'Exists'"""]),
    ("{key: k, value: -x}", [f'.operator: Invalid value: "-x": {VALUE}']),
    ("{key: k, operator: Foo}", ['.operator: Unsupported value: "Foo": supported values: "Equal", "Exists"']),
    ("{key: k, operator: Lt, value: '1'}", ['.operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"']),  # its gate is off
    ("{key: k, effect: Never}", [f'.effect: Unsupported value: "Never": {EFFECTS}']),
    ("{key: k, effect: NoSchedule, tolerationSeconds: 5}", [f'.effect: Invalid value: "NoSchedule": {SECONDS}']),
    ("{key: k, tolerationSeconds: 0}", [f'.effect: Invalid value: "": {SECONDS}']),
])  # fmt: skip
def test_toleration(toleration, wrong):
    obj = objects.pod({"tolerations": [objects.read(toleration)]})
    assert objects.causes_of(obj, "spec.tolerations[0]") == wrong


def test_two_errors_of_a_toleration_value_are_one_cause():
    obj = objects.pod({"tolerations": [{"key": "k", "value": "y" * 63 + "-"}]})
    assert objects.causes_of(obj) == [
        f'spec.tolerations[0].operator: Invalid value: "{"y" * 63}-": must be no more than 63 bytes;{VALUE}'
    ]


# Topology spread constraints


GOOD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
ONLY = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not"
ACTIONS = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
POLICIES = 'supported values: "Honor", "Ignore"'


@pytest.mark.parametrize("changed, wrong", [
    ("{}", []),
    ("{maxSkew: 0}", [".maxSkew: Invalid value: 0: must be greater than zero"]),
    ("{maxSkew: null}", [".maxSkew: Invalid value: 0: must be greater than zero"]),
    ("{topologyKey: ''}", [".topologyKey: Required value: can not be empty"]),
    ("{topologyKey: bad key}", []),  # unlike in an affinity term
    ("{whenUnsatisfiable: Never}", [f'.whenUnsatisfiable: Unsupported value: "Never": {ACTIONS}']),
    ("{whenUnsatisfiable: null}", [f'.whenUnsatisfiable: Unsupported value: "": {ACTIONS}']),
    ("{minDomains: 2}", []),
    ("{minDomains: -1}", [".minDomains: Invalid value: -1: must be greater than zero"]),
    ("{minDomains: 2, whenUnsatisfiable: ScheduleAnyway}", [f".minDomains: Invalid value: 2: {ONLY} ScheduleAnyway"]),
    ("{minDomains: 0, whenUnsatisfiable: ScheduleAnyway}", [".minDomains: Invalid value: 0: must be greater than zero", f".minDomains: Invalid value: 0: {ONLY} ScheduleAnyway"]),
    ("{nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore}", []),
    ("{nodeAffinityPolicy: Maybe}", [f'.nodeAffinityPolicy: Unsupported value: "Maybe": {POLICIES}']),
    ("{nodeTaintsPolicy: ''}", [f'.nodeTaintsPolicy: Unsupported value: "": {POLICIES}']),
    ("{nodeTaintsPolicy: null}", []),
    ("{matchLabelKeys: [app], labelSelector: null}", [".matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
    ("{matchLabelKeys: [app], labelSelector: {matchLabels: {app: web}}}", ['[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector']),
    ("{labelSelector: {matchExpressions: [{key: app}]}}", ['.labelSelector.matchExpressions[0].operator: Invalid value: "": not a valid selector operator']),
])  # fmt: skip
def test_topology_spread_constraint(changed, wrong):
    obj = objects.pod({"topologySpreadConstraints": [{**GOOD, **objects.read(changed)}]}, labels={"app": "web"})
    assert objects.causes_of(obj, "spec.topologySpreadConstraints[0]") == wrong


def test_a_duplicate_constraint_is_reported_at_the_earlier_one():
    other = {**GOOD, "topologyKey": "host"}
    obj = objects.pod({"topologySpreadConstraints": [GOOD, other, GOOD, GOOD]})
    path = "spec.topologySpreadConstraints[{}].{{topologyKey, whenUnsatisfiable}}"
    message = 'Duplicate value: "{zone, DoNotSchedule}"'
    assert objects.causes_of(obj) == [f"{path.format(0)}: {message}", f"{path.format(2)}: {message}"]
