"""Policies: the rules of Karmada besides the placement, and the rules of the schema."""

import pytest

from bayplan.validating import admission
from validating import objects

NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
OTHER = "namespace of resource selector must be the same as the namespace of the policy"
GRACE = "spec.failover.application.gracePeriodSeconds: Invalid value"
FAILOVER = {"decisionConditions": {"tolerationSeconds": 0}, "purgeMode": "Never"}
IMPORT = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "name": "x"}


@pytest.mark.parametrize("application, wrong", [
    ("{decisionConditions: {}, purgeMode: Never}", []),  # the schema has a default for an absent time
    ("{decisionConditions: {tolerationSeconds: -1}}", ["spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: -1: must be greater than or equal to 0"]),
    ("{purgeMode: Directly, gracePeriodSeconds: 5}", [f"{GRACE}: 5: only takes effect when purgeMode is gracefully"]),
    ("{purgeMode: Gracefully}", [f"{GRACE}: null: should not be empty when purgeMode is gracefully"]),
    ("{purgeMode: Graciously, gracePeriodSeconds: 0}", [f"{GRACE}: 0: must be greater than 0"]),
    ("{purgeMode: Never, gracePeriodSeconds: -1}", [f"{GRACE}: -1: only takes effect when purgeMode is gracefully", f"{GRACE}: -1: must be greater than 0"]),
    ("{}", []),  # the defaults are Gracefully in the schema and 600 seconds in the mutating webhook
    ("{gracePeriodSeconds: 5}", []),
    ("{statePreservation: {rules: [{aliasLabelName: ok}, {aliasLabelName: -x}]}}", [f'spec.failover.application.statePreservation.rules[1].aliasLabelName: Invalid value: "-x": {NAME}']),
])  # fmt: skip
def test_application_failover(application, wrong):
    obj = objects.policy(propagateDeps=True, failover={"application": objects.read(application)})
    assert objects.causes_of(obj) == wrong


def test_cluster_failover_has_alias_labels_too():
    obj = objects.policy(failover={"cluster": {"statePreservation": {"rules": [{"aliasLabelName": "-x"}]}}})
    assert objects.causes_of(obj) == [
        f'spec.failover.cluster.statePreservation.rules[0].aliasLabelName: Invalid value: "-x": {NAME}'
    ]


@pytest.mark.parametrize("spec, wrong", [
    ({"failover": {"application": FAILOVER}}, ["spec.propagateDeps: Invalid value: false: application failover is set, propagateDeps must be true"]),
    ({"failover": {"application": FAILOVER}, "resourceSelectors": [IMPORT]}, []),  # Karmada enables it
    ({"failover": {"application": FAILOVER}, "propagateDeps": True}, []),
    ({"failover": {"cluster": {}}}, []),
    ({"preemption": "Always", "resourceSelectors": [{"kind": "Deployment"}]}, ['spec.resourceSelectors[0].name: Invalid value: "": name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption']),
    ({"preemption": "Never", "resourceSelectors": [{"kind": "Deployment"}]}, []),
    ({"suspension": {"dispatching": True, "dispatchingOnClusters": {"clusterNames": ["m1"]}}}, ['spec.suspension.suspension: Invalid value: {"dispatching":true,"dispatchingOnClusters":{"clusterNames":["m1"]}}: suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames']),
    ({"suspension": {"dispatching": False, "dispatchingOnClusters": {"clusterNames": ["m1"]}}}, []),
    ({"suspension": {"dispatching": True, "dispatchingOnClusters": {}}}, []),
])  # fmt: skip
def test_policy(spec, wrong):
    assert objects.causes_of(objects.policy(**spec)) == wrong


