"""The annotations of groups and PodGroups: what is wrong is said with its path, all at once."""

import json

import pytest

from bayplan.validating import admission

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AFFINITY = "metadata.annotations[bayplan.io/group-affinity]"


def pod(annotations=None, labels=None, **spec):
    metadata = {"name": "p", "namespace": "default", "annotations": annotations or {}, "labels": labels or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def causes(obj):
    return [str(cause) for cause in admission.validate(obj)]


def between(**sides):
    return {"bayplan.io/group": "g", "bayplan.io/group-affinity": json.dumps(sides)}


@pytest.mark.parametrize("annotations", [
    {"bayplan.io/group": "g"},
    {"bayplan.io/group": "g", "bayplan.io/group-min": "3", "bayplan.io/group-topology": "example.com/rack"},
    {"bayplan.io/group": "g", "bayplan.io/group-topology-preferred": "example.com/rack, topology.kubernetes.io/zone"},
    between(groupAffinity={REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}),
    between(groupAntiAffinity={"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]}),
])  # fmt: skip
def test_valid(annotations):
    assert causes(pod(annotations)) == []


@pytest.mark.parametrize("annotations, wrong", [
    ({"bayplan.io/group": "Not_A_Name"}, ['metadata.annotations[bayplan.io/group]: Invalid value: "Not_A_Name"']),
    ({"bayplan.io/group": "g", "bayplan.io/group-min": "0"},
     ['metadata.annotations[bayplan.io/group-min]: Invalid value: "0": expected a whole number from 1 to 100000']),
    ({"bayplan.io/group": "g", "bayplan.io/group-min": "three"}, ["expected a whole number"]),
    ({"bayplan.io/group": "g", "bayplan.io/group-min": "1000000000000"}, ["expected a whole number"]),
    ({"bayplan.io/group": "g", "bayplan.io/group-topology": "a b"}, ["metadata.annotations[bayplan.io/group-topology]"]),
    ({"bayplan.io/group": "g", "bayplan.io/group-topology-preferred": "rack,,zone"}, ["group-topology-preferred]"]),
    ({"bayplan.io/group": "g", "bayplan.io/group-topology-preferred": ",".join("abcdefghi")}, ["more than 8 keys"]),
    ({"bayplan.io/group-min": "3", "bayplan.io/group-topology": "rack"},
     ["group-min]: Forbidden: the pod is in no group: set bayplan.io/group", "group-topology]: Forbidden"]),
    ({"bayplan.io/group-affinity": "{}"}, ["the pod is in no group"]),
    ({"bayplan.io/group": "g", "bayplan.io/group-affinity": "groupAffinity: ["}, [AFFINITY]),
    ({"bayplan.io/group": "g", "bayplan.io/group-affinity": ""}, ["a mapping with groupAffinity or groupAntiAffinity"]),
    ({"bayplan.io/group": "g", "bayplan.io/group-affinity": "x" * 9000}, ["longer than 8192 characters"]),
    (between(groupAfinity={}), [f"{AFFINITY}.groupAfinity"]),
    (between(groupAntiAffinity={REQUIRED: [{"labelSelector": {}}]}),
     [f"{AFFINITY}.groupAntiAffinity.{REQUIRED}[0].topologyKey: Required value"]),
    (between(groupAntiAffinity={REQUIRED: [{"topologyKey": "zone", "labelSelector": {}, "limit": 2}]}),
     [f"{AFFINITY}.groupAntiAffinity.{REQUIRED}[0].limit: Forbidden: may not be set on terms between groups"]),
    (between(groupAntiAffinity={"requiredDuringSchedulingRequiredDuringExecution": []}), ["Forbidden"]),
])  # fmt: skip
def test_what_is_wrong_is_said(annotations, wrong):
    found = causes(pod(annotations))
    assert len(found) >= len(wrong)
    for text in wrong:
        assert any(text in cause for cause in found), found


def test_a_pod_is_in_one_group():
    by_object = {"schedulingGroup": {"podGroupName": "g"}}
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    assert (
        "names another in spec.schedulingGroup.podGroupName" in causes(pod({"bayplan.io/group": "g"}, **by_object))[0]
    )
    assert "metadata.labels[scheduling.x-k8s.io/pod-group]" in causes(pod({"bayplan.io/group": "g"}, label))[0]
    assert "the label scheduling.x-k8s.io/pod-group" in causes(pod(None, label, **by_object))[0]
    assert "the PodGroup of the pod says this" in causes(pod({"bayplan.io/group-min": "2"}, **by_object))[0]
    assert causes(pod({"bayplan.io/group-affinity": "groupAffinity: {}"}, **by_object)) == []


@pytest.mark.parametrize("spec, wrong", [
    ({"schedulingPolicy": {"gang": {"minCount": 2}}}, []),
    ({"schedulingPolicy": {"basic": {}}}, []),
    ({}, ["spec.schedulingPolicy: Required value"]),
    ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, ["spec.schedulingPolicy: Forbidden"]),
    ({"schedulingPolicy": {"gang": {"minCount": 0}}}, ["spec.schedulingPolicy.gang.minCount: Invalid value: 0"]),
    ({"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": "a b"}, {"key": "c"}]}},
     ["spec.schedulingConstraints.topology: Too many", "spec.schedulingConstraints.topology[0].key: Invalid value"]),
])  # fmt: skip
def test_pod_groups(spec, wrong):
    found = causes({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": spec
    })  # fmt: skip
    assert [text for text, cause in zip(wrong, found, strict=True) if text not in cause] == []


def test_pod_groups_of_scheduler_plugins():
    made = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "d"},
    }
    assert causes({**made, "spec": {"minMember": 2}}) == []
    assert causes({**made, "spec": {"minMember": 0}}) == ["spec.minMember: Invalid value: 0: must be greater than zero"]
