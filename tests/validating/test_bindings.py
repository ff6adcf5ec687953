"""ResourceBindings and ClusterResourceBindings."""

import pytest

from validating import objects

DEPENDENCIES, LABELS = "resourcebinding.karmada.io/dependencies", "bayplan.io/workload-labels"
NOT_JSON = "annotation value must be a valid JSON"


@pytest.mark.parametrize("spec, wrong", [
    ("{replicas: 3, components: [{name: a, replicas: 1}, {name: b}]}", []),
    ("{components: [{name: a}, {name: a}, {}]}", ['spec.components[1].name: Invalid value: "a": component names must be unique', 'spec.components[2].name: Invalid value: "": component names must be non-empty']),
    ("{replicas: -1}", ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
    ("{components: [{name: a, replicas: -1}], clusters: [{name: m1, replicas: -2}]}", ["spec.components[0].replicas: Invalid value: -1: must be greater than or equal to 0", "spec.clusters[0].replicas: Invalid value: -2: must be greater than or equal to 0"]),
    ("{replicas: two}", ['spec.replicas: Invalid value: "two": expected a whole number, got text']),
    ("{placement: {clusterAffinity: [a]}}", ['spec.placement.clusterAffinity: Invalid value: "a list": expected a mapping, got a list']),
    ("{placement: {spreadConstraints: [{minGroups: -1}]}}", []),  # the policy was validated
    ("{placement: {clusterAffinity: {supplements: [{}]}}}", ["spec.placement.clusterAffinity: Required value: supplements can only be used together with the inline ClusterAffinity"]),
])  # fmt: skip
def test_binding(spec, wrong):
    assert objects.causes_of(objects.binding(spec)) == wrong


@pytest.mark.parametrize("text, wrong", [
    ('[{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "x"}]', []),
    ("[]", []),
    ("null", []),
    ("{}", [r'"{}"']),
    ("[", ['"["']),
    ('[{"name": 3}]', [r'"[{\"name\": 3}]"']),
])  # fmt: skip
def test_dependencies_are_json(text, wrong):
    found = objects.causes_of(objects.binding({}, **{DEPENDENCIES: text}))
    assert found == [f"metadata.annotations.{DEPENDENCIES}: Invalid value: {shown}: {NOT_JSON}" for shown in wrong]


@pytest.mark.parametrize(
    "text, right", [('{"app": "web"}', True), ("{}", True), ("app=web", False), ('{"a": 1}', False), ("[]", False)]
)
def test_workload_labels_are_a_json_object_of_texts(text, right):
    found = objects.causes_of(objects.binding({}, **{LABELS: text}), f"metadata.annotations[{LABELS}]: Invalid value: ")
    assert [cause.endswith("must be a JSON object of labels: text to text") for cause in found] == [True] * (not right)


def test_karmada_does_not_validate_the_content_of_cluster_resource_bindings():
    obj = objects.binding("{components: [{}]}", "ClusterResourceBinding", **{DEPENDENCIES: "["})
    assert objects.causes_of(obj) == []