@pytest.mark.parametrize("kind, namespace, wrong", [
    ("PropagationPolicy", "default", []),
    ("PropagationPolicy", "", []),  # the default is the policy's own
    ("PropagationPolicy", "other", [f'spec.resourceSelectors[0].namespace: Invalid value: "other": {OTHER}']),
    ("ClusterPropagationPolicy", "other", []),
])  # fmt: skip
def test_a_policy_selects_in_its_own_namespace(kind, namespace, wrong):
    obj = objects.policy(kind=kind, resourceSelectors=[{"kind": "Deployment", "name": "x", "namespace": namespace}])
    assert objects.causes_of(obj) == wrong


def test_a_policy_without_a_namespace_may_select_in_any():
    obj = objects.policy(resourceSelectors=[{"kind": "Deployment", "namespace": "other"}])
    del obj["metadata"]["namespace"]
    assert objects.causes_of(obj) == []


def test_policies_of_other_groups_have_no_rules():
    obj = {**objects.policy("{spreadConstraints: [{minGroups: -1}]}"), "apiVersion": "policy/v1"}
    assert objects.causes_of(obj) == []


# Schema


TERM = ".placement.clusterAffinities[0]"
WEIGHT = ".placement.replicaScheduling.weightPreference.staticWeightList[0]"


@pytest.mark.parametrize("spec, wrong", [
    ("{}", []),
    ("{resourceSelectors: []}", [".resourceSelectors: Invalid value: 0: spec.resourceSelectors in body should have at least 1 items"]),
    ("{resourceSelectors: null}", [".resourceSelectors: Required value"]),
    ("{resourceSelectors: [{name: x}]}", [".resourceSelectors[0].apiVersion: Required value", ".resourceSelectors[0].kind: Required value"]),
    ("{placement: {clusterAffinities: [{affinityName: " + "y" * 32 + "}]}}", []),
    ("{placement: {clusterAffinities: [{affinityName: " + "y" * 33 + "}]}}", [f"{TERM}.affinityName: Too long: may not be more than 32 bytes"]),
    ("{placement: {clusterAffinities: [{affinityName: a, overflowAffinities: [{affinityName: " + "y" * 33 + "}]}]}}", [f"{TERM}.overflowAffinities[0].affinityName: Too long: may not be more than 32 bytes"]),
    ("{placement: {clusterAffinities: [{clusterNames: [m1]}]}}", [f"{TERM}.affinityName: Required value"]),
    ("{placement: {spreadConstraints: [{spreadByField: rack}]}}", ['.placement.spreadConstraints[0].spreadByField: Unsupported value: "rack": supported values: "cluster", "region", "zone", "provider"']),
    ("{placement: {replicaScheduling: {replicaSchedulingType: Split}}}", ['.placement.replicaScheduling.replicaSchedulingType: Unsupported value: "Split": supported values: "Duplicated", "Divided"']),
    ("{placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}}", [f"{WEIGHT}.weight: Invalid value: 0: spec{WEIGHT}.weight in body should be greater than or equal to 1"]),
    ("{placement: {replicaScheduling: {weightPreference: {staticWeightList: [{}]}}}}", [f"{WEIGHT}.targetCluster: Required value", f"{WEIGHT}.weight: Required value"]),
    ("{preemption: Sometimes}", ['.preemption: Unsupported value: "Sometimes": supported values: "Always", "Never"']),
    ("{failover: {application: {purgeMode: Later}}}", [".failover.application.decisionConditions: Required value", '.failover.application.purgeMode: Unsupported value: "Later": supported values: "Directly", "Gracefully", "Never", "Immediately", "Graciously"']),
    ("{preemption: 3}", []),  # cannot be decoded, which is reported elsewhere
])  # fmt: skip
def test_schema(spec, wrong):
    obj = objects.policy()
    obj["spec"].update(objects.read(spec))
    assert [str(cause).removeprefix("spec") for cause in admission.validate_schema(obj)] == wrong


@pytest.mark.parametrize("obj", [objects.pod(), objects.binding({}), {"kind": "ConfigMap"}])
def test_other_kinds_have_no_schema_rules(obj):
    assert admission.validate_schema(obj) == []
